//! Daemon sets: one pod on every node that will have it.

use serde_json::{Value, json};
use sk_engine::Timing;
use sk_engine::api::{Object, Propagation, Request};
use sk_engine::kinds::{DAEMON_SET, NODE, POD, PodPhase};

use crate::harness::{Cluster, deployment, group};

fn daemon_set(more: &Value) -> Value {
    let mut spec = json!({
        "selector": {"matchLabels": {"app": "agent"}},
        "template": {
            "metadata": {"labels": {"app": "agent"}},
            "spec": {"containers": [{"name": "main", "image": "agent:1", "resources": {"requests": {"cpu": "100m"}}}]},
        },
    });
    for (field, value) in more.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent", "namespace": "default"}, "spec": spec,
    })
}

fn nodes_with_pod(cluster: &Cluster) -> Vec<String> {
    let mut nodes: Vec<_> =
        cluster.engine.list(&POD).filter_map(|pod| Some(pod.pod()?.node_name.as_ref()?.to_string())).collect();
    nodes.sort();
    nodes
}

fn status(cluster: &Cluster) -> Value {
    cluster.engine.list(&DAEMON_SET).next().expect("the set is there").to_json()["status"].clone()
}

fn change_node(cluster: &mut Cluster, name: &str, change: impl Fn(&mut Value)) {
    let node = cluster.engine.list(&NODE).find(|node| node.key.name == name).expect("the node is there");
    let mut json = node.to_json();
    change(&mut json);
    cluster
        .engine
        .handle(Request::update(Object::from_json(json).expect("it is an object")))
        .expect("the change is accepted");
}

#[test]
fn every_node_has_a_pod_also_those_that_the_autoscaler_adds() {
    let mut cluster = Cluster::new(vec![group("small", "1", 1, 5)], Timing::real_like());
    cluster.until(1).apply(daemon_set(&json!({})));
    cluster.until(30);
    assert_eq!(nodes_with_pod(&cluster), ["small-1"]);
    cluster.apply(deployment("web", 3, Some("800m")));
    cluster.until(300);
    assert_eq!(cluster.nodes(), 3);
    assert_eq!((cluster.running_and_pending(), status(&cluster)["numberAvailable"].clone()), ((6, 0), json!(3)));
}

#[test]
fn a_taint_that_evicts_takes_the_pod_and_its_end_brings_it_back() {
    let mut cluster = Cluster::new(vec![group("big", "8", 2, 2)], Timing::real_like());
    cluster.until(1).apply(daemon_set(&json!({})));
    cluster.until(30);
    let taint = |effect: &str| json!([{"key": "dedicated", "value": "db", "effect": effect}]);
    change_node(&mut cluster, "big-1", |node| node["spec"]["taints"] = taint("NoSchedule"));
    cluster.until(40);
    assert_eq!(nodes_with_pod(&cluster), ["big-1", "big-2"], "one that is there may stay");
    change_node(&mut cluster, "big-1", |node| node["spec"]["taints"] = taint("NoExecute"));
    cluster.until(50);
    assert_eq!(nodes_with_pod(&cluster), ["big-2"]);
    assert_eq!(status(&cluster)["desiredNumberScheduled"], 1);
    change_node(&mut cluster, "big-1", |node| node["spec"]["taints"] = json!([]));
    cluster.until(60);
    assert_eq!(nodes_with_pod(&cluster), ["big-1", "big-2"]);
    cluster.delete("v1.Pod", &cluster.names(&POD)[0].clone(), Propagation::Background).until(70);
    assert_eq!(nodes_with_pod(&cluster), ["big-1", "big-2"], "a pod that is deleted comes back");
}

/// The fewest and the most pods there were while a new image was rolled out over four nodes.
fn rollout(strategy: &Value) -> (usize, usize) {
    let mut cluster = Cluster::new(vec![group("big", "8", 4, 4)], Timing::real_like());
    let mut set = daemon_set(&json!({"updateStrategy": strategy}));
    set["spec"]["template"]["metadata"]["annotations"] = json!({"simkube.io/kwok-stage-ready-delay": "5000ms"});
    cluster.until(1).apply(set.clone());
    cluster.until(30);
    set["spec"]["template"]["spec"]["containers"][0]["image"] = json!("agent:2");
    cluster.apply(set);
    let (mut fewest, mut most) = (4, 4);
    for secs in 31..120 {
        cluster.until(secs);
        fewest = fewest.min(cluster.pods(PodPhase::Running));
        most = most.max(cluster.names(&POD).len());
    }
    let updated = status(&cluster)["updatedNumberScheduled"].as_i64().unwrap_or(0);
    assert_eq!(updated, if fewest == 4 && most == 4 { 0 } else { 4 });
    (fewest, most)
}

#[test]
fn a_rollout_takes_as_many_nodes_at_once_as_it_may() {
    assert_eq!(rollout(&json!({})), (3, 4), "one at a time unless told");
    assert_eq!(rollout(&json!({"rollingUpdate": {"maxUnavailable": "50%"}})), (2, 4));
    assert_eq!(rollout(&json!({"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}})), (4, 5));
    assert_eq!(rollout(&json!({"type": "OnDelete"})), (4, 4));
}

#[test]
fn a_pod_that_ends_is_replaced() {
    let mut cluster = Cluster::new(vec![group("big", "8", 1, 1)], Timing::real_like());
    let mut set = daemon_set(&json!({}));
    set["spec"]["template"]["metadata"]["annotations"] = json!({"static.simkube.io/lifetime": "60000000us"});
    cluster.until(1).apply(set);
    cluster.until(200);
    assert_eq!((cluster.pods(PodPhase::Running), cluster.pods(PodPhase::Succeeded)), (1, 0));
    let made = cluster.history().matches("Added {\"apiVersion\":\"v1\",\"kind\":\"Pod\"").count();
    assert_eq!(made, 4);
}

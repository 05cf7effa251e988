//! Disruptions that somebody wants (evictions under a budget) and those that happen (nodes that fail).

use serde_json::{Value, json};
use sk_core::{Gvk, ObjectKey};
use sk_engine::Timing;
use sk_engine::api::{Object, Propagation, Reason, Request};
use sk_engine::kinds::{DEPLOYMENT, NAMESPACE, NODE, POD};

use crate::harness::{Cluster, deployment, group};

static BUDGET: Gvk = Gvk::new_static("policy", "v1", "PodDisruptionBudget");

fn budget(spec: Value) -> Value {
    let mut spec = spec;
    spec["selector"] = json!({"matchLabels": {"app": "web"}});
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web", "namespace": "default"},
        "spec": spec,
    })
}

fn status(cluster: &Cluster) -> Value {
    cluster.engine.list(&BUDGET).next().expect("the budget is there").to_json()["status"].clone()
}

fn numbers(cluster: &Cluster) -> [i64; 4] {
    let status = status(cluster);
    ["expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed"]
        .map(|name| status[name].as_i64().unwrap_or(-1))
}

fn evict(cluster: &mut Cluster, name: &str) -> Result<(), Reason> {
    let answer = cluster.engine.handle(Request::Evict { pod: ObjectKey::namespaced("default", name) });
    answer.map(drop).map_err(|error| error.reason)
}

fn with_pods(count: i64, spec: Value) -> Cluster {
    let mut cluster = Cluster::new(vec![group("big", "64", 2, 2)], Timing::real_like());
    cluster.until(1).apply(deployment("web", count, Some("10m"))).apply(budget(spec));
    cluster.until(30);
    cluster
}

#[test]
fn a_budget_counts_pods_and_what_may_be_disrupted() {
    assert_eq!(numbers(&with_pods(5, json!({"minAvailable": 3}))), [5, 5, 3, 2]);
    assert_eq!(numbers(&with_pods(5, json!({"minAvailable": "50%"}))), [5, 5, 3, 2]);
    assert_eq!(numbers(&with_pods(5, json!({"maxUnavailable": 1}))), [5, 5, 4, 1]);
    assert_eq!(numbers(&with_pods(5, json!({"maxUnavailable": "30%"}))), [5, 5, 3, 2]);
    let mut cluster = with_pods(2, json!({"maxUnavailable": 1}));
    assert_eq!(status(&cluster)["conditions"][0]["reason"], "SufficientPods");
    cluster.apply(deployment("web", 0, Some("10m"))).until(60);
    assert_eq!(numbers(&cluster), [0, 0, 0, 0]);
    assert_eq!(status(&cluster)["conditions"][0]["reason"], "InsufficientPods");
}

#[test]
fn an_eviction_beyond_the_budget_is_refused_until_the_pod_has_been_replaced() {
    let mut cluster = with_pods(3, json!({"maxUnavailable": 1}));
    let pods = cluster.names(&POD);
    assert_eq!(evict(&mut cluster, &pods[0]), Ok(()));
    assert_eq!(evict(&mut cluster, &pods[1]), Err(Reason::TooManyRequests), "at once, before anybody has counted");
    cluster.until(60);
    assert_eq!(numbers(&cluster), [3, 3, 2, 1]);
    assert_eq!(evict(&mut cluster, &pods[1]), Ok(()));
}

#[test]
fn a_pod_that_was_to_be_evicted_and_stays_counts_again_after_two_minutes() {
    let mut cluster = with_pods(3, json!({"maxUnavailable": 1}));
    let pod = cluster.names(&POD)[0].clone();
    let mut budget = cluster.engine.list(&BUDGET).next().expect("the budget is there").to_json();
    budget["status"]["disruptedPods"] = json!({pod: cluster.engine.now().to_rfc3339_secs()});
    let budget = Object::from_json(budget).unwrap();
    cluster.engine.handle(Request::update_status(budget)).unwrap();
    cluster.until(31);
    assert_eq!(numbers(&cluster), [3, 2, 2, 0]);
    cluster.until(149);
    assert_eq!(numbers(&cluster), [3, 2, 2, 0]);
    cluster.until(151);
    assert_eq!(numbers(&cluster), [3, 3, 2, 1]);
}

#[test]
fn a_pod_of_a_size_that_nobody_knows_is_not_disrupted() {
    let mut cluster = Cluster::new(vec![group("big", "64", 2, 2)], Timing::real_like());
    let mut daemon = deployment("web", 1, Some("10m"));
    daemon["kind"] = json!("DaemonSet");
    daemon["spec"].as_object_mut().unwrap().remove("replicas");
    cluster.until(1).apply(daemon).apply(budget(json!({"maxUnavailable": 1})));
    cluster.until(30);
    let pod = cluster.names(&POD)[0].clone();
    assert_eq!(evict(&mut cluster, &pod), Err(Reason::TooManyRequests));
}

/// Writes a node's condition `Ready`.
fn set_ready(cluster: &mut Cluster, name: &str, ready: &str) {
    let node = cluster.engine.list(&NODE).find(|node| node.key.name == name).expect("the node is there");
    let mut json = node.to_json();
    json["status"]["conditions"] = json!([{"type": "Ready", "status": ready}]);
    cluster
        .engine
        .handle(Request::update_status(Object::from_json(json).expect("it is an object")))
        .expect("the status is taken");
}

fn taints(cluster: &Cluster, name: &str) -> Vec<String> {
    let node = cluster.engine.list(&NODE).find(|node| node.key.name == name).expect("the node is there").to_json();
    let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    taints.iter().map(|taint| format!("{}:{}", taint["key"], taint["effect"]).replace('"', "")).collect()
}

/// Two nodes, of which pods go to the first alone: while one node is well, the other can be lost.
fn with_a_spare_node() -> Cluster {
    Cluster::new(vec![group("big", "64", 1, 1), group("spare", "1m", 1, 1)], Timing::real_like())
}

#[test]
fn pods_leave_a_lost_node_after_the_seconds_that_they_tolerate_it() {
    let mut cluster = with_a_spare_node();
    let mut hasty = deployment("hasty", 1, Some("10m"));
    let effect = json!({"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"});
    hasty["spec"]["template"]["spec"]["tolerations"] = json!([effect]);
    hasty["spec"]["template"]["spec"]["tolerations"][0]["tolerationSeconds"] = json!(20);
    cluster.until(1).apply(deployment("web", 1, Some("10m"))).apply(hasty);
    cluster.until(30);
    let bound = |cluster: &Cluster| {
        let pods = cluster.engine.list(&POD).filter(|pod| pod.pod().is_some_and(|pod| pod.node_name.is_some()));
        pods.filter(|pod| !pod.is_deleting())
            .map(|pod| pod.key.name.split('-').next().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    set_ready(&mut cluster, "big-1", "Unknown");
    cluster.until(31);
    let unreachable = ["NoSchedule", "NoExecute"].map(|effect| format!("node.kubernetes.io/unreachable:{effect}"));
    assert_eq!(taints(&cluster, "big-1"), unreachable[..1], "the other one comes with the next look at all nodes");
    cluster.until(36);
    assert_eq!(taints(&cluster, "big-1"), unreachable);
    cluster.until(54);
    assert_eq!(bound(&cluster), ["hasty", "web"]);
    cluster.until(57);
    assert_eq!(bound(&cluster), ["web"], "20 s are over");
    cluster.until(333);
    assert_eq!(bound(&cluster), ["web"], "five minutes unless told");
    cluster.until(337);
    assert_eq!(bound(&cluster), Vec::<String>::new());
    let going = |cluster: &Cluster| cluster.engine.list(&POD).filter(|pod| pod.is_deleting()).count();
    assert_eq!(going(&cluster), 2, "nobody there lets them go");
    set_ready(&mut cluster, "big-1", "True");
    cluster.until(339);
    assert_eq!(taints(&cluster, "big-1"), unreachable[1..]);
    cluster.until(346);
    assert_eq!((taints(&cluster, "big-1"), bound(&cluster)), (vec![], vec!["hasty".to_owned(), "web".to_owned()]));
    assert_eq!(going(&cluster), 0);
}

/// Who has to leave by now: the nodes that have a NoExecute taint.
fn evicting(cluster: &Cluster) -> Vec<String> {
    let is_left = |name: &String| taints(cluster, name).iter().any(|taint| taint.ends_with(":NoExecute"));
    cluster.names(&NODE).into_iter().filter(is_left).collect()
}

#[test]
fn of_many_lost_nodes_of_a_zone_one_is_left_every_ten_seconds() {
    let mut cluster = Cluster::new(vec![group("n", "1", 8, 8)], Timing::real_like());
    cluster.until(30);
    ["n-1", "n-2", "n-3"].iter().for_each(|name| set_ready(&mut cluster, name, "Unknown"));
    cluster.until(36);
    assert_eq!(evicting(&cluster), ["n-1"]);
    cluster.until(44);
    assert_eq!(evicting(&cluster), ["n-1"]);
    cluster.until(46);
    assert_eq!(evicting(&cluster), ["n-1", "n-2"]);
    cluster.until(56);
    assert_eq!(evicting(&cluster), ["n-1", "n-2", "n-3"]);
    // With five of eight more than half are sick: in a zone this small nobody else has to leave.
    ["n-4", "n-5"].iter().for_each(|name| set_ready(&mut cluster, name, "Unknown"));
    cluster.until(600);
    assert_eq!(evicting(&cluster), ["n-1", "n-2", "n-3"]);
}

#[test]
fn nobody_has_to_leave_while_every_node_is_lost() {
    let mut cluster = Cluster::new(vec![group("n", "1", 2, 2)], Timing::real_like());
    cluster.until(1).apply(deployment("web", 2, Some("600m"))).until(30);
    let pods = cluster.names(&POD);
    set_ready(&mut cluster, "n-1", "Unknown");
    cluster.until(60);
    assert_eq!(evicting(&cluster), ["n-1"]);
    set_ready(&mut cluster, "n-2", "Unknown");
    cluster.until(66);
    assert_eq!(evicting(&cluster), Vec::<String>::new(), "it is more likely that nobody can see them");
    cluster.until(1_000);
    assert_eq!((cluster.names(&POD), evicting(&cluster)), (pods.clone(), vec![]));
    set_ready(&mut cluster, "n-2", "True");
    cluster.until(1_014);
    assert_eq!(evicting(&cluster), Vec::<String>::new(), "the pace begins anew");
    cluster.until(1_016);
    assert_eq!(evicting(&cluster), ["n-1"]);
    cluster.until(1_400);
    assert!(cluster.names(&POD).iter().any(|pod| !pods.contains(pod)), "five minutes later its pod has left");
}

#[test]
fn a_node_that_says_itself_that_it_is_not_ready_speaks_for_its_pods() {
    let mut cluster = with_a_spare_node();
    cluster.until(1).apply(deployment("web", 2, Some("10m"))).until(30);
    set_ready(&mut cluster, "big-1", "False");
    cluster.until(60);
    let not_ready = ["NoSchedule", "NoExecute"].map(|effect| format!("node.kubernetes.io/not-ready:{effect}"));
    assert_eq!(taints(&cluster, "big-1"), not_ready);
    let web = cluster.engine.list(&DEPLOYMENT).next().expect("it is there").to_json();
    assert_eq!(web["status"]["availableReplicas"], 2);
    set_ready(&mut cluster, "big-1", "Unknown");
    cluster.until(66);
    let unreachable = not_ready.map(|taint| taint.replace("not-ready", "unreachable"));
    assert_eq!(taints(&cluster, "big-1"), unreachable, "it has waited for its turn already");
}

#[test]
fn pods_of_a_node_that_is_not_heard_of_are_not_ready_until_it_is() {
    let mut cluster = Cluster::new(vec![group("big", "64", 1, 1)], Timing::real_like());
    cluster.until(1).apply(deployment("web", 2, Some("10m")));
    cluster.until(30);
    let available = |cluster: &Cluster| {
        let web = cluster.engine.list(&DEPLOYMENT).next().expect("it is there").to_json();
        web["status"]["availableReplicas"].as_i64().unwrap_or(0)
    };
    assert_eq!(available(&cluster), 2);
    set_ready(&mut cluster, "big-1", "Unknown");
    cluster.until(35);
    assert_eq!(available(&cluster), 0);
    set_ready(&mut cluster, "big-1", "True");
    cluster.until(40);
    assert_eq!(available(&cluster), 2);
}

#[test]
fn a_node_that_comes_back_in_time_keeps_its_pods() {
    let mut cluster = Cluster::new(vec![group("big", "64", 1, 1)], Timing::real_like());
    cluster.until(1).apply(deployment("web", 2, Some("10m")));
    cluster.until(30);
    let pods = cluster.names(&POD);
    set_ready(&mut cluster, "big-1", "False");
    cluster.until(200);
    set_ready(&mut cluster, "big-1", "True");
    cluster.until(1000);
    assert_eq!(cluster.names(&POD), pods);
}

#[test]
fn a_namespace_of_many_objects_is_emptied_and_goes() {
    let mut cluster = Cluster::new(vec![group("big", "64", 1, 1)], Timing::ideal());
    cluster.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "full"}}));
    for number in 0..300 {
        let metadata = json!({"name": format!("c{number}"), "namespace": "full"});
        cluster.apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}));
    }
    cluster.until(1).delete("v1.Namespace", "full", Propagation::Background);
    // Kubernetes looks at it five seconds after its deletion.
    cluster.until(5);
    assert!(cluster.names(&NAMESPACE).contains(&"full".to_owned()));
    cluster.until(7);
    assert!(!cluster.names(&NAMESPACE).contains(&"full".to_owned()));
}

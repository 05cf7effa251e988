//! What goes by itself when it is over.

use serde_json::{Value, json};
use sk_core::{ObjectKey, ObjectRef, SimDuration};
use sk_engine::Timing;
use sk_engine::api::{DeleteOptions, Object, Propagation, Request};
use sk_engine::kinds::{JOB, NODE, POD};

use crate::harness::{Cluster, job};

#[test]
fn a_finished_job_goes_with_its_pods_when_its_time_is_up() {
    let mut cluster = Cluster::ideal();
    cluster.until(0).apply(job("brief", 0, json!({"ttlSecondsAfterFinished": 60})));
    cluster.apply(job("failed", 1, json!({"ttlSecondsAfterFinished": 0, "backoffLimit": 0})));
    cluster.apply(job("kept", 0, json!({}))).until(20);
    assert_eq!(cluster.names(&JOB), ["brief", "kept"], "it finished at 11 s, and 0 s are up at once");
    cluster.until(70);
    assert_eq!(cluster.names(&JOB).len(), 2);
    cluster.until(73);
    assert_eq!((cluster.names(&JOB), cluster.pods().len()), (vec!["kept".to_owned()], 1));
}

#[test]
fn a_ttl_that_is_given_later_counts_from_when_the_job_finished() {
    let mut cluster = Cluster::ideal();
    cluster.until(0).apply(job("late", 0, json!({}))).until(100);
    cluster.apply(job("late", 0, json!({"ttlSecondsAfterFinished": 120}))).until(129);
    assert_eq!(cluster.names(&JOB), ["late"]);
    cluster.until(133);
    assert_eq!(cluster.names(&JOB), [""; 0]);
}

#[test]
fn a_pod_of_a_job_that_goes_before_it_had_a_node_fails_and_is_let_go() {
    let mut cluster = Cluster::ideal();
    let mut huge = job("huge", 0, json!({"podReplacementPolicy": "Failed"}));
    huge["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!("999");
    cluster.until(1).apply(huge).until(5);
    let name = cluster.names(&POD).remove(0);
    cluster.delete(&POD, &name, Propagation::Background).until(10);
    assert_eq!(cluster.get(&POD, &name)["status"]["phase"], "Pending", "its finalizer holds it");
    cluster.until(60);
    assert_eq!(cluster.get(&POD, &name), serde_json::Value::Null);
    let status = &cluster.get(&JOB, "huge")["status"];
    assert_eq!((&status["failed"], &status["active"]), (&json!(1), &json!(1)), "it is counted and replaced");
}

/// Deletes a node.
fn lose(cluster: &mut Cluster, node: &str) {
    let target = ObjectRef::new(NODE.clone(), ObjectKey::cluster(node));
    cluster.engine.handle(Request::Delete { target, options: DeleteOptions::default() }).expect("the node is there");
}

fn bare(name: &str, node: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {"nodeName": node, "containers": [{"name": "main", "image": "app:1"}]}})
}

#[test]
fn pods_of_a_node_that_is_gone_stay_until_the_collector_has_missed_it_for_40_seconds() {
    let mut cluster = Cluster::ideal();
    cluster.until(1).apply(bare("stays", "big-1")).apply(bare("goes", "big-1")).until(25);
    lose(&mut cluster, "big-1");
    cluster.delete(&POD, "goes", Propagation::Background).until(79);
    let phase = |cluster: &Cluster, name: &str| cluster.get(&POD, name)["status"]["phase"].clone();
    assert_eq!((phase(&cluster, "stays"), phase(&cluster, "goes")), (json!("Running"), json!("Running")));
    cluster.until(81);
    assert_eq!(cluster.names(&POD), [""; 0], "missed at 40 s, and still at 80 s");
    let last = cluster.engine.watch(0).expect("a short test").filter(|event| event.object.key.name == "stays").last();
    let pod = last.expect("it was there").object.to_json();
    let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let why = conditions.iter().find(|condition| condition["type"] == "DisruptionTarget").cloned().unwrap_or_default();
    assert_eq!((&pod["status"]["phase"], &why["reason"]), (&json!("Failed"), &json!("DeletionByPodGC")));
    assert_eq!(why["message"], "PodGC: node no longer exists");
}

#[test]
fn a_node_that_comes_back_in_time_has_its_pods_again() {
    let mut cluster = Cluster::ideal();
    let mut brief = bare("brief", "big-1");
    brief["metadata"]["annotations"] = json!({"static.simkube.io/lifetime": "100000ms"});
    cluster.until(1).apply(bare("stays", "big-1")).apply(bare("goes", "big-1")).apply(brief).until(25);
    let mut node = cluster.engine.get(&NODE, &ObjectKey::cluster("big-1")).expect("it is there").to_json();
    lose(&mut cluster, "big-1");
    cluster.delete(&POD, "goes", Propagation::Background).until(70);
    node["metadata"] = json!({"name": "big-1"});
    cluster.apply(node).until(75);
    assert_eq!(cluster.names(&POD), ["brief", "stays"]);
    cluster.until(100);
    assert_eq!(cluster.get(&POD, "brief")["status"]["phase"], "Running");
    cluster.until(300);
    assert_eq!(cluster.get(&POD, "brief")["status"]["phase"], "Succeeded", "it ends when it would have");
    assert_eq!(cluster.get(&POD, "stays")["status"]["phase"], "Running");
}

#[test]
fn pods_that_go_on_a_node_out_of_service_are_not_waited_for() {
    let mut cluster = Cluster::ideal();
    cluster.until(1).apply(bare("stuck", "big-1")).until(5);
    let change = |cluster: &mut Cluster, status: bool, change: &dyn Fn(&mut Value)| {
        let mut node = cluster.engine.get(&NODE, &ObjectKey::cluster("big-1")).expect("it is there").to_json();
        change(&mut node);
        let node = Object::from_json(node).expect("it is an object");
        let request = if status { Request::update_status(node) } else { Request::update(node) };
        cluster.engine.handle(request).expect("it is taken");
    };
    change(&mut cluster, true, &|node| node["status"]["conditions"] = json!([{"type": "Ready", "status": "Unknown"}]));
    cluster.delete(&POD, "stuck", Propagation::Background).until(200);
    assert_eq!(cluster.names(&POD), ["stuck"], "nobody there lets it go");
    let taint = json!({"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"});
    change(&mut cluster, false, &|node| node["spec"]["taints"] = json!([taint]));
    cluster.until(219);
    assert_eq!(cluster.names(&POD), ["stuck"]);
    cluster.until(221);
    assert_eq!(cluster.names(&POD), [""; 0], "the collector's next look");
}

#[test]
fn pods_of_a_job_on_a_lost_node_fail_and_are_replaced_elsewhere() {
    let mut cluster = Cluster::new(Timing { job_duration: SimDuration::from_mins(5), ..Timing::real_like() });
    let mut spread = job("spread", 0, json!({"parallelism": 4, "completions": 4, "podReplacementPolicy": "Failed"}));
    spread["spec"]["template"]["metadata"] = json!({});
    cluster.until(1).apply(spread).until(20);
    let node = cluster.names(&NODE).remove(0);
    let lost = cluster.pods().iter().filter(|pod| pod["spec"]["nodeName"] == node.as_str()).count();
    assert!(lost > 0, "the scheduler spreads pods");
    lose(&mut cluster, &node);
    cluster.until(900);
    let status = cluster.get(&JOB, "spread")["status"].clone();
    assert_eq!((&status["succeeded"], &status["failed"]), (&json!(4), &json!(lost)));
}

#[test]
fn of_ended_pods_the_oldest_go_when_there_are_more_than_12_500() {
    let mut cluster = Cluster::ideal();
    for number in 0..12_503 {
        let name = format!("done-{number:05}");
        cluster.until(number / 1_000).apply(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "annotations": {"static.simkube.io/lifetime": "1us"}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "app:1"}]},
        }));
    }
    cluster.until(19);
    assert_eq!(cluster.names(&POD).len(), 12_503);
    cluster.until(21);
    let left = cluster.names(&POD);
    assert_eq!((left.len(), left.first().map(String::as_str)), (12_500, Some("done-00003")));
}

//! What virtual nodes do with containers: start, end, start again, refuse.

use serde_json::{Value, json};
use sk_core::{ObjectKey, ObjectRef};
use sk_engine::api::{DeleteOptions, Request};
use sk_engine::kinds::{JOB, NODE, POD};

use crate::harness::{Cluster, conditions, job, merge};

fn pod(name: &str, exit_code: u8, spec: Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "annotations": {
            "static.simkube.io/lifetime": "5000000us", "static.simkube.io/exit-code": exit_code.to_string(),
        }},
        "spec": {"containers": [{"name": "main", "image": "app:1"}]},
    });
    merge(&mut pod["spec"], spec);
    pod
}

/// Seconds after the start at which the containers of the pod were running anew.
fn starts(cluster: &Cluster, name: &str) -> Vec<i64> {
    let events = cluster.engine.watch(0).expect("a short test");
    let started = events.filter(|event| event.object.key.name == name).filter_map(|event| {
        let pod = event.object.pod()?;
        let before = event.before.as_ref().and_then(|before| before.pod()?.status.started);
        pod.status.started.filter(|started| before != Some(*started))
    });
    started.map(|at| at.since(crate::harness::START).as_micros() / 1_000_000).collect()
}

#[test]
fn a_container_that_fails_starts_again_at_once_and_then_later_and_later() {
    let mut cluster = Cluster::ideal();
    cluster.until(0).apply(pod("crash", 1, json!({}))).until(130);
    // It runs for 5 s each time and waits 0, 10, 20 and 40 s.
    assert_eq!(starts(&cluster, "crash"), [0, 5, 20, 45, 90]);
    let status = cluster.get(&POD, "crash")["status"].clone();
    let container = &status["containerStatuses"][0];
    assert_eq!((&status["phase"], &container["restartCount"]), (&json!("Running"), &json!(4)));
    assert_eq!(container["state"]["waiting"]["reason"], "CrashLoopBackOff");
    assert_eq!(container["lastState"]["terminated"]["exitCode"], 1);
    let ready = status["conditions"].as_array().and_then(|all| all.iter().find(|one| one["type"] == "Ready"));
    assert_eq!(ready.map(|ready| &ready["message"]), Some(&json!("containers with unready status: [main]")));
}

#[test]
fn a_container_that_may_not_start_again_ends_its_pod() {
    let mut cluster = Cluster::ideal();
    cluster.until(0).apply(pod("fails", 3, json!({"restartPolicy": "Never"})));
    cluster.apply(pod("works", 0, json!({"restartPolicy": "OnFailure"}))).until(10);
    let ended = |name: &str| {
        let status = cluster.get(&POD, name)["status"].clone();
        let terminated = &status["containerStatuses"][0]["state"]["terminated"];
        (status["phase"].clone(), terminated["exitCode"].clone(), terminated["reason"].clone())
    };
    assert_eq!(ended("fails"), (json!("Failed"), json!(3), json!("Error")));
    assert_eq!(ended("works"), (json!("Succeeded"), json!(0), json!("Completed")));
}

#[test]
fn restarts_within_a_pod_count_against_the_limit_of_its_job() {
    let mut cluster = Cluster::ideal();
    let mut retries = job("retries", 1, json!({"backoffLimit": 2}));
    retries["spec"]["template"]["spec"]["restartPolicy"] = json!("OnFailure");
    cluster.until(0).apply(retries).until(120);
    let failed = cluster.get(&JOB, "retries");
    let reasons: Vec<_> = conditions(&failed).into_iter().map(|(_, reason)| reason).collect();
    assert_eq!(reasons, ["BackoffLimitExceeded", "BackoffLimitExceeded"]);
    assert_eq!((cluster.creations().len(), cluster.pods().len()), (1, 0), "one pod, which went with its Job");
}

#[test]
fn init_containers_have_ended_and_sidecars_run_while_the_pod_does() {
    let mut cluster = Cluster::ideal();
    let spec = json!({"restartPolicy": "Never", "initContainers": [
        {"name": "setup", "image": "a"}, {"name": "proxy", "image": "b", "restartPolicy": "Always"},
    ]});
    cluster.until(0).apply(pod("web", 0, spec)).until(2);
    let statuses = |cluster: &Cluster| cluster.get(&POD, "web")["status"]["initContainerStatuses"].clone();
    let now = statuses(&cluster);
    assert_eq!(now[0]["state"]["terminated"]["reason"], "Completed");
    assert!(now[1]["state"]["running"].is_object(), "{now}");
    cluster.until(10);
    assert!(statuses(&cluster)[1]["state"]["terminated"].is_object());
}

#[test]
fn a_pod_that_its_node_has_no_room_for_fails_there() {
    let mut cluster = Cluster::ideal();
    let node = cluster.names(&sk_engine::kinds::NODE).remove(0);
    let asks = |cpu: &str| {
        let containers = json!([{"name": "main", "resources": {"requests": {"cpu": cpu}}}]);
        json!({"nodeName": node, "restartPolicy": "Never", "containers": containers})
    };
    cluster.until(0).apply(pod("first", 0, asks("40"))).apply(pod("second", 0, asks("30"))).until(3);
    let status = cluster.get(&POD, "second")["status"].clone();
    let words =
        "Pod was rejected: Node didn't have enough resource: cpu, requested: 30000, used: 40000, capacity: 64000";
    assert_eq!(
        (&status["phase"], &status["reason"], &status["message"]),
        (&json!("Failed"), &json!("OutOfcpu"), &json!(words))
    );
    cluster.until(6).apply(pod("third", 0, asks("60"))).until(8);
    assert_eq!(cluster.get(&POD, "third")["status"]["phase"], "Running", "what has ended takes no room");
}

#[test]
fn a_resource_that_its_node_knows_nothing_of_is_no_reason_to_refuse_a_pod() {
    let mut cluster = Cluster::ideal();
    let node = cluster.names(&NODE).remove(0);
    let asks = |resource: &str| {
        let requests = json!({"requests": {resource: "1"}, "limits": {resource: "1"}});
        json!({"nodeName": node, "containers": [{"name": "main", "image": "app:1", "resources": requests}]})
    };
    cluster.until(0).apply(pod("licensed", 0, asks("example.com/licence"))).until(1);
    assert_eq!(cluster.get(&POD, "licensed")["status"]["phase"], "Running");
    cluster.apply(pod("huge", 0, asks("hugepages-2Mi"))).until(2);
    assert_eq!(cluster.get(&POD, "huge")["status"]["reason"], "OutOfhugepages-2Mi");
}

#[test]
fn nodes_say_what_is_out_of_the_ordinary_and_nothing_of_what_is_not() {
    let settings = sk_engine::Settings { events: true, ..crate::harness::ideal_settings() };
    let mut cluster = Cluster::of(&settings);
    let mut calm = pod("calm", 0, json!({}));
    calm["metadata"]["annotations"] = Value::Null;
    calm["spec"]["initContainers"] =
        json!([{"name": "proxy", "image": "p:1", "restartPolicy": "Always"}, {"name": "setup", "image": "s:1"}]);
    let node = cluster.engine.list(&"v1.Node".parse().expect("a kind")).next().expect("a node").key.name.to_string();
    let large = json!({"nodeName": node, "containers": [{"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "100"}}}]});
    cluster.until(0).apply(calm).apply(pod("crash", 1, json!({}))).apply(pod("large", 0, large)).until(30);
    cluster.delete(&POD, "calm", sk_engine::api::Propagation::Background).until(40);
    let uid = cluster.get(&POD, "crash")["metadata"]["uid"].as_str().expect("a uid").to_owned();
    let said = cluster.engine.take_events();
    let of_kubelet: Vec<_> = said
        .iter()
        .filter(|event| event.from == "kubelet")
        .map(|event| {
            (
                event.at.since(crate::harness::START).as_micros() / 1_000_000,
                event.about.key.name.as_str(),
                event.is_warning,
                event.reason.as_str(),
                event.message.clone(),
            )
        })
        .collect();
    let back_off = format!("Back-off restarting failed container main in pod crash_default({uid})");
    let refused = "Node didn't have enough resource: cpu, requested: 100000, used: 0, capacity: 64000";
    assert_eq!(
        of_kubelet,
        [
            (0, "large", true, "OutOfcpu", refused.to_owned()),
            // The first restart is at once; it fails again after 5 s, and after 10 s more.
            (10, "crash", true, "BackOff", back_off.clone()),
            (25, "crash", true, "BackOff", back_off),
            (30, "calm", false, "Killing", "Stopping container proxy".to_owned()),
            (30, "calm", false, "Killing", "Stopping container main".to_owned()),
        ]
    );
}

#[test]
fn a_pod_bound_to_a_node_that_never_comes_waits_and_is_collected_after_the_quarantine() {
    let mut cluster = Cluster::ideal();
    cluster.until(5).apply(pod("lost", 0, json!({"nodeName": "nowhere"}))).until(59);
    assert_eq!(cluster.get(&POD, "lost")["status"]["phase"], "Pending");
    cluster.until(61);
    assert!(cluster.get(&POD, "lost").is_null(), "seen at 20 s, and 40 s later nobody has come");
    let said = cluster.engine.watch(0).expect("a short test").filter_map(|event| {
        let condition = event.object.pod()?.status.condition("DisruptionTarget")?;
        Some((event.object.pod()?.status.phase.as_str(), condition.reason().to_owned()))
    });
    assert_eq!(said.last(), Some(("Failed", "DeletionByPodGC".to_owned())));
}

#[test]
fn a_pod_bound_to_a_node_that_comes_late_starts_there() {
    let mut cluster = Cluster::ideal();
    cluster.until(5).apply(pod("early", 0, json!({"nodeName": "late"}))).until(30);
    assert_eq!(cluster.get(&POD, "early")["status"]["phase"], "Pending");
    let mut node = cluster.engine.list(&NODE).next().expect("there are nodes").to_json();
    node["metadata"] = json!({"name": "late"});
    cluster.apply(node).until(32);
    assert_eq!(starts(&cluster, "early"), [30]);
}

#[test]
fn pods_of_a_job_whose_node_is_gone_are_a_disruption_and_no_failure() {
    let ignore = json!({"rules": [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [0]}},
    ]});
    let mut cluster = Cluster::ideal();
    cluster.until(1).apply(job("work", 0, json!({"backoffLimit": 0, "podFailurePolicy": ignore}))).until(5);
    let node = cluster.pods()[0]["spec"]["nodeName"].as_str().expect("it runs").to_owned();
    let target = ObjectRef::new(NODE.clone(), ObjectKey::cluster(node));
    cluster.engine.handle(Request::Delete { target, options: DeleteOptions::default() }).expect("the node is there");
    cluster.until(120);
    let ended: Vec<String> = conditions(&cluster.get(&JOB, "work")).into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(ended, ["SuccessCriteriaMet", "Complete"]);
}

#[test]
fn a_second_taint_does_not_hasten_a_pod_that_is_to_leave_already() {
    let tolerations = json!([
        {"key": "slow", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
        {"key": "quick", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 10},
    ]);
    let mut cluster = Cluster::ideal();
    let mut patient = pod("patient", 0, json!({"tolerations": tolerations}));
    patient["metadata"]["annotations"] = json!({});
    cluster.until(0).apply(patient).until(5);
    let node = cluster.get(&POD, "patient")["spec"]["nodeName"].as_str().expect("it runs").to_owned();
    let taint = |cluster: &mut Cluster, keys: &[&str]| {
        let mut object = cluster.engine.get(&NODE, &ObjectKey::cluster(node.clone())).expect("it is there").to_json();
        object["spec"]["taints"] = keys.iter().map(|key| json!({"key": key, "effect": "NoExecute"})).collect();
        cluster.apply(object);
    };
    taint(&mut cluster, &["slow"]);
    cluster.until(100);
    taint(&mut cluster, &["slow", "quick"]);
    cluster.until(304);
    assert_eq!(cluster.get(&POD, "patient")["status"]["phase"], "Running");
    cluster.until(306);
    assert!(cluster.get(&POD, "patient").is_null(), "300 s after the first taint");
}

//! Claims, volumes and budgets in the whole cluster.

use serde_json::{Value, json};
use sk_engine::kinds::POD;
use sk_engine::{NodeGroup, Timing};

use crate::harness::{Cluster, deployment, group};

const ZONE: &str = "topology.kubernetes.io/zone";

fn zone(name: &str) -> NodeGroup {
    let mut group = group(name, "8", 1, 1);
    group.labels.insert(ZONE.into(), name.into());
    group
}

/// One node in each of three zones.
fn three_zones() -> Cluster {
    Cluster::new(["a", "b", "c"].map(zone).to_vec(), Timing::real_like())
}

fn pod_with_claim(name: &str, claim: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "containers": [{"name": "main"}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}],
        },
    })
}

fn claim(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    })
}

fn storage_class(name: &str, provisioner: &str) -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
        "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer",
    })
}

/// The node of a pod, and what the scheduler said of it.
fn place(cluster: &Cluster, name: &str) -> (Option<String>, String) {
    let pod = cluster.engine.list(&POD).find(|pod| pod.key.name == name).expect("the pod is there");
    let pod = pod.pod().expect("it is a pod");
    let said = pod.status.condition("PodScheduled").map(|condition| condition.message().to_owned());
    (pod.node_name.as_ref().map(ToString::to_string), said.unwrap_or_default())
}

#[test]
fn a_claim_whose_volume_is_known_keeps_its_pod_where_the_volume_is() {
    let mut cluster = three_zones();
    let in_zone = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv-b"},
        "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["b"]}]}]}}},
    });
    let labelled = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv-c", "labels": {ZONE: "c"}}, "spec": {},
    });
    let nowhere = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv-d", "labels": {ZONE: "d"}}, "spec": {},
    });
    cluster.until(1).apply(in_zone).apply(labelled).apply(nowhere);
    for volume in ["b", "c", "d"] {
        cluster.apply(claim(&format!("claim-{volume}"), &json!({"volumeName": format!("pv-{volume}")})));
        cluster.apply(pod_with_claim(&format!("pod-{volume}"), &format!("claim-{volume}")));
    }
    cluster.until(60);
    assert_eq!(place(&cluster, "pod-b").0.as_deref(), Some("b-1"));
    assert_eq!(place(&cluster, "pod-c").0.as_deref(), Some("c-1"));
    let (node, said) = place(&cluster, "pod-d");
    assert_eq!(node, None);
    assert!(said.starts_with("0/3 nodes are available: 3 node(s) had no available volume zone."), "{said}");
}

#[test]
fn a_claim_that_waits_is_bound_where_its_first_pod_goes_and_keeps_the_next_there() {
    for (provisioner, stays) in [("ebs.csi.aws.com", true), ("rancher.io/local-path", true), ("nfs.example.com", false)]
    {
        let mut cluster = three_zones();
        cluster.until(1).apply(storage_class("disk", provisioner));
        cluster.apply(claim("data", &json!({"storageClassName": "disk"})));
        let mut first = pod_with_claim("first", "data");
        first["spec"]["nodeSelector"] = json!({ZONE: "b"});
        cluster.apply(first);
        cluster.until(60);
        assert_eq!(place(&cluster, "first").0.as_deref(), Some("b-1"));
        let mut elsewhere = pod_with_claim("second", "data");
        elsewhere["spec"]["nodeSelector"] = json!({ZONE: "a"});
        cluster.apply(elsewhere);
        cluster.until(120);
        assert_eq!(place(&cluster, "second").0.is_none(), stays, "{provisioner}: {:?}", place(&cluster, "second"));
    }
}

#[test]
fn a_claim_that_nobody_has_told_of_is_bound_at_once_and_everywhere() {
    let mut cluster = three_zones();
    cluster.until(1).apply(pod_with_claim("p", "data-web-0"));
    cluster.apply(claim("other", &json!({"volumeName": "not-in-the-trace"})));
    cluster.apply(pod_with_claim("q", "other"));
    cluster.until(60);
    assert!(place(&cluster, "p").0.is_some(), "{}", place(&cluster, "p").1);
    assert!(place(&cluster, "q").0.is_some(), "{}", place(&cluster, "q").1);
}

#[test]
fn preemption_spares_pods_whose_budget_lets_none_go() {
    let budget = |unavailable: Value| {
        json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": "guard", "namespace": "default"},
            "spec": {"maxUnavailable": unavailable, "selector": {"matchLabels": {"app": "guarded"}}},
        })
    };
    let class = json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000,
    });
    // The younger pods are the lesser loss, unless a budget holds them.
    for (unavailable, loser) in [(json!(0), "first"), (json!("50%"), "guarded")] {
        let mut cluster = Cluster::new(vec![group("fixed", "2", 2, 2)], Timing::real_like());
        cluster.until(1).apply(class.clone()).apply(budget(unavailable));
        cluster.apply(deployment("first", 1, Some("1500m")));
        cluster.until(60).apply(deployment("guarded", 1, Some("1500m")));
        cluster.until(120).apply(json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "high", "namespace": "default"},
            "spec": {
                "priorityClassName": "high",
                "containers": [{"name": "main", "resources": {"requests": {"cpu": "1500m"}}}],
            },
        }));
        cluster.until(240);
        assert!(place(&cluster, "high").0.is_some());
        let waits =
            |pod: &&std::sync::Arc<sk_engine::api::Object>| pod.pod().is_some_and(|pod| pod.node_name.is_none());
        let waiting: Vec<String> =
            cluster.engine.list(&POD).filter(waits).map(|pod| pod.key.name.to_string()).collect();
        assert!(waiting.len() == 1 && waiting[0].starts_with(loser), "{waiting:?}, not {loser}");
    }
}

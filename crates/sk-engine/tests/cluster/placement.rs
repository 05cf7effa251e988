//! The scheduler's rules at work in the whole cluster: pods that avoid each other, pods that push others out.

use serde_json::{Value, json};
use sk_engine::Timing;
use sk_engine::kinds::{POD, PodPhase};

use crate::harness::{Cluster, deployment, group};

fn one_per_host(name: &str, replicas: i64) -> Value {
    let mut deployment = deployment(name, replicas, Some("100m"));
    deployment["spec"]["template"]["spec"]["affinity"] = json!({"podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": name}}},
        ],
    }});
    deployment
}

fn bare(name: &str, cpu: &str, priority: i64) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "priorityClassName": if priority > 0 { "high" } else { "" },
            "containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}],
        },
    })
}

#[test]
fn pods_that_avoid_each_other_stand_on_nodes_of_their_own_and_the_rest_wait() {
    let mut cluster = Cluster::new(vec![group("fixed", "8", 2, 2)], Timing::real_like());
    cluster.until(1).apply(one_per_host("web", 8));
    cluster.until(300);
    assert_eq!(cluster.running_and_pending(), (2, 6));
}

#[test]
fn the_autoscaler_adds_a_node_for_each_pod_that_avoids_the_others() {
    let mut cluster = Cluster::new(vec![group("small", "8", 1, 10)], Timing::real_like());
    cluster.until(1).apply(one_per_host("web", 6));
    cluster.until(300);
    assert_eq!((cluster.running_and_pending(), cluster.nodes()), ((6, 0), 6));
}

#[test]
fn a_pod_of_higher_priority_takes_the_place_of_a_lower_one() {
    let mut cluster = Cluster::new(vec![group("fixed", "2", 1, 1)], Timing::real_like());
    let class = json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000,
    });
    cluster.until(1).apply(class).apply(bare("low", "1500m", 0));
    cluster.until(60).apply(bare("high", "1500m", 1000));
    cluster.until(200);
    let running: Vec<_> = cluster
        .engine
        .list(&POD)
        .filter(|pod| pod.pod().is_some_and(|pod| pod.status.phase == PodPhase::Running))
        .map(|pod| pod.key.name.to_string())
        .collect();
    assert_eq!(running, ["high"]);
    assert_eq!(cluster.names(&POD), ["high"], "the victim is gone");
    let history = cluster.history();
    assert!(history.contains("PreemptionByScheduler") && history.contains("\"nominatedNodeName\":\"fixed-1\""));
}

#[test]
fn a_deployments_pods_are_spread_over_zones_by_default() {
    let zone = |name: &str| {
        let mut group = group(name, "8", 2, 2);
        group.labels.insert("topology.kubernetes.io/zone".into(), name.into());
        group
    };
    let mut cluster = Cluster::new(vec![zone("a"), zone("b"), zone("c")], Timing::real_like());
    cluster.until(1).apply(deployment("web", 9, Some("100m")));
    cluster.until(60);
    let in_zone = |zone: &str| {
        let pods = cluster.engine.list(&POD).filter_map(|pod| pod.pod()?.node_name.clone());
        pods.filter(|node| node.starts_with(zone)).count()
    };
    assert_eq!(["a", "b", "c"].map(in_zone), [3, 3, 3]);
}

//! The scheduler's rules at work in the whole cluster: pods that avoid each other, pods that push others out.

use serde_json::{Value, json};
use sk_engine::api::Propagation;
use sk_engine::kinds::{POD, PodPhase};
use sk_engine::{Engine, Explain, Settings, Timing};

use crate::harness::{Cluster, START, deployment, group};

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

#[test]
fn pods_that_never_fit_do_not_use_up_the_explanations_of_those_that_do() {
    let explain = Some(Explain { sample: 1_000, most: 2 });
    let settings = Settings { seed: 1, groups: vec![group("fixed", "2", 2, 2)], explain, ..Settings::default() };
    let mut cluster = Cluster { engine: Engine::new(&settings, START) };
    cluster.until(1).apply(bare("a", "1500m", 0)).apply(bare("b", "1500m", 0));
    for number in 0..8 {
        cluster.apply(bare(&format!("never-{number}"), "16", 0));
    }
    cluster.until(20).apply(bare("later", "1500m", 0));
    cluster.until(40).delete("v1.Pod", "a", Propagation::Background);
    cluster.until(120);
    let later = cluster.engine.list(&POD).find(|pod| pod.key.name == "later").expect("it is there").clone();
    assert!(later.pod().is_some_and(|pod| pod.node_name.is_some()), "there is room for it now");
    let explained = cluster.engine.take_explained();
    let of_later = explained.iter().find(|explained| explained.pod == later.uid && explained.counts.is_some());
    assert!(of_later.is_some_and(|explained| !explained.scores.is_empty()), "{explained:?}");
}

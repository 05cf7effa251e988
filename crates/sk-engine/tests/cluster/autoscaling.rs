//! Nodes follow pods.

use serde_json::json;
use sk_engine::Timing;
use sk_engine::api::Propagation;
use sk_engine::kinds::{NODE, POD};

use crate::harness::{Cluster, deployment, group};

/// The founding demonstration, on the engine alone: 2, 10, 5 and no pods of one CPU on nodes of one CPU.
fn nginx(timing: Timing) -> (Cluster, Vec<(i64, usize, usize, usize)>) {
    let mut cluster = Cluster::new(vec![group("small", "1", 1, 10)], timing);
    let mut curve = Vec::new();
    let mut look = |cluster: &mut Cluster, secs: i64| {
        cluster.until(secs);
        let (running, pending) = cluster.running_and_pending();
        curve.push((secs, running, pending, cluster.nodes()));
    };
    cluster.until(1);
    cluster.apply(deployment("nginx", 2, Some("1")));
    for secs in [5, 20, 90, 299] {
        look(&mut cluster, secs);
    }
    cluster.until(300);
    cluster.apply(deployment("nginx", 10, Some("1")));
    for secs in [305, 320, 400] {
        look(&mut cluster, secs);
    }
    cluster.until(900);
    cluster.apply(deployment("nginx", 5, Some("1")));
    for secs in [905, 1_480, 1_530] {
        look(&mut cluster, secs);
    }
    cluster.until(1_600).delete("apps/v1.Deployment", "nginx", Propagation::Background);
    for secs in [1_605, 2_180, 2_230, 2_400] {
        look(&mut cluster, secs);
    }
    (cluster, curve)
}

#[test]
fn nodes_follow_pods_up_to_ten_and_come_down_again() {
    let (_, curve) = nginx(Timing::ideal());
    let expected = [
        // seconds, running, pending, nodes
        (5, 1, 1, 1),
        (20, 1, 1, 2), // the scan at 10 s asked for a node
        (90, 2, 0, 2), // ready 60 s later
        (299, 2, 0, 2),
        (305, 2, 8, 2),
        (320, 2, 8, 10),
        (400, 10, 0, 10),
        (905, 5, 0, 10),
        (1_480, 5, 0, 10),
        (1_530, 5, 0, 5), // unneeded for ten minutes
        (1_605, 0, 0, 5),
        (2_180, 0, 0, 5),
        (2_230, 0, 0, 1), // down to the minimum and no further
        (2_400, 0, 0, 1),
    ];
    assert_eq!(curve, expected);
}

#[test]
fn latencies_and_rate_limits_change_when_things_happen_but_not_what() {
    let (_, ideal) = nginx(Timing::ideal());
    let (_, real_like) = nginx(Timing::real_like());
    assert_eq!(ideal, real_like);
}

#[test]
fn the_same_seed_gives_the_same_history_to_the_byte() {
    let history = || nginx(Timing::real_like()).0.history();
    assert_eq!(history(), history());
}

#[test]
fn pods_that_ask_for_nothing_call_for_no_nodes() {
    let mut cluster = Cluster::ideal(1, 10);
    cluster.until(1).apply(deployment("agent", 20, None));
    cluster.until(600);
    assert_eq!((cluster.running_and_pending(), cluster.nodes()), ((20, 0), 1));
}

#[test]
fn a_pod_too_large_for_every_group_waits_and_says_why() {
    let mut cluster = Cluster::ideal(1, 10);
    cluster.until(1).apply(deployment("giant", 1, Some("2")));
    cluster.until(600);
    assert_eq!((cluster.running_and_pending(), cluster.nodes()), ((0, 1), 1), "no node would help");
    let pod = cluster.engine.list(&POD).next().unwrap();
    let condition = pod.pod().unwrap().status.condition("PodScheduled").unwrap();
    assert!(condition.message().starts_with("0/1 nodes are available: 1 Insufficient cpu."), "{}", condition.message());
}

#[test]
fn a_group_never_grows_beyond_its_maximum() {
    let mut cluster = Cluster::ideal(0, 3);
    cluster.until(1).apply(deployment("web", 5, Some("1")));
    cluster.until(600);
    assert_eq!((cluster.running_and_pending(), cluster.nodes()), ((3, 2), 3));
}

#[test]
fn a_lightly_used_node_is_drained_and_its_pods_move() {
    let mut cluster = Cluster::new(vec![group("big", "4", 1, 10)], Timing::ideal());
    cluster.until(1).apply(deployment("web", 8, Some("1500m")));
    cluster.until(200);
    assert_eq!((cluster.running_and_pending(), cluster.nodes()), ((8, 0), 4));
    // Two pods are left, in the worst case on two nodes at 37 %.
    cluster.apply(deployment("web", 2, Some("1500m")));
    cluster.until(3_000);
    assert_eq!((cluster.running_and_pending(), cluster.nodes()), ((2, 0), 1));
}

#[test]
fn a_pod_that_nobody_would_make_again_keeps_its_node() {
    let mut cluster = Cluster::new(vec![group("big", "4", 0, 10)], Timing::ideal());
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bare", "namespace": "default"},
        "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]},
    });
    cluster.until(1).apply(pod);
    cluster.until(3_000);
    assert_eq!((cluster.running_and_pending(), cluster.nodes()), ((1, 0), 1));
    assert_eq!(cluster.names(&NODE), ["big-1"]);
}

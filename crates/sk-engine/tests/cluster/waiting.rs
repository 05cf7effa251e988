//! Pods that wait for a long time cost the autoscaler nothing while nothing changes. Work is counted in comparisons of one
//! pod with one node ([`sk_engine::Engine::fits_asked`]), whatever the machine.

use serde_json::{Value, json};
use sk_engine::{Decision, Timing, Verdict};

use crate::harness::{Cluster, deployment, group};

const NODES: u32 = 10;

fn pod(name: &str, cpu: &str, labels: &Value) -> Value {
    let resources = json!({"requests": {"cpu": cpu}});
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {"containers": [{"name": "main", "image": "app:1", "resources": resources}]},
    })
}

/// Ten nodes, of which no more can come.
fn full() -> Cluster {
    let mut cluster = Cluster::new(vec![group("small", "1", NODES, NODES)], Timing::ideal());
    cluster.until(60);
    cluster
}

/// The pods that were told that no group grows for them, with the loops that told them.
fn refused(decisions: &[Decision]) -> Vec<(u64, String)> {
    let told = decisions.iter().filter_map(|decision| match &decision.verdict {
        Verdict::NoScaleUp { pods, .. } => Some(pods.iter().map(|pod| (decision.loop_number, pod.name.to_string()))),
        _ => None,
    });
    told.flatten().collect()
}

#[test]
fn two_thousand_pods_that_fit_nowhere_are_not_tried_one_by_one() {
    let mut cluster = full();
    let before = cluster.engine.fits_asked();
    for number in 0..2_000 {
        cluster.apply(pod(&format!("p{number}"), "2", &json!({})));
    }
    cluster.until(180);
    let asked = cluster.engine.fits_asked() - before;
    assert!(asked <= u64::from(NODES), "{asked} comparisons for pods that are all alike and {NODES} nodes");
    assert_eq!(refused(&cluster.engine.take_decisions()).len(), 2_000, "each of them is told");
}

#[test]
fn a_loop_compares_a_new_pod_with_the_nodes_and_no_old_one() {
    let mut cluster = full();
    for number in 0..50 {
        cluster.apply(pod(&format!("old-{number}"), "2", &json!({"number": number.to_string()})));
    }
    cluster.until(120);
    let before = cluster.engine.fits_asked();
    cluster.apply(pod("new", "2", &json!({"number": "new"}))).until(180);
    assert_eq!(cluster.engine.fits_asked() - before, u64::from(NODES));
}

#[test]
fn loops_that_find_nothing_new_ask_nothing_and_are_counted() {
    let mut cluster = full();
    cluster.apply(deployment("web", 30, Some("2"))).until(120);
    let (asked, told) = (cluster.engine.fits_asked(), refused(&cluster.engine.take_decisions()));
    assert_eq!(told.len(), 30);
    cluster.until(1_200);
    assert_eq!(cluster.engine.fits_asked(), asked, "nothing has changed for 18 minutes");
    cluster.apply(pod("late", "3", &json!({}))).until(1_260);
    let late = refused(&cluster.engine.take_decisions());
    assert_eq!(late.len(), 1);
    let loops = late[0].0 - told[0].0;
    assert!((105..=120).contains(&loops), "a loop every ten seconds, and one for the pod: {loops}");
}

#[test]
fn waiting_pods_are_tried_again_when_there_is_room() {
    let mut cluster = full();
    cluster.apply(deployment("web", 10, Some("1"))).until(90);
    cluster.apply(pod("first", "1", &json!({}))).apply(pod("second", "1", &json!({})));
    cluster.until(600);
    assert_eq!(cluster.running_and_pending(), (10, 2));
    let before = cluster.engine.fits_asked();
    cluster.apply(deployment("web", 9, Some("1"))).until(700);
    assert_eq!(cluster.running_and_pending(), (10, 1));
    assert!(cluster.engine.fits_asked() > before, "a pod that goes makes room");
}

//! Deployments, replica sets and the pods they make.

use serde_json::json;
use sk_core::SimTime;
use sk_engine::Timing;
use sk_engine::api::{AdmitPod, Object};
use sk_engine::kinds::{DEPLOYMENT, POD, PodPhase, REPLICA_SET};

use crate::harness::{Cluster, START, deployment, group};

fn roomy(timing: Timing) -> Cluster {
    Cluster::new(vec![group("big", "64", 2, 2)], timing)
}

#[test]
fn a_stale_cache_never_makes_a_pod_too_many() {
    let mut slow = Timing::real_like();
    slow.watch_latency = sk_core::SimDuration::from_secs(5);
    let mut cluster = roomy(slow);
    cluster.until(1).apply(deployment("web", 40, Some("10m")));
    cluster.until(600);
    assert_eq!(cluster.running_and_pending(), (40, 0));
    let made = cluster.history().matches("Added {\"apiVersion\":\"v1\",\"kind\":\"Pod\"").count();
    assert_eq!(made, 40);
}

#[test]
fn a_rolling_update_keeps_enough_pods_available_and_never_too_many() {
    let mut cluster = roomy(Timing::ideal());
    cluster.engine.set_pod_hook(Box::new(SlowStart));
    cluster.until(1).apply(deployment("web", 8, Some("10m")));
    cluster.until(60);
    assert_eq!(cluster.running_and_pending(), (8, 0));
    let mut new = deployment("web", 8, Some("10m"));
    new["spec"]["template"]["spec"]["containers"][0]["image"] = json!("app:2");
    cluster.apply(new);
    let (mut fewest, mut most) = (8, 8);
    for secs in 61..400 {
        cluster.until(secs);
        let (running, pending) = cluster.running_and_pending();
        (fewest, most) = (fewest.min(running), most.max(running + pending));
    }
    // 25 % of 8: at most two missing, at most two too many.
    assert_eq!((fewest, most), (6, 10));
    assert_eq!(cluster.running_and_pending(), (8, 0));
    let images: Vec<_> =
        cluster.engine.list(&POD).map(|pod| pod.to_json()["spec"]["containers"][0]["image"].clone()).collect();
    assert!(images.iter().all(|image| image == "app:2"), "{images:?}");
    assert_eq!(cluster.engine.list(&REPLICA_SET).count(), 2, "the old replica set is kept for a rollback");
}

#[test]
fn recreate_stops_all_old_pods_first() {
    let mut cluster = roomy(Timing::ideal());
    cluster.engine.set_pod_hook(Box::new(SlowStart));
    let mut web = deployment("web", 4, Some("10m"));
    web["spec"]["strategy"] = json!({"type": "Recreate"});
    cluster.until(1).apply(web.clone());
    cluster.until(60);
    web["spec"]["template"]["spec"]["containers"][0]["image"] = json!("app:2");
    cluster.apply(web);
    cluster.until(61);
    assert_eq!(cluster.running_and_pending(), (0, 4));
    cluster.until(100);
    assert_eq!(cluster.running_and_pending(), (4, 0));
}

#[test]
fn a_pod_ends_after_its_lifetime_and_is_replaced() {
    let mut cluster = roomy(Timing::ideal());
    cluster.engine.set_pod_hook(Box::new(ShortLife));
    cluster.until(1).apply(deployment("web", 1, Some("10m")));
    cluster.until(100);
    assert_eq!(cluster.running_and_pending(), (1, 0));
    cluster.until(130);
    assert_eq!((cluster.pods(PodPhase::Succeeded), cluster.pods(PodPhase::Running)), (1, 1));
}

/// Pods take ten seconds to start.
struct SlowStart;

impl AdmitPod for SlowStart {
    fn admit(&mut self, pod: &mut Object, _now: SimTime) {
        annotate(pod, "simkube.io/kwok-stage-ready-delay", "10000ms");
    }

    fn fork(&self) -> Box<dyn AdmitPod> {
        Box::new(Self)
    }
}

/// Pods run for two minutes.
struct ShortLife;

impl AdmitPod for ShortLife {
    fn admit(&mut self, pod: &mut Object, now: SimTime) {
        assert!(now > START);
        annotate(pod, "static.simkube.io/lifetime", "120000000us");
    }

    fn fork(&self) -> Box<dyn AdmitPod> {
        Box::new(Self)
    }
}

fn annotate(pod: &mut Object, name: &'static str, value: &'static str) {
    pod.meta.annotations.make_mut().insert(name.into(), value.into());
}

#[test]
fn a_replica_set_of_somebody_else_with_the_name_of_ours_makes_the_hash_anew() {
    let fresh = || {
        let mut cluster = Cluster::new(vec![group("big", "64", 1, 1)], Timing::ideal());
        cluster.until(1);
        cluster
    };
    let mut alone = fresh();
    alone.apply(deployment("web", 2, Some("10m"))).until(10);
    let taken = alone.names(&REPLICA_SET)[0].clone();
    let mut cluster = fresh();
    cluster.apply(json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": taken, "namespace": "default"},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "other"}}, "template": {
            "metadata": {"labels": {"app": "other"}}, "spec": {"containers": [{"name": "main", "image": "app:1"}]},
        }},
    }));
    cluster.apply(deployment("web", 2, Some("10m"))).until(10);
    assert_eq!(cluster.running_and_pending(), (2, 0));
    let sets = cluster.names(&REPLICA_SET);
    assert!(sets.len() == 2 && sets.contains(&taken), "{sets:?}");
    let status = cluster.engine.list(&DEPLOYMENT).next().expect("it is there").to_json()["status"].clone();
    assert_eq!((&status["collisionCount"], &status["readyReplicas"]), (&json!(1), &json!(2)));
}

//! What becomes of dependents when their owner goes.

use serde_json::json;
use sk_engine::Timing;
use sk_engine::api::Propagation;
use sk_engine::kinds::{DEPLOYMENT, NAMESPACE, POD, REPLICA_SET};

use crate::harness::{Cluster, deployment, group};

fn with_deployment(timing: Timing) -> Cluster {
    let mut cluster = Cluster::new(vec![group("big", "64", 1, 1)], timing);
    cluster.until(1).apply(deployment("web", 3, Some("10m")));
    cluster.until(60);
    assert_eq!(cluster.running_and_pending(), (3, 0));
    cluster
}

#[test]
fn in_the_background_the_owner_goes_first_and_all_follow() {
    for timing in [Timing::ideal(), Timing::real_like()] {
        let mut cluster = with_deployment(timing);
        cluster.delete("apps/v1.Deployment", "web", Propagation::Background);
        assert_eq!((cluster.engine.list(&DEPLOYMENT).count(), cluster.engine.list(&POD).count()), (0, 3));
        cluster.until(70);
        assert_eq!((cluster.engine.list(&REPLICA_SET).count(), cluster.engine.list(&POD).count()), (0, 0));
    }
}

#[test]
fn in_the_foreground_the_owner_goes_last() {
    let mut cluster = with_deployment(Timing::real_like());
    cluster.delete("apps/v1.Deployment", "web", Propagation::Foreground);
    assert_eq!(cluster.engine.list(&DEPLOYMENT).count(), 1);
    cluster.until(70);
    assert_eq!(cluster.engine.list(&DEPLOYMENT).count(), 0);
    let history = cluster.history();
    let gone = |kind: &str| history.rfind(&format!("Deleted {{\"apiVersion\":{kind}")).unwrap();
    let (pod, set) = (gone("\"v1\",\"kind\":\"Pod\""), gone("\"apps/v1\",\"kind\":\"ReplicaSet\""));
    assert!(pod < set && set < gone("\"apps/v1\",\"kind\":\"Deployment\""));
}

#[test]
fn orphans_stay_and_forget_their_owner() {
    let mut cluster = with_deployment(Timing::real_like());
    cluster.delete("apps/v1.Deployment", "web", Propagation::Orphan);
    cluster.until(120);
    assert_eq!(cluster.engine.list(&DEPLOYMENT).count(), 0);
    let set = cluster.engine.list(&REPLICA_SET).next().expect("the replica set stays");
    assert!(set.meta.owners.is_empty());
    assert_eq!(cluster.running_and_pending(), (3, 0));
}

#[test]
fn a_namespace_goes_when_it_is_empty() {
    let mut cluster = with_deployment(Timing::real_like());
    cluster.delete("v1.Namespace", "default", Propagation::Background);
    cluster.until(120);
    assert_eq!(cluster.engine.list(&POD).count(), 0);
    assert_eq!(cluster.names(&NAMESPACE), ["kube-node-lease", "kube-public", "kube-system"]);
}

#[test]
fn an_owner_that_waits_does_not_wait_for_what_another_owner_keeps() {
    let mut cluster = Cluster::ideal(1, 1);
    let gvk = "v1.ConfigMap".parse().expect("a kind");
    let owner = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}});
    cluster.until(1).apply(owner("first")).apply(owner("second"));
    let references: Vec<_> = cluster
        .engine
        .list(&gvk)
        .map(|owner| {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "name": owner.key.name, "uid": owner.uid.to_string(),
                "blockOwnerDeletion": true})
        })
        .collect();
    let mut shared = owner("shared");
    shared["metadata"]["ownerReferences"] = references.into();
    cluster.apply(shared);
    cluster.until(10).delete("v1.ConfigMap", "first", Propagation::Foreground);
    cluster.until(60);
    assert_eq!(cluster.names(&gvk), ["second", "shared"]);
    let shared =
        cluster.engine.list(&gvk).find(|object| object.key.name == "shared").expect("its second owner keeps it");
    let owners: Vec<_> = shared.meta.owners.iter().map(|owner| owner.name.as_str()).collect();
    assert_eq!(owners, ["second"]);
}

//! Stateful sets: pods with numbers, in order, with claims.

use serde_json::{Value, json};
use sk_core::{Gvk, SimTime};
use sk_engine::Timing;
use sk_engine::api::{AdmitPod, Object, Propagation};
use sk_engine::kinds::{POD, STATEFUL_SET};

use crate::harness::{Cluster, group};

static CLAIM: Gvk = Gvk::new_static("", "v1", "PersistentVolumeClaim");

fn stateful_set(replicas: i64, more: &Value) -> Value {
    let mut spec = json!({
        "replicas": replicas, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
        "template": {
            "metadata": {"labels": {"app": "db"}},
            "spec": {"containers": [{"name": "main", "image": "db:1", "resources": {"requests": {"cpu": "10m"}}}]},
        },
    });
    for (field, value) in more.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db", "namespace": "default"}, "spec": spec,
    })
}

/// Pods take ten seconds to start.
fn slow_cluster() -> Cluster {
    let mut cluster = Cluster::new(vec![group("big", "64", 2, 2)], Timing::real_like());
    cluster.engine.set_pod_hook(Box::new(TenSeconds));
    cluster
}

struct TenSeconds;

impl AdmitPod for TenSeconds {
    fn admit(&mut self, pod: &mut Object, _now: SimTime) {
        pod.meta.annotations.make_mut().insert("simkube.io/kwok-stage-ready-delay".into(), "10000ms".into());
    }

    fn fork(&self) -> Box<dyn AdmitPod> {
        Box::new(Self)
    }
}

fn status(cluster: &Cluster, field: &str) -> Value {
    let set = cluster.engine.list(&STATEFUL_SET).next().expect("the set is there");
    set.to_json()["status"][field].clone()
}

#[test]
fn pods_come_one_after_the_other_and_go_from_the_last() {
    let mut cluster = slow_cluster();
    cluster.until(1).apply(stateful_set(3, &json!({})));
    let at = |cluster: &mut Cluster, secs| cluster.until(secs).names(&POD);
    assert_eq!(at(&mut cluster, 5), ["db-0"]);
    assert_eq!(at(&mut cluster, 15), ["db-0", "db-1"]);
    assert_eq!(at(&mut cluster, 40), ["db-0", "db-1", "db-2"]);
    assert_eq!(status(&cluster, "availableReplicas"), 3);
    cluster.apply(stateful_set(1, &json!({})));
    assert_eq!(at(&mut cluster, 60), ["db-0"]);
    assert_eq!((status(&cluster, "replicas"), status(&cluster, "observedGeneration")), (json!(1), json!(2)));
}

#[test]
fn in_parallel_all_pods_come_at_once() {
    let mut cluster = slow_cluster();
    cluster.until(1).apply(stateful_set(12, &json!({"podManagementPolicy": "Parallel"})));
    cluster.until(3);
    assert_eq!(cluster.names(&POD).len(), 12);
}

#[test]
fn a_rollout_stops_at_its_partition_and_a_lost_pod_comes_back_with_the_old_template() {
    let mut cluster = slow_cluster();
    let image = |cluster: &Cluster, name: &str| {
        let pod = cluster.engine.list(&POD).find(|pod| pod.key.name == name).expect("the pod is there");
        pod.to_json()["spec"]["containers"][0]["image"].clone()
    };
    let partition = json!({"updateStrategy": {"rollingUpdate": {"partition": 1}}});
    let mut set = stateful_set(3, &partition);
    cluster.until(1).apply(set.clone());
    cluster.until(60);
    set["spec"]["template"]["spec"]["containers"][0]["image"] = json!("db:2");
    cluster.apply(set);
    cluster.until(120);
    let images = |cluster: &Cluster| ["db-0", "db-1", "db-2"].map(|name| image(cluster, name));
    assert_eq!(images(&cluster), ["db:1", "db:2", "db:2"]);
    cluster.delete("v1.Pod", "db-0", Propagation::Background);
    cluster.until(180);
    assert_eq!(images(&cluster), ["db:1", "db:2", "db:2"]);
    assert_eq!((status(&cluster, "currentReplicas"), status(&cluster, "updatedReplicas")), (json!(1), json!(2)));
}

#[test]
fn a_pod_that_ends_is_made_again_under_its_name() {
    let mut cluster = slow_cluster();
    let mut set = stateful_set(1, &json!({}));
    let annotations = json!({"static.simkube.io/lifetime": "60000000us"});
    set["spec"]["template"]["metadata"]["annotations"] = annotations;
    cluster.until(1).apply(set);
    cluster.until(60);
    let first = cluster.engine.list(&POD).next().unwrap().uid;
    cluster.until(100);
    assert_eq!(cluster.names(&POD), ["db-0"]);
    assert_ne!(cluster.engine.list(&POD).next().unwrap().uid, first);
}

#[test]
fn every_pod_has_a_claim_that_stays_unless_the_policy_says_otherwise() {
    let claims = |policy: Value| {
        let mut cluster = slow_cluster();
        let template = json!([{"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}]);
        let more = json!({"volumeClaimTemplates": template, "persistentVolumeClaimRetentionPolicy": policy});
        cluster.until(1).apply(stateful_set(2, &more));
        cluster.until(40);
        assert_eq!(cluster.names(&CLAIM), ["data-db-0", "data-db-1"]);
        let pod = cluster.engine.list(&POD).next().unwrap().to_json();
        assert_eq!(pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"], "data-db-0");
        cluster.apply(stateful_set(1, &more)).until(60);
        let shrunk = cluster.names(&CLAIM);
        cluster.delete("apps/v1.StatefulSet", "db", Propagation::Background).until(80);
        assert_eq!(cluster.names(&POD), Vec::<String>::new());
        (shrunk, cluster.names(&CLAIM))
    };
    let (both, first) = (["data-db-0", "data-db-1"].map(String::from).to_vec(), vec!["data-db-0".to_owned()]);
    assert_eq!(claims(json!({})), (both.clone(), both.clone()));
    assert_eq!(claims(json!({"whenScaled": "Delete"})), (first.clone(), first.clone()));
    assert_eq!(claims(json!({"whenDeleted": "Delete"})), (both, vec![]));
    assert_eq!(claims(json!({"whenScaled": "Delete", "whenDeleted": "Delete"})), (first, vec![]));
}

#[test]
fn more_pods_than_a_cluster_holds_are_asked_for_without_harm() {
    let mut cluster = slow_cluster();
    cluster.until(1).apply(stateful_set(i64::from(i32::MAX), &json!({})));
    cluster.until(30);
    assert_eq!(cluster.names(&POD), ["db-0", "db-1", "db-2"]);
}

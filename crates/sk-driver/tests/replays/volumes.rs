//! Claims of a run and what becomes of them, an object that is made again while it is still going, and a namespace that
//! somebody deletes.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, PersistentVolume, PersistentVolumeClaim, Pod};
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use sk_api::simulation::names;
use sk_testkit::control_plane::{ControlPlane, eventually};
use sk_testkit::objects;

use crate::support::*;

/// When the held object is deleted and made again.
const AGAIN_AT: u32 = 2;
/// More objects than there are workers, so that one of them shares the worker of the one that waits.
const OTHERS: u32 = 40;
const FINALIZER: &str = "test.example.com/hold";

fn claim_spec(class: &str) -> Value {
    json!({
        "storageClassName": class, "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
    })
}

fn config_map(namespace: &str, name: &str, data: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": {"a": data},
    })
}

/// A StatefulSet with a claim for each pod, a pod that brings its own claim, one that uses a claim of the trace, and things
/// that come, go and come again.
fn story() -> Story {
    let mut set = value(&objects::stateful_set().name("db").namespace("shop").replicas(2));
    set["spec"]["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"}, "spec": claim_spec("gold")}]);
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "shared", "namespace": "shop"},
        "spec": claim_spec("gold"),
    });
    let mut brings = value(&objects::pod().name("brings").namespace("shop"));
    brings["spec"]["volumes"] =
        json!([{"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": claim_spec("gold")}}}]);
    let mut uses = value(&objects::pod().name("uses").namespace("shop"));
    uses["spec"]["volumes"] = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "shared"}}]);
    let mut story = Story::of_secs(3600);
    for object in [&set, &claim, &brings, &uses, &config_map("shop", "held", "1"), &config_map("depot", "c", "1")] {
        story = story.apply(0, object);
    }
    story = story.delete(AGAIN_AT, &config_map("shop", "held", "1"));
    story = story.apply(AGAIN_AT, &config_map("shop", "held", "2"));
    (0..OTHERS).fold(story, |story, n| story.apply(AGAIN_AT + 1, &config_map("shop", &format!("other-{n}"), "1")))
}

/// A class whose provisioner orders nothing, because there is none; and a volume of somebody's that is free to take.
async fn somebodys_storage(cluster: &ControlPlane) {
    let class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "disks.example.com",
        "metadata": {"name": "gold", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    });
    let volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "somebodys"},
        "spec": {
            "capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/somebodys"},
            "persistentVolumeReclaimPolicy": "Retain",
        },
    });
    for object in [class, volume] {
        cluster.create(&objects::object(object)).await.unwrap();
    }
}

pub(crate) async fn claims_reach_no_provisioner_and_what_is_going_is_waited_for(cluster: &ControlPlane) {
    somebodys_storage(cluster).await;
    let client = cluster.client();
    whoever_makes_it_holds_it(cluster).await;
    let before = everything(cluster).await;
    let play = Play::new("volumes", 1.0, &story());
    let look = async {
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "virtual-shop");
        eventually("the object that is held", LIMIT, || maps.get_opt("held")).await.unwrap();
        somebody_deletes_a_namespace(&client).await;
        an_operator_claims(&client).await;
        pods_run(&client).await;
        claims_are_bound_to_the_runs_volumes(&client).await;
        // What shares its worker goes on while it waits.
        for name in (0..OTHERS).map(|n| format!("other-{n}")) {
            eventually(&format!("{name} to be made meanwhile"), LIMIT, || maps.get_opt(&name)).await.unwrap();
        }
        let held = maps.get("held").await.unwrap();
        assert!(held.metadata.deletion_timestamp.is_some(), "it was deleted and is held: {held:?}");
        let let_go = Patch::Merge(json!({"metadata": {"finalizers": []}}));
        maps.patch("held", &PatchParams::default(), &let_go).await.unwrap();
        eventually("it to be made again", LIMIT, || async {
            Ok(maps.get_opt("held").await?.filter(|map| {
                map.metadata.deletion_timestamp.is_none() && map.data.as_ref().is_some_and(|data| data["a"] == "2")
            }))
        })
        .await
        .unwrap();
        play.stop.ask("seen enough");
    };
    let (outcome, ()) = tokio::join!(play.run(client.clone()), look);
    let outcome = outcome.unwrap();
    let run = play.record();
    let warnings = &run.meta().warnings;
    assert_eq!(outcome.totals.refused, 0, "{warnings:?}");
    // Two of the StatefulSet, the pod's own, the trace's, the operator's two.
    assert_eq!((outcome.totals.volumes, outcome.totals.namespaces_lost), (6, 1), "{warnings:?}");
    let lost = warnings.iter().find(|warning| warning.code == "namespace-lost").expect("it is said");
    assert!(lost.message.contains("depot"), "{}", lost.message);
    assert_eq!(difference_outside_shop(cluster, &before).await, Vec::<String>::new());
    let volumes: Api<PersistentVolume> = Api::all(client.clone());
    let taken_by = volumes.get("somebodys").await.unwrap().spec.and_then(|spec| spec.claim_ref);
    let namespace = taken_by.and_then(|claim| claim.namespace).unwrap_or_default();
    assert!(!namespace.starts_with("virtual-"), "the run took it");
}

/// A policy that puts a finalizer on the object to be held in the moment in which it is made, so that it is held whenever it
/// is deleted. It is in effect a moment after it was made.
async fn whoever_makes_it_holds_it(cluster: &ControlPlane) {
    let first = "object.metadata.name == 'held' && object.data.a == '1'";
    let patch = format!("[JSONPatch{{op: 'add', path: '/metadata/finalizers', value: ['{FINALIZER}']}}]");
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy", "metadata": {"name": "hold"},
        "spec": {
            "reinvocationPolicy": "Never", "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"],
            }]},
            "matchConditions": [{"name": "first", "expression": first}],
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": "hold"}, "spec": {"policyName": "hold"},
    });
    for object in [policy, binding] {
        cluster.create(&objects::object(object)).await.unwrap();
    }
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client(), "default");
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let held = serde_json::from_value(config_map("default", "held", "1")).unwrap();
    eventually("the policy to be in effect", LIMIT, || async {
        Ok(maps.create(&dry, &held).await?.metadata.finalizers.is_some().then_some(()))
    })
    .await
    .unwrap();
}

async fn somebody_deletes_a_namespace(client: &Client) {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "virtual-depot");
    eventually("what is in the namespace", LIMIT, || maps.get_opt("c")).await.unwrap();
    namespaces.delete("virtual-depot", &DeleteParams::default()).await.unwrap();
}

/// Whoever makes claims in a namespace of the run by itself knows nothing of the run, and may hand its labels down.
async fn an_operator_claims(client: &Client) {
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), "virtual-shop");
    let run = json!({names::SIMULATION_LABEL: "volumes", names::VIRTUAL_LABEL: "true"});
    for (name, labels) in [("operators", json!({})), ("labelled", run)] {
        let claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "labels": labels},
            "spec": claim_spec("gold"),
        });
        let claim = serde_json::from_value(claim).unwrap();
        let made = claims.create(&PostParams::default(), &claim).await.unwrap();
        assert_eq!(made.spec.unwrap().storage_class_name.as_deref(), Some(""), "the webhook saw to {name}");
    }
}

async fn pods_run(client: &Client) {
    let pods: Api<Pod> = Api::namespaced(client.clone(), "virtual-shop");
    for name in ["db-0", "db-1", "brings", "uses"] {
        eventually(&format!("{name} to run"), LIMIT, || async {
            let pod = pods.get_opt(name).await?;
            let phase = pod.and_then(|pod| pod.status).and_then(|status| status.phase);
            Ok((phase.as_deref() == Some("Running")).then_some(()))
        })
        .await
        .unwrap();
    }
}

async fn claims_are_bound_to_the_runs_volumes(client: &Client) {
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), "virtual-shop");
    for name in ["data-db-0", "data-db-1", "brings-own", "shared", "operators", "labelled"] {
        let spec = eventually(&format!("the claim {name} to be bound"), LIMIT, || async {
            let spec = claims.get(name).await?.spec.unwrap_or_default();
            Ok(spec.volume_name.is_some().then_some(spec))
        })
        .await
        .unwrap();
        assert_eq!(spec.storage_class_name.as_deref(), Some(""), "{name}");
        assert!(spec.volume_name.unwrap().starts_with("sk-volumes-"), "{name} took somebody's volume");
    }
    let all = claims.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(all.len(), 6, "{all:?}");
}

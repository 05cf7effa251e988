//! Volumes of a run: every PersistentVolumeClaim gets a volume without storage, and none reaches a provisioner.
//!
//! A recorded claim names a StorageClass. A cluster that has that class would provision a disk, which costs money. So
//! each claim of a run (a claim, a StatefulSet's volumeClaimTemplates, a pod's ephemeral volumes) gets an empty class,
//! which is never provisioned, and a selector for the run's label, so that it does not take somebody else's volume. The
//! driver then creates a PersistentVolume for each claim; virtual pods mount nothing, so its path is never used. The
//! driver's webhook changes claims that an operator creates; for those the webhook must answer. For a claim of the run
//! it changes nothing.

use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::{Map, Value, json};
use sk_api::simulation::names;
use sk_core::{Gvk, ObjectKey, ObjectRef};

use super::context::Context;
use super::request::{Refusal, whole_story, with_retries};
use super::virtualise::{Virtualiser, map_at, owner};

/// What a claim says that only its recorded cluster understands, or that would fill it with somebody's data.
const OF_ANOTHER_CLUSTER: [&str; 4] = ["dataSource", "dataSourceRef", "volumeAttributesClassName", "volumeName"];
/// Annotations that stand for a class, or tell a provisioner that the claim is its own.
const CLASS_ANNOTATIONS: [&str; 4] = [
    "volume.beta.kubernetes.io/storage-class",
    "volume.beta.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/selected-node",
    "volume.kubernetes.io/storage-provisioner",
];
/// Where a volume of a run would be on a node, if a node ever looked.
const NOWHERE: &str = "/var/lib/simkube/no-such-volume";

/// Makes a claim, or the template of one, the run's: no class, no provisioner, no volume but the run's own.
pub(crate) fn virtualise_claim(simulation: &str, claim: &mut Map<String, Value>) {
    let metadata = map_at(claim, "metadata");
    let labels = map_at(metadata, "labels");
    labels.insert(names::SIMULATION_LABEL.into(), simulation.into());
    labels.insert(names::VIRTUAL_LABEL.into(), "true".into());
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        CLASS_ANNOTATIONS.iter().for_each(|name| drop(annotations.remove(*name)));
    }
    let spec = map_at(claim, "spec");
    OF_ANOTHER_CLUSTER.iter().for_each(|field| drop(spec.remove(*field)));
    spec.insert("storageClassName".into(), "".into());
    spec.insert("selector".into(), json!({"matchLabels": {names::SIMULATION_LABEL: simulation}}));
}

/// Virtualises the claims that the pods of a template bring along.
pub(crate) fn virtualise_ephemeral(simulation: &str, pod_spec: &mut Map<String, Value>) {
    let volumes = pod_spec.get_mut("volumes").and_then(Value::as_array_mut).into_iter().flatten();
    for volume in volumes {
        let claim = volume.pointer_mut("/ephemeral/volumeClaimTemplate").and_then(Value::as_object_mut);
        claim.into_iter().for_each(|claim| virtualise_claim(simulation, claim));
    }
}

/// Virtualises the claim templates of a StatefulSet.
pub(crate) fn virtualise_templates(simulation: &str, set: &mut Map<String, Value>) {
    let templates = set.get_mut("spec").and_then(|spec| spec.get_mut("volumeClaimTemplates"));
    let templates = templates.and_then(Value::as_array_mut).into_iter().flatten();
    templates.filter_map(Value::as_object_mut).for_each(|claim| virtualise_claim(simulation, claim));
}

/// The JSON patch that makes a new claim the run's.
pub(crate) fn claim_patch(simulation: &str, claim: &Value) -> Value {
    let mut virtualised = claim.as_object().cloned().unwrap_or_default();
    virtualise_claim(simulation, &mut virtualised);
    let part = |pointer: &str| {
        let value = pointer
            .split('/')
            .skip(1)
            .try_fold(&Value::Object(virtualised.clone()), |value, name| value.get(name))
            .cloned();
        value.map(|value| json!({"op": "add", "path": pointer, "value": value}))
    };
    ["/metadata/labels", "/metadata/annotations", "/spec"].into_iter().filter_map(part).collect()
}

/// Makes a volume for each claim of the run, and removes it with its claim, until it is dropped. What is missed while a
/// watch is interrupted goes with the root.
pub(crate) async fn provide(context: Arc<Context>) {
    let claims: Api<PersistentVolumeClaim> = Api::all(context.client.clone());
    let ours = format!("{}={}", names::SIMULATION_LABEL, context.virtualiser.simulation);
    let mut events = watcher(claims, watcher::Config::default().labels(&ours)).default_backoff().boxed();
    while let Some(event) = events.next().await {
        let done = match &event {
            Ok(watcher::Event::InitApply(claim) | watcher::Event::Apply(claim)) => make(&context, claim).await,
            Ok(watcher::Event::Delete(claim)) => remove(&context, claim).await,
            Ok(watcher::Event::Init | watcher::Event::InitDone) => Ok(()),
            Err(error) => {
                context.retry.note_watch(error);
                tracing::warn!(
                    kind = "PersistentVolumeClaim",
                    "the watch was interrupted and starts again: {}",
                    whole_story(error)
                );
                continue;
            }
        };
        if let (Err(refusal), Ok(watcher::Event::InitApply(claim) | watcher::Event::Apply(claim))) = (done, &event) {
            context.refused(&volume_ref(&context.virtualiser, claim), &refusal);
        }
    }
}

async fn make(context: &Context, claim: &PersistentVolumeClaim) -> Result<(), Refusal> {
    let is_bound = claim.spec.as_ref().is_some_and(|spec| spec.volume_name.is_some());
    if is_bound || claim.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    let Some(volume) = volume(&context.virtualiser, claim) else { return Ok(()) };
    let volume: PersistentVolume =
        serde_json::from_value(volume).map_err(|error| Refusal::Malformed(error.to_string()))?;
    let api: Api<PersistentVolume> = Api::all(context.client.clone());
    let parameters = PostParams { field_manager: Some(names::REPLAY_MANAGER.to_owned()), ..PostParams::default() };
    match with_retries(&context.retry, || api.create(&parameters, &volume)).await {
        Ok(_) => context.counters.count(|totals| totals.volumes += 1),
        // The claim was seen before; its uid is in the name, so it is this claim's.
        Err(refusal) if refusal.is_already_there() => {}
        Err(refusal) => return Err(refusal),
    }
    Ok(())
}

async fn remove(context: &Context, claim: &PersistentVolumeClaim) -> Result<(), Refusal> {
    let api: Api<PersistentVolume> = Api::all(context.client.clone());
    let (name, parameters) = (volume_name(&context.virtualiser, claim), DeleteParams::background());
    match with_retries(&context.retry, || api.delete(&name, &parameters)).await {
        Err(refusal) if !refusal.is_not_found() => {
            tracing::warn!(kind = "PersistentVolume", name, "not removed before the end of the run: {refusal}");
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The volume for a claim; `None` if the claim is not in a namespace of the run.
fn volume(virtualiser: &Virtualiser, claim: &PersistentVolumeClaim) -> Option<Value> {
    let namespace = claim.namespace()?;
    virtualiser.original_namespace(&namespace)?;
    let spec = claim.spec.as_ref()?;
    let requests = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    let size = requests.and_then(|requests| requests.get("storage")).map_or("1", |size| size.0.as_str());
    Some(json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {
            "name": volume_name(virtualiser, claim),
            "labels": {names::SIMULATION_LABEL: virtualiser.simulation, names::VIRTUAL_LABEL: "true"},
            "ownerReferences": [owner(&virtualiser.root)],
        },
        "spec": {
            "capacity": {"storage": size}, "accessModes": spec.access_modes, "volumeMode": spec.volume_mode,
            "storageClassName": "", "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": NOWHERE},
            "claimRef": {
                "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "namespace": namespace, "name": claim.name_any(), "uid": claim.uid(),
            },
        },
    }))
}

/// A claim that was deleted and made again is another one, with another volume.
fn volume_name(virtualiser: &Virtualiser, claim: &PersistentVolumeClaim) -> String {
    format!("sk-{}-{}", virtualiser.simulation, claim.uid().unwrap_or_default())
}

fn volume_ref(virtualiser: &Virtualiser, claim: &PersistentVolumeClaim) -> ObjectRef {
    ObjectRef::new(Gvk::new_static("", "v1", "PersistentVolume"), ObjectKey::cluster(volume_name(virtualiser, claim)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded() -> Value {
        json!({
            "metadata": {
                "name": "data", "labels": {"app": "db"},
                "annotations": {
                    "team": "a", "volume.beta.kubernetes.io/storage-class": "gold",
                    "volume.kubernetes.io/storage-provisioner": "ebs.csi.aws.com",
                },
            },
            "spec": {
                "storageClassName": "gold", "volumeName": "pvc-1", "volumeAttributesClassName": "fast",
                "dataSource": {"kind": "VolumeSnapshot", "name": "x"}, "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "10Gi"}},
            },
        })
    }

    #[test]
    fn a_claim_asks_for_no_class_and_takes_nobodys_volume() {
        let patch = claim_patch("s", &recorded());
        let labels = json!({"app": "db", names::SIMULATION_LABEL: "s", names::VIRTUAL_LABEL: "true"});
        let spec = json!({
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}, "storageClassName": "",
            "selector": {"matchLabels": {names::SIMULATION_LABEL: "s"}},
        });
        let wanted = json!([
            {"op": "add", "path": "/metadata/labels", "value": labels},
            {"op": "add", "path": "/metadata/annotations", "value": {"team": "a"}},
            {"op": "add", "path": "/spec", "value": spec},
        ]);
        assert_eq!(patch, wanted);
        let mut virtualised = recorded();
        virtualise_claim("s", virtualised.as_object_mut().unwrap());
        for operation in claim_patch("s", &virtualised).as_array().unwrap() {
            let pointer = operation["path"].as_str().unwrap();
            assert_eq!(virtualised.pointer(pointer), Some(&operation["value"]), "virtualised once is virtualised");
        }
        assert!(claim_patch("s", &json!(null)).as_array().is_some_and(|operations| operations.len() == 2));
    }

    #[test]
    fn claims_are_found_wherever_a_workload_writes_them() {
        let mut pod = json!({"volumes": [
            {"name": "a", "emptyDir": {}}, {"name": "b", "ephemeral": {"volumeClaimTemplate": recorded()}},
        ]});
        virtualise_ephemeral("s", pod.as_object_mut().unwrap());
        assert_eq!(pod["volumes"][1]["ephemeral"]["volumeClaimTemplate"]["spec"]["storageClassName"], "");
        let mut set = json!({"spec": {"volumeClaimTemplates": [recorded()]}});
        virtualise_templates("s", set.as_object_mut().unwrap());
        assert_eq!(set["spec"]["volumeClaimTemplates"][0]["spec"]["storageClassName"], "");
        for nothing in [json!({}), json!({"volumes": null, "spec": {"volumeClaimTemplates": 7}})] {
            let mut fields = nothing.as_object().unwrap().clone();
            virtualise_ephemeral("s", &mut fields);
            virtualise_templates("s", &mut fields);
            assert_eq!(Value::Object(fields), nothing);
        }
    }

    #[test]
    fn a_volume_is_made_for_its_claim_only_and_goes_with_the_root() {
        let claim = |namespace: &str| -> PersistentVolumeClaim {
            let mut claim = recorded();
            claim["metadata"]["namespace"] = namespace.into();
            claim["metadata"]["uid"] = "c-1".into();
            serde_json::from_value(claim).unwrap()
        };
        let volume = volume(&Virtualiser::example(), &claim("virtual-shop")).unwrap();
        assert_eq!(volume["metadata"]["name"], "sk-s-c-1");
        assert_eq!(volume["metadata"]["ownerReferences"][0]["uid"], "u");
        assert_eq!(volume["spec"]["capacity"]["storage"], "10Gi");
        assert_eq!(volume["spec"]["claimRef"]["uid"], "c-1");
        assert_eq!(super::volume(&Virtualiser::example(), &claim("shop")), None, "somebody else's claim");
    }
}

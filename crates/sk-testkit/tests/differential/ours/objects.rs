//! The objects beside nodes and pods, in our scheduler's terms.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sk_core::{LabelSelector, SmolStr};
use sk_scheduler::PodClass;
use sk_scheduler::class::OwnerKind;
use sk_scheduler::cluster::objects::{Budget, StorageClass, Volume, VolumeClaim};
use sk_scheduler::queue::Event;

use super::Ours;

impl Ours {
    /// An object that is neither node nor pod comes, or is another than before.
    pub(super) fn create(&mut self, object: &Value) -> Result<(), String> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let (namespace, name) =
            (text("/metadata/namespace").unwrap_or("default"), text("/metadata/name").unwrap_or_default());
        let key = (SmolStr::from(namespace), SmolStr::from(name));
        let objects = &mut self.scheduler.cluster.objects;
        let selector = |of: &Value| LabelSelector::from_json(of).map_err(|error| error.to_string());
        let labels_of_map = |of: &Value| LabelSelector::from_match_labels(of).map_err(|error| error.to_string());
        let mut event = None;
        match text("/kind").unwrap_or_default() {
            "Namespace" => objects.set_namespace(name, Some(texts(&object["metadata"]["labels"]))),
            "Service" => objects.set_service(namespace, name, Some(labels_of_map(&object["spec"]["selector"])?)),
            "ReplicationController" => {
                let selected = labels_of_map(&object["spec"]["selector"])?;
                objects.set_owner(OwnerKind::ReplicationController, namespace, name, Some(selected));
            }
            "ReplicaSet" => {
                objects.set_owner(OwnerKind::ReplicaSet, namespace, name, Some(selector(&object["spec"]["selector"])?));
            }
            "StatefulSet" => {
                objects.set_owner(
                    OwnerKind::StatefulSet,
                    namespace,
                    name,
                    Some(selector(&object["spec"]["selector"])?),
                );
            }
            "PodDisruptionBudget" => objects.set_budget(key, Some(budget(object)?)),
            "PersistentVolumeClaim" => {
                objects.set_claim(key, Some(claim(object)));
                event = Some(Event::Claim { namespace: namespace.into(), name: name.into() });
            }
            "PersistentVolume" => {
                let volume = volume(object)?;
                objects.set_volume(name, Some(volume.clone()));
                event = Some(Event::Volume { before: None, after: Box::new(volume) });
            }
            "StorageClass" => {
                let class = storage_class(object);
                objects.set_storage_class(name, Some(class.clone()));
                event = Some(Event::StorageClass { before: None, after: Box::new(class) });
            }
            // Admission looks at these; the scheduler does not.
            "PriorityClass" | "RuntimeClass" => {}
            kind => return Err(format!("nobody has said what {kind} means to a scheduler")),
        }
        self.objects.push(object.clone());
        event.into_iter().for_each(|event| self.happened(&event));
        Ok(())
    }
}

fn texts(map: &Value) -> BTreeMap<SmolStr, SmolStr> {
    let entries = map.as_object().into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.into(), value.as_str()?.into()))).collect()
}

fn budget(object: &Value) -> Result<Budget, String> {
    let disrupted = object["status"]["disruptedPods"].as_object().into_iter().flatten();
    Ok(Budget {
        selector: LabelSelector::from_json(&object["spec"]["selector"]).map_err(|error| error.to_string())?,
        allowed: object["status"]["disruptionsAllowed"].as_i64().unwrap_or(0) as i32,
        disrupted: disrupted.map(|(name, _)| name.into()).collect(),
    })
}

fn claim(object: &Value) -> VolumeClaim {
    let annotation = |key: &str| object["metadata"]["annotations"][key].as_str().map(SmolStr::from);
    VolumeClaim {
        volume: object["spec"]["volumeName"].as_str().map(SmolStr::from),
        bound: annotation("pv.kubernetes.io/bind-completed").is_some(),
        storage_class: object["spec"]["storageClassName"].as_str().map(SmolStr::from),
        selected_node: annotation("volume.kubernetes.io/selected-node"),
        lost: false,
        deleting: false,
    }
}

/// A volume's node affinity has the form of a pod's, so a pod that has it is asked what it means.
fn volume(object: &Value) -> Result<Volume, String> {
    let required = &object["spec"]["nodeAffinity"]["required"];
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}});
    let pod = json!({"metadata": {}, "spec": {"containers": [], "affinity": affinity}});
    let class = PodClass::from_pod(&pod).map_err(|error| error.to_string())?;
    let node_affinity = required.is_object().then(|| class.shape.required_affinity.clone()).flatten();
    Ok(Volume { labels: texts(&object["metadata"]["labels"]), node_affinity })
}

fn storage_class(object: &Value) -> StorageClass {
    StorageClass {
        waits_for_consumer: object["volumeBindingMode"] == "WaitForFirstConsumer",
        no_provisioner: object["provisioner"] == "kubernetes.io/no-provisioner",
        allowed: Vec::new(),
    }
}

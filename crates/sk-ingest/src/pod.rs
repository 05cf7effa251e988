//! The fields that are read from a pod: its state on every event, and its admitted spec once, when it is new.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Value, json};
use sk_core::resources::{Amounts, pod_requests};
use sk_core::{PodLifecycle, Quantity, SimTime, SmolStr, StableHash};
use sk_store::trace::Wait;

use crate::privacy::PrivacyKey;
use crate::scheduler_message;
use crate::sighting::PodLook;
use crate::tape::Node;

/// How the pod is doing. Free text is hidden if there is a key.
pub(crate) fn look(pod: Node<'_, '_>, meta: Node<'_, '_>, raw: &[u8], key: Option<&PrivacyKey>) -> PodLook {
    let condition = scheduled_condition(pod);
    let (scheduled, wait) = condition.map_or((None, None), |condition| match condition.text_at("status") {
        Some("True") => (time_at(condition, "lastTransitionTime"), None),
        Some("False") => (None, Some(wait(condition, key))),
        _ => (None, None),
    });
    let outline = outline(pod, meta);
    PodLook {
        created: time_at(meta, "creationTimestamp"),
        deleting: time_at(meta, "deletionTimestamp"),
        node: pod.get("spec").and_then(|spec| spec.text_at("nodeName")).map(SmolStr::from),
        scheduled,
        wait,
        life: PodLifecycle::of_pod(&outline),
        exit_code: PodLifecycle::failure_of_pod(&outline),
        raw: Bytes::copy_from_slice(raw),
    }
}

fn scheduled_condition<'t, 'a>(pod: Node<'t, 'a>) -> Option<Node<'t, 'a>> {
    let conditions = pod.get("status")?.get("conditions")?;
    conditions.elements().find(|condition| condition.text_at("type") == Some("PodScheduled"))
}

fn wait(condition: Node<'_, '_>, key: Option<&PrivacyKey>) -> Wait {
    Wait {
        at: time_at(condition, "lastTransitionTime").unwrap_or(SimTime::EPOCH),
        reason: scheduler_message::reason(condition.text_at("reason").unwrap_or_default(), key).into(),
        message: scheduler_message::message(condition.text_at("message").unwrap_or_default(), key),
    }
}

fn time_at(node: Node<'_, '_>, key: &str) -> Option<SimTime> {
    SimTime::parse_rfc3339(node.text_at(key)?).ok()
}

/// As much of a pod as its life is read from; a tree of the whole would cost ten times as much.
fn outline(pod: Node<'_, '_>, meta: Node<'_, '_>) -> Value {
    let (spec, status) = (pod.get("spec"), pod.get("status"));
    let each = |parent: Option<Node<'_, '_>>, list: &str, keys: &[&str]| -> Value {
        let list = parent.and_then(|parent| parent.get(list));
        list.into_iter().flat_map(Node::elements).map(|entry| entry.only(keys)).collect()
    };
    let (of_spec, of_status) = (["name", "restartPolicy"], ["name", "state", "lastState"]);
    json!({
        "metadata": {"deletionTimestamp": meta.text_at("deletionTimestamp")},
        "spec": {
            "restartPolicy": spec.and_then(|spec| spec.text_at("restartPolicy")),
            "containers": each(spec, "containers", &of_spec),
            "initContainers": each(spec, "initContainers", &of_spec),
        },
        "status": {
            "phase": status.and_then(|status| status.text_at("phase")),
            "containerStatuses": each(status, "containerStatuses", &of_status),
            "initContainerStatuses": each(status, "initContainerStatuses", &of_status),
        },
    })
}

/// What networks write on each pod once it runs. No template says it, and pods of one template differ in it.
const WRITTEN_BY_NETWORKS: [&str; 6] = [
    "cni.projectcalico.org/containerID",
    "cni.projectcalico.org/podIP",
    "cni.projectcalico.org/podIPs",
    "k8s.ovn.org/pod-networks",
    "k8s.v1.cni.cncf.io/network-status",
    "k8s.v1.cni.cncf.io/networks-status",
];

/// What the volumes are called that bring a service account's token, in every pod by another name.
const TOKEN_VOLUME: &str = "kube-api-access";

/// As much of a pod's form as templates are compared with, without what tells pods of one template apart: for all of
/// them it is the same. The node is left out too; whoever reads it back knows it.
pub(crate) fn slim(form: &Value) -> Value {
    let mut annotations = form["metadata"]["annotations"].clone();
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.retain(|key, _| !WRITTEN_BY_NETWORKS.contains(&key.as_str()));
    }
    let mut spec = form["spec"].clone();
    if let Some(spec) = spec.as_object_mut() {
        spec.shift_remove("nodeName");
        drop_token_volume(spec.get_mut("volumes"));
        for list in ["containers", "initContainers"] {
            let containers = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
            containers.for_each(|container| drop_token_volume(container.get_mut("volumeMounts")));
        }
    }
    json!({"metadata": {"labels": form["metadata"]["labels"], "annotations": annotations}, "spec": spec})
}

fn drop_token_volume(list: Option<&mut Value>) {
    let is_token = |entry: &Value| entry["name"].as_str().is_some_and(|name| name.starts_with(TOKEN_VOLUME));
    if let Some(list) = list.and_then(Value::as_array_mut) {
        list.retain(|entry| !is_token(entry));
    }
}

/// What a pod was admitted as.
#[derive(Clone, Debug)]
pub(crate) struct Admitted {
    /// As v2 groups lives by it: of the spec, with everything private hidden unless the configuration keeps everything. The
    /// hash itself has no key, so that one of the bare spec would let anybody try out a short secret. Hidden texts bring the
    /// key in, and what an export holds of the template is hidden alike.
    pub(crate) pod_hash: StableHash,
    /// What it asks for, as the scheduler counts.
    pub(crate) requests: BTreeMap<SmolStr, String>,
    /// The pod as templates are compared with it.
    pub(crate) form: Value,
}

impl Admitted {
    /// `form` is the pod with everything private hidden; `open` says that nothing has to be.
    pub(crate) fn new(pod: Node<'_, '_>, form: &[u8], open: bool) -> Self {
        let spec = pod.get("spec").map_or(Value::Null, Node::to_value);
        let form: Value = serde_json::from_slice(form).unwrap_or_default();
        let hashed = if open { &spec } else { &form["spec"] };
        Self { pod_hash: StableHash::of_pod_spec(hashed), requests: requests(&spec), form }
    }
}

/// What the pod asks for, as Kubernetes writes it. Nothing of a resource is not a request.
fn requests(spec: &Value) -> BTreeMap<SmolStr, String> {
    let containers = |list: &str| spec[list].as_array().map_or(&[][..], Vec::as_slice).iter();
    let wanted = |container: &Value| amounts(&container["resources"]["requests"]);
    let total = pod_requests(
        containers("containers").map(wanted),
        containers("initContainers").map(|container| (wanted(container), container["restartPolicy"] == "Always")),
        &wanted(spec),
        &amounts(&spec["overhead"]),
    );
    let nonzero = total.into_iter().filter(|(_, amount)| !amount.is_zero());
    nonzero.map(|(name, amount)| (name, amount.to_string())).collect()
}

/// A `ResourceList`; what is not a quantity is left out.
fn amounts(list: &Value) -> Amounts {
    let read = |(name, amount): (&String, &Value)| {
        let amount: Quantity = serde::Deserialize::deserialize(amount).ok()?;
        Some((SmolStr::from(name.as_str()), amount))
    };
    list.as_object().into_iter().flatten().filter_map(read).collect()
}

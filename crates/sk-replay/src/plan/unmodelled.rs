//! What in a trace the embedded engine models differently or not at all. Said in every answer, never passed over in
//! silence. What makes no pods here and would on a cluster is more than that: [`super::missing`] counts it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use sk_core::{Gvk, ObjectRef};
use sk_store::trace::TracerConfig;

use super::templates;

/// One thing that is not modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Stable and short.
    pub code: &'static str,
    /// One sentence for a person.
    pub message: &'static str,
}

/// Kinds that change what others do on a real cluster and do not here.
const KINDS: [(&str, &str, Finding); 7] = [
    (
        "autoscaling",
        "HorizontalPodAutoscaler",
        Finding { code: "hpa", message: "HorizontalPodAutoscalers do nothing: replicas as recorded" },
    ),
    (
        "policy",
        "PodDisruptionBudget",
        Finding { code: "pdb", message: "PodDisruptionBudgets do not hold evictions back yet" },
    ),
    ("", "LimitRange", Finding { code: "limit-range", message: "LimitRanges set no defaults and no limits yet" }),
    ("", "ResourceQuota", Finding { code: "quota", message: "ResourceQuotas do not hold anything back yet" }),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration", WEBHOOKS),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", WEBHOOKS),
    ("", "Node", Finding { code: "node", message: "recorded nodes are not replayed: the scenario has its own" }),
];

/// Fields of a pod's spec that decide its placement on a real cluster and do not here.
const FIELDS: [(&str, Finding); 2] = [
    ("/resourceClaims", Finding { code: "dra", message: "dynamic resource claims are not modelled" }),
    ("/nodeName", Finding { code: "node-name", message: "templates that name a node are scheduled all the same" }),
];

const WEBHOOKS: Finding = Finding { code: "webhooks", message: "admission webhooks are not called" };
const CUSTOM: Finding =
    Finding { code: "custom-resource", message: "nothing acts on custom resources: their controllers are not there" };
const CLAIMS: Finding =
    Finding { code: "volumes", message: "volumes that bind pods to zones or nodes are not modelled yet" };

/// Objects by what of them is not modelled.
#[derive(Clone, Debug, Default)]
pub struct Unmodelled {
    objects: BTreeMap<Finding, BTreeSet<ObjectRef>>,
}

impl Unmodelled {
    /// Each finding and how many objects it concerns.
    pub fn findings(&self) -> impl Iterator<Item = (Finding, u64)> {
        self.objects.iter().map(|(finding, objects)| (*finding, objects.len() as u64))
    }

    pub(super) fn found(&mut self, finding: Finding, object: &ObjectRef) {
        self.objects.entry(finding).or_default().insert(object.clone());
    }
}

/// What of an object is not modelled; some of it perhaps more than once.
pub(super) fn findings(gvk: &Gvk, value: &Value, config: &TracerConfig) -> Vec<Finding> {
    let of_kind = |(group, kind, _): &&(&str, &str, Finding)| gvk.group == *group && gvk.kind == *kind;
    let mut found = Vec::new();
    if let Some((_, _, finding)) = KINDS.iter().find(of_kind) {
        found.push(*finding);
    } else if is_custom(gvk) {
        found.push(CUSTOM);
    }
    for pattern in templates::paths(gvk, config) {
        let templates = pattern.find(value);
        templates.filter_map(|(_, template)| template.get("spec")).for_each(|spec| look_at_pod(gvk, spec, &mut found));
    }
    found
}

fn look_at_pod(gvk: &Gvk, spec: &Value, found: &mut Vec<Finding>) {
    for (field, finding) in FIELDS {
        // A bare pod's node is where it was placed; the plan takes it off.
        let is_placement = field == "/nodeName" && gvk.kind == "Pod";
        if !is_placement && spec.pointer(field).is_some_and(matters) {
            found.push(finding);
        }
    }
    let claims = |volume: &Value| volume.get("persistentVolumeClaim").is_some() || volume.get("ephemeral").is_some();
    if spec.get("volumes").and_then(Value::as_array).is_some_and(|volumes| volumes.iter().any(claims)) {
        found.push(CLAIMS);
    }
}

/// Empty lists and `false` change nothing.
fn matters(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::String(text) => !text.is_empty(),
        Value::Number(number) => number.as_i64() != Some(0),
    }
}

/// Groups of Kubernetes itself have no dot, or end in `.k8s.io`.
fn is_custom(gvk: &Gvk) -> bool {
    gvk.group.contains('.') && !gvk.group.ends_with(".k8s.io")
}

//! What the embedded engine models differently or not at all. Every result says so. [`super::missing`] counts objects
//! that have pods on a cluster and none here, which is worse.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use sk_core::{Gvk, ObjectKey, ObjectRef, SmolStr};
use sk_engine::PassedThrough;
use sk_store::trace::TracerConfig;

/// One thing that is not modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Stable and short.
    pub code: &'static str,
    /// One sentence for a person.
    pub message: &'static str,
}

/// Kinds that change what others do on a real cluster and do not here.
const KINDS: [(&str, &str, Finding); 4] = [
    (
        "autoscaling",
        "HorizontalPodAutoscaler",
        Finding { code: "hpa", message: "HorizontalPodAutoscalers are not simulated: replicas as recorded" },
    ),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration", WEBHOOKS),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", WEBHOOKS),
    ("", "Node", Finding { code: "node", message: "recorded nodes are not replayed: the scenario has its own" }),
];

const WEBHOOKS: Finding = Finding { code: "webhooks", message: "admission webhooks are not called" };
const CUSTOM: Finding = Finding { code: "custom-resource", message: "custom resources have no controllers here" };
const CLAIMS: Finding = Finding {
    code: "volumes",
    message: "claims whose volumes are not in the trace: bound at once, or where their first pod goes, without delay",
};

/// Objects by what of them is not modelled.
#[derive(Clone, Debug, Default)]
pub struct Unmodelled {
    objects: BTreeMap<Finding, BTreeSet<ObjectRef>>,
    /// Which claims objects name; those whose volume is in the trace are no finding.
    claims: BTreeMap<ObjectRef, BTreeSet<SmolStr>>,
    /// The volume of each claim, and the volumes of the trace.
    bound: BTreeMap<ObjectKey, SmolStr>,
    volumes: BTreeSet<SmolStr>,
}

impl Finding {
    /// Does the scheduler say this of every pod? A run then has its word, which names them.
    pub fn is_of_pods(&self) -> bool {
        PassedThrough::ALL.iter().any(|need| need.code() == self.code)
    }
}

impl Unmodelled {
    /// Each finding and how many objects it concerns.
    pub fn findings(&self) -> impl Iterator<Item = (Finding, u64)> {
        let unknown = self.claims.iter().filter(|(object, claims)| !self.know_volumes_of(object, claims)).count();
        let objects = self.objects.iter().map(|(finding, objects)| (*finding, objects.len() as u64));
        objects.chain((unknown > 0).then_some((CLAIMS, unknown as u64)))
    }

    fn know_volumes_of(&self, object: &ObjectRef, claims: &BTreeSet<SmolStr>) -> bool {
        let namespace = object.key.namespace.clone().unwrap_or_default();
        claims.iter().all(|claim| {
            let volume = self.bound.get(&ObjectKey::namespaced(namespace.clone(), claim.clone()));
            volume.is_some_and(|volume| self.volumes.contains(volume))
        })
    }

    /// Claims and volumes that the trace has.
    fn look_at_storage(&mut self, object: &ObjectRef, value: &Value) {
        match (object.gvk.group.as_str(), object.gvk.kind.as_str()) {
            ("", "PersistentVolume") => drop(self.volumes.insert(object.key.name.clone())),
            ("", "PersistentVolumeClaim") => {
                if let Some(volume) = value.pointer("/spec/volumeName").and_then(Value::as_str) {
                    self.bound.insert(object.key.clone(), volume.into());
                }
            }
            _ => {}
        }
    }

    /// Is there anything in this object, or that it names, that is not modelled?
    pub(super) fn finds_in(object: &ObjectRef, value: &Value, config: &TracerConfig) -> bool {
        let mut found = Self::default();
        found.look_at(object, value, config);
        !found.objects.is_empty() || !found.claims.is_empty()
    }

    pub(super) fn look_at(&mut self, object: &ObjectRef, value: &Value, config: &TracerConfig) {
        let of_kind =
            |(group, kind, _): &&(&str, &str, Finding)| object.gvk.group == *group && object.gvk.kind == *kind;
        if let Some((_, _, finding)) = KINDS.iter().find(of_kind) {
            self.found(*finding, object);
        } else if is_custom(&object.gvk) {
            self.found(CUSTOM, object);
        }
        self.look_at_storage(object, value);
        for pattern in config.template_paths(&object.gvk) {
            for (_, template) in pattern.find(value) {
                if let Some(spec) = template.get("spec") {
                    self.look_at_pod(object, spec);
                }
            }
        }
    }

    fn look_at_pod(&mut self, object: &ObjectRef, spec: &Value) {
        let list = |value: &Value, name: &str| value.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
        for need in PassedThrough::of(spec) {
            self.found(Finding { code: need.code(), message: need.message() }, object);
        }
        let volumes = list(spec, "volumes");
        let claimed = |volume: &Value| {
            volume.pointer("/persistentVolumeClaim/claimName").and_then(Value::as_str).map(SmolStr::from)
        };
        let claims: Vec<SmolStr> = volumes.iter().filter_map(claimed).collect();
        if !claims.is_empty() {
            self.claims.entry(object.clone()).or_default().extend(claims);
        }
    }

    fn found(&mut self, finding: Finding, object: &ObjectRef) {
        self.objects.entry(finding).or_default().insert(object.clone());
    }
}

/// Groups of Kubernetes itself have no dot, or end in `.k8s.io`.
fn is_custom(gvk: &Gvk) -> bool {
    gvk.group.contains('.') && !gvk.group.ends_with(".k8s.io")
}

//! The type table: the fields of Kubernetes' kinds, their types, and how their lists merge.
//!
//! One table drives decoding (a string where a number belongs is refused with the server's message), normalisation
//! (what a Go struct changes between decoding and encoding) and strategic merge. It holds names and types as
//! Kubernetes 1.36 declares them; `defaults` and `validation` have the rest. Objects of a kind that is not in the
//! table stay as they came.

mod core;
mod decode;
mod meta;
mod others;
mod pod;
mod volume;
mod workloads;

use serde_json::Value;
use sk_core::Gvk;

#[cfg(feature = "rest")]
pub(crate) use decode::decode_part;
pub(crate) use decode::{decode, in_order, written};

use crate::Object;

/// The type of a field.
#[derive(Clone, Copy)]
pub(crate) enum Type {
    Bool,
    Int32,
    Int64,
    String,
    /// Base64.
    Bytes,
    Quantity,
    IntOrString,
    Time,
    /// Any JSON.
    Any,
    Struct(&'static Struct),
    List(&'static Type),
    Map(&'static Type),
}

/// A struct: its name in Go, and its fields in the order of declaration.
pub(crate) struct Struct {
    pub(crate) name: &'static str,
    pub(crate) fields: &'static [Field],
    /// Atomic for field managers (`x-kubernetes-map-type: atomic`).
    pub(crate) is_atomic: bool,
}

/// A field.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) of: Type,
    pub(crate) written: Written,
    pub(crate) merge: Merge,
    lists: Lists,
}

/// How field managers share a field (`x-kubernetes-list-type` and `x-kubernetes-map-type`).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lists {
    /// Lists as a strategic merge patch merges them, and otherwise whole; structs and maps field by field.
    Default,
    /// Item by item, by these keys.
    Keyed(&'static [&'static str]),
    /// Value by value.
    Set,
    /// As one.
    Atomic,
    /// Field by field, though its type is one field elsewhere.
    Granular,
}

/// When a field is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// Always; a list that is not there as `null`.
    Always,
    /// Always, as `null` if it is not there.
    Nullable,
    /// If it is not empty, not zero and not false.
    Omitted,
    /// If it is there, also if it is empty, zero or false.
    Pointer,
}

/// How a strategic merge patch treats a field.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Merge {
    /// Lists are replaced, structs merged field by field.
    Default,
    /// Lists are merged: structs by this key, plain values (no key) as a set.
    By(&'static str),
    /// Also structs are replaced.
    Replace,
    /// Fields that the patch does not name go.
    RetainKeys,
    /// Both.
    ByRetainingKeys(&'static str),
}

const fn field(name: &'static str, of: Type, written: Written) -> Field {
    Field { name, of, written, merge: Merge::Default, lists: Lists::Default }
}

const fn always(name: &'static str, of: Type) -> Field {
    field(name, of, Written::Always)
}

const fn nullable(name: &'static str, of: Type) -> Field {
    field(name, of, Written::Nullable)
}

const fn omitted(name: &'static str, of: Type) -> Field {
    field(name, of, Written::Omitted)
}

const fn pointer(name: &'static str, of: Type) -> Field {
    field(name, of, Written::Pointer)
}

impl Field {
    const fn merge(mut self, key: &'static str) -> Self {
        self.merge = Merge::By(key);
        self
    }

    const fn retain_keys(mut self) -> Self {
        self.merge = match self.merge {
            Merge::By(key) => Merge::ByRetainingKeys(key),
            Merge::Default | Merge::Replace | Merge::RetainKeys | Merge::ByRetainingKeys(_) => Merge::RetainKeys,
        };
        self
    }

    const fn replace(mut self) -> Self {
        self.merge = Merge::Replace;
        self
    }

    const fn keyed(mut self, keys: &'static [&'static str]) -> Self {
        self.lists = Lists::Keyed(keys);
        self
    }

    const fn set(mut self) -> Self {
        self.lists = Lists::Set;
        self
    }

    const fn atomic(mut self) -> Self {
        self.lists = Lists::Atomic;
        self
    }

    const fn granular(mut self) -> Self {
        self.lists = Lists::Granular;
        self
    }

    /// How field managers share it.
    pub(crate) fn lists(&'static self) -> Lists {
        let key = match &self.merge {
            Merge::By(key) | Merge::ByRetainingKeys(key) => Some(key),
            Merge::Default | Merge::Replace | Merge::RetainKeys => None,
        };
        match (self.lists, key) {
            (Lists::Default, Some(&"")) => Lists::Set,
            (Lists::Default, Some(key)) => Lists::Keyed(std::slice::from_ref(key)),
            (lists, _) => lists,
        }
    }
}

impl Struct {
    const fn new(name: &'static str, fields: &'static [Field]) -> Self {
        Self { name, fields, is_atomic: false }
    }

    const fn atomic(name: &'static str, fields: &'static [Field]) -> Self {
        Self { name, fields, is_atomic: true }
    }

    /// The field of this name.
    pub(crate) fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// A custom kind, of which only the metadata is known.
pub(crate) static CUSTOM: &Struct = &meta::CUSTOM;
/// What a custom kind is like.
pub(crate) static CUSTOM_RESOURCE_DEFINITION: &Struct = &others::CUSTOM_RESOURCE_DEFINITION;
/// What a binding says.
pub(crate) static BINDING: &Struct = &core::BINDING;
/// What an eviction says.
pub(crate) static EVICTION: &Struct = &workloads::EVICTION;
/// The size of a workload.
pub(crate) static SCALE: &Struct = &others::SCALE;
/// What a pod is to run.
pub(crate) static POD_SPEC: &Struct = &pod::POD_SPEC;
/// How to delete.
pub(crate) static DELETE_OPTIONS: &Struct = &meta::DELETE_OPTIONS;

/// An object as a server writes it: every field as its type says.
pub(crate) fn written_object(object: &Object) -> Value {
    let json = object.to_json();
    match find(&object.gvk) {
        Some(of) => written(&object.gvk, of, json.clone()).unwrap_or(json),
        None => json,
    }
}

/// The fields of a kind, if they are in the table. Other versions of a kind than the preferred one are not.
pub(crate) fn find(gvk: &Gvk) -> Option<&'static Struct> {
    let found = match (gvk.group.as_str(), gvk.version.as_str(), gvk.kind.as_str()) {
        ("", "v1", "Pod") => &core::POD,
        ("", "v1", "Node") => &core::NODE,
        ("", "v1", "Namespace") => &core::NAMESPACE,
        ("", "v1", "Service") => &core::SERVICE,
        ("", "v1", "PersistentVolumeClaim") => &core::PERSISTENT_VOLUME_CLAIM,
        ("", "v1", "PersistentVolume") => &core::PERSISTENT_VOLUME,
        ("", "v1", "ResourceQuota") => &core::RESOURCE_QUOTA,
        ("", "v1", "LimitRange") => &core::LIMIT_RANGE,
        ("", "v1", "ConfigMap") => &core::CONFIG_MAP,
        ("", "v1", "Secret") => &core::SECRET,
        ("", "v1", "ServiceAccount") => &core::SERVICE_ACCOUNT,
        ("", "v1", "ReplicationController") => &core::REPLICATION_CONTROLLER,
        ("", "v1", "PodTemplate") => &core::POD_TEMPLATE,
        ("apps", "v1", "Deployment") => &workloads::DEPLOYMENT,
        ("apps", "v1", "ReplicaSet") => &workloads::REPLICA_SET,
        ("apps", "v1", "StatefulSet") => &workloads::STATEFUL_SET,
        ("apps", "v1", "DaemonSet") => &workloads::DAEMON_SET,
        ("apps", "v1", "ControllerRevision") => &workloads::CONTROLLER_REVISION,
        ("batch", "v1", "Job") => &workloads::JOB,
        ("batch", "v1", "CronJob") => &workloads::CRON_JOB,
        ("policy", "v1", "PodDisruptionBudget") => &workloads::POD_DISRUPTION_BUDGET,
        ("autoscaling", "v2", "HorizontalPodAutoscaler") => &others::HORIZONTAL_POD_AUTOSCALER,
        ("scheduling.k8s.io", "v1", "PriorityClass") => &others::PRIORITY_CLASS,
        ("rbac.authorization.k8s.io", "v1", "ClusterRole") => &others::CLUSTER_ROLE,
        ("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration") => {
            &others::MUTATING_WEBHOOK_CONFIGURATION
        }
        _ => return None,
    };
    Some(found)
}

#[cfg(test)]
mod tests;

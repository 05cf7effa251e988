//! Which kinds count the changes of what is desired of them.
//!
//! A custom kind does; of Kubernetes' own kinds, those whose strategy says so (`pkg/registry/*/strategy.go`, 1.36).

use sk_core::{Gvk, registry};

/// Kinds of Kubernetes that have a generation.
const COUNTED: [&str; 22] = [
    "APIService",
    "CertificateSigningRequest",
    "CronJob",
    "CustomResourceDefinition",
    "DaemonSet",
    "Deployment",
    "FlowSchema",
    "Ingress",
    "IngressClass",
    "Job",
    "MutatingAdmissionPolicy",
    "MutatingWebhookConfiguration",
    "NetworkPolicy",
    "Pod",
    "PodDisruptionBudget",
    "PriorityClass",
    "PriorityLevelConfiguration",
    "ReplicaSet",
    "ReplicationController",
    "StatefulSet",
    "ValidatingAdmissionPolicy",
    "ValidatingWebhookConfiguration",
];

/// Has an object of this kind a generation?
pub(crate) fn is_counted(gvk: &Gvk) -> bool {
    COUNTED.contains(&gvk.kind.as_str()) || registry::find(gvk).is_none()
}

//! Which kinds count the changes of what is desired of them.
//!
//! A custom kind does; of Kubernetes' own kinds, those whose strategy says so (`pkg/registry/*/strategy.go`, 1.36).

use sk_core::{Gvk, SmolStr, registry};

use crate::Object;
use crate::kinds::Body;

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

/// The annotation by which a Deployment's controller numbers its templates.
const REVISION: SmolStr = SmolStr::new_static("deployment.kubernetes.io/revision");

/// Other annotations of a Deployment count as another desire (`deploymentStrategy.PrepareForUpdate`): they reach its
/// replica sets. What changes in its spec is counted apart.
pub(crate) fn count_annotations(wanted: &mut Object, stored: &Object) {
    let is_deployment = matches!(&wanted.body, Body::Deployment(_));
    if is_deployment && wanted.meta.annotations != stored.meta.annotations && wanted.body.same_desire(&stored.body) {
        wanted.meta.generation += i64::from(stored.meta.generation > 0);
    }
}

/// Who applies a Deployment leaves its revision to the controller that wrote it.
pub(crate) fn keep_revision(wanted: &mut Object, stored: &Object) {
    let Body::Deployment(_) = &wanted.body else { return };
    if let Some(revision) =
        stored.meta.annotations.get(&REVISION).filter(|kept| wanted.meta.annotations.get(&REVISION) != Some(*kept))
    {
        wanted.meta.annotations.make_mut().insert(REVISION, revision.clone());
    }
}

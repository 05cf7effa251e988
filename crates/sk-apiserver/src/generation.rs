//! Which kinds have a `metadata.generation` that rises when their spec changes.
//!
//! Every custom resource does; of the built-in kinds, those whose strategy says so (`pkg/registry/*/strategy.go`,
//! 1.36).

use sk_core::{SmolStr, registry};

use crate::kinds::{Body, KindTag};
use crate::object::{GvkRef, Object};

/// Kinds of Kubernetes without a typed body that have a generation.
const COUNTED: [&str; 19] = [
    "CustomResourceDefinition",
    "DeviceClass",
    "DeviceTaintRule",
    "EndpointSlice",
    "FlowSchema",
    "Ingress",
    "IngressClass",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration",
    "NetworkPolicy",
    "PodDisruptionBudget",
    "PodTemplate",
    "PriorityClass",
    "PriorityLevelConfiguration",
    "ResourceSlice",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
];

/// Has an object of this kind a generation?
pub(crate) fn is_counted(gvk: &GvkRef) -> bool {
    match gvk.tag() {
        KindTag::Pod
        | KindTag::Deployment
        | KindTag::ReplicaSet
        | KindTag::ReplicationController
        | KindTag::StatefulSet
        | KindTag::DaemonSet
        | KindTag::Job
        | KindTag::CronJob => true,
        KindTag::Node | KindTag::Namespace => false,
        KindTag::Other => COUNTED.contains(&gvk.kind.as_str()) || registry::find(gvk).is_none(),
    }
}

/// Does a change of what is desired of it count? A priority class is counted once, when it is made, and a CSIDriver only
/// when it changes.
pub(crate) fn counts_updates(stored: &Object) -> bool {
    (stored.meta.generation > 0 && stored.gvk != crate::kinds::PRIORITY_CLASS) || stored.gvk.kind == "CSIDriver"
}

/// The annotation by which a server numbers the templates of a DaemonSet, as `extensions/v1beta1` once did in its spec.
const TEMPLATE_GENERATION: SmolStr = SmolStr::new_static("deprecated.daemonset.template.generation");

/// Numbers the templates of a DaemonSet (`daemonSetStrategy`).
pub(crate) fn count_template(wanted: &mut Object, stored: Option<&Object>) {
    let Body::DaemonSet(set) = &wanted.body else { return };
    let said = |object: &Object| {
        object.meta.annotations.get(&TEMPLATE_GENERATION).and_then(|number| number.parse::<i64>().ok())
    };
    let number = match stored {
        None => said(wanted).unwrap_or(1).max(1),
        Some(stored) => {
            let is_same = stored.daemon_set().is_some_and(|known| known.spec.template == set.spec.template);
            said(stored).unwrap_or(1).saturating_add(i64::from(!is_same))
        }
    };
    let number = SmolStr::from(number.to_string());
    if wanted.meta.annotations.get(&TEMPLATE_GENERATION) != Some(&number) {
        wanted.meta.annotations.make_mut().insert(TEMPLATE_GENERATION, number);
    }
}

/// The label by which a namespace is selected by its name.
const NAME_LABEL: SmolStr = SmolStr::new_static("kubernetes.io/metadata.name");

/// A namespace always has its name as a label (`SetDefaults_Namespace`).
pub(crate) fn keep_namespace_label(wanted: &mut Object) {
    let Body::Namespace(_) = &wanted.body else { return };
    let name = wanted.key.name.clone();
    if wanted.meta.labels.get(&NAME_LABEL) != Some(&name) {
        wanted.meta.labels.make_mut().insert(NAME_LABEL, name);
    }
}

/// Without labels, a ReplicationController has those of its template (`SetDefaults_ReplicationController`).
pub(crate) fn default_labels(wanted: &mut Object) {
    if let Body::ReplicationController(controller) = &wanted.body
        && wanted.meta.labels.is_empty()
    {
        wanted.meta.labels = controller.0.spec.template.metadata.labels.clone();
    }
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

//! The ordinal of a StatefulSet's pod, and how to make the pod of an ordinal (`stateful_set_utils.go`, 1.36).

use std::sync::Arc;

use serde_json::{Value, json};
use sk_apiserver::kinds::{POD, Pod, PodSpec, PodTemplate, StatefulSetSpec};
use sk_apiserver::{Body, Meta, Object, Request};
use sk_core::{ObjectKey, SmolStr};

use super::claims;
use crate::controllers::pods;
use crate::controllers::revisions::REVISION_LABEL;

const POD_NAME_LABEL: SmolStr = SmolStr::new_static("statefulset.kubernetes.io/pod-name");
const POD_INDEX_LABEL: SmolStr = SmolStr::new_static("apps.kubernetes.io/pod-index");

/// The number of a pod, if its name is one of the set's.
pub(super) fn ordinal_in(set: &Object, pod: &Object) -> Option<i32> {
    let (parent, number) = pod.key.name.rsplit_once('-')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    if is_number && parent == set.key.name { number.parse().ok() } else { None }
}

/// The name of the revision a pod was made from; empty if unknown.
pub(super) fn revision_of(pod: &Object) -> &str {
    pod.meta.labels.get(&REVISION_LABEL).map_or("", SmolStr::as_str)
}

/// The pod with this number, of this template and revision.
pub(super) fn new_pod(
    set: &Object,
    spec: &StatefulSetSpec,
    template: &PodTemplate,
    revision: &SmolStr,
    ordinal: i32,
) -> Request {
    let name: SmolStr = format!("{}-{ordinal}", set.key.name).into();
    let mut labels = template.metadata.labels.clone();
    labels.make_mut().extend([
        (POD_NAME_LABEL, name.clone()),
        (POD_INDEX_LABEL, ordinal.to_string().into()),
        (REVISION_LABEL, revision.clone()),
    ]);
    let meta = Meta {
        labels,
        annotations: template.metadata.annotations.clone(),
        owners: [set.as_controller()].into(),
        finalizers: pods::finalizers(&template.metadata).collect(),
        ..Meta::default()
    };
    let node_name = pods::pinned(&template.spec);
    let body = Pod { node_name, ..Pod::new(Arc::new(pod_spec(set, spec, template, &name, ordinal))) };
    let key = ObjectKey { namespace: set.key.namespace.clone(), name };
    let prefix: SmolStr = format!("{}-", set.key.name).into();
    Request::create(Object::new(&POD, key, meta, Body::Pod(body)).with_generate_name(prefix))
}

/// The template with the pod's own host name, and volumes for its claims before the others.
fn pod_spec(set: &Object, spec: &StatefulSetSpec, template: &PodTemplate, name: &SmolStr, ordinal: i32) -> PodSpec {
    let mut own = PodSpec::clone(&template.spec);
    own.rest.insert("hostname".into(), name.as_str().into());
    if !spec.service_name.is_empty() {
        own.rest.insert("subdomain".into(), spec.service_name.as_str().into());
    }
    if !spec.volume_claim_templates.is_empty() {
        let claimed = spec.volume_claim_templates.iter().map(|claim| {
            let volume = claims::template_name(claim);
            json!({"name": volume, "persistentVolumeClaim": {"claimName": claims::name(set, claim, ordinal)}})
        });
        let is_claimed =
            |volume: &&Value| spec.volume_claim_templates.iter().any(|c| volume["name"] == claims::template_name(c));
        let kept = own.rest.get("volumes").and_then(Value::as_array).into_iter().flatten();
        let volumes: Vec<Value> = claimed.chain(kept.filter(|volume| !is_claimed(volume)).cloned()).collect();
        own.rest.insert("volumes".into(), volumes.into());
    }
    own
}

/// A pod that was adopted gets the labels that say who it is.
pub(super) fn correct(set: &Object, pod: &Object) -> Option<Request> {
    let ordinal = ordinal_in(set, pod)?;
    if pod.meta.labels.get(&POD_NAME_LABEL) == Some(&pod.key.name) {
        return None;
    }
    let mut corrected = pod.clone();
    let labels = [(POD_NAME_LABEL, pod.key.name.clone()), (POD_INDEX_LABEL, ordinal.to_string().into())];
    corrected.meta.labels.make_mut().extend(labels);
    Some(Request::update(corrected))
}

//! The PersistentVolumeClaims of a StatefulSet's pods: created before the pod, with the owner that the retention
//! policy asks for (`stateful_pod_control.go`, `stateful_set_utils.go`, 1.36).
//!
//! A claim's owner decides when the garbage collector deletes it: nobody, the StatefulSet, or a pod that scaling down
//! removes.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use sk_apiserver::kinds::{Other, POD, Retention, STATEFUL_SET, StatefulSetSpec};
use sk_apiserver::{Body, Labels, Meta, Object, OwnerRef, Request, View};
use sk_core::{Gvk, ObjectKey, SmolStr};

pub(super) static CLAIM: Gvk = Gvk::new_static("", "v1", "PersistentVolumeClaim");

/// The claims of the pod with one number.
pub(super) struct Claims<'a> {
    pub(super) set: &'a Arc<Object>,
    pub(super) spec: &'a StatefulSetSpec,
    pub(super) ordinal: i32,
    pub(super) view: View<'a>,
}

/// The name of a claim template, which is the name of the pods' volume.
pub(super) fn template_name(template: &Value) -> &str {
    template.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

/// What the names of a template's claims begin with; a pod's number follows.
pub(super) fn prefix(set: &Object, template: &Value) -> SmolStr {
    format!("{}-{}", template_name(template), set.key.name).into()
}

/// The name of a pod's claim.
pub(super) fn name(set: &Object, template: &Value, ordinal: i32) -> SmolStr {
    format!("{}-{ordinal}", prefix(set, template)).into()
}

impl<'a> Claims<'a> {
    fn key(&self, template: &Value) -> ObjectKey {
        ObjectKey { namespace: self.set.key.namespace.clone(), name: name(self.set, template, self.ordinal) }
    }

    fn existing(&self) -> impl Iterator<Item = &'a Arc<Object>> {
        let found = |template| self.view.find(&CLAIM, &self.key(template)).map(|(_, claim)| claim);
        self.spec.volume_claim_templates.iter().filter_map(found)
    }

    /// Makes those that are not there.
    pub(super) fn missing(&self) -> Vec<Request> {
        let templates = self.spec.volume_claim_templates.iter();
        let missing = templates.filter(|template| self.view.find(&CLAIM, &self.key(template)).is_none());
        missing.map(|template| self.create(template)).collect()
    }

    fn create(&self, template: &Value) -> Request {
        let texts = |pointer: &str| -> Labels {
            let texts = template.pointer(pointer).and_then(Value::as_object).into_iter().flatten();
            texts.filter_map(|(key, value)| Some((SmolStr::from(key), SmolStr::from(value.as_str()?)))).collect()
        };
        let mut labels = texts("/metadata/labels");
        let selected = self.spec.selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
        let selected = selected.filter_map(|(key, value)| Some((SmolStr::from(key), SmolStr::from(value.as_str()?))));
        labels.make_mut().extend(selected);
        let meta = Meta { labels, annotations: texts("/metadata/annotations"), ..Meta::default() };
        let spec = template.get("spec").cloned().unwrap_or_default();
        let fields = Map::from_iter([("spec".to_owned(), spec)]);
        // There is no provisioner here: a claim is bound from the start.
        let body = Other { fields: Arc::new(fields), status: Some(Arc::new(json!({"phase": "Bound"}))) };
        Request::create(Object::new(&CLAIM, self.key(template), meta, Body::Other(body)))
    }

    /// Is one still owned by an earlier pod of this name, and so about to go? Then its successor has to wait.
    pub(super) fn are_stale(&self) -> bool {
        let of_earlier_pod = |owner: &OwnerRef| owner.gvk == POD && owner.name == self.pod_name();
        self.spec.claim_retention().when_scaled == Retention::Delete
            && self.existing().any(|claim| claim.meta.owners.iter().any(of_earlier_pod))
    }

    /// Gives claims the owners that the retention policy wants, `pod` being there and wanted or not.
    pub(super) fn corrected(&self, pod: &Object, is_condemned: bool) -> Vec<Request> {
        let policy = self.spec.claim_retention();
        let by_pod = policy.when_scaled == Retention::Delete && is_condemned;
        let by_set = policy.when_deleted == Retention::Delete && !by_pod;
        let wanted = match (by_pod, by_set) {
            (true, _) => Some(pod.as_controller()),
            (false, true) => Some(self.set.as_controller()),
            (false, false) => None,
        };
        self.existing().filter_map(|claim| self.owned_by(claim, pod, wanted.as_ref())).collect()
    }

    /// The claim with `wanted` as its owner, unless it is already, or another controller owns it.
    fn owned_by(&self, claim: &Object, pod: &Object, wanted: Option<&OwnerRef>) -> Option<Request> {
        let is_set = |owner: &OwnerRef| owner.gvk == STATEFUL_SET && owner.name == self.set.key.name;
        let is_pod = |owner: &OwnerRef| owner.gvk == POD && owner.name == pod.key.name;
        let is_earlier =
            |owner: &OwnerRef| (is_set(owner) && owner.uid != self.set.uid) || (is_pod(owner) && owner.uid != pod.uid);
        let others = claim.meta.owners.iter().filter(|owner| !is_set(owner) && !is_pod(owner));
        let is_foreign = wanted.is_some() && others.clone().any(|owner| owner.controller == Some(true));
        if claim.meta.owners.iter().any(is_earlier) || is_foreign {
            return None;
        }
        let owners: Vec<_> = others.chain(wanted).cloned().collect();
        if *claim.meta.owners == owners[..] {
            return None;
        }
        let mut corrected = claim.clone();
        corrected.meta.owners = owners.into();
        Some(Request::update(corrected))
    }

    fn pod_name(&self) -> SmolStr {
        format!("{}-{}", self.set.key.name, self.ordinal).into()
    }
}

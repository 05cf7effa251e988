//! Rules about references of pod templates: ServiceAccounts, Secrets, ConfigMaps. A referenced object can be created
//! later than the reference, so missing ones are known only at the end.

use std::collections::HashMap;

use serde_json::Value;
use sk_core::{ObjectKey, ObjectRef, Pointer};
use sk_store::trace::Object;

use super::codes::Rule;
use super::findings::{Finding, Place, Report, shown};
use crate::names::{Names, number};

/// How many missing things are waited for: 2^16 at about 500 bytes are 32 MiB.
const MAX_WANTED: usize = 1 << 16;

/// What Kubernetes puts into every namespace by itself.
const ALWAYS_THERE: [(&str, &str); 2] = [("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")];

/// What refers to what.
#[derive(Debug, Default)]
pub(super) struct References {
    provided: Names,
    wanted: HashMap<u64, Wanted>,
    unjudged: u64,
}

#[derive(Debug)]
struct Wanted {
    first: Finding,
    /// Places that refer to it beside the first.
    others: Names,
}

/// One reference in a pod template.
pub(super) struct Reference<'a> {
    pub(super) rule: Rule,
    pub(super) kind: &'static str,
    pub(super) name: &'a str,
    /// What holds the name, from the template on.
    pub(super) at: Pointer,
}

impl References {
    /// This object is there.
    pub(super) fn provide(&mut self, object: &ObjectRef) {
        if object.gvk.group.is_empty() && matches!(object.gvk.kind.as_str(), "ServiceAccount" | "Secret" | "ConfigMap")
        {
            let target = target(&object.gvk.kind, &object.key);
            self.provided.insert(target);
            self.wanted.remove(&target);
        }
    }

    /// Notes what the template of `object` at `at` refers to.
    pub(super) fn want(&mut self, object: &Object, at: &Pointer, place: &Place) {
        let Some(template) = at.get(object.value()) else { return };
        for reference in of_template(template) {
            let key = beside(object.reference(), reference.name);
            let target = target(reference.kind, &key);
            if self.provided.contains(target) {
                continue;
            }
            let pointer = join(at, &reference.at);
            if let Some(wanted) = self.wanted.get_mut(&target) {
                if wanted.first.object.as_ref() != Some(object.reference()) {
                    wanted.others.insert(number(object.reference()));
                }
                continue;
            }
            if self.wanted.len() >= MAX_WANTED {
                self.unjudged += 1;
                continue;
            }
            let first = Finding {
                code: reference.rule,
                place: Some(place.clone()),
                object: Some(object.reference().clone()),
                pointer: Some(pointer),
                detail: format!("{} {} is never in the trace", reference.kind, shown(&key)),
            };
            self.wanted.insert(target, Wanted { first, others: Names::default() });
        }
    }

    /// Reports what never came; gives back what that is.
    pub(super) fn finish(self, report: &mut Report) -> Names {
        let mut missing = Names::default();
        let mut wanted: Vec<(u64, Wanted)> = self.wanted.into_iter().collect();
        wanted.sort_by(|(_, a), (_, b)| order(&a.first).cmp(&order(&b.first)));
        for (target, Wanted { mut first, others }) in wanted {
            missing.insert(target);
            if others.len() > 0 {
                first.detail += &format!("; {} other objects refer to it too", others.len());
            }
            report.add(first);
        }
        report.unjudged += self.unjudged + self.provided.overflow();
        missing
    }
}

/// The trace's order, so that reports are the same every time.
fn order(finding: &Finding) -> (Option<u64>, &Option<ObjectRef>, &Option<Pointer>) {
    (finding.place.as_ref().map(|place| place.event), &finding.object, &finding.pointer)
}

/// The identity of something that is referred to.
pub(super) fn target(kind: &str, key: &ObjectKey) -> u64 {
    number(&(kind, key))
}

/// Something of that name in the object's own namespace.
pub(super) fn beside(object: &ObjectRef, name: &str) -> ObjectKey {
    ObjectKey { namespace: object.key.namespace.clone(), name: name.into() }
}

fn join(template: &Pointer, inside: &Pointer) -> Pointer {
    inside.keys().fold(template.clone(), |at, key| at.child(&key))
}

/// Everything that a pod template refers to and cannot do without.
pub(super) fn of_template(template: &Value) -> Vec<Reference<'_>> {
    let spec = &template["spec"];
    let at = Pointer::default().child("spec");
    let mut found = Vec::new();
    // `serviceAccount` is the older name of the same field; the API server keeps both alike.
    let account = ["serviceAccountName", "serviceAccount"].into_iter().find(|field| spec[*field].is_string());
    if let Some(field) = account {
        push(&mut found, Rule::ServiceAccountMissing, "ServiceAccount", spec, field, || at.child(field));
    }
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for (index, container) in elements(&spec[list]) {
            of_container(container, &at.child(list).child(&index.to_string()), &mut found);
        }
    }
    for (index, volume) in elements(&spec["volumes"]) {
        of_volume(volume, &at.child("volumes").child(&index.to_string()), &mut found);
    }
    found.retain(|reference| !ALWAYS_THERE.contains(&(reference.kind, reference.name)));
    found
}

/// A list's elements with their places; anything else has none.
fn elements(list: &Value) -> impl Iterator<Item = (usize, &Value)> {
    list.as_array().into_iter().flatten().enumerate()
}

fn of_container<'a>(container: &'a Value, at: &Pointer, found: &mut Vec<Reference<'a>>) {
    let (secret, config) = (Rule::EnvSecretMissing, Rule::EnvConfigMapMissing);
    for (index, env) in elements(&container["env"]) {
        let from = &env["valueFrom"];
        let at = |field| at.child("env").child(&index.to_string()).child("valueFrom").child(field);
        push(found, secret, "Secret", &from["secretKeyRef"], "name", || at("secretKeyRef"));
        push(found, config, "ConfigMap", &from["configMapKeyRef"], "name", || at("configMapKeyRef"));
    }
    for (index, from) in elements(&container["envFrom"]) {
        let at = |field| at.child("envFrom").child(&index.to_string()).child(field);
        push(found, secret, "Secret", &from["secretRef"], "name", || at("secretRef"));
        push(found, config, "ConfigMap", &from["configMapRef"], "name", || at("configMapRef"));
    }
}

fn of_volume<'a>(volume: &'a Value, at: &Pointer, found: &mut Vec<Reference<'a>>) {
    let (secret, config) = (Rule::VolumeSecretMissing, Rule::VolumeConfigMapMissing);
    push(found, secret, "Secret", &volume["secret"], "secretName", || at.child("secret"));
    push(found, config, "ConfigMap", &volume["configMap"], "name", || at.child("configMap"));
    for (index, source) in elements(&volume["projected"]["sources"]) {
        let at = |field| at.child("projected").child("sources").child(&index.to_string()).child(field);
        push(found, secret, "Secret", &source["secret"], "name", || at("secret"));
        push(found, config, "ConfigMap", &source["configMap"], "name", || at("configMap"));
    }
}

/// Notes the name in `holder[field]`, if there is one and pods cannot start without it.
fn push<'a>(
    found: &mut Vec<Reference<'a>>,
    rule: Rule,
    kind: &'static str,
    holder: &'a Value,
    field: &str,
    at: impl FnOnce() -> Pointer,
) {
    if let Some(name) = holder[field].as_str().filter(|name| !name.is_empty() && holder["optional"] != true) {
        found.push(Reference { rule, kind, name, at: at() });
    }
}

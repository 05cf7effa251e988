//! Rules about single objects: names, API versions, counts.

use serde_json::Value;
use sk_core::label::is_dns_subdomain;
use sk_core::registry::{self, Scope};
use sk_core::{LabelSelector, OwnerReference, Pointer, limits};
use sk_store::trace::{Object, TracerConfig};

use super::Note;
use super::codes::Rule;
use super::findings::shown;

/// Kinds whose selector must select their own template.
const SELECTING: [&str; 4] = ["DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"];

/// Fields that count pods.
const COUNTS: [&str; 3] = ["/spec/replicas", "/spec/parallelism", "/spec/completions"];

/// Kinds whose names may hold more than a DNS name does, such as `system:node`.
const FREELY_NAMED_GROUPS: [&str; 2] = ["rbac.authorization.k8s.io", "certificates.k8s.io"];

pub(super) fn check(object: &Object, config: &TracerConfig, note: &mut Note<'_>) {
    let value = object.value();
    if value.get("status").is_some_and(|status| !is_empty(status)) {
        note.at("/status", Rule::StatusPopulated, "it has a status".to_owned());
    }
    check_names(object, note);
    let gvk = &object.reference().gvk;
    if registry::is_removed(gvk) {
        note.at("/apiVersion", Rule::ApiVersionRemoved, format!("`{gvk}` is served no more"));
    }
    if registry::scope(gvk).is_some() {
        check_counts(value, note);
    }
    if gvk.group == "apps" && SELECTING.contains(&gvk.kind.as_str()) {
        check_selector(value, note);
    }
    if gvk.group == "batch" && gvk.kind == "CronJob" {
        check_schedule(value, note);
    }
    check_owner(value, config, note);
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty)
}

fn check_names(object: &Object, note: &mut Note<'_>) {
    let reference = object.reference();
    let (key, kind) = (&reference.key, &reference.gvk.kind);
    match (registry::scope(&reference.gvk), &key.namespace) {
        (Some(Scope::Namespaced), None) => {
            note.at("/metadata/namespace", Rule::NamespaceMissing, format!("a {kind} lives in a namespace"));
        }
        (Some(Scope::Cluster), Some(_)) => {
            note.at("/metadata/namespace", Rule::NamespaceUnexpected, format!("a {kind} has no namespace"));
        }
        _ => {}
    }
    let freely_named = FREELY_NAMED_GROUPS.contains(&reference.gvk.group.as_str());
    let names = [("/metadata/name", Some(&key.name)), ("/metadata/namespace", key.namespace.as_ref())];
    for (pointer, name) in names.into_iter().filter(|(pointer, _)| !freely_named || *pointer != "/metadata/name") {
        if let Some(name) = name.filter(|name| !is_dns_subdomain(name)) {
            note.at(pointer, Rule::NameInvalid, format!("`{}` is not a DNS name", shown(name)));
        }
    }
}

fn check_counts(value: &Value, note: &mut Note<'_>) {
    for pointer in COUNTS {
        let wrong = value.pointer(pointer).filter(|count| !count.is_null() && !is_count(count));
        if let Some(wrong) = wrong {
            note.at(pointer, Rule::ReplicasInvalid, format!("`{}` is not a number of pods", shown(wrong)));
        }
    }
    if let Err(problem) = limits::check_pods(value) {
        note.at(problem.pointer, Rule::TooManyPods, problem.to_string());
    }
}

fn is_count(value: &Value) -> bool {
    value.as_u64().is_some_and(|count| i32::try_from(count).is_ok())
}

fn check_selector(value: &Value, note: &mut Note<'_>) {
    let mut wrong = |detail| note.at("/spec/selector", Rule::SelectorMismatch, detail);
    let labels = &value["spec"]["template"]["metadata"]["labels"];
    match LabelSelector::from_json(&value["spec"]["selector"]) {
        Err(error) => wrong(error.to_string()),
        Ok(selector) if selector.is_nothing() || selector.is_everything() => {
            wrong("it selects nothing of its own".to_owned());
        }
        Ok(selector) if !selector.matches(labels) => wrong(format!("`{selector}` does not select {}", shown(labels))),
        Ok(_) => {}
    }
}

/// The five fields of a schedule, or a name for one. What stands in the fields is the controller's to judge.
fn check_schedule(value: &Value, note: &mut Note<'_>) {
    let schedule = &value["spec"]["schedule"];
    let is_one = schedule.as_str().is_some_and(|text| text.starts_with('@') || text.split_whitespace().count() == 5);
    if !is_one {
        note.at("/spec/schedule", Rule::ScheduleInvalid, format!("`{}` is not a cron schedule", shown(schedule)));
    }
}

fn check_owner(value: &Value, config: &TracerConfig, note: &mut Note<'_>) {
    // Owners that cannot be read are removed before a replay, like all others.
    let owners = OwnerReference::all_of(value).unwrap_or_default();
    if let Some((index, owner)) = owners.iter().enumerate().find(|(_, owner)| config.tracked().contains_key(&owner.gvk))
    {
        let pointer = Pointer::default().child("metadata").child("ownerReferences").child(&index.to_string());
        let detail = format!("it belongs to {} {}, whose kind is tracked", owner.gvk.kind, owner.name);
        note.at(pointer.as_str(), Rule::OwnedByTracked, detail);
    }
}

//! What a server finds wrong with an object, in Kubernetes' words and with its field paths (`pkg/apis/*/validation`, 1.36).
//!
//! Rules read JSON that has its defaults. All that is wrong is named at once, in the order in which a server names it.
//! A pod's spec is looked at once per template, not once per pod.

mod others;
mod pod;
mod text;
mod workloads;

use serde_json::{Map, Value};
use sk_core::Gvk;

use crate::Object;
use crate::error::Invalid;
use crate::kinds::{Node, Pod, PodSpec};

/// What is wrong so far.
pub(crate) type Errors = Vec<Invalid>;

/// All annotations of an object together (`TotalAnnotationSizeLimitB`).
const MAX_ANNOTATION_BYTES: usize = 256 << 10;

/// What is wrong with an object, or with a change of the object `before`.
pub(crate) fn check(gvk: &Gvk, object: &Value, before: Option<&Value>) -> Errors {
    let mut errors = Errors::new();
    let (spec, old) = (&object["spec"], before.map(|before| &before["spec"]));
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("apps", "Deployment") => workloads::deployment(spec, old, &mut errors),
        ("apps", "ReplicaSet") => workloads::replica_set(spec, old, &mut errors),
        ("apps", "StatefulSet") => workloads::stateful_set(spec, old, &mut errors),
        ("apps", "DaemonSet") => workloads::daemon_set(spec, old, &mut errors),
        ("batch", "Job") => workloads::job(spec, &mut errors),
        ("batch", "CronJob") => workloads::cron_job(spec, &mut errors),
        ("policy", "PodDisruptionBudget") => others::budget(spec, &mut errors),
        ("scheduling.k8s.io", "PriorityClass") => others::priority_class(object, before, &mut errors),
        ("autoscaling", "HorizontalPodAutoscaler") => others::autoscaler(spec, &mut errors),
        ("", "Service") => others::service(spec, old, &mut errors),
        ("", "PersistentVolumeClaim") => others::claim(spec, old, &mut errors),
        ("", "ResourceQuota") => others::quota(spec, &mut errors),
        ("", "LimitRange") => others::limit_range(spec, &mut errors),
        ("", "ConfigMap") => others::keys(object, "[]", &mut errors),
        ("", "Secret") => others::keys(object, "data", &mut errors),
        _ => {}
    }
    errors
}

/// What is wrong with a pod's spec.
pub(crate) fn pod_spec(spec: &Value) -> Errors {
    let mut errors = Errors::new();
    pod::spec(spec, "spec", &mut errors);
    errors
}

/// What of a pod may not change: all but images, a shorter deadline and more tolerations (`ValidatePodUpdate`).
pub(crate) fn fixed(pod: &Pod, known: &Pod) -> Option<Invalid> {
    let mut allowed = PodSpec::clone(&pod.spec);
    let pairs = allowed.containers.iter_mut().zip(&known.spec.containers);
    for (container, known) in pairs.chain(allowed.init_containers.iter_mut().zip(&known.spec.init_containers)) {
        if let (Some(image), Some(kept)) = (container.rest.get_mut("image"), known.rest.get("image")) {
            image.clone_from(kept);
        }
    }
    let only_more = known.spec.tolerations.iter().all(|toleration| allowed.tolerations.contains(toleration));
    if only_more {
        allowed.tolerations.clone_from(&known.spec.tolerations);
    }
    for name in ["activeDeadlineSeconds"] {
        match known.spec.rest.get(name) {
            Some(value) => drop(allowed.rest.insert(name.to_owned(), value.clone())),
            None => drop(allowed.rest.remove(name)),
        }
    }
    if allowed == *known.spec && pod.node_name == known.node_name {
        return None;
    }
    let why = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,\
               `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
               `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
    Some(forbidden("spec", why))
}

/// What is wrong with a node: its taints.
pub(crate) fn node(node: &Node) -> Errors {
    let mut errors = Errors::new();
    let mut seen: Vec<(&str, String)> = Vec::new();
    for (index, taint) in node.spec.taints.iter().enumerate() {
        let at = format!("metadata.taints[{index}]");
        text::label_key(&taint.key, &format!("{at}.key"), &mut errors);
        text::label_value(&taint.value, &format!("{at}.value"), &mut errors);
        let effect = serde_json::json!(taint.effect).as_str().unwrap_or_default().to_owned();
        if seen.iter().any(|(key, known)| *key == taint.key && *known == effect) {
            let (key, value) = (taint.key.as_str(), taint.value.as_str());
            let shown = serde_json::json!({"Key": key, "Value": value, "Effect": effect, "TimeAdded": null});
            let why = format!("Duplicate value: {shown}: taints must be unique by key and effect pair");
            errors.push(Invalid::new(at, why));
        }
        seen.push((&taint.key, effect));
    }
    for (section, amounts) in [("capacity", &node.status.capacity), ("allocatable", &node.status.allocatable)] {
        for (name, amount) in amounts.iter().filter(|(_, amount)| amount.is_negative()) {
            let why = format!("Invalid value: \"{amount}\": must be greater than or equal to 0");
            errors.push(Invalid::new(format!("status.{section}.{name}"), why));
        }
    }
    errors
}

/// What is wrong with an object's name, labels and annotations.
pub(crate) fn metadata(object: &Object) -> Errors {
    let mut errors = names(object);
    errors.extend(other_metadata(object));
    errors
}

/// What is wrong with an object's name, or with the prefix that it is to be made from.
pub(crate) fn names(object: &Object) -> Errors {
    let mut errors = Errors::new();
    if let Some(prefix) = object.generate_name.as_deref().filter(|_| object.key.name.is_empty()) {
        object_name(object, prefix.trim_end_matches('-'), "metadata.generateName", &mut errors);
    } else if object.key.name.is_empty() {
        errors.push(Invalid::new("metadata.name", "Required value: name or generateName is required"));
    } else {
        object_name(object, &object.key.name, "metadata.name", &mut errors);
    }
    errors
}

/// What is wrong with the metadata that objects of one template share.
fn other_metadata(object: &Object) -> Errors {
    let mut errors = Errors::new();
    for (key, value) in object.meta.labels.iter() {
        text::label_key(key, "metadata.labels", &mut errors);
        text::label_value(value, "metadata.labels", &mut errors);
    }
    let mut bytes = 0;
    for (key, value) in object.meta.annotations.iter() {
        text::label_key(&key.to_lowercase(), "metadata.annotations", &mut errors);
        bytes += key.len() + value.len();
    }
    if bytes > MAX_ANNOTATION_BYTES {
        let why = format!("Too long: may not be more than {MAX_ANNOTATION_BYTES} bytes");
        errors.push(Invalid::new("metadata.annotations", why));
    }
    for (index, finalizer) in object.meta.finalizers.iter().enumerate() {
        text::label_key(finalizer, "metadata.finalizers", &mut errors);
        text::finalizer(finalizer, &format!("metadata.finalizers[{index}]"), &mut errors);
    }
    let controllers = object.meta.owners.iter().filter(|owner| owner.controller == Some(true));
    if let [first, second, ..] = controllers.collect::<Vec<_>>().as_slice() {
        let shown: Value = object.meta.owners.iter().map(crate::json::write_owner).collect();
        let why = format!(
            "Invalid value: {shown}: Only one reference can have Controller set to true. Found \"true\" in references for \
             {}/{} and {}/{}",
            first.gvk.kind, first.name, second.gvk.kind, second.name
        );
        errors.push(Invalid::new("metadata.ownerReferences", why));
    }
    errors
}

fn object_name(object: &Object, name: &str, field: &str, errors: &mut Errors) {
    match object.gvk.kind.as_str() {
        "Namespace" | "Service" => text::dns_label(name, field, errors),
        // A StatefulSet's name stands in its pods' names, and those are host names.
        "StatefulSet" if object.gvk.group == "apps" => text::dns_label(name, field, errors),
        _ if object.body.is_typed() || sk_core::registry::find(&object.gvk).is_some_and(is_named_by_dns) => {
            text::dns_subdomain(name, field, errors);
        }
        _ if !object.body.is_name(name) => {
            let why = format!("Invalid value: {name:?}: may not contain '/'");
            errors.push(Invalid::new(field, why));
        }
        _ => {}
    }
}

/// Roles and bindings may be called almost anything, as a segment of a path may.
fn is_named_by_dns(info: &sk_core::registry::KindInfo) -> bool {
    info.group != "rbac.authorization.k8s.io"
}

/// The fields of a JSON object; of anything else none.
fn fields(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

fn items(value: &Value) -> impl Iterator<Item = (usize, &Value)> {
    value.as_array().into_iter().flatten().enumerate()
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn required(field: impl Into<String>, detail: &str) -> Invalid {
    let why = if detail.is_empty() { "Required value".to_owned() } else { format!("Required value: {detail}") };
    Invalid::new(field, why)
}

fn invalid(field: impl Into<String>, value: &Value, detail: &str) -> Invalid {
    let detail = if detail.is_empty() { String::new() } else { format!(": {detail}") };
    Invalid::new(field, format!("Invalid value: {}{detail}", shown(value)))
}

fn forbidden(field: impl Into<String>, detail: &str) -> Invalid {
    Invalid::new(field, format!("Forbidden: {detail}"))
}

fn not_supported(field: impl Into<String>, value: &Value, supported: &[&str]) -> Invalid {
    let supported: Vec<String> = supported.iter().map(|value| format!("\"{value}\"")).collect();
    Invalid::new(field, format!("Unsupported value: {}: supported values: {}", shown(value), supported.join(", ")))
}

fn duplicate(field: impl Into<String>, value: &Value) -> Invalid {
    Invalid::new(field, format!("Duplicate value: {}", shown(value)))
}

/// A value in a sentence: texts in quotes, everything else as JSON.
fn shown(value: &Value) -> String {
    value.to_string()
}

fn not_negative(parent: &Value, name: &str, at: &str, errors: &mut Errors) {
    if let Some(number) = parent[name].as_i64().filter(|number| *number < 0) {
        errors.push(invalid(format!("{at}.{name}"), &number.into(), "must be greater than or equal to 0"));
    }
}

/// One of a few words.
fn one_of(parent: &Value, name: &str, at: &str, words: &[&str], errors: &mut Errors) {
    match &parent[name] {
        Value::String(word) if words.contains(&word.as_str()) => {}
        Value::Null => {}
        Value::String(word) if word.is_empty() => errors.push(required(format!("{at}.{name}"), "")),
        other => errors.push(not_supported(format!("{at}.{name}"), other, words)),
    }
}

//! Validation with Kubernetes' messages and field paths (`pkg/apis/*/validation`, 1.36).
//!
//! The rules read JSON that has its defaults. They report every error, in the order in which the API server reports
//! them. A pod spec is validated once per template, not once per pod.

mod autoscaler;
mod containers;
mod internal;
mod job;
mod others;
mod placement;
mod pod;
mod quota;
mod service;
mod text;
mod workloads;

use serde_json::{Map, Value};
use sk_core::Gvk;

use crate::Object;
use crate::error::Invalid;
use crate::kinds::{KindTag, Node, Pod, PodSpec};

/// The errors so far.
pub(crate) type Errors = Vec<Invalid>;

/// All annotations of an object together (`TotalAnnotationSizeLimitB`).
const MAX_ANNOTATION_BYTES: usize = 256 << 10;

#[cfg(test)]
thread_local! {
    /// How often an object or a pod spec was validated: one that passed must not be validated again.
    pub(crate) static LOOKED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
fn count_look() {
    LOOKED.set(LOOKED.get() + 1);
}

/// Validates an object, or an update of the object `before`.
pub(crate) fn check(gvk: &Gvk, object: &Value, before: Option<&Value>) -> Errors {
    #[cfg(test)]
    count_look();
    let mut errors = Errors::new();
    let (spec, old) = (&object["spec"], before.map(|before| &before["spec"]));
    match KindTag::of(gvk) {
        KindTag::Deployment => workloads::deployment(spec, old, &mut errors),
        KindTag::ReplicaSet => workloads::replica_set(spec, old, &mut errors),
        KindTag::ReplicationController => workloads::replication_controller(spec, &mut errors),
        KindTag::StatefulSet => workloads::stateful_set(spec, old, &mut errors),
        KindTag::DaemonSet => workloads::daemon_set(spec, old, &mut errors),
        KindTag::Job => workloads::job(object, before, &mut errors),
        KindTag::CronJob => workloads::cron_job(object, before, &mut errors),
        // Judged by their typed bodies: `pod_spec` and `node`. A namespace has nothing but its metadata.
        KindTag::Pod | KindTag::Node | KindTag::Namespace => {}
        KindTag::Other => check_other(gvk, object, before, &mut errors),
    }
    errors
}

/// Validates an object without a typed body.
fn check_other(gvk: &Gvk, object: &Value, before: Option<&Value>, errors: &mut Errors) {
    let (spec, old) = (&object["spec"], before.map(|before| &before["spec"]));
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("policy", "PodDisruptionBudget") => others::budget(spec, errors),
        ("scheduling.k8s.io", "PriorityClass") => others::priority_class(object, before, errors),
        ("autoscaling", "HorizontalPodAutoscaler") => autoscaler::autoscaler(spec, errors),
        ("", "Service") => service::service(spec, old, errors),
        ("", "PersistentVolumeClaim") => others::claim(object, before, errors),
        ("", "ResourceQuota") => quota::quota(spec, old, errors),
        ("", "LimitRange") => quota::limit_range(spec, errors),
        ("", "ConfigMap") => others::keys(object, before, "[]", errors),
        ("", "Secret") => others::keys(object, before, "data", errors),
        _ => {}
    }
}

/// Validates a pod spec.
pub(crate) fn pod_spec(spec: &Value) -> Errors {
    #[cfg(test)]
    count_look();
    let mut errors = Errors::new();
    pod::spec(spec, "spec", &mut errors);
    errors
}

/// Refuses changes to a pod spec other than images, a shorter deadline and more tolerations (`ValidatePodUpdate`).
pub(crate) fn fixed(pod: &Pod, known: &Pod) -> Option<Invalid> {
    let mut allowed = PodSpec::clone(&pod.spec);
    let pairs = allowed.containers.iter_mut().zip(&known.spec.containers);
    for (container, known) in pairs.chain(allowed.init_containers.iter_mut().zip(&known.spec.init_containers)) {
        if let Some(kept) = known.rest.get("image") {
            container.rest.insert("image".to_owned(), kept.clone());
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
    let shown = |spec: &PodSpec, node: Option<&sk_core::SmolStr>| {
        let mut json = serde_json::json!(spec);
        json["nodeName"] = serde_json::json!(node.map_or("", |node| node.as_str()));
        internal::pod_spec(&json)
    };
    let was = shown(&known.spec, known.node_name.as_ref());
    let changed = internal::difference(&was, &shown(&allowed, pod.node_name.as_ref()));
    Some(forbidden("spec", &format!("{why}{changed}")))
}

/// Validates a node: taints, pod CIDR, resources.
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
    if let Some(network) = node.spec.rest.get("podCIDR").filter(|network| !is_network(text_of(network))) {
        let why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
        errors.push(invalid("spec.podCIDRs[0]", network, why));
    }
    for (section, amounts) in [("capacity", &node.status.capacity), ("allocatable", &node.status.allocatable)] {
        for (name, amount) in amounts.iter().filter(|(_, amount)| amount.is_negative()) {
            let why = format!("Invalid value: \"{amount}\": must be greater than or equal to 0");
            errors.push(Invalid::new(format!("status.{section}.{name}"), why));
        }
    }
    errors
}

/// Is the text a CIDR?
fn is_network(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = if address.contains(':') { 128 } else { 32 };
    address.parse::<std::net::IpAddr>().is_ok() && bits.parse::<u32>().is_ok_and(|bits| bits <= most)
}

/// Validates the counts in a workload's status (`ValidateDeploymentStatus` and others).
pub(crate) fn status(gvk: &Gvk, status: &Value) -> Errors {
    let mut errors = Errors::new();
    let count = |name: &str| status[name].as_i64().unwrap_or(0);
    let (counts, compared): (&[&str], &[(&str, &str, &str)]) = match KindTag::of(gvk) {
        KindTag::Deployment => (
            &["replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas"],
            &[
                ("updatedReplicas", "replicas", "status.replicas"),
                ("readyReplicas", "replicas", "status.replicas"),
                ("availableReplicas", "replicas", "status.replicas"),
                ("availableReplicas", "readyReplicas", "readyReplicas"),
            ],
        ),
        KindTag::ReplicaSet | KindTag::ReplicationController => (
            &["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
            &[
                ("fullyLabeledReplicas", "replicas", "status.replicas"),
                ("readyReplicas", "replicas", "status.replicas"),
                ("availableReplicas", "replicas", "status.replicas"),
                ("availableReplicas", "readyReplicas", "readyReplicas"),
            ],
        ),
        KindTag::StatefulSet => (
            &["replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"],
            &[
                ("readyReplicas", "replicas", "status.replicas"),
                ("currentReplicas", "replicas", "status.replicas"),
                ("updatedReplicas", "replicas", "status.replicas"),
                ("availableReplicas", "replicas", "status.replicas"),
                ("availableReplicas", "readyReplicas", "status.readyReplicas"),
            ],
        ),
        KindTag::Pod
        | KindTag::Node
        | KindTag::Namespace
        | KindTag::Job
        | KindTag::CronJob
        | KindTag::DaemonSet
        | KindTag::Other => return errors,
    };
    for name in counts {
        not_negative(status, name, "status", &mut errors);
    }
    for (name, most, called) in compared.iter().filter(|(name, most, _)| count(name) > count(most)) {
        let _ = most;
        let why = format!("cannot be greater than {called}");
        errors.push(invalid(format!("status.{name}"), &count(name).into(), &why));
    }
    errors
}

/// Kinds whose updates are also validated as new objects, so that metadata errors appear once more.
const JUDGED_ANEW: [&str; 4] = ["ConfigMap", "Secret", "Service", "Job"];

/// Validates an object's name, labels and annotations, and their change from the object `stored`. A server
/// validates them several times and reports the errors each time (`rest.BeforeUpdate`).
pub(crate) fn metadata(object: &Object, stored: Option<&Object>) -> Errors {
    let once = new_metadata(object);
    let Some(stored) = stored else { return once };
    let changed = changed_metadata(object, stored);
    let anew = if JUDGED_ANEW.contains(&object.gvk.kind.as_str()) { once.clone() } else { Errors::new() };
    [once, changed.clone(), changed, anew].concat()
}

fn new_metadata(object: &Object) -> Errors {
    let mut errors = names(object);
    errors.extend(labels_and_owners(object));
    for (index, finalizer) in object.meta.finalizers.iter().enumerate() {
        text::label_key(finalizer, "metadata.finalizers", &mut errors);
        text::finalizer(finalizer, &format!("metadata.finalizers[{index}]"), &mut errors);
    }
    errors
}

/// Validates an object's name or `generateName`.
pub(crate) fn names(object: &Object) -> Errors {
    let mut errors = Errors::new();
    if let Some(prefix) = object.generate_name.as_deref() {
        // The end of the prefix is not the end of the name.
        let masked = prefix.strip_suffix('-').map_or_else(|| prefix.to_owned(), |begin| format!("{begin}a"));
        object_name(object, &masked, "metadata.generateName", &mut errors);
    }
    if object.key.name.is_empty() && object.generate_name.is_none() {
        errors.push(Invalid::new("metadata.name", "Required value: name or generateName is required"));
    } else if !object.key.name.is_empty() {
        object_name(object, &object.key.name, "metadata.name", &mut errors);
    }
    errors
}

/// `ValidateObjectMetaAccessorUpdate`, of what an update can change.
fn changed_metadata(object: &Object, stored: &Object) -> Errors {
    let mut errors = Errors::new();
    let mut new: Vec<String> = object.meta.finalizers.iter().map(ToString::to_string).collect();
    new.retain(|name| !stored.meta.finalizers.iter().any(|known| known == name));
    if stored.is_deleting() && !new.is_empty() {
        new.sort();
        new.dedup();
        let shown: Vec<String> = new.iter().map(|name| format!("{name:?}")).collect();
        let why = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            shown.join(", ")
        );
        errors.push(forbidden("metadata.finalizers", &why));
    }
    errors.extend(labels_and_owners(object));
    errors
}

fn labels_and_owners(object: &Object) -> Errors {
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
    if object.meta.owners.len() > 1 {
        let owners: Value = object.meta.owners.iter().map(crate::json::write_owner).collect();
        errors.extend(one_controller(&owners));
    }
    errors
}

/// Validates an owner reference (`validateOwnerReference`).
fn owner_errors(owner: &Value) -> Errors {
    let mut errors = Errors::new();
    for name in ["apiVersion", "kind", "name", "uid"] {
        let at = format!("metadata.ownerReferences.{name}");
        match (text_of(&owner[name]), name) {
            ("", "apiVersion") => errors.push(invalid(at, &Value::from(""), "version must not be empty")),
            ("", _) => errors.push(invalid(at, &Value::from(""), "must not be empty")),
            _ => {}
        }
    }
    if owner["apiVersion"] == "v1" && owner["kind"] == "Event" {
        errors.push(invalid("metadata.ownerReferences", owner, "/v1, Kind=Event is disallowed from being an owner"));
    }
    errors
}

/// An object has at most one controller (`ValidateOwnerReferences`).
fn one_controller(owners: &Value) -> Option<Invalid> {
    let controllers: Vec<&Value> =
        items(owners).map(|(_, owner)| owner).filter(|owner| owner["controller"] == true).collect();
    let [first, second, ..] = controllers.as_slice() else { return None };
    let called = |owner: &Value| format!("{}/{}", text_of(&owner["kind"]), text_of(&owner["name"]));
    let why = format!(
        "Only one reference can have Controller set to true. Found \"true\" in references for {} and {}",
        called(first),
        called(second)
    );
    Some(invalid("metadata.ownerReferences", owners, &why))
}

/// Validates an object that cannot be decoded into the type of its kind: an unknown enum value, a uid
/// that is none. The JSON has its defaults.
pub(crate) fn unreadable(gvk: &Gvk, object: &Value) -> Errors {
    let owners = &object["metadata"]["ownerReferences"];
    let mut errors: Errors = items(owners).flat_map(|(_, owner)| owner_errors(owner)).collect();
    errors.extend(one_controller(owners));
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("", "Pod") => errors.extend(pod_spec(&object["spec"])),
        ("", "Node") => {
            for (index, taint) in items(&object["spec"]["taints"]) {
                let at = format!("metadata.taints[{index}]");
                one_of(taint, "effect", &at, &["NoSchedule", "PreferNoSchedule", "NoExecute"], &mut errors);
            }
        }
        _ => errors.extend(check(gvk, object, None)),
    }
    errors
}

/// The server's message about a label selector with an invalid key or value.
pub(crate) fn selector_words(error: &sk_core::selector::SelectorError) -> Option<String> {
    use sk_core::selector::SelectorError;
    let mut errors = Errors::new();
    match error {
        SelectorError::Key(key) => text::label_key(key, "<nil>", &mut errors),
        SelectorError::Value { key, value } => text::label_value(value, &format!("values[0][{key}]"), &mut errors),
        _ => {}
    }
    errors.first().map(ToString::to_string)
}

/// Validates a pod's `nodeName`.
pub(crate) fn node_name(pod: &Pod) -> Errors {
    let mut errors = Errors::new();
    if let Some(name) = &pod.node_name {
        text::dns_subdomain(name, "spec.nodeName", &mut errors);
        if !pod.spec.scheduling_gates.is_empty() {
            errors.push(forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"));
        }
    }
    errors
}

/// Validates the name of a custom resource: a DNS subdomain.
pub(crate) fn custom_name(object: &Object) -> Errors {
    let mut errors = Errors::new();
    text::dns_subdomain(&object.key.name, "metadata.name", &mut errors);
    errors
}

fn object_name(object: &Object, name: &str, field: &str, errors: &mut Errors) {
    match object.gvk.kind.as_str() {
        "Namespace" | "Service" => text::dns_label(name, field, errors),
        // A StatefulSet's name is part of its pods' names, and those are host names.
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

/// RBAC names can be any path segment.
fn is_named_by_dns(info: &sk_core::registry::KindInfo) -> bool {
    info.group != "rbac.authorization.k8s.io"
}

/// The fields of a JSON object; none for any other value.
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

/// A value in a message: strings in quotes, everything else as JSON.
fn shown(value: &Value) -> String {
    value.to_string()
}

fn not_negative(parent: &Value, name: &str, at: &str, errors: &mut Errors) {
    if let Some(number) = parent[name].as_i64().filter(|number| *number < 0) {
        errors.push(invalid(format!("{at}.{name}"), &number.into(), "must be greater than or equal to 0"));
    }
}

/// An enum field.
fn one_of(parent: &Value, name: &str, at: &str, words: &[&str], errors: &mut Errors) {
    match &parent[name] {
        Value::String(word) if words.contains(&word.as_str()) => {}
        Value::Null => {}
        Value::String(word) if word.is_empty() => errors.push(required(format!("{at}.{name}"), "")),
        other => errors.push(not_supported(format!("{at}.{name}"), other, words)),
    }
}

//! Pods and pod templates: the rules of `ValidatePodSpec` that concern the pod as a whole, and its volumes.
//!
//! `containers` has the rules for containers, `placement` those that the scheduler reads.

use serde_json::Value;
use sk_core::LabelSelector;

use super::containers::{amount_of, containers, ids, init_containers, ports_of_host};
use super::placement::{affinity, gates, spread, tolerations};
use super::{Errors, duplicate, fields, forbidden, invalid, items, not_supported, one_of, required, text, text_of};

/// The largest number of seconds: that of a 32-bit integer.
const MAX_SECONDS: i64 = i32::MAX as i64;

/// The sources of a volume, in the order in which a server looks for them (`validateVolumeSource`).
const SOURCES: [&str; 30] = [
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
];

/// A pod's spec; `at` is the path of its field.
pub(super) fn spec(spec: &Value, at: &str, errors: &mut Errors) {
    let volumes = volumes(&spec["volumes"], &spec["serviceAccountName"], &format!("{at}.volumes"), errors);
    containers(spec, at, &volumes, errors);
    init_containers(spec, at, &volumes, errors);
    one_of(spec, "restartPolicy", at, &["Always", "OnFailure", "Never"], errors);
    one_of(spec, "dnsPolicy", at, &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"], errors);
    for (key, value) in fields(&spec["nodeSelector"]) {
        text::label_key(key, &format!("{at}.nodeSelector"), errors);
        text::label_value(text_of(value), &format!("{at}.nodeSelector"), errors);
    }
    affinity(&spec["affinity"], &format!("{at}.affinity"), errors);
    gates(&spec["schedulingGates"], &format!("{at}.schedulingGates"), errors);
    spread(&spec["topologySpreadConstraints"], &format!("{at}.topologySpreadConstraints"), errors);
    for name in ["serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName"] {
        if !text_of(&spec[name]).is_empty() {
            text::dns_subdomain(text_of(&spec[name]), &format!("{at}.{name}"), errors);
        }
    }
    if let Some(seconds) = spec["activeDeadlineSeconds"].as_i64().filter(|seconds| !(1..=MAX_SECONDS).contains(seconds))
    {
        let why = format!("must be between 1 and {MAX_SECONDS}, inclusive");
        errors.push(invalid(format!("{at}.activeDeadlineSeconds"), &seconds.into(), &why));
    }
    for name in ["hostname", "subdomain"] {
        if !text_of(&spec[name]).is_empty() {
            text::dns_label(text_of(&spec[name]), &format!("{at}.{name}"), errors);
        }
    }
    tolerations(&spec["tolerations"], &format!("{at}.tolerations"), errors);
    if let Some(os) = spec["os"]["name"].as_str().filter(|os| !["linux", "windows"].contains(os)) {
        errors.push(not_supported(format!("{at}.os"), &Value::from(os), &["linux", "windows"]));
    }
    ids(&spec["securityContext"], &format!("{at}.securityContext"), errors);
    if spec["hostNetwork"] == true {
        for name in ["containers", "initContainers"] {
            ports_of_host(&spec[name], &format!("{at}.{name}"), errors);
        }
    }
    one_of(spec, "preemptionPolicy", at, &["PreemptLowerPriority", "Never"], errors);
    for (name, amount) in fields(&spec["overhead"]) {
        amount_of(name, amount, &format!("{at}.overhead"), errors);
    }
}

/// Checks the volumes and returns their names.
fn volumes(volumes: &Value, account: &Value, at: &str, errors: &mut Errors) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (index, volume) in items(volumes) {
        let (at, name) = (format!("{at}[{index}]"), text_of(&volume["name"]));
        if name.is_empty() {
            errors.push(required(format!("{at}.name"), ""));
        } else {
            text::dns_label(name, &format!("{at}.name"), errors);
        }
        if names.iter().any(|known| known == name) {
            errors.push(duplicate(format!("{at}.name"), &volume["name"]));
        }
        let sources: Vec<&str> = SOURCES.into_iter().filter(|source| !volume[*source].is_null()).collect();
        if sources.is_empty() {
            errors.push(required(&at, "must specify a volume type"));
        }
        for extra in sources.iter().skip(1) {
            errors.push(forbidden(format!("{at}.{extra}"), "may not specify more than 1 volume type"));
        }
        let needed = [
            ("persistentVolumeClaim", "claimName"),
            ("configMap", "name"),
            ("secret", "secretName"),
            ("hostPath", "path"),
            ("nfs", "server"),
            ("nfs", "path"),
        ];
        for (source, field) in needed.into_iter().filter(|(source, _)| volume[*source].is_object()) {
            if text_of(&volume[source][field]).is_empty() {
                errors.push(required(format!("{at}.{source}.{field}"), ""));
            }
        }
        let account = text_of(account).is_empty();
        for (place, source) in items(&volume["projected"]["sources"]) {
            if account && source["serviceAccountToken"].is_object() {
                let field = format!("{at}.projected.sources[{place}].serviceAccountToken");
                errors.push(forbidden(field, "must not be specified when serviceAccountName is not set"));
            }
        }
        names.push(name.to_owned());
    }
    names
}

/// A pod template: its labels and its spec.
pub(super) fn template(template: &Value, at: &str, errors: &mut Errors) {
    for (key, value) in fields(&template["metadata"]["labels"]) {
        text::label_key(key, &format!("{at}.labels"), errors);
        text::label_value(text_of(value), &format!("{at}.labels"), errors);
    }
    for (key, _) in fields(&template["metadata"]["annotations"]) {
        text::label_key(&key.to_lowercase(), &format!("{at}.annotations"), errors);
    }
    spec(&template["spec"], &format!("{at}.spec"), errors);
}

/// Does the selector match the template's labels?
pub(super) fn selects(selector: &Value, template: &Value) -> Result<bool, ()> {
    let selector = LabelSelector::from_json(selector).map_err(drop)?;
    Ok(selector.is_nothing() || selector.is_everything() || selector.matches(&template["metadata"]["labels"]))
}

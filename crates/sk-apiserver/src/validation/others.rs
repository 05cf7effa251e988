//! PodDisruptionBudgets, PriorityClasses, PersistentVolumeClaims, ConfigMaps and Secrets.

use serde_json::{Value, json};
use sk_core::Quantity;

use super::placement::label_selector;
use super::workloads::{at_most_all, count_or_share};
use super::{Errors, fields, forbidden, internal, invalid, items, not_supported, one_of, required, text, text_of};
use crate::base64;

/// `HighestUserDefinablePriority`
const HIGHEST_PRIORITY: i64 = 1_000_000_000;
/// Priority classes that only the system has.
const SYSTEM_CLASSES: [(&str, i64); 2] =
    [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];

pub(super) fn budget(spec: &Value, errors: &mut Errors) {
    if !spec["minAvailable"].is_null() && !spec["maxUnavailable"].is_null() {
        let why = "minAvailable and maxUnavailable cannot be both set";
        let shown = json!({
            "MinAvailable": spec["minAvailable"], "Selector": spec["selector"],
            "MaxUnavailable": spec["maxUnavailable"], "UnhealthyPodEvictionPolicy": spec["unhealthyPodEvictionPolicy"],
        });
        errors.push(invalid("spec", &shown, why));
    }
    for name in ["minAvailable", "maxUnavailable"] {
        count_or_share(&spec[name], &format!("spec.{name}"), errors);
        at_most_all(&spec[name], &format!("spec.{name}"), errors);
    }
    label_selector(&spec["selector"], "spec.selector", errors);
    one_of(spec, "unhealthyPodEvictionPolicy", "spec", &["AlwaysAllow", "IfHealthyBudget"], errors);
}

pub(super) fn priority_class(class: &Value, before: Option<&Value>, errors: &mut Errors) {
    if let Some(before) = before {
        if class["value"] != before["value"] {
            errors.push(forbidden("value", "may not be changed in an update."));
        }
        if class["preemptionPolicy"] != before["preemptionPolicy"] && !before["preemptionPolicy"].is_null() {
            errors.push(invalid("preemptionPolicy", &class["preemptionPolicy"], "field is immutable"));
        }
        return;
    }
    let (name, value) = (text_of(&class["metadata"]["name"]), class["value"].as_i64().unwrap_or(0));
    let known = SYSTEM_CLASSES.iter().find(|(known, _)| *known == name);
    if name.starts_with("system-") {
        let why = match known {
            None => Some(format!("{name} is not a known system priority class")),
            Some((_, of)) if *of != value => Some(format!("value of {name} PriorityClass must be {of}")),
            Some(_) => None,
        };
        if let Some(why) = why {
            let why =
                format!("priority class names with 'system-' prefix are reserved for system use only. error: {why}");
            errors.push(forbidden("metadata.name", &why));
        }
    } else if value > HIGHEST_PRIORITY {
        let why = format!("maximum allowed value of a user defined priority is {HIGHEST_PRIORITY}");
        errors.push(forbidden("value", &why));
    }
    let policy = &class["preemptionPolicy"];
    if !policy.is_null() && !["PreemptLowerPriority", "Never"].contains(&text_of(policy)) {
        errors.push(not_supported("preemptionPolicy", policy, &["PreemptLowerPriority", "Never"]));
    }
}

pub(super) fn claim(claim: &Value, before: Option<&Value>, errors: &mut Errors) {
    let spec = &claim["spec"];
    const MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
    if spec["accessModes"].as_array().is_none_or(Vec::is_empty) {
        errors.push(required("spec.accessModes", "at least 1 access mode is required"));
    }
    label_selector(&spec["selector"], "spec.selector", errors);
    for (_, mode) in items(&spec["accessModes"]).filter(|(_, mode)| !MODES.contains(&text_of(mode))) {
        errors.push(not_supported("spec.accessModes", mode, &MODES));
    }
    let storage = &spec["resources"]["requests"]["storage"];
    match text_of(storage).parse::<Quantity>() {
        Err(_) => errors.push(required("spec.resources[storage]", "")),
        Ok(amount) if amount <= Quantity::from_value(0) => {
            errors.push(invalid("spec.resources[storage]", storage, "must be greater than zero"));
        }
        Ok(_) => {}
    }
    if !text_of(&spec["storageClassName"]).is_empty() {
        text::dns_subdomain(text_of(&spec["storageClassName"]), "spec.storageClassName", errors);
    }
    one_of(spec, "volumeMode", "spec", &["Block", "Filesystem"], errors);
    let modes = spec["accessModes"].as_array().map_or(&[][..], Vec::as_slice);
    if modes.len() > 1 && modes.iter().any(|mode| mode == "ReadWriteOncePod") {
        errors.push(forbidden("spec.accessModes", "may not use ReadWriteOncePod with other access modes"));
    }
    if let Some(before) = before {
        claim_change(spec, before, errors);
    }
}

/// What of a claim may not change: all but how much a bound one asks for, and a volume and a class where it has none
/// (`ValidatePersistentVolumeClaimUpdate`).
fn claim_change(spec: &Value, before: &Value, errors: &mut Errors) {
    let (old, mut allowed) = (&before["spec"], spec.clone());
    if text_of(&old["volumeName"]).is_empty() {
        allowed["volumeName"] = old["volumeName"].clone();
    }
    if old["storageClassName"].is_null() && !text_of(&spec["storageClassName"]).is_empty() {
        allowed["storageClassName"] = Value::Null;
    }
    if before["status"]["phase"] == "Bound" {
        allowed["resources"]["requests"] = old["resources"]["requests"].clone();
        allowed["volumeAttributesClassName"] = old["volumeAttributesClassName"].clone();
    }
    let (was, is) = (internal::claim_spec(old), internal::claim_spec(&allowed));
    if was != is {
        let why =
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        errors.push(forbidden("spec", &format!("{why}{}", internal::difference(&was, &is))));
    }
}

/// How many bytes the values of a config map or a secret may have together (`MaxSecretSize`, core/v1).
const MAX_DATA_BYTES: usize = 1 << 20;

/// The keys of a config map or a secret, and how much they hold. `whole` is the field that is then too long.
pub(super) fn keys(object: &Value, before: Option<&Value>, whole: &str, errors: &mut Errors) {
    let size = |section: &str, is_text: bool| -> usize {
        let texts = fields(&object[section]).map(|(_, value)| text_of(value));
        texts.map(|text| if is_text { text.len() } else { base64::decode(text).map_or(0, |bytes| bytes.len()) }).sum()
    };
    let bytes = size("data", object["kind"] != "Secret") + size("binaryData", false);
    if bytes > MAX_DATA_BYTES {
        errors
            .push(crate::error::Invalid::new(whole, format!("Too long: may not be more than {MAX_DATA_BYTES} bytes")));
    }
    for section in ["data", "binaryData"] {
        for (key, _) in fields(&object[section]) {
            let is_key = !key.is_empty()
                && key.len() <= 253
                && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
            if !is_key {
                let why = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  \
                           or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
                errors.push(invalid(format!("{section}[{key}]"), &json!(key), why));
            }
        }
    }
    for (key, _) in fields(&object["data"]).filter(|(key, _)| object["binaryData"].get(key).is_some()) {
        errors.push(invalid(format!("data[{key}]"), &json!(key), "duplicate of key present in binaryData"));
    }
    if let Some(before) = before.filter(|before| before["immutable"] == true) {
        let what = "field is immutable when `immutable` is set";
        if object["immutable"] != true {
            errors.push(forbidden("immutable", what));
        }
        for section in ["data", "binaryData"].into_iter().filter(|section| object[*section] != before[*section]) {
            errors.push(forbidden(section, what));
        }
    }
}

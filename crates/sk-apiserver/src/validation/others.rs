//! Budgets, priority classes, autoscalers, services, claims, quotas and limit ranges.

use serde_json::{Value, json};
use sk_core::Quantity;

use super::pod::{label_selector, port_name};
use super::workloads::{at_most_all, count_or_share};
use super::{Errors, duplicate, fields, forbidden, invalid, items, not_supported, one_of, required, text, text_of};
use crate::base64;

const PORT_RANGE: &str = "must be between 1 and 65535, inclusive";
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

pub(super) fn autoscaler(spec: &Value, errors: &mut Errors) {
    let (min, max) = (spec["minReplicas"].as_i64(), spec["maxReplicas"].as_i64().unwrap_or(0));
    if let Some(min) = min.filter(|min| *min < 1) {
        errors.push(invalid("spec.minReplicas", &min.into(), "must be greater than or equal to 1"));
    }
    if max == 0 {
        errors.push(required("spec.maxReplicas", "must be set and greater than 0"));
    } else if max < 0 {
        errors.push(invalid("spec.maxReplicas", &max.into(), "must be greater than or equal to 1"));
    }
    if min.is_some_and(|min| max < min) {
        errors.push(invalid("spec.maxReplicas", &max.into(), "must be greater than or equal to `minReplicas`"));
    }
    for name in ["kind", "name"] {
        if text_of(&spec["scaleTargetRef"][name]).is_empty() {
            errors.push(required(format!("spec.scaleTargetRef.{name}"), ""));
        }
    }
    let scales_to_zero = |metric: &Value| ["Object", "External"].contains(&text_of(&metric["type"]));
    if min == Some(0) && !items(&spec["metrics"]).any(|(_, metric)| scales_to_zero(metric)) {
        let why = "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.push(forbidden("spec.metrics", why));
    }
}

pub(super) fn service(spec: &Value, old: Option<&Value>, errors: &mut Errors) {
    let kind = text_of(&spec["type"]);
    let ports = spec["ports"].as_array().map_or(0, Vec::len);
    if ports == 0 && kind != "ExternalName" && spec["clusterIP"] != "None" {
        errors.push(required("spec.ports", ""));
    }
    let mut names: Vec<&str> = Vec::new();
    for (index, port) in items(&spec["ports"]) {
        let (at, name) = (format!("spec.ports[{index}]"), text_of(&port["name"]));
        if ports > 1 && name.is_empty() {
            errors.push(required(format!("{at}.name"), ""));
        } else if !name.is_empty() {
            text::dns_label(name, &format!("{at}.name"), errors);
            if names.contains(&name) {
                errors.push(duplicate(format!("{at}.name"), &port["name"]));
            }
            names.push(name);
        }
        let number = port["port"].as_i64().unwrap_or(0);
        if !(1..=65535).contains(&number) {
            errors.push(invalid(format!("{at}.port"), &number.into(), PORT_RANGE));
        }
        one_of(port, "protocol", &at, &["SCTP", "TCP", "UDP"], errors);
        match &port["targetPort"] {
            Value::Number(target) if !target.as_i64().is_some_and(|target| (1..=65535).contains(&target)) => {
                errors.push(invalid(format!("{at}.targetPort"), &port["targetPort"], PORT_RANGE));
            }
            Value::String(target) => port_name(target, &format!("{at}.targetPort"), errors),
            _ => {}
        }
    }
    for (key, value) in fields(&spec["selector"]) {
        text::label_key(key, "spec.selector", errors);
        text::label_value(text_of(value), "spec.selector", errors);
    }
    one_of(spec, "sessionAffinity", "spec", &["ClientIP", "None"], errors);
    one_of(spec, "type", "spec", &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"], errors);
    if kind == "ExternalName" && text_of(&spec["externalName"]).is_empty() {
        errors.push(required("spec.externalName", ""));
    }
    let ip = |spec: &Value| text_of(&spec["clusterIP"]).to_owned();
    if let Some(old) = old.filter(|old| !ip(old).is_empty() && !ip(spec).is_empty() && ip(old) != ip(spec)) {
        let _ = old;
        errors.push(invalid("spec.clusterIPs[0]", &json!([spec["clusterIP"]]), "may not change once set"));
    }
}

pub(super) fn claim(spec: &Value, old: Option<&Value>, errors: &mut Errors) {
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
    let _ = old;
}

pub(super) fn quota(spec: &Value, errors: &mut Errors) {
    for (name, amount) in fields(&spec["hard"]) {
        let at = format!("spec.hard[{name}]");
        text::label_key(name, &at, errors);
        if !name.contains('/') && !is_quota_resource(name) {
            let value = json!(name);
            errors.push(invalid(at.clone(), &value, "must be a standard resource type or fully qualified"));
            errors.push(invalid(at.clone(), &value, "must be a standard resource for quota"));
        }
        let Ok(quantity) = text_of(amount).parse::<Quantity>() else { continue };
        if quantity.is_negative() {
            errors.push(invalid(at.clone(), amount, "must be greater than or equal to 0"));
        }
        let is_count = name.starts_with("count/")
            || ["pods", "services", "secrets", "configmaps", "resourcequotas", "persistentvolumeclaims"]
                .contains(&name.as_str());
        if is_count && quantity.milli_value() % 1000 != 0 {
            errors.push(invalid(at, amount, "must be an integer"));
        }
    }
}

/// `standardQuotaResources`
fn is_quota_resource(name: &str) -> bool {
    const PLAIN: [&str; 11] = [
        "cpu",
        "memory",
        "ephemeral-storage",
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "persistentvolumeclaims",
        "configmaps",
        "storage",
    ];
    let inner = name.strip_prefix("requests.").or_else(|| name.strip_prefix("limits."));
    PLAIN.contains(&inner.unwrap_or(name))
        || ["services.nodeports", "services.loadbalancers"].contains(&name)
        || name.starts_with("hugepages-")
        || inner.is_some_and(|inner| inner.starts_with("hugepages-"))
}

pub(super) fn limit_range(spec: &Value, errors: &mut Errors) {
    let mut kinds: Vec<&str> = Vec::new();
    for (index, limit) in items(&spec["limits"]) {
        let (at, kind) = (format!("spec.limits[{index}]"), text_of(&limit["type"]));
        if kinds.contains(&kind) {
            errors.push(duplicate(format!("{at}.type"), &limit["type"]));
        }
        kinds.push(kind);
        if kind == "Pod" {
            for name in ["default", "defaultRequest"].into_iter().filter(|name| limit[*name].is_object()) {
                errors.push(forbidden(format!("{at}.{name}"), "may not be specified when `type` is 'Pod'"));
            }
        }
        limits(limit, &at, errors);
    }
}

/// The least, the most and the defaults of each resource must be in order.
fn limits(limit: &Value, at: &str, errors: &mut Errors) {
    let sections = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"];
    let mut names: Vec<&String> =
        sections.iter().flat_map(|section| fields(&limit[*section])).map(|(name, _)| name).collect();
    names.sort();
    names.dedup();
    for name in names {
        let amount = |section: &str| text_of(&limit[section][name.as_str()]).parse::<Quantity>().ok();
        let rules = [
            ("min", "max", "min", "min value {} is greater than max value {}"),
            ("min", "defaultRequest", "defaultRequest", "min value {} is greater than default request value {}"),
            ("defaultRequest", "max", "defaultRequest", "default request value {} is greater than max value {}"),
            (
                "defaultRequest",
                "default",
                "defaultRequest",
                "default request value {} is greater than default limit value {}",
            ),
            ("min", "default", "default", "min value {} is greater than default value {}"),
            ("default", "max", "default", "default value {} is greater than max value {}"),
        ];
        for (less, more, named, sentence) in rules {
            let (Some(small), Some(large)) = (amount(less), amount(more)) else { continue };
            if small > large {
                let said = sentence.replacen("{}", &small.to_string(), 1).replacen("{}", &large.to_string(), 1);
                let shown = match named {
                    "default" if less == "min" => small,
                    "default" => large,
                    _ => amount(named).unwrap_or(small),
                };
                errors.push(invalid(format!("{at}.{named}[{name}]"), &json!(shown.to_string()), &said));
            }
        }
        if let Some(ratio) = amount("maxLimitRequestRatio").filter(|ratio| *ratio < Quantity::from_value(1)) {
            let said = format!("ratio {ratio} is less than 1");
            errors.push(invalid(format!("{at}.maxLimitRequestRatio[{name}]"), &json!(ratio.to_string()), &said));
        }
    }
}

/// How many bytes the values of a config map or a secret may have together (`MaxSecretSize`, core/v1).
const MAX_DATA_BYTES: usize = 1 << 20;

/// The keys of a config map or a secret, and how much they hold. `whole` is the field that is then too long.
pub(super) fn keys(object: &Value, whole: &str, errors: &mut Errors) {
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
}

//! ResourceQuotas and LimitRanges (`pkg/apis/core/validation`, 1.36).

use serde_json::{Value, json};
use sk_core::Quantity;

use super::containers::resource_name;
use super::{Errors, duplicate, fields, forbidden, invalid, items, required, text, text_of};

const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
];
/// Scopes that are there or not, and have no values.
const PLAIN_SCOPES: [&str; 5] =
    ["Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "CrossNamespacePodAffinity"];
const UNSUPPORTED: &str = "unsupported scope applied to resource";

pub(super) fn quota(spec: &Value, old: Option<&Value>, errors: &mut Errors) {
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
    scopes(spec, errors);
    scope_selector(spec, errors);
    let set = |spec: &Value| {
        let mut scopes: Vec<String> = items(&spec["scopes"]).map(|(_, scope)| text_of(scope).to_owned()).collect();
        scopes.sort_unstable();
        scopes
    };
    if old.is_some_and(|old| set(old) != set(spec)) {
        errors.push(invalid("spec.scopes", &spec["scopes"], "field is immutable"));
    }
}

/// The resources of a quota that a scope cannot be applied to.
fn beyond_scope<'s>(spec: &'s Value, scope: &'s str) -> impl Iterator<Item = &'s String> {
    let mut names: Vec<&String> = fields(&spec["hard"]).map(|(name, _)| name).collect();
    names.sort_unstable();
    names.into_iter().filter(move |name| is_quota_resource(name) && !is_in_scope(name, scope))
}

fn scopes(spec: &Value, errors: &mut Errors) {
    let (at, all) = ("spec.scopes", &spec["scopes"]);
    for (_, scope) in items(all) {
        if !SCOPES.contains(&text_of(scope)) {
            errors.push(invalid(at, all, "unsupported scope"));
        }
        errors.extend(beyond_scope(spec, text_of(scope)).map(|_| invalid(at, all, UNSUPPORTED)));
    }
    let names: Vec<&str> = items(all).map(|(_, scope)| text_of(scope)).collect();
    conflicting(&names, at, all, errors);
}

fn scope_selector(spec: &Value, errors: &mut Errors) {
    let at = "spec.scopeSelector.matchExpressions";
    let all = &spec["scopeSelector"]["matchExpressions"];
    let in_go =
        |one: &Value| json!({"ScopeName": one["scopeName"], "Operator": one["operator"], "Values": one["values"]});
    let shown = json!({"MatchExpressions": items(all).map(|(_, one)| in_go(one)).collect::<Vec<_>>()});
    for (_, one) in items(all) {
        let (scope, operator) = (text_of(&one["scopeName"]), text_of(&one["operator"]));
        if !SCOPES.contains(&scope) {
            errors.push(invalid(format!("{at}.scopeName"), &one["scopeName"], "unsupported scope"));
        }
        errors.extend(beyond_scope(spec, scope).map(|_| invalid(at, &shown, UNSUPPORTED)));
        if PLAIN_SCOPES.contains(&scope) && operator != "Exists" {
            let why = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
                       ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or \
                       ResourceQuotaScopeCrossNamespacePodAffinity";
            errors.push(invalid(format!("{at}.operator"), &one["operator"], why));
        }
        let has_values = one["values"].as_array().is_some_and(|values| !values.is_empty());
        match operator {
            "In" | "NotIn" if !has_values => {
                let why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                errors.push(required(format!("{at}.values"), why));
            }
            "Exists" | "DoesNotExist" if has_values => {
                let why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
                errors.push(invalid(format!("{at}.values"), &one["values"], why));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => errors.push(invalid(format!("{at}.operator"), &one["operator"], "not a valid selector operator")),
        }
    }
    let names: Vec<&str> = items(all).map(|(_, one)| text_of(&one["scopeName"])).collect();
    conflicting(&names, at, &spec["scopes"], errors);
}

fn conflicting(scopes: &[&str], at: &str, shown: &Value, errors: &mut Errors) {
    for pair in [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]] {
        if pair.iter().all(|scope| scopes.contains(scope)) {
            errors.push(invalid(at, shown, "conflicting scopes"));
        }
    }
}

/// `IsResourceQuotaScopeValidForResource`
fn is_in_scope(name: &str, scope: &str) -> bool {
    let is_of_pods = name == "pods"
        || ["cpu", "memory", "ephemeral-storage"].contains(&amount_name(name))
        || amount_name(name).starts_with("hugepages-");
    match scope {
        "Terminating" | "NotTerminating" | "NotBestEffort" | "PriorityClass" | "CrossNamespacePodAffinity" => {
            is_of_pods
        }
        "BestEffort" => name == "pods",
        "VolumeAttributesClass" => ["persistentvolumeclaims", "requests.storage"].contains(&name),
        _ => true,
    }
}

/// The resource of `requests.cpu`.
fn amount_name(name: &str) -> &str {
    name.strip_prefix("requests.").or_else(|| name.strip_prefix("limits.")).unwrap_or(name)
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
    PLAIN.contains(&amount_name(name))
        || ["services.nodeports", "services.loadbalancers"].contains(&name)
        || amount_name(name).starts_with("hugepages-")
}

pub(super) fn limit_range(spec: &Value, errors: &mut Errors) {
    let mut kinds: Vec<&str> = Vec::new();
    for (index, limit) in items(&spec["limits"]) {
        let (at, kind) = (format!("spec.limits[{index}]"), text_of(&limit["type"]));
        limit_type(kind, &format!("{at}.type"), errors);
        if kinds.contains(&kind) {
            errors.push(duplicate(format!("{at}.type"), &limit["type"]));
        }
        kinds.push(kind);
        names(limit, ["max", "min"], kind, &at, errors);
        if kind == "Pod" {
            for name in ["default", "defaultRequest"].into_iter().filter(|name| limit[*name].is_object()) {
                errors.push(forbidden(format!("{at}.{name}"), "may not be specified when `type` is 'Pod'"));
            }
        } else {
            names(limit, ["default", "defaultRequest"], kind, &at, errors);
        }
        let has_storage = |section: &str| !limit[section]["storage"].is_null();
        if kind == "PersistentVolumeClaim" && !has_storage("min") && !has_storage("max") {
            let why = "either minimum or maximum storage value is required, but neither was provided";
            errors.push(required(format!("{at}.limits"), why));
        }
        names(limit, ["maxLimitRequestRatio"], kind, &at, errors);
        limits(limit, &at, errors);
    }
}

fn limit_type(kind: &str, at: &str, errors: &mut Errors) {
    let before = errors.len();
    text::label_key(kind, at, errors);
    let is_standard = kind.contains('/') || ["Pod", "Container", "PersistentVolumeClaim"].contains(&kind);
    if errors.len() == before && !is_standard {
        errors.push(invalid(at, &json!(kind), "must be a standard limit type or fully qualified"));
    }
}

/// The names of the resources in some sections of a limit.
fn names<const N: usize>(limit: &Value, sections: [&str; N], kind: &str, at: &str, errors: &mut Errors) {
    for section in sections {
        for (name, _) in fields(&limit[section]) {
            let at = format!("{at}.{section}");
            if ["Pod", "Container"].contains(&kind) {
                resource_name(name, &at, errors);
            } else {
                text::label_key(name, &format!("{at}[{name}]"), errors);
            }
        }
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
        let ratio_at = format!("{at}.maxLimitRequestRatio[{name}]");
        let Some(ratio) = amount("maxLimitRequestRatio") else { continue };
        if ratio < Quantity::from_value(1) {
            errors.push(invalid(ratio_at.clone(), &json!(ratio.to_string()), &format!("ratio {ratio} is less than 1")));
        }
        if let (Some(least), Some(most)) = (amount("min"), amount("max")) {
            let (least, most) = (least.milli_value() as f64, most.milli_value() as f64);
            if ratio.milli_value() as f64 / 1000.0 > most / least {
                let said = format!("ratio {ratio} is greater than max/min = {:.6}", most / least);
                errors.push(invalid(ratio_at, &json!(ratio.to_string()), &said));
            }
        }
    }
}

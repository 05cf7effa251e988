//! HorizontalPodAutoscalers: their bounds, metrics and behaviour (`pkg/apis/autoscaling/validation`, 1.36).

use serde_json::Value;
use sk_core::Quantity;

use super::{Errors, forbidden, invalid, items, not_supported, required, text, text_of};

/// The field of each metric type, in the order in which the server checks them.
const SOURCES: [(&str, &str); 5] = [
    ("Object", "object"),
    ("External", "external"),
    ("Pods", "pods"),
    ("Resource", "resource"),
    ("ContainerResource", "containerResource"),
];
/// `MaxStabilizationWindowSeconds`
const MAX_WINDOW_SECS: i64 = 3600;
/// `MaxPeriodSeconds`
const MAX_PERIOD_SECS: i64 = 1800;

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
    reference(&spec["scaleTargetRef"], "spec.scaleTargetRef", errors);
    for (index, metric) in items(&spec["metrics"]) {
        metric_of(metric, &format!("spec.metrics[{index}]"), errors);
    }
    let scales_to_zero = |metric: &Value| ["Object", "External"].contains(&text_of(&metric["type"]));
    if min == Some(0) && !items(&spec["metrics"]).any(|(_, metric)| scales_to_zero(metric)) {
        let why = "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.push(forbidden("spec.metrics", why));
    }
    for name in ["scaleUp", "scaleDown"] {
        rules(&spec["behavior"][name], &format!("spec.behavior.{name}"), errors);
    }
}

fn reference(of: &Value, at: &str, errors: &mut Errors) {
    for name in ["kind", "name"] {
        if text_of(&of[name]).is_empty() {
            errors.push(required(format!("{at}.{name}"), ""));
        }
    }
}

fn metric_of(metric: &Value, at: &str, errors: &mut Errors) {
    let mut words: Vec<&str> = SOURCES.iter().map(|(word, _)| *word).collect();
    words.sort_unstable();
    let kind = text_of(&metric["type"]);
    if kind.is_empty() {
        errors.push(required(format!("{at}.type"), "must specify a metric source type"));
    }
    let unknown = || not_supported(format!("{at}.type"), &Value::from(kind), &words);
    let expected = SOURCES.iter().find(|(word, _)| *word == kind).map(|(_, name)| *name);
    if expected.is_none() {
        errors.push(unknown());
    }
    let there: Vec<&str> = SOURCES.iter().map(|(_, name)| *name).filter(|name| metric[*name].is_object()).collect();
    if let Some(first) = there.first() {
        source(&metric[*first], first, &format!("{at}.{first}"), errors);
    }
    match expected {
        Some(name) if metric[name].is_null() => {
            errors.push(required(format!("{at}.{name}"), "must populate information for the given metric source"));
        }
        Some(_) => {}
        None => errors.push(unknown()),
    }
    if there.len() > 1 {
        for name in there.iter().filter(|name| Some(**name) != expected) {
            errors.push(forbidden(format!("{at}.{name}"), "must populate the given metric source only"));
        }
    }
}

/// What a metric measures, and how much of it is wanted.
fn source(of: &Value, kind: &str, at: &str, errors: &mut Errors) {
    let is_of_resource = ["resource", "containerResource"].contains(&kind);
    if kind == "object" {
        reference(&of["describedObject"], &format!("{at}.describedObject"), errors);
    }
    if is_of_resource && text_of(&of["name"]).is_empty() {
        errors.push(required(format!("{at}.name"), "must specify a resource name"));
    }
    if kind == "containerResource" {
        match text_of(&of["container"]) {
            "" => errors.push(required(format!("{at}.container"), "must specify a container")),
            name => text::dns_label(name, &format!("{at}.container"), errors),
        }
    }
    if !is_of_resource && text_of(&of["metric"]["name"]).is_empty() {
        errors.push(required(format!("{at}.metric.name"), "must specify a metric name"));
    }
    let (wanted, at) = (&of["target"], format!("{at}.target"));
    target(wanted, &at, errors);
    let has = |name: &str| !wanted[name].is_null();
    let needed = |name: &str, why: &str, errors: &mut Errors| errors.push(required(format!("{at}.{name}"), why));
    match kind {
        "object" if !has("value") && !has("averageValue") => {
            needed("averageValue", "must set either a target value or averageValue", errors);
        }
        "external" if !has("value") && !has("averageValue") => {
            needed("averageValue", "must set either a target value for metric or a per-pod target", errors);
        }
        "external" if has("value") && has("averageValue") => {
            let why = "may not set both a target value for metric and a per-pod target";
            errors.push(forbidden(format!("{at}.value"), why));
        }
        "pods" if !has("averageValue") => {
            needed("averageValue", "must specify a positive target averageValue", errors);
        }
        _ if is_of_resource && !has("averageUtilization") && !has("averageValue") => {
            needed("averageUtilization", "must set either a target raw value or a target utilization", errors);
        }
        _ if is_of_resource && has("averageUtilization") && has("averageValue") => {
            let why = "may not set both a target raw value and a target utilization";
            errors.push(forbidden(format!("{at}.averageValue"), why));
        }
        _ => {}
    }
}

fn target(target: &Value, at: &str, errors: &mut Errors) {
    let kind = text_of(&target["type"]);
    if kind.is_empty() {
        errors.push(required(format!("{at}.type"), "must specify a metric target type"));
    }
    if !["Utilization", "Value", "AverageValue"].contains(&kind) {
        let why = "must be either Utilization, Value, or AverageValue";
        errors.push(invalid(format!("{at}.type"), &Value::from(kind), why));
    }
    for name in ["value", "averageValue"] {
        let is_positive = |amount: Quantity| amount > Quantity::from_value(0);
        if text_of(&target[name]).parse().is_ok_and(|amount| !is_positive(amount)) {
            errors.push(invalid(format!("{at}.{name}"), &target[name], "must be positive"));
        }
    }
    if let Some(share) = target["averageUtilization"].as_i64().filter(|share| *share < 1) {
        errors.push(invalid(format!("{at}.averageUtilization"), &share.into(), "must be greater than 0"));
    }
}

fn rules(rules: &Value, at: &str, errors: &mut Errors) {
    if !rules.is_object() {
        return;
    }
    let window = rules["stabilizationWindowSeconds"].as_i64().unwrap_or(0);
    let window_at = || format!("{at}.stabilizationWindowSeconds");
    if window < 0 {
        errors.push(invalid(window_at(), &window.into(), "must be greater than or equal to zero"));
    }
    if window > MAX_WINDOW_SECS {
        errors.push(invalid(window_at(), &window.into(), &format!("must be less than or equal to {MAX_WINDOW_SECS}")));
    }
    let (select, words) = (&rules["selectPolicy"], ["Disabled", "Max", "Min"]);
    if !select.is_null() && !words.contains(&text_of(select)) {
        errors.push(not_supported(format!("{at}.selectPolicy"), select, &words));
    }
    if rules["policies"].as_array().is_none_or(Vec::is_empty) {
        errors.push(required(format!("{at}.policies"), "must specify at least one Policy"));
    }
    for (index, policy) in items(&rules["policies"]) {
        policy_of(policy, &format!("{at}.policies[{index}]"), errors);
    }
    if text_of(&rules["tolerance"]).parse().is_ok_and(|amount: Quantity| amount.is_negative()) {
        errors.push(invalid(format!("{at}.tolerance"), &rules["tolerance"], "must be greater than or equal to 0"));
    }
}

fn policy_of(policy: &Value, at: &str, errors: &mut Errors) {
    if !["Percent", "Pods"].contains(&text_of(&policy["type"])) {
        errors.push(not_supported(format!("{at}.type"), &policy["type"], &["Percent", "Pods"]));
    }
    for name in ["value", "periodSeconds"] {
        let number = policy[name].as_i64().unwrap_or(0);
        if number <= 0 {
            errors.push(invalid(format!("{at}.{name}"), &number.into(), "must be greater than zero"));
        }
    }
    if let Some(period) = policy["periodSeconds"].as_i64().filter(|period| *period > MAX_PERIOD_SECS) {
        let why = format!("must be less than or equal to {MAX_PERIOD_SECS}");
        errors.push(invalid(format!("{at}.periodSeconds"), &period.into(), &why));
    }
}

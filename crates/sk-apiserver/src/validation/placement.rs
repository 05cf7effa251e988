//! The fields that the scheduler reads: tolerations, scheduling gates, topology spread constraints, node affinity and pod
//! affinity (`ValidateTolerations`, `validateSchedulingGates`, `validateTopologySpreadConstraints`, `validateAffinity`, 1.36).

use serde_json::Value;

use super::{Errors, duplicate, fields, forbidden, invalid, items, not_supported, one_of, required, text, text_of};

pub(super) fn tolerations(tolerations: &Value, at: &str, errors: &mut Errors) {
    for (index, toleration) in items(tolerations) {
        let at = format!("{at}[{index}]");
        let (key, value) = (text_of(&toleration["key"]), text_of(&toleration["value"]));
        let (operator, effect) = (text_of(&toleration["operator"]), text_of(&toleration["effect"]));
        let said = |name: &str| Value::from(text_of(&toleration[name]));
        if !key.is_empty() {
            text::label_key(key, &format!("{at}.key"), errors);
        }
        if key.is_empty() && operator != "Exists" {
            let why = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.push(invalid(format!("{at}.operator"), &said("operator"), why));
        }
        if toleration["tolerationSeconds"].is_i64() && effect != "NoExecute" {
            let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.push(invalid(format!("{at}.effect"), &said("effect"), why));
        }
        match operator {
            "" | "Equal" => text::label_value(value, &format!("{at}.operator"), errors),
            "Exists" if !value.is_empty() => {
                let why = "value must be empty when `operator` is 'Exists'";
                errors.push(invalid(format!("{at}.operator"), &said("value"), why));
            }
            "Exists" => {}
            "Lt" | "Gt" => {
                let words = ["Equal", "Exists", "Lt", "Gt"];
                errors.push(not_supported(format!("{at}.operator"), &said("operator"), &words));
            }
            _ => errors.push(not_supported(format!("{at}.operator"), &said("operator"), &["Equal", "Exists"])),
        }
        if !effect.is_empty() {
            one_of(toleration, "effect", &at, &["NoSchedule", "PreferNoSchedule", "NoExecute"], errors);
        }
    }
}

pub(super) fn gates(gates: &Value, at: &str, errors: &mut Errors) {
    let mut names: Vec<&str> = Vec::new();
    for (index, gate) in items(gates) {
        let (field, name) = (format!("{at}[{index}]"), text_of(&gate["name"]));
        text::label_key(name, &format!("{field}.name"), errors);
        if names.contains(&name) {
            errors.push(duplicate(field, &gate["name"]));
        }
        names.push(name);
    }
}

pub(super) fn spread(constraints: &Value, at: &str, errors: &mut Errors) {
    let later = |constraints: &Value, index: usize| {
        let pairs: Vec<String> = items(constraints).skip(index + 1).map(|(_, one)| spread_pair(one)).collect();
        pairs.into_iter()
    };
    for (index, constraint) in items(constraints) {
        let at = format!("{at}[{index}]");
        if let Some(skew) = constraint["maxSkew"].as_i64().filter(|skew| *skew <= 0) {
            errors.push(invalid(format!("{at}.maxSkew"), &skew.into(), "must be greater than zero"));
        }
        if text_of(&constraint["topologyKey"]).is_empty() {
            errors.push(required(format!("{at}.topologyKey"), "can not be empty"));
        } else {
            text::label_key(text_of(&constraint["topologyKey"]), &format!("{at}.topologyKey"), errors);
        }
        let action = &constraint["whenUnsatisfiable"];
        if !["DoNotSchedule", "ScheduleAnyway"].contains(&text_of(action)) {
            let words = ["DoNotSchedule", "ScheduleAnyway"];
            errors.push(not_supported(format!("{at}.whenUnsatisfiable"), &Value::from(text_of(action)), &words));
        }
        let pair = spread_pair(constraint);
        if later(constraints, index).any(|known| known == pair) {
            errors.push(duplicate(format!("{at}.{{topologyKey, whenUnsatisfiable}}"), &Value::from(pair)));
        }
        if let Some(domains) = constraint["minDomains"].as_i64() {
            if domains <= 0 {
                errors.push(invalid(format!("{at}.minDomains"), &domains.into(), "must be greater than zero"));
            }
            if text_of(action) == "ScheduleAnyway" {
                let why = "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway";
                errors.push(invalid(format!("{at}.minDomains"), &domains.into(), why));
            }
        }
        for name in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            one_of(constraint, name, &at, &["Honor", "Ignore"], errors);
        }
        let has_keys = constraint["matchLabelKeys"].as_array().is_some_and(|keys| !keys.is_empty());
        if has_keys && constraint["labelSelector"].is_null() {
            let why = "must not be specified when labelSelector is not set";
            errors.push(forbidden(format!("{at}.matchLabelKeys"), why));
        }
        label_selector(&constraint["labelSelector"], &format!("{at}.labelSelector"), errors);
    }
}

fn spread_pair(constraint: &Value) -> String {
    format!("{{{}, {}}}", text_of(&constraint["topologyKey"]), text_of(&constraint["whenUnsatisfiable"]))
}

pub(super) fn affinity(affinity: &Value, at: &str, errors: &mut Errors) {
    let node = &affinity["nodeAffinity"];
    let required_terms = &node["requiredDuringSchedulingIgnoredDuringExecution"];
    if required_terms.is_object() {
        let at = format!("{at}.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms");
        if required_terms["nodeSelectorTerms"].as_array().is_none_or(Vec::is_empty) {
            errors.push(required(&at, "must have at least one node selector term"));
        }
        for (index, term) in items(&required_terms["nodeSelectorTerms"]) {
            node_term(term, &format!("{at}[{index}]"), errors);
        }
    }
    for (index, preferred) in items(&node["preferredDuringSchedulingIgnoredDuringExecution"]) {
        let at = format!("{at}.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[{index}]");
        weight(preferred, &at, errors);
        node_term(&preferred["preference"], &format!("{at}.preference"), errors);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let required_at = format!("{at}.{kind}.requiredDuringSchedulingIgnoredDuringExecution");
        for (index, term) in items(&affinity[kind]["requiredDuringSchedulingIgnoredDuringExecution"]) {
            pod_term(term, &format!("{required_at}[{index}]"), errors);
        }
        let preferred_at = format!("{at}.{kind}.preferredDuringSchedulingIgnoredDuringExecution");
        for (index, preferred) in items(&affinity[kind]["preferredDuringSchedulingIgnoredDuringExecution"]) {
            let at = format!("{preferred_at}[{index}]");
            weight(preferred, &at, errors);
            pod_term(&preferred["podAffinityTerm"], &format!("{at}.podAffinityTerm"), errors);
        }
    }
}

fn weight(preferred: &Value, at: &str, errors: &mut Errors) {
    if let Some(weight) = preferred["weight"].as_i64().filter(|weight| !(1..=100).contains(weight)) {
        errors.push(invalid(format!("{at}.weight"), &weight.into(), "must be in the range 1-100"));
    }
}

fn node_term(term: &Value, at: &str, errors: &mut Errors) {
    for (index, expression) in items(&term["matchExpressions"]) {
        let at = format!("{at}.matchExpressions[{index}]");
        operator(expression, &at, true, errors);
        text::label_key(text_of(&expression["key"]), &format!("{at}.key"), errors);
    }
    for (index, expression) in items(&term["matchFields"]) {
        node_field(expression, &format!("{at}.matchFields[{index}]"), errors);
    }
}

/// `metadata.name` is the only field that a node selector can match (`ValidateNodeFieldSelectorRequirement`).
fn node_field(expression: &Value, at: &str, errors: &mut Errors) {
    match text_of(&expression["operator"]) {
        "In" | "NotIn" => {
            if expression["values"].as_array().map_or(0, Vec::len) != 1 {
                let why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
                errors.push(required(format!("{at}.values"), why));
            }
        }
        _ => errors.push(invalid(format!("{at}.operator"), &expression["operator"], "not a valid selector operator")),
    }
    if expression["key"] == "metadata.name" {
        for (index, name) in items(&expression["values"]) {
            text::dns_subdomain(text_of(name), &format!("{at}.values[{index}]"), errors);
        }
    } else {
        errors.push(invalid(format!("{at}.key"), &expression["key"], "not a valid field selector key"));
    }
}

fn pod_term(term: &Value, at: &str, errors: &mut Errors) {
    label_selector(&term["labelSelector"], &format!("{at}.labelSelector"), errors);
    for (_, namespace) in items(&term["namespaces"]) {
        text::dns_label(text_of(namespace), &format!("{at}.namespace"), errors);
    }
    if text_of(&term["topologyKey"]).is_empty() {
        errors.push(required(format!("{at}.topologyKey"), "can not be empty"));
    }
    text::label_key(text_of(&term["topologyKey"]), &format!("{at}.topologyKey"), errors);
}

/// The operator of a requirement and how many values it takes. Nodes are also selected by numbers, with `Gt` and `Lt`.
fn operator(expression: &Value, at: &str, has_numbers: bool, errors: &mut Errors) {
    let values = expression["values"].as_array().map_or(0, Vec::len);
    match text_of(&expression["operator"]) {
        "In" | "NotIn" if values == 0 => {
            errors.push(required(format!("{at}.values"), "must be specified when `operator` is 'In' or 'NotIn'"));
        }
        "Exists" | "DoesNotExist" if values > 0 => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(forbidden(format!("{at}.values"), why));
        }
        "Gt" | "Lt" if has_numbers && values != 1 => {
            let why = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            errors.push(required(format!("{at}.values"), why));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        "Gt" | "Lt" if has_numbers => {}
        _ => errors.push(invalid(format!("{at}.operator"), &expression["operator"], "not a valid selector operator")),
    }
}

/// `ValidateLabelSelector`
pub(super) fn label_selector(selector: &Value, at: &str, errors: &mut Errors) {
    for (key, value) in fields(&selector["matchLabels"]) {
        text::label_key(key, &format!("{at}.matchLabels"), errors);
        text::label_value(text_of(value), &format!("{at}.matchLabels"), errors);
    }
    for (index, expression) in items(&selector["matchExpressions"]) {
        let at = format!("{at}.matchExpressions[{index}]");
        operator(expression, &at, false, errors);
        text::label_key(text_of(&expression["key"]), &format!("{at}.key"), errors);
        for (place, value) in items(&expression["values"]) {
            text::label_value(text_of(value), &format!("{at}.values[{place}]"), errors);
        }
    }
}

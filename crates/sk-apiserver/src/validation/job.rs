//! Jobs: pod failure policy, success policy and `managedBy` (`pkg/apis/batch/validation`, 1.36). The other rules bound
//! what the Job controller has to do and are part of the kind (`kinds::invalid_job`).

use serde_json::{Value, json};

use super::{Errors, invalid, items, not_supported, text, text_of};

/// `supportedPodFailurePolicyActions`
const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];

/// The policies of a Job's spec, standing at `at`.
pub(super) fn policies(spec: &Value, at: &str, errors: &mut Errors) {
    managed_by(&spec["managedBy"], &format!("{at}.managedBy"), errors);
    for (index, rule) in items(&spec["podFailurePolicy"]["rules"]) {
        let at = format!("{at}.podFailurePolicy.rules[{index}]");
        if !ACTIONS.contains(&text_of(&rule["action"])) {
            errors.push(not_supported(format!("{at}.action"), &rule["action"], &ACTIONS));
        }
        exit_codes(spec, &rule["onExitCodes"], &format!("{at}.onExitCodes"), errors);
    }
    for (index, rule) in items(&spec["successPolicy"]["rules"]) {
        let (at, indexes) = (format!("{at}.successPolicy.rules[{index}].succeededIndexes"), &rule["succeededIndexes"]);
        let completions = spec["completions"].as_i64().unwrap_or(0);
        if let Some(Err(why)) = indexes.as_str().map(|indexes| check_indexes(indexes, completions)) {
            errors.push(invalid(at, indexes, &format!("error parsing succeededIndexes: {why}")));
        }
    }
    let replacement = &spec["podReplacementPolicy"];
    if spec["podFailurePolicy"].is_object() && *replacement == "TerminatingOrFailed" {
        errors.push(not_supported(format!("{at}.podReplacementPolicy"), replacement, &["Failed"]));
    }
}

fn managed_by(name: &Value, at: &str, errors: &mut Errors) {
    let Some(text) = name.as_str() else { return };
    match text.split_once('/') {
        Some((domain, path)) if !domain.is_empty() && !path.is_empty() => text::dns_subdomain(domain, at, errors),
        _ => errors.push(invalid(at, name, "must be a domain-prefixed path (such as \"acme.io/foo\")")),
    }
}

fn exit_codes(spec: &Value, codes: &Value, at: &str, errors: &mut Errors) {
    let template = &spec["template"]["spec"];
    let all = [&template["containers"], &template["initContainers"]];
    let is_named = |name: &str| all.into_iter().flat_map(items).any(|(_, container)| container["name"] == name);
    if let Some(name) = codes["containerName"].as_str().filter(|name| !is_named(name)) {
        let why = "must be one of the container or initContainer names in the pod template";
        errors.push(invalid(format!("{at}.containerName"), &json!(name), why));
    }
    let numbers: Vec<i64> = items(&codes["values"]).filter_map(|(_, code)| code.as_i64()).collect();
    for (index, code) in numbers.iter().enumerate() {
        let field = format!("{at}.values[{index}]");
        if codes["operator"] == "In" && *code == 0 {
            errors.push(invalid(field.clone(), &json!(0), "must not be 0 for the In operator"));
        }
        if numbers[..index].contains(code) {
            errors.push(super::duplicate(field, &json!(code)));
        }
    }
    if !numbers.is_sorted() {
        errors.push(invalid(format!("{at}.values"), &codes["values"], "must be ordered"));
    }
}

/// Intervals such as `0,2-4`, in order and within the completions (`validateIndexesFormat`).
fn check_indexes(text: &str, completions: i64) -> Result<(), String> {
    let mut last: Option<i64> = None;
    for interval in text.split(',').filter(|_| !text.is_empty()) {
        let limits: Vec<&str> = interval.split('-').collect();
        if limits.len() > 2 {
            return Err(format!(
                "the fragment {interval:?} violates the requirement that an index interval can have at most two parts separated by '-'"
            ));
        }
        let mut numbers = Vec::new();
        for limit in &limits {
            let number = limit.parse::<i64>();
            let number = number.map_err(|_| format!("cannot convert string to integer for index: {limit:?}"))?;
            if number >= completions {
                return Err(format!("too large index: {limit:?}"));
            }
            numbers.push(number);
        }
        let (first, end) = (numbers[0], numbers[numbers.len() - 1]);
        if numbers.len() == 2 && first >= end {
            return Err(format!("non-increasing order, previous: {first}, current: {end}"));
        }
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(format!("non-increasing order, previous: {last}, current: {first}"));
        }
        last = Some(end);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check_indexes;

    #[test]
    fn indexes_are_in_order_and_within_the_completions() {
        assert_eq!(check_indexes("0,2-4", 5), Ok(()));
        assert_eq!(check_indexes("", 5), Ok(()));
        for (wrong, why) in [
            ("5", "too large index: \"5\""),
            ("1,1", "non-increasing order, previous: 1, current: 1"),
            ("3-2", "non-increasing order, previous: 3, current: 2"),
            ("x", "cannot convert string to integer for index: \"x\""),
        ] {
            assert_eq!(check_indexes(wrong, 5), Err(why.to_owned()));
        }
    }
}

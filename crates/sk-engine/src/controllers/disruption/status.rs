//! What a budget reports: its status, and how Go prints its selector in an Event (`pkg/apis/policy`, 1.36).

use serde_json::{Map, Value, json};
use sk_apiserver::Object;
use sk_core::SimTime;

pub(super) fn status(
    object: &Object,
    known: &Value,
    [healthy, desired, expected, allowed]: [i32; 4],
    disrupted: &Map<String, Value>,
    now: SimTime,
) -> Value {
    let (is_allowed, reason) = if allowed > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    let mut status = json!({
        "observedGeneration": object.meta.generation, "currentHealthy": healthy, "desiredHealthy": desired,
        "expectedPods": expected, "disruptionsAllowed": allowed,
        "conditions": [condition(object, known, is_allowed, reason, "", now)],
    });
    if !disrupted.is_empty() {
        status["disruptedPods"] = Value::Object(disrupted.clone());
    }
    status
}

/// Where the size is not known, nothing may be disrupted (`failSafe`).
pub(super) fn unknown_size(object: &Object, known: &Value, why: &str, now: SimTime) -> Value {
    let mut status = if known.is_object() { known.clone() } else { json!({}) };
    for count in ["currentHealthy", "desiredHealthy", "expectedPods"] {
        if status.get(count).is_none() {
            status[count] = json!(0);
        }
    }
    status["disruptionsAllowed"] = json!(0);
    // It says which generation the counts are of, and those are as they were.
    let mut failed = condition(object, known, "False", "SyncFailed", why, now);
    match known.get("observedGeneration") {
        Some(observed) => failed["observedGeneration"] = observed.clone(),
        None => drop(failed.as_object_mut().and_then(|failed| failed.remove("observedGeneration"))),
    }
    status["conditions"] = json!([failed]);
    status
}

fn condition(object: &Object, known: &Value, status: &str, reason: &str, message: &str, now: SimTime) -> Value {
    let before = known.pointer("/conditions/0").filter(|before| before["status"] == status);
    let since = before.map_or_else(|| json!(now.to_rfc3339_secs()), |before| before["lastTransitionTime"].clone());
    json!({
        "type": "DisruptionAllowed", "status": status, "reason": reason, "message": message,
        "lastTransitionTime": since, "observedGeneration": object.meta.generation,
    })
}

/// A label selector as Go prints it.
pub(super) fn in_go(selector: &Value) -> String {
    let none = Map::new();
    let labels = selector.get("matchLabels").and_then(Value::as_object).unwrap_or(&none);
    let labels = labels.iter().map(|(key, value)| format!("{key}: {},", value.as_str().unwrap_or_default()));
    let expressions = selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten();
    let text = |of: &Value, name: &str| of.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let expressions = expressions.map(|one| {
        let values = one.get("values").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let values = values.collect::<Vec<_>>().join(" ");
        format!(
            "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{values}],}},",
            text(one, "key"),
            text(one, "operator")
        )
    });
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{}}},MatchExpressions:[]LabelSelectorRequirement{{{}}},}}",
        labels.collect::<String>(),
        expressions.collect::<String>()
    )
}

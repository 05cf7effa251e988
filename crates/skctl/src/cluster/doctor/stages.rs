//! Finds KWOK stages that are not SimKube's and select the pods of simulations.
//!
//! KWOK's own `stage-fast` selects every pod: it would start and complete replayed pods immediately, and no figure of
//! such a run would be true. A stage is tested by matching its selector against pods as the driver creates them. Of jq
//! expressions only plain paths are evaluated; everything else counts as a match, because a false warning costs a look
//! and a missed one costs the run.

use kube::api::{Api, DynamicObject, ListParams};
use serde_json::{Value, json};
use sk_api::simulation::names;

use super::Finding;
use crate::cluster::kinds::Kinds;
use crate::cluster::{Cluster, words};

/// Stages that are examined; KWOK has seven of its own, we have as many.
const MAX_STAGES: u32 = 500;

/// Looks for other Stages that select a simulation's pods.
pub(super) async fn examine(cluster: &Cluster, ours: &[Value]) -> Option<Finding> {
    let kind = "kwok.x-k8s.io/v1alpha1.Stage".parse().ok()?;
    let api: Api<DynamicObject> = Kinds::of(cluster).api_everywhere(&kind).await.ok()?;
    let listed = match api.list(&ListParams::default().limit(MAX_STAGES)).await {
        Ok(listed) => listed.items,
        Err(error) => {
            let what = format!("cannot be listed: {}", words(&error));
            return Some(Finding::warn("other stages", what, "it takes `list` on stages.kwok.x-k8s.io"));
        }
    };
    let stages: Vec<Value> = listed.iter().filter_map(|stage| serde_json::to_value(stage).ok()).collect();
    let meddling = meddling(&stages, ours);
    if meddling.is_empty() {
        return Some(Finding::ok("other stages", "no other Stage selects the pods of simulations"));
    }
    let what = format!(
        "{} (KWOK's own, most likely `stage-fast`) select the pods of simulations too, and would start and complete them at once",
        meddling.join(", ")
    );
    let advice = format!(
        "kubectl delete stages.kwok.x-k8s.io {}; or, if other pods need them, add to each selector: \
         {{jq: {{key: '.metadata.labels[\"{}\"]', operator: DoesNotExist}}}}",
        meddling.join(" "),
        names::SIMULATION_LABEL
    );
    Some(Finding::fail("other stages", what, advice))
}

/// The names of the stages that are not ours and would take one of our pods.
fn meddling(stages: &[Value], ours: &[Value]) -> Vec<String> {
    let name = |stage: &Value| stage["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let ours: Vec<String> = ours.iter().map(name).collect();
    let others = stages.iter().filter(|stage| !ours.contains(&name(stage)));
    let takes_ours = |stage: &&Value| {
        let spec = &stage["spec"];
        spec["resourceRef"]["kind"] == "Pod" && pods().iter().any(|pod| matches(&spec["selector"], pod))
    };
    others.filter(takes_ours).map(name).collect()
}

/// A replayed pod as it is in the course of its life: bound, running, deleted.
fn pods() -> [Value; 3] {
    let pod = |status: Value| {
        json!({
            "metadata": {
                "name": "a", "namespace": "virtual-a",
                "labels": {names::SIMULATION_LABEL: "a", names::VIRTUAL_LABEL: "true"},
                "annotations": {names::CREATE_DELAY_ANNOTATION: "0ms", names::READY_DELAY_ANNOTATION: "0ms"},
                "ownerReferences": [{"kind": "ReplicaSet"}],
            },
            "spec": {"nodeName": "a", "containers": [{"name": "a"}]},
            "status": status,
        })
    };
    let mut deleted = pod(json!({"phase": "Running"}));
    deleted["metadata"]["deletionTimestamp"] = json!("2026-11-10T14:00:00Z");
    [pod(json!({"phase": "Pending"})), pod(json!({"phase": "Running", "podIP": "10.0.0.1"})), deleted]
}

/// Could a selector mean this pod?
fn matches(selector: &Value, pod: &Value) -> bool {
    let has = |wanted: &Value, there: &Value| {
        wanted.as_object().is_none_or(|wanted| wanted.iter().all(|(key, value)| there.get(key) == Some(value)))
    };
    has(&selector["matchLabels"], &pod["metadata"]["labels"])
        && has(&selector["matchAnnotations"], &pod["metadata"]["annotations"])
        && selector["matchExpressions"].as_array().into_iter().flatten().all(|expression| holds(expression, pod))
}

/// Could an expression hold of this pod? Older stages have it without `jq` around it.
fn holds(expression: &Value, pod: &Value) -> bool {
    let expression = expression.get("jq").unwrap_or(expression);
    let Some(pointer) = expression["key"].as_str().and_then(pointer) else { return true };
    let found = pod.pointer(&pointer).filter(|value| !value.is_null());
    let is_listed = || {
        let text = found.and_then(Value::as_str);
        text.is_some() && expression["values"].as_array().into_iter().flatten().any(|value| value.as_str() == text)
    };
    match expression["operator"].as_str() {
        Some("Exists") => found.is_some(),
        Some("DoesNotExist") => found.is_none(),
        Some("In") => is_listed(),
        Some("NotIn") => !is_listed(),
        _ => true,
    }
}

/// The JSON pointer of a plain path such as `.metadata.labels["a/b"]`; `None` for anything cleverer.
fn pointer(path: &str) -> Option<String> {
    let mut pointer = String::new();
    let mut rest = path.trim();
    while !rest.is_empty() {
        let key;
        if let Some(quoted) = rest.strip_prefix("[\"").or_else(|| rest.strip_prefix(".[\"")) {
            (key, rest) = quoted.split_once("\"]")?;
        } else {
            let plain = rest.strip_prefix('.')?;
            let end = plain.find(|char: char| !char.is_ascii_alphanumeric() && char != '_').unwrap_or(plain.len());
            (key, rest) = plain.split_at(end);
        }
        if key.is_empty() {
            return None;
        }
        pointer = format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"));
    }
    Some(pointer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(name: &str, kind: &str, selector: &Value) -> Value {
        let spec = json!({"resourceRef": {"apiGroup": "v1", "kind": kind}, "selector": selector});
        json!({"metadata": {"name": name}, "spec": spec})
    }

    /// As KWOK 0.8's `stage-fast` begins and ends pods.
    fn fast() -> Vec<Value> {
        let phase = json!({"key": ".status.phase", "operator": "In", "values": ["Pending"]});
        let alive = json!({"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"});
        let ready = r#".status.conditions.[] | select( .type == "Ready" ) | .status"#;
        let unready = json!({"key": ready, "operator": "NotIn", "values": ["True"]});
        let gone = json!({"key": ".metadata.deletionTimestamp", "operator": "Exists"});
        vec![
            stage("pod-ready", "Pod", &json!({"matchExpressions": [alive, phase, unready]})),
            stage("pod-delete", "Pod", &json!({"matchExpressions": [gone]})),
            stage("node-initialize", "Node", &json!({})),
        ]
    }

    #[test]
    fn the_fast_stages_of_kwok_are_found_and_ours_are_not() {
        let ours = sk_driver::stages();
        let all: Vec<Value> = ours.iter().cloned().chain(fast()).collect();
        assert_eq!(meddling(&all, &ours), ["pod-ready", "pod-delete"]);
        assert_eq!(meddling(&ours, &ours), Vec::<String>::new());
    }

    #[test]
    fn a_stage_that_leaves_simulations_alone_is_no_harm() {
        let path = format!(".metadata.labels[\"{}\"]", names::SIMULATION_LABEL);
        let other = json!({"jq": {"key": path, "operator": "DoesNotExist"}});
        let failed = json!({"key": ".status.phase", "operator": "In", "values": ["Failed"]});
        let others = [
            stage("a", "Pod", &json!({"matchExpressions": [other]})),
            stage("b", "Pod", &json!({"matchLabels": {"app": "theirs"}})),
            stage("c", "Pod", &json!({"matchAnnotations": {"theirs": "true"}})),
            stage("d", "Pod", &json!({"matchExpressions": [failed]})),
        ];
        assert_eq!(meddling(&others, &[]), Vec::<String>::new());
    }

    #[test]
    fn plain_paths_are_read_and_clever_ones_are_not() {
        assert_eq!(pointer(".status.phase").as_deref(), Some("/status/phase"));
        assert_eq!(pointer(".metadata.labels[\"a.b/c\"]").as_deref(), Some("/metadata/labels/a.b~1c"));
        assert_eq!(pointer(".metadata.[\"labels\"]").as_deref(), Some("/metadata/labels"));
        for clever in [".a.[].b", ".a | length", ".a[0]", "a", ".a..b", ".a[\"b"] {
            assert_eq!(pointer(clever), None, "{clever}");
        }
    }
}

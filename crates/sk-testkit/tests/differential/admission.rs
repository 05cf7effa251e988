//! What the API server writes into a pod before a scheduler sees it, as far as scheduling looks at it.
//!
//! Priority from its class, overhead from its runtime class, requests from limits (pkg/apis/core/v1/defaults.go,
//! plugin/pkg/admission/priority and /runtimeclass in Kubernetes 1.36).

use serde_json::{Map, Value, json};

/// A pod as it is stored, given the cluster's objects.
pub(crate) fn admit(pod: &Value, objects: &[Value]) -> Value {
    let mut pod = pod.clone();
    let named = |kind: &str, name: &Value| {
        objects.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == *name)
    };
    let spec = &mut pod["spec"];
    if let Some(class) = named("PriorityClass", &spec["priorityClassName"]) {
        spec["priority"] = class["value"].clone();
        spec["preemptionPolicy"] =
            class.get("preemptionPolicy").cloned().unwrap_or_else(|| json!("PreemptLowerPriority"));
    }
    if let Some(class) = named("RuntimeClass", &spec["runtimeClassName"]) {
        spec["overhead"] = class["overhead"]["podFixed"].clone();
    }
    for list in ["containers", "initContainers"] {
        for container in spec[list].as_array_mut().into_iter().flatten() {
            requests_from_limits(&mut container["resources"]);
        }
    }
    if spec["resources"].is_object() {
        pod_level_requests(spec);
    }
    pod
}

/// A limit without a request is a request too.
fn requests_from_limits(resources: &mut Value) {
    let Some(limits) = resources["limits"].as_object().cloned() else { return };
    let requests = resources["requests"].as_object().cloned().unwrap_or_default();
    resources["requests"] = Value::Object(limits.into_iter().chain(requests).collect());
}

/// A pod-level limit without a request is a request too, unless the containers ask for the resource themselves.
fn pod_level_requests(spec: &mut Value) {
    let Some(limits) = spec["resources"]["limits"].as_object().cloned() else { return };
    let containers = spec["containers"].as_array().into_iter().flatten();
    let asked: Vec<&Map<String, Value>> =
        containers.filter_map(|container| container["resources"]["requests"].as_object()).collect();
    let missing = limits.iter().filter(|(name, _)| !asked.iter().any(|requests| requests.contains_key(*name)));
    let missing: Map<String, Value> = missing.map(|(name, amount)| (name.clone(), amount.clone())).collect();
    let requests = spec["resources"]["requests"].as_object().cloned().unwrap_or_default();
    spec["resources"]["requests"] = Value::Object(missing.into_iter().chain(requests).collect());
}

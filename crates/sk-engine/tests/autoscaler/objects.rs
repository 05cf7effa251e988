//! The objects of a recording's set-up and steps, from the short form in which it names them.

use serde_json::{Map, Value, json};
use sk_engine::api::directives::READY_DELAY;

/// What pods of the rig ask for unless a step says otherwise.
const CPU: &str = "100m";
const MEMORY: &str = "64Mi";

pub(crate) fn text<'a>(op: &'a Value, field: &str) -> Option<&'a str> {
    op.get(field).and_then(Value::as_str)
}

pub(crate) fn name(op: &Value) -> &str {
    text(op, "name").expect("every step names what it is about")
}

pub(crate) fn namespace(op: &Value) -> &str {
    text(op, "ns").unwrap_or("default")
}

/// How long its pods take to go, in seconds.
pub(crate) fn termination(op: &Value) -> Option<i64> {
    let delay = op.pointer("/annotations/obs~1term-delay").and_then(Value::as_str)?;
    Some(delay.trim_end_matches('s').parse().expect("whole seconds"))
}

/// Metadata and spec of the pods of a workload; `quick`: pods of the scenario without a delay of their own go at once.
pub(crate) fn template(op: &Value, quick: bool) -> Value {
    let or = |field: &str, default: &str| text(op, field).unwrap_or(default).to_owned();
    let requests = json!({"cpu": or("cpu", CPU), "memory": or("mem", MEMORY)});
    let mut spec = json!({"containers": [{"name": "main", "image": "app:1", "resources": {"requests": requests}}]});
    for field in ["nodeSelector", "tolerations", "affinity", "topologySpreadConstraints", "priorityClassName"] {
        if let Some(value) = op.get(field) {
            spec[field] = value.clone();
        }
    }
    if let Some(grace) = op.get("grace") {
        spec["terminationGracePeriodSeconds"] = grace.clone();
    } else if quick && termination(op).is_none() {
        spec["terminationGracePeriodSeconds"] = json!(1);
    }
    match text(op, "emptyDir") {
        Some("memory") => spec["volumes"] = json!([{"name": "tmp", "emptyDir": {"medium": "Memory"}}]),
        Some(_) => spec["volumes"] = json!([{"name": "tmp", "emptyDir": {}}]),
        None => {}
    }
    if op.get("hostPath").is_some() {
        spec["volumes"] = json!([{"name": "tmp", "hostPath": {"path": "/tmp"}}]);
    }
    let annotations = op.get("annotations").cloned().unwrap_or_else(|| Value::Object(Map::new()));
    json!({"metadata": {"labels": {"app": name(op)}, "annotations": annotations}, "spec": spec})
}

/// A workload of a kind with a pod template.
pub(crate) fn workload(kind: &str, op: &Value, replicas: i64, quick: bool) -> Value {
    let (group, metadata) = match kind {
        "Job" => ("batch/v1", json!({"name": name(op), "namespace": namespace(op)})),
        _ => ("apps/v1", json!({"name": name(op), "namespace": namespace(op)})),
    };
    let mut spec = json!({"selector": {"matchLabels": {"app": name(op)}}, "template": template(op, quick)});
    if kind != "DaemonSet" && kind != "Job" {
        spec["replicas"] = json!(replicas);
    }
    if kind == "Job" {
        spec = json!({"template": spec["template"]});
        spec["template"]["spec"]["restartPolicy"] = json!("Never");
    }
    if let Some(node) = text(op, "nodeName") {
        // The recording pins pods by their template: they come back to the same node.
        spec["template"]["spec"]["nodeName"] = json!(node);
    }
    if kind == "StatefulSet" {
        spec["serviceName"] = json!(name(op));
    }
    json!({"apiVersion": group, "kind": kind, "metadata": metadata, "spec": spec})
}

/// A pod of a workload, on a node or not.
pub(crate) fn pod(op: &Value, pod: &str, node: Option<&str>, owner: Option<Value>, quick: bool) -> Value {
    let mut made = template(op, quick);
    made["metadata"]["annotations"][READY_DELAY.as_str()] = json!("200ms");
    made["apiVersion"] = json!("v1");
    made["kind"] = json!("Pod");
    made["metadata"]["name"] = json!(pod);
    made["metadata"]["namespace"] = json!(namespace(op));
    if let Some(node) = node {
        made["spec"]["nodeName"] = json!(node);
    }
    if let Some(owner) = owner {
        made["metadata"]["ownerReferences"] = json!([owner]);
    }
    made
}

/// A disruption budget; its status is the disruption controller's.
pub(crate) fn budget(op: &Value) -> Value {
    let app = text(op, "app").expect("a budget is over an app");
    let mut spec = json!({"selector": {"matchLabels": {"app": app}}});
    for field in ["maxUnavailable", "minAvailable"] {
        if let Some(value) = op.get(field) {
            spec[field] = value.clone();
        }
    }
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": name(op), "namespace": namespace(op)}, "spec": spec,
    })
}

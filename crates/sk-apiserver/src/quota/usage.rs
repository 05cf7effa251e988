//! What one object uses of each quota resource (`pkg/quota/v1/evaluator/core`, 1.36).

use serde_json::Value;
use sk_core::resources::Amounts;
use sk_core::{Quantity, SmolStr};

use crate::Object;
use crate::kinds::{Body, Pod, qos};

const ONE: Quantity = Quantity::from_value(1);
/// Kinds of the core group that quotas also count by their plain plural.
const BY_PLURAL: [&str; 6] =
    ["configmaps", "persistentvolumeclaims", "replicationcontrollers", "resourcequotas", "secrets", "services"];
/// Compute resources whose limits are counted, too.
const WITH_LIMITS: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Everything that an object counts for.
pub fn usage_of(object: &Object) -> Amounts {
    let plural = sk_core::registry::plural(&object.gvk);
    let group = if object.gvk.group.is_empty() { String::new() } else { format!(".{}", object.gvk.group) };
    let mut used = Amounts::from([(SmolStr::from(format!("count/{plural}{group}")), ONE)]);
    if group.is_empty() && BY_PLURAL.contains(&&*plural) {
        used.insert(SmolStr::from(&*plural), ONE);
    }
    match &object.body {
        // One that has ended uses nothing but its place in the store.
        Body::Pod(pod) if !pod.status.phase.is_final() => used.extend(of_pod(pod)),
        Body::Other(other) if group.is_empty() => match object.gvk.kind.as_str() {
            "Service" => used.extend(of_service(other.fields.get("spec").unwrap_or(&Value::Null))),
            "PersistentVolumeClaim" => {
                let (spec, status) = (other.fields.get("spec"), other.status.as_deref());
                used.extend(of_claim(spec.unwrap_or(&Value::Null), status.unwrap_or(&Value::Null)));
            }
            _ => {}
        },
        _ => {}
    }
    used
}

fn of_pod(pod: &Pod) -> Amounts {
    let mut used = Amounts::from([(SmolStr::new_static("pods"), ONE)]);
    for (name, amount) in pod.spec.total(|resources| &resources.requests) {
        let is_native = !name.contains('/') || name.starts_with("kubernetes.io/");
        if is_native {
            used.insert(name.clone(), amount);
        }
        used.insert(format!("requests.{name}").into(), amount);
    }
    for (name, amount) in pod.spec.total(|resources| &resources.limits) {
        if WITH_LIMITS.contains(&name.as_str()) {
            used.insert(format!("limits.{name}").into(), amount);
        }
    }
    used
}

fn of_service(spec: &Value) -> Amounts {
    let kind = spec["type"].as_str().unwrap_or_default();
    let mut used = Amounts::new();
    if kind == "LoadBalancer" {
        used.insert(SmolStr::new_static("services.loadbalancers"), ONE);
    }
    if ["LoadBalancer", "NodePort"].contains(&kind) {
        // A load balancer that wants no node ports has those that it names.
        let wants_ports = kind == "NodePort" || spec["allocateLoadBalancerNodePorts"] != false;
        let has_port = |port: &&Value| wants_ports || port["nodePort"].as_i64().unwrap_or(0) != 0;
        let ports = spec["ports"].as_array().into_iter().flatten().filter(has_port).count();
        let ports = i64::try_from(ports).unwrap_or(i64::MAX);
        used.insert(SmolStr::new_static("services.nodeports"), Quantity::from_value(ports));
    }
    used
}

/// A claim uses what it asks for, or what it was given while it grew, if that is more.
fn of_claim(spec: &Value, status: &Value) -> Amounts {
    let amount = |within: &Value, pointer: &str| -> Quantity {
        within.pointer(pointer).and_then(|asked| serde_json::from_value(asked.clone()).ok()).unwrap_or_default()
    };
    let asked = amount(spec, "/resources/requests/storage");
    let storage = asked.max(amount(status, "/allocatedResources/storage"));
    let mut used = Amounts::from([(SmolStr::new_static("requests.storage"), storage)]);
    if let Some(class) = spec["storageClassName"].as_str().filter(|class| !class.is_empty()) {
        let of_class = |what: &str| SmolStr::from(format!("{class}.storageclass.storage.k8s.io/{what}"));
        used.insert(of_class("requests.storage"), storage);
        used.insert(of_class("persistentvolumeclaims"), ONE);
    }
    used
}

/// Is an object one of those that a scope speaks of? Only pods are.
pub(super) fn is_in_scope(scope: &Value, object: &Object) -> bool {
    let Some(pod) = object.pod() else { return false };
    let has_deadline = || pod.spec.rest.get("activeDeadlineSeconds").is_some_and(Value::is_i64);
    match scope["scopeName"].as_str().unwrap_or_default() {
        "Terminating" => has_deadline(),
        "NotTerminating" => !has_deadline(),
        "BestEffort" => qos::is_best_effort(&pod.spec),
        "NotBestEffort" => !qos::is_best_effort(&pod.spec),
        "PriorityClass" => is_of_class(scope, &pod.spec.priority_class_name),
        "CrossNamespacePodAffinity" => pod.spec.affinity.as_ref().is_some_and(looks_elsewhere),
        _ => false,
    }
}

fn is_of_class(scope: &Value, class: &str) -> bool {
    let named = || scope["values"].as_array().into_iter().flatten().any(|value| value == class);
    match scope["operator"].as_str().unwrap_or_default() {
        "Exists" => !class.is_empty(),
        "DoesNotExist" => class.is_empty(),
        "In" => !class.is_empty() && named(),
        "NotIn" => class.is_empty() || !named(),
        _ => false,
    }
}

/// Does a rule on other pods name namespaces?
fn looks_elsewhere(affinity: &Value) -> bool {
    match affinity {
        Value::Object(fields) => fields.iter().any(|(name, value)| match name.as_str() {
            "namespaces" => value.as_array().is_some_and(|names| !names.is_empty()),
            "namespaceSelector" => !value.is_null(),
            _ => looks_elsewhere(value),
        }),
        Value::Array(list) => list.iter().any(looks_elsewhere),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(json: Value) -> Object {
        Object::from_json(json).unwrap()
    }

    #[test]
    fn a_pod_counts_until_it_has_ended_and_its_place_in_the_store_for_as_long_as_it_is_there() {
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "a", "resources": {
                "requests": {"cpu": "1", "example.com/gpu": "2"}, "limits": {"memory": "1Gi"},
            }}]},
        });
        let names = |pod: &Value| usage_of(&object(pod.clone())).into_keys().collect::<Vec<_>>();
        assert_eq!(
            names(&pod),
            ["count/pods", "cpu", "limits.memory", "pods", "requests.cpu", "requests.example.com/gpu"]
        );
        pod["status"] = json!({"phase": "Succeeded"});
        assert_eq!(names(&pod), ["count/pods"]);
    }

    #[test]
    fn claims_count_by_their_class_and_other_kinds_by_their_number() {
        let claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"},
            "spec": {"storageClassName": "fast", "resources": {"requests": {"storage": "5Gi"}}},
        });
        let used = usage_of(&object(claim));
        assert_eq!(used["fast.storageclass.storage.k8s.io/requests.storage"].to_string(), "5Gi");
        assert_eq!(used["persistentvolumeclaims"], ONE);
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}});
        assert_eq!(usage_of(&object(deployment)).into_keys().collect::<Vec<_>>(), ["count/deployments.apps"]);
    }

    #[test]
    fn a_load_balancer_without_node_ports_uses_those_that_it_names_and_a_claim_what_it_was_given() {
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
            "spec": {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": false, "ports": [{"nodePort": 3}, {}]},
        });
        assert_eq!(usage_of(&object(service))["services.nodeports"], ONE);
        let claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"},
            "spec": {"resources": {"requests": {"storage": "5Gi"}}}, "status": {"allocatedResources": {"storage": "6Gi"}},
        });
        assert_eq!(usage_of(&object(claim))["requests.storage"].to_string(), "6Gi");
    }

    #[test]
    fn a_scope_of_priority_classes_is_read_as_a_selector() {
        let is_in = |operator: &str, values: Value, class: &str| {
            is_of_class(&json!({"scopeName": "PriorityClass", "operator": operator, "values": values}), class)
        };
        assert!(is_in("In", json!(["high"]), "high") && !is_in("In", json!(["high"]), ""));
        assert!(is_in("NotIn", json!(["high"]), "") && !is_in("NotIn", json!(["high"]), "high"));
        assert!(is_in("Exists", json!([]), "low") && is_in("DoesNotExist", json!([]), ""));
    }
}

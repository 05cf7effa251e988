//! Virtual nodes for a real cluster: Node objects that KWOK plays, made from a scenario's groups or from the nodes that a
//! trace has recorded.
//!
//! Each has the label `type=virtual` and the taint `kwok-provider`, so that replayed pods and nobody else go there, and
//! the label of its group, by which our stages know it for theirs. Pure: whoever calls this applies them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use sk_api::scenario::{Ready, Scenario};
use sk_api::simulation::names;
use sk_core::{SimTime, SmolStr, Taint};
use sk_engine::api::directives::{NODE_GROUP, NODE_READY_DELAY, millis};
use sk_store::trace::{Trace, TraceError};

/// The annotation by which KWOK knows its nodes.
pub const KWOK_ANNOTATION: (&str, &str) = ("kwok.x-k8s.io/node", "fake");
/// The group of recorded nodes whose labels name none.
const RECORDED: &str = "recorded";
/// Labels by which clouds say which group a node is of.
const CLOUD_GROUPS: [&str; 5] = [
    "eks.amazonaws.com/nodegroup",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
    "karpenter.sh/nodepool",
    "node.kubernetes.io/instance-type",
];

/// The nodes that a scenario's run begins with: of each group its minimum.
pub fn from_scenario(scenario: &Scenario) -> Vec<Value> {
    let groups = scenario.cluster.groups.iter();
    let nodes = groups.flat_map(|(name, group)| {
        (0..group.min).map(move |number| {
            let quantities = |amounts: &BTreeMap<SmolStr, sk_core::Quantity>| {
                amounts.iter().map(|(name, amount)| (name.to_string(), amount.to_string().into())).collect()
            };
            let ready = match group.ready {
                Ready::After(delay) => delay,
                Ready::Spread { p50, .. } => p50,
            };
            let node = Node {
                name: format!("{name}-{number}"),
                group: name,
                labels: group.labels.iter().map(|(key, value)| (key.to_string(), value.as_str().into())).collect(),
                taints: group.taints.iter().map(taint).collect(),
                capacity: quantities(&group.capacity()),
                allocatable: quantities(&group.allocatable),
            };
            let mut node = node.into_value();
            node["metadata"]["annotations"][NODE_READY_DELAY.as_str()] = millis(ready).as_str().into();
            node
        })
    });
    nodes.collect()
}

/// The nodes that were there at a moment of a trace.
pub fn from_trace(trace: &Trace, at: SimTime) -> Result<Vec<Value>, TraceError> {
    let mut there = BTreeMap::new();
    for event in trace.node_events()? {
        let event = event?;
        if event.at > at {
            continue;
        }
        match event.object {
            Some(object) => drop(there.insert(event.node, object)),
            None => drop(there.remove(&event.node)),
        }
    }
    Ok(there.iter().map(|(name, object)| recorded(name, object)).collect())
}

struct Node<'n> {
    name: String,
    group: &'n str,
    labels: Map<String, Value>,
    taints: Vec<Value>,
    capacity: Map<String, Value>,
    allocatable: Map<String, Value>,
}

impl Node<'_> {
    fn into_value(self) -> Value {
        let Self { name, group, mut labels, mut taints, capacity, allocatable } = self;
        labels.insert("kubernetes.io/hostname".to_owned(), name.as_str().into());
        labels.insert(names::NODE_SELECTOR.0.to_owned(), names::NODE_SELECTOR.1.into());
        labels.insert(NODE_GROUP.to_string(), group.into());
        taints.push(json!({"key": names::NODE_TAINT, "value": "true", "effect": "NoSchedule"}));
        json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": labels, "annotations": {KWOK_ANNOTATION.0: KWOK_ANNOTATION.1}},
            "spec": {"taints": taints},
            "status": {"capacity": capacity, "allocatable": allocatable},
        })
    }
}

/// A recorded node's size, labels and taints; its state (conditions, addresses, cordons) was the recording's.
fn recorded(name: &str, object: &Value) -> Value {
    let map = |pointer: &str| object.pointer(pointer).and_then(Value::as_object).cloned().unwrap_or_default();
    let labels = map("/metadata/labels");
    let group = CLOUD_GROUPS.iter().find_map(|label| labels.get(*label)?.as_str()).unwrap_or(RECORDED).to_owned();
    let taints = object.pointer("/spec/taints").and_then(Value::as_array).cloned().unwrap_or_default();
    let is_state = |taint: &Value| taint["key"].as_str().is_some_and(|key| key.starts_with("node.kubernetes.io/"));
    let allocatable = map("/status/allocatable");
    let capacity = map("/status/capacity");
    Node {
        name: name.to_owned(),
        group: &group,
        labels,
        taints: taints.into_iter().filter(|taint| !is_state(taint)).collect(),
        capacity: if capacity.is_empty() { allocatable.clone() } else { capacity },
        allocatable,
    }
    .into_value()
}

fn taint(taint: &Taint) -> Value {
    json!({"key": taint.key, "value": taint.value, "effect": taint.effect})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenarios_nodes_are_its_minimum_and_say_what_they_are() {
        let text = "apiVersion: simkube.io/v1\nkind: Scenario\ncluster:\n  groups:\n    big: {min: 2, max: 5, cpu: 4, memory: 8Gi, \
                    ready: 30s, labels: {zone: a}, taints: [{key: spot, effect: NoSchedule}]}\n    none: {max: 5, cpu: 1, memory: 1Gi}\n";
        let nodes = from_scenario(&Scenario::parse("test.yaml", text).unwrap());
        assert_eq!(nodes.len(), 2);
        let node = &nodes[1];
        assert_eq!(node["metadata"]["name"], "big-1");
        assert_eq!(node["metadata"]["labels"]["type"], "virtual");
        assert_eq!(node["metadata"]["labels"]["simkube.io/node-group"], "big");
        assert_eq!(node["metadata"]["labels"]["zone"], "a");
        assert_eq!(node["metadata"]["annotations"]["kwok.x-k8s.io/node"], "fake");
        assert_eq!(node["metadata"]["annotations"]["simkube.io/node-ready-delay"], "30000ms");
        assert_eq!(node["status"]["allocatable"], json!({"cpu": "4", "memory": "8Gi", "pods": "110"}));
        let keys: Vec<_> = node["spec"]["taints"].as_array().unwrap().iter().map(|taint| &taint["key"]).collect();
        assert_eq!(keys, ["spot", "kwok-provider"]);
    }

    #[test]
    fn a_traces_nodes_are_those_of_the_moment() {
        let node = |name: &str| {
            json!({
                "apiVersion": "v1", "kind": "Node",
                "metadata": {"name": name, "labels": {"eks.amazonaws.com/nodegroup": "general"}},
                "spec": {"unschedulable": true, "taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]},
                "status": {"allocatable": {"cpu": "3900m"}, "conditions": [{"type": "Ready"}]},
            })
        };
        let mut text = json!({"simkube": "trace", "version": 1, "config": {"trackedObjects": {}}}).to_string();
        for (at, name, object) in [("00", "a", Some(node("a"))), ("00", "b", Some(node("b"))), ("10", "b", None)] {
            let row = json!({"node": {"at": format!("2026-01-05T09:00:{at}Z"), "node": name, "object": object}});
            text += &format!("\n{row}");
        }
        let trace = sk_store::trace::from_bytes("test", text.into_bytes()).unwrap();
        let at = |seconds: &str| SimTime::parse_rfc3339(&format!("2026-01-05T09:00:{seconds}Z")).unwrap();
        assert_eq!(from_trace(&trace, at("05")).unwrap().len(), 2);
        let left = from_trace(&trace, at("10")).unwrap();
        assert_eq!(left.len(), 1);
        assert_eq!(left[0]["metadata"]["labels"]["simkube.io/node-group"], "general");
        assert_eq!(
            left[0]["spec"],
            json!({"taints": [{"key": "kwok-provider", "value": "true", "effect": "NoSchedule"}]})
        );
        assert_eq!(left[0]["status"], json!({"capacity": {"cpu": "3900m"}, "allocatable": {"cpu": "3900m"}}));
    }
}

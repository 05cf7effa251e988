//! Virtual nodes for a real cluster: Node objects for KWOK, from the groups of a scenario or the recorded nodes of a
//! trace.
//!
//! Each has the label `type=virtual` and the taint `kwok-provider`, so that only replayed pods run there, and the label
//! of its group, by which SimKube's stages select it. Pure: the caller applies them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use sk_api::scenario::Scenario;
use sk_api::simulation::names;
use sk_core::{SimDuration, SimTime, Taint};
use sk_engine::NodeGroup;
use sk_engine::api::directives::NODE_GROUP;
use sk_replay::setup::Setup;
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

/// The nodes that a scenario's run begins with: of each group its minimum, ready as soon as KWOK sees them. They are the
/// embedded engine's own first nodes: the same names, in the same order, with the same labels, taints and sizes. How long
/// a group's nodes take to be ready is about those that an autoscaler adds later.
pub fn from_scenario(scenario: &Scenario) -> Vec<Value> {
    let groups = Setup::new(scenario).settings.groups;
    groups.iter().flat_map(|group| (1..=group.min).map(move |number| of_group(group, number))).collect()
}

fn of_group(group: &NodeGroup, number: u32) -> Value {
    let name = format!("{}-{number}", group.name);
    let engines = sk_engine::new_node(group, &name, SimTime::EPOCH, SimDuration::ZERO).to_json();
    let map = |pointer: &str| engines.pointer(pointer).and_then(Value::as_object).cloned().unwrap_or_default();
    Node {
        labels: map("/metadata/labels"),
        taints: group.taints.iter().map(taint).collect(),
        capacity: map("/status/capacity"),
        allocatable: map("/status/allocatable"),
        images: Vec::new(),
        group: &group.name,
        name,
    }
    .into_value()
}

/// The nodes that were there at a moment of a trace, by name: those, and in the order, with which the embedded engine begins
/// under `cluster.nodes: recorded`. Cordons are left out, because nobody would lift them here.
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
    /// What its disk holds already, which scheduling looks at.
    images: Vec<Value>,
}

impl Node<'_> {
    fn into_value(self) -> Value {
        let Self { name, group, mut labels, mut taints, capacity, allocatable, images } = self;
        labels.entry("kubernetes.io/hostname").or_insert_with(|| name.as_str().into());
        labels.insert(names::NODE_SELECTOR.0.to_owned(), names::NODE_SELECTOR.1.into());
        labels.insert(NODE_GROUP.to_string(), group.into());
        taints.push(json!({"key": names::NODE_TAINT, "value": "true", "effect": "NoSchedule"}));
        let mut node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": labels, "annotations": {KWOK_ANNOTATION.0: KWOK_ANNOTATION.1}},
            "spec": {"taints": taints},
            "status": {"capacity": capacity, "allocatable": allocatable},
        });
        if !images.is_empty() {
            node["status"]["images"] = images.into();
        }
        node
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
        images: object.pointer("/status/images").and_then(Value::as_array).cloned().unwrap_or_default(),
    }
    .into_value()
}

fn taint(taint: &Taint) -> Value {
    json!({"key": taint.key, "value": taint.value, "effect": taint.effect})
}

#[cfg(test)]
mod tests {
    use sk_replay::nodes::{Inventory, Matches, ReservedBy};

    use super::*;

    #[test]
    fn a_scenarios_nodes_are_its_minimum_and_say_what_they_are() {
        let text = "apiVersion: simkube.io/v1\nkind: Scenario\ncluster:\n  groups:\n    big: {min: 2, max: 5, cpu: 4, memory: 8Gi, \
                    ready: 30s, labels: {zone: a}, taints: [{key: spot, effect: NoSchedule}]}\n    none: {max: 5, cpu: 1, memory: 1Gi}\n";
        let nodes = from_scenario(&Scenario::parse("test.yaml", text).unwrap());
        let names: Vec<_> = nodes.iter().map(|node| node["metadata"]["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["big-1", "big-2"]);
        let node = &nodes[1];
        assert_eq!(node["metadata"]["labels"]["type"], "virtual");
        assert_eq!(node["metadata"]["labels"]["simkube.io/node-group"], "big");
        assert_eq!(node["metadata"]["labels"]["zone"], "a");
        assert_eq!(node["metadata"]["annotations"]["kwok.x-k8s.io/node"], "fake");
        let delay = node["metadata"]["annotations"].get("simkube.io/node-ready-delay");
        assert_eq!(delay, None, "a run begins with them, so nobody waits for them");
        assert_eq!(node["status"]["allocatable"], json!({"cpu": "4", "memory": "8Gi", "pods": "110"}));
        let keys: Vec<_> = node["spec"]["taints"].as_array().unwrap().iter().map(|taint| &taint["key"]).collect();
        assert_eq!(keys, ["spot", "kwok-provider"]);
    }

    #[test]
    fn a_scenarios_nodes_are_those_that_the_embedded_engine_begins_with() {
        let text = "apiVersion: simkube.io/v1\nkind: Scenario\ncluster:\n  groups:\n    \
                    zeta: {min: 1, max: 5, cpu: 4, memory: 8Gi, labels: {zone: a}}\n    \
                    alpha: {min: 3, max: 5, cpu: 2, memory: 4Gi, ready: 2m, taints: [{key: spot, effect: NoSchedule}]}\n";
        let scenario = Scenario::parse("test.yaml", text).unwrap();
        let engine = sk_engine::Engine::new(&Setup::new(&scenario).settings, SimTime::EPOCH);
        let created = engine.watch(0).unwrap().filter(|event| event.object.node().is_some());
        let embedded: Vec<Value> = created.map(|event| event.object.to_json()).collect();
        let ours = from_scenario(&scenario);
        assert_eq!(ours.len(), embedded.len());
        for (ours, embedded) in ours.iter().zip(&embedded) {
            assert_eq!(ours["metadata"]["name"], embedded["metadata"]["name"], "in the same order");
            assert_eq!(ours["status"]["capacity"], embedded["status"]["capacity"]);
            assert_eq!(ours["status"]["allocatable"], embedded["status"]["allocatable"]);
            assert_eq!(embedded["status"]["conditions"][0]["status"], "True", "ready from the start there too");
            let mut labels = ours["metadata"]["labels"].clone();
            labels.as_object_mut().unwrap().remove(names::NODE_SELECTOR.0);
            assert_eq!(labels, embedded["metadata"]["labels"]);
            let taints = ours["spec"]["taints"].as_array().unwrap();
            let others: Vec<_> = taints.iter().filter(|taint| taint["key"] != names::NODE_TAINT).collect();
            assert_eq!(others.len(), embedded["spec"]["taints"].as_array().map_or(0, Vec::len));
        }
    }

    #[test]
    fn a_traces_nodes_are_those_that_the_embedded_engine_begins_with() {
        let node = |name: &str, cpu: &str| {
            json!({
                "apiVersion": "v1", "kind": "Node",
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "zone": "a"}},
                "spec": {"taints": [{"key": "spot", "value": "yes", "effect": "NoSchedule"}]},
                "status": {
                    "capacity": {"cpu": "8", "memory": "16Gi", "pods": "110"},
                    "allocatable": {"cpu": cpu, "memory": "15Gi", "pods": "110"},
                    "images": [{"names": ["app:1"], "sizeBytes": 100}],
                    "conditions": [{"type": "Ready", "status": "True"}],
                },
            })
        };
        let mut text = json!({"simkube": "trace", "version": 1, "config": {"trackedObjects": {}}}).to_string();
        let seen = [("00", "b", "7"), ("01", "c", "7"), ("02", "a", "7"), ("03", "b", "6")];
        for (at, name, cpu) in seen {
            let object = node(name, cpu);
            let row = json!({"node": {"at": format!("2026-01-05T09:00:{at}Z"), "node": name, "object": object}});
            text += &format!("\n{row}");
        }
        let trace = sk_store::trace::from_bytes("test", text.into_bytes()).unwrap();
        let at = SimTime::parse_rfc3339("2026-01-05T09:00:10Z").unwrap();
        let inventory = Inventory::recorded(&trace, (at, at), &Matches::new(), &ReservedBy::default()).unwrap();
        let embedded: Vec<Value> = inventory.first().map(sk_engine::api::Object::to_json).collect();
        let ours = from_trace(&trace, at).unwrap();
        let names =
            |nodes: &[Value]| -> Vec<Value> { nodes.iter().map(|node| node["metadata"]["name"].clone()).collect() };
        assert_eq!(names(&ours), ["a", "b", "c"]);
        assert_eq!(names(&ours), names(&embedded), "the same in the same order");
        for (ours, embedded) in ours.iter().zip(&embedded) {
            assert_eq!(ours["status"]["capacity"], embedded["status"]["capacity"]);
            assert_eq!(ours["status"]["allocatable"], embedded["status"]["allocatable"]);
            assert_eq!(ours["status"]["images"], json!([{"names": ["app:1"], "sizeBytes": 100}]));
            assert_eq!(ours["spec"]["taints"][0], embedded["spec"]["taints"][0]);
            assert_eq!(ours["metadata"]["labels"]["zone"], embedded["metadata"]["labels"]["zone"]);
            assert_eq!(embedded["status"]["conditions"][0]["status"], "True", "ready from the start there too");
        }
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

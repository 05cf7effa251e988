//! Fits node groups to recorded nodes: fills in what a scenario leaves to the recording (`match`, `reserved:
//! recorded`).
//!
//! What the user wrote stays. A group takes the most common size of the nodes that its labels match, and the labels
//! and taints that all of them share. The run keeps the scenario with these values filled in, so that it can be run
//! without the recording.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use sk_api::Scenario;
use sk_api::scenario::{Group, Nodes, Reserved};
use sk_core::{ObjectRef, Quantity, SmolStr, Taint, TemplateId};
use sk_store::trace::{Change, Trace, TraceError};

use crate::nodes::{ReservedBy, group_of, quantity};

/// Labels that name one node and not what it is.
const OWN_LABELS: [&str; 1] = ["kubernetes.io/hostname"];
/// Taints of Kubernetes' own say how a node is at the moment.
const PASSING_TAINTS: &str = "node.kubernetes.io/";

/// Why a group cannot be fitted.
#[derive(Debug, thiserror::Error)]
pub enum FitError {
    /// The trace gave out.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// No node has the labels.
    #[error(
        "cluster.groups.{group}.match: none of the {nodes} recorded nodes has these labels; write others, or write the \
         group's cpu and memory"
    )]
    NoNode {
        /// The group.
        group: SmolStr,
        /// How many nodes the trace has.
        nodes: usize,
    },
}

/// Fills in what the scenario leaves to the recording.
pub fn fit(scenario: &mut Scenario, trace: &Trace) -> Result<(), FitError> {
    let cluster = &mut scenario.cluster;
    if cluster.nodes == Nodes::Groups && cluster.reserved == Some(Reserved::Recorded) {
        cluster.reserved = Some(Reserved::Fixed(ReservedBy::recorded(trace)?.median()));
    }
    if cluster.groups.values().all(|group| group.matches.is_empty()) {
        return Ok(());
    }
    let nodes = recorded_nodes(trace)?;
    for (name, group) in &mut cluster.groups {
        let matches = BTreeMap::from([(name.clone(), group.matches.clone())]);
        let own: Vec<&Value> =
            nodes.values().filter(|node| group_of(&labels(node), &matches).as_ref() == Some(name)).collect();
        let is_complete = group.cpu.is_some() && group.memory.is_some();
        match (group.matches.is_empty(), own.is_empty()) {
            (true, _) => {}
            (false, true) if is_complete => complete(group),
            (false, true) => return Err(FitError::NoNode { group: name.clone(), nodes: nodes.len() }),
            (false, false) => fill(group, &own),
        }
    }
    Ok(())
}

/// Every recorded node as it last was.
pub fn recorded_nodes(trace: &Trace) -> Result<BTreeMap<SmolStr, Value>, TraceError> {
    let mut nodes = BTreeMap::new();
    for event in trace.node_events()? {
        let event = event?;
        if let Some(object) = event.object {
            nodes.insert(event.node, object);
        }
    }
    Ok(nodes)
}

/// Of how many nodes each pool had at one moment: the fewest and the most. `pool` tells a node's.
pub fn nodes_over_time(
    trace: &Trace,
    pool: impl Fn(&Value) -> Option<SmolStr>,
) -> Result<BTreeMap<SmolStr, (u32, u32)>, TraceError> {
    let first = trace.span().map(|(first, _)| first);
    let mut standing: BTreeMap<SmolStr, SmolStr> = BTreeMap::new();
    let mut now: BTreeMap<SmolStr, u32> = BTreeMap::new();
    let mut counts: BTreeMap<SmolStr, (u32, u32)> = BTreeMap::new();
    for event in trace.node_events()? {
        let event = event?;
        if let Some(old) = standing.remove(&event.node) {
            *now.entry(old).or_default() -= 1;
        }
        if let Some(of) = event.object.as_ref().and_then(&pool) {
            *now.entry(of.clone()).or_default() += 1;
            standing.insert(event.node.clone(), of);
        }
        for (of, count) in &now {
            // What stands at the first moment is the first count; a pool that comes later had none before.
            let is_first = first.is_some_and(|first| event.at <= first);
            let (least, most) = counts.entry(of.clone()).or_insert((if is_first { u32::MAX } else { 0 }, 0));
            *least = if is_first { *count } else { (*least).min(*count) };
            *most = (*most).max(*count);
        }
    }
    Ok(counts)
}

/// What the pods of a trace ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// The most CPU that one pod requests.
    pub largest_cpu: Quantity,
    /// The most memory that one pod requests.
    pub largest_memory: Quantity,
    /// CPU of all pods, each object at its largest.
    pub total_cpu: Quantity,
    /// Memory of all pods, each object at its largest.
    pub total_memory: Quantity,
}

/// Adds up what the pods of a trace ask for.
pub fn demand(trace: &Trace) -> Result<Demand, TraceError> {
    let mut demand = Demand::default();
    let mut objects: BTreeMap<ObjectRef, (Quantity, Quantity)> = BTreeMap::new();
    for record in trace.records()? {
        let Change::Apply(object) = record?.change else { continue };
        let paths = trace.config().template_paths(&object.reference().gvk);
        let replicas =
            object.value().pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1).clamp(0, 1_000_000);
        for template in TemplateId::all_in(object.value(), &paths) {
            let Some(template) = template.path.get(object.value()) else { continue };
            let (cpu, memory) = (requested(template, "cpu"), requested(template, "memory"));
            demand.largest_cpu = demand.largest_cpu.max(cpu);
            demand.largest_memory = demand.largest_memory.max(memory);
            let most = objects.entry(object.reference().clone()).or_default();
            let all = (
                Quantity::from_milli(cpu.milli_value().saturating_mul(replicas)),
                Quantity::from_value(memory.value().saturating_mul(replicas)),
            );
            *most = (most.0.max(all.0), most.1.max(all.1));
        }
    }
    for (cpu, memory) in objects.into_values() {
        demand.total_cpu += cpu;
        demand.total_memory += memory;
    }
    Ok(demand)
}

fn requested(template: &Value, resource: &str) -> Quantity {
    let containers = template.pointer("/spec/containers").and_then(Value::as_array);
    let of = |container: &Value| container.pointer("/resources/requests").and_then(|all| quantity(all.get(resource)?));
    containers.into_iter().flatten().filter_map(of).sum()
}

fn labels(node: &Value) -> Map<String, Value> {
    node.pointer("/metadata/labels").and_then(Value::as_object).cloned().unwrap_or_default()
}

fn amounts(node: &Value, of: &str) -> BTreeMap<SmolStr, Quantity> {
    let amounts = node.pointer(&format!("/status/{of}")).and_then(Value::as_object);
    amounts.into_iter().flatten().filter_map(|(name, amount)| Some((name.into(), quantity(amount)?))).collect()
}

fn fill(group: &mut Group, nodes: &[&Value]) {
    let typical = typical(nodes);
    let capacity = amounts(typical, "capacity");
    group.cpu = group.cpu.or_else(|| capacity.get("cpu").copied());
    group.memory = group.memory.or_else(|| capacity.get("memory").copied());
    for (resource, amount) in amounts(typical, "allocatable") {
        group.allocatable.entry(resource).or_insert(amount);
    }
    for (key, value) in shared_labels(nodes) {
        group.labels.entry(key).or_insert(value);
    }
    if group.taints.is_empty() {
        group.taints = shared_taints(nodes);
    }
    complete(group);
}

/// What neither the person nor the recording says is as it is for any group.
fn complete(group: &mut Group) {
    for (resource, amount) in [("cpu", group.cpu), ("memory", group.memory)] {
        if let Some(amount) = amount {
            group.allocatable.entry(resource.into()).or_insert(amount);
        }
    }
}

/// The node whose size is the most common one; of equals the smallest.
fn typical<'a>(nodes: &[&'a Value]) -> &'a Value {
    let size = |node: &Value| {
        let allocatable = amounts(node, "allocatable");
        ["cpu", "memory", "pods"].map(|resource| allocatable.get(resource).copied().unwrap_or(Quantity::ZERO))
    };
    let mut sizes: BTreeMap<[Quantity; 3], (usize, &'a Value)> = BTreeMap::new();
    for node in nodes {
        sizes.entry(size(node)).or_insert((0, node)).0 += 1;
    }
    let mut best: Option<(usize, &'a Value)> = None;
    for (count, node) in sizes.into_values() {
        if best.is_none_or(|(most, _)| count > most) {
            best = Some((count, node));
        }
    }
    best.map_or(nodes[0], |(_, node)| node)
}

fn shared_labels(nodes: &[&Value]) -> BTreeMap<SmolStr, SmolStr> {
    let all: Vec<Map<String, Value>> = nodes.iter().map(|node| labels(node)).collect();
    let is_shared = |key: &str, value: &Value| all.iter().all(|labels| labels.get(key) == Some(value));
    let shared = all[0].iter().filter(|(key, value)| !OWN_LABELS.contains(&key.as_str()) && is_shared(key, value));
    shared.filter_map(|(key, value)| Some((key.into(), value.as_str()?.into()))).collect()
}

fn shared_taints(nodes: &[&Value]) -> Vec<Taint> {
    let taints = |node: &Value| -> Vec<Taint> {
        let written = node.pointer("/spec/taints").cloned().unwrap_or(Value::Null);
        serde_json::from_value(written).unwrap_or_default()
    };
    let all: Vec<Vec<Taint>> = nodes.iter().map(|node| taints(node)).collect();
    let is_lasting = |taint: &Taint| !taint.key.starts_with(PASSING_TAINTS);
    all[0].iter().filter(|taint| is_lasting(taint) && all.iter().all(|of| of.contains(taint))).cloned().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(name: &str, pool: &str, cpu: &str) -> String {
        let object = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {"pool": pool, "kubernetes.io/hostname": name, "zone": "a"}},
            "spec": {"taints": [
                {"key": "dedicated", "value": pool, "effect": "NoSchedule"},
                {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
            ]},
            "status": {"capacity": {"cpu": "4", "memory": "16Gi"}, "allocatable": {"cpu": cpu, "memory": "14Gi", "pods": "58"}},
        });
        json!({"at": "2026-01-05T09:00:00Z", "node": name, "object": object}).to_string()
    }

    fn trace() -> Trace {
        let head = json!({"simkube": "trace", "version": 1, "config": {"trackedObjects": {}}}).to_string();
        let nodes =
            [node("a-1", "a", "3900m"), node("a-2", "a", "3900m"), node("a-3", "a", "3"), node("b-1", "b", "3")];
        let rows: Vec<String> = nodes.iter().map(|row| format!("{{\"node\":{row}}}")).collect();
        let end = json!({"at": "2026-01-05T10:00:00Z", "mark": "moment"});
        let text = format!("{head}\n{end}\n{}\n", rows.join("\n"));
        sk_store::trace::from_bytes("test", text.into_bytes()).expect("the trace opens")
    }

    fn fitted(group: &str) -> Result<Scenario, FitError> {
        let text = format!("apiVersion: simkube.io/v1\nkind: Scenario\ncluster: {{groups: {{a: {group}}}}}\n");
        let mut scenario = Scenario::parse("x", &text).expect("the scenario is well-formed");
        fit(&mut scenario, &trace()).map(|()| scenario)
    }

    #[test]
    fn a_group_becomes_the_most_common_of_its_nodes() {
        let scenario = fitted("{match: {pool: a}, max: 10}").unwrap();
        let group = &scenario.cluster.groups["a"];
        assert_eq!(group.cpu.unwrap().to_string(), "4");
        assert_eq!(group.allocatable["cpu"].to_string(), "3900m");
        assert_eq!(group.allocatable["pods"].to_string(), "58");
        let labels: Vec<&str> = group.labels.keys().map(SmolStr::as_str).collect();
        assert_eq!(labels, ["pool", "zone"]);
        assert_eq!(group.taints.iter().map(|taint| taint.key.as_str()).collect::<Vec<_>>(), ["dedicated"]);
        let again = Scenario::parse("again", &scenario.to_yaml()).unwrap();
        assert_eq!(again.cluster.groups["a"], *group, "it runs again without the recording");
    }

    #[test]
    fn what_a_person_wrote_stays_and_labels_that_no_node_has_are_refused() {
        let scenario = fitted("{match: {pool: a}, max: 10, cpu: 8, allocatable: {cpu: 7}}").unwrap();
        assert_eq!(scenario.cluster.groups["a"].cpu.unwrap().to_string(), "8");
        assert_eq!(scenario.cluster.groups["a"].allocatable["cpu"].to_string(), "7");
        let refused = fitted("{match: {pool: c}, max: 10}").unwrap_err().to_string();
        assert!(refused.contains("none of the 4 recorded nodes has these labels"), "{refused}");
    }
}

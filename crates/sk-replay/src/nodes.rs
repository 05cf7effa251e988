//! Nodes that no group creates: recorded nodes, which come and go as they did, and nodes from a file, which stay.
//!
//! A node has what placement needs: name, labels, taints, resources, images. The groups' `match` says which group it
//! belongs to, for prices and figures; `reserved`, what pods outside the trace used, is subtracted from its
//! allocatable resources.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Map, Value, json};
use sk_core::{Quantity, SimDuration, SimTime, SmolStr};
use sk_engine::api::Object;
use sk_engine::api::directives::{self, NODE_GROUP, NODE_READY_DELAY};
use sk_store::trace::{NodeEvent, Reserved, Trace, TraceError};

/// Labels of nodes, by group: whose nodes have them.
pub type Matches = BTreeMap<SmolStr, BTreeMap<SmolStr, SmolStr>>;

/// Marks a node that never became ready.
const NEVER: SimDuration = SimDuration::from_mins(400 * 24 * 60);
/// Taints that say how a node is and not what it is.
const PASSING: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/// Why a file of nodes cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{name}: {problem}; `kubectl get nodes -o yaml` prints what is needed")]
pub struct BadNode {
    name: String,
    problem: String,
}

/// What happens to a node.
#[derive(Clone, Debug)]
pub(crate) enum NodeChange {
    /// It is there, and this.
    Put(Box<Object>),
    /// It is this, and closed until it goes: its pods leave it, as somebody who drained it made them leave.
    Drain(Box<Object>),
    /// It is gone.
    Gone(SmolStr),
}

/// The nodes of a run that no group makes.
#[derive(Clone, Debug, Default)]
pub struct Inventory {
    first: Vec<Object>,
    later: VecDeque<(SimTime, NodeChange)>,
}

impl Inventory {
    /// The nodes of a file: there and ready from beginning to end.
    pub fn fixed(nodes: &[Value], matches: &Matches, reserved: &BTreeMap<SmolStr, Quantity>) -> Result<Self, BadNode> {
        let mut first = Vec::new();
        for node in nodes {
            let name = node.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("a node").to_owned();
            let wrong = |problem: &str| BadNode { name: name.clone(), problem: problem.to_owned() };
            if node.pointer("/status/allocatable").and_then(Value::as_object).is_none_or(Map::is_empty) {
                return Err(wrong("it has no status.allocatable, so no pod could run there"));
            }
            let mut node = cleaned(node, matches, reserved);
            make_ready(&mut node);
            first.push(Object::from_json(node).map_err(|error| wrong(&error.to_string()))?);
        }
        Ok(Self { first, later: VecDeque::new() })
    }

    /// The nodes of a recording: those that existed at `start`, and the changes until `end`.
    pub fn recorded(
        trace: &Trace,
        (start, end): (SimTime, SimTime),
        matches: &Matches,
        reserved: &ReservedBy,
    ) -> Result<Self, TraceError> {
        let mut events: Vec<NodeEvent> = Vec::new();
        for event in trace.node_events()? {
            let event = event?;
            if event.at <= end {
                events.push(event);
            }
        }
        events.sort_by_key(|event| event.at);
        let mut inventory = Self::default();
        let mut standing: BTreeSet<SmolStr> = BTreeSet::new();
        // By name, as a scheduler lists the nodes that are there when it starts; `skctl nodes apply` makes them in this order.
        let mut first: BTreeMap<SmolStr, Value> = BTreeMap::new();
        for (place, event) in events.iter().enumerate() {
            let node =
                event.object.as_ref().map(|object| cleaned(object, matches, &reserved.of(&event.node, event.at)));
            if event.at <= start {
                match node {
                    Some(node) => {
                        standing.insert(event.node.clone());
                        first.insert(event.node.clone(), node);
                    }
                    None => {
                        standing.remove(&event.node);
                        first.remove(&event.node);
                    }
                }
                continue;
            }
            inventory.later_change(event, node, &mut standing, &events[place + 1..]);
        }
        inventory.first = first
            .into_values()
            .filter_map(|mut node| {
                make_ready(&mut node);
                Object::from_json(node).ok()
            })
            .collect();
        Ok(inventory)
    }

    fn later_change(
        &mut self,
        event: &NodeEvent,
        node: Option<Value>,
        standing: &mut BTreeSet<SmolStr>,
        ahead: &[NodeEvent],
    ) {
        let change = match node {
            None => {
                standing.remove(&event.node);
                Some(NodeChange::Gone(event.node.clone()))
            }
            Some(mut node) => {
                if standing.insert(event.node.clone()) {
                    become_ready(&mut node, event, ahead);
                } else if is_ready(&node) {
                    make_ready(&mut node);
                }
                let put = if is_drained(&node, event, ahead) { NodeChange::Drain } else { NodeChange::Put };
                Object::from_json(node).ok().map(|object| put(Box::new(object)))
            }
        };
        self.later.extend(change.map(|change| (event.at, change)));
    }

    /// The names of the nodes that exist when the clock starts.
    pub fn names(&self) -> BTreeSet<SmolStr> {
        self.first.iter().map(|node| node.key.name.clone()).collect()
    }

    /// The nodes that exist when the clock starts, in the order of their creation.
    pub fn first(&self) -> impl Iterator<Item = &Object> {
        self.first.iter()
    }

    /// When the next change is due.
    pub(crate) fn next_at(&self) -> Option<SimTime> {
        self.later.front().map(|(at, _)| *at)
    }

    /// The next change, if it is due by then.
    pub(crate) fn next_by(&mut self, at: SimTime) -> Option<(SimTime, NodeChange)> {
        if self.next_at()? > at {
            return None;
        }
        self.later.pop_front()
    }

    /// Is there no node, ever?
    pub fn is_empty(&self) -> bool {
        self.first.is_empty() && self.later.is_empty()
    }

    /// Only the nodes that exist at the start and belong to a group: from then on the group decides about them.
    pub(crate) fn of_groups(mut self) -> Self {
        self.first.retain(|node| node.meta.labels.contains_key(&NODE_GROUP));
        self.later.clear();
        self
    }
}

/// Resources by name.
type Amounts = BTreeMap<SmolStr, Quantity>;

/// What pods outside the trace took from each node, by time.
#[derive(Clone, Debug, Default)]
pub struct ReservedBy {
    /// The same for every node.
    pub(crate) fixed: BTreeMap<SmolStr, Quantity>,
    rows: BTreeMap<SmolStr, Vec<(SimTime, Amounts)>>,
}

impl ReservedBy {
    /// The same of every node.
    pub fn always(fixed: BTreeMap<SmolStr, Quantity>) -> Self {
        Self { fixed, rows: BTreeMap::new() }
    }

    /// As it was recorded.
    pub fn recorded(trace: &Trace) -> Result<Self, TraceError> {
        let mut reserved = Self::default();
        for row in trace.reserved()? {
            let row = row?;
            let amounts = amounts(&row);
            reserved.rows.entry(row.node).or_default().push((row.at, amounts));
        }
        reserved.rows.values_mut().for_each(|rows| rows.sort_by_key(|(at, _)| *at));
        Ok(reserved)
    }

    /// What is reserved on a node at a time; before the first record of it, that record.
    fn of(&self, node: &str, at: SimTime) -> BTreeMap<SmolStr, Quantity> {
        let Some(rows) = self.rows.get(node) else { return self.fixed.clone() };
        let latest = rows.iter().rev().find(|(since, _)| *since <= at).or_else(|| rows.first());
        latest.map(|(_, amounts)| amounts.clone()).unwrap_or_default()
    }

    /// What is taken from a node in the middle of all that were recorded: of each resource the median.
    pub fn median(&self) -> BTreeMap<SmolStr, Quantity> {
        let latest: Vec<&BTreeMap<SmolStr, Quantity>> =
            self.rows.values().filter_map(|rows| Some(&rows.last()?.1)).collect();
        let resources: BTreeSet<&SmolStr> = latest.iter().flat_map(|amounts| amounts.keys()).collect();
        let median = |resource: &SmolStr| {
            let mut all: Vec<Quantity> =
                latest.iter().map(|amounts| amounts.get(resource).copied().unwrap_or(Quantity::ZERO)).collect();
            all.sort();
            (resource.clone(), all[all.len() / 2])
        };
        resources.into_iter().map(median).collect()
    }
}

fn amounts(row: &Reserved) -> BTreeMap<SmolStr, Quantity> {
    let requests = row.requests.iter().filter_map(|(name, text)| Some((name.clone(), text.parse().ok()?)));
    requests.chain([("pods".into(), Quantity::from_value(row.pods.into()))]).collect()
}

/// What placement needs of a node, with its group and without what is reserved.
fn cleaned(node: &Value, matches: &Matches, reserved: &BTreeMap<SmolStr, Quantity>) -> Value {
    let at = |path: &str| node.pointer(path).cloned().unwrap_or(Value::Null);
    let mut labels = at("/metadata/labels").as_object().cloned().unwrap_or_default();
    if let Some(group) = group_of(&labels, matches) {
        labels.insert(NODE_GROUP.to_string(), json!(group));
    }
    let mut allocatable = at("/status/allocatable").as_object().cloned().unwrap_or_default();
    for (resource, taken) in reserved {
        let Some(has) = allocatable.get(resource.as_str()).and_then(quantity) else { continue };
        let left = if has < *taken { Quantity::ZERO } else { has - *taken };
        allocatable.insert(resource.to_string(), json!(left));
    }
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": at("/metadata/name"), "labels": labels},
        "spec": {"taints": at("/spec/taints").as_array().cloned().unwrap_or_default(),
                 "unschedulable": at("/spec/unschedulable") == true},
        "status": {
            "capacity": at("/status/capacity").as_object().cloned().unwrap_or_else(|| allocatable.clone()),
            "allocatable": allocatable,
            "conditions": at("/status/conditions").as_array().cloned().unwrap_or_default(),
            "images": at("/status/images").as_array().cloned().unwrap_or_default(),
        },
    })
}

/// Quantities are written as text, and by some as numbers.
pub(crate) fn quantity(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    }
}

/// The first group whose labels the node has.
pub(crate) fn group_of(labels: &Map<String, Value>, matches: &Matches) -> Option<SmolStr> {
    let has = |(key, value): (&SmolStr, &SmolStr)| labels.get(key.as_str()).and_then(Value::as_str) == Some(value);
    let group = matches.iter().find(|(_, wanted)| !wanted.is_empty() && wanted.iter().all(has));
    group.map(|(name, _)| name.clone())
}

fn is_ready(node: &Value) -> bool {
    let conditions = node.pointer("/status/conditions").and_then(Value::as_array);
    let ready = conditions.into_iter().flatten().find(|condition| condition["type"] == "Ready");
    // A recording that says nothing of conditions says nothing against the node.
    ready.is_none_or(|ready| ready["status"] == "True")
}

fn make_ready(node: &mut Value) {
    node["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
    if let Some(taints) = node["spec"]["taints"].as_array_mut() {
        taints.retain(|taint| !PASSING.iter().any(|passing| taint["key"] == *passing));
    }
}

/// Is a node closed from here until it goes? What took its pods off is not in a recording: an eviction changes nothing but
/// pods.
fn is_drained(node: &Value, event: &NodeEvent, ahead: &[NodeEvent]) -> bool {
    let is_closed = |node: &Value| node["spec"]["unschedulable"] == true;
    let mut later = ahead.iter().filter(|later| later.node == event.node).map(|later| later.object.as_ref());
    is_closed(node) && later.find(|node| node.is_none_or(|node| !is_closed(node))) == Some(None)
}

/// A node that joins becomes ready when the recording says so.
fn become_ready(node: &mut Value, event: &NodeEvent, ahead: &[NodeEvent]) {
    if is_ready(node) {
        make_ready(node);
        return;
    }
    let of_node = ahead.iter().filter(|later| later.node == event.node);
    let ready =
        of_node.take_while(|later| later.object.is_some()).find(|later| later.object.as_ref().is_some_and(is_ready));
    let delay = ready.map_or(NEVER, |ready| ready.at.since(event.at));
    node["metadata"]["annotations"] = json!({NODE_READY_DELAY.as_str(): directives::millis(delay).as_str()});
    node["status"]["conditions"] = json!([{"type": "Ready", "status": "False"}]);
    if let Some(taints) = node["spec"]["taints"].as_array_mut() {
        taints.retain(|taint| !PASSING.iter().any(|passing| taint["key"] == *passing));
        taints.push(json!({"key": PASSING[0], "effect": "NoSchedule"}));
    }
}

//! Node groups and the nodes made from them.

use serde_json::{Map, Value, json};
use sk_apiserver::Object;
use sk_apiserver::directives::{self, NODE_GROUP, NODE_READY_DELAY};
use sk_apiserver::kinds::Condition;
use sk_core::rng::Stream;
use sk_core::{SimDuration, SimTime, SmolStr, Taint, TaintEffect};
use sk_scheduler::NodeSpec;

use crate::classes;
use crate::kubelet::NOT_READY;
use crate::settings::NodeGroup;

/// A group with the count of nodes it ever made, so that no name comes twice.
#[derive(Clone)]
pub(super) struct Group {
    pub(super) settings: NodeGroup,
    made: u64,
    /// How long its nodes take to be ready.
    readiness: Stream,
}

impl Group {
    /// A group whose first nodes ([`first_nodes`]) are made.
    pub(super) fn new(settings: NodeGroup, seed: u64) -> Self {
        let readiness = Stream::new(seed, &format!("node-ready/{}", settings.name));
        Self { made: initial(&settings).into(), settings, readiness }
    }

    /// The next node of the group.
    pub(super) fn make_node(&mut self, now: SimTime) -> Object {
        self.made += 1;
        let delay = self.settings.draw_ready_delay(&mut self.readiness);
        new_node(&self.settings, &node_name(&self.settings, self.made), now, delay)
    }

    /// A ready, empty node of the group that does not exist, as the provider describes it.
    pub(super) fn described(&self) -> NodeSpec {
        let node = new_node(&self.settings, &self.template_name(), SimTime::EPOCH, SimDuration::ZERO);
        classes::node(&node).expect("a node of a group is a node")
    }

    /// What a node that does not exist is called, as in cluster-autoscaler.
    pub(super) fn template_name(&self) -> SmolStr {
        format!("template-node-for-{}", self.settings.name).into()
    }

    /// The most nodes it may have.
    pub(super) fn max(&self) -> usize {
        usize::try_from(self.settings.max).unwrap_or(usize::MAX)
    }

    /// The fewest nodes that are left to it.
    pub(super) fn min(&self) -> usize {
        usize::try_from(self.settings.min).unwrap_or(usize::MAX)
    }
}

fn initial(group: &NodeGroup) -> u32 {
    group.initial.unwrap_or(group.min)
}

/// The nodes a group has when a simulation begins, ready.
pub(crate) fn first_nodes(group: &NodeGroup, now: SimTime) -> impl Iterator<Item = Object> {
    (1..=u64::from(initial(group)))
        .map(move |number| new_node(group, &node_name(group, number), now, SimDuration::ZERO))
}

fn node_name(group: &NodeGroup, number: u64) -> String {
    format!("{}-{number}", group.name)
}

/// A node of a group, as a cloud would register it: not ready, and repelling pods, until `delay` has passed.
pub fn new_node(group: &NodeGroup, name: &str, now: SimTime, delay: SimDuration) -> Object {
    let mut labels = Map::new();
    for (key, value) in &group.labels {
        labels.insert(key.to_string(), json!(value));
    }
    labels.insert(NODE_GROUP.to_string(), json!(group.name));
    let own = [("kubernetes.io/hostname", name), ("kubernetes.io/os", "linux"), ("kubernetes.io/arch", "amd64")];
    for (key, value) in own {
        labels.entry(key).or_insert_with(|| json!(value));
    }
    let is_ready = delay == SimDuration::ZERO;
    let mut taints: Vec<Taint> = group.taints.clone();
    let mut node_annotations = Map::new();
    if !is_ready {
        taints.push(Taint::new(NOT_READY, TaintEffect::NoSchedule));
        node_annotations.insert(NODE_READY_DELAY.to_string(), json!(directives::millis(delay)));
    }
    let ready = Condition::new("Ready", is_ready, now);
    let json = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": Value::Object(labels), "annotations": Value::Object(node_annotations)},
        "spec": {"taints": taints, "providerID": SmolStr::from(format!("simkube://{}/{name}", group.name))},
        "status": {"capacity": group.capacity, "allocatable": group.allocatable, "conditions": [ready]},
    });
    Object::from_json(json).expect("a node made here is well-formed")
}

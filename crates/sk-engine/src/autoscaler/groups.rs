//! Node groups and the nodes made from them.

use std::sync::Arc;

use serde_json::{Map, Value};
use sk_apiserver::directives::{self, NODE_GROUP, NODE_READY_DELAY};
use sk_apiserver::kinds::{Condition, NODE, Node, NodeSpec, NodeStatus};
use sk_apiserver::{Body, Labels, Meta, Object};
use sk_core::rng::Stream;
use sk_core::{ObjectKey, SimDuration, SimTime, SmolStr, Taint, TaintEffect};

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
    pub(super) fn described(&self) -> sk_scheduler::NodeSpec {
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

/// The nodes a group has when a simulation begins, ready. They share what they have in common: a cluster may begin with
/// ten thousand.
pub(crate) fn first_nodes(group: &NodeGroup, now: SimTime) -> impl Iterator<Item = Object> {
    let status = status(group, true, now);
    (1..=u64::from(initial(group)))
        .map(move |number| node(group, &node_name(group, number), SimDuration::ZERO, Arc::clone(&status)))
}

fn node_name(group: &NodeGroup, number: u64) -> String {
    format!("{}-{number}", group.name)
}

/// A node of a group, as a cloud would register it: not ready, and repelling pods, until `delay` has passed.
pub fn new_node(group: &NodeGroup, name: &str, now: SimTime, delay: SimDuration) -> Object {
    node(group, name, delay, status(group, delay == SimDuration::ZERO, now))
}

/// What a node reports: times to the second, as the API has them.
fn status(group: &NodeGroup, is_ready: bool, now: SimTime) -> Arc<NodeStatus> {
    let ready = Condition::new("Ready", is_ready, now.whole_secs());
    Arc::new(NodeStatus {
        capacity: group.capacity.clone(),
        allocatable: group.allocatable.clone(),
        conditions: vec![ready],
        rest: Map::new(),
    })
}

fn node(group: &NodeGroup, name: &str, delay: SimDuration, status: Arc<NodeStatus>) -> Object {
    let mut labels = group.labels.clone();
    labels.insert(NODE_GROUP, group.name.clone());
    let own = [("kubernetes.io/hostname", name), ("kubernetes.io/os", "linux"), ("kubernetes.io/arch", "amd64")];
    for (key, value) in own {
        labels.entry(SmolStr::new_static(key)).or_insert_with(|| value.into());
    }
    let mut taints = group.taints.clone();
    let mut annotations = Labels::default();
    if delay != SimDuration::ZERO {
        taints.push(Taint::new(NOT_READY, TaintEffect::NoSchedule));
        annotations.make_mut().insert(NODE_READY_DELAY, directives::millis(delay));
    }
    let provider = format!("simkube://{}/{name}", group.name);
    let rest = Map::from_iter([("providerID".to_owned(), Value::String(provider))]);
    let spec = Arc::new(NodeSpec { unschedulable: false, taints, rest });
    let meta = Meta { labels: labels.into(), annotations, ..Meta::default() };
    Object::new(NODE.clone(), ObjectKey::cluster(name), meta, Body::Node(Node { spec, status }))
}

#[cfg(test)]
mod tests {
    use sk_core::Quantity;

    use super::*;

    #[test]
    fn a_node_is_what_the_api_server_would_read_from_its_json() {
        let amounts = [("cpu", "3920m"), ("memory", "14Gi"), ("pods", "110")];
        let amounts = amounts.map(|(name, text)| (SmolStr::from(name), text.parse::<Quantity>().unwrap()));
        let group = NodeGroup {
            name: "large".into(),
            capacity: amounts.clone().into(),
            allocatable: amounts.into(),
            labels: [("kubernetes.io/arch".into(), "arm64".into()), ("zone".into(), "a".into())].into(),
            taints: vec![Taint::new("gpu", TaintEffect::NoSchedule)],
            initial: Some(2),
            ..NodeGroup::default()
        };
        let now = SimTime::from_micros(1_767_603_600_250_000);
        let starting = new_node(&group, "large-3", now, SimDuration::from_millis(1_500));
        for node in first_nodes(&group, now).chain([starting]) {
            let json = node.to_json();
            assert_eq!(Object::from_json(json.clone()).unwrap(), node);
            assert_eq!(json["metadata"]["labels"]["kubernetes.io/arch"], "arm64");
            assert_eq!(json["metadata"]["labels"]["kubernetes.io/hostname"], json["metadata"]["name"]);
        }
    }
}

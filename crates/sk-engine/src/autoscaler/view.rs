//! The cluster as the autoscaler sees it in one scan.

use std::collections::BTreeMap;
use std::sync::Arc;

use sk_apiserver::Object;
use sk_apiserver::kinds::{NODE, POD, Pod};
use sk_core::{ObjectKey, SmolStr};
use sk_scheduler::{Node, PodClass, plugins};

use super::groups::Group;
use crate::annotations::NODE_GROUP;
use crate::cache::Cache;
use crate::classes::{self, Classes};
use crate::kubelet::NOT_READY;

/// One scan's picture.
pub(super) struct View {
    /// Nodes of our groups that are not going, ready or soon to be.
    pub(super) nodes: Vec<NodeView>,
    /// Pods the scheduler found no place for, oldest first.
    pub(super) pending: Vec<PodView>,
    /// How many nodes of each group are going: they still count towards its maximum.
    going: Vec<usize>,
}

/// A node with its pods counted in.
pub(super) struct NodeView {
    /// The group it belongs to, by index.
    pub(super) group: usize,
    pub(super) is_ready: bool,
    /// As it will be once ready.
    pub(super) node: Node,
    pub(super) pods: Vec<PodView>,
}

/// A pod and what the scheduler looks at in it.
#[derive(Clone)]
pub(super) struct PodView {
    pub(super) object: Arc<Object>,
    pub(super) class: Arc<PodClass>,
}

impl View {
    pub(super) fn new(
        cache: &Cache,
        groups: &[Group],
        draining: &BTreeMap<SmolStr, usize>,
        classes: &mut Classes,
    ) -> Self {
        let index: BTreeMap<&str, usize> =
            groups.iter().enumerate().map(|(index, group)| (group.settings.name.as_str(), index)).collect();
        let staying = cache.list(&NODE).filter(|node| !draining.contains_key(&node.key.name) && !node.is_deleting());
        let nodes = staying.filter_map(|object| {
            let group = *index.get(object.meta.labels.get(&NODE_GROUP)?.as_str())?;
            Some(node_view(object, group, cache, classes))
        });
        let nodes = nodes.flatten().collect();
        let waiting = cache.list(&POD).filter(|object| is_unschedulable(object));
        let mut pending: Vec<_> = waiting.filter_map(|object| pod_view(object, classes)).collect();
        pending.sort_by_key(|pod| (pod.object.meta.created, pod.object.key.clone()));
        let going = (0..groups.len()).map(|group| draining.values().filter(|of| **of == group).count()).collect();
        Self { nodes, pending, going }
    }

    /// How many nodes a group has that are not going.
    pub(super) fn size_of(&self, group: usize) -> usize {
        self.nodes.iter().filter(|node| node.group == group).count()
    }

    /// How many machines a group has, those that are going included.
    pub(super) fn machines_of(&self, group: usize) -> usize {
        self.size_of(group) + self.going[group]
    }

    /// The pending pods for which there will be no room even when all nodes are ready.
    pub(super) fn pods_without_room(&self) -> Vec<PodView> {
        let mut nodes: Vec<Node> = self.nodes.iter().map(|view| view.node.clone()).collect();
        let stays = |pod: &&PodView| match nodes.iter_mut().find(|node| plugins::filter(&pod.class, node).is_ok()) {
            Some(node) => {
                node.add_pod(&pod.class);
                false
            }
            None => true,
        };
        self.pending.iter().filter(stays).cloned().collect()
    }
}

fn node_view(object: &Arc<Object>, group: usize, cache: &Cache, classes: &mut Classes) -> Option<NodeView> {
    let mut node = classes::node(object)?;
    node.taints = node.taints.iter().filter(|taint| taint.key != NOT_READY).cloned().collect();
    let runs = |pod: &Pod| !pod.status.phase.is_final();
    let on_it = cache.pods_on(&object.key.name).filter(|pod| pod.pod().is_some_and(runs));
    let pods: Vec<PodView> = on_it.filter_map(|pod| pod_view(pod, classes)).collect();
    for pod in &pods {
        node.add_pod(&pod.class);
    }
    let is_ready = object.node().is_some_and(sk_apiserver::kinds::Node::is_ready);
    Some(NodeView { group, is_ready, node, pods })
}

fn pod_view(object: &Arc<Object>, classes: &mut Classes) -> Option<PodView> {
    Some(PodView { object: object.clone(), class: classes.of(object.pod()?) })
}

/// Marked by the scheduler as fitting nowhere.
fn is_unschedulable(object: &Object) -> bool {
    let Some(pod) = object.pod() else { return false };
    let condition = pod.status.condition("PodScheduled");
    let refused = condition.is_some_and(|condition| !condition.is_true() && condition.reason == "Unschedulable");
    refused && pod.node_name.is_none() && !object.is_deleting() && !pod.status.phase.is_final()
}

impl PodView {
    pub(super) fn key(&self) -> &ObjectKey {
        &self.object.key
    }
}

//! The cluster as the autoscaler sees it, kept up to date change by change: nothing is looked at again in a scan that
//! cannot have changed since the last.

use std::collections::BTreeMap;
use std::sync::Arc;

use sk_apiserver::directives::NODE_GROUP;
use sk_apiserver::{self as api, Body, Change, Object, WatchEvent};
use sk_core::{ObjectKey, SimTime, SmolStr};
use sk_scheduler::{Node, PodClass, plugins};

use crate::classes::{self, Classes};
use crate::kubelet::NOT_READY;
use crate::settings::NodeGroup;

/// Nodes that are going, with their groups.
pub(super) type Draining = BTreeMap<SmolStr, usize>;

/// The picture.
#[derive(Clone, Debug)]
pub(super) struct View {
    /// The groups by name.
    groups: BTreeMap<SmolStr, usize>,
    /// Nodes of our groups, ready or soon to be.
    nodes: BTreeMap<SmolStr, NodeView>,
    /// Pods the scheduler found no place for, oldest first.
    pending: BTreeMap<(SimTime, ObjectKey), PodView>,
    classes: Classes,
}

/// A node with its pods counted in.
#[derive(Clone, Debug)]
pub(super) struct NodeView {
    /// The group it belongs to, by index.
    pub(super) group: usize,
    pub(super) is_ready: bool,
    is_deleting: bool,
    /// As it will be once ready.
    pub(super) node: Node,
    pods: BTreeMap<ObjectKey, PodView>,
}

/// A pod and what the scheduler looks at in it.
#[derive(Clone, Debug)]
pub(super) struct PodView {
    pub(super) object: Arc<Object>,
    pub(super) class: Arc<PodClass>,
}

impl View {
    pub(super) fn new(groups: &[NodeGroup]) -> Self {
        let groups = groups.iter().enumerate().map(|(index, group)| (group.name.clone(), index)).collect();
        Self { groups, nodes: BTreeMap::new(), pending: BTreeMap::new(), classes: Classes::new() }
    }

    /// Takes in one change.
    pub(super) fn learn(&mut self, event: &WatchEvent, view: api::View<'_>) {
        match &event.object.body {
            Body::Node(_) if event.change == Change::Deleted => drop(self.nodes.remove(&event.object.key.name)),
            Body::Node(_) => self.learn_node(&event.object, view),
            Body::Pod(_) => {
                if let Some(before) = &event.before {
                    self.forget_pod(before);
                }
                if event.change != Change::Deleted {
                    self.learn_pod(&event.object);
                }
            }
            Body::Namespace(_) | Body::Deployment(_) | Body::ReplicaSet(_) | Body::Other(_) => {}
        }
    }

    fn learn_node(&mut self, object: &Arc<Object>, view: api::View<'_>) {
        let name = &object.key.name;
        let group = object.meta.labels.get(&NODE_GROUP).and_then(|group| self.groups.get(group)).copied();
        let (Some(group), Some(mut node)) = (group, classes::node(object)) else {
            self.nodes.remove(name);
            return;
        };
        node.taints = node.taints.iter().filter(|taint| taint.key != NOT_READY).cloned().collect();
        let pods = match self.nodes.remove(name) {
            Some(known) => known.pods,
            None => {
                let there = view.pods_on(name).filter(|(_, pod)| holds_room(pod));
                there.filter_map(|(_, pod)| Some((pod.key.clone(), self.pod_view(pod)?))).collect()
            }
        };
        pods.values().for_each(|pod| node.add_pod(&pod.class));
        let is_ready = object.node().is_some_and(api::kinds::Node::is_ready);
        let known = NodeView { group, is_ready, is_deleting: object.is_deleting(), node, pods };
        self.nodes.insert(name.clone(), known);
    }

    fn learn_pod(&mut self, object: &Arc<Object>) {
        if is_unschedulable(object)
            && let Some(pod) = self.pod_view(object)
        {
            self.pending.insert(age_of(object), pod);
        }
        if holds_room(object)
            && let Some(pod) = self.pod_view(object)
            && let Some(node) = node_of(object).and_then(|name| self.nodes.get_mut(name))
        {
            node.node.add_pod(&pod.class);
            node.pods.insert(object.key.clone(), pod);
        }
    }

    fn forget_pod(&mut self, object: &Arc<Object>) {
        if is_unschedulable(object) {
            self.pending.remove(&age_of(object));
        }
        if let Some(node) = node_of(object).and_then(|name| self.nodes.get_mut(name))
            && let Some(pod) = node.pods.remove(&object.key)
        {
            node.node.remove_pod(&pod.class);
        }
    }

    fn pod_view(&mut self, object: &Arc<Object>) -> Option<PodView> {
        Some(PodView { object: object.clone(), class: self.classes.of(object.pod()?) })
    }

    /// The nodes that are not going.
    pub(super) fn staying<'a>(&'a self, draining: &'a Draining) -> impl Iterator<Item = &'a NodeView> {
        self.nodes
            .iter()
            .filter(|(name, node)| !node.is_deleting && !draining.contains_key(*name))
            .map(|(_, node)| node)
    }

    /// How many nodes each group has that are not going.
    pub(super) fn sizes(&self, draining: &Draining) -> Vec<usize> {
        let mut sizes = vec![0; self.groups.len()];
        self.staying(draining).for_each(|node| sizes[node.group] += 1);
        sizes
    }

    /// The pending pods for which there will be no room even when all nodes are ready.
    pub(super) fn pods_without_room(&self, draining: &Draining) -> Vec<PodView> {
        if self.pending.is_empty() {
            return Vec::new();
        }
        let mut nodes: Vec<Node> = self.staying(draining).map(|view| view.node.clone()).collect();
        let stays = |pod: &&PodView| match nodes.iter_mut().find(|node| plugins::filter(&pod.class, node).is_ok()) {
            Some(node) => {
                node.add_pod(&pod.class);
                false
            }
            None => true,
        };
        self.pending.values().filter(stays).cloned().collect()
    }

    /// Does a picture made anew say the same? It must, whatever changes led here; debug builds look in every scan.
    pub(super) fn is_true(&self, view: api::View<'_>) -> bool {
        let mut anew = Self { nodes: BTreeMap::new(), pending: BTreeMap::new(), ..self.clone() };
        for (_, object) in view.everything() {
            match &object.body {
                Body::Node(_) => anew.learn_node(object, view),
                Body::Pod(_) if is_unschedulable(object) => anew.learn_pod(object),
                Body::Pod(_) | Body::Namespace(_) | Body::Deployment(_) | Body::ReplicaSet(_) | Body::Other(_) => {}
            }
        }
        anew.facts() == self.facts()
    }

    /// All that decisions are made of.
    fn facts(&self) -> impl PartialEq + use<> {
        let node = |(name, view): (&SmolStr, &NodeView)| {
            let (requested, pods) = (view.node.requested.clone(), view.node.pods);
            let keys: Vec<_> = view.pods.iter().map(|(key, pod)| (key.clone(), pod.object.resource_version)).collect();
            (name.clone(), view.group, view.is_ready, view.is_deleting, requested, pods, keys)
        };
        let nodes: Vec<_> = self.nodes.iter().map(node).collect();
        let pending: Vec<_> = self.pending.keys().cloned().collect();
        (nodes, pending)
    }
}

impl NodeView {
    /// Its pods, by namespace and name.
    pub(super) fn pods(&self) -> impl Iterator<Item = &PodView> {
        self.pods.values()
    }
}

impl PodView {
    pub(super) fn key(&self) -> &ObjectKey {
        &self.object.key
    }
}

fn age_of(object: &Object) -> (SimTime, ObjectKey) {
    (object.created, object.key.clone())
}

fn node_of(object: &Object) -> Option<&SmolStr> {
    object.pod()?.node_name.as_ref()
}

/// Is it bound and has it not ended?
fn holds_room(object: &Object) -> bool {
    object.pod().is_some_and(|pod| pod.node_name.is_some() && !pod.status.phase.is_final())
}

/// Marked by the scheduler as fitting nowhere.
fn is_unschedulable(object: &Object) -> bool {
    let Some(pod) = object.pod() else { return false };
    let condition = pod.status.condition("PodScheduled");
    let refused = condition.is_some_and(|condition| !condition.is_true() && condition.reason() == "Unschedulable");
    refused && pod.node_name.is_none() && !object.is_deleting() && !pod.status.phase.is_final()
}

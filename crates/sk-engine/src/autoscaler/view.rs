//! The cluster as the autoscaler sees it, kept up to date change by change: nothing is looked at again in a scan that
//! cannot have changed since the last.
//!
//! Nodes and pods also stand in a scheduler of the autoscaler's own, which is asked what would fit where: nodes as they
//! will be once they are ready.

use std::collections::BTreeMap;
use std::sync::Arc;

use sk_apiserver::directives::NODE_GROUP;
use sk_apiserver::{self as api, Body, Change, Object, WatchEvent};
use sk_core::{ObjectKey, SimTime, SmolStr};
use sk_scheduler::{NodeId, NodeSpec, PodId, Scheduler};

use crate::classes::{self, Classes};
use crate::kubelet::NOT_READY;
use crate::settings::NodeGroup;

/// Nodes that are going, with their groups.
pub(super) type Draining = BTreeMap<SmolStr, usize>;

/// The picture.
#[derive(Clone)]
pub(super) struct View {
    /// The groups by name.
    groups: BTreeMap<SmolStr, usize>,
    /// Nodes of our groups, ready or soon to be.
    nodes: BTreeMap<SmolStr, NodeView>,
    /// Pods the scheduler found no place for, oldest first.
    pending: BTreeMap<(SimTime, ObjectKey), PodView>,
    /// Asked what would fit where.
    pub(super) what_if: Scheduler,
    classes: Classes,
}

/// A node with its pods counted in.
#[derive(Clone, Debug)]
pub(super) struct NodeView {
    pub(super) name: SmolStr,
    /// The group it belongs to, by index.
    pub(super) group: usize,
    pub(super) is_ready: bool,
    is_deleting: bool,
    pub(super) id: NodeId,
    /// What is left for pods.
    pub(super) allocatable: Amount,
    /// What its pods ask for.
    pub(super) requested: Amount,
    pods: BTreeMap<ObjectKey, PodView>,
}

/// CPU in thousandths and memory in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) cpu_milli: i64,
    pub(super) memory: i64,
}

/// A pod and what the scheduler calls it.
#[derive(Clone, Debug)]
pub(super) struct PodView {
    pub(super) object: Arc<Object>,
    pub(super) id: PodId,
    pub(super) requests: Amount,
}

/// What a pod is to the autoscaler.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Role {
    /// Marked by the scheduler as fitting nowhere.
    Pending,
    /// Takes room on this node.
    On(SmolStr),
}

impl Amount {
    fn plus(self, other: Self, times: i64) -> Self {
        Self {
            cpu_milli: self.cpu_milli.saturating_add(other.cpu_milli.saturating_mul(times)),
            memory: self.memory.saturating_add(other.memory.saturating_mul(times)),
        }
    }

    pub(super) fn of(spec: &NodeSpec) -> Self {
        Self { cpu_milli: spec.cpu, memory: spec.memory }
    }

    pub(super) fn sum(amounts: impl Iterator<Item = Self>) -> Self {
        amounts.fold(Self::default(), |sum, one| sum.plus(one, 1))
    }
}

impl View {
    pub(super) fn new(groups: &[NodeGroup]) -> Self {
        let groups = groups.iter().enumerate().map(|(index, group)| (group.name.clone(), index)).collect();
        Self {
            groups,
            nodes: BTreeMap::new(),
            pending: BTreeMap::new(),
            what_if: Scheduler::default(),
            classes: Classes::default(),
        }
    }

    /// Takes in one change.
    pub(super) fn learn(&mut self, event: &WatchEvent, view: api::View<'_>) {
        let is_there = event.change != Change::Deleted;
        match &event.object.body {
            Body::Node(_) if is_there => self.learn_node(&event.object, view),
            Body::Node(_) => self.forget_node(&event.object.key.name),
            Body::Pod(_) => self.pod_changed(event.before.as_ref(), is_there.then_some(&event.object)),
            Body::Namespace(_) => {
                let labels = is_there.then(|| (*event.object.meta.labels).clone());
                self.what_if.cluster.objects.set_namespace(event.object.key.name.clone(), labels);
            }
            Body::Deployment(_)
            | Body::ReplicaSet(_)
            | Body::StatefulSet(_)
            | Body::DaemonSet(_)
            | Body::Job(_)
            | Body::CronJob(_)
            | Body::Other(_) => {}
        }
    }

    fn learn_node(&mut self, object: &Arc<Object>, view: api::View<'_>) {
        let name = &object.key.name;
        let group = object.meta.labels.get(&NODE_GROUP).and_then(|group| self.groups.get(group)).copied();
        let (Some(group), Some(mut spec)) = (group, classes::node(object)) else { return self.forget_node(name) };
        spec.taints.retain(|taint| taint.key != NOT_READY);
        let allocatable = Amount::of(&spec);
        let is_ready = object.node().is_some_and(api::kinds::Node::is_ready);
        let is_deleting = object.is_deleting();
        let id = self.what_if.cluster.set_node(spec).node;
        if let Some(known) = self.nodes.get_mut(name) {
            (known.group, known.is_ready, known.is_deleting, known.allocatable) =
                (group, is_ready, is_deleting, allocatable);
            return;
        }
        let (requested, pods) = (Amount::default(), BTreeMap::new());
        let node = NodeView { name: name.clone(), group, is_ready, is_deleting, id, allocatable, requested, pods };
        self.nodes.insert(name.clone(), node);
        let there: Vec<_> = view.pods_on(name).map(|(_, pod)| pod.clone()).collect();
        there.iter().for_each(|pod| self.pod_changed(None, Some(pod)));
    }

    fn forget_node(&mut self, name: &SmolStr) {
        let Some(node) = self.nodes.remove(name) else { return };
        node.pods.values().for_each(|pod| self.what_if.cluster.drop_pod(pod.id));
        self.what_if.cluster.remove_node(node.id);
    }

    fn pod_changed(&mut self, before: Option<&Arc<Object>>, after: Option<&Arc<Object>>) {
        let (was, is) = (before.and_then(|pod| role(pod)), after.and_then(|pod| role(pod)));
        if let (Some(before), Some(after)) = (before, after)
            && was == is
            && is_alike(before, after)
        {
            if let Some(known) = self.pod_mut(after, is.as_ref()) {
                known.object = after.clone();
            }
            return;
        }
        if let (Some(before), Some(role)) = (before, was) {
            self.forget_pod(before, &role);
        }
        if let (Some(after), Some(role)) = (after, is) {
            self.learn_pod(after, &role);
        }
    }

    fn pod_mut(&mut self, object: &Object, role: Option<&Role>) -> Option<&mut PodView> {
        match role? {
            Role::Pending => self.pending.get_mut(&age_of(object)),
            Role::On(node) => self.nodes.get_mut(node)?.pods.get_mut(&object.key),
        }
    }

    fn learn_pod(&mut self, object: &Arc<Object>, role: &Role) {
        let Some(pod) = object.pod() else { return };
        let node = match role {
            Role::Pending => None,
            Role::On(node) => match self.nodes.get_mut(node) {
                Some(node) => Some(node),
                None => return,
            },
        };
        let cluster = &mut self.what_if.cluster;
        let Ok(class) = self.classes.of(object, pod, cluster) else { return };
        let requests = &cluster.class(class).shape.requests;
        let requests = Amount { cpu_milli: requests.cpu, memory: requests.memory };
        let id = cluster.new_pod(class, object.key.name.clone());
        let known = PodView { object: object.clone(), id, requests };
        match node {
            None => drop(self.pending.insert(age_of(object), known)),
            Some(node) => {
                cluster.add_pod(id, node.id);
                node.requested = node.requested.plus(requests, 1);
                node.pods.insert(object.key.clone(), known);
            }
        }
    }

    fn forget_pod(&mut self, object: &Object, role: &Role) {
        let known = match role {
            Role::Pending => self.pending.remove(&age_of(object)),
            Role::On(node) => self.nodes.get_mut(node).and_then(|node| {
                let known = node.pods.remove(&object.key)?;
                node.requested = node.requested.plus(known.requests, -1);
                Some(known)
            }),
        };
        if let Some(known) = known {
            self.what_if.cluster.drop_pod(known.id);
        }
    }

    /// The nodes that are not going.
    pub(super) fn staying<'a>(&'a self, draining: &'a Draining) -> impl Iterator<Item = &'a NodeView> {
        self.nodes.values().filter(|node| !node.is_deleting && !draining.contains_key(&node.name))
    }

    /// How many nodes each group has that are not going.
    pub(super) fn sizes(&self, draining: &Draining) -> Vec<usize> {
        let mut sizes = vec![0; self.groups.len()];
        self.staying(draining).for_each(|node| sizes[node.group] += 1);
        sizes
    }

    /// The pending pods for which there will be no room even when all nodes are ready.
    pub(super) fn pods_without_room(&mut self, draining: &Draining) -> Vec<PodView> {
        if self.pending.is_empty() {
            return Vec::new();
        }
        let nodes: Vec<NodeId> = self.staying(draining).map(|node| node.id).collect();
        let before = self.what_if.cluster.checkpoint();
        let mut without = Vec::new();
        for pod in self.pending.values() {
            match self.what_if.first_fit(pod.id, nodes.iter().copied()) {
                Some(node) => self.what_if.cluster.add_pod(pod.id, node),
                None => without.push(pod.clone()),
            }
        }
        self.what_if.cluster.rollback(before);
        without
    }

    /// Does a picture made anew say the same? It must, whatever changes led here; debug builds look in every scan.
    pub(super) fn is_true(&self, view: api::View<'_>) -> bool {
        let mut anew = Self { groups: self.groups.clone(), ..Self::new(&[]) };
        for (_, object) in view.everything() {
            match &object.body {
                Body::Node(_) => anew.learn_node(object, view),
                Body::Pod(_) if role(object) == Some(Role::Pending) => anew.pod_changed(None, Some(object)),
                Body::Pod(_)
                | Body::Namespace(_)
                | Body::Deployment(_)
                | Body::ReplicaSet(_)
                | Body::Job(_)
                | Body::CronJob(_)
                | Body::StatefulSet(_)
                | Body::DaemonSet(_)
                | Body::Other(_) => {}
            }
        }
        anew.facts() == self.facts()
    }

    /// All that decisions are made of.
    fn facts(&self) -> impl PartialEq + use<> {
        let node = |view: &NodeView| {
            let keys: Vec<_> = view.pods.iter().map(|(key, pod)| (key.clone(), pod.object.resource_version)).collect();
            let sums = (view.allocatable, view.requested, self.what_if.cluster.pods_on(view.id).len());
            (view.name.clone(), view.group, view.is_ready, view.is_deleting, sums, keys)
        };
        let nodes: Vec<_> = self.nodes.values().map(node).collect();
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

fn role(object: &Object) -> Option<Role> {
    let pod = object.pod().filter(|pod| !pod.status.phase.is_final())?;
    if let Some(node) = &pod.node_name {
        return Some(Role::On(node.clone()));
    }
    let condition = pod.status.condition("PodScheduled");
    let refused = condition.is_some_and(|condition| !condition.is_true() && condition.reason() == "Unschedulable");
    (refused && !object.is_deleting()).then_some(Role::Pending)
}

/// Is there nothing that scheduling looks at in which the two differ?
fn is_alike(before: &Object, after: &Object) -> bool {
    let specs = before.pod().zip(after.pod());
    specs.is_some_and(|(before, after)| Arc::ptr_eq(&before.spec, &after.spec))
        && before.meta.labels.is_same(&after.meta.labels)
        && Arc::ptr_eq(&before.meta.owners, &after.meta.owners)
}

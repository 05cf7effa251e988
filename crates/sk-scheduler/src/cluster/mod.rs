//! The scheduler's cache: nodes, the pods on them, and the other objects that scheduling reads.
//!
//! The caller passes in what its informers saw; nothing here decides. Ids are dense and the numbers lie in columns.
//! Whatever is derived from them elsewhere follows the [`log`].
//!
//! What-if questions: [`Cluster::checkpoint`], place and remove pods at will, [`Cluster::rollback`]; the cluster is
//! then as before, including the order of the pods on each node. For hypothetical nodes clone the cluster: it is
//! columns, a few bytes per pod and node.

pub(crate) mod classes;
pub(crate) mod columns;
mod images;
pub(crate) mod log;
pub mod objects;
mod order;
mod pods;
pub(crate) mod topology;

use std::sync::Arc;

use sk_core::SmolStr;
use sk_core::lookup::Keyed;

pub use self::classes::Freed;
use self::classes::{Classes, ShapeEntry};
use self::columns::{Columns, HARD_TAINT, LIVE, SOFT_TAINT, UNSCHEDULABLE};
use self::images::Images;
use self::log::{Change, Log};
pub use self::objects::Objects;
use self::order::Order;
pub use self::pods::{Checkpoint, Pod};
use self::pods::{Nominations, Pods};
use self::topology::Topology;
use super::class::PodClass;
use super::ids::{ClassId, KeyId, NodeId, PodId, ResourceId};
use super::node::NodeSpec;

/// A freed slot is used again only when this many are free: until then nobody can mistake a new node for an old one.
const MIN_FREE_SLOTS: usize = 1_024;

/// Nodes, pods and what else decides about placement.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    /// Namespaces, Services, controllers, budgets, claims.
    pub objects: Objects,
    pub(crate) columns: Columns,
    pub(crate) topology: Topology,
    pub(crate) images: Images,
    pub(crate) classes: Classes,
    pub(crate) log: Log,
    pub(crate) order: Order,
    pub(crate) pods: Pods,
    pub(crate) nominations: Nominations,
    by_name: Keyed<SmolStr, NodeId>,
    removed: Vec<NodeId>,
    free: Vec<NodeId>,
    images_seen: u64,
    /// Nodes with a taint that keeps pods off.
    pub(crate) hard_taints: usize,
    /// Nodes with a taint that pods would rather avoid.
    pub(crate) soft_taints: usize,
    /// Nodes that are cordoned.
    pub(crate) cordoned: usize,
}

/// A node before and after.
#[derive(Clone, Debug)]
pub struct NodeChange {
    /// Which node.
    pub node: NodeId,
    /// What it was; `None`: it is new.
    pub before: Option<Arc<NodeSpec>>,
    /// What it is; `None`: it went.
    pub after: Option<Arc<NodeSpec>>,
}

impl Cluster {
    /// How many nodes there are.
    pub fn node_count(&self) -> usize {
        self.order.count()
    }

    /// A node by name, also one that has no object yet but pods bound to it.
    pub fn node_id(&self, name: &str) -> Option<NodeId> {
        self.by_name.get(name).copied()
    }

    /// What is known of a node; the last known of one that went.
    pub fn node(&self, node: NodeId) -> &Arc<NodeSpec> {
        &self.columns.specs[node.index()]
    }

    /// Does the node have an object?
    pub fn is_live(&self, node: NodeId) -> bool {
        self.columns.flags[node.index()] & LIVE != 0
    }

    /// The nodes in the order of the search, as of the last decision.
    pub fn search_order(&self) -> &[NodeId] {
        self.order.walk()
    }

    /// The slot of a node that pods may be bound to before its object is seen.
    pub fn slot(&mut self, name: &str) -> NodeId {
        if let Some(node) = self.by_name.get(name) {
            return *node;
        }
        let spec = Arc::new(NodeSpec { name: name.into(), ..NodeSpec::default() });
        let node = self.take_slot(spec);
        self.by_name.insert(name.into(), node);
        node
    }

    fn take_slot(&mut self, spec: Arc<NodeSpec>) -> NodeId {
        if self.free.len() <= MIN_FREE_SLOTS.max(self.order.count()) {
            self.pods.on.push(Vec::new());
            return self.columns.push(spec);
        }
        let node = self.free.remove(0);
        self.topology.version += 1;
        self.columns.specs[node.index()] = spec;
        node
    }

    /// A node came or changed.
    pub fn set_node(&mut self, spec: NodeSpec) -> NodeChange {
        let node = self.slot(&spec.name);
        let before = self.is_live(node).then(|| Arc::clone(self.node(node)));
        let after = Arc::new(spec);
        if before.as_ref() == Some(&after) {
            if !self.images.is_empty() {
                // Kubernetes looks afresh at a node whose object was written, even if nothing in it changed.
                self.log.push(Change::Node { node }, self.columns.len());
            }
            return NodeChange { node, before: before.clone(), after: before };
        }
        self.topology.change(node, before.as_ref(), Some(&after), !self.pods.on[node.index()].is_empty());
        self.images.remove(node.index());
        self.images.add(node.index(), &after);
        match &before {
            None => self.order.add(node, after.zone()),
            Some(before) if before.zone() != after.zone() => {
                self.order.remove(node, &before.zone());
                self.order.add(node, after.zone());
            }
            Some(_) => {}
        }
        let resources = after.scalars.iter();
        let scalars: Vec<(ResourceId, i64)> =
            resources.map(|(name, total)| (ResourceId(self.classes.resources.intern(name)), *total)).collect();
        self.columns.grow_scalars(self.classes.resources.len());
        self.count_flags(node, false);
        self.columns.set_spec(node, Arc::clone(&after), &scalars);
        self.count_flags(node, true);
        self.log.push(Change::Node { node }, self.columns.len());
        NodeChange { node, before, after: Some(after) }
    }

    /// A node went. Pods still counted on it stay there, unseen, until they go too or the node comes back.
    pub fn remove_node(&mut self, node: NodeId) -> NodeChange {
        if !self.is_live(node) {
            return NodeChange { node, before: None, after: None };
        }
        let before = Arc::clone(self.node(node));
        self.topology.change(node, Some(&before), None, !self.pods.on[node.index()].is_empty());
        self.images.remove(node.index());
        self.order.remove(node, &before.zone());
        self.count_flags(node, false);
        self.columns.clear_spec(node);
        self.removed.push(node);
        self.log.push(Change::Node { node }, self.columns.len());
        NodeChange { node, before: Some(before), after: None }
    }

    fn count_flags(&mut self, node: NodeId, enters: bool) {
        let flags = self.columns.flags[node.index()];
        let counts = [
            (&mut self.hard_taints, HARD_TAINT),
            (&mut self.soft_taints, SOFT_TAINT),
            (&mut self.cordoned, UNSCHEDULABLE),
        ];
        for (count, flag) in counts {
            match (flags & flag != 0, enters) {
                (true, true) => *count += 1,
                (true, false) => *count -= 1,
                (false, _) => {}
            }
        }
    }

    /// How many pods there are, wherever they are.
    pub fn pod_count(&self) -> usize {
        self.pods.len()
    }

    /// How many classes are held, and how many shapes.
    pub fn held(&self) -> (usize, usize) {
        (self.classes.len(), self.classes.shapes())
    }

    /// Which classes neither a pod nor any of these has.
    pub(crate) fn unused_classes(&self, others: impl Iterator<Item = ClassId>) -> Freed {
        self.classes.unused(self.pods.classes().chain(others))
    }

    /// Frees classes and what the cluster itself keeps of them.
    pub(crate) fn free_classes(&mut self, freed: &Freed) {
        self.log.forget(freed);
        self.pods.forget(freed);
        self.classes.free(freed);
    }

    /// Gives a class its id, which is good until classes are freed that no pod has
    /// ([`Scheduler::free_classes`](crate::Scheduler::free_classes)).
    pub fn intern(&mut self, class: PodClass) -> ClassId {
        let id = self.classes.intern(class, &mut self.images);
        self.columns.grow_scalars(self.classes.resources.len());
        id
    }

    /// A class by id.
    pub fn class(&self, id: ClassId) -> &Arc<PodClass> {
        self.classes.get(id)
    }

    pub(crate) fn shape_entry(&self, class: ClassId) -> &Arc<ShapeEntry> {
        self.classes.shape(self.classes.shape_of(class))
    }

    pub(crate) fn class_of(&self, pod: PodId) -> &Arc<PodClass> {
        self.classes.get(self.pods.get(pod).class)
    }

    pub(crate) fn key(&mut self, name: &str) -> KeyId {
        self.topology.key(name, &self.columns)
    }

    /// Gives numbers to all label keys that the class names domains by.
    pub(crate) fn learn_keys(&mut self, class: ClassId) {
        let class = Arc::clone(self.class(class));
        let (affinity, preferred) =
            (&class.affinity, class.affinity.preferred.iter().chain(&class.affinity.preferred_anti));
        let terms = affinity.required.iter().chain(&affinity.required_anti).chain(preferred.map(|(_, term)| term));
        for term in terms {
            self.key(&term.key);
        }
        for constraint in &class.spread {
            self.key(&constraint.key);
        }
    }

    pub(crate) fn resource(&mut self, name: &str) -> ResourceId {
        let resource = ResourceId(self.classes.resources.intern(name));
        self.columns.grow_scalars(self.classes.resources.len());
        resource
    }

    /// Counts a pod of a class on a node for the length of a dry run: the numbers only, not the log. The caller takes it
    /// back with the opposite `by`.
    pub(crate) fn count(&mut self, node: NodeId, class: ClassId, by: i64) {
        let entry = self.classes.shape(self.classes.shape_of(class));
        self.columns.count(node, &entry.shape.requests, &entry.scalars, &entry.shape.ports, by);
    }

    /// What Kubernetes does at the start of a cycle: takes down the order of nodes if one came or went, and looks afresh
    /// at nodes that changed.
    pub(crate) fn take_snapshot(&mut self) {
        self.order.take_down(self.columns.len());
        for node in std::mem::take(&mut self.removed) {
            if self.is_live(node) {
                continue;
            }
            if self.pods.on[node.index()].is_empty() {
                let name = self.columns.specs[node.index()].name.clone();
                self.by_name.remove(&name);
                self.nominations.forget_node(node);
                self.free.push(node);
            } else {
                self.removed.push(node);
            }
        }
        if !self.images.is_empty() {
            match self.log.since(self.images_seen) {
                Some(changes) => changes.iter().for_each(|change| self.images.renew(change.node().index())),
                None => (0..self.columns.len()).for_each(|node| self.images.renew(node)),
            }
            self.images_seen = self.log.end();
        }
    }
}

//! The order in which a search visits nodes.
//!
//! Kubernetes keeps a list of zones in first-seen order with the nodes of each, and visits them round-robin, so that a
//! search that ends early has seen all zones (`backend/cache/node_tree.go`). It takes a *snapshot* of this order at
//! the start of a cycle, but only when a node was added or removed (`cache.go`, `UpdateSnapshot`): a node whose zone
//! label changes keeps its position until then, and so does one that was deleted and recreated between two cycles. The
//! order breaks ties between equal scores, so it must be the same.

use std::sync::Arc;

use sk_core::SmolStr;

use crate::ids::NodeId;

/// Not in the snapshot.
pub(crate) const ABSENT: u32 = u32::MAX;

/// Zones, and the walk over them as last taken down.
#[derive(Clone, Debug, Default)]
pub(crate) struct Order {
    zones: Vec<(SmolStr, Vec<NodeId>)>,
    count: usize,
    walk: Arc<Vec<NodeId>>,
    /// The position of each node in the order.
    position: Vec<u32>,
    version: u64,
    has_new: bool,
    /// Nodes of the walk that have no object any more.
    gone: Vec<NodeId>,
}

impl Order {
    /// Nodes in the tree now.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The walk as of the last [`Self::take_down`].
    pub(crate) fn walk(&self) -> &Arc<Vec<NodeId>> {
        &self.walk
    }

    /// Counts the changes of the walk.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// The position of the node in the order.
    pub(crate) fn position(&self, node: NodeId) -> Option<usize> {
        self.position.get(node.index()).filter(|at| **at != ABSENT).map(|at| *at as usize)
    }

    pub(crate) fn add(&mut self, node: NodeId, zone: SmolStr) {
        self.count += 1;
        match self.zones.iter_mut().find(|(known, _)| *known == zone) {
            Some((_, nodes)) => nodes.push(node),
            None => self.zones.push((zone, vec![node])),
        }
        self.gone.retain(|gone| *gone != node);
        self.has_new |= self.position(node).is_none();
    }

    pub(crate) fn remove(&mut self, node: NodeId, zone: &str) {
        if let Some(at) = self.zones.iter().position(|(known, _)| known == zone) {
            let nodes = &mut self.zones[at].1;
            let before = nodes.len();
            nodes.retain(|known| *known != node);
            self.count -= before - nodes.len();
            if nodes.is_empty() {
                self.zones.remove(at);
            }
        }
        if self.position(node).is_some() {
            self.gone.push(node);
        }
    }

    /// Takes the walk down if Kubernetes would; `true` if it changed.
    pub(crate) fn take_down(&mut self, slots: usize) -> bool {
        if !self.has_new && self.gone.is_empty() {
            return false;
        }
        (self.has_new, self.version) = (false, self.version + 1);
        self.gone.clear();
        let longest = self.zones.iter().map(|(_, nodes)| nodes.len()).max().unwrap_or(0);
        let row = |index: usize| self.zones.iter().filter_map(move |(_, nodes)| nodes.get(index).copied());
        let walk: Vec<NodeId> = (0..longest).flat_map(row).collect();
        self.position.clear();
        self.position.resize(slots, ABSENT);
        for (at, node) in walk.iter().enumerate() {
            self.position[node.index()] = u32::try_from(at).expect("positions are below the number of nodes");
        }
        self.walk = Arc::new(walk);
        true
    }
}

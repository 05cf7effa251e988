//! The nodes in the order in which the scheduler looks at them.
//!
//! Kubernetes keeps a list of zones in first-seen order and a list of nodes in each, and walks them round-robin, so that
//! a search cut short has seen all zones (`backend/cache/node_tree.go`, 1.36). The order decides between equal scores,
//! so it is part of being right.

use std::collections::BTreeMap;

use sk_core::SmolStr;

use crate::{Node, PodClass};

/// All nodes the scheduler knows.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    /// A node keeps its slot while it lives; a search walks slots, not names.
    slots: Vec<Option<Node>>,
    free: Vec<usize>,
    by_name: BTreeMap<SmolStr, usize>,
    /// Zones in first-seen order, each with the slots of its nodes in the order of their arrival.
    zones: Vec<(SmolStr, Vec<usize>)>,
    /// The walk over `zones`; `None` after a change until somebody asks.
    order: Option<Vec<usize>>,
}

impl Cluster {
    /// How many nodes.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// No nodes at all?
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// A node by name.
    pub fn get(&self, name: &str) -> Option<&Node> {
        self.slots[*self.by_name.get(name)?].as_ref()
    }

    /// Adds a node, or takes over its new properties and keeps the pods counted on it.
    pub fn upsert(&mut self, node: Node) {
        let zone = node.zone();
        match self.by_name.get(&node.name).copied() {
            Some(slot) => {
                let Some(known) = &mut self.slots[slot] else { return };
                let old_zone = known.zone();
                known.update(node);
                if old_zone != zone {
                    self.leave_zone(&old_zone, slot);
                    self.enter_zone(zone, slot);
                }
            }
            None => {
                let slot = self.free.pop().unwrap_or_else(|| {
                    self.slots.push(None);
                    self.slots.len() - 1
                });
                self.by_name.insert(node.name.clone(), slot);
                self.slots[slot] = Some(node);
                self.enter_zone(zone, slot);
            }
        }
    }

    /// Removes a node; pods still on it are forgotten with it.
    pub fn remove(&mut self, name: &str) -> Option<Node> {
        let slot = self.by_name.remove(name)?;
        let node = self.slots[slot].take()?;
        self.free.push(slot);
        self.leave_zone(&node.zone(), slot);
        Some(node)
    }

    /// Counts a pod in on `node`; `false` when there is no such node.
    pub fn add_pod(&mut self, node: &str, class: &PodClass) -> bool {
        self.get_mut(node).map(|node| node.add_pod(class)).is_some()
    }

    /// Counts a pod out from `node`; `false` when there is no such node.
    pub fn remove_pod(&mut self, node: &str, class: &PodClass) -> bool {
        self.get_mut(node).map(|node| node.remove_pod(class)).is_some()
    }

    /// The nodes in search order.
    pub(crate) fn in_order(&mut self) -> Vec<&Node> {
        let order = self.order.get_or_insert_with(|| round_robin(&self.zones));
        order.iter().filter_map(|slot| self.slots[*slot].as_ref()).collect()
    }

    fn get_mut(&mut self, name: &str) -> Option<&mut Node> {
        self.slots[*self.by_name.get(name)?].as_mut()
    }

    fn enter_zone(&mut self, zone: SmolStr, slot: usize) {
        self.order = None;
        match self.zones.iter_mut().find(|(known, _)| *known == zone) {
            Some((_, slots)) => slots.push(slot),
            None => self.zones.push((zone, vec![slot])),
        }
    }

    fn leave_zone(&mut self, zone: &str, slot: usize) {
        self.order = None;
        if let Some((_, slots)) = self.zones.iter_mut().find(|(known, _)| known == zone) {
            slots.retain(|known| *known != slot);
        }
        self.zones.retain(|(_, slots)| !slots.is_empty());
    }
}

fn round_robin(zones: &[(SmolStr, Vec<usize>)]) -> Vec<usize> {
    let longest = zones.iter().map(|(_, slots)| slots.len()).max().unwrap_or(0);
    (0..longest).flat_map(|index| zones.iter().filter_map(move |(_, slots)| slots.get(index).copied())).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn node(name: &str, zone: &str) -> Node {
        let labels = Arc::new(BTreeMap::from([("topology.kubernetes.io/zone".into(), zone.into())]));
        Node { name: name.into(), labels, ..Node::default() }
    }

    fn order(cluster: &mut Cluster) -> Vec<String> {
        cluster.in_order().iter().map(|node| node.name.to_string()).collect()
    }

    #[test]
    fn the_search_goes_round_the_zones_in_the_order_they_were_first_seen() {
        let mut cluster = Cluster::default();
        for (name, zone) in [("n1", "b"), ("n2", "b"), ("n3", "a"), ("n4", "c"), ("n5", "a")] {
            cluster.upsert(node(name, zone));
        }
        assert_eq!(order(&mut cluster), ["n1", "n3", "n4", "n2", "n5"]);
        cluster.remove("n1");
        cluster.upsert(node("n4", "b"));
        assert_eq!(order(&mut cluster), ["n2", "n3", "n4", "n5"]);
    }

    #[test]
    fn a_changed_node_keeps_the_pods_counted_on_it() {
        let mut cluster = Cluster::default();
        cluster.upsert(node("n1", "a"));
        let class = PodClass { requests: sk_core::Resources::new(500, 1), ..PodClass::default() };
        assert!(cluster.add_pod("n1", &class));
        cluster.upsert(Node { unschedulable: true, ..node("n1", "a") });
        let node = cluster.get("n1").unwrap();
        assert_eq!((node.pods, node.requested.cpu_milli, node.unschedulable), (1, 500, true));
        assert!(!cluster.add_pod("n2", &class));
    }
}

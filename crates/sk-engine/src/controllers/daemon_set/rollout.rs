//! Rolling updates of a DaemonSet: deletes at most `maxUnavailable` old pods first, or creates new pods beside at most
//! `maxSurge` old ones (`update.go`, 1.36).

use std::sync::Arc;

use sk_apiserver::Object;
use sk_apiserver::kinds::SetStrategyType;
use sk_core::SmolStr;
use sk_core::rng::Stream;

use super::sync::{Changes, Sync};

/// What a node has of pods that are not going.
enum OnNode<'a> {
    Nothing,
    New(&'a Arc<Object>),
    Old(&'a Arc<Object>),
    Both {
        new: &'a Arc<Object>,
        old: &'a Arc<Object>,
    },
    /// More than one of a sort: for `manage` to clean up.
    TooMany,
}

impl<'a> Sync<'a> {
    /// Does the set put new pods beside old ones?
    pub(super) fn allows_surge(&self) -> bool {
        self.surge(1) > 0
    }

    fn surge(&self, nodes: i32) -> i32 {
        let strategy = &self.set.spec.update_strategy;
        let steps = strategy.rolling_update.as_ref().filter(|_| strategy.kind == SetStrategyType::RollingUpdate);
        steps.and_then(|steps| steps.max_surge.of(nodes, true)).unwrap_or(0).max(0)
    }

    /// `(maxSurge, maxUnavailable)`, never both zero (`updatedDesiredNodeCounts`).
    fn fenceposts(&self) -> (usize, usize) {
        let nodes = i32::try_from(self.desired()).unwrap_or(i32::MAX);
        let steps = self.set.spec.update_strategy.rolling_update.as_ref();
        let unavailable = steps.and_then(|steps| steps.max_unavailable.of(nodes, true)).unwrap_or(0).max(0);
        let count = |count: i32| usize::try_from(count).unwrap_or(0);
        match (count(self.surge(nodes)), count(unavailable)) {
            (0, 0) => (0, 1),
            posts => posts,
        }
    }

    /// The next step of a rollout.
    pub(super) fn roll(&self, order: &mut Stream) -> Changes<'a> {
        match self.fenceposts() {
            (0, unavailable) => self.replace(unavailable, order),
            (surge, _) => self.put_beside(surge, order),
        }
    }

    /// The pods on each node that has any or should have one.
    fn nodes_of_rollout(&self) -> impl Iterator<Item = (&SmolStr, OnNode<'a>)> {
        let empty = self.nodes.iter().filter(|(node, fit)| fit.should_run && !self.pods.contains_key(*node));
        let empty = empty.map(|(node, _)| (node, OnNode::Nothing));
        self.pods.iter().map(|(node, pods)| (node, self.on_node(pods))).chain(empty)
    }

    fn on_node(&self, pods: &[&'a Arc<Object>]) -> OnNode<'a> {
        let staying = pods.iter().filter(|pod| !pod.is_deleting());
        let (new, old): (Vec<&Arc<Object>>, Vec<_>) = staying.partition(|pod| self.is_new(pod));
        match (new.as_slice(), old.as_slice()) {
            ([], []) => OnNode::Nothing,
            ([new], []) => OnNode::New(new),
            ([], [old]) => OnNode::Old(old),
            ([new], [old]) => OnNode::Both { new, old },
            _ => OnNode::TooMany,
        }
    }

    /// Old pods that are not available go at once, others as long as few enough pods are missing.
    fn replace(&self, max_unavailable: usize, order: &mut Stream) -> Changes<'a> {
        let (mut unavailable, mut sick, mut candidates) = (0, Vec::new(), Vec::new());
        for (_, pods) in self.nodes_of_rollout() {
            match pods {
                OnNode::New(new) => unavailable += usize::from(!self.is_available(new)),
                OnNode::Old(old) if self.is_available(old) => candidates.push(old),
                OnNode::Old(old) => {
                    sick.push(old);
                    unavailable += 1;
                }
                OnNode::Nothing | OnNode::Both { .. } | OnNode::TooMany => unavailable += 1,
            }
        }
        order.shuffle(&mut sick);
        order.shuffle(&mut candidates);
        candidates.truncate(max_unavailable.saturating_sub(unavailable));
        Changes { create_on: Vec::new(), delete: sick.into_iter().chain(candidates).collect() }
    }

    /// New pods come at once where the old one is not available, and beside at most `max_surge` others; old ones go when
    /// the new one beside them is available.
    fn put_beside(&self, max_surge: usize, order: &mut Stream) -> Changes<'a> {
        let mut changes = Changes::default();
        let (mut surging, mut available) = (0, 0);
        let (mut candidates, mut unwanted) = (Vec::new(), Vec::new());
        for (node, pods) in self.nodes_of_rollout() {
            let should_run = self.nodes.get(node).is_some_and(|fit| fit.should_run);
            match pods {
                OnNode::TooMany => surging += 1,
                OnNode::Nothing => {}
                OnNode::New(new) => available += usize::from(self.is_available(new)),
                OnNode::Old(old) => match (self.is_available(old), should_run) {
                    (false, true) => changes.create_on.push(node.clone()),
                    (false, false) => changes.delete.push(old),
                    (true, true) => {
                        available += 1;
                        candidates.push(node.clone());
                    }
                    (true, false) => {
                        available += 1;
                        unwanted.push(old);
                    }
                },
                OnNode::Both { new, old } => {
                    available += usize::from(self.is_available(old));
                    if self.is_available(new) {
                        changes.delete.push(old);
                    } else {
                        surging += 1;
                    }
                }
            }
        }
        order.shuffle(&mut changes.create_on);
        order.shuffle(&mut changes.delete);
        order.shuffle(&mut unwanted);
        order.shuffle(&mut candidates);
        // Where a set moves from some nodes to others, the old ones wait until enough new ones are available.
        changes.delete.extend(unwanted.into_iter().take(available.saturating_sub(self.desired())));
        changes.create_on.extend(candidates.into_iter().take(max_surge.saturating_sub(surging)));
        changes
    }
}

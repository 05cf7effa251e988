//! How many nodes of a group some pods need: first fit, largest pods first (`estimator/binpacking_estimator.go`).
//!
//! The estimator tries equal pods together: first in turn on the new nodes so far, then each on the newest node alone,
//! and when that is full on one more node. A pod that does not fit on an empty node ends the round for its equals.

use std::cmp::Reverse;

use sk_scheduler::NodeId;

use super::filters;
use super::flags::Autoscaler;
use super::rules::Rule;
use super::template::{Template, TemplateNode};
use super::view::{Amount, PodView, View};

/// Pods that are alike, with the one that is tried for all.
#[derive(Clone, Debug)]
pub(super) struct Alike {
    pub(super) pods: Vec<PodView>,
}

/// What new nodes of a group would do.
#[derive(Clone, Debug, Default)]
pub(super) struct Estimate {
    /// How many nodes have pods.
    pub(super) nodes: usize,
    /// The pods that would have a place.
    pub(super) pods: Vec<PodView>,
    /// The limit was reached and pods are left.
    pub(super) capped: bool,
}

/// Packs the pods onto at most `limit` new nodes.
pub(super) fn estimate(
    template: &Template,
    groups: &[&Alike],
    limit: usize,
    (turn, flags): (&mut Turn, &Autoscaler),
    view: &mut View,
) -> Estimate {
    let mut sorted: Vec<&&Alike> = groups.iter().collect();
    if flags.follows(Rule::LargestPodsFirst) {
        sorted.sort_by_key(|alike| Reverse(alike.pods.first().map_or(0, |pod| size(pod, template.total))));
    }
    let before = view.what_if.cluster.checkpoint();
    let mut packing = Packing { template, limit, flags, nodes: Vec::new(), estimate: Estimate::default() };
    for alike in sorted {
        packing.place_all(&alike.pods, turn, view);
    }
    view.what_if.cluster.rollback(before);
    packing.estimate.nodes = packing.nodes.iter().filter(|(_, pods)| *pods > 0).count();
    packing.nodes.into_iter().for_each(|(copy, _)| copy.take_out(view));
    packing.estimate
}

struct Packing<'a> {
    template: &'a Template,
    limit: usize,
    flags: &'a Autoscaler,
    /// The new nodes and how many pods each has.
    nodes: Vec<(TemplateNode, usize)>,
    estimate: Estimate,
}

impl Packing<'_> {
    fn place_all(&mut self, pods: &[PodView], turn: &mut Turn, view: &mut View) {
        let ids: Vec<NodeId> = self.nodes.iter().map(|(copy, _)| copy.node).collect();
        let mut left = pods.iter();
        let rest = left.by_ref().find(|pod| match turn.first_fit(pod, &ids, view) {
            Some(node) => {
                self.put(pod, node, view);
                false
            }
            None => true,
        });
        for pod in rest.into_iter().chain(left) {
            if !self.place_on_newest(pod, view) {
                return;
            }
        }
    }

    /// `false`: pods like this one need not be tried any more.
    fn place_on_newest(&mut self, pod: &PodView, view: &mut View) -> bool {
        if let Some((newest, used)) = self.nodes.last().map(|(copy, used)| (copy.node, *used)) {
            if filters::fits(pod, newest, view, self.flags) {
                self.put(pod, newest, view);
                return true;
            }
            if used == 0 {
                return false;
            }
        }
        if self.nodes.len() >= self.limit {
            self.estimate.capped = true;
            return false;
        }
        let name = format!("{}-e-{}", self.template.spec().name, self.nodes.len());
        let copy = self.template.put(name.into(), view);
        let node = copy.node;
        self.nodes.push((copy, 0));
        let fits = filters::fits(pod, node, view, self.flags);
        if fits {
            self.put(pod, node, view);
        }
        fits
    }

    fn put(&mut self, pod: &PodView, node: NodeId, view: &mut View) {
        view.what_if.cluster.add_pod(pod.id, node);
        if let Some((_, pods)) = self.nodes.iter_mut().find(|(copy, _)| copy.node == node) {
            *pods += 1;
        }
        self.estimate.pods.push(pod.clone());
    }
}

/// Where the search for a node begins: after the one that was found last, as in cluster-autoscaler's
/// `RunFiltersUntilPassingNode`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Turn(usize);

impl Turn {
    /// The first of the nodes, from where it is their turn, that takes the pod.
    pub(super) fn first_fit(&mut self, pod: &PodView, nodes: &[NodeId], view: &mut View) -> Option<NodeId> {
        let start = if nodes.is_empty() { 0 } else { self.0 % nodes.len() };
        let (later, first) = nodes.split_at(start);
        let found = view.what_if.first_fit(pod.id, first.iter().chain(later).copied())?;
        self.0 = nodes.iter().position(|node| *node == found).map_or(0, |place| place + 1);
        Some(found)
    }
}

/// The pod's share of a node: of CPU plus of memory, in millionths.
fn size(pod: &PodView, total: Amount) -> i64 {
    share(pod.requests.cpu_milli, total.cpu_milli).saturating_add(share(pod.requests.memory, total.memory))
}

/// In millionths.
pub(super) fn share(part: i64, whole: i64) -> i64 {
    if whole <= 0 {
        0
    } else {
        (i128::from(part) * 1_000_000 / i128::from(whole)).clamp(0, i128::from(i64::MAX)) as i64
    }
}

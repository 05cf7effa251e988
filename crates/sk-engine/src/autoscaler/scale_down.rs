//! Which nodes could go, and which of them go now: pure decisions.

use sk_apiserver::Object;
use sk_core::{ObjectKey, SmolStr};
use sk_scheduler::{NodeId, Scheduler};

use super::Idle;
use super::groups::Group;
use super::view::{Draining, NodeView, View};
use crate::settings::Autoscaler;

const SAFE_TO_EVICT: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict";

/// A node that could go, with the pods that would have to move.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Candidate {
    pub(super) name: SmolStr,
    pub(super) group: usize,
    pub(super) pods: Vec<ObjectKey>,
}

/// The nodes whose pods would all find room elsewhere, empty ones first. Each counts on the ones before it being gone.
pub(super) fn removable(view: &mut View, draining: &Draining, settings: &Autoscaler) -> Vec<Candidate> {
    let nodes: Vec<NodeView> = view.staying(draining).cloned().collect();
    let idle = nodes.iter().filter(|node| node.is_ready && is_idle(node, settings));
    let is_empty = |node: &NodeView| !node.pods().any(|pod| holds_its_node(&pod.object));
    let (empty, used): (Vec<&NodeView>, Vec<&NodeView>) = idle.partition(|node| is_empty(node));
    if empty.is_empty() && used.is_empty() {
        return Vec::new();
    }
    let before = view.what_if.cluster.checkpoint();
    let open = nodes.iter().filter(|node| node.is_ready).map(|node| node.id).collect();
    let mut elsewhere = Elsewhere { what_if: &mut view.what_if, open };
    let mut candidates = Vec::new();
    for node in empty {
        elsewhere.open.retain(|known| *known != node.id);
        candidates.push(candidate(node, Vec::new()));
    }
    for node in used {
        if let Some(pods) = elsewhere.take_in(node, settings) {
            candidates.push(candidate(node, pods));
        }
    }
    view.what_if.cluster.rollback(before);
    candidates
}

fn candidate(view: &NodeView, pods: Vec<ObjectKey>) -> Candidate {
    Candidate { name: view.name.clone(), group: view.group, pods }
}

/// Below the utilisation threshold in CPU and in memory.
fn is_idle(view: &NodeView, settings: &Autoscaler) -> bool {
    let (used, total) = (view.requested, view.allocatable);
    let below = |used: i64, total: i64| {
        let threshold = i128::from(settings.scale_down_utilization_threshold_milli);
        total > 0 && i128::from(used) * 1000 < threshold * i128::from(total)
    };
    below(used.cpu_milli, total.cpu_milli) && below(used.memory, total.memory)
}

/// The nodes that would be left, with the pods that would have moved there.
struct Elsewhere<'a> {
    what_if: &'a mut Scheduler,
    /// The nodes that pods may move to.
    open: Vec<NodeId>,
}

impl Elsewhere<'_> {
    /// Finds room for all pods of a node that would have to move, and closes that node; `None`, and nothing changed, if
    /// one of them must stay.
    fn take_in(&mut self, node: &NodeView, settings: &Autoscaler) -> Option<Vec<ObjectKey>> {
        let others: Vec<NodeId> = self.open.iter().copied().filter(|known| *known != node.id).collect();
        let before = self.what_if.cluster.checkpoint();
        let mut moved = Vec::new();
        for pod in node.pods().filter(|pod| must_move(&pod.object)) {
            if !must_stay(&pod.object, settings) {
                self.what_if.cluster.remove_pod(pod.id);
                if let Some(target) = self.what_if.first_fit(pod.id, others.iter().copied()) {
                    self.what_if.cluster.add_pod(pod.id, target);
                    moved.push(pod.key().clone());
                    continue;
                }
            }
            self.what_if.cluster.rollback(before);
            return None;
        }
        self.what_if.cluster.commit(before);
        self.open = others;
        Some(moved)
    }
}

/// A pod that has to go elsewhere before its node can go, and is not going already.
pub(super) fn must_move(pod: &Object) -> bool {
    holds_its_node(pod) && !pod.is_deleting()
}

/// A pod without which its node would be empty: not a daemon's, not the node's own, not one that has ended.
pub(super) fn holds_its_node(pod: &Object) -> bool {
    let with_the_node = pod.controller().is_some_and(|owner| owner.gvk.kind == "DaemonSet" || owner.gvk.kind == "Node");
    let ended = pod.pod().is_some_and(|pod| pod.status.phase.is_final());
    !with_the_node && !ended
}

/// A pod whose eviction would lose something: nobody would make it again, or somebody forbade it.
fn must_stay(pod: &Object, settings: &Autoscaler) -> bool {
    match pod.meta.annotations.get(SAFE_TO_EVICT).map(SmolStr::as_str) {
        Some("true") => return false,
        Some("false") => return true,
        _ => {}
    }
    let of_the_system = settings.skip_nodes_with_system_pods && pod.key.namespace.as_deref() == Some("kube-system");
    pod.controller().is_none() || of_the_system
}

/// The nodes to remove now: those that are `due`, as many as may go at once and as their groups can spare.
pub(super) fn choose(
    idle: &Idle,
    groups: &[Group],
    settings: &Autoscaler,
    in_flight: usize,
    due: impl Fn(&SmolStr) -> bool,
) -> Vec<Candidate> {
    let least = |group: &Group| usize::try_from(group.settings.min).unwrap_or(usize::MAX);
    let sizes = idle.sizes.iter().zip(groups);
    let mut spare: Vec<usize> = sizes.map(|(size, group)| size.saturating_sub(least(group))).collect();
    let mut at_once = settings.max_scale_down_parallelism.saturating_sub(in_flight);
    let mut drains = settings.max_drain_parallelism;
    let mut chosen = Vec::new();
    for candidate in idle.removable.iter().filter(|candidate| due(&candidate.name)) {
        let is_drain = !candidate.pods.is_empty();
        if at_once == 0 || spare[candidate.group] == 0 || (is_drain && drains == 0) {
            continue;
        }
        spare[candidate.group] -= 1;
        at_once -= 1;
        drains -= usize::from(is_drain);
        chosen.push(candidate.clone());
    }
    chosen
}

//! Which nodes could go, and which of them go now: pure decisions.

use sk_apiserver::Object;
use sk_core::{ObjectKey, SmolStr};
use sk_scheduler::{Node, PodClass, plugins};

use super::Idle;
use super::groups::Group;
use super::view::{Draining, NodeView, PodView, View};
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
pub(super) fn removable(view: &View, draining: &Draining, settings: &Autoscaler) -> Vec<Candidate> {
    let nodes: Vec<&NodeView> = view.staying(draining).collect();
    let idle = nodes.iter().copied().enumerate().filter(|(_, node)| node.is_ready && is_idle(node, settings));
    let is_empty = |node: &NodeView| !node.pods().any(|pod| holds_its_node(&pod.object));
    let (empty, used): (Vec<_>, Vec<_>) = idle.partition(|(_, node)| is_empty(node));
    if empty.is_empty() && used.is_empty() {
        return Vec::new();
    }
    let mut elsewhere = Elsewhere::new(&nodes);
    let mut candidates = Vec::new();
    for (index, node) in empty {
        elsewhere.open[index] = false;
        candidates.push(candidate(node, Vec::new()));
    }
    for (index, node) in used {
        if let Some(pods) = elsewhere.take_in(index, node, settings) {
            candidates.push(candidate(node, pods));
        }
    }
    candidates
}

fn candidate(view: &NodeView, pods: Vec<ObjectKey>) -> Candidate {
    Candidate { name: view.node.name.clone(), group: view.group, pods }
}

/// Below the utilisation threshold in CPU and in memory.
fn is_idle(view: &NodeView, settings: &Autoscaler) -> bool {
    let (used, total) = (&view.node.requested, &view.node.allocatable);
    let below = |used: i64, total: i64| {
        let threshold = i128::from(settings.scale_down_utilization_threshold_milli);
        total > 0 && i128::from(used) * 1000 < threshold * i128::from(total)
    };
    below(used.cpu_milli, total.cpu_milli) && below(used.memory, total.memory)
}

/// The nodes that would be left, with the pods that would have moved there.
struct Elsewhere {
    nodes: Vec<Node>,
    /// Which of them pods may move to.
    open: Vec<bool>,
}

impl Elsewhere {
    fn new(nodes: &[&NodeView]) -> Self {
        let open = nodes.iter().map(|view| view.is_ready).collect();
        Self { nodes: nodes.iter().map(|view| view.node.clone()).collect(), open }
    }

    /// Finds room for all pods of the node at `index` that would have to move, and closes that node; `None`, and nothing
    /// changed, if one of them must stay.
    fn take_in(&mut self, index: usize, view: &NodeView, settings: &Autoscaler) -> Option<Vec<ObjectKey>> {
        let was_open = std::mem::replace(&mut self.open[index], false);
        let mut moved = Vec::new();
        for pod in view.pods().filter(|pod| must_move(&pod.object)) {
            let target = if must_stay(&pod.object, settings) { None } else { self.room_for(&pod.class) };
            let Some(target) = target else {
                for (target, pod) in moved {
                    let pod: &PodView = pod;
                    let node: &mut Node = &mut self.nodes[target];
                    node.remove_pod(&pod.class);
                }
                self.open[index] = was_open;
                return None;
            };
            self.nodes[target].add_pod(&pod.class);
            moved.push((target, pod));
        }
        Some(moved.into_iter().map(|(_, pod)| pod.key().clone()).collect())
    }

    fn room_for(&self, class: &PodClass) -> Option<usize> {
        let mut nodes = self.nodes.iter().zip(&self.open);
        nodes.position(|(node, open)| *open && plugins::filter(class, node).is_ok())
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

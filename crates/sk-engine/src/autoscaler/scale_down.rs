//! Which nodes could go, and which of them go now: pure decisions.

use std::collections::BTreeMap;

use sk_apiserver::Object;
use sk_core::{ObjectKey, SmolStr};
use sk_scheduler::{Node, plugins};

use super::Idle;
use super::groups::Group;
use super::view::{NodeView, View};
use crate::settings::Autoscaler;

const SAFE_TO_EVICT: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict";

/// A node that could go, with the pods that would have to move.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Candidate {
    pub(super) name: SmolStr,
    pub(super) group: usize,
    pub(super) pods: Vec<ObjectKey>,
}

/// The nodes whose pods would all find room elsewhere, empty ones first.
pub(super) fn removable(view: &View, settings: &Autoscaler) -> Vec<Candidate> {
    let idle = view.nodes.iter().filter(|node| node.is_ready && is_idle(node, settings));
    let (empty, used): (Vec<_>, Vec<_>) = idle.partition(|node| !node.pods.iter().any(|pod| must_move(&pod.object)));
    let mut elsewhere: BTreeMap<SmolStr, Node> = view
        .nodes
        .iter()
        .filter(|node| node.is_ready)
        .map(|view| (view.node.name.clone(), view.node.clone()))
        .collect();
    let mut candidates = Vec::new();
    for node in empty {
        elsewhere.remove(&node.node.name);
        candidates.push(candidate(node, Vec::new()));
    }
    // Nodes that would be emptied may not count on nodes that are empty already: those will be gone. If nothing else is
    // left, they may.
    for node in used {
        let movable = moves(node, &elsewhere, settings).or_else(|| {
            let spare = view.nodes.iter().filter(|other| other.is_ready && other.node.name != node.node.name);
            let spare = spare.map(|view| (view.node.name.clone(), view.node.clone())).collect();
            moves(node, &spare, settings).map(|(pods, _)| (pods, elsewhere.clone()))
        });
        if let Some((pods, after)) = movable {
            elsewhere = after;
            elsewhere.remove(&node.node.name);
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

/// Where the node's pods would go: their keys and the other nodes afterwards; `None` if one of them must stay.
fn moves(
    view: &NodeView,
    elsewhere: &BTreeMap<SmolStr, Node>,
    settings: &Autoscaler,
) -> Option<(Vec<ObjectKey>, BTreeMap<SmolStr, Node>)> {
    let mut after = elsewhere.clone();
    after.remove(&view.node.name);
    let mut moved = Vec::new();
    for pod in view.pods.iter().filter(|pod| must_move(&pod.object)) {
        if must_stay(&pod.object, settings) {
            return None;
        }
        let target = after.values_mut().find(|node| plugins::filter(&pod.class, node).is_ok())?;
        target.add_pod(&pod.class);
        moved.push(pod.key().clone());
    }
    Some((moved, after))
}

/// A pod that has to go elsewhere before its node can go: not a daemon's, not a node's own, not one already going.
pub(super) fn must_move(pod: &Object) -> bool {
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

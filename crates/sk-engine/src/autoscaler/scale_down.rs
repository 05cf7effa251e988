//! Which nodes are unneeded, since when, and which to remove now (`core/scaledown/planner`, `eligibility`,
//! `unneeded`).
//!
//! Decides only. A loop simulates, for one node after the other with low utilization, whether its pods fit elsewhere,
//! and remembers since when a node is unneeded. A node that the simulation found unremovable is not simulated again
//! for a while, even if it becomes empty in the meantime.

use std::collections::BTreeMap;

use sk_core::rng::Stream;
use sk_core::{ObjectKey, SimDuration, SimTime, SmolStr};
use sk_scheduler::{NodeId, PodId};

use super::drain::{Drainability, Rules};
use super::estimator::Turn;
use super::flags::Autoscaler;
use super::groups::Group;
use super::listers::Allowance;
use super::rules::Rule;
use super::utilization::Utilization;
use super::view::{NodeView, PodView, View};

/// What a loop knows of nodes that could go.
#[derive(Clone, Debug, Default)]
pub(super) struct Planner {
    /// Nodes that could go.
    unneeded: BTreeMap<SmolStr, Unneeded>,
    /// Nodes found unremovable in simulation, and until when they are left alone.
    unremovable: BTreeMap<SmolStr, SimTime>,
    /// Nodes that could go again, and since when, where a test lets their time run on after a failure.
    resumed: BTreeMap<SmolStr, SimTime>,
    /// When the last loop looked.
    last: Option<SimTime>,
    /// The shortest time between two loops so far.
    shortest: Option<SimDuration>,
    places: Places,
    /// Nodes were left out because there are enough unneeded ones already.
    pub(super) has_more: bool,
    /// The last loop tried no node, and knew of none that could go.
    idle: bool,
}

/// Where pods are moved in simulation: to where they were moved in the loop before, or to the next node in turn.
#[derive(Clone, Debug, Default)]
struct Places {
    turn: Turn,
    hints: BTreeMap<ObjectKey, NodeId>,
    /// Hints for the next loop.
    found: BTreeMap<ObjectKey, NodeId>,
}

impl Places {
    fn find(&mut self, pod: &PodView, nodes: &[NodeId], view: &mut View) -> Option<NodeId> {
        let hint = self.hints.get(pod.key()).copied().filter(|hint| nodes.contains(hint));
        let hinted = hint.and_then(|hint| view.what_if.first_fit(pod.id, [hint]));
        let found = hinted.or_else(|| self.turn.first_fit(pod, nodes, view))?;
        self.found.insert(pod.key().clone(), found);
        Some(found)
    }
}

/// A node that could go.
#[derive(Clone, Debug)]
pub(super) struct Unneeded {
    pub(super) since: SimTime,
    pub(super) group: usize,
    /// The pods that would have to move; none: it is empty.
    pub(super) pods: Vec<ObjectKey>,
    /// How much of it was asked for when this was found.
    pub(super) utilization: Utilization,
    is_ready: bool,
}

/// A node worth trying, and how much of it is asked for.
type Candidate = (NodeView, Utilization);

/// What a loop looks at.
pub(super) struct Look<'a> {
    pub(super) view: &'a mut View,
    pub(super) groups: &'a [Group],
    pub(super) flags: &'a Autoscaler,
    pub(super) now: SimTime,
    pub(super) choice: &'a mut Stream,
    /// In which order nodes go.
    pub(super) order: &'a mut Stream,
}

/// A node that cannot go, and why.
pub(super) type Unremovable = (SmolStr, String);

/// Removals under way.
#[derive(Clone, Debug, Default)]
pub(super) struct InFlight {
    /// By group.
    pub(super) groups: BTreeMap<usize, usize>,
    pub(super) empty: usize,
    pub(super) drains: usize,
}

impl Planner {
    pub(super) fn unneeded(&self) -> &BTreeMap<SmolStr, Unneeded> {
        &self.unneeded
    }

    /// The node is gone, or going.
    pub(super) fn forget(&mut self, node: &SmolStr) {
        self.unneeded.remove(node);
        self.unremovable.remove(node);
    }

    /// The node's time counts from then if it could still go.
    pub(super) fn resume(&mut self, node: &SmolStr, since: SimTime) {
        self.resumed.insert(node.clone(), since);
    }

    /// The unneeded times of all nodes start again.
    pub(super) fn begin_again(&mut self, now: SimTime) {
        self.unneeded.values_mut().for_each(|node| node.since = now);
    }

    /// Finds the nodes that could go; those that cannot, with their reasons.
    pub(super) fn update(&mut self, look: &mut Look<'_>) -> Vec<Unremovable> {
        self.looked(look.flags, look.now);
        self.unremovable.retain(|_, until| *until > look.now);
        let mut reasons = Vec::new();
        let candidates = self.candidates(look, &mut reasons);
        self.idle = candidates.is_empty() && self.unneeded.is_empty();
        if !look.flags.follows(Rule::UsedNodesEveryLoop) {
            let until = look.now + look.flags.unremovable_node_recheck_timeout;
            self.unremovable.extend(reasons.iter().map(|(node, _)| (node.clone(), until)));
        }
        let found = self.simulate(candidates, look, &mut reasons);
        let before = std::mem::take(&mut self.unneeded);
        for (name, mut unneeded) in found {
            let resumed = self.resumed.remove(&name);
            unneeded.since = before.get(&name).map(|known| known.since).or(resumed).unwrap_or(unneeded.since);
            self.unneeded.insert(name, unneeded);
        }
        if !look.flags.follows(Rule::UnneededTimeRestarts) {
            for (name, known) in before {
                self.unneeded.entry(name).or_insert(known);
            }
        }
        reasons
    }

    /// A loop looks, or is known to find what the one before it found.
    pub(super) fn looked(&mut self, flags: &Autoscaler, now: SimTime) {
        let interval = self.last.map(|last| now.since(last));
        let known = self.shortest.unwrap_or(flags.scale_down_unneeded_time);
        self.shortest = Some(interval.map_or(known, |interval| interval.min(known)));
        self.last = Some(now);
    }

    /// Until when a loop finds what the last one found, if nothing changes; `None`: the last one had nodes to try, or some that
    /// could go.
    pub(super) fn idle_until(&self) -> Option<SimTime> {
        self.idle.then(|| self.unremovable.values().copied().min().unwrap_or(SimTime::MAX))
    }

    /// The nodes worth trying: empty ones first, then those that could go before, otherwise in any order.
    fn candidates(&self, look: &mut Look<'_>, reasons: &mut Vec<Unremovable>) -> Vec<Candidate> {
        let sizes = look.view.sizes();
        let mut candidates = Vec::new();
        for node in look.view.nodes.values() {
            let Some(group) = node.group.filter(|_| !node.is_going() && look.is_judged(node)) else { continue };
            let (size, min) = (sizes[group], look.groups[group].min());
            if size <= min && look.flags.follows(Rule::MinimumStays) {
                let reason = format!("node group min size reached (current: {size}, min: {min})");
                reasons.push((node.name.clone(), reason));
            } else if node.stays && look.flags.follows(Rule::MarkedNodesStay) {
                reasons.push((node.name.clone(), "the node is marked as no scale down".to_owned()));
            } else if self.unremovable.contains_key(&node.name) && look.flags.follows(Rule::RecheckTimeout) {
                // Reported when it was found.
            } else {
                let utilization = Utilization::of(node, look.view, look.flags);
                match utilization.is_too_high(look.flags) {
                    Some(reason) => reasons.push((node.name.clone(), reason)),
                    None => candidates.push((node.clone(), utilization)),
                }
            }
        }
        look.choice.shuffle(&mut candidates);
        if !look.flags.follows(Rule::CandidatesInAnyOrder) {
            candidates.sort_by(|(_, one), (_, other)| one.highest.total_cmp(&other.highest));
        }
        let is_later = |node: &NodeView| look.flags.follows(Rule::EmptyNodesFirst) && !look.is_empty(node);
        candidates.sort_by_key(|(node, _)| (is_later(node), !self.unneeded.contains_key(&node.name)));
        candidates
    }

    /// Tries to move the pods of one candidate after the other.
    fn simulate(
        &mut self,
        candidates: Vec<Candidate>,
        look: &mut Look<'_>,
        reasons: &mut Vec<Unremovable>,
    ) -> BTreeMap<SmolStr, Unneeded> {
        if candidates.is_empty() {
            self.places.hints.clear();
            return BTreeMap::new();
        }
        let limit = self.limit(look.flags);
        let until = look.now + look.flags.unremovable_node_recheck_timeout;
        let budgets = look.view.listers.clone();
        let mut allowance = budgets.allowance();
        let mut open: Vec<NodeId> = look.view.open().map(|node| node.id).collect();
        let mut found = BTreeMap::new();
        let before = look.view.what_if.cluster.checkpoint();
        let mut wanderers = look.wanderers();
        let total = candidates.len();
        for (tried, (node, utilization)) in candidates.into_iter().enumerate() {
            self.has_more = found.len() >= limit && tried < total;
            if self.has_more && look.flags.follows(Rule::UnneededLimit) {
                break;
            }
            match look.try_to_empty(&node, &open, &mut self.places, &allowance, &wanderers) {
                Ok(pods) => {
                    if look.flags.follows(Rule::NoDestination) {
                        open.retain(|known| *known != node.id);
                    }
                    if look.flags.follows(Rule::BudgetsUsedUp) {
                        pods.iter().for_each(|pod| allowance.take(&pod.object));
                    }
                    wanderers.extend(pods.iter().map(|pod| (pod.id, pod.clone())));
                    let keys = pods.iter().map(|pod| pod.key().clone()).collect();
                    let (group, is_ready) = (node.group.unwrap_or_default(), node.ready.is_some());
                    let unneeded = Unneeded { since: look.now, group, pods: keys, utilization, is_ready };
                    found.insert(node.name, unneeded);
                }
                Err(reason) => {
                    self.unremovable.insert(node.name.clone(), until);
                    reasons.push((node.name.clone(), reason));
                }
            }
        }
        look.view.what_if.cluster.rollback(before);
        self.places.hints = std::mem::take(&mut self.places.found);
        found
    }

    /// After so many unneeded nodes more are of no use: as many as can go in every loop of the unneeded time, and once
    /// more the number of a loop (`unneededNodesLimit`).
    fn limit(&self, flags: &Autoscaler) -> usize {
        let loop_time = self.shortest.unwrap_or(flags.scale_down_unneeded_time).as_micros().max(1);
        let loops = flags.scale_down_unneeded_time.as_micros().max(loop_time) / loop_time;
        let loops = usize::try_from(loops).unwrap_or(usize::MAX);
        flags.max_scale_down_parallelism.saturating_mul(loops).saturating_add(flags.max_scale_down_parallelism)
    }

    /// The nodes that go now: long enough unneeded, and as many as may go at once and as their groups can spare. Nodes that
    /// their group cannot spare are named with the reason.
    pub(super) fn due(
        &self,
        look: &mut Look<'_>,
        flight: &InFlight,
        held: &[usize],
        reasons: &mut Vec<Unremovable>,
    ) -> Vec<SmolStr> {
        let ordered = self.in_any_order(look);
        let look = &*look;
        let flags = look.flags;
        let sizes = look.view.sizes();
        let counted = |rule: Rule, count: usize| if flags.follows(rule) { count } else { 0 };
        let going = |group: usize| flight.groups.get(&group).copied().unwrap_or(0);
        let spare = |(group, size): (usize, &usize)| {
            let going = counted(Rule::RemovalsCountForMinimum, going(group));
            size.saturating_sub(going).saturating_sub(look.groups[group].min())
        };
        let mut spare: Vec<usize> = sizes.iter().enumerate().map(spare).collect();
        let in_flight = counted(Rule::RemovalsCountForParallelism, flight.empty + flight.drains);
        let mut at_once = flags.max_scale_down_parallelism.saturating_sub(in_flight);
        let drains = counted(Rule::RemovalsCountForParallelism, flight.drains);
        let mut drains = flags.max_drain_parallelism.saturating_sub(drains);
        let mut left = look.left_after();
        let mut due = Vec::new();
        let (empty, used): (Vec<_>, Vec<_>) = ordered.into_iter().partition(|(_, node)| node.pods.is_empty());
        let alone = empty.is_empty() && flight.empty == 0;
        let used = used.into_iter().filter(|_| alone || flags.follows(Rule::EmptyBesideDrain));
        for (name, node) in empty.iter().copied().chain(used) {
            let needed = if node.is_ready { flags.scale_down_unneeded_time } else { flags.scale_down_unready_time };
            if look.now.since(node.since) < needed || held.contains(&node.group) {
                continue;
            }
            if spare[node.group] == 0 {
                reasons.push((name.clone(), "node group min size reached".to_owned()));
                continue;
            }
            let is_drain = !node.pods.is_empty();
            if at_once == 0 || (is_drain && drains == 0) || !left.spares(name, look) {
                continue;
            }
            spare[node.group] -= 1;
            at_once -= 1;
            drains -= usize::from(is_drain);
            due.push(name.clone());
        }
        due
    }

    /// The nodes that could go as cluster-autoscaler's map gives them, once one of them may go (`unneeded/nodes.go`).
    fn in_any_order(&self, look: &mut Look<'_>) -> Vec<(&SmolStr, &Unneeded)> {
        let mut nodes: Vec<_> = self.unneeded.iter().collect();
        let needed = look.flags.scale_down_unneeded_time.min(look.flags.scale_down_unready_time);
        let may_go = nodes.iter().any(|(_, node)| look.now.since(node.since) >= needed);
        if may_go && look.flags.follows(Rule::RemovedInAnyOrder) {
            look.order.shuffle(&mut nodes);
        }
        nodes
    }

    /// When the next loop has something to decide, if nothing changes until then; `None`: never.
    pub(super) fn next_interest(&self, flags: &Autoscaler, now: SimTime) -> Option<SimTime> {
        let unneeded = self.unneeded.values().map(|node| {
            node.since + if node.is_ready { flags.scale_down_unneeded_time } else { flags.scale_down_unready_time }
        });
        unneeded.chain(self.unremovable.values().copied()).filter(|at| *at > now).min()
    }
}

/// What the cluster would be left with.
struct Left {
    cpu_milli: i64,
    memory: i64,
}

impl Left {
    /// May the node go without the cluster falling below `cores-total` or `memory-total`? If so it is gone.
    fn spares(&mut self, name: &SmolStr, look: &Look<'_>) -> bool {
        let Some(node) = look.view.nodes.get(name) else { return false };
        let (cpu, memory) = (self.cpu_milli - node.allocatable.cpu_milli, self.memory - node.allocatable.memory);
        let (cores, gib) = (look.flags.cores_total.least, look.flags.memory_total_gib.least);
        let spares = cpu >= cores.saturating_mul(1000) && memory >= gib.saturating_mul(1 << 30);
        if spares {
            *self = Self { cpu_milli: cpu, memory };
        }
        spares
    }
}

impl Look<'_> {
    fn left_after(&self) -> Left {
        let staying = || self.view.nodes.values().filter(|node| !node.is_going());
        Left {
            cpu_milli: staying().map(|node| node.allocatable.cpu_milli).sum(),
            memory: staying().map(|node| node.allocatable.memory).sum(),
        }
    }

    /// Ready, or not ready for so long that it will not be.
    fn is_judged(&self, node: &NodeView) -> bool {
        let is_late = self.now.since(node.created) >= self.flags.max_node_startup_time;
        let is_given_up = is_late && self.flags.scale_down_unready_enabled;
        node.ready.is_some() || is_given_up || !self.flags.follows(Rule::StartingNodesStay)
    }

    fn rules(&self) -> Rules<'_> {
        Rules { flags: self.flags, listers: &self.view.listers, now: self.now }
    }

    /// Is there no pod on it that would have to move or keeps it?
    pub(super) fn is_empty(&self, node: &NodeView) -> bool {
        let (rules, allowance) = (self.rules(), self.view.listers.allowance());
        let mut pods = node.pods().filter(|pod| !pod.expendable);
        let on_it = self.view.what_if.cluster.pods_on(node.id).len();
        let of_it = node.pods().filter(|pod| !pod.expendable).count();
        // Pods that are only expected there count as well.
        on_it <= of_it && pods.all(|pod| rules.judge(&pod.object, &allowance) == Drainability::Ignored)
    }

    /// Moves all pods of a node that have to go to other nodes; if one cannot, nothing is changed and that is why.
    fn try_to_empty(
        &mut self,
        node: &NodeView,
        open: &[NodeId],
        places: &mut Places,
        allowance: &Allowance<'_>,
        wanderers: &BTreeMap<PodId, PodView>,
    ) -> Result<Vec<PodView>, String> {
        let mut moving = Vec::new();
        for pod in node.pods().filter(|pod| !pod.expendable) {
            match self.rules().judge(&pod.object, allowance) {
                Drainability::Ignored => {}
                Drainability::Moves => moving.push(pod.clone()),
                Drainability::Blocks(reason) => return Err(reason),
            }
        }
        if let Some(pod) = self.one_too_many(&moving, allowance) {
            return Err(format!("not enough pod disruption budget to move {}", pod.key()));
        }
        moving.extend(self.guests(node, wanderers));
        if let Some(guest) = moving.iter().find(|pod| !allowance.allows(&pod.object) && is_guest(pod, node)) {
            return Err(format!("not enough pod disruption budget to move {}", guest.object.key));
        }
        let others: Vec<NodeId> = open.iter().copied().filter(|known| *known != node.id).collect();
        let before = self.view.what_if.cluster.checkpoint();
        for (moved, pod) in moving.iter().enumerate() {
            self.view.what_if.cluster.remove_pod(pod.id);
            let Some(target) = places.find(pod, &others, self.view) else {
                self.view.what_if.cluster.rollback(before);
                return Err(format!("can reschedule only {moved} out of {} pods", moving.len()));
            };
            self.view.what_if.cluster.add_pod(pod.id, target);
        }
        if self.flags.follows(Rule::CumulativeSimulation) {
            self.view.what_if.cluster.commit(before);
        } else {
            self.view.what_if.cluster.rollback(before);
        }
        moving.retain(|pod| !is_guest(pod, node));
        Ok(moving)
    }

    /// The pod for which its budget has no disruption left once those before it have gone: it goes all the same, unless a
    /// test leaves that rule out.
    fn one_too_many<'a>(&self, moving: &'a [PodView], allowance: &Allowance<'_>) -> Option<&'a PodView> {
        if self.flags.follows(Rule::BudgetMovesWholeNodes) {
            return None;
        }
        let mut allowance = allowance.clone();
        moving.iter().find(|pod| {
            let is_held = !allowance.allows(&pod.object);
            allowance.take(&pod.object);
            is_held
        })
    }

    /// The pods that may be on other nodes in simulation than they are: those without a node that have one there, and those
    /// of nodes that are going.
    fn wanderers(&self) -> BTreeMap<PodId, PodView> {
        let going = self.view.nodes.values().filter(|node| node.is_going()).flat_map(NodeView::pods);
        let cluster = &self.view.what_if.cluster;
        let expected = self.view.pending.values().filter(|pod| cluster.pod(pod.id).node().is_some());
        going.chain(expected).map(|pod| (pod.id, pod.clone())).collect()
    }

    /// Pods that are on the node in simulation alone: moved there from nodes tried before, or expected there.
    fn guests(&self, node: &NodeView, wanderers: &BTreeMap<PodId, PodView>) -> Vec<PodView> {
        let on_it = self.view.what_if.cluster.pods_on(node.id).iter();
        on_it.filter_map(|pod| wanderers.get(pod)).filter(|pod| is_guest(pod, node)).cloned().collect()
    }
}

fn is_guest(pod: &PodView, node: &NodeView) -> bool {
    !node.pods().any(|own| own.id == pod.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_nodes_are_followed_once_loops_are_known_to_be_short() {
        let flags = Autoscaler {
            max_scale_down_parallelism: 1,
            scale_down_unneeded_time: SimDuration::from_secs(15),
            ..Autoscaler::default()
        };
        let after = |millis| Planner { shortest: Some(SimDuration::from_millis(millis)), ..Planner::default() };
        assert_eq!(Planner::default().limit(&flags), 2);
        assert_eq!(after(5_020).limit(&flags), 3);
        assert_eq!(after(100).limit(&flags), 151);
    }
}

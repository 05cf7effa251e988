//! Preemption: selects victims (`framework/preemption/preemption.go`, `defaultpreemption/default_preemption.go`).
//!
//! On each candidate node, preemption removes all pods of lower priority and then reprieves them one by one, the most
//! important first, as long as the preemptor still fits. It chooses the node with the least damage.
//!
//! Kubernetes starts at a random node and, of equally good nodes, takes whichever a map returns first. Here both are
//! the first in node order. Where there are fewer candidates than are wanted and no tie, the results are equal.

use std::collections::BTreeMap;
use std::sync::Arc;

use sk_core::SimTime;
use sk_core::sort::sort_slice;

use super::diagnosis::{Diagnosis, PostFilter};
use super::failures::has_victims;
use super::plugin::Rejection;
use super::scheduler::{Attempt, Scheduler};
use crate::ids::{ClassId, NodeId, PodId};

/// What preemption found.
pub(super) enum Preemption {
    Victims { node: NodeId, victims: Vec<PodId> },
    Nothing(PostFilter),
}

/// A node and who would have to go.
pub(super) struct Candidate {
    pub(super) node: NodeId,
    pub(super) victims: Vec<PodId>,
    pub(super) violations: usize,
}

/// Broken budgets, the highest priority, the sum of priorities, the number of victims, the earliest start.
pub(super) type Pain = (usize, i64, i64, usize, std::cmp::Reverse<SimTime>);

impl Scheduler {
    /// The filters as they see the node with all pods on it that are nominated for it and come before this one
    /// (`RunFilterPluginsWithNominatedPods`): with them, and if that goes well, without.
    pub(super) fn filter_with_nominated(&mut self, attempt: &mut Attempt, node: NodeId) -> Rejection {
        let rivals = self.rivals(attempt, node);
        if rivals.is_empty() {
            return self.filter(attempt, node);
        }
        // A port that a pod on the node has is taken once, and would be free when a rival who wants it too is counted out.
        let takes_ports = |class: &ClassId| !self.cluster.class(*class).shape.ports.is_empty();
        let ports = rivals.iter().any(takes_ports).then(|| self.cluster.columns.ports[node.index()].clone());
        rivals.iter().for_each(|class| self.suppose(attempt, node, *class, 1));
        let with = self.filter(attempt, node);
        rivals.iter().for_each(|class| self.suppose(attempt, node, *class, -1));
        ports.into_iter().for_each(|ports| self.cluster.columns.ports[node.index()] = ports);
        if with.passes() { self.filter(attempt, node) } else { with }
    }

    /// What the filters say of each node that other pods are nominated for.
    pub(super) fn judge_rivals(&mut self, attempt: &mut Attempt) -> Vec<(NodeId, Rejection)> {
        let nodes: Vec<NodeId> = self.cluster.nominations.by_node.keys().copied().collect();
        let live = nodes.into_iter().filter(|node| self.cluster.is_live(*node)).collect::<Vec<_>>();
        live.into_iter().map(|node| (node, self.filter_with_nominated(attempt, node))).collect()
    }

    /// Classes of the pods that are nominated for the node and not less important than this one.
    fn rivals(&self, attempt: &Attempt, node: NodeId) -> Vec<ClassId> {
        let nominated = self.cluster.nominated_for(node).iter().filter(|pod| **pod != attempt.pod);
        let classes = nominated.map(|pod| self.cluster.pod(*pod).class);
        classes.filter(|class| self.cluster.class(*class).priority >= attempt.class.priority).collect()
    }

    /// All filters on one node.
    fn filter(&self, attempt: &Attempt, node: NodeId) -> Rejection {
        let cx = attempt.cx(&self.cluster);
        for plugin in attempt.profile.local_filters.iter().chain(&attempt.profile.other_filters) {
            if attempt.state.skipped.contains(*plugin) {
                continue;
            }
            let rejection = plugin.plugin().filter(&cx, &self.caches, &attempt.state, node);
            if !rejection.passes() {
                return rejection;
            }
        }
        Rejection::NONE
    }

    /// As if one more (or less) pod of a class were on the node, for the node's numbers and for every plugin's state.
    fn suppose(&mut self, attempt: &mut Attempt, node: NodeId, class: ClassId, by: i64) {
        self.cluster.count(node, class, by);
        let profile = Arc::clone(&attempt.profile);
        let (cx, state) = attempt.parts(&self.cluster);
        let skipped = state.skipped;
        for plugin in profile.other_filters.iter().filter(|plugin| !skipped.contains(**plugin)) {
            plugin.plugin().pod_changed(&cx, state, class, node, by);
        }
    }

    /// `Preempt`. After a PreFilter rejection no node can be helped.
    pub(super) fn preempt(&mut self, attempt: &mut Attempt, diagnosis: &Diagnosis) -> Preemption {
        if let Some(said) = self.nobody_to_preempt(attempt, diagnosis) {
            return Preemption::Nothing(said);
        }
        let rejected = if diagnosis.pre_filter.is_some() { Vec::new() } else { self.search.rejected.clone() };
        if let Some(reason) = self.not_eligible(attempt, &rejected) {
            return Preemption::Nothing(PostFilter::NotEligible(reason));
        }
        let (candidates, tried) = self.candidates(attempt, &rejected);
        match self.least_painful(candidates) {
            Some(candidate) => Preemption::Victims { node: candidate.node, victims: candidate.victims },
            None => Preemption::Nothing(PostFilter::NoVictims { nodes: self.cluster.order.walk().len(), tried }),
        }
    }

    /// `findCandidates`: nodes where somebody's going would help, those that break no budget first; and for how many others
    /// it would not, because of what.
    pub(super) fn candidates(
        &mut self,
        attempt: &mut Attempt,
        rejected: &[(NodeId, Rejection)],
    ) -> (Vec<Candidate>, BTreeMap<Rejection, usize>) {
        let mut potential: Vec<NodeId> =
            rejected.iter().filter(|(_, rejection)| rejection.is_resolvable()).map(|(node, _)| *node).collect();
        potential.sort_unstable_by_key(|node| self.cluster.order.position(*node));
        let wanted = candidates_wanted(&attempt.profile.profile, potential.len());
        let (mut clean, mut violating) = (Vec::new(), Vec::new());
        let mut tried = BTreeMap::new();
        for node in potential {
            match self.victims_on(attempt, node) {
                Ok(candidate) if candidate.violations == 0 => clean.push(candidate),
                Ok(candidate) => violating.push(candidate),
                Err(rejection) => *tried.entry(rejection).or_insert(0) += 1,
            }
            if !clean.is_empty() && clean.len() + violating.len() >= wanted {
                break;
            }
        }
        clean.truncate(wanted);
        violating.truncate(wanted);
        clean.append(&mut violating);
        (clean, tried)
    }

    /// What there is to say where no pod anywhere is less important, or none is in the way: every node that could be helped
    /// has no victims. Nodes need not be looked at for that.
    fn nobody_to_preempt(&self, attempt: &Attempt, diagnosis: &Diagnosis) -> Option<PostFilter> {
        let helps = diagnosis.is_resolvable() && has_victims(&self.cluster, attempt);
        if helps || self.cluster.pod(attempt.pod).nominated.is_some() {
            return None;
        }
        if let Some(reason) = self.not_eligible(attempt, &[]) {
            return Some(PostFilter::NotEligible(reason));
        }
        let resolvable = diagnosis.rejections.iter().filter(|(rejection, _)| rejection.is_resolvable());
        let count: usize = resolvable.map(|(_, count)| count).sum();
        let tried = (count > 0).then_some((Rejection::NONE, count)).into_iter().collect();
        Some(PostFilter::NoVictims { nodes: self.cluster.order.walk().len(), tried })
    }

    /// `PodEligibleToPreemptOthers`.
    fn not_eligible(&self, attempt: &Attempt, rejected: &[(NodeId, Rejection)]) -> Option<&'static str> {
        if attempt.class.never_preempts {
            return Some("not eligible due to preemptionPolicy=Never.");
        }
        let node = self.cluster.pod(attempt.pod).nominated?;
        let status = rejected.iter().find(|(known, _)| *known == node)?.1;
        let leaving = |pod: &PodId| {
            let other = self.cluster.pod(*pod);
            other.deleting && other.preempted && self.cluster.class(other.class).priority < attempt.class.priority
        };
        let waits = status.is_resolvable() && self.cluster.pods_on(node).iter().any(leaving);
        waits.then_some("not eligible due to a terminating pod on the nominated node.")
    }

    /// `SelectVictimsOnNode`; an error is what keeps the pod off all the same, [`Rejection::NONE`] that there is nobody
    /// of lower priority.
    fn victims_on(&mut self, attempt: &mut Attempt, node: NodeId) -> Result<Candidate, Rejection> {
        let lower = |pod: &PodId| self.cluster.class_of(*pod).priority < attempt.class.priority;
        let mut potential: Vec<PodId> = self.cluster.pods_on(node).iter().copied().filter(lower).collect();
        if potential.is_empty() {
            return Err(Rejection::NONE);
        }
        for pod in &potential {
            self.suppose(attempt, node, self.cluster.pod(*pod).class, -1);
        }
        let still = self.filter_with_nominated(attempt, node);
        if !still.passes() {
            self.put_back(attempt, node, &potential);
            return Err(still);
        }
        self.sort_by_importance(&mut potential);
        let (violating, others) = self.split_by_budget(&potential);
        let (mut victims, mut violations) = (Vec::new(), 0);
        let both_kinds = !violating.is_empty() && !others.is_empty();
        for (pod, violates) in violating.iter().map(|pod| (*pod, true)).chain(others.iter().map(|pod| (*pod, false))) {
            let class = self.cluster.pod(pod).class;
            self.suppose(attempt, node, class, 1);
            if !self.filter_with_nominated(attempt, node).passes() {
                self.suppose(attempt, node, class, -1);
                victims.push(pod);
                violations += usize::from(violates);
            }
        }
        if both_kinds {
            self.sort_by_importance(&mut victims);
        }
        self.put_back(attempt, node, &victims);
        Ok(Candidate { node, victims, violations })
    }

    fn put_back(&mut self, attempt: &mut Attempt, node: NodeId, pods: &[PodId]) {
        for pod in pods {
            self.suppose(attempt, node, self.cluster.pod(*pod).class, 1);
        }
    }

    /// The most important first, in Go's order of equals.
    pub(super) fn sort_by_importance(&self, pods: &mut [PodId]) {
        let importance = |pod: PodId| Importance {
            priority: self.cluster.class_of(pod).priority,
            started: self.cluster.pod(pod).started,
        };
        sort_slice(pods, |one, other| importance(*one).is_greater_than(importance(*other)));
    }

    /// `filterPodsWithPDBViolation`: those whose going would break a budget, and the others.
    fn split_by_budget(&self, pods: &[PodId]) -> (Vec<PodId>, Vec<PodId>) {
        let budgets = &self.cluster.objects.budgets;
        let mut allowed: Vec<i32> = budgets.values().map(|budget| budget.allowed).collect();
        pods.iter().copied().partition(|pod| {
            let (entry, class) = (self.cluster.pod(*pod), self.cluster.class_of(*pod));
            let mut violates = false;
            for (((namespace, _), budget), allowed) in budgets.iter().zip(&mut allowed) {
                let counts = !class.labels.is_empty()
                    && *namespace == class.namespace
                    && !budget.selector.is_everything()
                    && budget.selector.matches(&class.labels)
                    && !budget.disrupted.contains(&entry.name);
                if counts {
                    *allowed -= 1;
                    violates |= *allowed < 0;
                }
            }
            violates
        })
    }

    /// `pickOneNodeForPreemption`: the node that hurts least, the first of equals.
    fn least_painful(&self, candidates: Vec<Candidate>) -> Option<Candidate> {
        candidates.into_iter().min_by_key(|candidate| self.pain(candidate))
    }

    /// What candidates are compared by: fewest broken budgets, then the lowest highest priority, the lowest sum of
    /// priorities, the fewest victims, the latest start of the most important.
    pub(super) fn pain(&self, candidate: &Candidate) -> Pain {
        let priority = |pod: &PodId| i64::from(self.cluster.class_of(*pod).priority);
        let highest = candidate.victims.first().map_or(0, priority);
        // Priorities may be negative; each victim is to count.
        let sum: i64 = candidate.victims.iter().map(|pod| priority(pod) + i64::from(i32::MAX) + 1).sum();
        let started = self.earliest_start(&candidate.victims);
        (candidate.violations, highest, sum, candidate.victims.len(), std::cmp::Reverse(started))
    }

    /// `GetEarliestPodStartTime`: of the victims of the highest priority.
    fn earliest_start(&self, victims: &[PodId]) -> SimTime {
        let started = |pod: &PodId| self.cluster.pod(*pod).started.unwrap_or(SimTime::MAX);
        let priority = |pod: &PodId| self.cluster.class_of(*pod).priority;
        let highest = victims.iter().map(priority).max();
        victims.iter().filter(|pod| Some(priority(pod)) == highest).map(started).min().unwrap_or(SimTime::MAX)
    }
}

/// What decides which of two pods stays.
#[derive(Clone, Copy, Debug)]
pub struct Importance {
    /// The pod's priority.
    pub priority: i32,
    /// When it started, if it has.
    pub started: Option<SimTime>,
}

impl Importance {
    /// `MoreImportantPod`: higher priority, then longer running. A pod that has not started is taken for one that starts
    /// now; of two such pods the clock is asked for the first one first, so each is more important than the other.
    pub fn is_greater_than(self, other: Self) -> bool {
        if self.priority != other.priority {
            return self.priority > other.priority;
        }
        match (self.started, other.started) {
            (Some(one), Some(other)) => one < other,
            (Some(_), None) | (None, None) => true,
            (None, Some(_)) => false,
        }
    }
}

/// `calculateNumCandidates`.
fn candidates_wanted(profile: &super::Profile, nodes: usize) -> usize {
    let positive = |number: i32| usize::try_from(number).unwrap_or(0);
    let share = nodes * positive(profile.min_candidate_nodes_percentage) / 100;
    share.max(positive(profile.min_candidate_nodes_absolute)).min(nodes)
}

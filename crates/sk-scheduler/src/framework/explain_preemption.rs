//! Why these victims: which rule chose their node among the candidates, and who could stay there. Made only when somebody
//! asks, by deciding once more.

use std::sync::Arc;

use super::diagnosis::Diagnosis;
use super::explain::SearchStart;
use super::preemption::{Candidate, Pain};
use super::scheduler::Scheduler;
use crate::ids::{NodeId, PodId};

/// The rule that chose the node (`pickOneNodeForPreemption` in `framework/preemption/preemption.go`). The rules are asked in
/// this order, and the first that leaves one node decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Criterion {
    /// There was no other candidate.
    OnlyCandidate,
    /// The fewest victims that a PodDisruptionBudget protects.
    FewestBudgetViolations,
    /// The least important most important victim.
    LowestHighestPriority,
    /// The lowest sum of the victims' priorities.
    LowestSumOfPriorities,
    /// The fewest victims.
    FewestVictims,
    /// Of the victims of the highest priority, the one that runs longest started last.
    LatestStart,
    /// All alike: the first in the order of nodes.
    First,
}

impl Criterion {
    /// For a person, after "chosen for".
    pub const fn words(self) -> &'static str {
        match self {
            Self::OnlyCandidate => "being the only candidate",
            Self::FewestBudgetViolations => "the fewest violations of PodDisruptionBudgets",
            Self::LowestHighestPriority => "the lowest priority of its most important victim",
            Self::LowestSumOfPriorities => "the lowest sum of its victims' priorities",
            Self::FewestVictims => "the fewest victims",
            Self::LatestStart => "its most important victims, which started last",
            Self::First => "being the first of equals in the order of nodes",
        }
    }

    /// Which rule prefers one candidate to another; the later of two that are alike loses by its place.
    fn between(chosen: &Pain, other: &Pain) -> Self {
        if chosen.0 != other.0 {
            Self::FewestBudgetViolations
        } else if chosen.1 != other.1 {
            Self::LowestHighestPriority
        } else if chosen.2 != other.2 {
            Self::LowestSumOfPriorities
        } else if chosen.3 != other.3 {
            Self::FewestVictims
        } else if chosen.4 != other.4 {
            Self::LatestStart
        } else {
            Self::First
        }
    }
}

/// Why a node and its victims were chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreemptionExplained {
    /// The node.
    pub node: NodeId,
    /// On how many nodes victims would have helped, among those that were looked at.
    pub candidates: usize,
    /// What chose among them.
    pub criterion: Criterion,
    /// How many victims a PodDisruptionBudget would have protected.
    pub budget_violations: usize,
    /// Who goes, the most important first.
    pub victims: Vec<PodId>,
    /// Less important pods on the node that could stay all the same, the most important first.
    pub reprieved: Vec<PodId>,
}

impl Scheduler {
    /// Explains the victims of a decision that was just made and not yet carried out, whose search started there; `None`: the
    /// pod preempts nobody.
    pub fn explain_preemption(&mut self, pod: PodId, start: SearchStart) -> Option<PreemptionExplained> {
        let next_start = std::mem::replace(&mut self.next_start, start.0);
        let explained = self.explain_preemption_now(pod);
        self.next_start = next_start;
        explained
    }

    fn explain_preemption_now(&mut self, pod: PodId) -> Option<PreemptionExplained> {
        self.cluster.take_snapshot();
        let mut attempt = self.attempt(pod)?;
        let mut diagnosis = Diagnosis::new(Arc::clone(&attempt.class), self.cluster.order.walk().len());
        self.pre_filter(&mut attempt, &mut diagnosis).ok()?;
        self.search_slowly(&mut attempt);
        if !self.search.feasible.is_empty() || attempt.class.never_preempts {
            return None;
        }
        let rejected = self.search.rejected.clone();
        let (candidates, _) = self.candidates(&mut attempt, &rejected);
        let pains: Vec<Pain> = candidates.iter().map(|candidate| self.pain(candidate)).collect();
        let chosen = (0..pains.len()).min_by_key(|at| pains[*at])?;
        let others = (0..pains.len()).filter(|at| *at != chosen);
        let criterion = others.map(|at| Criterion::between(&pains[chosen], &pains[at])).max();
        let count = candidates.len();
        let Candidate { node, victims, violations } = candidates.into_iter().nth(chosen)?;
        let stays =
            |pod: &PodId| self.cluster.class_of(*pod).priority < attempt.class.priority && !victims.contains(pod);
        let mut reprieved: Vec<PodId> = self.cluster.pods_on(node).iter().copied().filter(stays).collect();
        self.sort_by_importance(&mut reprieved);
        Some(PreemptionExplained {
            node,
            candidates: count,
            criterion: criterion.unwrap_or(Criterion::OnlyCandidate),
            budget_violations: violations,
            victims,
            reprieved,
        })
    }
}

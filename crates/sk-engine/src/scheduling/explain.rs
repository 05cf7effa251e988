//! Why a pod was placed where it was, for `explain`: kept only if the settings ask for it, and bounded.

use sk_apiserver::Uid;
use sk_core::{ObjectKey, SmolStr};
use sk_scheduler::PodId;
use sk_scheduler::framework::{Criterion, NodeScores, SearchStart};

use super::{Context, KubeScheduler};
use crate::settings::Explain;

/// How many of the best nodes are listed.
const BEST_NODES: usize = 3;
/// How many pods that could stay are named.
const MAX_REPRIEVED: usize = 5;

/// The explanation of one decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// The pod.
    pub pod: Uid,
    /// How many nodes were looked at and how many of them would have done, if the pod got one.
    pub counts: Option<(usize, usize)>,
    /// The best nodes, best first; empty if they were not kept.
    pub scores: Vec<NodeScore>,
    /// The pods that have to make room.
    pub victims: Vec<ObjectKey>,
    /// Why these, if that was kept.
    pub preemption: Option<WhyVictims>,
    /// What the pod that they make room for is told meanwhile.
    pub message: Option<String>,
}

/// Why a node was chosen to make room on, and who could stay there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WhyVictims {
    /// The node.
    pub node: SmolStr,
    /// On how many nodes room could have been made.
    pub candidates: usize,
    /// The rule that chose among them.
    pub criterion: Criterion,
    /// How many victims a PodDisruptionBudget would have protected.
    pub budget_violations: usize,
    /// Less important pods that could stay: the first few, and how many there are.
    pub reprieved: (Vec<ObjectKey>, usize),
}

/// The scores of a node, weights included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeScore {
    /// Which node.
    pub node: SmolStr,
    /// The sum.
    pub total: i64,
    /// What each plugin gave.
    pub plugins: Vec<(&'static str, i64)>,
}

/// What has been kept.
#[derive(Clone, Debug, Default)]
pub(super) struct Explainer {
    settings: Option<Explain>,
    decisions: u64,
    scored: u32,
    pub(super) told: Vec<Explained>,
}

impl Explainer {
    pub(super) fn new(settings: Option<Explain>) -> Self {
        Self { settings, ..Self::default() }
    }

    pub(super) fn is_on(&self) -> bool {
        self.settings.is_some()
    }

    /// A pod is tried.
    pub(super) fn count(&mut self) {
        self.decisions += 1;
    }

    /// Are the scores of the decision that was counted last to be kept? Asked of pods that got a node.
    fn wants_scores(&mut self, has_waited: bool) -> bool {
        let Some(Explain { sample, most }) = self.settings else { return false };
        let is_sample = self.decisions % u64::from(sample.max(1)) == 1;
        let wants = (has_waited || is_sample) && self.scored < most;
        self.scored += u32::from(wants);
        wants
    }
}

impl KubeScheduler {
    /// The scores of the decision that was taken and is not yet carried out, if they are to be kept.
    pub(super) fn scores(&mut self, pod: PodId, start: SearchStart) -> Vec<NodeScore> {
        let has_waited = self.queue.attempts(pod) > 1;
        if !self.explainer.wants_scores(has_waited) {
            return Vec::new();
        }
        let mut nodes = self.library.explain_from(pod, start).map(|explanation| explanation.nodes).unwrap_or_default();
        // Of equals those that were found first stay first.
        nodes.sort_by_key(|node| std::cmp::Reverse(node.total));
        nodes.truncate(BEST_NODES);
        let score = |one: &NodeScores| NodeScore {
            node: self.library.cluster.node(one.node).name.clone(),
            total: one.total,
            plugins: one.plugins.iter().map(|(plugin, score)| (plugin.name(), *score)).collect(),
        };
        nodes.iter().map(score).collect()
    }

    pub(super) fn explain_victims(
        &mut self,
        (id, pod): (PodId, Uid),
        victims: &[PodId],
        (start, message): (SearchStart, String),
        ctx: &Context<'_>,
    ) {
        if !self.explainer.is_on() {
            return;
        }
        let preemption = self.explainer.wants_scores(true).then(|| self.why_victims(id, start, ctx)).flatten();
        let victims = victims.iter().filter_map(|victim| Some(self.object_of(*victim, ctx)?.key.clone())).collect();
        let (counts, scores, message) = (None, Vec::new(), Some(message));
        self.explainer.told.push(Explained { pod, counts, scores, victims, preemption, message });
    }

    fn why_victims(&mut self, pod: PodId, start: SearchStart, ctx: &Context<'_>) -> Option<WhyVictims> {
        let why = self.library.explain_preemption(pod, start)?;
        let named = why.reprieved.iter().take(MAX_REPRIEVED);
        let named = named.filter_map(|pod| Some(self.object_of(*pod, ctx)?.key.clone())).collect();
        Some(WhyVictims {
            node: self.library.cluster.node(why.node).name.clone(),
            candidates: why.candidates,
            criterion: why.criterion,
            budget_violations: why.budget_violations,
            reprieved: (named, why.reprieved.len()),
        })
    }
}

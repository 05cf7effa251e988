//! Why this node: every plugin's scores on the best nodes. Computed only on request.

use std::sync::Arc;

use super::diagnosis::Diagnosis;
use super::plugin::PluginId;
use super::scheduler::Scheduler;
use crate::ids::{NodeId, PodId};

/// One node's scores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeScores {
    /// Which node.
    pub node: NodeId,
    /// The weighted sum.
    pub total: i64,
    /// Each plugin's weighted score. Plugins that had nothing to score are left out.
    pub plugins: Vec<(PluginId, i64)>,
}

/// A place in the order of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SearchStart(pub(super) usize);

/// What a cycle for the pod would see now.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The feasible nodes in the order in which they were found.
    pub nodes: Vec<NodeScores>,
    /// Why the others that were looked at are out.
    pub rejected: Vec<(NodeId, Vec<String>)>,
}

impl Scheduler {
    /// Where the next search starts.
    pub fn search_start(&self) -> SearchStart {
        SearchStart(self.next_start)
    }

    /// Has the next search start there: a decision that is made once more begins where it began before.
    pub fn search_from(&mut self, start: SearchStart) {
        self.next_start = start.0;
    }

    /// Explains the decision that [`Self::schedule`] would make now, without making it: the next search starts where it
    /// would have started.
    pub fn explain(&mut self, pod: PodId) -> Option<Explanation> {
        self.explain_from(pod, self.search_start())
    }

    /// Explains a decision that was just made and not yet carried out, whose search started there.
    pub fn explain_from(&mut self, pod: PodId, start: SearchStart) -> Option<Explanation> {
        let next_start = std::mem::replace(&mut self.next_start, start.0);
        let explanation = self.explain_now(pod);
        self.next_start = next_start;
        explanation
    }

    fn explain_now(&mut self, pod: PodId) -> Option<Explanation> {
        self.cluster.take_snapshot();
        let mut attempt = self.attempt(pod)?;
        let mut diagnosis = Diagnosis::new(Arc::clone(&attempt.class), self.cluster.order.walk().len());
        if self.cluster.order.walk().is_empty() || self.pre_filter(&mut attempt, &mut diagnosis).is_err() {
            return Some(Explanation { nodes: Vec::new(), rejected: Vec::new() });
        }
        self.search_slowly(&mut attempt);
        let nodes = std::mem::take(&mut self.search.feasible);
        let mut explained: Vec<NodeScores> =
            nodes.iter().map(|node| NodeScores { node: *node, total: 0, plugins: Vec::new() }).collect();
        let profile = Arc::clone(&attempt.profile);
        let mut scores = vec![0; nodes.len()];
        for (plugin, weight) in &profile.profile.scores {
            let (cx, state) = attempt.parts(&self.cluster);
            scores.fill(0);
            if plugin.plugin().pre_score(&cx, &mut self.caches, state, &nodes) && plugin.scores() {
                plugin.plugin().score(&cx, &self.caches, state, &nodes, &mut scores);
                for (node, score) in explained.iter_mut().zip(&scores) {
                    node.total += weight * score;
                    node.plugins.push((*plugin, weight * score));
                }
            }
        }
        let rejected = self.search.rejected.iter().map(|(node, rejection)| {
            let mut reasons = Vec::new();
            let say = &mut |reason: &str| reasons.push(reason.to_owned());
            rejection
                .plugin()
                .into_iter()
                .for_each(|plugin| plugin.plugin().describe(&attempt.class, rejection.reasons(), say));
            (*node, reasons)
        });
        Some(Explanation { nodes: explained, rejected: rejected.collect() })
    }
}

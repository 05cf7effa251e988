//! Where a pod would fit, without a decision: the autoscaler's question.

use super::diagnosis::Diagnosis;
use super::plugin::Rejection;
use super::scheduler::Scheduler;
use crate::ids::{NodeId, PodId};

impl Scheduler {
    /// The first of these nodes that the pod may go onto as things are. Nothing is scored, and nothing is counted in.
    pub fn first_fit(&mut self, pod: PodId, nodes: impl IntoIterator<Item = NodeId>) -> Option<NodeId> {
        self.cluster.take_snapshot();
        let mut attempt = self.attempt(pod)?;
        let mut diagnosis = Diagnosis::new(std::sync::Arc::clone(&attempt.class), 1);
        self.pre_filter(&mut attempt, &mut diagnosis).ok()?;
        let only = attempt.only.take();
        let mut nodes = nodes.into_iter().filter(|node| only.as_ref().is_none_or(|only| only.contains(node)));
        nodes.find(|node| {
            self.search.looks += 1;
            self.filter_with_nominated(&mut attempt, *node) == Rejection::NONE
        })
    }
}

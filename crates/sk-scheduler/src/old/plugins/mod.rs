//! The filters and scores of the default profile, in its order (`apis/config/v1/default_plugins.go`, 1.36).
//!
//! A filter says why a node is out, in Kubernetes' words; the first that objects ends the node's turn. A score is an
//! integer from 0 to [`MAX_NODE_SCORE`]; weights are applied after normalising.

pub mod balanced_allocation;
pub mod fit;
pub mod least_allocated;
mod node_rules;
mod taint_toleration;

use crate::{Node, PodClass};

/// The best score a plugin can give.
pub const MAX_NODE_SCORE: i64 = 100;

/// Weight of NodeResourcesFit in the default profile.
const FIT_WEIGHT: i64 = 1;
/// Weight of NodeResourcesBalancedAllocation in the default profile.
const BALANCED_ALLOCATION_WEIGHT: i64 = 1;
/// Weight of TaintToleration in the default profile.
const TAINT_TOLERATION_WEIGHT: i64 = 3;

/// The plugins that can keep a pod off a node, in the order in which they are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Filter {
    /// A cordoned node.
    NodeUnschedulable,
    /// A taint that repels.
    TaintToleration,
    /// `nodeSelector` and required node affinity.
    NodeAffinity,
    /// Room.
    NodeResourcesFit,
}

const FILTERS: [Filter; 4] =
    [Filter::NodeUnschedulable, Filter::TaintToleration, Filter::NodeAffinity, Filter::NodeResourcesFit];

/// Why a node is out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Who keeps the pod off.
    pub by: Filter,
    /// Kubernetes' words, one per thing that is missing.
    pub reasons: Vec<String>,
    /// Would the node still be out if all its pods were gone? Then preemption is of no use.
    pub unresolvable: bool,
}

impl Rejection {
    fn unresolvable(by: Filter, reason: &str) -> Self {
        Self { by, reasons: vec![reason.to_owned()], unresolvable: true }
    }
}

impl Filter {
    /// What this filter alone says.
    pub fn check(self, pod: &PodClass, node: &Node) -> Result<(), Rejection> {
        match self {
            Self::NodeUnschedulable => node_rules::unschedulable(pod, node),
            Self::TaintToleration => taint_toleration::filter(pod, node),
            Self::NodeAffinity => node_rules::affinity(pod, node),
            Self::NodeResourcesFit => fit::filter(pod, node),
        }
    }

    /// The filter's queueing hint: is a pod that it kept off worth another try now that a node came or changed? Both
    /// nodes are without their pods.
    pub fn is_helped(self, pod: &PodClass, before: Option<&Node>, after: &Node) -> bool {
        self.check(pod, after).is_ok() && before.is_none_or(|before| self.check(pod, before).is_err())
    }
}

/// May a pod of this class go onto this node?
pub fn filter(pod: &PodClass, node: &Node) -> Result<(), Rejection> {
    FILTERS.iter().try_for_each(|filter| filter.check(pod, node))
}

/// The weighted sum of all scores for each of the feasible nodes.
pub fn score(pod: &PodClass, nodes: &[&Node]) -> Vec<i64> {
    let taints = taint_toleration::scores(pod, nodes);
    let totals = nodes.iter().zip(taints).map(|(node, taints)| {
        TAINT_TOLERATION_WEIGHT * taints
            + FIT_WEIGHT * least_allocated::score(pod, node)
            + BALANCED_ALLOCATION_WEIGHT * balanced_allocation::score(pod, node)
    });
    totals.collect()
}

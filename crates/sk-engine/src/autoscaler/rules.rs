//! The rules that were observed, by name, so that a test can leave one out and see that the comparison with the real
//! autoscaler notices. Without the feature `rule-switches` every rule holds.

use super::flags::Autoscaler;

/// Something that cluster-autoscaler was seen to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// A scale-up waits while all pods without a place are younger than two seconds.
    YoungPodsWait,
    /// The timer counts from the last loop, whatever started it.
    TimerRestarts,
    /// An unschedulable pod starts a loop.
    PodsStartLoops,
    /// A loop follows a scale-up at once.
    LoopFollowsScaleUp,
    /// A loop follows the beginning of a removal at once.
    LoopFollowsScaleDown,
    /// New nodes are counted by packing the largest pods first.
    LargestPodsFirst,
    /// A node that has been ready for a minute is the template of its group.
    TemplateFromNode,
    /// Nodes that are not ready yet count as room.
    UpcomingNodes,
    /// Pods are packed onto upcoming nodes in turns and in any order, not largest first.
    PackedInAnyOrder,
    /// DaemonSet pods are part of a template.
    DaemonsInTemplate,
    /// Pods that preempt others are not helped.
    NominatedPodsWait,
    /// Expendable pods call for no nodes and keep none.
    ExpendablePods,
    /// A node that is used too much is looked at in every loop.
    UsedNodesEveryLoop,
    /// Nodes of a group at its minimum stay.
    MinimumStays,
    /// Nodes with the annotation against scale-down stay.
    MarkedNodesStay,
    /// Pods that nobody would make again keep their node.
    BarePodsBlock,
    /// Pods that are marked as not safe to evict keep their node.
    UnsafePodsBlock,
    /// Pods that are marked as safe to evict move, whatever else they are.
    SafePodsMove,
    /// Pods whose disruption budget is used up keep their node.
    BudgetsBlock,
    /// A node that was found unremovable in simulation is left alone for a while.
    RecheckTimeout,
    /// Pods moved in simulation take room for the next node's pods.
    CumulativeSimulation,
    /// Empty nodes are tried before others.
    EmptyNodesFirst,
    /// Disruption budgets are used up in simulation.
    BudgetsUsedUp,
    /// A node that is to go is no destination.
    NoDestination,
    /// Only so many nodes get the soft taint in one loop.
    SoftTaintsInBulk,
    /// A node that is needed again loses the soft taint.
    SoftTaintsTakenBack,
    /// Only so many nodes are followed as unneeded.
    UnneededLimit,
    /// Removals under way count against the group's minimum.
    RemovalsCountForMinimum,
    /// Removals under way count against the limits of parallelism.
    RemovalsCountForParallelism,
    /// Empty nodes go beside a drain.
    EmptyBesideDrain,
    /// The time of a node that is needed again starts anew.
    UnneededTimeRestarts,
    /// The time of a node that could go runs on while none may.
    TimeRunsInCooldown,
    /// A scale-up holds scale-down back.
    DelayAfterAdd,
    /// Nodes are deleted some seconds after they were marked.
    DelayAfterTaint,
    /// Drained nodes are looked at every five seconds.
    DrainPolls,
    /// A drain that takes too long is taken back.
    DrainFails,
    /// Nodes that do not become ready stop being waited for.
    StartupTime,
    /// Too many nodes that are not ready stop everything.
    ClusterHealth,
}

impl Rule {
    /// All of them.
    pub const ALL: [Self; 38] = [
        Self::YoungPodsWait,
        Self::TimerRestarts,
        Self::PodsStartLoops,
        Self::LoopFollowsScaleUp,
        Self::LoopFollowsScaleDown,
        Self::LargestPodsFirst,
        Self::TemplateFromNode,
        Self::UpcomingNodes,
        Self::PackedInAnyOrder,
        Self::DaemonsInTemplate,
        Self::NominatedPodsWait,
        Self::ExpendablePods,
        Self::UsedNodesEveryLoop,
        Self::MinimumStays,
        Self::MarkedNodesStay,
        Self::BarePodsBlock,
        Self::UnsafePodsBlock,
        Self::SafePodsMove,
        Self::BudgetsBlock,
        Self::RecheckTimeout,
        Self::CumulativeSimulation,
        Self::EmptyNodesFirst,
        Self::BudgetsUsedUp,
        Self::NoDestination,
        Self::SoftTaintsInBulk,
        Self::SoftTaintsTakenBack,
        Self::UnneededLimit,
        Self::RemovalsCountForMinimum,
        Self::RemovalsCountForParallelism,
        Self::EmptyBesideDrain,
        Self::UnneededTimeRestarts,
        Self::TimeRunsInCooldown,
        Self::DelayAfterAdd,
        Self::DelayAfterTaint,
        Self::DrainPolls,
        Self::DrainFails,
        Self::StartupTime,
        Self::ClusterHealth,
    ];
}

impl Autoscaler {
    /// Does the rule hold? Always, but in a test that leaves it out.
    #[cfg(feature = "rule-switches")]
    pub(super) fn follows(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }

    /// Does the rule hold? Always.
    #[cfg(not(feature = "rule-switches"))]
    #[expect(clippy::unused_self, reason = "tests ask the flags which rule to leave out")]
    pub(super) fn follows(&self, _rule: Rule) -> bool {
        true
    }
}

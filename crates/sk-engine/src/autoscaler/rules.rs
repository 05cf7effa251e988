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
    /// No group grows beyond its maximum.
    GroupMaximum,
    /// A node that has been ready for a minute is the template of its group.
    TemplateFromNode,
    /// It is no template before that.
    TemplateAfterAMinute,
    /// Nodes that are not ready yet count as room.
    UpcomingNodes,
    /// Pods are packed onto upcoming nodes in turns and in any order, not largest first.
    PackedInAnyOrder,
    /// DaemonSet pods are part of a template.
    DaemonsInTemplate,
    /// A group that could not take a pod is no option for it.
    PodsAreFiltered,
    /// Pods that are too new to be helped take room on the nodes that there are.
    NewPodsTakeRoom,
    /// Pods that preempt others are not helped.
    NominatedPodsWait,
    /// Expendable pods call for no nodes and keep none.
    ExpendablePods,
    /// Of CPU and memory the larger share counts.
    LargerShareCounts,
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
    /// A volume in memory keeps no pod on its node.
    MemoryVolumesMove,
    /// Nor do volumes that the pod declares to be of no worth.
    SafeVolumesMove,
    /// A pod of the system with a disruption budget moves.
    GuardedSystemPodsMove,
    /// Mirror pods go with their node.
    MirrorPodsGo,
    /// Pods whose disruption budget is used up keep their node.
    BudgetsBlock,
    /// A budget that allows one disruption lets several pods of one node go.
    BudgetMovesWholeNodes,
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
    /// Nodes are tried in any order, not by how much they are used.
    CandidatesInAnyOrder,
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
    /// The time of a node that could go runs on while others are removed.
    TimeRunsDuringRemovals,
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
    pub const ALL: [Self; 50] = [
        Self::YoungPodsWait,
        Self::TimerRestarts,
        Self::PodsStartLoops,
        Self::LoopFollowsScaleUp,
        Self::LoopFollowsScaleDown,
        Self::LargestPodsFirst,
        Self::GroupMaximum,
        Self::TemplateFromNode,
        Self::TemplateAfterAMinute,
        Self::UpcomingNodes,
        Self::PackedInAnyOrder,
        Self::DaemonsInTemplate,
        Self::PodsAreFiltered,
        Self::NewPodsTakeRoom,
        Self::NominatedPodsWait,
        Self::ExpendablePods,
        Self::LargerShareCounts,
        Self::UsedNodesEveryLoop,
        Self::MinimumStays,
        Self::MarkedNodesStay,
        Self::BarePodsBlock,
        Self::UnsafePodsBlock,
        Self::SafePodsMove,
        Self::MemoryVolumesMove,
        Self::SafeVolumesMove,
        Self::GuardedSystemPodsMove,
        Self::MirrorPodsGo,
        Self::BudgetsBlock,
        Self::BudgetMovesWholeNodes,
        Self::RecheckTimeout,
        Self::CumulativeSimulation,
        Self::EmptyNodesFirst,
        Self::BudgetsUsedUp,
        Self::NoDestination,
        Self::CandidatesInAnyOrder,
        Self::SoftTaintsInBulk,
        Self::SoftTaintsTakenBack,
        Self::UnneededLimit,
        Self::RemovalsCountForMinimum,
        Self::RemovalsCountForParallelism,
        Self::EmptyBesideDrain,
        Self::UnneededTimeRestarts,
        Self::TimeRunsInCooldown,
        Self::TimeRunsDuringRemovals,
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

//! The observed rules by name, so that a test can switch one off and see that the comparison with the real autoscaler
//! fails. Without the feature `rule-switches` every rule is on.

use super::flags::{Autoscaler, Informers};

/// Makes the rules and the list of all of them from one text.
macro_rules! rules {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// Something that cluster-autoscaler was seen to do.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Rule { $($(#[doc = $doc])+ $name),+ }

        impl Rule {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),+];
        }
    };
}

rules! {
    /// A scale-up waits while all pods without a place are younger than two seconds.
    YoungPodsWait,
    /// With an older pod around, younger ones are helped at once as well.
    OldPodsBringYoung,
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
    /// `max-nodes-total` is reached, and pods are told so, when that many nodes are ready.
    ReadyNodesFillTheCluster,
    /// A node that has been ready for a minute is the template of its group.
    TemplateFromNode,
    /// It is no template before that.
    TemplateAfterAMinute,
    /// A template made from a node does not have the node's soft taint.
    TemplateLosesSoftTaint,
    /// Nodes that are not ready yet count as room.
    UpcomingNodes,
    /// Pods are packed onto upcoming nodes in turns and in any order, not largest first.
    PackedInAnyOrder,
    /// DaemonSet pods are part of a template.
    DaemonsInTemplate,
    /// Of CPU and memory that new nodes would waste the mean counts.
    BothWastesCount,
    /// What comes with a node counts as wasted, not as used.
    ResidentsAreWaste,
    /// Among options that are equal one is drawn.
    TiesAreDrawn,
    /// Where nodes are spread over similar groups, the chosen one gets what is left over.
    ChosenGroupGetsTheRest,
    /// Nodes are spread only over similar groups that would take the same pods.
    SimilarGroupsTakeThePods,
    /// A group that could not take a pod is no option for it.
    PodsAreFiltered,
    /// Taints of a group count.
    TaintsFilter,
    /// Selectors and required node affinity count.
    NodeAffinityFilters,
    /// Preferred node affinity does not count.
    PreferencesDoNotCount,
    /// Affinity between pods counts.
    PodAffinityFilters,
    /// Required topology spread counts.
    SpreadFilters,
    /// How many pods a node takes counts.
    PodSlotsFilter,
    /// Pods that are too new to be helped take room on the nodes that there are.
    NewPodsTakeRoom,
    /// Pods that preempt others are not helped.
    NominatedPodsWait,
    /// Expendable pods call for no nodes and keep none.
    ExpendablePods,
    /// A pod gets `NotTriggerScaleUp` once.
    ToldOnce,
    /// A pod that triggered a scale-up gets `NotTriggerScaleUp` later, if no group grows for it then.
    RefusedAfterScaleUp,
    /// Of CPU and memory the larger share counts.
    LargerShareCounts,
    /// A node that is used too much is looked at in every loop.
    UsedNodesEveryLoop,
    /// A node that is starting is awaited, even if its pods are gone.
    StartingNodesStay,
    /// Nodes of a group at its minimum stay.
    MinimumStays,
    /// Nodes with the annotation against scale-down stay.
    MarkedNodesStay,
    /// Pods without a controller keep their node.
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
    /// Pods of Jobs and StatefulSets move.
    OwnedPodsMove,
    /// Pods that have ended keep no node.
    FinishedPodsAreGone,
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
    /// Of nodes that may go now, any is the first.
    RemovedInAnyOrder,
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
    /// The unneeded time of a node that is needed again starts again.
    UnneededTimeRestarts,
    /// The time of a node that could go runs on while none may.
    TimeRunsInCooldown,
    /// The time of a node that could go runs on while others are removed.
    TimeRunsDuringRemovals,
    /// A scale-up holds scale-down back.
    DelayAfterAdd,
    /// That time counts from the decision, not from when the nodes are ready.
    DelayFromDecision,
    /// The time after a removal counts from its beginning, not from its end.
    DelayFromTaint,
    /// Nodes are deleted some seconds after they were marked.
    DelayAfterTaint,
    /// All pods of a node are evicted at once.
    AllPodsAtOnce,
    /// Drained nodes are looked at every five seconds.
    DrainPolls,
    /// A drain that takes too long is taken back.
    DrainFails,
    /// The unneeded time of a node whose drain failed starts again.
    FailedDrainStartsAnew,
    /// A drain that failed holds scale-down back no longer.
    FailureHoldsNothingBack,
    /// Nodes that do not become ready stop being waited for.
    StartupTime,
    /// Too many nodes that are not ready stop everything.
    ClusterHealth,
}

impl Autoscaler {
    /// Does the rule hold? Always, but in a test that leaves it out.
    #[cfg(feature = "rule-switches")]
    pub(super) fn follows(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }

    /// How far informers are apart.
    #[cfg(feature = "rule-switches")]
    pub(super) fn informers(&self) -> Informers {
        self.informers
    }

    /// How far informers are apart: not at all.
    #[cfg(not(feature = "rule-switches"))]
    #[expect(clippy::unused_self, reason = "tests ask the flags")]
    pub(super) fn informers(&self) -> Informers {
        Informers::default()
    }

    /// Do all rules hold?
    #[cfg(feature = "rule-switches")]
    pub(super) fn is_whole(&self) -> bool {
        self.without.is_none()
    }

    /// Do all rules hold? Always.
    #[cfg(not(feature = "rule-switches"))]
    #[expect(clippy::unused_self, reason = "tests ask the flags which rule to leave out")]
    pub(super) fn is_whole(&self) -> bool {
        true
    }

    /// Does the rule hold? Always.
    #[cfg(not(feature = "rule-switches"))]
    #[expect(clippy::unused_self, reason = "tests ask the flags which rule to leave out")]
    pub(super) fn follows(&self, _rule: Rule) -> bool {
        true
    }
}

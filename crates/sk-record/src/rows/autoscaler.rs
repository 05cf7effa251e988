//! One row per decision of the cluster autoscaler and object.
//!
//! A decision about several pods is several rows with the same `loop`, so that a pod's rows are found by its name and
//! its owner's by the owner's. `event` and `message` hold the Kubernetes Event of the decision.

use sk_core::SimTime;

use crate::column::{Column, Kind, Malformed, Row, RowReader, RowWriter};

/// What the autoscaler did or refused, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct AutoscalerRow {
    /// When.
    pub time: SimTime,
    /// The number of the loop, from 1: rows of one loop belong together.
    pub loop_number: i64,
    /// What started the loop.
    pub trigger: Trigger,
    /// What was decided.
    pub decision: Decided,
    /// About which pod: its namespace.
    pub namespace: Option<String>,
    /// Its name.
    pub pod: Option<String>,
    /// Its top-most owner, as in [`super::PodRow::owner`].
    pub owner: Option<String>,
    /// About which node.
    pub node: Option<String>,
    /// About which group: the one that grows, or the node's.
    pub group: Option<String>,
    /// How many nodes that group has.
    pub nodes_before: Option<i64>,
    /// How many it will have.
    pub nodes_after: Option<i64>,
    /// How many pods the decision was about, those without a row of their own included.
    pub pods: Option<i64>,
    /// What could have been done instead: each group with its score; where no group grows, each group with its reason.
    pub options: Option<String>,
    /// The reason of the Kubernetes event that says so, if there is one: `TriggeredScaleUp`, `NotTriggerScaleUp`, `ScaleDown`.
    pub event: Option<String>,
    /// The Event's message, or cluster-autoscaler's reason.
    pub message: Option<String>,
}

/// What started a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trigger {
    /// The scan interval was over.
    Timer,
    /// A pod was found to be unschedulable.
    Pod,
    /// The loop before enlarged a group.
    AfterScaleUp,
    /// The loop before began to remove nodes.
    AfterScaleDown,
}

/// What a loop decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Decided {
    /// A group grows for this pod; or, without a pod, this group grows.
    ScaleUp,
    /// No group grows for this pod.
    NoScaleUp,
    /// All pods without a place are so new that more may come.
    WaitsForMorePods,
    /// The group could not make the nodes that were asked of it, and is left alone for a while.
    ScaleUpFailed,
    /// The cluster has as many nodes as it may.
    MaxNodesTotal,
    /// Too many nodes are not ready: nothing is done at all.
    Unhealthy,
    /// The node could go from now on.
    Unneeded,
    /// The node cannot go.
    Unremovable,
    /// Nodes that could go stay for now, because the cluster has just changed.
    Cooldown,
    /// The node is being removed; or this pod has to move for that.
    ScaleDown,
    /// The node could not be removed after all.
    ScaleDownFailed,
}

impl Trigger {
    const ALL: [Self; 4] = [Self::Timer, Self::Pod, Self::AfterScaleUp, Self::AfterScaleDown];

    /// The word in the table.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Timer => "timer",
            Self::Pod => "pod",
            Self::AfterScaleUp => "after-scale-up",
            Self::AfterScaleDown => "after-scale-down",
        }
    }
}

impl Decided {
    const ALL: [Self; 11] = [
        Self::ScaleUp,
        Self::NoScaleUp,
        Self::WaitsForMorePods,
        Self::ScaleUpFailed,
        Self::MaxNodesTotal,
        Self::Unhealthy,
        Self::Unneeded,
        Self::Unremovable,
        Self::Cooldown,
        Self::ScaleDown,
        Self::ScaleDownFailed,
    ];

    /// The word in the table.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ScaleUp => "scale-up",
            Self::NoScaleUp => "no-scale-up",
            Self::WaitsForMorePods => "waits-for-more-pods",
            Self::ScaleUpFailed => "scale-up-failed",
            Self::MaxNodesTotal => "max-nodes-total",
            Self::Unhealthy => "unhealthy",
            Self::Unneeded => "unneeded",
            Self::Unremovable => "unremovable",
            Self::Cooldown => "cooldown",
            Self::ScaleDown => "scale-down",
            Self::ScaleDownFailed => "scale-down-failed",
        }
    }
}

impl Row for AutoscalerRow {
    type Borrowed<'a> = Self;

    const TABLE: &'static str = "autoscaler";
    const COLUMNS: &'static [Column] = &[
        Column::required("time", Kind::Time),
        Column::required("loop", Kind::Int),
        Column::required("trigger", Kind::Text).words(),
        Column::required("decision", Kind::Text).words(),
        Column::optional("namespace", Kind::Text).words(),
        Column::optional("pod", Kind::Text).distinct(),
        Column::optional("owner", Kind::Text),
        Column::optional("node", Kind::Text),
        Column::optional("node_group", Kind::Text).words(),
        Column::optional("nodes_before", Kind::Int),
        Column::optional("nodes_after", Kind::Int),
        Column::optional("pods", Kind::Int),
        Column::optional("options", Kind::Text),
        Column::optional("event", Kind::Text).words(),
        Column::optional("message", Kind::Text),
    ];

    fn write(decision: &Self, row: &mut RowWriter<'_>) {
        row.time(decision.time)
            .int(decision.loop_number)
            .text(decision.trigger.as_str())
            .text(decision.decision.as_str());
        row.opt_text(decision.namespace.as_deref())
            .opt_text(decision.pod.as_deref())
            .opt_text(decision.owner.as_deref());
        row.opt_text(decision.node.as_deref()).opt_text(decision.group.as_deref());
        row.opt_int(decision.nodes_before).opt_int(decision.nodes_after).opt_int(decision.pods);
        row.opt_text(decision.options.as_deref())
            .opt_text(decision.event.as_deref())
            .opt_text(decision.message.as_deref());
    }

    fn own(decision: Self) -> Self {
        decision
    }

    fn read(row: &mut RowReader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            time: row.time()?,
            loop_number: row.int()?,
            trigger: row.word(&Trigger::ALL, Trigger::as_str)?,
            decision: row.word(&Decided::ALL, Decided::as_str)?,
            namespace: row.opt_text()?.map(Into::into),
            pod: row.opt_text()?.map(Into::into),
            owner: row.opt_text()?.map(Into::into),
            node: row.opt_text()?.map(Into::into),
            group: row.opt_text()?.map(Into::into),
            nodes_before: row.opt_int()?,
            nodes_after: row.opt_int()?,
            pods: row.opt_int()?,
            options: row.opt_text()?.map(Into::into),
            event: row.opt_text()?.map(Into::into),
            message: row.opt_text()?.map(Into::into),
        })
    }
}

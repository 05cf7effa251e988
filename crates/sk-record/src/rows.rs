//! One row of each table, as the recorder writes it and the report reads it.
//!
//! Every table also has a first column `run_id`, which the writer adds, so that one query over `runs/*/pods.parquet`
//! can tell runs apart. Columns ending in `_s` are durations in seconds, derived from the times beside them for people
//! who query by hand; they are written and never read back. A group's column is called `node_group`, because `group`
//! is an SQL keyword. Text longer than [`crate::TEXT_MAX_BYTES`] is cut.
//!
//! There are many pods, decisions and events, so their rows are generic: `PodRow` owns its strings, `PodRow<&str>`
//! borrows them, and neither writing nor reading the latter allocates.

mod autoscaler;
mod event;

use sk_core::{SimDuration, SimTime};

use crate::column::{Column, Kind, Malformed, Row, RowReader, RowWriter};

pub use autoscaler::{AutoscalerRow, Decided, Trigger};
pub use event::EventRow;

/// The life of one pod, from creation to deletion; written once, when the pod is deleted or the run ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PodRow<Text = String> {
    /// The original namespace, without any prefix a cluster run adds.
    pub namespace: Text,
    /// The pod's name.
    pub name: Text,
    /// Two pods of the same name (a StatefulSet's) differ here.
    pub uid: Text,
    /// The top-most owner as `ns/Kind/name`; a bare pod owns itself: `ns/Pod/name`.
    pub owner: Text,
    /// When the API server took it.
    pub created: SimTime,
    /// When it was bound to a node.
    pub scheduled: Option<SimTime>,
    /// When its containers ran.
    pub started: Option<SimTime>,
    /// When it succeeded or failed.
    pub finished: Option<SimTime>,
    /// When it left the API server.
    pub deleted: Option<SimTime>,
    /// Where it was bound.
    pub node: Option<Text>,
    /// The node group of that node.
    pub group: Option<Text>,
    /// Requested CPU in thousandths.
    pub cpu_m: i64,
    /// Requested memory.
    pub memory_bytes: i64,
    /// The last phase seen: `Pending`, `Running`, `Succeeded`, `Failed`.
    pub phase: Text,
    /// The last message of `PodScheduled=False`; present exactly if the scheduler once refused the pod.
    pub waited_for: Option<Text>,
    /// What ended it; nothing if it outlived the run.
    pub ended_by: Option<EndedBy>,
}

/// What ended a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EndedBy {
    /// Ran to success.
    Finished,
    /// Ran to failure.
    Failed,
    /// Removed by its owner or a person.
    Deleted,
    /// Moved off its node through the eviction API (a drain, the autoscaler's scale-down).
    Evicted,
    /// Made room for a pod of higher priority.
    Preempted,
    /// Its node went away under it.
    NodeLost,
}

/// The life of one node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeRow {
    /// The node's name.
    pub name: String,
    /// The node group it belongs to.
    pub group: Option<String>,
    /// When it was asked for or registered.
    pub created: SimTime,
    /// When pods could first be placed on it.
    pub ready: Option<SimTime>,
    /// When it was deleted.
    pub deleted: Option<SimTime>,
    /// Allocatable CPU in thousandths.
    pub cpu_m: i64,
    /// Allocatable memory.
    pub memory_bytes: i64,
    /// Allocatable pods.
    pub pods: i64,
    /// What an hour of it costs, if a price is known.
    pub price_per_hour: Option<f64>,
}

/// One change of a step function that the pod and node tables do not already tell.
///
/// `replicas` is the one every recorder writes: key = owner `ns/Kind/name`, value = desired replicas as replayed.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesRow {
    /// From when on.
    pub time: SimTime,
    /// Which function: [`SeriesRow::REPLICAS`] or another name.
    pub series: String,
    /// Of what.
    pub key: String,
    /// The value from `time` on; nothing if the object was deleted.
    pub value: Option<f64>,
}

impl SeriesRow {
    /// The series of desired replicas per owner.
    pub const REPLICAS: &str = "replicas";
}

/// One answer of the scheduler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DecisionRow<Text = String> {
    /// When it was given.
    pub time: SimTime,
    /// The pod's namespace.
    pub namespace: Text,
    /// The pod's name.
    pub pod: Text,
    /// The pod's top-most owner, as in [`PodRow::owner`].
    pub owner: Text,
    /// Yes or no.
    pub outcome: Outcome,
    /// The chosen node.
    pub node: Option<Text>,
    /// Why not: the scheduler's message.
    pub message: Option<Text>,
    /// Why so, as far as the scheduler was asked.
    pub explained: Explained<Text>,
}

/// What a scheduler can say of a decision beyond its outcome. A real one is not asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Explained<Text = String> {
    /// How many nodes were evaluated.
    pub evaluated: Option<i64>,
    /// How many of them were feasible.
    pub feasible: Option<i64>,
    /// The best nodes with their scores, plugin by plugin.
    pub scores: Option<Text>,
    /// The pods that had to make room.
    pub victims: Option<Text>,
}

impl<Text> Default for Explained<Text> {
    fn default() -> Self {
        Self { evaluated: None, feasible: None, scores: None, victims: None }
    }
}

/// What the scheduler answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// The pod got a node.
    Scheduled,
    /// No node fits now.
    Unschedulable,
}

impl EndedBy {
    const ALL: [Self; 6] =
        [Self::Finished, Self::Failed, Self::Deleted, Self::Evicted, Self::Preempted, Self::NodeLost];

    /// The word in the table.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Deleted => "deleted",
            Self::Evicted => "evicted",
            Self::Preempted => "preempted",
            Self::NodeLost => "node_lost",
        }
    }
}

impl Outcome {
    const ALL: [Self; 2] = [Self::Scheduled, Self::Unschedulable];

    /// The word in the table.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Unschedulable => "unschedulable",
        }
    }
}

fn seconds_between(from: SimTime, to: Option<SimTime>) -> Option<f64> {
    to.map(|to| to.since(from)).map(SimDuration::as_secs_f64)
}

impl<Text: AsRef<str>> PodRow<Text> {
    /// The same with borrowed texts.
    pub fn borrowed(&self) -> PodRow<&str> {
        PodRow {
            namespace: self.namespace.as_ref(),
            name: self.name.as_ref(),
            uid: self.uid.as_ref(),
            owner: self.owner.as_ref(),
            created: self.created,
            scheduled: self.scheduled,
            started: self.started,
            finished: self.finished,
            deleted: self.deleted,
            node: self.node.as_ref().map(AsRef::as_ref),
            group: self.group.as_ref().map(AsRef::as_ref),
            cpu_m: self.cpu_m,
            memory_bytes: self.memory_bytes,
            phase: self.phase.as_ref(),
            waited_for: self.waited_for.as_ref().map(AsRef::as_ref),
            ended_by: self.ended_by,
        }
    }
}

impl Row for PodRow {
    type Borrowed<'a> = PodRow<&'a str>;

    const TABLE: &'static str = "pods";
    const COLUMNS: &'static [Column] = &[
        Column::required("namespace", Kind::Text).words(),
        Column::required("name", Kind::Text).distinct(),
        Column::required("uid", Kind::Text).distinct(),
        Column::required("owner", Kind::Text),
        Column::required("created", Kind::Time),
        Column::optional("scheduled", Kind::Time),
        Column::optional("started", Kind::Time),
        Column::optional("finished", Kind::Time),
        Column::optional("deleted", Kind::Time),
        Column::optional("node", Kind::Text),
        Column::optional("node_group", Kind::Text).words(),
        Column::required("cpu_m", Kind::Int),
        Column::required("memory_bytes", Kind::Int),
        Column::required("phase", Kind::Text).words(),
        Column::optional("waited_for", Kind::Text),
        Column::optional("ended_by", Kind::Text).words(),
        Column::derived("pending_s"),
        Column::derived("start_latency_s"),
    ];

    fn write(pod: &PodRow<&str>, row: &mut RowWriter<'_>) {
        row.text(pod.namespace).text(pod.name).text(pod.uid).text(pod.owner);
        row.time(pod.created).opt_time(pod.scheduled).opt_time(pod.started);
        row.opt_time(pod.finished).opt_time(pod.deleted);
        row.opt_text(pod.node).opt_text(pod.group);
        row.int(pod.cpu_m).int(pod.memory_bytes).text(pod.phase);
        row.opt_text(pod.waited_for).opt_text(pod.ended_by.map(EndedBy::as_str));
        row.opt_double(seconds_between(pod.created, pod.scheduled));
        row.opt_double(seconds_between(pod.created, pod.started));
    }

    fn own(pod: PodRow<&str>) -> Self {
        Self {
            namespace: pod.namespace.into(),
            name: pod.name.into(),
            uid: pod.uid.into(),
            owner: pod.owner.into(),
            created: pod.created,
            scheduled: pod.scheduled,
            started: pod.started,
            finished: pod.finished,
            deleted: pod.deleted,
            node: pod.node.map(Into::into),
            group: pod.group.map(Into::into),
            cpu_m: pod.cpu_m,
            memory_bytes: pod.memory_bytes,
            phase: pod.phase.into(),
            waited_for: pod.waited_for.map(Into::into),
            ended_by: pod.ended_by,
        }
    }

    fn read<'a>(row: &mut RowReader<'a>) -> Result<PodRow<&'a str>, Malformed> {
        Ok(PodRow {
            namespace: row.text()?,
            name: row.text()?,
            uid: row.text()?,
            owner: row.text()?,
            created: row.time()?,
            scheduled: row.opt_time()?,
            started: row.opt_time()?,
            finished: row.opt_time()?,
            deleted: row.opt_time()?,
            node: row.opt_text()?,
            group: row.opt_text()?,
            cpu_m: row.int()?,
            memory_bytes: row.int()?,
            phase: row.text()?,
            waited_for: row.opt_text()?,
            ended_by: row.opt_word(&EndedBy::ALL, EndedBy::as_str)?,
        })
    }
}

impl Row for NodeRow {
    /// There are few nodes: borrowing would spare nothing.
    type Borrowed<'a> = Self;

    const TABLE: &'static str = "nodes";
    const COLUMNS: &'static [Column] = &[
        Column::required("name", Kind::Text),
        Column::optional("node_group", Kind::Text).words(),
        Column::required("created", Kind::Time),
        Column::optional("ready", Kind::Time),
        Column::optional("deleted", Kind::Time),
        Column::required("cpu_m", Kind::Int),
        Column::required("memory_bytes", Kind::Int),
        Column::required("pods", Kind::Int),
        Column::optional("price_per_hour", Kind::Double),
        Column::derived("ready_s"),
    ];

    fn write(node: &Self, row: &mut RowWriter<'_>) {
        row.text(&node.name).opt_text(node.group.as_deref());
        row.time(node.created).opt_time(node.ready).opt_time(node.deleted);
        row.int(node.cpu_m).int(node.memory_bytes).int(node.pods).opt_double(node.price_per_hour);
        row.opt_double(seconds_between(node.created, node.ready));
    }

    fn own(node: Self) -> Self {
        node
    }

    fn read(row: &mut RowReader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            name: row.text()?.into(),
            group: row.opt_text()?.map(Into::into),
            created: row.time()?,
            ready: row.opt_time()?,
            deleted: row.opt_time()?,
            cpu_m: row.int()?,
            memory_bytes: row.int()?,
            pods: row.int()?,
            price_per_hour: row.opt_double()?,
        })
    }
}

impl Row for SeriesRow {
    type Borrowed<'a> = Self;

    const TABLE: &'static str = "series";
    const COLUMNS: &'static [Column] = &[
        Column::required("time", Kind::Time),
        Column::required("series", Kind::Text).words(),
        Column::required("key", Kind::Text),
        Column::optional("value", Kind::Double),
    ];

    fn write(change: &Self, row: &mut RowWriter<'_>) {
        row.time(change.time).text(&change.series).text(&change.key).opt_double(change.value);
    }

    fn own(change: Self) -> Self {
        change
    }

    fn read(row: &mut RowReader<'_>) -> Result<Self, Malformed> {
        let (time, series, key) = (row.time()?, row.text()?.into(), row.text()?.into());
        Ok(Self { time, series, key, value: row.opt_double()? })
    }
}

impl<Text: AsRef<str>> DecisionRow<Text> {
    /// The same with borrowed texts.
    pub fn borrowed(&self) -> DecisionRow<&str> {
        let Explained { evaluated, feasible, scores, victims } = &self.explained;
        DecisionRow {
            time: self.time,
            namespace: self.namespace.as_ref(),
            pod: self.pod.as_ref(),
            owner: self.owner.as_ref(),
            outcome: self.outcome,
            node: self.node.as_ref().map(AsRef::as_ref),
            message: self.message.as_ref().map(AsRef::as_ref),
            explained: Explained {
                evaluated: *evaluated,
                feasible: *feasible,
                scores: scores.as_ref().map(AsRef::as_ref),
                victims: victims.as_ref().map(AsRef::as_ref),
            },
        }
    }
}

impl Row for DecisionRow {
    type Borrowed<'a> = DecisionRow<&'a str>;

    const TABLE: &'static str = "decisions";
    const COLUMNS: &'static [Column] = &[
        Column::required("time", Kind::Time),
        Column::required("namespace", Kind::Text).words(),
        Column::required("pod", Kind::Text).distinct(),
        Column::required("owner", Kind::Text),
        Column::required("outcome", Kind::Text).words(),
        Column::optional("node", Kind::Text),
        Column::optional("message", Kind::Text),
        Column::optional("evaluated", Kind::Int),
        Column::optional("feasible", Kind::Int),
        Column::optional("scores", Kind::Text),
        Column::optional("victims", Kind::Text),
    ];

    fn write(decision: &DecisionRow<&str>, row: &mut RowWriter<'_>) {
        row.time(decision.time).text(decision.namespace).text(decision.pod).text(decision.owner);
        row.text(decision.outcome.as_str()).opt_text(decision.node).opt_text(decision.message);
        let Explained { evaluated, feasible, scores, victims } = decision.explained;
        row.opt_int(evaluated).opt_int(feasible).opt_text(scores).opt_text(victims);
    }

    fn own(decision: DecisionRow<&str>) -> Self {
        let Explained { evaluated, feasible, scores, victims } = decision.explained;
        let (scores, victims) = (scores.map(Into::into), victims.map(Into::into));
        Self {
            time: decision.time,
            namespace: decision.namespace.into(),
            pod: decision.pod.into(),
            owner: decision.owner.into(),
            outcome: decision.outcome,
            node: decision.node.map(Into::into),
            message: decision.message.map(Into::into),
            explained: Explained { evaluated, feasible, scores, victims },
        }
    }

    fn read<'a>(row: &mut RowReader<'a>) -> Result<DecisionRow<&'a str>, Malformed> {
        Ok(DecisionRow {
            time: row.time()?,
            namespace: row.text()?,
            pod: row.text()?,
            owner: row.text()?,
            outcome: row.word(&Outcome::ALL, Outcome::as_str)?,
            node: row.opt_text()?,
            message: row.opt_text()?,
            explained: Explained {
                evaluated: row.opt_int()?,
                feasible: row.opt_int()?,
                scores: row.opt_text()?,
                victims: row.opt_text()?,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The part of docs/run-record.md about one table.
    fn documented<R: Row>() -> String {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/run-record.md");
        let text = std::fs::read_to_string(path).expect("the documentation is part of the repository");
        let sections = text.split("\n## ").skip(1);
        sections.filter(|section| section.starts_with(&format!("{}:", R::TABLE))).collect()
    }

    #[test]
    fn every_column_is_documented() {
        fn check<R: Row>() {
            let text = documented::<R>();
            for column in R::COLUMNS {
                assert!(text.contains(&format!("`{}`", column.name)), "{}.{}", R::TABLE, column.name);
            }
        }
        check::<PodRow>();
        check::<NodeRow>();
        check::<SeriesRow>();
        check::<DecisionRow>();
        check::<AutoscalerRow>();
        check::<EventRow>();
    }
}

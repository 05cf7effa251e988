//! One row of each table, as the recorder pushes it and the report reads it.
//!
//! Every table also has a first column `run_id`, which the writer adds: with it `runs/*/pods.parquet` can be told apart
//! in one query. Columns ending in `_s` are lengths in seconds, derived from the times beside them for people who
//! query by hand; they are written and never read back. A group's column is called `node_group`, because `group` is a
//! word of SQL. Text longer than [`crate::TEXT_MAX_BYTES`] is cut.

mod autoscaler;

use sk_core::{SimDuration, SimTime};

use crate::column::{Column, Kind, Malformed, Row, RowReader, RowWriter};

pub use autoscaler::{AutoscalerRow, Decided, Trigger};

/// The life of one pod, from creation to removal; pushed once, when the pod is gone or the run ends.
#[derive(Clone, Debug, PartialEq)]
pub struct PodRow {
    /// The original namespace, without any prefix a cluster run adds.
    pub namespace: String,
    /// The pod's name.
    pub name: String,
    /// Two pods of the same name (a StatefulSet's) differ here.
    pub uid: String,
    /// The top-most owner as `ns/Kind/name`; a bare pod owns itself: `ns/Pod/name`.
    pub owner: String,
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
    pub node: Option<String>,
    /// The node group of that node.
    pub group: Option<String>,
    /// Requested CPU in thousandths.
    pub cpu_m: i64,
    /// Requested memory.
    pub memory_bytes: i64,
    /// The last phase seen: `Pending`, `Running`, `Succeeded`, `Failed`.
    pub phase: String,
    /// The last message of `PodScheduled=False`; present exactly if the scheduler once refused the pod.
    pub waited_for: Option<String>,
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
    /// When it was gone.
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
    /// The value from `time` on; nothing if the thing is gone.
    pub value: Option<f64>,
}

impl SeriesRow {
    /// The series of desired replicas per owner.
    pub const REPLICAS: &str = "replicas";
}

/// One answer of the scheduler.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionRow {
    /// When it was given.
    pub time: SimTime,
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// The pod's top-most owner, as in [`PodRow::owner`].
    pub owner: String,
    /// Yes or no.
    pub outcome: Outcome,
    /// The chosen node.
    pub node: Option<String>,
    /// Why not, in the scheduler's words.
    pub message: Option<String>,
    /// Why so, as far as the scheduler was asked.
    pub explained: Explained,
}

/// What a scheduler can say of a decision beyond its outcome. A real one is not asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Explained {
    /// How many nodes were looked at.
    pub evaluated: Option<i64>,
    /// How many of them the pod could have gone to.
    pub feasible: Option<i64>,
    /// The best nodes with their scores, plugin by plugin.
    pub scores: Option<String>,
    /// The pods that had to make room.
    pub victims: Option<String>,
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

impl Row for PodRow {
    const TABLE: &'static str = "pods";
    const COLUMNS: &'static [Column] = &[
        Column::required("namespace", Kind::Text),
        Column::required("name", Kind::Text).distinct(),
        Column::required("uid", Kind::Text).distinct(),
        Column::required("owner", Kind::Text),
        Column::required("created", Kind::Time),
        Column::optional("scheduled", Kind::Time),
        Column::optional("started", Kind::Time),
        Column::optional("finished", Kind::Time),
        Column::optional("deleted", Kind::Time),
        Column::optional("node", Kind::Text),
        Column::optional("node_group", Kind::Text),
        Column::required("cpu_m", Kind::Int),
        Column::required("memory_bytes", Kind::Int),
        Column::required("phase", Kind::Text),
        Column::optional("waited_for", Kind::Text),
        Column::optional("ended_by", Kind::Text),
        Column::derived("pending_s"),
        Column::derived("start_latency_s"),
    ];

    fn write(&self, row: &mut RowWriter<'_>) {
        row.text(&self.namespace).text(&self.name).text(&self.uid).text(&self.owner);
        row.time(self.created).opt_time(self.scheduled).opt_time(self.started);
        row.opt_time(self.finished).opt_time(self.deleted);
        row.opt_text(self.node.as_deref()).opt_text(self.group.as_deref());
        row.int(self.cpu_m).int(self.memory_bytes).text(&self.phase);
        row.opt_text(self.waited_for.as_deref()).opt_text(self.ended_by.map(EndedBy::as_str));
        row.opt_double(seconds_between(self.created, self.scheduled));
        row.opt_double(seconds_between(self.created, self.started));
    }

    fn read(row: &mut RowReader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
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
    const TABLE: &'static str = "nodes";
    const COLUMNS: &'static [Column] = &[
        Column::required("name", Kind::Text),
        Column::optional("node_group", Kind::Text),
        Column::required("created", Kind::Time),
        Column::optional("ready", Kind::Time),
        Column::optional("deleted", Kind::Time),
        Column::required("cpu_m", Kind::Int),
        Column::required("memory_bytes", Kind::Int),
        Column::required("pods", Kind::Int),
        Column::optional("price_per_hour", Kind::Double),
        Column::derived("ready_s"),
    ];

    fn write(&self, row: &mut RowWriter<'_>) {
        row.text(&self.name).opt_text(self.group.as_deref());
        row.time(self.created).opt_time(self.ready).opt_time(self.deleted);
        row.int(self.cpu_m).int(self.memory_bytes).int(self.pods).opt_double(self.price_per_hour);
        row.opt_double(seconds_between(self.created, self.ready));
    }

    fn read(row: &mut RowReader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            name: row.text()?,
            group: row.opt_text()?,
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
    const TABLE: &'static str = "series";
    const COLUMNS: &'static [Column] = &[
        Column::required("time", Kind::Time),
        Column::required("series", Kind::Text),
        Column::required("key", Kind::Text),
        Column::optional("value", Kind::Double),
    ];

    fn write(&self, row: &mut RowWriter<'_>) {
        row.time(self.time).text(&self.series).text(&self.key).opt_double(self.value);
    }

    fn read(row: &mut RowReader<'_>) -> Result<Self, Malformed> {
        Ok(Self { time: row.time()?, series: row.text()?, key: row.text()?, value: row.opt_double()? })
    }
}

impl Row for DecisionRow {
    const TABLE: &'static str = "decisions";
    const COLUMNS: &'static [Column] = &[
        Column::required("time", Kind::Time),
        Column::required("namespace", Kind::Text),
        Column::required("pod", Kind::Text).distinct(),
        Column::required("owner", Kind::Text),
        Column::required("outcome", Kind::Text),
        Column::optional("node", Kind::Text),
        Column::optional("message", Kind::Text),
        Column::optional("evaluated", Kind::Int),
        Column::optional("feasible", Kind::Int),
        Column::optional("scores", Kind::Text),
        Column::optional("victims", Kind::Text),
    ];

    fn write(&self, row: &mut RowWriter<'_>) {
        row.time(self.time).text(&self.namespace).text(&self.pod).text(&self.owner);
        row.text(self.outcome.as_str()).opt_text(self.node.as_deref()).opt_text(self.message.as_deref());
        let Explained { evaluated, feasible, scores, victims } = &self.explained;
        row.opt_int(*evaluated).opt_int(*feasible).opt_text(scores.as_deref()).opt_text(victims.as_deref());
    }

    fn read(row: &mut RowReader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
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
    }
}

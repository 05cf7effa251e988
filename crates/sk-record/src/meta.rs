//! `run.json`: the inputs, the trace, the settings, and how far to trust the result.
//!
//! It holds no wall time, host or path: two machines with the same inputs write the same bytes. Times are RFC 3339 in
//! UTC; durations end in `_s` and are seconds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sk_core::SimTime;

/// The layout of records that this version writes; a reader refuses a higher one.
pub const RECORD_VERSION: u32 = 1;

/// Everything about a run that is not a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunMeta {
    /// `<name>-<six hex digits>`: the folder's default name. The digits are of a hash over trace, resolved scenario,
    /// seed and version, so the same inputs have the same id.
    pub run_id: String,
    /// The scenario's name, or the trace's.
    pub name: String,
    /// Of SimKube.
    pub version: String,
    /// Who replayed it.
    pub engine: Engine,
    /// Whose rules were followed, e.g. `1.36`.
    pub kubernetes: String,
    /// Where all randomness of the run came from.
    pub seed: u64,
    /// What was replayed.
    pub trace: Trace,
    /// The simulated window's first moment: figures count from here.
    #[serde(with = "rfc3339")]
    pub start: SimTime,
    /// The simulated window's end: figures count up to here.
    #[serde(with = "rfc3339")]
    pub end: SimTime,
    /// Digest of the resolved scenario.
    pub scenario_digest: String,
    /// What prices are in, e.g. `USD`.
    pub currency: String,
    /// The node groups of the scenario, in its order.
    pub groups: Vec<Group>,
    /// The autoscaler's settings, if one decided about nodes.
    pub autoscaler: Option<Autoscaler>,
    /// What decides how far to trust the figures.
    pub warnings: Vec<Warning>,
    /// What of the trace was not simulated, worst first. While there is any, figures are about a part of the trace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Missing>,
    /// What else happened during the run, in order: faults and changes of the scenario's timeline.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<Happened>,
    /// The run was stopped before its end; figures cover the part that was simulated.
    pub partial: bool,
}

/// Who replayed the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// The in-process control plane in virtual time.
    Embedded,
    /// A real cluster in wall time.
    Cluster,
}

/// What was replayed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// How the caller named it, without folders: `example:nginx`, `week.sktrace`.
    pub name: String,
    /// Digest of its content.
    pub digest: String,
    /// `native`, `v2`, `v3`, `jsonl`, `yaml`.
    pub format: String,
    /// Its first moment.
    #[serde(with = "rfc3339")]
    pub start: SimTime,
    /// Its last moment.
    #[serde(with = "rfc3339")]
    pub end: SimTime,
    /// It was recorded in a cluster, so there is something to compare with.
    pub recorded: bool,
}

/// One node group of the scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// Its name in the scenario.
    pub name: String,
    /// Fewest nodes.
    pub min: i64,
    /// Most nodes.
    pub max: i64,
    /// Allocatable CPU of a node in thousandths.
    pub cpu_m: i64,
    /// Allocatable memory of a node.
    pub memory_bytes: i64,
    /// Price of a node-hour, if one is known.
    pub price_per_hour: Option<f64>,
}

/// The autoscaler's settings that explain figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Autoscaler {
    /// How often it looks.
    pub scan_interval_s: f64,
    /// How long a node is unneeded before it is removed.
    pub scale_down_unneeded_time_s: f64,
    /// Below which share of requests a node counts as unneeded.
    pub scale_down_utilization_threshold: f64,
}

/// Something that limits how far the figures can be trusted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Warning {
    /// Stable and short, for `--strict` and for looking up.
    pub code: String,
    /// What sort of limit it is.
    pub kind: WarningKind,
    /// One sentence for a person.
    pub message: String,
    /// How many objects or moments it concerns.
    pub count: u64,
}

/// The sorts of limits, in the order in which reports list them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WarningKind {
    /// We made something up: nodes, prices, a duration.
    Assumed,
    /// The trace misses a stretch of time or an object.
    Gap,
    /// The trace uses what the engine does not model.
    Unmodelled,
    /// Anything else worth knowing.
    Note,
}

/// An object of the trace that was not simulated, and how much that is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// Why it was not.
    pub why: MissingWhy,
    /// What it is, as a scenario's `accept` names it: `apps/StatefulSet`, `argoproj.io/Rollout`, `Pod`.
    pub kind: String,
    /// Which one, `namespace/Kind/name`; the last entries of a kind may represent [`Self::objects`] others.
    pub object: String,
    /// How many objects this entry represents.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub objects: u64,
    /// Pods that it would have had; nothing if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<i64>,
    /// The most CPU that these pods would have requested at one moment, in thousandths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_m: Option<i64>,
    /// Where the numbers come from.
    pub basis: Basis,
    /// The message about it, e.g. of the API server that refused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A fault or a change of the scenario's timeline, as it happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Happened {
    /// When.
    #[serde(with = "rfc3339")]
    pub at: SimTime,
    /// When it was over, if it lasts.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "some_rfc3339")]
    pub until: Option<SimTime>,
    /// The number of its entry in the scenario's timeline, from 0.
    pub entry: u64,
    /// What: `loseNodes: general-3, general-7`.
    pub what: String,
}

/// Why something was not simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MissingWhy {
    /// It has a pod template, and no controller of the engine acts on it.
    NoController,
    /// The API server refused it.
    Refused,
    /// Its pods ask for a scheduler that does not run.
    OtherScheduler,
}

impl MissingWhy {
    /// What a scenario's `accept` calls it.
    pub const fn code(self) -> &'static str {
        match self {
            Self::NoController => "no-controller",
            Self::Refused => "refused",
            Self::OtherScheduler => "other-scheduler",
        }
    }
}

/// Where the number of pods comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// These pods were recorded.
    Recorded,
    /// From the object: its replicas, or its completions, times what its template requests.
    Estimated,
    /// Neither says.
    Unknown,
}

fn one() -> u64 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_one(count: &u64) -> bool {
    *count == 1
}

/// `run.json` as it lies on disk: the meta and what the tables must look like to be the ones of this run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// First, so that a reader of a newer layout finds it before anything it does not know.
    pub(crate) record: u32,
    #[serde(flatten)]
    pub(crate) meta: RunMeta,
    pub(crate) tables: BTreeMap<String, TableFile>,
    /// Every file of the record, written when it is published: any other file in its folder is a user's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) files: Vec<String>,
}

/// Size and digest of one table's file: a truncated or changed table is detected before Parquet reads it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TableFile {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) digest: String,
}

/// Only the version: read before the rest, whose fields may differ.
#[derive(Debug, Deserialize)]
pub(crate) struct ManifestVersion {
    pub(crate) record: u32,
}

mod rfc3339 {
    use serde::{Deserialize, Deserializer, Serializer};
    use sk_core::SimTime;

    pub(super) fn serialize<S: Serializer>(time: &SimTime, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(time)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SimTime, D::Error> {
        let text = String::deserialize(deserializer)?;
        SimTime::parse_rfc3339(&text).map_err(serde::de::Error::custom)
    }
}

mod some_rfc3339 {
    use serde::{Deserialize, Deserializer, Serializer};
    use sk_core::SimTime;

    pub(super) fn serialize<S: Serializer>(time: &Option<SimTime>, serializer: S) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => serializer.collect_str(time),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SimTime>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| SimTime::parse_rfc3339(&text).map_err(serde::de::Error::custom)).transpose()
    }
}

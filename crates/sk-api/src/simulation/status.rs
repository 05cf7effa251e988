//! `status` of a Simulation.
//!
//! The controller writes all of it but [`Progress`] and [`Totals`], which are the driver's (server-side apply on the
//! status, field manager `sk-driver`). Everything here outlives the run.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The status of a Simulation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SimulationStatus {
    /// The generation of the spec that this was written for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// When it acquired the Lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When it was over and cleaned up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_time: Option<Time>,
    /// Repetitions that are done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_runs: Option<u32>,
    /// Why it is in its state, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The same for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Where the record is: the folder that the spec asked for, or the controller's path `/records/<name>`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record_path: Option<String>,
    /// The progress of the running repetition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// The totals of the last repetition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub totals: Option<Totals>,
    /// Which hooks have run; what is written here never runs a second time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hooks: Option<HookProgress>,
    /// Conditions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// The state of a Simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum State {
    /// Another Simulation holds the Lease; it waits.
    Blocked,
    /// It holds the Lease and is being set up.
    Initializing,
    /// It has succeeded.
    Finished,
    /// It has failed; `reason` and `message` say why.
    Failed,
    /// The replay is paused until `pausedTime` is removed.
    Paused,
    /// A repetition is tried again.
    Retrying,
    /// The trace is being replayed.
    Running,
}

impl State {
    /// Is it over?
    pub fn is_final(self) -> bool {
        matches!(self, Self::Finished | Self::Failed)
    }
}

/// How far a repetition is. Written by the driver, at most once a second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Progress {
    /// Of the trace's time, 0 to 100.
    #[schemars(range(min = 0, max = 100))]
    pub percent: u32,
    /// The position of the replay on the trace's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulated_time: Option<Time>,
    /// Operations that are done.
    #[schemars(range(min = 0))]
    pub events_done: u64,
    /// Operations in all.
    #[schemars(range(min = 0))]
    pub events_total: u64,
}

/// The totals of a repetition. Written by the driver when it is done; with several repetitions, by the last one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Totals {
    /// Operations that were carried out.
    #[schemars(range(min = 0))]
    pub events: u64,
    /// Objects that the API server refused; its messages are in the record.
    #[schemars(range(min = 0))]
    pub refused: u64,
    /// Objects that were there before and were left alone.
    #[schemars(range(min = 0))]
    pub left_alone: u64,
    /// Pods that were made.
    #[schemars(range(min = 0))]
    pub pods: u64,
    /// How late operations were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lateness: Option<Lateness>,
    /// Was it stopped before its end?
    pub partial: bool,
}

/// How late operations were against the schedule, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Lateness {
    /// The median.
    #[schemars(range(min = 0))]
    pub p50_ms: u64,
    /// The 99th percentile.
    #[schemars(range(min = 0))]
    pub p99_ms: u64,
    /// The latest.
    #[schemars(range(min = 0))]
    pub max_ms: u64,
}

/// Which of the controller's hooks have been started and have ended. A hook that was started and never ended, because
/// the controller was killed, counts as failed: whether it did its work is not known, and it must not do it twice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HookProgress {
    /// preStart hooks that were started.
    #[schemars(range(min = 0))]
    pub pre_start_started: u32,
    /// preStart hooks that have ended.
    #[schemars(range(min = 0))]
    pub pre_start_ended: u32,
    /// postStop hooks that were started.
    #[schemars(range(min = 0))]
    pub post_stop_started: u32,
    /// postStop hooks that have ended.
    #[schemars(range(min = 0))]
    pub post_stop_ended: u32,
}

//! `spec` of a Simulation.
//!
//! Defaults exist twice, in the schema for the API server and in serde for files that are never sent to one (`sk-driver
//! -f`); both come from the same functions.

#![expect(clippy::duplicated_attributes, reason = "the columns of a table may be of the same type")]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::names;
use super::status::SimulationStatus;

/// The default port on which the driver serves pod admission.
pub const DEFAULT_PORT: u16 = 8888;
/// The default timeout of a hook.
pub const DEFAULT_HOOK_SECONDS: u32 = 300;

/// What is replayed on this cluster, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, CustomResource)]
#[kube(
    group = "simkube.io",
    version = "v1",
    kind = "Simulation",
    doc = "A trace that is replayed on this cluster",
    status = "SimulationStatus",
    derive = "PartialEq",
    shortname = "sim",
    shortname = "sims",
    printcolumn(name = "start time", type_ = "string", json_path = ".status.startTime"),
    printcolumn(name = "end time", type_ = "string", json_path = ".status.endTime"),
    printcolumn(name = "speed factor", type_ = "number", json_path = ".spec.speed"),
    printcolumn(name = "completed", type_ = "integer", json_path = ".status.completedRuns"),
    printcolumn(name = "total", type_ = "integer", json_path = ".spec.repetitions"),
    printcolumn(name = "progress", type_ = "integer", json_path = ".status.progress.percent", priority = 1),
    printcolumn(name = "state", type_ = "string", json_path = ".status.state"),
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
// What may be absent is compared here, one level above: a rule at the field itself is not asked when the field comes or
// goes. `pausedTime` and how long the record is kept are all that may change.
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "has(self.duration) == has(oldSelf.duration) && (!has(self.duration) || self.duration == oldSelf.duration)",
        "message": "the duration of a simulation cannot be changed: make another Simulation",
    },
    {
        "rule": "has(self.hooks) == has(oldSelf.hooks) && (!has(self.hooks) || self.hooks == oldSelf.hooks)",
        "message": "the hooks of a simulation cannot be changed: make another Simulation",
    },
    {
        "rule": "has(self.lifecycleParams) == has(oldSelf.lifecycleParams) && (!has(self.lifecycleParams) || self.lifecycleParams == oldSelf.lifecycleParams)",
        "message": "how long a simulation's pods take to start cannot be changed: make another Simulation",
    },
    {
        "rule": "has(self.metrics) == has(oldSelf.metrics) && (!has(self.metrics) || self.metrics == oldSelf.metrics)",
        "message": "the metrics of a simulation cannot be changed: make another Simulation",
    },
    {
        "rule": "(has(self.rescheduleInterruptedBarePods) && self.rescheduleInterruptedBarePods) == (has(oldSelf.rescheduleInterruptedBarePods) && oldSelf.rescheduleInterruptedBarePods)",
        "message": "rescheduleInterruptedBarePods cannot be changed: make another Simulation",
    },
    {
        "rule": "(has(self.record) && has(self.record.path) ? self.record.path : '') == (has(oldSelf.record) && has(oldSelf.record.path) ? oldSelf.record.path : '')",
        "message": "where the record of a simulation goes cannot be changed: make another Simulation",
    },
]))]
pub struct SimulationSpec {
    /// What replays the trace.
    #[schemars(extend("x-kubernetes-validations" = [{
        "rule": "self == oldSelf",
        "message": "what a simulation replays cannot be changed: make another Simulation",
    }]))]
    pub driver: DriverSpec,
    /// How long virtual pods take to start.
    #[serde(default, skip_serializing_if = "LifecycleParams::is_default")]
    pub lifecycle_params: LifecycleParams,
    /// A Prometheus for the run, where the Prometheus operator is installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<MetricsSpec>,
    /// How much of the trace is replayed, such as `30m` or `1h30m`. Default: all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h|d))+$"), length(max = 100))]
    pub duration: Option<String>,
    /// How often the trace is replayed, one after the other.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1000), extend("x-kubernetes-validations" = [{
        "rule": "self == oldSelf",
        "message": "the number of repetitions cannot be changed: make another Simulation",
    }]))]
    pub repetitions: u32,
    /// How much faster than it was recorded. The timers of the cluster's own controllers are not scaled.
    #[serde(default = "one_times")]
    // The least speed is a rule and no `minimum`: against a whole number the API server cuts the decimals of a minimum
    // off, and would take 0.
    #[schemars(range(max = 10000.0), extend("x-kubernetes-validations" = [
        {"rule": "self >= 0.001", "message": "the speed is a factor of at least 0.001; to stand still, set pausedTime"},
        {
            "rule": "self == oldSelf",
            "message": "the speed of a simulation cannot be changed: make another Simulation",
        },
    ]))]
    pub speed: f64,
    /// Are recorded pods without an owner created again when they are interrupted?
    #[serde(default, skip_serializing_if = "is_false")]
    pub reschedule_interrupted_bare_pods: bool,
    /// While this is set the replay is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_time: Option<Time>,
    /// Commands that are run before and after. Installations refuse them unless they allow hooks.
    #[serde(default, skip_serializing_if = "Hooks::is_empty")]
    pub hooks: Hooks,
    /// Where the record goes and how long it is kept.
    #[serde(default, skip_serializing_if = "RecordSpec::is_default")]
    pub record: RecordSpec,
}

/// Owns everything that a simulation makes, so that deleting it cleans up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema, CustomResource)]
#[kube(
    group = "simkube.io",
    version = "v1",
    kind = "SimulationRoot",
    doc = "Owns everything that a simulation makes, so that deleting it cleans up",
    derive = "PartialEq",
    derive = "Default",
    shortname = "simroot",
    shortname = "simroots",
    crates(kube_core = "::kube_core")
)]
pub struct SimulationRootSpec {}

/// What replays the trace, and where from and to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DriverSpec {
    /// The trace: a path on the node that the driver runs on, a URL (file, http, https, s3, gs, azure), or
    /// `uploaded:<SHA-256>` for one that was sent to the controller.
    #[schemars(
        regex(pattern = r"^((/|file:///|s3://|gs://|azure://|https?://)[^\s]+|uploaded:[0-9a-f]{64})$"),
        length(max = 4096)
    )]
    pub trace_path: String,
    /// The driver's image. Default: the one that the controller was installed with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub image: Option<String>,
    /// The namespace that the driver runs in. It is created if it does not exist, and then removed in the end.
    #[serde(default = "namespace")]
    #[schemars(regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"), length(max = 63))]
    pub namespace: String,
    /// The port on which it serves pod admission.
    #[serde(default = "port")]
    #[schemars(range(min = 1024, max = 65535))]
    pub port: u16,
    /// Additional arguments of the driver.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 4096)))]
    pub args: Vec<String>,
    /// Secrets in its namespace whose keys become its environment, such as credentials for the trace's place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(max = 253)))]
    pub secrets: Vec<String>,
    /// The prefix of the recorded namespaces' names, followed by a dash.
    #[serde(default = "prefix")]
    #[schemars(regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"), length(max = 30))]
    pub virtual_ns_prefix: String,
    /// The cert-manager ClusterIssuer of the webhook's certificate. Default: the controller makes one itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub cert_manager_issuer: Option<String>,
    /// After this many seconds the driver is stopped and the simulation fails. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 31_536_000))]
    pub deadline_seconds: Option<i64>,
}

/// How long virtual pods take to start, in milliseconds; a jitter is added at random, from nothing to all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LifecycleParams {
    /// Until the image is there.
    #[schemars(range(min = 0, max = 3_600_000))]
    pub image_pull_delay: u32,
    /// At most so much more.
    #[schemars(range(min = 0, max = 3_600_000))]
    pub image_pull_jitter: u32,
    /// From then until the pod is ready.
    #[schemars(range(min = 0, max = 3_600_000))]
    pub pod_startup_delay: u32,
    /// At most so much more.
    #[schemars(range(min = 0, max = 3_600_000))]
    pub pod_startup_jitter: u32,
}

impl LifecycleParams {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A Prometheus for the metrics of a run, created by the Prometheus operator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetricsSpec {
    /// Where it runs.
    #[serde(default = "monitoring")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// Its ServiceAccount.
    #[serde(default = "prometheus_account")]
    #[schemars(length(min = 1, max = 253))]
    pub service_account: String,
    /// In how many shards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub prometheus_shards: Option<u32>,
    /// PodMonitors that it follows, by name. Empty: all of those namespaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub pod_monitor_names: Vec<String>,
    /// Where those are. Empty: in its own namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub pod_monitor_namespaces: Vec<String>,
    /// ServiceMonitors that it follows, by name. Empty: all of those namespaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub service_monitor_names: Vec<String>,
    /// Where those are. Empty: in its own namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub service_monitor_namespaces: Vec<String>,
    /// Where the samples go, as the Prometheus operator has it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "free_objects")]
    pub remote_write_configs: Vec<Value>,
}

/// Commands before and after. preStart and postStop run once, in the controller; preRun and postRun in the driver, in
/// each repetition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Hooks {
    /// Before anything is created.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub pre_start_hooks: Vec<Hook>,
    /// Before each repetition.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub pre_run_hooks: Vec<Hook>,
    /// After each repetition.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub post_run_hooks: Vec<Hook>,
    /// When all is over, before the clean-up.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub post_stop_hooks: Vec<Hook>,
}

impl Hooks {
    /// Is there none?
    pub fn is_empty(&self) -> bool {
        [&self.pre_start_hooks, &self.pre_run_hooks, &self.post_run_hooks, &self.post_stop_hooks]
            .into_iter()
            .all(Vec::is_empty)
    }
}

/// One command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hook {
    /// The program, started without a shell.
    #[schemars(length(min = 1, max = 4096))]
    pub cmd: String,
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 65536)))]
    pub args: Vec<String>,
    /// Does it get the Simulation as JSON on its standard input?
    #[serde(default)]
    pub send_sim: bool,
    /// Does the simulation continue when it fails?
    #[serde(default)]
    pub ignore_failure: bool,
    /// After this many seconds it is killed and has failed.
    #[serde(default = "hook_seconds")]
    #[schemars(range(min = 1, max = 86_400))]
    pub timeout_seconds: u32,
}

/// Where the record goes and how long it is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RecordSpec {
    /// A folder (s3, gs, azure or a path that the driver can write). Default: the controller keeps it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub path: Option<String>,
    /// This many seconds after its end the Simulation is deleted, with the record that the controller keeps. Default: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 31_536_000))]
    pub ttl_seconds_after_finished: Option<u32>,
}

impl RecordSpec {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

fn one() -> u32 {
    1
}

fn one_times() -> f64 {
    1.0
}

fn namespace() -> String {
    names::NAMESPACE.to_owned()
}

fn port() -> u16 {
    DEFAULT_PORT
}

fn prefix() -> String {
    "virtual".to_owned()
}

fn monitoring() -> String {
    "monitoring".to_owned()
}

fn prometheus_account() -> String {
    "prometheus-k8s".to_owned()
}

fn hook_seconds() -> u32 {
    DEFAULT_HOOK_SECONDS
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_false(value: &bool) -> bool {
    !value
}

/// A list of objects that another program's schema describes.
fn free_objects(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "array",
        "maxItems": 16,
        "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    })
}

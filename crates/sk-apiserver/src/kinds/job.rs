//! Jobs: pods that run to completion, and how many of them may fail.
//!
//! Reading a Job writes its defaults, as the API server does. The selector and labels depend on the uid, so they are
//! made when a Job is created ([`Job::generate_selector`]). `job_validation` has the validation rules.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sk_core::{SimTime, SmolStr};

use super::job_policy::{PodFailurePolicy, SuccessPolicy};
use super::{ConditionStatus, Kind, PodTemplate, job_validation, read};
use crate::error::Invalid;
use crate::{Labels, Uid};

/// The finalizer on every pod of a Job: the pod stays until it is counted.
pub static JOB_TRACKING: SmolStr = SmolStr::new_static("batch.kubernetes.io/job-tracking");
/// Annotation and label of a pod of an indexed Job: which index it is.
pub static COMPLETION_INDEX: SmolStr = SmolStr::new_static("batch.kubernetes.io/job-completion-index");
/// The `managedBy` of the built-in Job controller.
pub const JOB_CONTROLLER: &str = "kubernetes.io/job-controller";

static JOB_NAME_LABELS: [SmolStr; 2] =
    [SmolStr::new_static("job-name"), SmolStr::new_static("batch.kubernetes.io/job-name")];
const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";
static CONTROLLER_UID_LABELS: [SmolStr; 2] =
    [SmolStr::new_static("controller-uid"), SmolStr::new_static(CONTROLLER_UID)];

/// `SetDefaults_Job` (`pkg/apis/batch/v1/defaults.go`, 1.36).
const DEFAULT_BACKOFF_LIMIT: i32 = 6;

/// A Job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Job {
    /// What is desired.
    pub spec: Arc<JobSpec>,
    /// What is.
    pub status: Arc<JobStatus>,
}

/// What a Job is to run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobSpec {
    /// At most so many pods at a time; set once it is read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallelism: Option<i32>,
    /// So many pods must succeed; `None`: any one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completions: Option<i32>,
    /// Seconds after which the Job fails, whatever its pods do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_deadline_seconds: Option<i64>,
    /// What becomes of the Job when a pod fails in a certain way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_failure_policy: Option<PodFailurePolicy>,
    /// When an indexed Job has succeeded before all of its indexes have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success_policy: Option<SuccessPolicy>,
    /// So many pods may fail; set once it is read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_limit: Option<i32>,
    /// So many pods may fail within one index.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_limit_per_index: Option<i32>,
    /// So many indexes may fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_failed_indexes: Option<i32>,
    /// Which pods are its own: a label selector.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub selector: Value,
    /// The selector was written by hand and is not generated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manual_selector: Option<bool>,
    /// What each pod is made from.
    pub template: PodTemplate,
    /// Seconds after which a finished Job is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_finished: Option<i32>,
    /// The completion mode; set once it is read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_mode: Option<CompletionMode>,
    /// No pods while true; set once it is read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// The pod replacement policy; set once it is read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_replacement_policy: Option<PodReplacementPolicy>,
    /// Another controller reconciles it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed_by: Option<SmolStr>,
    /// All other fields.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// The completion mode: whether each pod of a Job has an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CompletionMode {
    /// One success is like any other.
    #[default]
    NonIndexed,
    /// Each index must succeed once.
    Indexed,
}

/// The pod replacement policy: when a terminating pod is replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PodReplacementPolicy {
    /// As soon as it is asked to go.
    #[default]
    TerminatingOrFailed,
    /// When it has ended.
    Failed,
}

/// What a Job reports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobStatus {
    /// What holds of it, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<JobCondition>,
    /// When it began, or began again after it was suspended.
    #[serde(with = "crate::json::optional_time", skip_serializing_if = "Option::is_none")]
    pub start_time: Option<SimTime>,
    /// When it completed.
    #[serde(with = "crate::json::optional_time", skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<SimTime>,
    /// Pods that have neither ended nor are going.
    #[serde(skip_serializing_if = "is_zero")]
    pub active: i32,
    /// Pods that succeeded and are counted.
    #[serde(skip_serializing_if = "is_zero")]
    pub succeeded: i32,
    /// Pods that failed and are counted.
    #[serde(skip_serializing_if = "is_zero")]
    pub failed: i32,
    /// Pods that are going and have not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminating: Option<i32>,
    /// Indexes that succeeded, such as `1,3-5,7`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub completed_indexes: String,
    /// Indexes that failed for good; only with a limit per index.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_indexes: Option<String>,
    /// Pods that have ended and whose finalizer is still there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uncounted_terminated_pods: Option<UncountedTerminatedPods>,
    /// Active pods that are ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<i32>,
    /// All other fields.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// Pods that have ended and are not in the counters yet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UncountedTerminatedPods {
    /// They succeeded.
    #[serde(with = "uids", skip_serializing_if = "Vec::is_empty")]
    pub succeeded: Vec<Uid>,
    /// They failed.
    #[serde(with = "uids", skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<Uid>,
}

/// A condition of a Job. Unlike others it has `lastProbeTime`, which is when it last changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobCondition {
    /// `Complete`, `Failed`, `Suspended`, `FailureTarget` or `SuccessCriteriaMet`.
    #[serde(rename = "type")]
    pub kind: SmolStr,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// `lastProbeTime`.
    #[serde(with = "crate::json::optional_time", skip_serializing_if = "Option::is_none")]
    pub last_probe_time: Option<SimTime>,
    /// When it last changed.
    #[serde(with = "crate::json::optional_time", skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<SimTime>,
    /// Why, in a word.
    #[serde(skip_serializing_if = "SmolStr::is_empty")]
    pub reason: SmolStr,
    /// Why, in a sentence.
    #[serde(skip_serializing_if = "SmolStr::is_empty")]
    pub message: SmolStr,
}

impl Job {
    /// Fills selector and labels so that they select this Job's pods and no others, unless `manualSelector` says that
    /// the user has set them by hand (`registry/batch/job/strategy.go`, 1.36). Labels that are there are left alone:
    /// validation refuses those that contradict.
    pub(crate) fn generate_selector(&mut self, name: &SmolStr, uid: Uid, own_labels: &mut Labels) {
        let spec = Arc::make_mut(&mut self.spec);
        // A Job that a controller made was never read.
        spec.set_defaults();
        if !*spec.manual_selector.get_or_insert(false) {
            let uid = SmolStr::from(uid.to_string());
            let labels = spec.template.metadata.labels.make_mut();
            for label in &JOB_NAME_LABELS {
                labels.entry(label.clone()).or_insert_with(|| name.clone());
            }
            for label in &CONTROLLER_UID_LABELS {
                labels.entry(label.clone()).or_insert_with(|| uid.clone());
            }
            if spec.selector.pointer("/matchLabels").and_then(|labels| labels.get(CONTROLLER_UID)).is_none() {
                spec.selector["matchLabels"][CONTROLLER_UID] = json!(uid);
            }
        }
        if own_labels.is_empty() {
            *own_labels = spec.template.metadata.labels.clone();
        }
    }
}

impl Job {
    /// Keeps what the server generated if an update leaves it out, as server-side apply does.
    pub(super) fn keep_generated(&mut self, stored: &Self) {
        let spec = Arc::make_mut(&mut self.spec);
        if spec.selector.is_null() {
            spec.selector.clone_from(&stored.spec.selector);
        }
        spec.manual_selector = spec.manual_selector.or(stored.spec.manual_selector);
        let generated = JOB_NAME_LABELS.iter().chain(&CONTROLLER_UID_LABELS);
        for (label, value) in generated.filter_map(|label| stored.spec.template.metadata.labels.get_key_value(label)) {
            if !spec.template.metadata.labels.contains_key(label) {
                spec.template.metadata.labels.make_mut().insert(label.clone(), value.clone());
            }
        }
    }
}

impl JobSpec {
    /// The API server's defaults.
    pub(super) fn set_defaults(&mut self) {
        if self.completions.is_none() && self.parallelism.is_none() {
            self.completions = Some(1);
        }
        self.parallelism.get_or_insert(1);
        self.completion_mode.get_or_insert_default();
        self.suspend.get_or_insert(false);
        let unlimited = self.backoff_limit_per_index.is_some();
        self.backoff_limit.get_or_insert(if unlimited { i32::MAX } else { DEFAULT_BACKOFF_LIMIT });
        let replaces_failed = self.pod_failure_policy.is_some();
        self.pod_replacement_policy.get_or_insert(match replaces_failed {
            true => PodReplacementPolicy::Failed,
            false => PodReplacementPolicy::TerminatingOrFailed,
        });
    }

    /// Do its pods have completion indexes?
    pub fn is_indexed(&self) -> bool {
        self.completion_mode == Some(CompletionMode::Indexed)
    }

    /// Has it no pods for now?
    pub fn is_suspended(&self) -> bool {
        self.suspend.unwrap_or(false)
    }

    /// At most so many pods at a time.
    pub fn parallelism(&self) -> i32 {
        self.parallelism.unwrap_or(1)
    }

    /// So many pods may fail.
    pub fn backoff_limit(&self) -> i32 {
        self.backoff_limit.unwrap_or(DEFAULT_BACKOFF_LIMIT)
    }

    /// Is a pod replaced only when it has ended?
    pub fn only_replaces_failed(&self) -> bool {
        self.pod_replacement_policy == Some(PodReplacementPolicy::Failed) || self.pod_failure_policy.is_some()
    }
}

impl JobStatus {
    /// The condition of this type, if it holds.
    pub fn true_condition(&self, kind: &str) -> Option<&JobCondition> {
        self.conditions.iter().find(|known| known.kind == kind && known.status == ConditionStatus::True)
    }

    /// Complete or failed for good.
    pub fn is_finished(&self) -> bool {
        self.true_condition("Complete").is_some() || self.true_condition("Failed").is_some()
    }
}

impl JobCondition {
    /// A condition that came to hold, or to hold no longer, at `now`.
    pub fn new(
        kind: &'static str,
        holds: bool,
        reason: impl Into<SmolStr>,
        message: impl Into<SmolStr>,
        now: SimTime,
    ) -> Self {
        Self {
            kind: SmolStr::new_static(kind),
            status: if holds { ConditionStatus::True } else { ConditionStatus::False },
            last_probe_time: Some(now),
            last_transition_time: Some(now),
            reason: reason.into(),
            message: message.into(),
        }
    }
}

impl Kind for Job {
    fn read(fields: &mut Map<String, Value>) -> Result<Self, serde_json::Error> {
        let mut spec: JobSpec = read(fields.remove("spec"))?;
        spec.set_defaults();
        Ok(Self { spec: Arc::new(spec), status: Arc::new(read(fields.remove("status"))?) })
    }

    fn write(&self, fields: &mut Map<String, Value>) {
        fields.insert("spec".into(), json!(*self.spec));
        fields.insert("status".into(), json!(*self.status));
    }

    fn prepare_for_create(&mut self) {
        self.status = Arc::default();
    }

    fn set_status(&mut self, other: &Self) {
        self.status.clone_from(&other.status);
    }

    fn prepare_for_update(&mut self, stored: &Self) {
        self.set_status(stored);
    }

    fn same_desire(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.spec, &other.spec) || self.spec == other.spec
    }

    fn validate(&self) -> Result<(), Invalid> {
        job_validation::validate(&self.spec, "spec")?;
        job_validation::validate_selector(&self.spec)
    }

    fn validate_update(&self, stored: &Self) -> Result<(), Invalid> {
        job_validation::validate_update(&self.spec, &stored.spec)
    }
}

fn is_zero(count: &i32) -> bool {
    *count == 0
}

/// Uids as texts.
mod uids {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use crate::Uid;

    pub(super) fn serialize<S: Serializer>(uids: &[Uid], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(uids.iter().map(ToString::to_string))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Uid>, D::Error> {
        let texts = Option::<Vec<String>>::deserialize(deserializer)?.unwrap_or_default();
        texts.iter().map(|text| text.parse().map_err(D::Error::custom)).collect()
    }
}

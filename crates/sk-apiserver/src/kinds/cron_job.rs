//! CronJobs: create Jobs on a schedule.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sk_core::cron::{self, Schedule};
use sk_core::{SimTime, SmolStr};

use super::{JobSpec, Kind, TemplateMeta, job_validation, read};
use crate::Uid;
use crate::error::Invalid;

/// A CronJob.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CronJob {
    /// What is desired.
    pub spec: Arc<CronJobSpec>,
    /// What is.
    pub status: Arc<CronJobStatus>,
}

/// When Jobs are made, and which.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CronJobSpec {
    /// In cron's notation.
    #[serde(default)]
    pub schedule: String,
    /// The zone whose clocks count; without one, UTC's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<SmolStr>,
    /// Seconds after which a missed start is given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starting_deadline_seconds: Option<i64>,
    /// What happens when the last Job still runs.
    #[serde(default)]
    pub concurrency_policy: ConcurrencyPolicy,
    /// No Jobs while set.
    #[serde(default)]
    pub suspend: bool,
    /// What each Job is made from.
    #[serde(default)]
    pub job_template: JobTemplate,
    /// So many complete Jobs are kept.
    #[serde(default = "three")]
    pub successful_jobs_history_limit: i32,
    /// So many failed Jobs are kept.
    #[serde(default = "one")]
    pub failed_jobs_history_limit: i32,
    /// All other fields.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// A Job to be.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobTemplate {
    /// Its labels and annotations.
    pub metadata: TemplateMeta,
    /// What it runs.
    pub spec: Arc<JobSpec>,
}

/// What happens when the last Job still runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConcurrencyPolicy {
    /// The next one runs beside it.
    #[default]
    Allow,
    /// The next one is left out.
    Forbid,
    /// The next one takes its place.
    Replace,
}

/// What a CronJob reports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CronJobStatus {
    /// Its Jobs that have not finished.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub active: Vec<ActiveJob>,
    /// The last moment that was due and that a Job was made for.
    #[serde(with = "crate::json::optional_time", skip_serializing_if = "Option::is_none")]
    pub last_schedule_time: Option<SimTime>,
    /// When a Job of it last completed.
    #[serde(with = "crate::json::optional_time", skip_serializing_if = "Option::is_none")]
    pub last_successful_time: Option<SimTime>,
    /// All other fields.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// A reference to a Job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ActiveJob {
    /// Always `batch/v1`.
    pub api_version: SmolStr,
    /// Always `Job`.
    pub kind: SmolStr,
    /// Its name.
    pub name: SmolStr,
    /// Its namespace.
    pub namespace: SmolStr,
    /// The version in which it was made.
    #[serde(default, skip_serializing_if = "SmolStr::is_empty")]
    pub resource_version: SmolStr,
    /// Which of that name.
    #[serde(with = "uid")]
    pub uid: Uid,
    /// All other fields.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl CronJobSpec {
    /// Its schedule, read.
    pub fn parsed(&self) -> Result<Schedule, cron::CronError> {
        Schedule::parse(&self.schedule, self.time_zone.as_deref())
    }

    fn validate_schedule(&self) -> Result<(), Invalid> {
        let refuse = |field: &str, text: &str, why: &str| {
            let shown: String = text.chars().take(200).collect();
            Err(Invalid::new(format!("spec.{field}"), format!("Invalid value: {shown:?}: {why}")))
        };
        if self.schedule.is_empty() {
            return Err(Invalid::new("spec.schedule", "Required value"));
        }
        if self.schedule.contains("TZ") {
            let why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
            return refuse("schedule", &self.schedule, why);
        }
        if let Err(error) = Schedule::parse(&self.schedule, None) {
            return refuse("schedule", &self.schedule, &error.to_string());
        }
        match self.time_zone.as_deref() {
            None => Ok(()),
            Some("") => refuse("timeZone", "", "timeZone must be nil or non-empty string"),
            Some(zone) if zone.eq_ignore_ascii_case("local") => {
                let why = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
                refuse("timeZone", zone, why)
            }
            Some(zone) => {
                cron::find_zone(zone).map(|_| ()).or_else(|error| refuse("timeZone", zone, &error.to_string()))
            }
        }
    }
}

/// What is wrong with the spec of a CronJob.
pub(crate) fn invalid_cron_job(spec: &CronJobSpec) -> Option<Invalid> {
    CronJob { spec: Arc::new(spec.clone()), status: Arc::default() }.validate().err()
}

impl Kind for CronJob {
    fn read(fields: &mut Map<String, Value>) -> Result<Self, serde_json::Error> {
        Ok(Self { spec: Arc::new(read(fields.remove("spec"))?), status: Arc::new(read(fields.remove("status"))?) })
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
        let spec = &self.spec;
        spec.validate_schedule()?;
        let numbers = [
            ("startingDeadlineSeconds", spec.starting_deadline_seconds),
            ("successfulJobsHistoryLimit", Some(spec.successful_jobs_history_limit.into())),
            ("failedJobsHistoryLimit", Some(spec.failed_jobs_history_limit.into())),
        ];
        for (field, number) in numbers {
            if let Some(number) = number.filter(|number| *number < 0) {
                let why = format!("Invalid value: {number}: must be greater than or equal to 0");
                return Err(Invalid::new(format!("spec.{field}"), why));
            }
        }
        let mut job = JobSpec::clone(&spec.job_template.spec);
        job.set_defaults();
        if job.manual_selector == Some(true) {
            let why = "Unsupported value: true: supported values: \"nil\", \"false\"";
            return Err(Invalid::new("spec.jobTemplate.spec.manualSelector", why));
        }
        job_validation::validate(&job, "spec.jobTemplate.spec")
    }

    fn validate_update(&self, _stored: &Self) -> Result<(), Invalid> {
        Ok(())
    }
}

impl Default for CronJobSpec {
    fn default() -> Self {
        Self {
            schedule: String::new(),
            time_zone: None,
            starting_deadline_seconds: None,
            concurrency_policy: ConcurrencyPolicy::default(),
            suspend: false,
            job_template: JobTemplate::default(),
            successful_jobs_history_limit: three(),
            failed_jobs_history_limit: one(),
            rest: Map::new(),
        }
    }
}

fn three() -> i32 {
    3
}

fn one() -> i32 {
    1
}

/// A uid as text.
mod uid {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    use crate::Uid;

    pub(super) fn serialize<S: Serializer>(uid: &Uid, serializer: S) -> Result<S::Ok, S::Error> {
        uid.to_string().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Uid, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

//! The specification of a generated workload: fields, defaults and limits.

use serde::{Deserialize, Serialize};
use sk_core::limits::MAX_WINDOW;
use sk_core::{SimDuration, SimTime};
use sk_store::yaml;

use crate::parse;

/// The largest file that is read as a specification: a thousand lines of a hundred bytes.
const MAX_SPEC_BYTES: usize = 100_000;

/// What runs at once is kept in memory, about 100 bytes each: two million are 200 MB.
const MAX_AT_ONCE: f64 = 2_000_000.0;

/// So many daemons leave room for the largest pod on every machine: 30 × 200m and 128Mi beside 8 CPUs and 16Gi.
const MAX_DAEMONS: u32 = 30;

/// Where there are machines, the lives of CronJobs' pods wait for the end, 24 bytes each: ten million are 240 MB.
const MAX_CRON_LIVES: f64 = 1e7;

/// How often a CronJob starts in a day, on average over all that are drawn.
const CRON_STARTS_PER_DAY: f64 = 70.0;

/// The longest trace. A CronJob of every minute has 576,000 lives in it, 14 MB while they are written.
const MAX_DURATION: SimDuration = MAX_WINDOW;

/// A workload to generate. Every field has a default; all of them together are a small cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct GenerateSpec {
    /// The same seed gives the same bytes.
    pub seed: u64,
    /// When the trace begins.
    #[serde(with = "parse::moment")]
    pub start: SimTime,
    /// How long it is.
    #[serde(with = "parse::span")]
    pub duration: SimDuration,
    /// End after this many events, if the time has not ended before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<u64>,
    /// Cut times to whole seconds, which is all that v2 traces hold.
    pub whole_seconds: bool,
    /// How many namespaces everything is spread over.
    pub namespaces: u32,
    /// The hour (UTC) at which people are busiest. Batch work is busiest twelve hours later.
    pub peak_hour: u8,
    /// What serves people.
    pub services: Services,
    /// What is started once and ends.
    pub batch: Batch,
    /// What is started by the clock and ends.
    pub cron: Cron,
    /// What else a cluster has; without it, neither that nor machines are made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
}

/// What keeps state, what runs on every machine, and the machines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Platform {
    /// How many StatefulSets, each with a claim per pod and a headless Service.
    pub stateful: u32,
    /// How many DaemonSets.
    pub daemons: u32,
    /// How many machines, over three zones; one in six takes StatefulSets alone.
    pub machines: u32,
    /// The share of services that have a disruption budget; StatefulSets of several pods all have one.
    pub budgets: f64,
}

impl Default for Platform {
    fn default() -> Self {
        Self { stateful: 5, daemons: 4, machines: 12, budgets: 0.5 }
    }
}

/// Deployments that follow a daily curve and are rolled out anew.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Services {
    /// How many there are at any time.
    pub count: u32,
    /// The share of them that an autoscaler scales. People scale the others, with a rollout now and then.
    pub autoscaled: f64,
    /// How often, on average, an autoscaler looks; it changes something only if the load has moved by a tenth.
    #[serde(with = "parse::span")]
    pub scale_every: SimDuration,
    /// Rollouts of each service in a day, on average; most of them when people work.
    pub rollouts_per_day: f64,
    /// How many services are replaced by others in a day, on average.
    pub replaced_per_day: f64,
    /// Whether Services, ConfigMaps and ServiceAccounts come with them.
    pub companions: bool,
}

/// Jobs that come at random, more of them at night, and in bursts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Batch {
    /// How many an hour at the busiest time, bursts not counted.
    pub jobs_per_hour: f64,
    /// How many bursts a day.
    pub bursts_per_day: f64,
    /// How many Jobs a burst has, on average.
    pub jobs_per_burst: u32,
    /// How long their pods live.
    pub life: Lifetime,
    /// How long a finished Job stays.
    #[serde(with = "parse::span")]
    pub kept: SimDuration,
}

/// CronJobs and how long their pods live.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Cron {
    /// How many there are.
    pub count: u32,
    /// How long their pods live. Each CronJob has its own median, drawn from this spread.
    pub life: Lifetime,
}

/// A spread of lifetimes: half are shorter than the median, one in twenty is longer than the 95th percentile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lifetime {
    /// The median.
    #[serde(with = "parse::span")]
    pub median: SimDuration,
    /// The 95th percentile.
    #[serde(with = "parse::span")]
    pub p95: SimDuration,
}

/// Why nothing can be generated from a specification.
#[derive(Debug, thiserror::Error)]
pub enum SpecError {
    /// The file is too long for a specification.
    #[error("a specification of {0} bytes is refused: at most {MAX_SPEC_BYTES} are read")]
    TooLong(usize),
    /// The YAML is invalid.
    #[error("line {line}, column {column}: {problem}; correct it there")]
    Text {
        /// The line, from 1.
        line: u64,
        /// The character in the line, from 1.
        column: u64,
        /// What is wrong.
        problem: String,
    },
    /// A field is out of its range.
    #[error("the specification's `{field}` is {value}; use {range}")]
    Range {
        /// Which field.
        field: &'static str,
        /// The value.
        value: String,
        /// The values that are allowed.
        range: &'static str,
    },
    /// No preset of that name.
    #[error("there is no preset `{name}`; choose one of {}", super::presets::names().join(", "))]
    NoPreset {
        /// The name that was given.
        name: String,
    },
}

impl GenerateSpec {
    /// Reads a specification from YAML or JSON and checks it.
    pub fn from_text(text: &str) -> Result<Self, SpecError> {
        if text.len() > MAX_SPEC_BYTES {
            return Err(SpecError::TooLong(text.len()));
        }
        let spec: Self = serde_saphyr::from_str(text).map_err(|error| {
            let (line, column) = error.location().map_or((1, 1), |at| (at.line(), at.column()));
            SpecError::Text { line, column, problem: yaml::in_words(&error) }
        })?;
        spec.check()?;
        Ok(spec)
    }

    /// Are all fields in their ranges?
    pub fn check(&self) -> Result<(), SpecError> {
        let (services, batch, cron) = (&self.services, &self.batch, &self.cron);
        let count = |field, value: u32, most: u32, range| within(field, f64::from(value), 0.0, f64::from(most), range);
        within("namespaces", f64::from(self.namespaces), 1.0, 10_000.0, "1 to 10000")?;
        count("peakHour", self.peak_hour.into(), 23, "0 to 23")?;
        count("services.count", services.count, 200_000, "at most 200000")?;
        count("cron.count", cron.count, 100_000, "at most 100000")?;
        count("batch.jobsPerBurst", batch.jobs_per_burst, 100_000, "at most 100000")?;
        if let Some(platform) = &self.platform {
            count("platform.stateful", platform.stateful, 100_000, "at most 100000")?;
            count("platform.daemons", platform.daemons, MAX_DAEMONS, "at most 30")?;
            count("platform.machines", platform.machines, 20_000, "at most 20000")?;
            within("platform.budgets", platform.budgets, 0.0, 1.0, "a share from 0 to 1")?;
        }
        within("services.autoscaled", services.autoscaled, 0.0, 1.0, "a share from 0 to 1")?;
        within("services.rolloutsPerDay", services.rollouts_per_day, 0.0, 10_000.0, "0 to 10000")?;
        within("services.replacedPerDay", services.replaced_per_day, 0.0, 1e6, "0 to 1000000")?;
        within("batch.jobsPerHour", batch.jobs_per_hour, 0.0, 1e6, "0 to 1000000")?;
        within("batch.burstsPerDay", batch.bursts_per_day, 0.0, 100_000.0, "0 to 100000")?;
        let second = SimDuration::from_secs(1);
        span("duration", self.duration, second, MAX_DURATION, "1s to 400d")?;
        span("services.scaleEvery", services.scale_every, second, MAX_DURATION, "1s to 400d")?;
        span("batch.kept", batch.kept, SimDuration::ZERO, MAX_DURATION, "0s to 400d")?;
        for (field, life) in [("batch.life", batch.life), ("cron.life", cron.life)] {
            span(field, life.median, second, MAX_DURATION, "a median from 1s to 400d")?;
            span(field, life.p95, life.median, MAX_DURATION, "a p95 from the median to 400d")?;
        }
        self.check_at_once()?;
        self.check_cron_lives()
    }

    fn check_cron_lives(&self) -> Result<(), SpecError> {
        let days = self.duration.as_secs_f64() / 86_400.0;
        let lives = match self.platform {
            Some(_) => f64::from(self.cron.count) * days * CRON_STARTS_PER_DAY,
            None => 0.0,
        };
        let range = "fewer CronJobs or a shorter trace: with a `platform` at most 10000000 pods of CronJobs are kept";
        within("cron", lives, 0.0, MAX_CRON_LIVES, range)
    }

    /// Jobs stay in memory from their creation to their deletion.
    fn check_at_once(&self) -> Result<(), SpecError> {
        let batch = &self.batch;
        let per_hour = batch.jobs_per_hour + batch.bursts_per_day * f64::from(batch.jobs_per_burst) / 24.0;
        let stay = (batch.kept + batch.life.p95).as_secs_f64().min(self.duration.as_secs_f64());
        let range = "fewer Jobs, shorter lives or a shorter `kept`: at most 2000000 Jobs may be there at once";
        within("batch", per_hour * stay / 3_600.0, 0.0, MAX_AT_ONCE, range)
    }
}

fn within(field: &'static str, value: f64, low: f64, high: f64, range: &'static str) -> Result<(), SpecError> {
    match (low..=high).contains(&value) {
        true => Ok(()),
        false => Err(SpecError::Range { field, value: value.to_string(), range }),
    }
}

fn span(
    field: &'static str,
    value: SimDuration,
    low: SimDuration,
    high: SimDuration,
    range: &'static str,
) -> Result<(), SpecError> {
    match (low..=high).contains(&value) {
        true => Ok(()),
        false => Err(SpecError::Range { field, value: value.to_string(), range }),
    }
}

impl Default for GenerateSpec {
    fn default() -> Self {
        Self {
            seed: 1,
            // A Monday, so that a trace of a week is a week.
            start: SimTime::from_secs(1_767_571_200),
            duration: SimDuration::from_mins(60),
            events: None,
            whole_seconds: false,
            namespaces: 4,
            peak_hour: 14,
            services: Services::default(),
            batch: Batch::default(),
            cron: Cron::default(),
            platform: None,
        }
    }
}

impl Default for Services {
    fn default() -> Self {
        Self {
            count: 20,
            autoscaled: 0.6,
            scale_every: SimDuration::from_mins(5),
            rollouts_per_day: 1.0,
            replaced_per_day: 0.0,
            companions: true,
        }
    }
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            jobs_per_hour: 30.0,
            bursts_per_day: 2.0,
            jobs_per_burst: 20,
            life: Lifetime { median: SimDuration::from_mins(4), p95: SimDuration::from_mins(45) },
            kept: SimDuration::from_mins(10),
        }
    }
}

impl Default for Cron {
    fn default() -> Self {
        let life = Lifetime { median: SimDuration::from_secs(50), p95: SimDuration::from_mins(15) };
        Self { count: 5, life }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_leaves_out_has_its_default() {
        let spec = GenerateSpec::from_text("duration: 2h\nservices: {count: 3, scaleEvery: 90s}\n").unwrap();
        assert_eq!(spec.duration, SimDuration::from_mins(120));
        assert_eq!((spec.services.count, spec.services.autoscaled), (3, Services::default().autoscaled));
        assert_eq!(spec.batch, Batch::default());
    }

    #[test]
    fn a_specification_reads_back_as_it_is_written() {
        let mut spec = GenerateSpec::default();
        spec.batch.kept = SimDuration::from_micros(1_234_567);
        let text = serde_json::to_string(&spec).unwrap();
        assert_eq!(GenerateSpec::from_text(&text).unwrap(), spec);
    }

    #[test]
    fn wrong_fields_are_refused_by_name() {
        let refuse = |text: &str| GenerateSpec::from_text(text).unwrap_err().to_string();
        assert!(refuse("service: {}").contains("line 1, column 1: there is no field `service`, only seed, "));
        let words = "line 2, column 10: a whole number, not below 0, is expected here; correct it there";
        assert_eq!(refuse("services:\n  count: many\n"), words);
        assert!(refuse("services: [1]").contains("a mapping (`key: value`) is expected here"));
        assert!(refuse("duration: soon").contains("soon"));
        assert!(refuse("services: {autoscaled: 1.5}").contains("services.autoscaled"));
        assert!(refuse("services: {autoscaled: .nan}").contains("services.autoscaled"));
        assert!(refuse("duration: 0s").contains("duration"));
        assert!(refuse("namespaces: 0").contains("namespaces"));
        assert!(
            refuse("batch: {jobsPerHour: 1000000, kept: 10d, life: {median: 1s, p95: 2s}}\nduration: 20d")
                .contains("at once")
        );
        assert!(refuse(&" ".repeat(MAX_SPEC_BYTES + 1)).contains("bytes"));
    }
}

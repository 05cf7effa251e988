//! Predefined workloads, for demonstrations and benchmarks.

use sk_core::SimDuration;

use super::spec::{Batch, Cron, GenerateSpec, Platform, Services, SpecError};

/// A workload that has a name.
pub struct Preset {
    /// Its name on the command line.
    pub name: &'static str,
    /// A description of one line.
    pub what: &'static str,
    make: fn() -> GenerateSpec,
}

/// All of them.
pub const ALL: [Preset; 6] = [
    Preset { name: "small", what: "five minutes of a small cluster, for a demonstration", make: small },
    Preset { name: "day", what: "a day of a middling cluster of 150 machines", make: day },
    Preset { name: "week", what: "a week of the same cluster", make: week },
    Preset { name: "large", what: "a day of a large cluster of 2,000 machines", make: large },
    Preset { name: "bench-100k", what: "100,000 events over 2,000 Deployments", make: bench_100k },
    Preset { name: "million", what: "a week of a large cluster, more than a million events", make: million },
];

impl Preset {
    /// What it generates.
    pub fn spec(&self) -> GenerateSpec {
        (self.make)()
    }
}

impl GenerateSpec {
    /// The preset of that name.
    pub fn preset(name: &str) -> Result<Self, SpecError> {
        let found = ALL.iter().find(|preset| preset.name == name);
        found.map(Preset::spec).ok_or_else(|| SpecError::NoPreset { name: name.chars().take(100).collect() })
    }
}

/// Their names.
pub(super) fn names() -> Vec<&'static str> {
    ALL.iter().map(|preset| preset.name).collect()
}

fn small() -> GenerateSpec {
    GenerateSpec {
        // In the morning, when load rises.
        start: GenerateSpec::default().start + SimDuration::from_mins(9 * 60),
        duration: SimDuration::from_mins(5),
        namespaces: 3,
        services: Services {
            count: 12,
            autoscaled: 0.8,
            scale_every: SimDuration::from_secs(15),
            rollouts_per_day: 240.0,
            ..Services::default()
        },
        batch: Batch {
            jobs_per_hour: 600.0,
            bursts_per_day: 400.0,
            jobs_per_burst: 6,
            life: lifetime(20, 120),
            kept: SimDuration::from_secs(30),
        },
        cron: Cron { count: 3, life: lifetime(10, 40) },
        ..GenerateSpec::default()
    }
}

fn day() -> GenerateSpec {
    GenerateSpec {
        duration: SimDuration::from_mins(24 * 60),
        namespaces: 25,
        services: Services { count: 300, replaced_per_day: 6.0, ..Services::default() },
        batch: Batch { jobs_per_hour: 240.0, bursts_per_day: 8.0, jobs_per_burst: 60, ..Batch::default() },
        cron: Cron { count: 60, ..Cron::default() },
        platform: Some(Platform { stateful: 80, daemons: 8, machines: 150, budgets: 0.5 }),
        ..GenerateSpec::default()
    }
}

fn week() -> GenerateSpec {
    GenerateSpec { duration: SimDuration::from_mins(7 * 24 * 60), ..day() }
}

fn large() -> GenerateSpec {
    GenerateSpec {
        namespaces: 150,
        services: Services { count: 3_000, replaced_per_day: 40.0, ..Services::default() },
        batch: Batch { jobs_per_hour: 2_400.0, bursts_per_day: 24.0, jobs_per_burst: 300, ..Batch::default() },
        cron: Cron { count: 400, ..Cron::default() },
        platform: Some(Platform { stateful: 800, daemons: 8, machines: 2_000, budgets: 0.5 }),
        ..day()
    }
}

/// Deployments and nothing else, in whole seconds, so that v2 and native files hold the same and can be compared.
fn bench_100k() -> GenerateSpec {
    GenerateSpec {
        duration: SimDuration::from_mins(7 * 24 * 60),
        events: Some(100_000),
        whole_seconds: true,
        namespaces: 60,
        services: Services {
            count: 2_000,
            autoscaled: 0.8,
            rollouts_per_day: 4.0,
            companions: false,
            ..Services::default()
        },
        batch: Batch { jobs_per_hour: 0.0, bursts_per_day: 0.0, ..Batch::default() },
        cron: Cron { count: 0, ..Cron::default() },
        ..GenerateSpec::default()
    }
}

fn million() -> GenerateSpec {
    GenerateSpec {
        duration: SimDuration::from_mins(7 * 24 * 60),
        namespaces: 150,
        services: Services { count: 3_000, replaced_per_day: 40.0, ..Services::default() },
        batch: Batch { jobs_per_hour: 4_000.0, bursts_per_day: 24.0, jobs_per_burst: 300, ..Batch::default() },
        cron: Cron { count: 400, ..Cron::default() },
        ..GenerateSpec::default()
    }
}

fn lifetime(median_s: i64, p95_s: i64) -> super::spec::Lifetime {
    super::spec::Lifetime { median: SimDuration::from_secs(median_s), p95: SimDuration::from_secs(p95_s) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_a_valid_specification() {
        for preset in &ALL {
            preset.spec().check().unwrap_or_else(|error| panic!("{}: {error}", preset.name));
        }
        assert!(GenerateSpec::preset("huge").unwrap_err().to_string().contains("bench-100k"));
    }
}

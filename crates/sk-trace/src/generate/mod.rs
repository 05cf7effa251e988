//! Believable workloads from a seed: services that follow the day and are rolled out, Jobs in floods and bursts,
//! CronJobs, each with its pods' lives.
//!
//! Start with [`generate`], or with [`Generator`] for a stream. What each workload is depends on seed and number alone
//! and is drawn anew whenever it is needed, so memory holds a few numbers for what exists at one time and nothing of
//! what has been. The same specification gives the same bytes on every machine. It knows nothing of scheduling: how
//! long pods wait is a replay's business.

mod batch;
mod pods;
mod presets;
mod random;
mod service;
mod spec;
mod stream;

use std::io::Write;

use sk_store::trace::{Format, Writer};

use crate::{EditError, Written};

pub use presets::{ALL as PRESETS, Preset};
pub use spec::{Batch, Cron, GenerateSpec, Lifetime, Services, SpecError};
pub use stream::{Generator, Step};

/// What was generated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Generated {
    /// Objects that were applied or deleted.
    pub events: u64,
    /// Pods whose life is recorded.
    pub lives: u64,
}

/// Generates a trace into `out`.
pub fn generate<W: Write>(spec: &GenerateSpec, format: Format, out: W) -> Result<Written<W, Generated>, EditError> {
    let mut generator = Generator::new(spec)?;
    let mut writer = Writer::new(format, out, &generator.header())?;
    for step in &mut generator {
        match step {
            Step::Record(record) => writer.record(&record)?,
            Step::Row(row) => writer.row(&row)?,
        }
    }
    let (out, losses) = writer.finish()?;
    Ok(Written { out, losses, summary: generator.generated() })
}

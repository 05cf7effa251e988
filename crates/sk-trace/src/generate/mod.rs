//! Generates realistic workloads from a seed: services that follow the time of day and are rolled out, Jobs in bursts,
//! CronJobs, and the lifecycles of their pods; with a `platform` also StatefulSets, DaemonSets, disruption budgets,
//! priorities and nodes.
//!
//! Start with [`generate`], or with [`Generator`] for a stream. Each workload depends only on the seed and its number, and is
//! generated when it is needed. So memory holds a few hundred bytes for each workload that exists at the moment, and nothing
//! of the past. If there are nodes, the trace also contains an observation of every pod ([`reality`]). Frequent objects are
//! made by filling stencils, and one thread generates while others write and compress. The same specification gives the same
//! bytes on every machine.

mod batch;
mod platform;
mod pods;
mod presets;
mod random;
mod reality;
mod service;
mod spec;
mod stream;

use std::io::Write;
use std::panic::resume_unwind;
use std::sync::mpsc::{SyncSender, sync_channel};

use sk_store::trace::{Format, Writer};

use crate::{EditError, TraceOutput};

pub use presets::{ALL as PRESETS, Preset};
pub use spec::{Batch, Cron, GenerateSpec, Lifetime, Platform, Services, SpecError};
use stream::Made;
pub use stream::{Generator, Step};

/// What was generated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Generated {
    /// Objects that were applied or deleted.
    pub events: u64,
    /// Pods whose life is recorded.
    pub lives: u64,
    /// Pods with an observation.
    pub observations: u64,
}

/// How many steps go from the thread that generates to the one that compresses and writes at once, and how many such
/// batches may wait: 8 × 256 × about 2.5 KB are 5 MB.
const BATCH: usize = 256;
const MAX_WAITING: usize = 8;

/// Generates a trace into `out`.
pub fn generate<W: Write>(spec: &GenerateSpec, format: Format, out: W) -> Result<TraceOutput<W, Generated>, EditError> {
    let generator = Generator::new(spec)?;
    let mut writer = Writer::new(format, out, &generator.header())?;
    let summary = std::thread::scope(|scope| {
        let (sender, batches) = sync_channel(MAX_WAITING);
        let generating = scope.spawn(move || make(generator, &sender));
        for made in batches.into_iter().flatten() {
            write(&mut writer, made)?;
        }
        // It ended early only if it panicked, and then so does this.
        Ok::<_, EditError>(generating.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })?;
    let (out, losses) = writer.finish()?;
    Ok(TraceOutput { out, losses, summary })
}

/// Generates until the end, or until the receiver is gone.
fn make(mut generator: Generator, sender: &SyncSender<Vec<Made>>) -> Generated {
    loop {
        let batch: Vec<Made> = std::iter::from_fn(|| generator.next_made()).take(BATCH).collect();
        if batch.is_empty() || sender.send(batch).is_err() {
            return generator.generated();
        }
    }
}

fn write<W: Write>(writer: &mut Writer<W>, made: Made) -> Result<(), EditError> {
    match made {
        Made::Step(Step::Record(record)) => writer.record(&record)?,
        Made::Step(Step::Row(row)) => writer.row(&row)?,
        Made::Object { at, seq, object } => writer.encoded(at, seq, &object)?,
    }
    Ok(())
}

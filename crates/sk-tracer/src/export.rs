//! Exports a window of the log as a trace: for the HTTP server, for `skctl record` and for tests.
//!
//! First every watch catches up with the API server (see [`crate::watch::caught_up`]), and the store makes its entries
//! visible to readers. Only then does the export read the clock: an object that was applied before an export "until
//! now" was requested is in the trace. The export also waits a while for pending lookups of owners, because
//! objects of an exported owner are left out. The trace is written into an unnamed temporary file in the data folder:
//! memory stays flat, an error produces an error response and not a truncated trace, and a crash leaves nothing behind.

use std::fs::File;
use std::io::{self, BufWriter, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sk_core::{Gvk, SimDuration, SimTime};
use sk_store::disk_space::{Floor, NoRoom};
use sk_store::log::{self, Query, Reader};
use sk_store::trace::{Format, TracerConfig};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::access::Access;
use crate::clock;
use crate::health::Health;
use crate::metrics::Metrics;
use crate::store::{Flushed, Message, StoreError};
use crate::watch::caught_up;

/// Exports at a time. Each reads the whole window twice and needs disk space for its result; others are refused.
pub(crate) const MAX_EXPORTS: usize = 2;

/// How long an export waits for owners that are being asked for. Such a request takes milliseconds; one that fails is not
/// waited for.
const OWNERS_LIMIT: Duration = Duration::from_secs(5);
/// How often the number of pending lookups is read.
const OWNERS_PAUSE: Duration = Duration::from_millis(50);
/// The shortest time there is.
const TICK: SimDuration = SimDuration::from_micros(1);

const SPOOL_BUFFER_BYTES: usize = 256 << 10;

/// Why an export failed.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// Too many exports are running.
    #[error("{MAX_EXPORTS} exports are already running; try again in a moment")]
    Busy,
    /// The store has stopped or cannot write.
    #[error("flush the log: {0}")]
    Flush(#[from] StoreError),
    /// The file for the result cannot be made or written.
    #[error("write the trace to a temporary file: {0}; the data folder needs space for it")]
    Spool(#[from] io::Error),
    /// The volume must keep space for the recording.
    #[error("cannot export: {0}")]
    NoRoom(#[from] NoRoom),
    /// The log cannot be read, or the window is not in it.
    #[error(transparent)]
    Log(#[from] log::ExportError),
    /// The export itself failed.
    #[error("the export ended unexpectedly: {0}")]
    Ended(String),
}

/// Makes traces.
#[derive(Debug)]
pub(crate) struct Exporter {
    pub(crate) access: Access,
    pub(crate) health: Arc<Health>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) store: mpsc::Sender<Message>,
    pub(crate) reader: Reader,
    pub(crate) folder: PathBuf,
    /// What an export leaves free of the volume that the folder is on.
    pub(crate) floor: Floor,
    pub(crate) room: Arc<Semaphore>,
    /// What is recorded, which every trace carries.
    pub(crate) config: TracerConfig,
}

/// A finished trace.
#[derive(Debug)]
pub struct Spooled {
    /// Its bytes, from the first.
    pub file: File,
    /// How many.
    pub bytes: u64,
    /// What was written.
    pub exported: log::Exported,
    /// Kinds whose watch had not caught up in time.
    pub behind: Vec<Gvk>,
    /// Its slot among the running exports.
    _permit: OwnedSemaphorePermit,
}

impl Exporter {
    /// Makes a trace. An end in the future means now.
    pub(crate) async fn export(&self, query: Query, format: Format) -> Result<Spooled, ExportError> {
        self.spool(format, |now| Query { end: query.end.min(now), ..query }).await
    }

    /// The cluster as it is now, as a trace of one moment.
    pub(crate) async fn snapshot(&self, format: Format) -> Result<Spooled, ExportError> {
        self.spool(format, |now| Query::window(now, now + TICK)).await
    }

    /// Brings everything up to date and writes what is asked for; `now` is the first moment after all that has been seen.
    async fn spool(&self, format: Format, ask: impl FnOnce(SimTime) -> Query) -> Result<Spooled, ExportError> {
        let permit = Arc::clone(&self.room).try_acquire_owned().map_err(|_| ExportError::Busy)?;
        let behind = caught_up::wait(&self.access, self.health.watchers()).await;
        if !behind.is_empty() {
            self.metrics.export_behind.inc();
            let kinds = behind.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            tracing::warn!(kinds, "exporting although these watches may not have caught up");
        }
        self.floor.check()?;
        self.until_owners_are_known().await?;
        let now = self.now() + TICK;
        let (reader, folder, floor) = (self.reader.clone(), self.folder.clone(), self.floor.clone());
        // A watch that is broken but level with the API server misses nothing yet.
        let open = self.health.watchers().iter().filter(|status| behind.contains(status.kind()));
        let open_gaps = open.filter_map(|status| status.open_gap(now)).collect();
        let query = Query { config: self.config.clone(), open_gaps, ..ask(now) };
        let written = tokio::task::spawn_blocking(move || spool(&reader, &query, format, &folder, &floor));
        let (file, bytes, exported) = written.await.map_err(|error| ExportError::Ended(error.to_string()))??;
        Ok(Spooled { file, bytes, exported, behind, _permit: permit })
    }

    /// Now, or the last moment of the log, if the machine's clock has been put back since.
    pub(crate) fn now(&self) -> SimTime {
        self.reader.kept().map_or_else(clock::wall, |(_, newest)| clock::wall().max(newest))
    }

    /// Flushes until the API server has been asked about every owner, or for [`OWNERS_LIMIT`].
    async fn until_owners_are_known(&self) -> Result<(), ExportError> {
        let began = Instant::now();
        loop {
            let open_lookups = self.flush().await?;
            if open_lookups == 0 {
                return Ok(());
            }
            if began.elapsed() >= OWNERS_LIMIT {
                tracing::warn!(open_lookups, "exporting although these owner lookups are still pending");
                return Ok(());
            }
            tokio::time::sleep(OWNERS_PAUSE).await;
        }
    }

    /// Waits until everything that was sent to the store before can be read. How many owners are being asked about.
    pub(crate) async fn flush(&self) -> Result<usize, ExportError> {
        let (reply, flushed) = oneshot::channel();
        self.store.send(Message::Flush(reply)).await.map_err(|_| StoreError::Ended)?;
        let Flushed { written, open_lookups } = flushed.await.map_err(|_| StoreError::Ended)?;
        match written {
            // What was recorded before can still be had, if the volume has room for the trace: one that is full was
            // refused by its floor, but a log may fail for other reasons (a quota, a limit on files, a broken disk).
            Err(StoreError::Log(error)) => tracing::warn!(error, "exporting what could be recorded"),
            written => written?,
        }
        Ok(open_lookups)
    }
}

fn spool(
    reader: &Reader,
    query: &Query,
    format: Format,
    folder: &Path,
    floor: &Floor,
) -> Result<(File, u64, log::Exported), ExportError> {
    let file = floor.guard(tempfile::tempfile_in(folder)?);
    let mut out = BufWriter::with_capacity(SPOOL_BUFFER_BYTES, file);
    let exported = reader.export(query, format, &mut out)?;
    let mut file = out.into_inner().map_err(io::IntoInnerError::into_error)?.into_inner();
    let bytes = file.stream_position()?;
    file.rewind()?;
    Ok((file, bytes, exported))
}

//! Writes the current state of the cluster as a trace: a tracer that lists everything once and stops.

use std::time::Duration;

use sk_api::tracer::Config;
use sk_core::Gvk;
use sk_store::trace::Format;

use crate::access::Access;
use crate::options::Options;
use crate::tracer::{StartError, Tracer};
use crate::{ExportError, Readiness, Spooled};

/// How long the first lists may take: 150,000 pods are 300 pages, of which an API server answers a few each second.
const LIMIT: Duration = Duration::from_secs(300);

/// Why there is no snapshot.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The tracer does not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Not everything could be listed in time.
    #[error("some kinds could not be listed within {limit} s:\n{0}", limit = LIMIT.as_secs())]
    Unready(Readiness),
    /// The trace cannot be made.
    #[error(transparent)]
    Export(#[from] ExportError),
}

/// A snapshot.
#[derive(Debug)]
pub struct Snapshot {
    /// The trace.
    pub trace: Spooled,
    /// Kinds of the configuration that the API server does not serve.
    pub not_served: Vec<Gvk>,
}

/// Lists everything that the configuration names and writes it as a trace of one moment.
pub async fn snapshot(access: impl Into<Access>, config: Config, format: Format) -> Result<Snapshot, SnapshotError> {
    let tracer = Tracer::start(access, config, Options::default()).await?;
    if tokio::time::timeout(LIMIT, tracer.ready()).await.is_err() {
        return Err(SnapshotError::Unready(tracer.readiness()));
    }
    let trace = tracer.snapshot(format).await?;
    let not_served = tracer.readiness().not_served;
    // The trace is complete; the temporary log does not matter.
    let _ = tracer.shutdown().await;
    Ok(Snapshot { trace, not_served })
}

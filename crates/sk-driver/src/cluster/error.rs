//! The reasons why a run on a cluster fails, and the `reason` of each in the Simulation's status.

use std::path::PathBuf;
use std::time::Duration;

use sk_store::trace::TraceError;

use super::hooks::HookError;
use super::judge::ReportError;
use super::lease::LeaseError;
use super::request::Refusal;
use super::root::RootError;
use super::tls::TlsError;
use super::upload::UploadError;

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The trace could not be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The root could not be made or removed.
    #[error(transparent)]
    Root(#[from] RootError),
    /// The driver does not know who it is.
    #[error("cannot get the driver's own user name (SelfSubjectReview): {0}")]
    RoleBinder(#[source] Refusal),
    /// The webhook cannot be served.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The webhook's configuration was refused.
    #[error("cannot configure the admission webhook: {0}")]
    Webhook(#[source] Refusal),
    /// The API server does not reach the webhook.
    #[error(
        "the API server did not reach the driver's webhook within {waited:?}: {words}; no pod of the run could be made. Is \
         something between the API server and the driver's port (a NetworkPolicy, a firewall)?"
    )]
    WebhookUnreachable {
        /// For how long it was tried.
        waited: Duration,
        /// What was heard last.
        words: String,
    },
    /// The webhook ended before the run did: a bug.
    #[error("the driver's webhook server stopped during the run; the record is partial. Please report this")]
    WebhookDied,
    /// Another driver runs.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// The webhook's address is invalid.
    #[error("`{0}` is not an address of a webhook: write it like https://host:port")]
    WebhookUrl(String),
    /// A hook failed.
    #[error(transparent)]
    Hook(#[from] HookError),
    /// The record could not be written.
    #[error(transparent)]
    Record(#[from] sk_record::Error),
    /// The record could not be made whole.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// The record could not be delivered.
    #[error("{error}; it is kept in {}", kept.display())]
    Deliver {
        /// Why not.
        error: Box<UploadError>,
        /// Where it is instead.
        kept: PathBuf,
    },
    /// The run is over and its record delivered, but something of it is still in the cluster.
    #[error("the record is at {record}, but something of the run is still in the cluster: {error}")]
    LeftBehind {
        /// Where the record is.
        record: String,
        /// What does not go.
        error: Box<RootError>,
    },
    /// No folder for it.
    #[error("cannot make a temporary folder: {0}; check that there is disk space (TMPDIR)")]
    Scratch(#[source] std::io::Error),
    /// There are hooks, and they may not run.
    #[error(
        "the Simulation has preRun or postRun hooks, and this installation does not allow them; \
         remove them, or install with --allow-hooks"
    )]
    HooksNotAllowed,
    /// The recorder panicked: a bug.
    #[error("the recorder panicked; please report this")]
    Recorder,
    /// The Simulation has no name.
    #[error("the Simulation has no metadata.name")]
    NoName,
}

impl RunError {
    /// One word for it, which the Simulation's status shows as the reason.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Trace(_) => "TraceUnreadable",
            Self::Root(RootError::Lingers { .. }) | Self::LeftBehind { .. } => "CleanupFailed",
            Self::Root(_) => "RootFailed",
            Self::Tls(_) | Self::Webhook(_) | Self::WebhookUrl(_) | Self::WebhookDied => "WebhookFailed",
            Self::WebhookUnreachable { .. } => "WebhookUnreachable",
            Self::Lease(LeaseError::Held { .. } | LeaseError::Turn { .. }) => "LeaseHeld",
            Self::Lease(_) => "LeaseFailed",
            Self::Hook(_) => "HookFailed",
            Self::RoleBinder(_) => "RightsUnknown",
            Self::HooksNotAllowed => "HooksNotAllowed",
            Self::Record(_) | Self::Report(_) | Self::Scratch(_) | Self::Recorder => "RecordFailed",
            Self::Deliver { .. } => "RecordNotDelivered",
            Self::NoName => "InvalidSimulation",
        }
    }
}

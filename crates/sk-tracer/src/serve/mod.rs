//! The tracer's HTTP interface: `POST /export`, probes and metrics.
//!
//! | path | who | answers |
//! |---|---|---|
//! | `POST /export` | whoever may `create exports.simkube.io` (see [`crate::auth`]) | a trace, or nothing after writing it to a store |
//! | `GET /healthz` | everybody | 200 while the process lives and its store task does |
//! | `GET /readyz` | everybody | 503 until all first lists are done and while nothing can be recorded, with the reason |
//! | `GET /metrics` | everybody | Prometheus' text format: counts by kind, no names of objects |
//!
//! [`sk_serve`] bounds the connections: idle connections are closed when new ones arrive, so probes are always
//! answered.
//!
//! Every error is `{"error": "…"}` with a status code. A trace is complete on disk before its first byte is sent, so a
//! response with status 200 is complete.

pub(crate) mod bind;
mod destination;
mod error_response;
mod export;
mod export_request;
mod probes;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::{get, post};
use sk_serve::Limits;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::auth::Gate;
use crate::export::Exporter;
use crate::health::Health;
use crate::metrics::Metrics;
use crate::tls::Identity;

pub(crate) use error_response::ErrorResponse;
pub use export_request::ExportRequestError;

/// Exports are few (two are made at a time, and some wait to be told so), probes and scrapes short: 64 of 256 may be at work.
const LIMITS: Limits = Limits::new(256, 64);
/// How long exports under way may take to finish when the tracer ends.
const GRACE: Duration = Duration::from_secs(20);

/// What the handlers need.
pub(crate) struct Served {
    pub(crate) exporter: Arc<Exporter>,
    pub(crate) health: Arc<Health>,
    pub(crate) metrics: Arc<Metrics>,
    /// `None`: no authentication, because only this machine can connect.
    pub(crate) gate: Option<Gate>,
    /// Where the tracer itself may write.
    pub(crate) export_to: Vec<String>,
}

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Server {
    /// Serves on a listener, with TLS if there is a certificate.
    pub(crate) fn start(listener: TcpListener, identity: Option<Identity>, served: Served) -> std::io::Result<Self> {
        let address = listener.local_addr()?;
        let router = router(Arc::new(served));
        let (stop, mut stopped) = watch::channel(false);
        let ended = async move {
            let _ = stopped.wait_for(|stop| *stop).await;
        };
        let acceptor = identity.map(|identity| TlsAcceptor::from(identity.config));
        let task = tokio::spawn(sk_serve::serve(listener, move || acceptor.clone(), router, LIMITS, ended));
        Ok(Self { address, stop, task })
    }

    /// Takes no more requests, and lets those under way finish for a while.
    pub(crate) async fn stop(mut self) {
        self.stop.send_replace(true);
        if tokio::time::timeout(GRACE, &mut self.task).await.is_err() {
            tracing::warn!("an export did not finish in time and was cut off");
        }
    }
}

impl Drop for Server {
    /// Stops accepting connections.
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn router(served: Arc<Served>) -> Router {
    Router::new()
        .route("/export", post(export::export))
        .route("/healthz", get(probes::healthz))
        .route("/readyz", get(probes::readyz))
        .route("/metrics", get(probes::metrics))
        .fallback(error_response::not_found)
        .method_not_allowed_fallback(error_response::wrong_method)
        .with_state(served)
}

//! A running tracer: start, wait, stop.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use sk_api::tracer::Config;
use sk_core::Gvk;
use sk_store::log::{LogError, Query, Reader};
use sk_store::trace::Format;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::access::Access;
use crate::cluster_identity::ClusterIdentity;
use crate::error_reporter;
use crate::export::{ExportError, Exporter, Spooled};
use crate::folder::{DataFolder, FolderError};
use crate::health::{Health, Readiness};
use crate::lookup;
use crate::metrics::Metrics;
use crate::options::Options;
use crate::parts::Parts;
use crate::pod_reread;
use crate::serve::{Server, bind};
use crate::store::{Message, QUEUE_BATCHES, StoreError};
use crate::tls::TlsError;

/// How often state that has no notification is polled.
const POLL: Duration = Duration::from_millis(50);

/// Between two attempts to remember the configuration.
const REMEMBER_PAUSE: Duration = Duration::from_secs(10);

/// Why a tracer does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data folder.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The log in it.
    #[error("open the log: {0}")]
    Log(#[from] LogError),
    /// The certificate.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// No authentication on an address that others can reach.
    #[error(
        "--insecure believes everybody, so it is only for a loopback address, not for {0}; \
         leave --insecure out, or bind to 127.0.0.1"
    )]
    Insecure(SocketAddr),
    /// The address cannot be served on.
    #[error("serve on {address}: {source}; is another tracer running there?")]
    Bind {
        /// Which.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// A thread cannot be started.
    #[error("start the store's thread: {0}")]
    Thread(#[source] std::io::Error),
}

/// A running tracer. Dropped without [`Tracer::shutdown`], it loses what is not synced yet, as in a crash.
pub struct Tracer {
    // Watchers first: they are the ones that send.
    tasks: JoinSet<()>,
    server: Option<Server>,
    exporter: Arc<Exporter>,
    health: Arc<Health>,
    metrics: Arc<Metrics>,
    store: mpsc::Sender<Message>,
    thread: Option<JoinHandle<Result<(), StoreError>>>,
    // Last: a temporary folder goes when nobody writes to it any more.
    _folder: Arc<DataFolder>,
}

/// What a tracer has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// Events that watches brought.
    pub events: u64,
    /// Changes that the log has taken.
    pub facts: u64,
    /// Objects, links, pods and nodes that there are.
    pub live: u64,
    /// Gaps.
    pub gaps: u64,
    /// Owner lookups.
    pub lookups: u64,
    /// Seconds between receiving and storing.
    pub lag: f64,
    /// Batches that wait to be stored.
    pub queue: u64,
    /// Bytes of the log on disk.
    pub log_bytes: u64,
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracer")
            .field("address", &self.address())
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}

impl Tracer {
    /// Opens the log, begins to watch, and serves. It is recording when this returns, though first lists may be under way.
    pub async fn start(access: impl Into<Access>, config: Config, options: Options) -> Result<Self, StartError> {
        let access = access.into();
        let listener = match &options.serving {
            Some(serving) => Some(bind::listen(serving).await?),
            None => None,
        };
        let folder = Arc::new(DataFolder::open(options.data_dir.as_deref())?);
        let mut identity = ClusterIdentity::ask(&access, &folder).await?;
        let parts = Parts::open(&folder, access, &config, options.gone_after)?;
        let (store, inbox) = mpsc::channel(QUEUE_BATCHES);
        let (lookups, pending) = mpsc::channel(lookup::QUEUE_LOOKUPS);
        let (rereads, rounds) = mpsc::channel(1);
        let exporter = Arc::new(parts.exporter(&folder, &config, store.clone()));
        let mut tasks = JoinSet::new();
        tasks.spawn(error_reporter::run(parts.shared.access.clone()));
        identity.settle(&mut tasks, &parts.health);
        for watcher in parts.watchers(&store) {
            let (ending, settled) = (parts.health.watch_for_panics(), identity.settled());
            tasks.spawn(async move {
                let _ending = ending;
                if settled.await {
                    watcher.run().await;
                }
            });
        }
        let (ending, shared, results) = (parts.health.watch_for_panics(), Arc::clone(&parts.shared), store.clone());
        tasks.spawn(async move {
            let _ending = ending;
            lookup::run(shared, pending, results).await;
        });
        let looking = pod_reread::run(Arc::clone(&parts.shared), parts.pods(), rounds, store.clone());
        let ending = parts.health.watch_for_panics();
        tasks.spawn(async move {
            let _ending = ending;
            looking.await;
        });
        tasks.spawn(remember_when_ready(Arc::clone(&folder), config.clone(), Arc::clone(&parts.health)));
        let server = match options.serving.as_ref().zip(listener) {
            Some((serving, listener)) => {
                let identity = bind::identity(serving, &folder)?;
                if let Some((identity, place)) = identity.as_ref().zip(serving.publish.clone()) {
                    tasks.spawn(bind::publish(parts.shared.access.clone(), place, identity.certificate.clone()));
                }
                Some(parts.serve(serving, listener, identity, &config, &exporter)?)
            }
            None => None,
        };
        let (health, metrics) = (Arc::clone(&parts.health), Arc::clone(&parts.shared.metrics));
        let thread = parts.store(lookups, rereads, options.sync_interval).start(inbox).map_err(StartError::Thread)?;
        Ok(Self { tasks, server, exporter, health, metrics, store, thread: Some(thread), _folder: folder })
    }

    /// The server's address, if it serves.
    pub fn address(&self) -> Option<SocketAddr> {
        self.server.as_ref().map(|server| server.address)
    }

    /// What is missing until it is ready.
    pub fn readiness(&self) -> Readiness {
        self.health.report()
    }

    /// Waits until all first lists are done and what comes is kept.
    pub async fn ready(&self) {
        while !self.readiness().is_ready() {
            tokio::time::sleep(POLL).await;
        }
    }

    /// Waits until the store has ended, which it does not do by itself.
    pub async fn failed(&self) {
        while self.health.is_alive() {
            tokio::time::sleep(POLL).await;
        }
    }

    /// What it has done so far.
    pub fn counts(&self) -> Counts {
        let (m, kinds) = (&self.metrics, self.health.watchers().iter().map(|status| status.kind().clone()));
        let count = |value: i64| u64::try_from(value).unwrap_or(0);
        Counts {
            events: m.all_events(kinds),
            facts: m.facts.get(),
            live: count(m.live.get()),
            gaps: m.gaps.get(),
            lookups: ["found", "absent", "failed", "dropped"].map(|result| m.lookups(result)).iter().sum(),
            lag: m.lag.get(),
            queue: count(m.queue.get()),
            log_bytes: count(m.log_bytes.get()),
        }
    }

    /// How often all objects of a kind were listed since the start.
    pub fn lists(&self, kind: &Gvk) -> u64 {
        self.metrics.lists(kind)
    }

    /// Makes a trace of a window, after all watches have caught up with the API server. A window that ends in the future
    /// ends now, with everything in it that the API server had when this was called.
    pub async fn export(&self, query: Query, format: Format) -> Result<Spooled, ExportError> {
        self.exporter.export(query, format).await
    }

    /// Makes a trace of the state now, after all watches have caught up with the API server.
    pub async fn snapshot(&self, format: Format) -> Result<Spooled, ExportError> {
        self.exporter.snapshot(format).await
    }

    /// Waits until everything that watches have brought so far can be read.
    pub async fn flush(&self) -> Result<(), ExportError> {
        self.exporter.flush().await.map(drop)
    }

    /// A reader of the log.
    pub fn reader(&self) -> Reader {
        self.exporter.reader.clone()
    }

    /// Stops watching, lets exports finish, and puts everything on disk.
    pub async fn shutdown(mut self) -> Result<(), StoreError> {
        if let Some(server) = self.server.take() {
            server.stop().await;
        }
        self.tasks.shutdown().await;
        self.store.send(Message::End).await.map_err(|_| StoreError::Ended)?;
        let Some(thread) = self.thread.take() else { return Ok(()) };
        match tokio::task::spawn_blocking(move || thread.join()).await {
            Ok(Ok(ended)) => ended,
            _ => Err(StoreError::Ended),
        }
    }
}

/// Stores the configuration once everything has been listed under it. A tracer that is killed before that lists everything
/// again.
async fn remember_when_ready(folder: Arc<DataFolder>, config: Config, health: Arc<Health>) {
    while !health.report().missing.is_empty() {
        tokio::time::sleep(POLL).await;
    }
    while let Err(error) = folder.remember(&config) {
        tracing::warn!(%error, "the configuration cannot be stored yet");
        tokio::time::sleep(REMEMBER_PAUSE).await;
    }
}

//! A running tracer: its parts put together, and taken apart again.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use kube::api::{Api, Patch, PatchParams};
use sk_api::tracer::Config;
use sk_core::{Gvk, SimTime, SmolStr};
use sk_ingest::{Ledger, Rules};
use sk_store::log::{self, Log, LogError, Query, Reader};
use sk_store::trace::{Format, TracerConfig};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use crate::access::Access;
use crate::auth::Reviewer;
use crate::clock::Clock;
use crate::export::{ExportError, Exporter, MAX_EXPORTS, Spooled};
use crate::folder::{DataFolder, FolderError};
use crate::health::{Health, Readiness};
use crate::install::CERTIFICATE_KEY;
use crate::lookup;
use crate::metrics::Metrics;
use crate::options::{Options, Publication, Security, Serving};
use crate::resume;
use crate::serve::{Served, Server};
use crate::store::{Message, Missed, QUEUE_BATCHES, Store, StoreError};
use crate::tls::{Identity, TlsError};
use crate::watch::status::Status;
use crate::watch::{Position, Shared, Watcher, plan};

/// How often things are looked at that nobody tells of.
const POLL: Duration = Duration::from_millis(50);
/// Between two attempts to publish the certificate.
const PUBLISH_PAUSE: Duration = Duration::from_secs(10);

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
    /// Everybody would be believed, and everybody could ask.
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

/// A tracer at work. Dropped without [`Tracer::shutdown`], it loses what is not synced yet, as in a crash.
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
    _folder: DataFolder,
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
    /// Stretches of time that were not seen.
    pub gaps: u64,
    /// Owners that were asked of the API server.
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
            Some(serving) => Some(bind(serving).await?),
            None => None,
        };
        let folder = DataFolder::open(options.data_dir.as_deref())?;
        let parts = Parts::open(&folder, access, &config)?;
        let (store, inbox) = mpsc::channel(QUEUE_BATCHES);
        let (lookups, questions) = mpsc::channel(lookup::QUEUE_QUESTIONS);
        let exporter = Arc::new(parts.exporter(&folder, &config, store.clone()));
        let mut tasks = JoinSet::new();
        for watcher in parts.watchers(&store) {
            tasks.spawn(watcher.run());
        }
        tasks.spawn(lookup::run(Arc::clone(&parts.shared), questions, store.clone()));
        let server = match options.serving.as_ref().zip(listener) {
            Some((serving, listener)) => {
                let identity = identity(serving, &folder)?;
                if let Some((identity, place)) = identity.as_ref().zip(serving.publish.clone()) {
                    tasks.spawn(publish(parts.shared.access.clone(), place, identity.certificate.clone()));
                }
                Some(parts.serve(serving, listener, identity, &config, &exporter)?)
            }
            None => None,
        };
        let (health, metrics) = (Arc::clone(&parts.health), Arc::clone(&parts.shared.metrics));
        let thread = parts.store(lookups, options.sync_interval).start(inbox).map_err(StartError::Thread)?;
        Ok(Self { tasks, server, exporter, health, metrics, store, thread: Some(thread), _folder: folder })
    }

    /// Where it serves, if it does.
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

    /// Makes a trace of a window, after all watches have caught up.
    pub async fn export(&self, query: Query, format: Format) -> Result<Spooled, ExportError> {
        self.exporter.export(query, format).await
    }

    /// Waits until everything that watches have brought so far can be read.
    pub async fn flush(&self) -> Result<(), ExportError> {
        self.exporter.flush().await
    }

    /// What the log holds, for whoever wants to look at it closely.
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

/// What a tracer is put together from.
struct Parts {
    shared: Arc<Shared>,
    health: Arc<Health>,
    log: Log,
    ledger: Ledger,
    /// Where watches go on.
    positions: BTreeMap<Gvk, SmolStr>,
    /// When the log was written last.
    newest: Option<SimTime>,
    /// Was it written with another configuration?
    changed: bool,
}

impl Parts {
    fn open(folder: &DataFolder, access: Access, config: &Config) -> Result<Self, StartError> {
        let (mut log, recovered) = Log::open(&folder.log(), log_options(config))?;
        for (path, reason) in &recovered.put_aside {
            tracing::warn!(path = %path.display(), reason, "a part of the log cannot be read and was put aside");
        }
        if recovered.cut_bytes > 0 {
            tracing::warn!(
                bytes = recovered.cut_bytes,
                "the log's end was not whole, as after a crash, and was cut off"
            );
        }
        let newest = recovered.newest.map(|(_, at)| at);
        let changed = folder.configuration_changed(config)?;
        if changed {
            tracing::warn!("the log was written with another configuration: everything is listed anew, with a gap");
        }
        let key = folder.key()?;
        let rules = Arc::new(Rules::new(config, key));
        let tasks = plan::tasks(config);
        let mut ledger = Ledger::new(Arc::clone(&rules), tasks.iter().map(|task| task.kind.clone()));
        let clock = Arc::new(newest.map_or_else(Clock::default, Clock::not_before));
        if changed {
            resume::end_untracked(&mut log, &rules, clock.now())?;
        }
        ledger.restore(resume::known(log.state()));
        let positions = log.state().positions().map(|(kind, version)| (kind.clone(), version.clone())).collect();
        let shared = Arc::new(Shared { access, rules, clock, metrics: Arc::new(Metrics::default()) });
        let watchers = tasks.into_iter().map(|task| Arc::new(Status::new(task))).collect();
        Ok(Self { shared, health: Arc::new(Health::new(watchers)), log, ledger, positions, newest, changed })
    }

    fn exporter(&self, folder: &DataFolder, config: &Config, store: mpsc::Sender<Message>) -> Exporter {
        Exporter {
            access: self.shared.access.clone(),
            health: Arc::clone(&self.health),
            metrics: Arc::clone(&self.shared.metrics),
            store,
            reader: self.log.reader(),
            folder: folder.path().to_owned(),
            room: Arc::new(Semaphore::new(MAX_EXPORTS)),
            config: trace_config(config),
        }
    }

    /// One watcher per kind, each where the log says that it was.
    fn watchers(&self, store: &mpsc::Sender<Message>) -> Vec<Watcher> {
        let one = |status: &Arc<Status>| {
            let stored = self.positions.get(status.kind()).cloned().zip(self.newest);
            let position = stored.map(|(version, seen)| Position { version, seen });
            let missed = position
                .as_ref()
                .filter(|_| self.changed)
                .map(|position| Missed { from: position.seen, reason: "the configuration was changed".to_owned() });
            let position = position.filter(|_| !self.changed);
            Watcher::new(Arc::clone(&self.shared), Arc::clone(status), store.clone(), position).having_missed(missed)
        };
        self.health.watchers().iter().map(one).collect()
    }

    fn serve(
        &self,
        serving: &Serving,
        listener: TcpListener,
        identity: Option<Identity>,
        config: &Config,
        exporter: &Arc<Exporter>,
    ) -> Result<Server, StartError> {
        let served = Served {
            exporter: Arc::clone(exporter),
            health: Arc::clone(&self.health),
            metrics: Arc::clone(&self.shared.metrics),
            reviewer: identity.is_some().then(|| Reviewer::new(self.shared.access.clone())),
            export_to: config.export_to.clone(),
        };
        let failed = |source| StartError::Bind { address: serving.address, source };
        let server = Server::start(listener, identity, served).map_err(failed)?;
        tracing::info!(address = %server.address, "serving");
        Ok(server)
    }

    fn store(self, lookups: mpsc::Sender<sk_ingest::Question>, sync_interval: Duration) -> Store {
        let clock = Arc::clone(&self.shared.clock);
        let metrics = Arc::clone(&self.shared.metrics);
        Store { ledger: self.ledger, log: self.log, clock, metrics, health: self.health, lookups, sync_interval }
    }
}

/// Takes the address, unless that would let strangers in.
async fn bind(serving: &Serving) -> Result<TcpListener, StartError> {
    let address = serving.address;
    if serving.security == Security::Insecure && !address.ip().is_loopback() {
        return Err(StartError::Insecure(address));
    }
    TcpListener::bind(address).await.map_err(|source| StartError::Bind { address, source })
}

fn identity(serving: &Serving, folder: &DataFolder) -> Result<Option<Identity>, StartError> {
    let identity = match &serving.security {
        Security::Insecure => {
            tracing::warn!("--insecure: everybody on this machine can export everything");
            return Ok(None);
        }
        Security::OwnCertificate => Identity::kept_in(folder.path(), serving.address)?,
        Security::Certificate(files) => Identity::read(files)?,
    };
    tracing::info!(sha256 = identity.fingerprint, "the certificate's fingerprint");
    Ok(Some(identity))
}

/// Writes the certificate into its ConfigMap, however long that takes; nothing waits for it.
async fn publish(access: Access, place: Publication, certificate: String) {
    let patch = Patch::Merge(serde_json::json!({"data": {CERTIFICATE_KEY: certificate}}));
    loop {
        let api: Api<k8s_openapi::api::core::v1::ConfigMap> = Api::namespaced(access.client(), &place.namespace);
        match api.patch(&place.name, &PatchParams::default(), &patch).await {
            Ok(_) => return,
            Err(error) => {
                let (namespace, name) = (&place.namespace, &place.name);
                tracing::warn!(kind = "v1.ConfigMap", namespace, name, %error, "the certificate cannot be published yet");
                tokio::time::sleep(PUBLISH_PAUSE).await;
            }
        }
    }
}

fn log_options(config: &Config) -> log::Options {
    let bytes = u64::try_from(config.retention.bytes.value()).unwrap_or(u64::MAX);
    log::Options { age: config.retention.age, bytes, ..log::Options::default() }
}

/// The part of the configuration that traces carry, as SimKube knows it.
fn trace_config(config: &Config) -> TracerConfig {
    let written = serde_json::to_value(config).unwrap_or_default();
    let tracked = serde_json::json!({"trackedObjects": written["trackedObjects"]});
    TracerConfig::from_value(tracked).unwrap_or_else(|error| {
        tracing::warn!(%error, "traces carry only the kinds of the configuration");
        TracerConfig::of_kinds(config.tracked_objects.keys())
    })
}

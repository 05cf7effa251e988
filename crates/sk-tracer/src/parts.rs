//! Builds a tracer: opens the log, restores the ledger, resumes the watchers, binds the server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sk_api::tracer::Config;
use sk_core::{Gvk, ObjectKey, SimTime, SmolStr};
use sk_ingest::{Ledger, OwnerLookup, Role, Rules};
use sk_store::disk_space::Floor;
use sk_store::log::{self, Log};
use sk_store::trace::TracerConfig;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};

use crate::access::Access;
use crate::auth::Gate;
use crate::clock::Clock;
use crate::export::{Exporter, MAX_EXPORTS};
use crate::folder::DataFolder;
use crate::health::Health;
use crate::metrics::Metrics;
use crate::options::Serving;
use crate::resume;
use crate::serve::{Served, Server};
use crate::store::{Message, Missed, Position, Store};
use crate::tls::Identity;
use crate::tracer::StartError;
use crate::watch::status::Status;
use crate::watch::{Shared, Watcher, plan};

/// The parts of a tracer.
pub(crate) struct Parts {
    pub(crate) shared: Arc<Shared>,
    pub(crate) health: Arc<Health>,
    log: Log,
    ledger: Ledger,
    /// The positions from which watches resume.
    positions: BTreeMap<Gvk, Position>,
    /// Kinds that cannot resume, and since when they have not been observed.
    lost: BTreeMap<Gvk, SimTime>,
    /// Where the log begins, if it was written before.
    beginning: Option<SimTime>,
}

impl Parts {
    pub(crate) fn open(
        folder: &DataFolder,
        access: Access,
        config: &Config,
        gone_after: Duration,
    ) -> Result<Self, StartError> {
        let (mut log, recovered) = Log::open(&folder.log(), log_options(config))?;
        for (path, reason) in &recovered.put_aside {
            tracing::warn!(path = %path.display(), reason, "cannot read a part of the log; it was moved aside");
        }
        if recovered.cut_bytes > 0 {
            tracing::warn!(
                bytes = recovered.cut_bytes,
                "the end of the log was incomplete, as after a crash, and was cut off"
            );
        }
        let newest = recovered.newest.map(|(_, at)| at);
        let beginning = log.stats().kept_from.filter(|_| newest.is_some());
        let changed = folder.was_written_otherwise(config);
        if changed {
            tracing::warn!("the log was written with another configuration: listing everything again, with a gap");
        }
        let key = folder.key()?;
        let rules = Arc::new(Rules::new(config, key));
        let tasks = plan::tasks(config);
        let mut ledger = Ledger::new(Arc::clone(&rules), tasks.iter().map(|task| task.kind.clone()));
        let clock = Arc::new(newest.map_or_else(Clock::default, Clock::not_before));
        if changed {
            resume::begin_anew(&mut log, &rules, clock.now())?;
        }
        ledger.restore(log.state());
        let position = |version: &SmolStr, seen| Position { version: version.clone(), seen };
        let positions = log.state().positions().map(|(kind, version, seen)| (kind.clone(), position(version, seen)));
        let positions = positions.collect();
        let lost = log.state().lost().map(|(kind, since)| (kind.clone(), since)).collect();
        let shared = Arc::new(Shared { access, rules, clock, metrics: Arc::new(Metrics::default()), gone_after });
        let watchers = tasks.into_iter().map(|task| Arc::new(Status::new(task))).collect();
        Ok(Self { shared, health: Arc::new(Health::new(watchers)), log, ledger, positions, lost, beginning })
    }

    pub(crate) fn exporter(&self, folder: &DataFolder, config: &Config, store: mpsc::Sender<Message>) -> Exporter {
        Exporter {
            access: self.shared.access.clone(),
            health: Arc::clone(&self.health),
            metrics: Arc::clone(&self.shared.metrics),
            store,
            reader: self.log.reader(),
            folder: folder.path().to_owned(),
            floor: Floor::of(folder.path()),
            room: Arc::new(Semaphore::new(MAX_EXPORTS)),
            config: trace_config(config),
        }
    }

    /// One watcher per kind, each from its position in the log.
    pub(crate) fn watchers(&self, store: &mpsc::Sender<Message>) -> Vec<Watcher> {
        let one = |status: &Arc<Status>| {
            let position = self.positions.get(status.kind()).cloned();
            let reason = "the watch could not resume after a restart of the tracer";
            let missed = self.lost.get(status.kind()).map(|from| Missed { from: *from, reason: reason.to_owned() });
            let watcher = Watcher::new(Arc::clone(&self.shared), Arc::clone(status), store.clone(), position);
            watcher.having_missed(missed).after(self.beginning)
        };
        self.health.watchers().iter().map(one).collect()
    }

    pub(crate) fn serve(
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
            gate: identity.is_some().then(|| Gate::new(self.shared.access.clone())),
            export_to: config.export_to.clone(),
        };
        let failed = |source| StartError::Bind { address: serving.address, source };
        let server = Server::start(listener, identity, served).map_err(failed)?;
        tracing::info!(address = %server.address, "serving");
        Ok(server)
    }

    /// The watcher of pods.
    pub(crate) fn pods(&self) -> Arc<Status> {
        let is_pods = |status: &&Arc<Status>| status.task.role == Role::Pod;
        Arc::clone(self.health.watchers().iter().find(is_pods).expect("pods are always watched"))
    }

    pub(crate) fn store(
        self,
        lookups: mpsc::Sender<OwnerLookup>,
        rereads: mpsc::Sender<Vec<ObjectKey>>,
        sync_interval: Duration,
    ) -> Store {
        let clock = Arc::clone(&self.shared.clock);
        let metrics = Arc::clone(&self.shared.metrics);
        Store {
            ledger: self.ledger,
            log: self.log,
            clock,
            metrics,
            health: self.health,
            lookups,
            rereads,
            sync_interval,
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

//! The one thread that owns the ledger ([`Ledger`]) and the log ([`Log`]). It is a thread because it writes to disk.
//! Everything else sends it messages over one bounded channel, so the order of the log is the order of arrival here.
//!
//! The resource version of each watch is written just before each sync, after the events of that watch. So the log
//! never claims more than it holds after a crash, and a watch that resumes from there delivers the rest. Each entry
//! carries the time up to which its watch had seen everything, not the time of the sync: if the watch cannot resume,
//! the gap starts no later than that.
//!
//! A full disk does not end the recording. The store raises an alarm, keeps the state up to date in memory and tries to
//! write every second. When that succeeds, the log starts a new segment with the current state and a gap for the lost
//! changes.

mod message;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sk_core::{Gvk, ObjectKey, SimTime};
use sk_ingest::{Ledger, OwnerLookup, Sighting};
use sk_store::log::{Fact, Log, LogError, Watched};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use crate::clock::Clock;
use crate::health::Health;
use crate::metrics::Metrics;
use crate::pod_reread;

pub(crate) use message::{Batch, Flushed, Item, Message, Missed, Position, QUEUE_BATCHES};

/// How often the log is maintained: old segments deleted, writing retried, sizes measured.
const UPKEEP: Duration = Duration::from_secs(1);

/// Why the store could not carry out a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The store has stopped.
    #[error("the tracer is shutting down")]
    Ended,
    /// The log cannot be written.
    #[error("{0}")]
    Log(String),
}

/// The parts of the store.
pub(crate) struct Store {
    pub(crate) ledger: Ledger,
    pub(crate) log: Log,
    pub(crate) clock: Arc<Clock>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) health: Arc<Health>,
    /// Receives lookups of owners.
    pub(crate) lookups: mpsc::Sender<OwnerLookup>,
    /// Receives pods to read again.
    pub(crate) rereads: mpsc::Sender<Vec<ObjectKey>>,
    pub(crate) sync_interval: Duration,
}

impl Store {
    /// Starts the thread. It ends on [`Message::End`], or when all senders are gone.
    pub(crate) fn start(self, inbox: mpsc::Receiver<Message>) -> std::io::Result<JoinHandle<Result<(), StoreError>>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        std::thread::Builder::new().name("store".to_owned()).spawn(move || {
            let _ending = self.health.watch_over();
            runtime.block_on(Work::new(self).run(inbox))
        })
    }
}

/// The store at work.
struct Work {
    store: Store,
    /// Reused: the facts that one item makes.
    facts: Vec<Fact>,
    /// How far watches have come since the last sync.
    positions: BTreeMap<Gvk, Position>,
    /// Owners to ask for.
    lookups: Vec<OwnerLookup>,
    next_sync: Instant,
    next_upkeep: Instant,
    next_reread: Instant,
}

impl Work {
    fn new(store: Store) -> Self {
        store.metrics.recording.set(1);
        let now = Instant::now();
        Self {
            store,
            facts: Vec::new(),
            positions: BTreeMap::new(),
            lookups: Vec::new(),
            next_sync: now,
            next_upkeep: now,
            next_reread: now,
        }
    }

    async fn run(mut self, mut inbox: mpsc::Receiver<Message>) -> Result<(), StoreError> {
        loop {
            let next = tokio::time::timeout_at(self.next_sync.into(), inbox.recv()).await;
            self.store.metrics.queue.set(i64::try_from(inbox.len()).unwrap_or(i64::MAX));
            match next {
                Ok(Some(Message::Batch(batch))) => self.batch(batch),
                Ok(Some(Message::LookupEnded(ended))) => {
                    let (lookup, result) = *ended;
                    let now = self.store.clock.now();
                    self.store.ledger.lookup_ended(now, &lookup, result, &mut self.facts);
                    self.append(now);
                }
                Ok(Some(Message::Reread(pods))) => self.take_rereads(&pods),
                Ok(Some(Message::Flush(reply))) => {
                    let (written, open_lookups) = (self.sync(), self.store.ledger.stats().open_lookups);
                    // Whoever asked may have gone; that is no reason to stop.
                    let _ = reply.send(Flushed { written, open_lookups });
                }
                Ok(Some(Message::End) | None) => return self.sync(),
                Err(_) => drop(self.store.metrics.lag.set(0.0)),
            }
            self.ask_for_owners();
            if Instant::now() >= self.next_sync {
                // A failure has raised the alarm; the upkeep tries again.
                let _ = self.sync();
                self.next_sync = Instant::now() + self.store.sync_interval;
                self.upkeep();
            }
        }
    }

    fn batch(&mut self, batch: Batch) {
        let now = self.store.clock.now();
        if let Some(received) = batch.received() {
            self.store.metrics.lag.set(now.since(received).as_secs_f64());
        }
        for item in batch.items {
            let at = match item {
                Item::Applied(at, sighting) => {
                    self.store.ledger.applied(at, sighting, &mut self.facts);
                    at
                }
                Item::Deleted(at, sighting) => {
                    self.store.ledger.deleted(at, sighting, &mut self.facts);
                    at
                }
                Item::Lost => {
                    // A position that was not written yet must not come after this.
                    self.positions.remove(&batch.kind);
                    self.facts.push(Fact::Lost(batch.kind.clone()));
                    now
                }
                Item::ListBegins => {
                    self.store.ledger.relist_begins(&batch.kind);
                    now
                }
                Item::ListEnded(at, missed) => {
                    let gap = missed.map(|Missed { from, reason }| (from, reason));
                    self.store.ledger.relist_ended(at, &batch.kind, gap, &mut self.facts);
                    at
                }
            };
            self.append(at);
        }
        if let Some(position) = batch.position {
            self.positions.insert(batch.kind, position);
        }
    }

    /// Puts the facts that were just made into the log.
    fn append(&mut self, at: SimTime) {
        for fact in self.facts.drain(..) {
            if let Fact::Gap(gap) = &fact {
                let kind = gap.kind.as_ref().map(ToString::to_string).unwrap_or_default();
                tracing::warn!(kind, from = %gap.from, to = %gap.to, reason = %gap.reason, "a gap was recorded");
                self.store.metrics.gaps.inc();
            }
            match self.store.log.append(at, fact) {
                Ok(_) => drop(self.store.metrics.facts.inc()),
                Err(error) if error.stops_recording() => alarm(&self.store, &error),
                Err(error) => tracing::warn!(%error, "not recorded"),
            }
        }
        for warning in self.store.ledger.take_warnings() {
            self.store.metrics.warnings.inc();
            tracing::warn!(%warning, "an object is not recorded completely");
        }
    }

    /// Puts everything on disk, with how far the watches have come.
    fn sync(&mut self) -> Result<(), StoreError> {
        let now = self.store.clock.now();
        for (kind, Position { version, seen }) in std::mem::take(&mut self.positions) {
            self.facts.push(Fact::Watched(Watched { kind, version, seen: Some(seen) }));
        }
        self.append(now);
        self.store.log.sync().map_err(|error| {
            alarm(&self.store, &error);
            StoreError::Log(error.to_string())
        })
    }

    /// Sends on lookups of owners, as many as there is room for. No more are taken from the ledger, which has a bound
    /// of its own, before these are gone.
    fn ask_for_owners(&mut self) {
        if self.lookups.is_empty() {
            self.lookups = self.store.ledger.missing_owners(self.store.clock.now());
        }
        while let Some(lookup) = self.lookups.pop() {
            if let Err(TrySendError::Full(lookup)) = self.store.lookups.try_send(lookup) {
                self.lookups.push(lookup);
                return;
            }
        }
    }

    fn take_rereads(&mut self, pods: &[Sighting]) {
        let now = self.store.clock.now();
        for pod in pods {
            self.store.ledger.looked_at(now, pod, &mut self.facts);
            self.append(now);
        }
    }

    /// Requests pods whose owners are known but whose templates are not, unless the last round is still running.
    fn reread_pods(&mut self) {
        if Instant::now() < self.next_reread {
            return;
        }
        self.next_reread = Instant::now() + pod_reread::PAUSE;
        if let Ok(place) = self.store.rereads.try_reserve() {
            let pods = self.store.ledger.pods_to_look_at(pod_reread::PODS);
            if !pods.is_empty() {
                place.send(pods);
            }
        }
    }

    fn upkeep(&mut self) {
        if Instant::now() < self.next_upkeep {
            return;
        }
        self.next_upkeep = Instant::now() + UPKEEP;
        let now = self.store.clock.now();
        if self.store.log.is_stopped() {
            self.resume(now);
        }
        self.store.log.retain(now);
        self.reread_pods();
        let stats = self.store.log.stats();
        let metrics = &self.store.metrics;
        metrics.log_bytes.set(i64::try_from(stats.bytes).unwrap_or(i64::MAX));
        metrics.oldest.set(stats.kept_from.map_or(0.0, |oldest| oldest.as_micros() as f64 / 1e6));
        let live = self.store.ledger.stats();
        live.shortcomings().iter().for_each(|(what, count)| metrics.shortcoming(what, *count));
        let live = live.objects + live.links + live.pods + live.nodes;
        metrics.live.set(i64::try_from(live).unwrap_or(i64::MAX));
    }

    fn resume(&mut self, now: SimTime) {
        match self.store.log.resume(now) {
            Ok(()) => {
                tracing::warn!("there is disk space again; recording continues, with a gap");
                self.store.metrics.gaps.inc();
                self.store.metrics.recording.set(1);
                self.store.health.set_alarm(None);
            }
            Err(error) => tracing::debug!(%error, "the log still cannot be written"),
        }
    }
}

/// Reports once that nothing is recorded.
fn alarm(store: &Store, error: &LogError) {
    if store.health.alarm().is_none() {
        tracing::error!(%error, "cannot write the log, so nothing is recorded; retrying every second");
        store.metrics.recording.set(0);
        store.health.set_alarm(Some(error.to_string()));
    }
}

#[cfg(test)]
mod tests {
    use sk_api::tracer::Config;
    use sk_core::{SimDuration, SmolStr};
    use sk_ingest::{PrivacyKey, Rules};

    use super::*;

    fn work(folder: &std::path::Path) -> Work {
        let config = Config::parse("test", "trackedObjects: {v1.ConfigMap: {}}\n").unwrap();
        let rules = Arc::new(Rules::new(&config, PrivacyKey::new([0; 16])));
        Work::new(Store {
            ledger: Ledger::new(rules, [kind()]),
            log: Log::open(folder, sk_store::log::Options::default()).unwrap().0,
            clock: Arc::default(),
            metrics: Arc::default(),
            health: Arc::new(Health::new(Vec::new())),
            lookups: mpsc::channel(1).0,
            rereads: mpsc::channel(1).0,
            sync_interval: Duration::from_secs(1),
        })
    }

    fn kind() -> Gvk {
        "v1.ConfigMap".parse().unwrap()
    }

    #[test]
    fn a_position_bears_the_moment_until_which_everything_was_seen_and_not_that_of_the_sync() {
        let folder = tempfile::tempdir().unwrap();
        let mut work = work(folder.path());
        let seen = work.store.clock.now() - SimDuration::from_secs(30);
        let mut batch = Batch::new(kind());
        batch.position = Some(Position { version: SmolStr::new("7"), seen });
        work.batch(batch);
        work.sync().unwrap();
        // Killed: the next tracer has what is on disk.
        drop(work);
        let (log, _) = Log::open(folder.path(), sk_store::log::Options::default()).unwrap();
        let positions: Vec<_> = log.state().positions().map(|(_, version, seen)| (version.as_str(), seen)).collect();
        assert_eq!(positions, [("7", seen)]);
    }

    #[test]
    fn the_lag_is_how_old_that_is_which_is_being_stored() {
        let folder = tempfile::tempdir().unwrap();
        let mut work = work(folder.path());
        let received = work.store.clock.now() - SimDuration::from_secs(5);
        let mut batch = Batch::new(kind());
        batch.push(Item::ListBegins, 0);
        batch.push(Item::ListEnded(received, None), 0);
        work.batch(batch);
        let lag = work.store.metrics.lag.get();
        assert!((5.0..300.0).contains(&lag), "{lag}");
        assert!(work.store.metrics.text().contains("simkube_tracer_lag_seconds "), "and everybody can read it");
    }
}

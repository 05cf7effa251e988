//! Our way, as the tracer does it: watchers peel and sieve, one task keeps the ledger and writes the log, which is synced
//! every 100 ms.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use sk_api::tracer::Config;
use sk_core::{Gvk, SimTime};
use sk_ingest::{Ledger, PrivacyKey, Role, Rules, Sighting};
use sk_store::log::{Fact, Log, Options};

/// How often the log is synced.
const SYNC_INTERVAL: Duration = Duration::from_millis(100);

/// How many sightings go to the store at a time, and how many such batches may be on their way.
const BATCH: usize = 64;
const QUEUED: usize = 16;

const DEPLOYMENT: Gvk = Gvk::new_static("apps", "v1", "Deployment");

/// What was recorded.
pub(crate) struct Recorded {
    pub(crate) events: u64,
    pub(crate) disk: u64,
}

fn rules() -> Arc<Rules> {
    let config = Config::parse("bench", "{trackedObjects: {apps/v1.Deployment: {trackLifecycle: true}}}").unwrap();
    Arc::new(Rules::new(&config, PrivacyKey::new([1; 16])))
}

fn sightings(rules: &Rules, file: &Path) -> impl Iterator<Item = Sighting> {
    let lines = BufReader::new(File::open(file).unwrap()).split(b'\n');
    lines.map(|line| {
        let line = line.unwrap();
        rules.sieve(&DEPLOYMENT, Role::Tracked, object(&line)).unwrap().unwrap()
    })
}

/// The object of an event, peeled as the tracer does it.
fn object(line: &[u8]) -> &[u8] {
    let (_, object) = line.split_at(line.iter().position(|byte| *byte == b':').unwrap());
    let (_, object) = object.split_at(object[1..].iter().position(|byte| *byte == b':').unwrap() + 2);
    object.strip_suffix(b"}").unwrap()
}

/// The task that writes.
struct Store {
    ledger: Ledger,
    log: Log,
    facts: Vec<Fact>,
    synced: Instant,
    events: u64,
}

impl Store {
    fn new(rules: Arc<Rules>, folder: &Path) -> Self {
        let (log, _) = Log::open(folder, Options::default()).unwrap();
        Self { ledger: Ledger::new(rules, []), log, facts: Vec::new(), synced: Instant::now(), events: 0 }
    }

    fn take(&mut self, sighting: Sighting) {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let now = SimTime::from_micros(i64::try_from(since_epoch.as_micros()).unwrap());
        self.ledger.applied(now, sighting, &mut self.facts);
        for fact in self.facts.drain(..) {
            self.log.append(now, fact).unwrap();
            self.events += 1;
        }
        if self.synced.elapsed() >= SYNC_INTERVAL {
            self.log.sync().unwrap();
            self.synced = Instant::now();
        }
    }

    fn end(mut self) -> Recorded {
        self.log.sync().unwrap();
        Recorded { events: self.events, disk: self.log.stats().bytes }
    }
}

/// With a watcher and a store, each in its thread.
pub(crate) fn record(file: &Path, folder: &Path) -> Recorded {
    let rules = rules();
    let mut store = Store::new(rules.clone(), folder);
    let (send, receive) = sync_channel::<Vec<Sighting>>(QUEUED);
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut batch = Vec::with_capacity(BATCH);
            for sighting in sightings(&rules, file) {
                batch.push(sighting);
                if batch.len() == BATCH {
                    send.send(std::mem::replace(&mut batch, Vec::with_capacity(BATCH))).unwrap();
                }
            }
            send.send(batch).unwrap();
        });
        receive.into_iter().flatten().for_each(|sighting| store.take(sighting));
    });
    store.end()
}

/// The same, one after the other.
pub(crate) fn record_in_one_thread(file: &Path, folder: &Path) -> Recorded {
    let rules = rules();
    let mut store = Store::new(rules.clone(), folder);
    sightings(&rules, file).for_each(|sighting| store.take(sighting));
    store.end()
}

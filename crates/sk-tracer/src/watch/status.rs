//! The progress of each watcher, for probes, exports and tests.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};

use sk_core::{Gvk, SimTime};
use sk_store::trace::Gap;
use tokio::sync::watch;

use super::plan::Task;
use super::resource::Resource;

/// The phase of a watcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Not started.
    Starting,
    /// The API server does not serve the kind; discovery is repeated.
    NotServed,
    /// Listing all objects.
    Listing,
    /// Watching.
    Watching,
    /// A request failed and will be retried.
    Failing(String),
}

/// The progress of a watcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    /// The phase of the watcher.
    pub(crate) phase: Phase,
    /// Is the initial state known, from a list or from the log?
    pub(crate) complete: bool,
    /// The newest resource version that it has sent to the store; 0 before that, or if it is not a number.
    ///
    /// Resource versions are opaque to clients by contract, but comparable as numbers since Kubernetes 1.35 for
    /// everything in the API server's own storage. A kind of an aggregated server that numbers differently is only ever
    /// behind, which costs an export its bounded wait and nothing else.
    pub(crate) version: u64,
    /// Of the requests to look again ([`Status::nudge`]), those that were made before the API server was last asked
    /// whether it serves the kind.
    pub(crate) looked: u64,
}

/// One watcher's progress.
#[derive(Debug)]
pub(crate) struct Status {
    pub(crate) task: Task,
    progress: watch::Sender<Progress>,
    resource: Mutex<Option<Resource>>,
    /// The time of the last event or bookmark, in microseconds; 0 if there was none yet.
    seen: AtomicI64,
    /// A version up to which this kind is known to have no event that the watcher has not seen.
    proven: watch::Sender<u64>,
    /// How often an immediate retry was requested.
    nudges: watch::Sender<u64>,
}

impl Status {
    pub(crate) fn new(task: Task) -> Self {
        let progress = Progress { phase: Phase::Starting, complete: false, version: 0, looked: 0 };
        let (progress, proven, nudges) = (watch::Sender::new(progress), watch::Sender::new(0), watch::Sender::new(0));
        Self { task, progress, resource: Mutex::new(None), seen: AtomicI64::new(0), proven, nudges }
    }

    pub(crate) fn kind(&self) -> &Gvk {
        &self.task.kind
    }

    pub(crate) fn progress(&self) -> Progress {
        self.progress.borrow().clone()
    }

    pub(crate) fn follow(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.progress.send_if_modified(|progress| {
            let changed = progress.phase != phase;
            progress.phase = phase;
            changed
        });
    }

    /// The API server, asked after so many nudges, does not serve the kind.
    pub(super) fn not_served(&self, looked: u64) {
        self.progress.send_modify(|progress| {
            progress.phase = Phase::NotServed;
            progress.looked = looked;
        });
    }

    /// Lets a watcher that waits before it tries again try at once. How many nudges that makes: what [`Progress::looked`]
    /// is at least when the API server has been asked since.
    pub(crate) fn nudge(&self) -> u64 {
        self.nudges.send_modify(|count| *count += 1);
        *self.nudges.borrow()
    }

    pub(super) fn nudges(&self) -> watch::Receiver<u64> {
        self.nudges.subscribe()
    }

    /// The initial state is known.
    pub(crate) fn completed(&self) {
        self.progress.send_if_modified(|progress| !std::mem::replace(&mut progress.complete, true));
    }

    /// Everything up to this version has been sent to the store.
    pub(super) fn reached(&self, version: &str) {
        let version = version.parse().unwrap_or(0);
        self.progress.send_modify(|progress| progress.version = version);
    }

    /// An event or bookmark arrived.
    pub(super) fn seen(&self, at: SimTime) {
        self.seen.store(at.as_micros(), Ordering::Relaxed);
    }

    /// What this watcher does not see now: from its last sign of life on, or from the beginning of time if there was none.
    pub(crate) fn open_gap(&self, now: SimTime) -> Option<Gap> {
        let reason = match self.progress().phase {
            Phase::Watching | Phase::NotServed => return None,
            Phase::Starting | Phase::Listing => {
                "the kind was still being listed when the trace was exported".to_owned()
            }
            Phase::Failing(problem) => format!("the kind could not be watched when the trace was exported: {problem}"),
        };
        let from = SimTime::from_micros(self.seen.load(Ordering::Relaxed));
        Some(Gap { from, to: now, kind: Some(self.kind().clone()), reason })
    }

    pub(super) fn served_at(&self, resource: Resource) {
        *self.resource.lock().unwrap_or_else(PoisonError::into_inner) = Some(resource);
    }

    /// Where the kind is served, once that is known.
    pub(crate) fn resource(&self) -> Option<Resource> {
        self.resource.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Up to which version nothing is missing.
    pub(crate) fn passed(&self) -> u64 {
        self.progress.borrow().version.max(*self.proven.borrow())
    }

    pub(super) fn prove(&self, version: u64) {
        self.proven.send_modify(|proven| *proven = version.max(*proven));
    }
}

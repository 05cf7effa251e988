//! The state of the tracer for liveness and readiness probes.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use sk_core::Gvk;

use crate::watch::status::{Phase, Status};

/// The state of the tracer's parts.
#[derive(Debug)]
pub(crate) struct Health {
    watchers: Vec<Arc<Status>>,
    /// Why nothing is recorded, if nothing is.
    alarm: Mutex<Option<String>>,
    alive: AtomicBool,
}

/// The state of a tracer in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    /// Kinds that are not listed yet, and why not.
    pub missing: Vec<(Gvk, String)>,
    /// Kinds whose watch is broken and will resume. Nothing is lost as long as the server has the history.
    pub broken: Vec<(Gvk, String)>,
    /// Kinds that the API server does not serve. They do not block readiness.
    pub not_served: Vec<Gvk>,
    /// Why nothing is recorded, if nothing is.
    pub alarm: Option<String>,
}

impl Readiness {
    /// Are all first lists done, and are events being stored?
    pub fn is_ready(&self) -> bool {
        self.missing.is_empty() && self.alarm.is_none()
    }
}

impl fmt::Display for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(alarm) = &self.alarm {
            writeln!(f, "nothing is recorded: {alarm}")?;
        }
        for (kind, reason) in &self.missing {
            writeln!(f, "{kind} is not listed yet: {reason}")?;
        }
        for (kind, reason) in &self.broken {
            writeln!(f, "the watch of {kind} is broken: {reason}")?;
        }
        for kind in &self.not_served {
            writeln!(f, "the API server does not serve {kind}; waiting for it")?;
        }
        if self.is_ready() { writeln!(f, "recording") } else { Ok(()) }
    }
}

impl Health {
    pub(crate) fn new(watchers: Vec<Arc<Status>>) -> Self {
        Self { watchers, alarm: Mutex::new(None), alive: AtomicBool::new(true) }
    }

    /// The watchers.
    pub(crate) fn watchers(&self) -> &[Arc<Status>] {
        &self.watchers
    }

    /// Whether the tracer is ready, and what is missing.
    pub(crate) fn report(&self) -> Readiness {
        let mut report = Readiness { alarm: self.alarm(), ..Readiness::default() };
        for watcher in &self.watchers {
            let progress = watcher.progress();
            match progress.phase {
                Phase::NotServed => report.not_served.push(watcher.kind().clone()),
                Phase::Failing(reason) if progress.complete => report.broken.push((watcher.kind().clone(), reason)),
                _ if progress.complete => {}
                Phase::Starting | Phase::Watching => report.missing.push((watcher.kind().clone(), "starting".into())),
                Phase::Listing => report.missing.push((watcher.kind().clone(), "being listed".into())),
                Phase::Failing(reason) => report.missing.push((watcher.kind().clone(), reason)),
            }
        }
        report
    }

    /// Why nothing is recorded, if nothing is.
    pub(crate) fn alarm(&self) -> Option<String> {
        self.alarm.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Raises the alarm, or ends it.
    pub(crate) fn set_alarm(&self, reason: Option<String>) {
        *self.alarm.lock().unwrap_or_else(PoisonError::into_inner) = reason;
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Relaxed)
    }

    /// The tracer cannot do its work.
    pub(crate) fn fail(&self) {
        self.alive.store(false, Ordering::Relaxed);
    }

    /// Marks the tracer as failed when the holder ends, also by a panic. For the store, which ends last.
    pub(crate) fn watch_over(self: &Arc<Self>) -> Ending {
        Ending { health: Arc::clone(self), only_panics: false }
    }

    /// Marks the tracer as failed when the holder panics. For tasks that may end or be aborted.
    pub(crate) fn watch_for_panics(self: &Arc<Self>) -> Ending {
        Ending { health: Arc::clone(self), only_panics: true }
    }
}

/// Reports the end of the thread or task that holds it.
#[derive(Debug)]
pub(crate) struct Ending {
    health: Arc<Health>,
    only_panics: bool,
}

impl Drop for Ending {
    fn drop(&mut self) {
        if !self.only_panics || std::thread::panicking() {
            self.health.fail();
        }
    }
}

#[cfg(test)]
mod tests {
    use sk_ingest::Role;

    use super::*;
    use crate::watch::plan::Task;

    #[test]
    fn a_panic_anywhere_is_the_end_of_the_tracer_and_an_ordinary_end_is_not() {
        let health = Arc::new(Health::new(Vec::new()));
        drop(health.watch_for_panics());
        assert!(health.is_alive());
        let ending = health.watch_for_panics();
        let panicked = std::thread::spawn(move || {
            let _ending = ending;
            panic!("on purpose");
        });
        assert!(panicked.join().is_err() && !health.is_alive());
        let health = Arc::new(Health::new(Vec::new()));
        drop(health.watch_over());
        assert!(!health.is_alive(), "the store does not end while the tracer lives");
    }

    #[test]
    fn a_tracer_is_not_ready_before_every_kind_is_known_and_says_which_is_missing() {
        let status = Arc::new(Status::new(Task { kind: "v1.Pod".parse().unwrap(), role: Role::Pod }));
        let health = Health::new(vec![Arc::clone(&status)]);
        assert!(!health.report().is_ready() && health.report().to_string().contains("v1.Pod"));
        status.enter(Phase::NotServed);
        assert!(health.report().is_ready(), "a kind that nobody serves has no objects to wait for");
        status.enter(Phase::Failing("no route".to_owned()));
        assert!(health.report().to_string().contains("no route"));
        status.completed();
        assert!(health.report().is_ready(), "a watch that breaks later goes on from where it was");
        health.set_alarm(Some("the disk is full".to_owned()));
        assert!(!health.report().is_ready() && health.report().to_string().contains("the disk is full"));
    }
}

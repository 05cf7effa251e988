//! Waiting for moments of the trace: the clock, shared, with pause and stop.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sk_core::{SimDuration, SimTime};
use tokio::sync::watch;

use super::clock::Clock;

/// The clock of a run, shared by all its parts.
#[derive(Debug)]
pub(crate) struct Pace {
    clock: Mutex<Clock>,
    /// Told when the clock is paused or goes on, so that whoever waits looks again.
    changed: watch::Sender<()>,
}

impl Pace {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock: Mutex::new(clock), changed: watch::Sender::new(()) }
    }

    fn clock(&self) -> MutexGuard<'_, Clock> {
        // A clock is whole at any moment, whatever panicked beside it.
        self.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The trace's time now.
    pub(crate) fn now(&self) -> SimTime {
        self.clock().at(Instant::now())
    }

    /// How long a span of the trace takes in wall time.
    pub(crate) fn wall(&self, span: SimDuration) -> Duration {
        self.clock().wall(span)
    }

    /// How late it is for something that was due at `at`; nothing while paused.
    pub(crate) fn lateness(&self, at: SimTime) -> Duration {
        self.clock().due(at).map(|due| due.elapsed()).unwrap_or_default()
    }

    /// Stops the trace's time or lets it go on.
    pub(crate) fn set_paused(&self, paused: bool) {
        let mut clock = self.clock();
        if clock.is_paused() == paused {
            return;
        }
        tracing::info!("{}", if paused { "paused" } else { "resumed" });
        match paused {
            true => clock.pause(Instant::now()),
            false => clock.resume(Instant::now()),
        }
        drop(clock);
        self.changed.send_replace(());
    }

    /// Waits until `at` of the trace.
    pub(crate) async fn until(&self, at: SimTime) {
        let mut changes = self.changed.subscribe();
        loop {
            let due = self.clock().due(at);
            let reached = async {
                match due {
                    Some(due) => tokio::time::sleep_until(due.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = reached => return,
                _ = changes.changed() => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_waits_is_held_by_a_pause_and_goes_on_after_it() {
        let start = SimTime::from_secs(0);
        let pace = Pace::new(Clock::new(start, 100.0, Instant::now()));
        pace.until(SimTime::from_secs(1)).await;
        pace.set_paused(true);
        let paused_at = pace.now();
        let waiting = pace.until(paused_at + SimDuration::from_secs(1));
        tokio::select! {
            () = waiting => panic!("time went on in a pause"),
            () = tokio::time::sleep(Duration::from_millis(100)) => {}
        }
        assert_eq!(pace.now(), paused_at);
        pace.set_paused(false);
        pace.until(paused_at + SimDuration::from_secs(1)).await;
        assert!(pace.now() >= paused_at + SimDuration::from_secs(1));
    }
}

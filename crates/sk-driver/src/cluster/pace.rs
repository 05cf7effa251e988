//! Waits for moments of the trace's clock, with pause and stop.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sk_core::{SimDuration, SimTime};
use tokio::sync::watch;

use super::clock::Clock;

/// The clock of a run, shared by all its parts.
#[derive(Debug)]
pub(crate) struct Pace {
    clock: Mutex<Clock>,
    /// Notified when the clock is paused or resumed, so that waiting tasks check again.
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

    /// Stops the trace's time or lets it go on. `false`: it was so before.
    pub(crate) fn set_paused(&self, paused: bool) -> bool {
        let mut clock = self.clock();
        if clock.is_paused() == paused {
            return false;
        }
        tracing::info!("{}", if paused { "paused" } else { "resumed" });
        match paused {
            true => clock.pause(Instant::now()),
            false => clock.resume(Instant::now()),
        }
        drop(clock);
        self.changed.send_replace(());
        true
    }

    /// Waits until `at` of the trace, and says when that was. What is late is late from then on: a pause that begins
    /// while the cluster is still busy with it neither hides nor lengthens that.
    pub(crate) async fn until(&self, at: SimTime) -> Instant {
        let mut changes = self.changed.subscribe();
        loop {
            let due = self.clock().due(at);
            let reached = async {
                match due {
                    Some(due) => {
                        tokio::time::sleep_until(due.into()).await;
                        due
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                due = reached => return due,
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
            _ = waiting => panic!("time went on in a pause"),
            () = tokio::time::sleep(Duration::from_millis(100)) => {}
        }
        assert_eq!(pace.now(), paused_at);
        pace.set_paused(false);
        pace.until(paused_at + SimDuration::from_secs(1)).await;
        assert!(pace.now() >= paused_at + SimDuration::from_secs(1));
    }

    #[tokio::test]
    async fn what_is_taken_late_was_due_when_the_schedule_says_and_a_pause_does_not_change_that() {
        let begun = Instant::now().checked_sub(Duration::from_secs(10)).unwrap();
        let pace = Pace::new(Clock::new(SimTime::EPOCH, 1.0, begun));
        let due = pace.until(SimTime::from_secs(4)).await;
        assert_eq!(due, begun + Duration::from_secs(4));
        pace.set_paused(true);
        assert!(due.elapsed() >= Duration::from_secs(6), "what is answered in a pause is late all the same");
    }
}

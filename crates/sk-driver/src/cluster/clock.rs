//! The position of a run on the trace's clock.
//!
//! The schedule is absolute: when an operation is due follows from the start of the run, its speed and its pauses,
//! never from when the operation before it was done. A run that falls behind catches up as soon as it can, and its
//! lateness is measured. The caller passes the time; nothing here sleeps or reads a clock.

use std::time::{Duration, Instant};

use sk_core::{SimDuration, SimTime};

/// What is due further away than this is due then: a month is longer than any run, and no moment overflows.
const FURTHEST: Duration = Duration::from_secs(31 * 24 * 3600);

/// The trace's time as a function of wall time.
#[derive(Clone, Debug)]
pub struct Clock {
    /// The trace's time at the beginning.
    start: SimTime,
    /// Trace seconds per wall second.
    speed: f64,
    begun: Instant,
    /// Pauses that are over.
    paused: Duration,
    pause_began: Option<Instant>,
}

impl Clock {
    /// Begins at `start` of the trace, now.
    pub fn new(start: SimTime, speed: f64, now: Instant) -> Self {
        Self { start, speed, begun: now, paused: Duration::ZERO, pause_began: None }
    }

    /// Stands at `start` of the trace until it is resumed.
    pub fn paused(start: SimTime, speed: f64, now: Instant) -> Self {
        Self { pause_began: Some(now), ..Self::new(start, speed, now) }
    }

    /// Stops the trace's time. Pausing twice is pausing once.
    pub fn pause(&mut self, now: Instant) {
        self.pause_began.get_or_insert(now);
    }

    /// Lets the trace's time go on from where it stopped.
    pub fn resume(&mut self, now: Instant) {
        if let Some(began) = self.pause_began.take() {
            self.paused += now.saturating_duration_since(began);
        }
    }

    /// Does the trace's time stand still?
    pub fn is_paused(&self) -> bool {
        self.pause_began.is_some()
    }

    /// When `at` of the trace is, if there is no further pause; `None` while paused.
    pub fn due(&self, at: SimTime) -> Option<Instant> {
        if self.is_paused() {
            return None;
        }
        Some(self.begun + self.paused + self.wall(at.since(self.start)))
    }

    /// The trace's time at a moment of wall time.
    pub fn at(&self, now: Instant) -> SimTime {
        let now = self.pause_began.map_or(now, |began| now.min(began));
        let run = now.saturating_duration_since(self.begun).saturating_sub(self.paused);
        let micros = run.as_secs_f64() * self.speed * 1e6;
        // A float beyond the integers becomes the nearest one.
        self.start + SimDuration::from_micros(micros as i64)
    }

    /// How long a span of the trace takes in wall time.
    pub fn wall(&self, span: SimDuration) -> Duration {
        let seconds = (span.as_secs_f64() / self.speed).max(0.0);
        Duration::try_from_secs_f64(seconds).unwrap_or(FURTHEST).min(FURTHEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: SimTime = SimTime::from_secs(1_000);

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn moments_are_due_by_the_speed_whatever_happened_before() {
        let now = Instant::now();
        let clock = Clock::new(START, 10.0, now);
        assert_eq!(clock.due(SimTime::from_secs(1_100)), Some(now + secs(10)));
        assert_eq!(clock.due(SimTime::from_secs(900)), Some(now), "what is before the start is due at once");
        assert_eq!(clock.at(now + secs(3)), SimTime::from_secs(1_030));
        assert_eq!(clock.wall(SimDuration::from_secs(5)), Duration::from_millis(500));
    }

    #[test]
    fn a_pause_shifts_the_whole_schedule() {
        let now = Instant::now();
        let mut clock = Clock::new(START, 1.0, now);
        clock.pause(now + secs(2));
        clock.pause(now + secs(5));
        assert_eq!(clock.due(SimTime::from_secs(1_010)), None);
        assert_eq!(clock.at(now + secs(7)), SimTime::from_secs(1_002), "time stands still");
        clock.resume(now + secs(8));
        clock.resume(now + secs(9));
        assert_eq!(clock.due(SimTime::from_secs(1_010)), Some(now + secs(16)));
        assert_eq!(clock.at(now + secs(9)), SimTime::from_secs(1_003));
    }

    #[test]
    fn a_clock_that_begins_paused_stands_at_the_start() {
        let now = Instant::now();
        let mut clock = Clock::paused(START, 50.0, now);
        assert_eq!(clock.at(now + secs(100)), START);
        clock.resume(now + secs(100));
        assert_eq!(clock.at(now + secs(101)), SimTime::from_secs(1_050));
    }

    #[test]
    fn no_time_overflows() {
        let now = Instant::now();
        for speed in [1e-9, 1.0, 1e12] {
            let clock = Clock::new(START, speed, now);
            for at in [SimTime::MAX, SimTime::from_micros(i64::MIN), SimTime::EPOCH] {
                clock.due(at);
            }
            clock.at(now + FURTHEST);
        }
    }
}

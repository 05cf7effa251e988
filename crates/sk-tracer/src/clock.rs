//! The clock that stamps events: wall time in microseconds that never runs backwards.
//!
//! Somebody can set a wall clock back, and watchers read it concurrently. An event that was received later must not
//! have an earlier time, so this clock stands still until the wall clock has caught up.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use sk_core::SimTime;

/// A clock shared by everybody who stamps something.
#[derive(Debug, Default)]
pub(crate) struct Clock(AtomicI64);

impl Clock {
    /// A clock that shows nothing earlier than `floor`: the newest time that a log already holds.
    pub(crate) fn not_before(floor: SimTime) -> Self {
        Self(AtomicI64::new(floor.as_micros()))
    }

    /// The time now.
    pub(crate) fn now(&self) -> SimTime {
        let wall = wall().as_micros();
        SimTime::from_micros(self.0.fetch_max(wall, Ordering::Relaxed).max(wall))
    }
}

/// What the machine's clock shows.
pub(crate) fn wall() -> SimTime {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    SimTime::from_micros(i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_never_shows_less_than_it_has_shown() {
        let far = SimTime::from_secs(1 << 40);
        let clock = Clock::not_before(far);
        assert_eq!(clock.now(), far, "the wall has not caught up");
        let clock = Clock::default();
        let times: Vec<_> = (0..1000).map(|_| clock.now()).collect();
        assert!(times.is_sorted() && times[0] > SimTime::from_secs(1_600_000_000));
    }
}

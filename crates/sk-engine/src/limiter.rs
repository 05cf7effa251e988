//! A client's rate limit: client-go's token bucket (`util/flowcontrol`, QPS and burst).

use sk_core::{SimDuration, SimTime};

/// How fast a client may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Requests per second in the long run.
    pub qps: i64,
    /// Requests at once after a quiet time.
    pub burst: i64,
}

/// Hands out the moments at which a client may send.
#[derive(Clone, Debug)]
pub(crate) struct Limiter {
    limit: Option<RateLimit>,
    /// When the bucket would be full again if nothing more were sent. Whole microseconds: no float ever drifts.
    full_at: SimTime,
}

impl Limiter {
    /// `None`: as fast as it likes.
    pub(crate) fn new(limit: Option<RateLimit>) -> Self {
        Self { limit, full_at: SimTime::from_micros(i64::MIN) }
    }

    /// Takes a token; the answer is when it may be used, `now` or later.
    pub(crate) fn reserve(&mut self, now: SimTime) -> SimTime {
        let Some(RateLimit { qps, burst }) = self.limit else { return now };
        let interval = SimDuration::from_secs(1) / qps.max(1);
        self.full_at = self.full_at.max(now) + interval;
        now.max(self.full_at - interval * burst.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_goes_at_once_and_the_rest_at_the_rate() {
        let mut limiter = Limiter::new(Some(RateLimit { qps: 20, burst: 3 }));
        let start = SimTime::from_secs(10);
        let waits: Vec<i64> = (0..5).map(|_| limiter.reserve(start).since(start).as_micros()).collect();
        assert_eq!(waits, [0, 0, 0, 50_000, 100_000]);
        // After a second of quiet the bucket is full again.
        let later = SimTime::from_secs(12);
        assert_eq!(limiter.reserve(later), later);
    }

    #[test]
    fn no_limit_means_no_waiting() {
        let mut limiter = Limiter::new(None);
        let now = SimTime::from_secs(1);
        assert!((0..1000).all(|_| limiter.reserve(now) == now));
    }
}

//! A distribution of durations, given by its median and its 99th percentile.
//!
//! Times until something is ready are skewed to the right: half of them lie close together, a few take several times
//! as long. A log-normal distribution has that shape and is determined by two percentiles. This file stores six of its
//! quantiles and interpolates linearly, which needs nothing but a square root, and every machine computes that to the
//! same bits.

use sk_core::SimDuration;
use sk_core::rng::Stream;

/// One in a million is precise enough.
const STEPS: u64 = 1_000_000;
/// Which share of a log-normal distribution lies below its median times the n-th power of √(p99/p50), n from −2 to 3: the
/// normal distribution's share below n × 1.1632, where 2 × 1.1632 is its 99th percentile. The last is cut off at 1.
const SHARES: [f64; 6] = [0.01, 0.1224, 0.5, 0.8776, 0.99, 1.0];

/// Half of all draws are at most `p50`, all but one in a hundred at most `p99`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// The median.
    pub p50: SimDuration,
    /// The 99th percentile, not below the median.
    pub p99: SimDuration,
}

impl Spread {
    /// The next one.
    pub fn draw(self, stream: &mut Stream) -> SimDuration {
        let share = stream.below(STEPS) as f64 / STEPS as f64;
        SimDuration::from_micros(self.quantile(share).round() as i64)
    }

    /// What a share of all draws is at most, in microseconds.
    fn quantile(self, share: f64) -> f64 {
        let (p50, p99) = (self.p50.as_micros().max(1) as f64, self.p99.max(self.p50).as_micros().max(1) as f64);
        let step = (p99 / p50).sqrt();
        let at = [p50 / step / step, p50 / step, p50, p50 * step, p99, p99 * step];
        if share <= SHARES[0] {
            return at[0];
        }
        let next = SHARES.iter().position(|known| share <= *known).unwrap_or(SHARES.len() - 1);
        let (low, high) = (SHARES[next - 1], SHARES[next]);
        at[next - 1] + (at[next] - at[next - 1]) * (share - low) / (high - low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPREAD: Spread = Spread { p50: SimDuration::from_secs(55), p99: SimDuration::from_secs(140) };

    fn draws(seed: u64) -> Vec<SimDuration> {
        let mut stream = Stream::new(seed, "test");
        let mut all: Vec<_> = (0..10_000).map(|_| SPREAD.draw(&mut stream)).collect();
        all.sort();
        all
    }

    #[test]
    fn a_spread_has_the_percentiles_that_it_is_known_by() {
        for seed in 1..=3 {
            let all = draws(seed);
            let share_within =
                |secs| all.iter().filter(|one| **one <= SimDuration::from_secs(secs)).count() as f64 / 1e4;
            assert!((share_within(55) - 0.5).abs() < 0.02, "{}", share_within(55));
            assert!((share_within(140) - 0.99).abs() < 0.005, "{}", share_within(140));
            // The mean of a log-normal distribution with these is 59.4 s.
            let mean = all.iter().map(|one| one.as_secs_f64()).sum::<f64>() / 10_000.0;
            assert!((58.0..62.0).contains(&mean), "{mean}");
            assert!(all[9_999] <= SimDuration::from_secs(224) && all[0] >= SimDuration::from_secs(21));
        }
    }

    #[test]
    fn one_value_twice_is_that_value() {
        let one = Spread { p50: SimDuration::from_secs(60), p99: SimDuration::from_secs(60) };
        assert_eq!(one.draw(&mut Stream::new(1, "test")), SimDuration::from_secs(60));
        let none = Spread { p50: SimDuration::ZERO, p99: SimDuration::ZERO };
        assert!(none.draw(&mut Stream::new(1, "test")) <= SimDuration::from_micros(1));
    }
}

//! How late operations were, as a histogram of fixed size.
//!
//! Buckets are an eighth of a power of two of microseconds wide, so a figure is at most 12.5% too high, and never too low.

use std::time::Duration;

use serde::Serialize;

const SUB_BITS: u32 = 3;
const SUB: usize = 1 << SUB_BITS;
/// 64-bit microseconds: 61 doublings above the first eight, eight buckets each.
const BUCKETS: usize = (64 - SUB_BITS as usize + 1) * SUB;

/// Later than this, an operation counts as late: figures of a second or less mean what they say.
pub const TOLERATED: Duration = Duration::from_secs(1);

/// Counts of operations by how late they were.
#[derive(Clone, Debug)]
pub struct Lateness {
    counts: Vec<u64>,
    total: u64,
    late: u64,
    max: Duration,
}

/// The figures of a run's lateness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// Half of the operations were at most so late, in milliseconds.
    pub p50_ms: f64,
    /// All but one in a hundred were at most so late, in milliseconds.
    pub p99_ms: f64,
    /// The latest of all, in milliseconds.
    pub max_ms: f64,
    /// How many were later than [`TOLERATED`].
    pub late: u64,
    /// How many there were.
    pub operations: u64,
}

impl Default for Lateness {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS], total: 0, late: 0, max: Duration::ZERO }
    }
}

impl Lateness {
    /// Counts one operation.
    pub fn add(&mut self, late: Duration) {
        let micros = u64::try_from(late.as_micros()).unwrap_or(u64::MAX);
        self.counts[bucket(micros)] += 1;
        self.total += 1;
        self.late += u64::from(late > TOLERATED);
        self.max = self.max.max(late);
    }

    /// The figures.
    pub fn figures(&self) -> Figures {
        Figures {
            p50_ms: self.quantile_ms(50),
            p99_ms: self.quantile_ms(99),
            max_ms: self.max.as_secs_f64() * 1e3,
            late: self.late,
            operations: self.total,
        }
    }

    fn quantile_ms(&self, percent: u64) -> f64 {
        let rank = (self.total * percent).div_ceil(100).max(1);
        let mut seen = 0;
        let reached = |count: &u64| {
            seen += count;
            seen >= rank
        };
        let upper = self.counts.iter().position(reached).map_or(0.0, upper_micros);
        (upper / 1e3).min(self.max.as_secs_f64() * 1e3)
    }
}

fn bucket(micros: u64) -> usize {
    if micros < SUB as u64 {
        return usize::try_from(micros).unwrap_or(0);
    }
    let exponent = 63 - micros.leading_zeros();
    let sub = (micros >> (exponent - SUB_BITS)) & (SUB as u64 - 1);
    (exponent - SUB_BITS + 1) as usize * SUB + usize::try_from(sub).unwrap_or(0)
}

/// The largest value of a bucket.
fn upper_micros(bucket: usize) -> f64 {
    if bucket < SUB {
        return bucket as f64;
    }
    let (doubling, sub) = (bucket / SUB - 1, bucket % SUB);
    (sub + SUB + 1) as f64 * 2_f64.powi(i32::try_from(doubling).unwrap_or(0)) - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_a_bucket_that_is_at_most_an_eighth_too_high() {
        for micros in (0..64).flat_map(|bit| [1_u64 << bit, (1 << bit) + (1 << bit) / 3, (1_u64 << bit) - 1]) {
            let upper = upper_micros(bucket(micros));
            assert!(upper >= micros as f64 && upper <= micros as f64 * 1.125 + 1.0, "{micros}: {upper}");
        }
        assert!(bucket(u64::MAX) < BUCKETS);
    }

    #[test]
    fn figures_are_those_of_the_operations() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.figures(), Figures::default());
        (1..=98).for_each(|millis| lateness.add(Duration::from_millis(millis)));
        lateness.add(Duration::from_secs(2));
        lateness.add(Duration::from_secs(3));
        let figures = lateness.figures();
        assert!((50.0..57.0).contains(&figures.p50_ms), "{figures:?}");
        assert!((2000.0..2251.0).contains(&figures.p99_ms), "{figures:?}");
        assert_eq!((figures.max_ms, figures.late, figures.operations), (3000.0, 2, 100));
    }
}

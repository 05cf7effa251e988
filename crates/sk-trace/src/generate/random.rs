//! Random draws with the distributions that workloads show: waiting times, lifetimes, sizes.
//!
//! They use integers and the four basic operations only, which every machine rounds alike: a logarithm or a power from the
//! platform's mathematics library would give different bytes elsewhere. So curves consist of straight pieces.

use sk_core::rng::Stream;
use sk_core::{SimDuration, SimTime};

/// One in a million: shares are counted in these.
const MILLION: u64 = 1_000_000;

/// A log-normal draw is cut here, in powers of two either way.
const MAX_DOUBLINGS: f64 = 20.0;

/// A named stream of draws.
#[derive(Clone, Debug)]
pub(super) struct Draw(Stream);

impl Draw {
    pub(super) fn new(seed: u64, name: &str) -> Self {
        Self(Stream::new(seed, name))
    }

    /// A number below `bound`.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    /// A number from `low` up to and including `high`.
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.below(high.saturating_sub(low) + 1)
    }

    /// One of these; every list here is written out in this crate and none is empty.
    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }

    /// A place in a list of so many, in the middle far more often than at the ends.
    pub(super) fn middle(&mut self, len: usize) -> usize {
        let len = len as u64;
        let sum = self.below(len) + self.below(len) + self.below(len);
        (sum / 3) as usize
    }

    /// Does something happen that happens in this share of cases?
    pub(super) fn chance(&mut self, share: f64) -> bool {
        // `as` saturates: a share above 1 always happens, below 0 never.
        self.below(MILLION) < (share * MILLION as f64) as u64
    }

    /// So many hexadecimal digits.
    pub(super) fn hex(&mut self, digits: usize) -> String {
        (0..digits).map(|_| char::from(b"0123456789abcdef"[self.below(16) as usize])).collect()
    }

    /// What Kubernetes puts behind a generated name.
    pub(super) fn suffix(&mut self) -> String {
        self.letters(5)
    }

    /// So many letters of those that Kubernetes uses for generated names.
    pub(super) fn letters(&mut self, count: usize) -> String {
        self.0.name_suffix(count)
    }

    /// A span between half and one and a half of `mean`.
    pub(super) fn around(&mut self, mean: SimDuration) -> SimDuration {
        let mean = mean.as_micros().max(0).unsigned_abs();
        SimDuration::from_micros(signed(mean / 2 + self.below(mean.saturating_add(1))))
    }

    /// The wait for something that comes at random, once in `mean`.
    ///
    /// The logarithm of a draw, in straight pieces: the place of its first set bit, less what follows it as a fraction.
    /// The first has mean 2, the second one half; dividing by three halves makes the mean exactly one.
    pub(super) fn wait(&mut self, mean: SimDuration) -> SimDuration {
        let bits = self.0.next_u64() | 1;
        let zeros = bits.leading_zeros();
        let fraction = bits.checked_shl(zeros + 1).unwrap_or(0) >> 32;
        let log = (u64::from(zeros + 1) << 32) - fraction;
        let micros = u128::from(log) * u128::from(mean.as_micros().max(0).unsigned_abs()) * 2 / 3;
        SimDuration::from_micros(i64::try_from(micros >> 32).unwrap_or(i64::MAX))
    }

    /// A span of which half are shorter than `median` and one in twenty is longer than `p95`; log-normal but for the
    /// straight pieces.
    pub(super) fn spread(&mut self, median: SimDuration, p95: SimDuration) -> SimDuration {
        /// The 95th percentile of a normal spread, in standard deviations.
        const P95: f64 = 1.645;
        /// The standard deviation of a sum of four draws from 0 to 1.
        const SUM_DEVIATION: f64 = 0.577_35;
        let sum: u64 = (0..4).map(|_| self.below(MILLION)).sum();
        let normal = (sum as f64 / MILLION as f64 - 2.0) / SUM_DEVIATION;
        let (median, p95) = (median.as_micros().max(1) as f64, p95.as_micros().max(1) as f64);
        let doublings = log2(p95 / median) / P95 * normal;
        SimDuration::from_micros((median * exp2(doublings)) as i64)
    }
}

/// A count that no trace reaches the end of, as the sign of a span.
fn signed(micros: u64) -> i64 {
    i64::try_from(micros).unwrap_or(i64::MAX)
}

/// The logarithm to base two, in straight pieces between powers of two.
fn log2(ratio: f64) -> f64 {
    let (mut rest, mut whole) = (ratio.max(f64::MIN_POSITIVE), 0.0);
    while rest >= 2.0 && whole < MAX_DOUBLINGS {
        (rest, whole) = (rest / 2.0, whole + 1.0);
    }
    while rest < 1.0 && whole > -MAX_DOUBLINGS {
        (rest, whole) = (rest * 2.0, whole - 1.0);
    }
    whole + (rest - 1.0).clamp(0.0, 1.0)
}

/// Its inverse.
fn exp2(doublings: f64) -> f64 {
    let doublings = doublings.clamp(-MAX_DOUBLINGS, MAX_DOUBLINGS);
    let whole = doublings.floor();
    let power = (1_u64 << (whole.abs() as u32)) as f64;
    let power = if whole < 0.0 { 1.0 / power } else { power };
    power * (1.0 + doublings - whole)
}

/// How busy people are in each hour of a day, in hundredths of the peak; the peak is at hour 14.
const HOURS: [i64; 24] =
    [34, 28, 24, 22, 22, 25, 32, 44, 60, 76, 88, 95, 97, 99, 100, 98, 94, 90, 86, 82, 75, 66, 55, 44];

/// The hour of [`HOURS`]' peak.
const PEAK: i64 = 14;

/// How busy it is at that moment, in ten-thousandths, if the peak is at hour `peak` UTC.
pub(super) fn busy(at: SimTime, peak: u8) -> i64 {
    let minutes = at.as_secs().div_euclid(60) - (i64::from(peak) - PEAK) * 60;
    let minute = minutes.rem_euclid(24 * 60);
    let (hour, into) = ((minute / 60) as usize, minute % 60);
    let (from, to) = (HOURS[hour], HOURS[(hour + 1) % HOURS.len()]);
    from * 100 + (to - from) * 100 * into / 60
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: SimDuration = SimDuration::from_mins(1);

    fn draws(mut draw: impl FnMut() -> SimDuration) -> Vec<i64> {
        let mut drawn: Vec<_> = (0..20_000).map(|_| draw().as_micros()).collect();
        drawn.sort_unstable();
        drawn
    }

    #[test]
    fn waits_have_the_mean_they_are_asked_for_and_are_mostly_short() {
        let mut random = Draw::new(1, "test");
        let waits = draws(|| random.wait(MINUTE));
        let mean = waits.iter().sum::<i64>() / waits.len() as i64;
        assert!((mean - MINUTE.as_micros()).abs() < MINUTE.as_micros() / 30, "{mean}");
        assert!(waits[waits.len() / 2] < MINUTE.as_micros() * 3 / 4, "the median of waiting is below its mean");
    }

    #[test]
    fn a_spread_keeps_its_median_and_its_tail() {
        let mut random = Draw::new(1, "test");
        let lives = draws(|| random.spread(MINUTE, MINUTE * 10));
        let at = |share: f64| lives[(lives.len() as f64 * share) as usize] as f64 / MINUTE.as_micros() as f64;
        assert!((0.9..1.1).contains(&at(0.5)), "{}", at(0.5));
        assert!((8.0..12.0).contains(&at(0.95)), "{}", at(0.95));
    }

    #[test]
    fn powers_and_logarithms_undo_each_other() {
        for doublings in [-3.75, -1.0, 0.0, 0.3, 7.5] {
            assert!((log2(exp2(doublings)) - doublings).abs() < 1e-9, "{doublings}");
        }
        for absurd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, 1e300] {
            assert!(log2(absurd).abs() <= MAX_DOUBLINGS + 1.0, "{absurd}");
        }
    }

    #[test]
    fn a_day_is_busiest_at_its_peak_and_goes_round() {
        let at = |hour: i64| SimTime::from_secs(1_767_571_200 + hour * 3_600);
        assert_eq!(busy(at(14), 14), 10_000);
        assert_eq!(busy(at(20), 20), 10_000);
        assert_eq!(busy(at(38), 14), 10_000);
        assert!(busy(at(3), 14) < 2_500);
        assert!((busy(at(23), 14) - busy(at(24), 14)).abs() < 2_000);
    }
}

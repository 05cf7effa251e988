//! Exponential backoff with jitter and a maximum.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// The first wait. client-go's reflector begins with 800 ms; an API server that restarts is missed for less.
const FIRST: Duration = Duration::from_millis(200);
/// The longest wait, as in client-go's reflector.
const LONGEST: Duration = Duration::from_secs(30);

/// Counts failures in a row.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// The next wait: between half of the step and all of it, so that watchers that failed together come back apart.
    pub(crate) fn next(&mut self) -> Duration {
        let step = FIRST.saturating_mul(2u32.saturating_pow(self.failures.min(16))).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        step / 2 + step.mul_f64(jitter() / 2.0)
    }

    /// Something succeeded.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }
}

/// A number from 0 to 1 that nobody can foresee; the standard library's hash keys are its only randomness.
pub(crate) fn jitter() -> f64 {
    (RandomState::new().build_hasher().finish() >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_bound_and_begin_anew_after_a_success() {
        let mut backoff = Backoff::default();
        let waits: Vec<_> = (0..40).map(|_| backoff.next()).collect();
        assert!(waits[0] <= FIRST && waits[0] >= FIRST / 2);
        assert!(waits.iter().all(|wait| *wait <= LONGEST) && waits[39] >= LONGEST / 2);
        backoff.reset();
        assert!(backoff.next() <= FIRST);
    }
}

//! How long a Job waits after pod failures before it creates the next pod (`backoff_utils.go`, 1.36).

use sk_apiserver::Object;
use sk_core::{SimDuration, SimTime};

use super::Pods;
use super::pods::finished_at;

/// After the first failure (`DefaultJobPodFailureBackOff`).
const FIRST: SimDuration = SimDuration::from_secs(10);
/// At most (`MaxJobPodFailureBackOff`).
const LONGEST: SimDuration = SimDuration::from_mins(10);

/// The failures of a Job since its last success.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Backoff {
    failures: u32,
    last_failure: Option<SimTime>,
}

impl Backoff {
    /// The record after some pods have ended. A success clears what happened before it.
    pub(super) fn after(self, succeeded: &Pods<'_>, failed: &Pods<'_>) -> Self {
        let last_success = succeeded.iter().map(|pod| finished_at(pod)).max();
        let before = if last_success.is_some() { Self::default() } else { self };
        let counts = |at: &SimTime| last_success.is_none_or(|success| *at > success);
        let failures: Vec<_> = failed.iter().map(|pod| finished_at(pod)).filter(counts).collect();
        let count = u32::try_from(failures.len()).unwrap_or(u32::MAX);
        Self {
            failures: before.failures.saturating_add(count),
            last_failure: failures.into_iter().max().or(before.last_failure),
        }
    }

    /// One pod that has failed, and how often its index failed before.
    pub(super) fn of_index(pod: &Object, earlier: u32) -> Self {
        Self { failures: earlier.saturating_add(1), last_failure: Some(finished_at(pod)) }
    }

    /// How long to wait from `now` on.
    pub(super) fn remaining(self, now: SimTime) -> SimDuration {
        let Some(last_failure) = self.last_failure.filter(|_| self.failures > 0) else { return SimDuration::ZERO };
        // The longest is reached after six doublings of the first; more would overflow and change nothing.
        let doublings = (self.failures - 1).min(6);
        let wait = (FIRST * (1_i64 << doublings)).min(LONGEST);
        (wait - now.since(last_failure)).max(SimDuration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_from_ten_seconds_to_ten_minutes() {
        let wait = |failures| {
            let backoff = Backoff { failures, last_failure: Some(SimTime::from_secs(100)) };
            backoff.remaining(SimTime::from_secs(103)).as_micros() / 1_000_000
        };
        assert_eq!([0, 1, 2, 3, 6, 7, 8, u32::MAX].map(wait), [0, 7, 17, 37, 317, 597, 597, 597]);
        let passed = Backoff { failures: 1, last_failure: Some(SimTime::from_secs(100)) };
        assert_eq!(passed.remaining(SimTime::from_secs(111)), SimDuration::ZERO);
    }
}

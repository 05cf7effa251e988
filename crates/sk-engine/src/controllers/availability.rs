//! How many pods of a set have been ready for long enough (`minReadySeconds`), kept as pods change.
//!
//! A pod that becomes ready waits. A sync moves those whose wait has ended since the sync before it, so a pod is looked at
//! once when it changes and once when it becomes available, however many pods the set has.

use std::collections::BTreeSet;

use sk_apiserver::ObjectId;
use sk_core::{SimDuration, SimTime};

/// The ready pods of one set.
#[derive(Clone, Debug)]
pub(crate) struct Availability {
    min_ready: SimDuration,
    available: i32,
    /// Pods that have not been ready for long enough: since when they are.
    waiting: BTreeSet<(SimTime, ObjectId)>,
}

impl Availability {
    pub(crate) fn new(min_ready_seconds: i32) -> Self {
        let min_ready = SimDuration::from_secs(i64::from(min_ready_seconds.max(0)));
        Self { min_ready, available: 0, waiting: BTreeSet::new() }
    }

    /// A pod came, changed or went: since when it was ready, and since when it is.
    pub(crate) fn change(&mut self, id: ObjectId, before: Option<SimTime>, after: Option<SimTime>) {
        if before == after {
            return;
        }
        if before.is_some_and(|since| !self.waiting.remove(&(since, id))) {
            self.available -= 1;
        }
        if let Some(since) = after {
            self.waiting.insert((since, id));
        }
    }

    /// How many are available, and after how long the next one is by waiting alone. Time only goes on.
    pub(crate) fn at(&mut self, now: SimTime) -> (i32, Option<SimDuration>) {
        while let Some((since, _)) = self.waiting.first() {
            let left = self.min_ready - now.since(*since);
            if left > SimDuration::ZERO {
                return (self.available, Some(left));
            }
            self.waiting.pop_first();
            self.available += 1;
        }
        (self.available, None)
    }
}

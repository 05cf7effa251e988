//! client-go's work queue: a key is in the queue at most once and never processed twice at a time, with backoff after
//! failures (`util/workqueue`, 1.36).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use sk_core::SimDuration;

/// How long a key waits after failures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delays {
    /// After the first; twice as long after each further one.
    pub(crate) base: SimDuration,
    /// At most.
    pub(crate) max: SimDuration,
}

impl Delays {
    /// client-go's own (`DefaultTypedControllerRateLimiter`).
    pub(crate) const DEFAULT: Self = Self { base: SimDuration::from_millis(5), max: SimDuration::from_secs(1000) };
}

/// The queue.
#[derive(Clone, Debug)]
pub(crate) struct WorkQueue<K> {
    waiting: VecDeque<K>,
    dirty: BTreeSet<K>,
    working: BTreeSet<K>,
    failures: BTreeMap<K, u32>,
    delays: Delays,
    /// Keys to be added later, which the controller has not set a timer for yet.
    later: Vec<(K, SimDuration)>,
}

impl<K: Ord + Clone> WorkQueue<K> {
    pub(crate) fn new(delays: Delays) -> Self {
        Self {
            waiting: VecDeque::new(),
            dirty: BTreeSet::new(),
            working: BTreeSet::new(),
            failures: BTreeMap::new(),
            delays,
            later: Vec::new(),
        }
    }

    /// Marks a key as to be looked at after a while. If it is to be looked at earlier anyway, that is enough.
    pub(crate) fn add_after(&mut self, key: K, delay: SimDuration) {
        self.later.push((key, delay));
    }

    /// What [`Self::add_after`] was told since the last call.
    pub(crate) fn take_later(&mut self) -> Vec<(K, SimDuration)> {
        std::mem::take(&mut self.later)
    }

    /// Is no key to be looked at, now or later?
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.later.is_empty()
    }

    /// Marks a key as to be looked at. While it is being worked on, it is looked at again afterwards.
    pub(crate) fn add(&mut self, key: K) {
        if self.dirty.insert(key.clone()) && !self.working.contains(&key) {
            self.waiting.push_back(key);
        }
    }

    /// Takes a key to work on; [`Self::done`] must follow.
    pub(crate) fn take(&mut self) -> Option<K> {
        let key = self.waiting.pop_front()?;
        self.dirty.remove(&key);
        self.working.insert(key.clone());
        Some(key)
    }

    /// The work on a key has ended.
    pub(crate) fn done(&mut self, key: &K) {
        self.working.remove(key);
        if self.dirty.contains(key) {
            self.waiting.push_back(key.clone());
        }
    }

    /// It went well: the next failure waits briefly again.
    pub(crate) fn forget(&mut self, key: &K) {
        self.failures.remove(key);
    }

    /// It failed: after how long it is to be tried again.
    pub(crate) fn failed(&mut self, key: &K) -> SimDuration {
        let failures = self.failures.entry(key.clone()).or_default();
        let delay = (self.delays.base * (1_i64 << (*failures).min(30))).min(self.delays.max);
        *failures += 1;
        delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_waits_once_and_is_never_worked_on_twice_at_a_time() {
        let mut queue = WorkQueue::new(Delays::DEFAULT);
        queue.add("a");
        queue.add("a");
        assert_eq!(queue.take(), Some("a"));
        queue.add("a");
        assert_eq!(queue.take(), None, "a is being worked on");
        queue.done(&"a");
        assert_eq!(queue.take(), Some("a"), "it changed meanwhile");
        queue.done(&"a");
        assert_eq!(queue.take(), None);
    }

    #[test]
    fn failures_wait_twice_as_long_each_time_up_to_a_bound() {
        let mut queue = WorkQueue::new(Delays::DEFAULT);
        let waits: Vec<_> = (0..3).map(|_| queue.failed(&"a").as_micros()).collect();
        assert_eq!(waits, [5_000, 10_000, 20_000]);
        let longest = (0..40).map(|_| queue.failed(&"a")).max();
        assert_eq!(longest, Some(Delays::DEFAULT.max));
        queue.forget(&"a");
        assert_eq!(queue.failed(&"a"), Delays::DEFAULT.base);
    }
}

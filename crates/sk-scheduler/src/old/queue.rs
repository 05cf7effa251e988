//! Which pod is next (`backend/queue`, 1.36).
//!
//! A pod is in one of three places. *Active*: by priority, then by age. *Unschedulable*: until something happens that
//! may help it, or for [`QueueSettings::flush_after`]. *Backing off*: helped, but it failed lately; since 1.33
//! (`SchedulerPopFromBackoffQ`) a scheduler with nothing else to do takes these too, so backoff only orders pods here
//! and never makes an idle scheduler wait.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use sk_core::{ObjectKey, SimDuration, SimTime};

/// The queue's times; the defaults are kube-scheduler's.
#[derive(Clone, Debug)]
pub struct QueueSettings {
    /// First backoff.
    pub initial_backoff: SimDuration,
    /// Longest backoff.
    pub max_backoff: SimDuration,
    /// An unschedulable pod is tried again after this long whatever happens.
    pub flush_after: SimDuration,
}

impl Default for QueueSettings {
    fn default() -> Self {
        Self {
            initial_backoff: SimDuration::from_secs(1),
            max_backoff: SimDuration::from_secs(10),
            flush_after: SimDuration::from_mins(5),
        }
    }
}

/// Backoffs that end within the same second are ordered by priority.
const BACKOFF_WINDOW: SimDuration = SimDuration::from_secs(1);

/// Priority first, then age; the number makes it total and first-in-first-out.
type Rank = (Reverse<i32>, SimTime, u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Active,
    BackingOff { until: SimTime },
    Unschedulable { since: SimTime },
    InFlight,
}

#[derive(Clone, Debug)]
struct Entry {
    rank: Rank,
    attempts: u32,
    place: Place,
}

/// The pods that wait for a node.
#[derive(Clone, Debug, Default)]
pub struct SchedulingQueue {
    settings: QueueSettings,
    entries: BTreeMap<ObjectKey, Entry>,
    active: BTreeMap<Rank, ObjectKey>,
    backing_off: BTreeMap<(SimTime, Rank), ObjectKey>,
    unschedulable: BTreeSet<(SimTime, ObjectKey)>,
    added: u64,
}

impl SchedulingQueue {
    /// An empty queue.
    pub fn new(settings: QueueSettings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// A new pod, ready to be tried. A pod already known keeps its place.
    pub fn add(&mut self, now: SimTime, pod: &ObjectKey, priority: i32) {
        if self.entries.contains_key(pod) {
            return;
        }
        self.added += 1;
        let entry = Entry { rank: (Reverse(priority), now, self.added), attempts: 0, place: Place::InFlight };
        self.entries.insert(pod.clone(), entry);
        self.settle(pod, Place::Active);
    }

    /// Forgets a pod: it is bound, or gone.
    pub fn remove(&mut self, pod: &ObjectKey) {
        self.settle(pod, Place::InFlight);
        self.entries.remove(pod);
    }

    /// Does it wait here?
    pub fn contains(&self, pod: &ObjectKey) -> bool {
        self.entries.contains_key(pod)
    }

    /// Takes the next pod to try. Tell [`Self::failed`] or [`Self::remove`] how it went.
    pub fn pop(&mut self, now: SimTime) -> Option<ObjectKey> {
        while let Some(((until, _), pod)) = self.backing_off.first_key_value()
            && *until <= now
        {
            let pod = pod.clone();
            self.settle(&pod, Place::Active);
        }
        let pod = self.active.values().next().or_else(|| self.backing_off.values().next())?.clone();
        self.settle(&pod, Place::InFlight);
        if let Some(entry) = self.entries.get_mut(&pod) {
            entry.attempts += 1;
        }
        Some(pod)
    }

    /// Is any pod ready to be tried?
    pub fn is_ready(&self) -> bool {
        !self.active.is_empty() || !self.backing_off.is_empty()
    }

    /// The pod found no node.
    pub fn failed(&mut self, now: SimTime, pod: &ObjectKey) {
        self.settle(pod, Place::Unschedulable { since: now });
    }

    /// Something happened: those unschedulable pods that it `helps` are to be tried again.
    pub fn happened(&mut self, now: SimTime, mut helps: impl FnMut(&ObjectKey) -> bool) {
        let helped: Vec<_> = self.unschedulable.iter().filter(|(_, pod)| helps(pod)).cloned().collect();
        for (since, pod) in helped {
            self.back_off(now, since, &pod);
        }
    }

    /// When the next unschedulable pod is tried again for no other reason than time.
    pub fn next_flush(&self) -> Option<SimTime> {
        self.unschedulable.first().map(|&(since, _)| since + self.settings.flush_after)
    }

    /// Moves the pods whose time has come.
    pub fn flush(&mut self, now: SimTime) {
        while self.next_flush().is_some_and(|at| at <= now) {
            let Some((since, pod)) = self.unschedulable.first().cloned() else { return };
            self.back_off(now, since, &pod);
        }
    }

    /// To be tried again: at once if it failed long enough ago, else after those that did not fail lately.
    fn back_off(&mut self, now: SimTime, failed_at: SimTime, pod: &ObjectKey) {
        let attempts = self.entries.get(pod).map_or(1, |entry| entry.attempts);
        let doublings = attempts.saturating_sub(1).min(16);
        let backoff = (self.settings.initial_backoff * (1 << doublings)).min(self.settings.max_backoff);
        let window = BACKOFF_WINDOW.as_micros();
        let until = (failed_at + backoff).as_micros().div_euclid(window).saturating_mul(window);
        let until = SimTime::from_micros(until);
        self.settle(pod, if until <= now { Place::Active } else { Place::BackingOff { until } });
    }

    /// The only place where a pod changes its place, so that the entry and the three orders never disagree.
    fn settle(&mut self, pod: &ObjectKey, place: Place) {
        let Some(entry) = self.entries.get_mut(pod) else { return };
        match entry.place {
            Place::Active => drop(self.active.remove(&entry.rank)),
            Place::BackingOff { until } => drop(self.backing_off.remove(&(until, entry.rank))),
            Place::Unschedulable { since } => drop(self.unschedulable.remove(&(since, pod.clone()))),
            Place::InFlight => {}
        }
        entry.place = place;
        match place {
            Place::Active => drop(self.active.insert(entry.rank, pod.clone())),
            Place::BackingOff { until } => drop(self.backing_off.insert((until, entry.rank), pod.clone())),
            Place::Unschedulable { since } => drop(self.unschedulable.insert((since, pod.clone()))),
            Place::InFlight => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::namespaced("default", name)
    }

    fn at(secs: i64) -> SimTime {
        SimTime::from_secs(secs)
    }

    #[test]
    fn priority_goes_first_and_then_age() {
        let mut queue = SchedulingQueue::default();
        queue.add(at(0), &key("old"), 0);
        queue.add(at(1), &key("new"), 0);
        queue.add(at(2), &key("urgent"), 10);
        let order: Vec<_> = std::iter::from_fn(|| queue.pop(at(2))).map(|key| key.name.to_string()).collect();
        assert_eq!(order, ["urgent", "old", "new"]);
    }

    #[test]
    fn an_unschedulable_pod_waits_for_help_or_five_minutes() {
        let mut queue = SchedulingQueue::default();
        for name in ["a", "b"] {
            queue.add(at(0), &key(name), 0);
            let pod = queue.pop(at(0)).unwrap();
            queue.failed(at(0), &pod);
        }
        assert!(!queue.is_ready());
        queue.happened(at(1), |pod| pod.name == "b");
        assert_eq!(queue.pop(at(1)), Some(key("b")));
        assert_eq!(queue.next_flush(), Some(at(300)));
        queue.flush(at(299));
        assert!(!queue.is_ready());
        queue.flush(at(300));
        assert_eq!(queue.pop(at(300)), Some(key("a")));
    }

    #[test]
    fn a_removed_pod_is_nowhere() {
        let mut queue = SchedulingQueue::default();
        queue.add(at(0), &key("a"), 0);
        queue.remove(&key("a"));
        assert!(!queue.is_ready() && !queue.contains(&key("a")));
        queue.failed(at(0), &key("a"));
        assert_eq!(queue.next_flush(), None);
    }

    #[test]
    fn fresh_pods_go_before_those_that_failed_lately_but_not_for_long() {
        let failed_then = |tried_at: i64| {
            let mut queue = SchedulingQueue::default();
            queue.add(at(0), &key("failed"), 100);
            let pod = queue.pop(at(0)).unwrap();
            queue.failed(at(0), &pod);
            queue.add(at(tried_at), &key("fresh"), 0);
            queue.happened(at(tried_at), |_| true);
            queue.pop(at(tried_at))
        };
        assert_eq!(failed_then(0), Some(key("fresh")), "it still backs off");
        assert_eq!(failed_then(60), Some(key("failed")), "its backoff is long over, and it has priority");
    }
}

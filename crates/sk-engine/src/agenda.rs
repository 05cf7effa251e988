//! The event heap of the discrete-event simulation.
//!
//! Entries for the same instant come out by class and then in insertion order, so the order never depends on how a
//! heap arranges equal entries.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use sk_core::SimTime;
use sk_core::limits::MAX_OBJECTS;

/// Below so many entries nobody looks for those that are of no use any more: 65,536 × 64 bytes are 4 MiB.
const FIRST_SWEEP: usize = 1 << 16;
/// How many entries there can be that are of use. An object has at most three wake-ups (a pod's start, end and going) and a
/// request on its way, a controller some hundred requests and the scheduler three wake-ups: far fewer than eight for each of
/// the objects that a cluster holds. 8 × 1,048,576 × 64 bytes are 512 MiB.
pub(crate) const MAX_ENTRIES: usize = 8 * MAX_OBJECTS;

/// Who goes first among entries of one moment: what has happened is seen before anybody acts on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// An informer learns of changes.
    Delivery,
    /// A request reaches the API server.
    Request,
    /// A component wakes up.
    Wake,
}

/// The heap.
#[derive(Clone, Debug)]
pub(crate) struct Agenda<T> {
    heap: BinaryHeap<Reverse<Entry<T>>>,
    added: u64,
    /// With so many entries it is time to look for those that are of no use any more.
    sweep_at: usize,
}

#[derive(Clone, Debug)]
struct Entry<T> {
    order: (SimTime, Class, u64),
    what: T,
}

impl<T> Agenda<T> {
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::new(), added: 0, sweep_at: FIRST_SWEEP }
    }

    pub(crate) fn add(&mut self, at: SimTime, class: Class, what: T) {
        self.added += 1;
        self.heap.push(Reverse(Entry { order: (at, class, self.added), what }));
    }

    /// Has it grown so that entries should be looked through?
    pub(crate) fn is_large(&self) -> bool {
        self.heap.len() >= self.sweep_at
    }

    /// Keeps only what is still of use: the end of a pod that was planned for next week is not, once the pod is gone. Looks
    /// again when there are twice as many, so that each entry is looked at a few times at most.
    pub(crate) fn sweep(&mut self, mut is_of_use: impl FnMut(&T) -> bool) {
        self.heap.retain(|Reverse(entry)| is_of_use(&entry.what));
        assert!(self.heap.len() <= MAX_ENTRIES, "more is planned than the objects of a full cluster can ask for");
        self.sweep_at = FIRST_SWEEP.max(self.heap.len() * 2);
    }

    /// When the next entry is due.
    pub(crate) fn next_time(&self) -> Option<SimTime> {
        self.heap.peek().map(|Reverse(entry)| entry.order.0)
    }

    /// Takes the next entry that is due by `until`.
    pub(crate) fn pop_due(&mut self, until: SimTime) -> Option<(SimTime, T)> {
        if self.next_time()? > until {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| (entry.order.0, entry.what))
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order.cmp(&other.order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_by_time_then_class_then_arrival() {
        let mut agenda = Agenda::new();
        let at = SimTime::from_secs;
        agenda.add(at(2), Class::Delivery, "later");
        agenda.add(at(1), Class::Wake, "wake");
        agenda.add(at(1), Class::Delivery, "first");
        agenda.add(at(1), Class::Delivery, "second");
        let due: Vec<_> = std::iter::from_fn(|| agenda.pop_due(at(1))).map(|(_, what)| what).collect();
        assert_eq!(due, ["first", "second", "wake"]);
        assert_eq!(agenda.next_time(), Some(at(2)));
    }

    #[test]
    fn what_is_of_no_use_any_more_is_let_go_of_before_it_fills_the_agenda() {
        let mut agenda = Agenda::new();
        for number in 0..10 * FIRST_SWEEP {
            agenda.add(SimTime::from_secs(1), Class::Wake, number);
            if agenda.is_large() {
                agenda.sweep(|number| number % 100 == 0);
            }
            assert!(agenda.heap.len() <= FIRST_SWEEP);
        }
        let kept: Vec<_> = std::iter::from_fn(|| agenda.pop_due(SimTime::MAX)).map(|(_, number)| number).collect();
        assert!(kept.is_sorted() && kept.iter().filter(|number| *number % 100 == 0).count() == FIRST_SWEEP / 10 + 1);
    }
}

//! What is to happen when: the heap of a discrete-event simulation.
//!
//! Entries of the same moment come out by class and then in the order they were put in, so the order never depends on
//! how a heap happens to arrange equals.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use sk_core::SimTime;

/// Who goes first among entries of one moment: what has happened is seen before anybody acts on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// An informer learns of changes.
    Delivery,
    /// A request reaches the API server.
    Request,
    /// Somebody wakes up.
    Wake,
}

/// The heap.
#[derive(Clone, Debug)]
pub(crate) struct Agenda<T> {
    heap: BinaryHeap<Reverse<Entry<T>>>,
    added: u64,
}

#[derive(Clone, Debug)]
struct Entry<T> {
    order: (SimTime, Class, u64),
    what: T,
}

impl<T> Agenda<T> {
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::new(), added: 0 }
    }

    pub(crate) fn add(&mut self, at: SimTime, class: Class, what: T) {
        self.added += 1;
        self.heap.push(Reverse(Entry { order: (at, class, self.added), what }));
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
}

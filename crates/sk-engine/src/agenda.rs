//! The event heap of the discrete-event simulation.
//!
//! Entries for the same instant come out by class and then in insertion order, so the order never depends on how a
//! heap arranges equal entries. Most entries are due a fixed time after they are added, so they arrive in order of time:
//! these go to queues beside the heap, which cost nothing to keep in order.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

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
    /// Entries that came in order: news, and requests.
    soon: [VecDeque<Entry<T>>; 2],
    added: u64,
    /// With so many entries it is time to look for those that are of no use any more.
    sweep_at: usize,
}

/// When; and then in which class and after how many others, in one number.
type Order = (SimTime, u64);

/// Behind the class there is room for as many entries as a run of years can have.
const CLASS_SHIFT: u32 = 62;

fn order(at: SimTime, class: Class, added: u64) -> Order {
    (at, (class as u64) << CLASS_SHIFT | added)
}

#[derive(Clone, Debug)]
struct Entry<T> {
    order: Order,
    what: T,
}

impl<T> Agenda<T> {
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::new(), soon: [VecDeque::new(), VecDeque::new()], added: 0, sweep_at: FIRST_SWEEP }
    }

    pub(crate) fn add(&mut self, at: SimTime, class: Class, what: T) {
        self.added += 1;
        self.heap.push(Reverse(Entry { order: order(at, class, self.added), what }));
    }

    /// The same for an entry that is due as long after it was put in as others of its class are, or nearly always is.
    pub(crate) fn add_soon(&mut self, at: SimTime, class: Class, what: T) {
        let soon = &mut self.soon[usize::from(class == Class::Request)];
        if soon.back().is_some_and(|last| at < last.order.0) {
            return self.add(at, class, what);
        }
        self.added += 1;
        soon.push_back(Entry { order: order(at, class, self.added), what });
    }

    /// Has it grown so that entries should be looked through?
    pub(crate) fn is_large(&self) -> bool {
        self.len() >= self.sweep_at
    }

    fn len(&self) -> usize {
        self.heap.len() + self.soon.iter().map(VecDeque::len).sum::<usize>()
    }

    /// Keeps only what is still of use of what stands in the heap: the end of a pod that was planned for next week is not, once
    /// the pod is gone. Looks again when there are twice as many, so that each entry is looked at a few times at most.
    pub(crate) fn sweep(&mut self, mut is_of_use: impl FnMut(&T) -> bool) {
        self.heap.retain(|Reverse(entry)| is_of_use(&entry.what));
        assert!(self.len() <= MAX_ENTRIES, "more is planned than the objects of a full cluster can ask for");
        self.sweep_at = FIRST_SWEEP.max(self.len() * 2);
    }

    /// When the next entry is due.
    pub(crate) fn next_time(&self) -> Option<SimTime> {
        self.next().map(|(order, _)| order.0)
    }

    /// The place in time of the next entry, and which queue it stands in; `None`: the heap.
    fn next(&self) -> Option<(Order, Option<usize>)> {
        let queued = self.soon.iter().enumerate().filter_map(|(queue, soon)| Some((soon.front()?.order, Some(queue))));
        let heaped = self.heap.peek().map(|Reverse(entry)| (entry.order, None));
        queued.chain(heaped).min_by_key(|(order, _)| *order)
    }

    /// Takes the next entry that is due by `until`.
    pub(crate) fn pop_due(&mut self, until: SimTime) -> Option<(SimTime, T)> {
        let (_, queue) = self.next().filter(|((at, _), _)| *at <= until)?;
        let next = match queue {
            Some(queue) => self.soon[queue].pop_front(),
            None => self.heap.pop().map(|Reverse(entry)| entry),
        };
        next.map(|entry| (entry.order.0, entry.what))
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
    fn it_does_not_matter_where_an_entry_stands() {
        let (mut one, mut other) = (Agenda::new(), Agenda::new());
        let mut random = 1_u64;
        for number in 0..1_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = SimTime::from_secs((number + (random >> 33) % 50) as i64);
            let class = [Class::Delivery, Class::Request, Class::Wake][(random >> 60) as usize % 3];
            one.add(at, class, number);
            if class == Class::Wake {
                other.add(at, class, number);
            } else {
                other.add_soon(at, class, number);
            }
            if number % 3 == 0 {
                assert_eq!((one.next_time(), one.pop_due(at)), (other.next_time(), other.pop_due(at)));
            }
        }
        assert!(other.soon.iter().all(|soon| !soon.is_empty()), "queues are used");
        let rest = |mut agenda: Agenda<u64>| std::iter::from_fn(|| agenda.pop_due(SimTime::MAX)).collect::<Vec<_>>();
        assert_eq!(rest(one), rest(other));
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

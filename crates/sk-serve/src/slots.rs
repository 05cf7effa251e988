//! The slots of connections: which idle connection is closed when all slots are in use. Pure: time and sockets are
//! elsewhere.
//!
//! A new connection is always accepted. It replaces an idle connection: of the address with the most idle connections,
//! the oldest. So somebody who opens a thousand connections closes their own, and a probe that has just connected is
//! the last to be closed. The number of connections that do work is bounded below the number of slots, in total and per
//! address, so there is always an idle connection to replace.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

/// A connection; later ones are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Id(u64);

/// The connections that have a slot.
#[derive(Debug)]
pub(crate) struct Slots {
    most: usize,
    per_address: usize,
    most_at_work: usize,
    /// Of one address.
    most_at_work_of_one: usize,
    next: u64,
    slots: BTreeMap<Id, Slot>,
    at_work: usize,
}

#[derive(Debug)]
struct Slot {
    from: IpAddr,
    /// Requests whose callers are known and being served.
    works: usize,
}

impl Slots {
    /// At most so many connections in total, of one address, and at work. Fewer than all may work, and of each address fewer than its share.
    pub(crate) fn new(most: usize, per_address: usize, most_at_work: usize) -> Self {
        let (most, per_address) = (most.max(2), per_address.max(2));
        Self {
            most,
            per_address,
            most_at_work: most_at_work.min(most - 1),
            most_at_work_of_one: per_address - per_address.div_ceil(4),
            next: 0,
            slots: BTreeMap::new(),
            at_work: 0,
        }
    }

    /// Gives a new connection from this address a slot; another connection may be evicted for it.
    pub(crate) fn enter(&mut self, from: IpAddr) -> (Id, Option<Id>) {
        let of_address = self.slots.values().filter(|slot| slot.from == from).count();
        let crowded = if of_address >= self.per_address {
            Some(from)
        } else if self.slots.len() >= self.most {
            self.crowded_address()
        } else {
            None
        };
        let out = crowded.and_then(|address| self.oldest_idle(address));
        if let Some(out) = out {
            self.slots.remove(&out);
        }
        let id = Id(self.next);
        self.next += 1;
        self.slots.insert(id, Slot { from, works: 0 });
        (id, out)
    }

    /// A connection has ended. One that was evicted has no slot any more, which is fine.
    pub(crate) fn leave(&mut self, id: Id) {
        if let Some(Slot { works: 1.., .. }) = self.slots.remove(&id) {
            self.at_work -= 1;
        }
    }

    /// A caller of this connection is known and begins to work. `false` if too many others do, or it was evicted.
    pub(crate) fn begin_work(&mut self, id: Id) -> bool {
        let Some(Slot { from, works }) = self.slots.get(&id) else { return false };
        if *works == 0 {
            let of_address = self.slots.values().filter(|slot| slot.from == *from && slot.works > 0).count();
            if self.at_work >= self.most_at_work || of_address >= self.most_at_work_of_one {
                return false;
            }
            self.at_work += 1;
        }
        let Some(slot) = self.slots.get_mut(&id) else { return false };
        slot.works += 1;
        true
    }

    /// The work is done.
    pub(crate) fn end_work(&mut self, id: Id) {
        let Some(slot) = self.slots.get_mut(&id).filter(|slot| slot.works > 0) else { return };
        slot.works -= 1;
        if slot.works == 0 {
            self.at_work -= 1;
        }
    }

    fn oldest_idle(&self, from: IpAddr) -> Option<Id> {
        self.slots.iter().find(|(_, slot)| slot.from == from && slot.works == 0).map(|(id, _)| *id)
    }

    /// The address with the most idle connections; of several, the one that was there first.
    fn crowded_address(&self) -> Option<IpAddr> {
        let mut counts: HashMap<IpAddr, (usize, std::cmp::Reverse<Id>)> = HashMap::new();
        for (id, slot) in self.slots.iter().filter(|(_, slot)| slot.works == 0) {
            counts.entry(slot.from).or_insert((0, std::cmp::Reverse(*id))).0 += 1;
        }
        counts.into_iter().max_by_key(|(_, count)| *count).map(|(address, _)| address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[test]
    fn an_address_that_has_its_share_replaces_its_own_oldest_idle_connection() {
        let mut slots = Slots::new(10, 2, 5);
        let (first, _) = slots.enter(address(1));
        let (second, _) = slots.enter(address(1));
        assert!(slots.begin_work(first), "there is room for work");
        assert_eq!(slots.enter(address(1)).1, Some(second), "who is at work stays");
        assert_eq!(slots.enter(address(2)).1, None, "others have their own share");
    }

    #[test]
    fn when_all_slots_are_taken_the_address_with_the_most_idle_connections_makes_room() {
        let mut slots = Slots::new(4, 4, 2);
        let (quiet, _) = slots.enter(address(1));
        let (loud, _) = slots.enter(address(2));
        slots.enter(address(2));
        slots.enter(address(2));
        assert_eq!(slots.enter(address(3)).1, Some(loud), "though another one is older");
        assert_eq!(slots.slots.len(), 4);
        assert!(slots.slots.contains_key(&quiet));
    }

    #[test]
    fn work_is_bounded_so_that_some_slots_always_turn_over() {
        let mut slots = Slots::new(4, 4, 2);
        let ids = [1, 2, 3, 4].map(|last| slots.enter(address(last)).0);
        assert!(slots.begin_work(ids[0]) && slots.begin_work(ids[1]));
        assert!(slots.begin_work(ids[1]), "a second request of the same connection takes no more");
        assert!(!slots.begin_work(ids[2]), "the last slots are for whoever comes next");
        assert_eq!(slots.enter(address(5)).1, Some(ids[2]));
        slots.end_work(ids[1]);
        assert_eq!(slots.at_work, 2, "its other request is still being served");
        slots.leave(ids[1]);
        assert_eq!(slots.at_work, 1);
        assert!(!slots.begin_work(ids[1]), "who has left works no more");
        slots.end_work(ids[1]);
        assert_eq!(slots.at_work, 1);
    }

    #[test]
    fn of_one_address_too_some_connections_always_turn_over() {
        let mut slots = Slots::new(100, 4, 50);
        let ids = [(); 4].map(|()| slots.enter(address(1)).0);
        assert_eq!(ids.iter().filter(|id| slots.begin_work(**id)).count(), 3);
        assert_eq!(slots.enter(address(1)).1, Some(ids[3]), "a probe from the same address comes in");
    }

    #[test]
    fn however_many_come_there_are_never_more_than_there_are_slots() {
        let mut slots = Slots::new(16, 8, 12);
        for number in 0..1_000_u32 {
            let (id, _) = slots.enter(address((number % 7) as u8));
            if number % 3 == 0 {
                slots.begin_work(id);
            }
            assert!(slots.slots.len() <= 16, "after {number}");
        }
    }
}

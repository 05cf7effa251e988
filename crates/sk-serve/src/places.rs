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

/// Who has a place.
#[derive(Debug)]
pub(crate) struct Places {
    most: usize,
    per_address: usize,
    most_at_work: usize,
    /// Of one address.
    most_at_work_of_one: usize,
    next: u64,
    seats: BTreeMap<Id, Seat>,
    at_work: usize,
}

#[derive(Debug)]
struct Seat {
    from: IpAddr,
    /// Requests whose callers are known and being served.
    works: usize,
}

impl Places {
    /// So many of all, of one address, and at work. Less than all may work, and of each address less than its share.
    pub(crate) fn new(most: usize, per_address: usize, most_at_work: usize) -> Self {
        let (most, per_address) = (most.max(2), per_address.max(2));
        Self {
            most,
            per_address,
            most_at_work: most_at_work.min(most - 1),
            most_at_work_of_one: per_address - per_address.div_ceil(4),
            next: 0,
            seats: BTreeMap::new(),
            at_work: 0,
        }
    }

    /// A connection comes from this address, and has a place; another one may lose its own for that.
    pub(crate) fn enter(&mut self, from: IpAddr) -> (Id, Option<Id>) {
        let of_address = self.seats.values().filter(|seat| seat.from == from).count();
        let crowded = if of_address >= self.per_address {
            Some(from)
        } else if self.seats.len() >= self.most {
            self.crowded_address()
        } else {
            None
        };
        let out = crowded.and_then(|address| self.oldest_idle(address));
        if let Some(out) = out {
            self.seats.remove(&out);
        }
        let id = Id(self.next);
        self.next += 1;
        self.seats.insert(id, Seat { from, works: 0 });
        (id, out)
    }

    /// A connection has ended. One that was pushed out has no place any more, which is all the same.
    pub(crate) fn leave(&mut self, id: Id) {
        if let Some(Seat { works: 1.., .. }) = self.seats.remove(&id) {
            self.at_work -= 1;
        }
    }

    /// A caller of this connection is known and begins to work. `false` if too many others do, or it was pushed out.
    pub(crate) fn begin_work(&mut self, id: Id) -> bool {
        let Some(Seat { from, works }) = self.seats.get(&id) else { return false };
        if *works == 0 {
            let of_address = self.seats.values().filter(|seat| seat.from == *from && seat.works > 0).count();
            if self.at_work >= self.most_at_work || of_address >= self.most_at_work_of_one {
                return false;
            }
            self.at_work += 1;
        }
        let Some(seat) = self.seats.get_mut(&id) else { return false };
        seat.works += 1;
        true
    }

    /// The work is done.
    pub(crate) fn end_work(&mut self, id: Id) {
        let Some(seat) = self.seats.get_mut(&id).filter(|seat| seat.works > 0) else { return };
        seat.works -= 1;
        if seat.works == 0 {
            self.at_work -= 1;
        }
    }

    fn oldest_idle(&self, from: IpAddr) -> Option<Id> {
        self.seats.iter().find(|(_, seat)| seat.from == from && seat.works == 0).map(|(id, _)| *id)
    }

    /// The address with the most idle connections; of several, the one that was there first.
    fn crowded_address(&self) -> Option<IpAddr> {
        let mut counts: HashMap<IpAddr, (usize, std::cmp::Reverse<Id>)> = HashMap::new();
        for (id, seat) in self.seats.iter().filter(|(_, seat)| seat.works == 0) {
            counts.entry(seat.from).or_insert((0, std::cmp::Reverse(*id))).0 += 1;
        }
        counts.into_iter().max_by_key(|(_, standing)| *standing).map(|(address, _)| address)
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
        let mut places = Places::new(10, 2, 5);
        let (first, _) = places.enter(address(1));
        let (second, _) = places.enter(address(1));
        assert!(places.begin_work(first), "there is room for work");
        assert_eq!(places.enter(address(1)).1, Some(second), "who is at work stays");
        assert_eq!(places.enter(address(2)).1, None, "others have their own share");
    }

    #[test]
    fn when_all_places_are_taken_the_address_with_the_most_idle_connections_makes_room() {
        let mut places = Places::new(4, 4, 2);
        let (quiet, _) = places.enter(address(1));
        let (loud, _) = places.enter(address(2));
        places.enter(address(2));
        places.enter(address(2));
        assert_eq!(places.enter(address(3)).1, Some(loud), "though another one is older");
        assert_eq!(places.seats.len(), 4);
        assert!(places.seats.contains_key(&quiet));
    }

    #[test]
    fn work_is_bounded_so_that_some_places_always_turn_over() {
        let mut places = Places::new(4, 4, 2);
        let ids = [1, 2, 3, 4].map(|last| places.enter(address(last)).0);
        assert!(places.begin_work(ids[0]) && places.begin_work(ids[1]));
        assert!(places.begin_work(ids[1]), "a second request of the same connection takes no more");
        assert!(!places.begin_work(ids[2]), "the last places are for whoever comes next");
        assert_eq!(places.enter(address(5)).1, Some(ids[2]));
        places.end_work(ids[1]);
        assert_eq!(places.at_work, 2, "its other request is still being served");
        places.leave(ids[1]);
        assert_eq!(places.at_work, 1);
        assert!(!places.begin_work(ids[1]), "who has left works no more");
        places.end_work(ids[1]);
        assert_eq!(places.at_work, 1);
    }

    #[test]
    fn of_one_address_too_some_connections_always_turn_over() {
        let mut places = Places::new(100, 4, 50);
        let ids = [(); 4].map(|()| places.enter(address(1)).0);
        assert_eq!(ids.iter().filter(|id| places.begin_work(**id)).count(), 3);
        assert_eq!(places.enter(address(1)).1, Some(ids[3]), "a probe from the same address comes in");
    }

    #[test]
    fn however_many_come_there_are_never_more_than_there_are_places() {
        let mut places = Places::new(16, 8, 12);
        for number in 0..1_000_u32 {
            let (id, _) = places.enter(address((number % 7) as u8));
            if number % 3 == 0 {
                places.begin_work(id);
            }
            assert!(places.seats.len() <= 16, "after {number}");
        }
    }
}

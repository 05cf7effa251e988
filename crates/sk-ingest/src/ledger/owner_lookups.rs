//! Lookups of owners that no watch covers: pending, in flight, and to be retried.

use std::collections::{BTreeMap, BTreeSet};

use sk_core::{SimDuration, SimTime};

use super::ownership::OwnerLookup;
use crate::uid::Uid;

/// How many lookups may be open, and how many may wait to be asked again. Beyond it owners are not asked for until
/// somebody else refers to them; their children are recorded all the same.
const MAX_LOOKUPS: usize = 4_096;

/// How long a lookup that failed waits at first: an API server that restarts is back in about that time.
const FIRST_PAUSE: SimDuration = SimDuration::from_secs(5);

/// How long it waits at most, twice as long after each failure: of an owner that must not be read at all,
/// [`MAX_LOOKUPS`] of them make 7 requests a second.
const LONGEST_PAUSE: SimDuration = SimDuration::from_mins(10);

/// The lookups.
#[derive(Debug, Default)]
pub(super) struct OwnerLookups {
    to_ask: Vec<OwnerLookup>,
    open: BTreeSet<Uid>,
    /// Those that failed: how long each waited last. One that is being asked again stays here.
    failed: BTreeMap<Uid, Failed>,
    /// When which of them is due.
    due: BTreeSet<(SimTime, Uid)>,
    unasked: u64,
}

#[derive(Debug)]
struct Failed {
    lookup: OwnerLookup,
    pause: SimDuration,
    due: SimTime,
}

impl OwnerLookups {
    /// Queues a lookup, unless it is queued already.
    pub(super) fn ask(&mut self, uid: Uid, lookup: OwnerLookup) {
        if self.open.contains(&uid) || self.failed.contains_key(&uid) {
            return;
        }
        if self.open.len() >= MAX_LOOKUPS {
            self.unasked += 1;
            return;
        }
        self.open.insert(uid);
        self.to_ask.push(lookup);
    }

    /// The lookup failed and is retried after a while.
    pub(super) fn failed(&mut self, now: SimTime, uid: Uid, lookup: &OwnerLookup) {
        self.open.remove(&uid);
        let before = self.failed.remove(&uid);
        if before.is_none() && self.failed.len() >= MAX_LOOKUPS {
            self.unasked += 1;
            return;
        }
        let pause = before.map_or(FIRST_PAUSE, |before| (before.pause + before.pause).min(LONGEST_PAUSE));
        let due = now + pause;
        self.due.insert((due, uid.clone()));
        self.failed.insert(uid, Failed { lookup: lookup.clone(), pause, due });
    }

    /// The lookup is done, or not needed.
    pub(super) fn forget(&mut self, uid: &Uid) {
        self.open.remove(uid);
        if let Some(failed) = self.failed.remove(uid) {
            self.due.remove(&(failed.due, uid.clone()));
        }
    }

    /// Nobody needs the answer any more: what failed is not asked again. One that is under way will be answered.
    pub(super) fn give_up(&mut self, uid: &Uid) {
        if !self.open.contains(uid) {
            self.forget(uid);
        }
    }

    /// What is to be asked now.
    pub(super) fn take(&mut self, now: SimTime) -> Vec<OwnerLookup> {
        while self.open.len() < MAX_LOOKUPS
            && let Some((due, _)) = self.due.first()
            && *due <= now
        {
            let Some((_, uid)) = self.due.pop_first() else { break };
            let Some(failed) = self.failed.get(&uid) else { continue };
            self.to_ask.push(failed.lookup.clone());
            self.open.insert(uid);
        }
        std::mem::take(&mut self.to_ask)
    }

    /// How many are to be asked or have been, without an answer so far.
    pub(super) fn open(&self) -> usize {
        self.open.len()
    }

    /// How many have failed and wait to be asked again.
    pub(super) fn failing(&self) -> usize {
        self.failed.len()
    }

    /// How many were not asked because there was no room.
    pub(super) fn unasked(&self) -> u64 {
        self.unasked
    }
}

#[cfg(test)]
mod tests {
    use sk_core::Gvk;

    use super::*;

    fn lookup(number: usize) -> OwnerLookup {
        OwnerLookup {
            kind: Gvk::new_static("x.io", "v1", "Thing"),
            namespace: None,
            name: "thing".into(),
            uid: number.to_string().into(),
        }
    }

    #[test]
    fn a_lookup_is_given_out_once_and_their_number_is_bounded() {
        let (mut lookups, now) = (OwnerLookups::default(), SimTime::EPOCH);
        for number in [0, 0].into_iter().chain(1..=MAX_LOOKUPS) {
            lookups.ask(Uid::new(&number.to_string()), lookup(number));
        }
        assert_eq!((lookups.take(now).len(), lookups.take(now).len()), (MAX_LOOKUPS, 0));
        assert_eq!(lookups.unasked(), 1);
        lookups.forget(&Uid::new("0"));
        lookups.ask(Uid::new("new"), lookup(1));
        assert_eq!(lookups.take(now).len(), 1);
    }

    #[test]
    fn a_lookup_that_fails_is_asked_again_ever_more_seldom() {
        let (mut lookups, uid) = (OwnerLookups::default(), Uid::new("1"));
        lookups.ask(uid.clone(), lookup(1));
        let mut now = SimTime::from_secs(0);
        lookups.take(now);
        for pause in [5, 10, 20, 40, 80, 160, 320, 600, 600] {
            lookups.failed(now, uid.clone(), &lookup(1));
            lookups.ask(uid.clone(), lookup(1));
            assert!(lookups.take(now + SimDuration::from_secs(pause - 1)).is_empty(), "{pause}");
            now += SimDuration::from_secs(pause);
            assert_eq!(lookups.take(now).len(), 1, "{pause}");
            assert!(lookups.take(now).is_empty(), "it is under way");
        }
        lookups.forget(&uid);
        assert!(lookups.take(now + LONGEST_PAUSE).is_empty(), "it was answered");
        assert_eq!((lookups.open(), lookups.failing(), lookups.due.len()), (0, 0, 0));
    }

    #[test]
    fn a_lookup_whose_answer_nobody_needs_is_not_asked_again() {
        let (mut lookups, uid) = (OwnerLookups::default(), Uid::new("1"));
        lookups.failed(SimTime::EPOCH, uid.clone(), &lookup(1));
        lookups.give_up(&uid);
        assert!(lookups.take(SimTime::EPOCH + LONGEST_PAUSE).is_empty());
        assert_eq!(lookups.failing(), 0);
    }
}

//! ControllerExpectations: creations and deletions that a controller has sent and not yet seen in its cache.
//!
//! Informer caches lag behind. Without expectations, a controller that has just created three pods and sees none of
//! them would create three more (`controller_utils.go`, `ControllerExpectations`, 1.36).

use std::collections::BTreeMap;

use sk_apiserver::ObjectId;
use sk_core::{SimDuration, SimTime};

/// After this long a controller no longer waits for what it expects.
const TIMEOUT: SimDuration = SimDuration::from_mins(5);

#[derive(Clone, Debug)]
struct Expected {
    creations: i64,
    deletions: i64,
    since: SimTime,
}

/// Expectations by the key of the owner.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expectations {
    expected: BTreeMap<ObjectId, Expected>,
}

impl Expectations {
    /// Has everything been seen, or is it no longer waited for?
    pub(crate) fn satisfied(&self, owner: ObjectId, now: SimTime) -> bool {
        self.expected.get(&owner).is_none_or(|expected| {
            (expected.creations <= 0 && expected.deletions <= 0) || now.since(expected.since) > TIMEOUT
        })
    }

    /// The owner is about to do this.
    pub(crate) fn expect(&mut self, owner: ObjectId, creations: i64, deletions: i64, now: SimTime) {
        self.expected.insert(owner, Expected { creations, deletions, since: now });
    }

    /// A creation was seen, or will never be.
    pub(crate) fn creation_seen(&mut self, owner: ObjectId) {
        if let Some(expected) = self.expected.get_mut(&owner) {
            expected.creations -= 1;
        }
    }

    /// A deletion was seen, or will never be.
    pub(crate) fn deletion_seen(&mut self, owner: ObjectId) {
        if let Some(expected) = self.expected.get_mut(&owner) {
            expected.deletions -= 1;
        }
    }

    /// The owner is gone.
    pub(crate) fn forget(&mut self, owner: ObjectId) {
        self.expected.remove(&owner);
    }
}

#[cfg(test)]
mod tests {
    use sk_apiserver::{ApiServer, Request};

    use super::*;

    fn some_object() -> ObjectId {
        let mut server = ApiServer::new(1);
        let namespace = crate::controllers::new_namespace("a");
        server.handle(SimTime::EPOCH, Request::create(namespace)).unwrap();
        server.store().watch(0).unwrap().next().unwrap().id
    }

    #[test]
    fn an_owner_waits_until_all_is_seen_or_five_minutes_have_passed() {
        let (owner, now) = (some_object(), SimTime::from_secs(0));
        let mut expectations = Expectations::default();
        assert!(expectations.satisfied(owner, now));
        expectations.expect(owner, 2, 0, now);
        expectations.creation_seen(owner);
        assert!(!expectations.satisfied(owner, now));
        assert!(expectations.satisfied(owner, SimTime::from_secs(301)));
        expectations.creation_seen(owner);
        assert!(expectations.satisfied(owner, now));
    }
}

//! Owners that no watch covers, as the API server described them. An entry is kept as long as a live object refers to
//! it, because the log treats a forgotten link as deleted; after that, as long as there is space.

use std::collections::BTreeMap;

use sk_store::log::Link;

use crate::uid::Uid;

/// How many owners are remembered that nobody refers to just now: 16,384 at about 400 bytes is 6.5 MB. One that is
/// forgotten is asked for again when somebody new refers to it. Those in use are as many as what lives refers to.
pub(super) const MAX_IDLE: usize = 16_384;

/// The owners by uid, and those that nobody needs, the longest unused first.
#[derive(Debug, Default)]
pub(super) struct KnownOwners {
    by_uid: BTreeMap<Uid, Known>,
    idle: BTreeMap<u64, Uid>,
    uses: u64,
}

#[derive(Debug)]
struct Known {
    /// Nothing if there is nobody of that name.
    link: Option<Link>,
    /// Its place among the idle ones.
    idle_since: Option<u64>,
}

impl KnownOwners {
    pub(super) fn len(&self) -> usize {
        self.by_uid.len()
    }

    /// What was said: nothing yet, that there is nobody, or who it is.
    pub(super) fn get(&self, uid: &Uid) -> Option<Option<&Link>> {
        self.by_uid.get(uid).map(|known| known.link.as_ref())
    }

    /// Says what was known before.
    pub(super) fn remember(&mut self, uid: &Uid, link: Option<Link>, is_idle: bool) -> Option<Link> {
        let before = self.by_uid.insert(uid.clone(), Known { link, idle_since: None });
        if let Some(place) = before.as_ref().and_then(|known| known.idle_since) {
            self.idle.remove(&place);
        }
        if is_idle {
            self.release(uid);
        }
        before.and_then(|known| known.link)
    }

    /// An object refers to it from now on.
    pub(super) fn hold(&mut self, uid: &Uid) {
        if let Some(place) = self.by_uid.get_mut(uid).and_then(|known| known.idle_since.take()) {
            self.idle.remove(&place);
        }
    }

    /// No object refers to it any more.
    pub(super) fn release(&mut self, uid: &Uid) {
        let Some(known) = self.by_uid.get_mut(uid).filter(|known| known.idle_since.is_none()) else { return };
        self.uses += 1;
        known.idle_since = Some(self.uses);
        self.idle.insert(self.uses, uid.clone());
    }

    /// Forgets the owner that was not needed for longest if there are too many of them.
    pub(super) fn forget_oldest_idle(&mut self) -> Option<Option<Link>> {
        if self.idle.len() <= MAX_IDLE {
            return None;
        }
        let (_, oldest) = self.idle.pop_first()?;
        self.by_uid.remove(&oldest).map(|known| known.link)
    }
}

#[cfg(test)]
mod tests {
    use sk_core::{Gvk, ObjectKey, ObjectRef};

    use super::*;

    fn link(name: &str) -> Link {
        let object = ObjectRef::new(Gvk::new_static("x.io", "v1", "Thing"), ObjectKey::cluster(name));
        Link { object, uid: name.into(), owners: Vec::new() }
    }

    #[test]
    fn the_owner_that_nobody_has_needed_for_longest_is_forgotten_and_one_in_use_never() {
        let mut known_owners = KnownOwners::default();
        let uid = |number: usize| Uid::new(&number.to_string());
        for number in 0..=MAX_IDLE {
            known_owners.remember(&uid(number), Some(link(&number.to_string())), true);
        }
        known_owners.hold(&uid(0));
        assert_eq!(known_owners.forget_oldest_idle(), None, "one of them is in use");
        known_owners.remember(&uid(MAX_IDLE + 1), None, true);
        assert_eq!(known_owners.forget_oldest_idle(), Some(Some(link("1"))));
        assert_eq!(known_owners.forget_oldest_idle(), None);
        assert!(known_owners.get(&uid(0)).is_some() && known_owners.get(&uid(1)).is_none());
        assert_eq!((known_owners.len(), known_owners.idle.len()), (MAX_IDLE + 1, MAX_IDLE));
        known_owners.release(&uid(0));
        assert_eq!(known_owners.forget_oldest_idle(), Some(Some(link("2"))), "it is the newest idle one again");
    }
}

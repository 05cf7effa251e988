//! Resolves owners. Every ownerReference is followed, first through watched objects; the caller asks the API server
//! about owners that no watch covers, and what it says is cached within a bound.
//!
//! An owner of a watched kind is never asked for: its watch delivers it, or it is gone. A failed lookup is tried
//! again with growing delays.

use std::collections::BTreeMap;

use sk_core::{Gvk, ObjectKey, ObjectRef, OwnerReference, SimTime, SmolStr};
use sk_store::log::{Fact, Link};

use super::{KindId, Ledger, Place};
use crate::sighting::Sighting;
use crate::uid::Uid;

/// How many ancestors are followed. Real chains have two or three links; this ends cycles and nonsense.
const MAX_ANCESTORS: usize = 32;

/// An owner that the API server has to be asked about: a GET of its metadata is enough.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OwnerLookup {
    /// Its kind.
    pub kind: Gvk,
    /// Where its child lives; of a cluster-scoped kind it means nothing.
    pub namespace: Option<SmolStr>,
    /// Its name.
    pub name: SmolStr,
    /// Which of those that had the name.
    pub uid: SmolStr,
}

/// How a lookup ended.
#[derive(Clone, Debug)]
pub enum LookupResult {
    /// This is who has the name.
    Found(Box<Sighting>),
    /// There is nobody of that name, or nothing of that kind is served.
    Absent,
    /// The lookup failed: retry later.
    Failed,
}

/// How many live things refer to each owner. It grows with what lives in the cluster.
#[derive(Debug, Default)]
pub(super) struct Referrers(BTreeMap<Uid, u32>);

impl Referrers {
    fn has(&self, owner: &Uid) -> bool {
        self.0.contains_key(owner)
    }

    /// Says whether it is the first.
    fn add(&mut self, owner: &Uid) -> bool {
        let count = self.0.entry(owner.clone()).or_default();
        *count += 1;
        *count == 1
    }

    /// Says whether it was the last.
    fn remove(&mut self, owner: &Uid) -> bool {
        let Some(count) = self.0.get_mut(owner) else { return false };
        *count -= 1;
        let was_last = *count == 0;
        if was_last {
            self.0.remove(owner);
        }
        was_last
    }
}

/// The ancestors of an object.
#[derive(Debug, Default)]
pub(super) struct Ancestry {
    /// The recorded ones, nearest first.
    pub(super) recorded: Vec<(KindId, ObjectKey)>,
    /// Those that may still turn up.
    pub(super) unknown: Vec<Uid>,
}

impl Ledger {
    /// The ancestors of an object with these owners.
    pub(super) fn ancestry(&self, owners: &[OwnerReference]) -> Ancestry {
        let mut found = Ancestry::default();
        let mut queue: Vec<&OwnerReference> = owners.iter().collect();
        let mut next = 0;
        while next < queue.len() && next < MAX_ANCESTORS {
            let uid = Uid::new(&queue[next].uid);
            next += 1;
            let owners: &[OwnerReference] = match self.by_uid.get(&uid) {
                Some(Place::Object(kind, key)) => match self.objects.get(&(*kind, key.clone())) {
                    Some(object) => {
                        if !object.is_link() {
                            found.recorded.push((*kind, key.clone()));
                        }
                        &object.owners
                    }
                    None => &[],
                },
                Some(Place::Pod(key)) => self.pods.get(key).map_or(&[], |pod| pod.owners()),
                Some(Place::Node) => &[],
                None => match self.known_owners.get(&uid) {
                    Some(Some(link)) => &link.owners,
                    Some(None) => &[],
                    None => {
                        found.unknown.push(uid);
                        &[]
                    }
                },
            };
            let unseen = owners.iter().filter(|owner| queue.iter().all(|queued| queued.uid != owner.uid));
            let unseen: Vec<_> = unseen.collect();
            queue.extend(unseen);
        }
        found
    }

    /// Has those of these owners asked for that are neither known nor watched.
    pub(super) fn ask_for_unknown(&mut self, namespace: Option<&SmolStr>, owners: &[OwnerReference]) {
        for owner in owners.iter().filter(|owner| !self.watched.contains(&owner.gvk)) {
            let uid = Uid::new(&owner.uid);
            if self.by_uid.contains_key(&uid) || self.known_owners.get(&uid).is_some() {
                continue;
            }
            let lookup = OwnerLookup {
                kind: owner.gvk.clone(),
                namespace: namespace.cloned(),
                name: owner.name.clone(),
                uid: owner.uid.clone(),
            };
            self.lookups.ask(uid, lookup);
        }
    }

    /// What the API server said about an owner. If there is none the chain ends there, and nothing that was recorded is
    /// lost; a lookup that failed is given out again after a while, as long as somebody refers to that owner.
    pub fn lookup_ended(&mut self, now: SimTime, lookup: &OwnerLookup, result: LookupResult, out: &mut Vec<Fact>) {
        let uid = Uid::new(&lookup.uid);
        let link = match result {
            LookupResult::Failed if self.referrers.has(&uid) => return self.lookups.failed(now, uid, lookup),
            LookupResult::Failed => return self.lookups.forget(&uid),
            // Another object may have the name by now.
            LookupResult::Found(sighting) if sighting.uid == lookup.uid => {
                let Sighting { object, uid, owners, .. } = *sighting;
                Some(Link { object, uid, owners })
            }
            LookupResult::Found(_) | LookupResult::Absent => None,
        };
        self.lookups.forget(&uid);
        if let Some(link) = &link {
            out.push(Fact::Link(link.clone()));
            self.ask_for_unknown(link.object.key.namespace.as_ref().or(lookup.namespace.as_ref()), &link.owners);
        }
        self.remember(&uid, link);
        self.forget_idle_owners(out);
        self.owner_arrived(now, &uid, out);
    }

    /// Takes in an owner that the log knows.
    pub(super) fn restore_known_owner(&mut self, link: Link) {
        self.remember(&Uid::new(&link.uid), Some(link));
    }

    fn remember(&mut self, uid: &Uid, link: Option<Link>) {
        self.refer(link.as_ref().map_or(&[], |link| &link.owners));
        let is_idle = !self.referrers.has(uid);
        if let Some(before) = self.known_owners.remember(uid, link, is_idle) {
            self.release(&before.owners);
        }
    }

    /// A live object refers to these owners.
    pub(super) fn refer(&mut self, owners: &[OwnerReference]) {
        for uid in owners.iter().map(|owner| Uid::new(&owner.uid)) {
            if self.referrers.add(&uid) {
                self.known_owners.hold(&uid);
            }
        }
    }

    /// An object that referred to these owners is gone, or refers to others.
    pub(super) fn unrefer(&mut self, owners: &[OwnerReference], out: &mut Vec<Fact>) {
        self.release(owners);
        self.forget_idle_owners(out);
    }

    fn release(&mut self, owners: &[OwnerReference]) {
        for uid in owners.iter().map(|owner| Uid::new(&owner.uid)) {
            if self.referrers.remove(&uid) {
                self.known_owners.release(&uid);
                self.lookups.give_up(&uid);
            }
        }
    }

    /// Owners that nobody has referred to for longest make room for newer ones.
    fn forget_idle_owners(&mut self, out: &mut Vec<Fact>) {
        while let Some(forgotten) = self.known_owners.forget_oldest_idle() {
            let Some(link) = forgotten else { continue };
            self.release(&link.owners);
            out.push(Fact::Unlinked(link.uid));
        }
    }

    /// A recorded object by its place.
    pub(super) fn object_ref(&self, kind: KindId, key: &ObjectKey) -> ObjectRef {
        ObjectRef::new(self.kinds.gvk(kind).clone(), key.clone())
    }
}

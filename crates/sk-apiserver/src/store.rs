//! The store: all objects, the one function that changes them, and the log of changes that every watcher reads.
//!
//! An object has a small id for as long as it exists. A log entry holds the id and the versions before and after the
//! change. A process that has read the log up to its *cursor* therefore sees every object as of that change
//! ([`Store::view`]) without a copy of its own: versions are shared, and a reader walks back from the newest one. Ids,
//! names and index entries of deleted objects stay until every process has read past the deletion
//! ([`Store::reclaim`]).

use std::collections::VecDeque;
use std::sync::Arc;

pub(crate) use sk_core::limits::MAX_OBJECTS;
use sk_core::lookup::{Lookup, hash_of, hash_of_texts};
use sk_core::{Gvk, ObjectKey, SimTime, SmolStr};

use crate::index::Index;
use crate::kinds::Body;
use crate::object::Identity;
use crate::view::View;
use crate::{Object, OwnerRef, Uid};

/// How many changes the log keeps. An entry is 32 bytes and holds two versions that the store itself may have dropped;
/// a version of a pod is about 0.4 KiB, so a full log of distinct ones is at most 16,384 × 0.8 KiB = 13 MiB.
pub const LOG_CAPACITY: usize = 1 << 14;

/// The id of an object: small, and reused only when no reader can still refer to the old object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(u32);

impl ObjectId {
    /// As a place in a table.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is new.
    Added,
    /// It is different.
    Modified,
    /// It was deleted; the event carries its last state.
    Deleted,
}

/// One entry of the log.
#[derive(Clone, Debug)]
pub struct WatchEvent {
    /// When it was committed.
    pub at: SimTime,
    /// What happened.
    pub change: Change,
    /// To which object.
    pub id: ObjectId,
    /// The object after it, with the resource version of the change; for a deletion, its last state.
    pub object: Arc<Object>,
    /// The object before it.
    pub before: Option<Arc<Object>>,
}

/// The log no longer reaches back to the watcher's version (410 Gone): list again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too old resource version: {asked} ({oldest})")]
pub struct Expired {
    /// After which version the watcher wanted to go on.
    pub asked: u64,
    /// The oldest version it could go on from.
    pub oldest: u64,
}

/// The objects and their history.
#[derive(Clone, Debug, Default)]
pub struct Store {
    slots: Vec<Slot>,
    free: Vec<ObjectId>,
    names: Lookup<ObjectId>,
    uids: Lookup<ObjectId>,
    pub(crate) by_owner: Index<Uid>,
    pub(crate) by_namespace: Index<SmolStr>,
    pub(crate) pods_by_node: Index<SmolStr>,
    /// Objects without a controller, which a controller may adopt, by namespace.
    pub(crate) orphans: Index<SmolStr>,
    live: usize,
    resource_version: u64,
    log: VecDeque<WatchEvent>,
    /// Deleted objects whose ids are not reused yet, oldest first: the version of the deletion, and the id.
    buried: VecDeque<(u64, ObjectId)>,
}

/// The place of one object.
#[derive(Clone, Debug)]
struct Slot {
    identity: Arc<Identity>,
    current: Option<Arc<Object>>,
    /// The version of its newest change.
    version: u64,
}

impl Store {
    /// The version of the newest change.
    pub fn resource_version(&self) -> u64 {
        self.resource_version
    }

    /// How many objects there are.
    pub fn objects(&self) -> usize {
        self.live
    }

    /// Is there no room for another object?
    pub(crate) fn is_full(&self) -> bool {
        self.live >= MAX_OBJECTS
    }

    /// The objects as they are now.
    pub fn now(&self) -> View<'_> {
        View::new(self, self.resource_version)
    }

    /// The objects as a process knows them that has read the log up to `cursor`, which must be within the log.
    pub fn view(&self, cursor: u64) -> View<'_> {
        View::new(self, cursor)
    }

    /// The object of that kind and name as it is now.
    pub fn find(&self, gvk: &Gvk, key: &ObjectKey) -> Option<(ObjectId, &Arc<Object>)> {
        self.now().find(gvk, key)
    }

    /// One object as it is now.
    pub fn get(&self, gvk: &Gvk, key: &ObjectKey) -> Option<&Arc<Object>> {
        self.find(gvk, key).map(|(_, object)| object)
    }

    /// All objects of a kind, by namespace and name. Visits every object: for users, not for controllers.
    pub fn list(&self, gvk: &Gvk) -> impl Iterator<Item = &Arc<Object>> + use<'_> {
        let is_one = |object: &&Arc<Object>| object.gvk.kind == gvk.kind && object.gvk.group == gvk.group;
        let mut objects: Vec<_> = self.all().filter(is_one).collect();
        objects.sort_by(|one, other| one.key.cmp(&other.key));
        objects.into_iter()
    }

    /// All objects of all kinds.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.slots.iter().filter_map(|slot| slot.current.as_ref())
    }

    /// Stores a new or changed object. Nothing else changes state, so its resource version is the order of the run.
    pub(crate) fn commit(&mut self, now: SimTime, id: Option<ObjectId>, mut object: Object) -> Arc<Object> {
        self.resource_version += 1;
        object.resource_version = self.resource_version;
        let object = Arc::new(object);
        let (id, change) = match id {
            Some(id) => (id, Change::Modified),
            None => (self.allot(&object), Change::Added),
        };
        let slot = &mut self.slots[id.index()];
        let before = slot.current.replace(object.clone());
        slot.version = self.resource_version;
        self.reindex(id, before.as_deref(), Some(&object));
        self.record(WatchEvent { at: now, change, id, object: object.clone(), before });
        object
    }

    /// Deletes an object; the log gets its last state with the version of the deletion.
    pub(crate) fn commit_removal(&mut self, now: SimTime, id: ObjectId) -> Option<Arc<Object>> {
        let slot = &mut self.slots[id.index()];
        let before = slot.current.take()?;
        self.resource_version += 1;
        slot.version = self.resource_version;
        let mut object = Object::clone(&before);
        object.resource_version = self.resource_version;
        let object = Arc::new(object);
        self.live -= 1;
        self.reindex(id, Some(&before), None);
        self.buried.push_back((self.resource_version, id));
        self.record(WatchEvent { at: now, change: Change::Deleted, id, object: object.clone(), before: Some(before) });
        Some(object)
    }

    /// All changes after version `since`, oldest first.
    pub fn watch(&self, since: u64) -> Result<impl Iterator<Item = &WatchEvent>, Expired> {
        let oldest = self.oldest();
        if since < oldest {
            return Err(Expired { asked: since, oldest });
        }
        let skip = usize::try_from(since - oldest).unwrap_or(usize::MAX);
        Ok(self.log.range(skip.min(self.log.len())..))
    }

    /// The entry of the change that has this version.
    pub fn event(&self, version: u64) -> Option<&WatchEvent> {
        let place = version.checked_sub(self.oldest() + 1)?;
        self.log.get(usize::try_from(place).ok()?)
    }

    /// The oldest version from which a watcher can still go on.
    pub fn oldest(&self) -> u64 {
        self.resource_version - self.log.len() as u64
    }

    /// How many changes fit into the log before it forgets what a reader at `cursor` has not read.
    pub fn room_after(&self, cursor: u64) -> usize {
        LOG_CAPACITY.saturating_sub(usize::try_from(self.resource_version - cursor).unwrap_or(usize::MAX))
    }

    /// Lets go of what was removed at or before version `seen_by_all`.
    pub fn reclaim(&mut self, seen_by_all: u64) {
        let Self { slots, by_owner, pods_by_node, orphans, .. } = self;
        let now = |id: ObjectId| slots[id.index()].current.as_deref();
        by_owner.reclaim(seen_by_all, |uid, id| {
            now(id).is_some_and(|object| object.meta.owners.iter().any(|owner| owner.uid == *uid))
        });
        pods_by_node.reclaim(seen_by_all, |node, id| node_of(now(id)) == Some(node));
        orphans.reclaim(seen_by_all, |_, id| orphan_in(now(id)).is_some());
        while self.buried.front().is_some_and(|(version, _)| *version <= seen_by_all) {
            let Some((_, id)) = self.buried.pop_front() else { return };
            let identity = self.slots[id.index()].identity.clone();
            self.names.remove(name_hash(&identity.gvk, &identity.key), |known| *known == id);
            self.uids.remove(hash_of(&identity.uid), |known| *known == id);
            if let Some(namespace) = &identity.key.namespace {
                self.by_namespace.remove(namespace, id);
            }
            self.free.push(id);
        }
    }

    /// Lets go of the log up to version `read_by_all`, which no reader asks for again. Otherwise it keeps
    /// [`LOG_CAPACITY`] changes for later watchers.
    pub fn forget(&mut self, read_by_all: u64) {
        let read = usize::try_from(read_by_all.saturating_sub(self.oldest())).unwrap_or(usize::MAX);
        self.log.drain(..read.min(self.log.len()));
    }

    /// Every id that was ever given.
    pub(crate) fn ids(&self) -> impl Iterator<Item = ObjectId> + use<> {
        (0..u32::try_from(self.slots.len()).unwrap_or(u32::MAX)).map(ObjectId)
    }

    /// The version of an object that a reader at `cursor` sees.
    pub(crate) fn at(&self, id: ObjectId, cursor: u64) -> Option<&Arc<Object>> {
        let slot = self.slots.get(id.index())?;
        let (mut version, mut object) = (slot.version, slot.current.as_ref());
        while version > cursor {
            object = self.event(version)?.before.as_ref();
            version = object.map_or(0, |object| object.resource_version);
        }
        object
    }

    /// The ids that the name has or had lately.
    pub(crate) fn named(&self, gvk: &Gvk, key: &ObjectKey, accept: impl Fn(ObjectId) -> bool) -> Option<ObjectId> {
        let is_it = |id: &ObjectId| {
            let identity = &self.slots[id.index()].identity;
            identity.key == *key && same_resource(&identity.gvk, gvk) && accept(*id)
        };
        self.names.find(name_hash(gvk, key), is_it).copied()
    }

    /// The id of the object with this uid, also if it was deleted recently.
    pub(crate) fn with_uid(&self, uid: Uid) -> Option<ObjectId> {
        self.uids.find(hash_of(&uid), |id| self.slots[id.index()].identity.uid == uid).copied()
    }

    fn allot(&mut self, object: &Object) -> ObjectId {
        let identity = object.identity().clone();
        let slot = Slot { identity: identity.clone(), current: None, version: 0 };
        let id = match self.free.pop() {
            Some(id) => {
                self.slots[id.index()] = slot;
                id
            }
            None => {
                self.slots.push(slot);
                ObjectId(u32::try_from(self.slots.len() - 1).expect("there are at most MAX_OBJECTS and what is buried"))
            }
        };
        let slots = &self.slots;
        let rehash = |id: &ObjectId| {
            let identity = &slots[id.index()].identity;
            name_hash(&identity.gvk, &identity.key)
        };
        self.names.insert(name_hash(&identity.gvk, &identity.key), id, rehash);
        self.uids.insert(hash_of(&identity.uid), id, |id| hash_of(&slots[id.index()].identity.uid));
        if let Some(namespace) = &identity.key.namespace {
            self.by_namespace.insert(namespace, id);
        }
        self.live += 1;
        id
    }

    /// Keeps the indexes true; nothing is touched that did not change.
    fn reindex(&mut self, id: ObjectId, before: Option<&Object>, after: Option<&Object>) {
        let (old, new) = (owners_of(before), owners_of(after));
        if !std::ptr::eq(old, new) && old != new {
            new.iter().for_each(|owner| self.by_owner.insert(&owner.uid, id));
            let gone = old.iter().filter(|owner| !new.iter().any(|kept| kept.uid == owner.uid));
            gone.for_each(|owner| self.by_owner.retire(owner.uid, id, self.resource_version));
        }
        let (old, new) = (node_of(before), node_of(after));
        if old != new {
            new.into_iter().for_each(|node| self.pods_by_node.insert(node, id));
            old.into_iter().for_each(|node| self.pods_by_node.retire(node.clone(), id, self.resource_version));
        }
        // An object never leaves its namespace.
        match (orphan_in(before), orphan_in(after)) {
            (None, Some(namespace)) => self.orphans.insert(namespace, id),
            (Some(namespace), None) => self.orphans.retire(namespace.clone(), id, self.resource_version),
            (None, None) | (Some(_), Some(_)) => {}
        }
    }

    fn record(&mut self, event: WatchEvent) {
        if self.log.len() == LOG_CAPACITY {
            self.log.pop_front();
        }
        self.log.push_back(event);
    }
}

/// Versions of a kind are views of the same objects.
fn same_resource(one: &Gvk, other: &Gvk) -> bool {
    std::ptr::eq(one, other) || (one.kind == other.kind && one.group == other.group)
}

fn name_hash(gvk: &Gvk, key: &ObjectKey) -> u64 {
    hash_of_texts([&gvk.group, &gvk.kind, key.namespace_or_empty(), &key.name])
}

fn owners_of(object: Option<&Object>) -> &[OwnerRef] {
    object.map_or(&[], |object| &object.meta.owners)
}

fn node_of(object: Option<&Object>) -> Option<&SmolStr> {
    object.and_then(Object::pod).and_then(|pod| pod.node_name.as_ref())
}

/// The namespace of a pod or ReplicaSet without a controller.
fn orphan_in(object: Option<&Object>) -> Option<&SmolStr> {
    let is_adopted = |object: &Object| matches!(object.body, Body::Pod(_) | Body::ReplicaSet(_));
    object.filter(|object| is_adopted(object) && object.controller().is_none())?.key.namespace.as_ref()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn widget(name: &str) -> Object {
        let json =
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name, "namespace": "n"}});
        Object::from_json(json).unwrap()
    }

    fn find(store: &Store, name: &str) -> Option<ObjectId> {
        let object = widget(name);
        store.find(&object.gvk, &object.key).map(|(id, _)| id)
    }

    #[test]
    fn every_change_gets_the_next_version_and_is_logged_once() {
        let mut store = Store::default();
        store.commit(SimTime::EPOCH, None, widget("a"));
        let id = find(&store, "a");
        store.commit(SimTime::EPOCH, id, widget("a"));
        store.commit_removal(SimTime::EPOCH, id.unwrap());
        let seen: Vec<_> = store.watch(0).unwrap().map(|event| (event.change, event.object.resource_version)).collect();
        assert_eq!(seen, [(Change::Added, 1), (Change::Modified, 2), (Change::Deleted, 3)]);
        assert_eq!(store.watch(2).unwrap().count(), 1);
        assert_eq!(store.watch(3).unwrap().count(), 0);
        assert_eq!(store.all().count(), 0);
    }

    #[test]
    fn a_watcher_that_lags_too_far_is_told_to_list_again() {
        let mut store = Store::default();
        store.commit(SimTime::EPOCH, None, widget("a"));
        let id = find(&store, "a");
        for _ in 0..LOG_CAPACITY + 9 {
            store.commit(SimTime::EPOCH, id, widget("a"));
        }
        assert_eq!(store.watch(9).map(Iterator::count), Err(Expired { asked: 9, oldest: 10 }));
        assert_eq!(store.watch(10).map(Iterator::count), Ok(LOG_CAPACITY));
    }

    #[test]
    fn what_every_reader_has_read_is_forgotten_and_the_rest_is_not() {
        let mut store = Store::default();
        for name in ["a", "b", "c"] {
            store.commit(SimTime::EPOCH, None, widget(name));
        }
        store.forget(2);
        assert_eq!(store.watch(2).map(Iterator::count), Ok(1));
        assert_eq!(store.watch(1).map(Iterator::count), Err(Expired { asked: 1, oldest: 2 }));
        assert!(store.event(3).is_some() && store.event(2).is_none());
        store.forget(99);
        store.commit(SimTime::EPOCH, None, widget("d"));
        assert_eq!(store.watch(3).map(Iterator::count), Ok(1));
    }

    #[test]
    fn a_reader_sees_every_object_as_of_its_cursor() {
        let mut store = Store::default();
        store.commit(SimTime::EPOCH, None, widget("a"));
        let old = find(&store, "a").unwrap();
        store.commit(SimTime::EPOCH, Some(old), widget("a"));
        store.commit_removal(SimTime::EPOCH, old);
        store.commit(SimTime::EPOCH, None, widget("a"));
        let new = find(&store, "a").unwrap();
        let object = widget("a");
        let at = |cursor: u64| {
            let (id, object) = store.view(cursor).find(&object.gvk, &object.key)?;
            Some((id, object.resource_version))
        };
        assert_eq!([0, 1, 2, 3, 4].map(at), [None, Some((old, 1)), Some((old, 2)), None, Some((new, 4))]);
        assert_ne!(old, new, "an id is not given away while somebody may still mean the old object");
        store.reclaim(4);
        store.commit(SimTime::EPOCH, None, widget("b"));
        assert_eq!(find(&store, "b"), Some(old), "then it is");
        assert_eq!(find(&store, "a"), Some(new));
    }

    #[test]
    fn an_index_is_untouched_by_changes_of_what_it_does_not_index() {
        let owner = |uid: &str| json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "set", "uid": uid, "controller": true}]);
        let pod = |label: &str, owners: serde_json::Value, node: Option<&str>| {
            let mut json = json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": "p", "namespace": "n", "labels": {"l": label}, "ownerReferences": owners},
                "spec": {"containers": [{"name": "main", "image": "a:1"}]},
            });
            json["spec"]["nodeName"] = json!(node);
            Object::from_json(json).unwrap()
        };
        let (one, other) = ("00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002");
        let mut store = Store::default();
        let mut id = None;
        let mut written = Vec::new();
        for object in [
            pod("a", owner(one), None),
            pod("b", owner(one), None),
            pod("b", owner(one), Some("node")),
            pod("c", owner(one), Some("node")),
            pod("c", owner(other), Some("node")),
            pod("d", json!([]), Some("node")),
        ] {
            store.commit(SimTime::EPOCH, id, object);
            id = store.ids().next();
            written.push([store.by_owner.written, store.pods_by_node.written, store.orphans.written]);
        }
        assert_eq!(written, [[1, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 0], [3, 1, 0], [4, 1, 1]]);
    }
}

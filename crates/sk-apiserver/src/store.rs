//! All objects, the one function that changes them, and the log of changes that watchers read.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

pub(crate) use sk_core::limits::MAX_OBJECTS;
use sk_core::{Gvk, ObjectKey, ObjectRef, SimTime};

use crate::Object;

/// How many changes a slow watcher may lag behind before it must list again. An entry is a few words (the objects are
/// shared with the store until they change again), so 65,536 of them with distinct 1 KiB objects are at most 64 MiB.
const WATCH_LOG_CAPACITY: usize = 1 << 16;

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is new.
    Added,
    /// It is different.
    Modified,
    /// It is gone; the event carries its last state.
    Deleted,
}

/// One entry of the watch log.
#[derive(Clone, Debug)]
pub struct WatchEvent {
    /// When it was committed.
    pub at: SimTime,
    /// What happened.
    pub change: Change,
    /// The object after it, with the resource version of the change.
    pub object: Arc<Object>,
}

/// The log no longer reaches back to where a watcher wants to go on (410 Gone): list again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too old resource version: {asked} ({oldest})")]
pub struct Expired {
    /// After which version the watcher wanted to go on.
    pub asked: u64,
    /// The oldest version it could go on from.
    pub oldest: u64,
}

/// The objects and their history.
#[derive(Debug, Default)]
pub struct Store {
    kinds: BTreeMap<Gvk, BTreeMap<ObjectKey, Arc<Object>>>,
    count: usize,
    resource_version: u64,
    log: VecDeque<WatchEvent>,
}

impl Store {
    /// The version of the newest change.
    pub fn resource_version(&self) -> u64 {
        self.resource_version
    }

    /// Is there no room for another object?
    pub(crate) fn is_full(&self) -> bool {
        self.count >= MAX_OBJECTS
    }

    /// One object.
    pub fn get(&self, gvk: &Gvk, key: &ObjectKey) -> Option<&Arc<Object>> {
        self.kinds.get(gvk)?.get(key)
    }

    /// All objects of a kind, by namespace and name.
    pub fn list(&self, gvk: &Gvk) -> impl Iterator<Item = &Arc<Object>> + use<'_> {
        self.kinds.get(gvk).into_iter().flat_map(BTreeMap::values)
    }

    /// All objects of all kinds.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.kinds.values().flat_map(BTreeMap::values)
    }

    /// Stores a new or changed object. Nothing else changes state, so its resource version is the order of the run.
    pub fn commit(&mut self, now: SimTime, mut object: Object) -> Arc<Object> {
        self.resource_version += 1;
        object.resource_version = self.resource_version;
        let object = Arc::new(object);
        let kind = self.kinds.entry(object.gvk.clone()).or_default();
        let known = kind.insert(object.key.clone(), object.clone());
        self.count += usize::from(known.is_none());
        let change = if known.is_some() { Change::Modified } else { Change::Added };
        self.record(WatchEvent { at: now, change, object: object.clone() });
        object
    }

    /// Removes an object; its last state goes into the log with the version of the removal.
    pub(crate) fn commit_removal(&mut self, now: SimTime, target: &ObjectRef) -> Option<Arc<Object>> {
        let kind = self.kinds.get_mut(&target.gvk)?;
        let mut object = Object::clone(&*kind.remove(&target.key)?);
        self.count -= 1;
        if kind.is_empty() {
            self.kinds.remove(&target.gvk);
        }
        self.resource_version += 1;
        object.resource_version = self.resource_version;
        let object = Arc::new(object);
        self.record(WatchEvent { at: now, change: Change::Deleted, object: object.clone() });
        Some(object)
    }

    /// All changes after version `since`, oldest first.
    pub fn watch(&self, since: u64) -> Result<impl Iterator<Item = &WatchEvent>, Expired> {
        let oldest = self.resource_version - self.log.len() as u64;
        if since < oldest {
            return Err(Expired { asked: since, oldest });
        }
        let skip = usize::try_from(since - oldest).unwrap_or(usize::MAX);
        Ok(self.log.iter().skip(skip))
    }

    fn record(&mut self, event: WatchEvent) {
        if self.log.len() == WATCH_LOG_CAPACITY {
            self.log.pop_front();
        }
        self.log.push_back(event);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn widget(name: &str) -> Object {
        let json = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}});
        Object::from_json(json).unwrap()
    }

    #[test]
    fn every_change_gets_the_next_version_and_is_logged_once() {
        let mut store = Store::default();
        store.commit(SimTime::EPOCH, widget("a"));
        store.commit(SimTime::EPOCH, widget("a"));
        store.commit_removal(SimTime::EPOCH, &widget("a").reference());
        let seen: Vec<_> = store.watch(0).unwrap().map(|event| (event.change, event.object.resource_version)).collect();
        assert_eq!(seen, [(Change::Added, 1), (Change::Modified, 2), (Change::Deleted, 3)]);
        assert_eq!(store.watch(2).unwrap().count(), 1);
        assert_eq!(store.watch(3).unwrap().count(), 0);
        assert_eq!(store.all().count(), 0);
    }

    #[test]
    fn a_watcher_that_lags_too_far_is_told_to_list_again() {
        let mut store = Store::default();
        for _ in 0..WATCH_LOG_CAPACITY + 10 {
            store.commit(SimTime::EPOCH, widget("a"));
        }
        assert_eq!(store.watch(9).map(Iterator::count), Err(Expired { asked: 9, oldest: 10 }));
        assert_eq!(store.watch(10).map(Iterator::count), Ok(WATCH_LOG_CAPACITY));
    }
}

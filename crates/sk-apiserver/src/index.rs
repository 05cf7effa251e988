//! A declared look-up: which objects have this owner, stand on this node, are in this namespace.
//!
//! One index serves readers that have come differently far. It holds every object that has the key now or had it a moment
//! ago for somebody; a reader checks the version that it sees. What is out of date for everybody is let go of by
//! [`Index::reclaim`].

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::store::ObjectId;

/// Objects by a key.
#[derive(Clone, Debug)]
pub(crate) struct Index<K> {
    entries: BTreeMap<K, BTreeSet<ObjectId>>,
    /// Entries that no longer hold, oldest first: since which version.
    retired: VecDeque<(u64, K, ObjectId)>,
}

impl<K> Default for Index<K> {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), retired: VecDeque::new() }
    }
}

impl<K: Ord + Clone> Index<K> {
    pub(crate) fn insert(&mut self, key: &K, id: ObjectId) {
        match self.entries.get_mut(key) {
            Some(ids) => drop(ids.insert(id)),
            None => drop(self.entries.insert(key.clone(), BTreeSet::from([id]))),
        }
    }

    /// The entry holds no longer, since `version`.
    pub(crate) fn retire(&mut self, key: K, id: ObjectId, version: u64) {
        self.retired.push_back((version, key, id));
    }

    /// Removes an entry at once.
    pub(crate) fn remove(&mut self, key: &K, id: ObjectId) {
        if let Some(ids) = self.entries.get_mut(key) {
            ids.remove(&id);
            if ids.is_empty() {
                self.entries.remove(key);
            }
        }
    }

    /// Lets go of entries that ceased to hold at or before `seen_by_all`, unless they hold again now.
    pub(crate) fn reclaim(&mut self, seen_by_all: u64, holds_now: impl Fn(&K, ObjectId) -> bool) {
        while self.retired.front().is_some_and(|(version, ..)| *version <= seen_by_all) {
            let Some((_, key, id)) = self.retired.pop_front() else { return };
            if !holds_now(&key, id) {
                self.remove(&key, id);
            }
        }
    }

    /// The objects that have the key, or had it a moment ago.
    pub(crate) fn get(&self, key: &K) -> impl Iterator<Item = ObjectId> + use<'_, K> {
        self.entries.get(key).into_iter().flatten().copied()
    }
}

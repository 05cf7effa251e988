//! Secondary indexes of the store: objects by owner, by node, by namespace.
//!
//! One index serves readers with different cursors. It holds every object that has the key now or had it in a version
//! that a reader may still see; the reader checks the version at its own cursor. [`Index::reclaim`] drops entries that
//! no reader can see any more.

use std::collections::{BTreeSet, VecDeque};
use std::hash::Hash;

use sk_core::lookup::Keyed;

use crate::store::ObjectId;

/// Up to this many ids are a sorted list: the pods of a node, or of a set. Adding one moves at most 2 KiB.
const FEW: usize = 512;

/// Objects by a key.
#[derive(Clone, Debug)]
pub(crate) struct Index<K> {
    entries: Keyed<K, Ids>,
    /// Entries that no longer hold, oldest first: since which version.
    retired: VecDeque<(u64, K, ObjectId)>,
    /// How often an entry was made or retired.
    #[cfg(test)]
    pub(crate) written: usize,
}

/// The objects of one key, in order.
#[derive(Clone, Debug)]
enum Ids {
    Few(Vec<ObjectId>),
    Many(BTreeSet<ObjectId>),
}

impl Ids {
    fn insert(&mut self, id: ObjectId) {
        match self {
            Self::Few(ids) => {
                let Err(place) = ids.binary_search(&id) else { return };
                ids.insert(place, id);
                if ids.len() > FEW {
                    *self = Self::Many(ids.iter().copied().collect());
                }
            }
            Self::Many(ids) => drop(ids.insert(id)),
        }
    }

    fn remove(&mut self, id: ObjectId) {
        match self {
            Self::Few(ids) => drop(ids.binary_search(&id).map(|place| ids.remove(place))),
            Self::Many(ids) => drop(ids.remove(&id)),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Few(ids) => ids.is_empty(),
            Self::Many(ids) => ids.is_empty(),
        }
    }

    fn iter(&self) -> impl Iterator<Item = ObjectId> {
        let (few, many) = match self {
            Self::Few(ids) => (Some(ids), None),
            Self::Many(ids) => (None, Some(ids)),
        };
        few.into_iter().flatten().chain(many.into_iter().flatten()).copied()
    }
}

impl<K> Default for Index<K> {
    fn default() -> Self {
        Self {
            entries: Keyed::default(),
            retired: VecDeque::new(),
            #[cfg(test)]
            written: 0,
        }
    }
}

impl<K: Hash + Eq + Clone> Index<K> {
    pub(crate) fn insert(&mut self, key: &K, id: ObjectId) {
        #[cfg(test)]
        {
            self.written += 1;
        }
        self.entries.or_insert_with(key, || Ids::Few(Vec::new())).insert(id);
    }

    /// The entry holds no longer, since `version`.
    pub(crate) fn retire(&mut self, key: K, id: ObjectId, version: u64) {
        #[cfg(test)]
        {
            self.written += 1;
        }
        self.retired.push_back((version, key, id));
    }

    /// Removes an entry at once.
    pub(crate) fn remove(&mut self, key: &K, id: ObjectId) {
        let Some(ids) = self.entries.get_mut(key) else { return };
        ids.remove(id);
        if ids.is_empty() {
            self.entries.remove(key);
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

    /// The objects that have the key, or had it recently, in order.
    pub(crate) fn get(&self, key: &K) -> impl Iterator<Item = ObjectId> + use<'_, K> {
        self.entries.get(key).into_iter().flat_map(Ids::iter)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Object, Store};

    /// So many ids, as a store gives them.
    fn ids(count: usize) -> Vec<ObjectId> {
        let mut store = Store::default();
        for number in 0..count {
            let metadata = json!({"name": format!("w{number}"), "namespace": "n"});
            let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata});
            store.commit(sk_core::SimTime::EPOCH, None, Object::from_json(widget).unwrap());
        }
        store.ids().collect()
    }

    #[test]
    fn objects_come_in_order_however_many_there_are() {
        let all = ids(2 * FEW);
        let mut index = Index::default();
        for id in all.iter().rev().chain(&all) {
            index.insert(&"few", *id);
            assert!(index.get(&"few").is_sorted());
        }
        assert_eq!(index.get(&"few").collect::<Vec<_>>(), all);
        for (removed, id) in all.iter().enumerate() {
            index.remove(&"few", *id);
            assert!(index.get(&"few").eq(all[removed + 1..].iter().copied()));
        }
        assert!(index.entries.is_empty(), "a key without objects is forgotten");
    }
}

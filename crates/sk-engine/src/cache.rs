//! An informer's cache: the objects as a process knows them, a little behind the API server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sk_apiserver::kinds::POD;
use sk_apiserver::{Change, Object, Uid, WatchEvent};
use sk_core::{Gvk, ObjectKey, ObjectRef, SmolStr};

/// What a process was told about one object.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// What happened.
    pub(crate) change: Change,
    /// The object after it; for a deletion, its last state.
    pub(crate) object: Arc<Object>,
    /// The object as the process knew it before.
    pub(crate) before: Option<Arc<Object>>,
}

/// The objects a process watches, with the look-ups that controllers need.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    kinds: BTreeMap<Gvk, BTreeMap<ObjectKey, Arc<Object>>>,
    by_owner: BTreeMap<Uid, BTreeSet<ObjectRef>>,
    pods_by_node: BTreeMap<SmolStr, BTreeSet<ObjectKey>>,
}

impl Cache {
    /// One object.
    pub(crate) fn get(&self, gvk: &Gvk, key: &ObjectKey) -> Option<&Arc<Object>> {
        self.kinds.get(gvk)?.get(key)
    }

    /// All objects of a kind, by namespace and name.
    pub(crate) fn list(&self, gvk: &Gvk) -> impl Iterator<Item = &Arc<Object>> + use<'_> {
        self.kinds.get(gvk).into_iter().flat_map(BTreeMap::values)
    }

    /// All objects of all kinds.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.kinds.values().flat_map(BTreeMap::values)
    }

    /// The objects that name `owner` among their owners.
    pub(crate) fn owned_by(&self, owner: Uid) -> impl Iterator<Item = &Arc<Object>> {
        let references = self.by_owner.get(&owner).into_iter().flatten();
        references.filter_map(|reference| self.get(&reference.gvk, &reference.key))
    }

    /// The pods bound to a node.
    pub(crate) fn pods_on(&self, node: &str) -> impl Iterator<Item = &Arc<Object>> {
        self.pods_by_node.get(node).into_iter().flatten().filter_map(|key| self.get(&POD, key))
    }

    /// Takes in one change.
    pub(crate) fn learn(&mut self, event: &WatchEvent) -> Seen {
        let object = &event.object;
        let before = match event.change {
            Change::Added | Change::Modified => {
                let kind = self.kinds.entry(object.gvk.clone()).or_default();
                kind.insert(object.key.clone(), object.clone())
            }
            Change::Deleted => self.kinds.get_mut(&object.gvk).and_then(|kind| kind.remove(&object.key)),
        };
        self.reindex(before.as_deref(), (event.change != Change::Deleted).then_some(object));
        Seen { change: event.change, object: object.clone(), before }
    }

    fn reindex(&mut self, before: Option<&Object>, after: Option<&Arc<Object>>) {
        if let Some(before) = before {
            for owner in &before.meta.owners {
                forget(&mut self.by_owner, &owner.uid, &before.reference());
            }
            if let Some(node) = before.pod().and_then(|pod| pod.node_name.as_ref()) {
                forget(&mut self.pods_by_node, node, &before.key);
            }
        }
        if let Some(after) = after {
            for owner in &after.meta.owners {
                self.by_owner.entry(owner.uid).or_default().insert(after.reference());
            }
            if let Some(node) = after.pod().and_then(|pod| pod.node_name.as_ref()) {
                self.pods_by_node.entry(node.clone()).or_default().insert(after.key.clone());
            }
        }
    }
}

fn forget<K: Ord, V: Ord>(index: &mut BTreeMap<K, BTreeSet<V>>, key: &K, value: &V) {
    if let Some(values) = index.get_mut(key) {
        values.remove(value);
        if values.is_empty() {
            index.remove(key);
        }
    }
}

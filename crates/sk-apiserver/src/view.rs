//! The objects as a reader at a given cursor of the log sees them.

use std::sync::Arc;

use sk_core::{Gvk, ObjectKey, SmolStr};

use crate::store::{ObjectId, Store};
use crate::{Object, Uid};

/// The store as of a cursor. Cheap to make and to copy.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    store: &'a Store,
    cursor: u64,
}

impl<'a> View<'a> {
    pub(crate) fn new(store: &'a Store, cursor: u64) -> Self {
        Self { store, cursor }
    }

    /// Up to which version the reader has read.
    pub fn cursor(self) -> u64 {
        self.cursor
    }

    /// One object.
    pub fn get(self, id: ObjectId) -> Option<&'a Arc<Object>> {
        self.store.at(id, self.cursor)
    }

    /// The object of that kind and name.
    pub fn find(self, gvk: &Gvk, key: &ObjectKey) -> Option<(ObjectId, &'a Arc<Object>)> {
        let id = self.store.named(gvk, key, |id| self.get(id).is_some())?;
        Some((id, self.get(id)?))
    }

    /// The object with this uid.
    pub fn with_uid(self, uid: Uid) -> Option<(ObjectId, &'a Arc<Object>)> {
        let id = self.store.with_uid(uid)?;
        Some((id, self.get(id)?))
    }

    /// The objects that name `owner` among their owners, by id.
    pub fn owned_by(self, owner: Uid) -> impl Iterator<Item = (ObjectId, &'a Arc<Object>)> {
        let is_owned = move |object: &Object| object.meta.owners.iter().any(|known| known.uid == owner);
        self.all(self.store.by_owner.get(&owner)).filter(move |(_, object)| is_owned(object))
    }

    /// The pods bound to a node, by id.
    pub fn pods_on(self, node: &SmolStr) -> impl Iterator<Item = (ObjectId, &'a Arc<Object>)> {
        let name = node.clone();
        let is_there = move |object: &Object| object.pod().is_some_and(|pod| pod.node_name.as_ref() == Some(&name));
        self.all(self.store.pods_by_node.get(node)).filter(move |(_, object)| is_there(object))
    }

    /// The pods and ReplicaSets of a namespace without a controller, by id.
    pub fn orphans_in(self, namespace: &SmolStr) -> impl Iterator<Item = (ObjectId, &'a Arc<Object>)> {
        self.all(self.store.orphans.get(namespace)).filter(|(_, object)| object.controller().is_none())
    }

    /// The objects in a namespace, by id.
    pub fn in_namespace(self, namespace: &SmolStr) -> impl Iterator<Item = (ObjectId, &'a Arc<Object>)> {
        self.all(self.store.by_namespace.get(namespace))
    }

    /// Every object of every kind: for checks, not for controllers.
    pub fn everything(self) -> impl Iterator<Item = (ObjectId, &'a Arc<Object>)> {
        self.all(self.store.ids())
    }

    fn all(self, ids: impl Iterator<Item = ObjectId>) -> impl Iterator<Item = (ObjectId, &'a Arc<Object>)> {
        ids.filter_map(move |id| Some((id, self.get(id)?)))
    }
}

//! The garbage collector: what nobody owns any more goes, in the way its owner's deletion asked for
//! (`pkg/controller/garbagecollector`, 1.36).

use std::sync::Arc;

use sk_apiserver::{
    Change, DeleteOptions, KindTag, Object, ObjectId, OwnerRef, Propagation, Request, Uid, View, WatchEvent,
};
use sk_core::SimTime;

use crate::controller::{Plan, Reconciler};
use crate::engine::EVERY_KIND;
use crate::workqueue::WorkQueue;

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

/// The controller. All it knows is in its view.
#[derive(Clone)]
pub(crate) struct Garbage;

impl Reconciler for Garbage {
    type Key = ObjectId;

    const WATCHES: &'static [KindTag] = EVERY_KIND;

    fn concerns(&mut self, event: &WatchEvent, view: View<'_>, queue: &mut WorkQueue<ObjectId>) {
        let object = &event.object;
        match event.change {
            Change::Deleted => {
                queue_dependents(object, view, queue);
                // An owner that waits for its dependents has one less to wait for.
                let owners = object.meta.owners.iter().filter_map(|owner| find(owner, object, view));
                let waiting = owners.filter(|(_, owner)| owner.is_deleting());
                waiting.for_each(|(id, _)| queue.add(id));
            }
            Change::Added | Change::Modified => {
                let waits = waits_for_dependents(object);
                if waits || owners_may_be_gone(event) {
                    queue.add(event.id);
                }
                if waits {
                    queue_dependents(object, view, queue);
                }
            }
        }
    }

    fn reconcile(&mut self, id: &ObjectId, view: View<'_>, _now: SimTime) -> Plan {
        let Some(object) = view.get(*id) else { return Plan::nothing() };
        if object.is_deleting() {
            return if has(object, ORPHAN) {
                orphan_dependents(object, view)
            } else if has(object, FOREGROUND) {
                finish_foreground(object, view)
            } else {
                Plan::nothing()
            };
        }
        collect(object, view)
    }
}

/// Only a new object, or one with other owners, may have an owner that nobody here has seen going.
fn owners_may_be_gone(event: &WatchEvent) -> bool {
    let before = event.before.as_ref().map(|before| &before.meta.owners);
    !event.object.meta.owners.is_empty() && before != Some(&event.object.meta.owners)
}

/// In order of kind and name, so that what goes first does not depend on ids.
fn queue_dependents(object: &Object, view: View<'_>, queue: &mut WorkQueue<ObjectId>) {
    let mut dependents: Vec<_> = view.owned_by(object.uid).collect();
    dependents.sort_by(|(_, one), (_, other)| (&*one.gvk, &one.key).cmp(&(&*other.gvk, &other.key)));
    dependents.into_iter().for_each(|(id, _)| queue.add(id));
}

fn has(object: &Object, finalizer: &str) -> bool {
    object.meta.finalizers.iter().any(|known| known == finalizer)
}

fn waits_for_dependents(object: &Object) -> bool {
    object.is_deleting() && (has(object, FOREGROUND) || has(object, ORPHAN))
}

/// The owner a reference means: same kind, name and uid, in the dependent's namespace or in none.
fn find<'a>(owner: &OwnerRef, dependent: &Object, view: View<'a>) -> Option<(ObjectId, &'a Arc<Object>)> {
    let (id, found) = view.with_uid(owner.uid)?;
    let beside = found.key.namespace.is_none() || found.key.namespace == dependent.key.namespace;
    let is_it = beside && found.key.name == owner.name && found.gvk.kind == owner.gvk.kind;
    (is_it && found.gvk.group == owner.gvk.group).then_some((id, found))
}

/// Deletes an object none of whose owners is left, or drops references to owners that are gone.
fn collect(object: &Arc<Object>, view: View<'_>) -> Plan {
    let owners = &object.meta.owners;
    if owners.is_empty() {
        return Plan::nothing();
    }
    let solid: Vec<_> = owners.iter().filter_map(|owner| Some((owner, find(owner, object, view)?.1))).collect();
    if solid.is_empty() {
        return Plan::of([delete(object, Propagation::Background)]);
    }
    if solid.iter().all(|(_, owner)| owner.is_deleting() && has(owner, FOREGROUND)) {
        // All owners that are left wait in the foreground for this object to be gone; its own dependents go first too.
        let has_dependents = view.owned_by(object.uid).next().is_some();
        let way = if has_dependents { Propagation::Foreground } else { Propagation::Background };
        return Plan::of([delete(object, way)]);
    }
    if solid.len() < owners.len() {
        let kept = solid.into_iter().map(|(owner, _)| owner.clone()).collect();
        return Plan::of([with_owners(object, kept)]);
    }
    Plan::nothing()
}

/// The finalizer falls once nothing is left that blocks it.
fn finish_foreground(object: &Arc<Object>, view: View<'_>) -> Plan {
    let blocks = |dependent: &Object| {
        let mut mine = dependent.meta.owners.iter().filter(|owner| owner.uid == object.uid);
        mine.any(|owner| owner.block_owner_deletion == Some(true))
    };
    if view.owned_by(object.uid).any(|(_, dependent)| blocks(dependent)) {
        return Plan::nothing();
    }
    Plan::of([without_finalizer(object, FOREGROUND)])
}

/// Every dependent forgets the owner, all at once; then the owner may go.
fn orphan_dependents(object: &Arc<Object>, view: View<'_>) -> Plan {
    let forget = |dependent: &Arc<Object>, gone: Uid| {
        let kept = dependent.meta.owners.iter().filter(|owner| owner.uid != gone).cloned().collect();
        with_owners(dependent, kept)
    };
    let mut dependents: Vec<_> = view.owned_by(object.uid).map(|(_, dependent)| dependent).collect();
    dependents.sort_by(|one, other| (&*one.gvk, &one.key).cmp(&(&*other.gvk, &other.key)));
    let requests: Vec<_> = dependents.into_iter().map(|dependent| forget(dependent, object.uid)).collect();
    let batches = [requests, vec![without_finalizer(object, ORPHAN)]].into_iter().filter(|batch| !batch.is_empty());
    Plan { batches: batches.collect(), again_after: None }
}

fn delete(object: &Object, propagation: Propagation) -> Request {
    let options = DeleteOptions { uid: Some(object.uid), propagation, ..DeleteOptions::default() };
    Request::Delete { target: object.reference(), options }
}

fn with_owners(object: &Object, owners: Arc<[OwnerRef]>) -> Request {
    let mut changed = object.clone();
    changed.meta.owners = owners;
    Request::update(changed)
}

fn without_finalizer(object: &Object, finalizer: &str) -> Request {
    let mut changed = object.clone();
    changed.meta.finalizers = object.meta.finalizers.iter().filter(|known| *known != finalizer).cloned().collect();
    Request::update(changed)
}

//! The garbage collector: what nobody owns any more goes, in the way its owner's deletion asked for
//! (`pkg/controller/garbagecollector`, 1.36).

use std::sync::Arc;

use sk_apiserver::{Change, DeleteOptions, Object, OwnerRef, Propagation, Request, Uid};
use sk_core::{ObjectKey, ObjectRef, SimTime};

use crate::cache::{Cache, Seen};
use crate::controller::{Plan, Reconciler};

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

/// The controller. All it knows is in its cache.
pub(crate) struct Garbage;

impl Reconciler for Garbage {
    type Key = ObjectRef;

    fn concerns(&mut self, seen: &Seen, cache: &Cache) -> Vec<ObjectRef> {
        let object = &seen.object;
        let dependents = || cache.owned_by(object.meta.uid).map(|dependent| dependent.reference());
        let mut keys: Vec<ObjectRef> = Vec::new();
        match seen.change {
            Change::Deleted => {
                keys.extend(dependents());
                // An owner that waits for its dependents has one less to wait for.
                let waiting = object.meta.owners.iter().filter_map(|owner| find(owner, object, cache));
                keys.extend(waiting.filter(|owner| owner.is_deleting()).map(|owner| owner.reference()));
            }
            Change::Added | Change::Modified => {
                if !object.meta.owners.is_empty() || waits_for_dependents(object) {
                    keys.push(object.reference());
                }
                if waits_for_dependents(object) {
                    keys.extend(dependents());
                }
            }
        }
        keys
    }

    fn reconcile(&mut self, key: &ObjectRef, cache: &Cache, _now: SimTime) -> Plan {
        let Some(object) = cache.get(&key.gvk, &key.key) else { return Plan::nothing() };
        if object.is_deleting() {
            return if has(object, ORPHAN) {
                orphan_dependents(object, cache)
            } else if has(object, FOREGROUND) {
                finish_foreground(object, cache)
            } else {
                Plan::nothing()
            };
        }
        collect(object, cache)
    }
}

fn has(object: &Object, finalizer: &str) -> bool {
    object.meta.finalizers.iter().any(|known| known == finalizer)
}

fn waits_for_dependents(object: &Object) -> bool {
    object.is_deleting() && (has(object, FOREGROUND) || has(object, ORPHAN))
}

/// The owner a reference means: same name and same uid, in the dependent's namespace or in none.
fn find<'a>(owner: &OwnerRef, dependent: &Object, cache: &'a Cache) -> Option<&'a Arc<Object>> {
    let beside = ObjectKey { namespace: dependent.key.namespace.clone(), name: owner.name.clone() };
    let found = cache.get(&owner.gvk, &beside);
    let found = found.or_else(|| cache.get(&owner.gvk, &ObjectKey::cluster(owner.name.clone())));
    found.filter(|found| found.meta.uid == owner.uid)
}

/// Deletes an object none of whose owners is left, or drops references to owners that are gone.
fn collect(object: &Arc<Object>, cache: &Cache) -> Plan {
    let owners = &object.meta.owners;
    if owners.is_empty() {
        return Plan::nothing();
    }
    let solid: Vec<_> = owners.iter().filter(|owner| find(owner, object, cache).is_some()).collect();
    let going = |owner: &&&OwnerRef| find(owner, object, cache).is_some_and(|owner| waits_in_foreground(owner));
    if solid.is_empty() {
        return Plan::of([delete(object, Propagation::Background)]);
    }
    if solid.iter().filter(going).count() == solid.len() {
        // All owners that are left wait in the foreground for this object to be gone; its own dependents go first too.
        let has_dependents = cache.owned_by(object.meta.uid).next().is_some();
        let way = if has_dependents { Propagation::Foreground } else { Propagation::Background };
        return Plan::of([delete(object, way)]);
    }
    if solid.len() < owners.len() {
        let kept = solid.into_iter().cloned().collect();
        return Plan::of([with_owners(object, kept)]);
    }
    Plan::nothing()
}

fn waits_in_foreground(object: &Object) -> bool {
    object.is_deleting() && has(object, FOREGROUND)
}

/// The finalizer falls once nothing is left that blocks it.
fn finish_foreground(object: &Arc<Object>, cache: &Cache) -> Plan {
    let blocks = |dependent: &&Arc<Object>| {
        let mut mine = dependent.meta.owners.iter().filter(|owner| owner.uid == object.meta.uid);
        mine.any(|owner| owner.block_owner_deletion)
    };
    if cache.owned_by(object.meta.uid).any(|dependent| blocks(&dependent)) {
        return Plan::nothing();
    }
    Plan::of([without_finalizer(object, FOREGROUND)])
}

/// Every dependent forgets the owner, then the owner may go.
fn orphan_dependents(object: &Arc<Object>, cache: &Cache) -> Plan {
    let forget = |dependent: &Arc<Object>, gone: Uid| {
        let kept = dependent.meta.owners.iter().filter(|owner| owner.uid != gone).cloned().collect();
        with_owners(dependent, kept)
    };
    let mut requests: Vec<_> =
        cache.owned_by(object.meta.uid).map(|dependent| forget(dependent, object.meta.uid)).collect();
    requests.push(without_finalizer(object, ORPHAN));
    Plan::of(requests)
}

fn delete(object: &Object, propagation: Propagation) -> Request {
    let options = DeleteOptions { uid: Some(object.meta.uid), propagation, grace_secs: None };
    Request::Delete { target: object.reference(), options }
}

fn with_owners(object: &Object, owners: Vec<OwnerRef>) -> Request {
    let mut changed = object.clone();
    changed.meta.owners = owners;
    Request::Update(changed)
}

fn without_finalizer(object: &Object, finalizer: &str) -> Request {
    let mut changed = object.clone();
    changed.meta.finalizers.retain(|known| known != finalizer);
    Request::Update(changed)
}

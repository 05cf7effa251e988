//! The garbage collector: deletes objects whose owners are gone, with the propagation policy of the owner's deletion
//! (`pkg/controller/garbagecollector`, 1.36).

use std::sync::Arc;

use sk_apiserver::{
    Change, DeleteOptions, KindTag, Object, ObjectId, OwnerRef, Propagation, Request, Uid, View, WatchEvent,
};
use sk_core::SimTime;

use crate::controller::{Plan, Reconciler};
use crate::events::Event;
use crate::process::EVERY_KIND;
use crate::workqueue::WorkQueue;

/// How it signs Events.
const FROM: &str = "garbage-collector-controller";

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
                let (orphans, waits) = (starts_to_wait(event, ORPHAN), starts_to_wait(event, FOREGROUND));
                if orphans || waits || owner_is_missing(event, view) {
                    queue.add(event.id);
                }
                if waits && !orphans {
                    queue_dependents(object, view, queue);
                }
                unblocked(event).filter_map(|owner| view.with_uid(owner)).for_each(|(id, _)| queue.add(id));
            }
        }
    }

    fn remarks(&self, id: &ObjectId, view: View<'_>, _now: SimTime) -> Vec<Event> {
        view.get(*id).map_or_else(Vec::new, |object| owners_elsewhere(object, view))
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

/// What is said of an object that names an owner of another namespace, which cannot own it (`reportInvalidNamespaceOwnerRef`).
fn owners_elsewhere(object: &Arc<Object>, view: View<'_>) -> Vec<Event> {
    let Some(namespace) = object.key.namespace.as_deref() else { return Vec::new() };
    let is_elsewhere = |owner: &&OwnerRef| {
        let found = view.with_uid(owner.uid).and_then(|(_, found)| found.key.namespace.as_deref());
        found.is_some_and(|other| other != namespace)
    };
    let told = object.meta.owners.iter().filter(is_elsewhere).map(|owner| {
        let (api_version, kind) = (owner.gvk.api_version(), &owner.gvk.kind);
        let named = format!("[{api_version}/{kind}, namespace: {namespace}, name: {}, uid: {}]", owner.name, owner.uid);
        let message = format!("ownerRef {named} does not exist in namespace \"{namespace}\"");
        Event::warning(FROM, object, "OwnerRefInvalidNamespace", message)
    });
    told.collect()
}

/// Only a new object, or one with other owners, may have an owner whose deletion was missed: one that is not there, or that waits
/// for its dependents.
fn owner_is_missing(event: &WatchEvent, view: View<'_>) -> bool {
    let object = &event.object;
    let is_solid = |owner| find(owner, object, view).is_some_and(|(_, owner)| !owner.is_deleting());
    !has_owners_as_before(event) && !object.meta.owners.iter().all(is_solid)
}

fn has_owners_as_before(event: &WatchEvent) -> bool {
    event.before.as_ref().is_some_and(|before| before.has_owners_of(&event.object))
}

/// Owners whose deletion the object no longer holds up (`addUnblockedOwnersToDeleteQueue`).
fn unblocked(event: &WatchEvent) -> impl Iterator<Item = Uid> {
    let blocks = |owner: &&OwnerRef| owner.block_owner_deletion == Some(true);
    let (before, after) = (event.before.as_ref().map(|before| &before.meta.owners), &event.object.meta.owners);
    let before = before.filter(|_| !has_owners_as_before(event)).into_iter().flat_map(|owners| owners.iter());
    let still = move |gone: &Uid| after.iter().filter(blocks).any(|owner| owner.uid == *gone);
    before.filter(blocks).map(|owner| owner.uid).filter(move |owner| !still(owner))
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

/// Is its deletion held up by this finalizer, and was not before the change? Later changes of an object that waits say nothing
/// new: what it waits for tells when it changes (`deletionStartsWithFinalizer`).
fn starts_to_wait(event: &WatchEvent, finalizer: &str) -> bool {
    let waits = |object: &Object| object.is_deleting() && has(object, finalizer);
    waits(&event.object) && !event.before.as_ref().is_some_and(|before| waits(before))
}

/// The owner a reference means: same kind, name and uid, in the dependent's namespace or in none.
fn find<'a>(owner: &OwnerRef, dependent: &Object, view: View<'a>) -> Option<(ObjectId, &'a Arc<Object>)> {
    let (id, found) = view.with_uid(owner.uid)?;
    let beside = found.key.namespace.is_none() || found.key.namespace == dependent.key.namespace;
    let is_it = beside && found.key.name == owner.name && found.gvk.kind == owner.gvk.kind;
    (is_it && found.gvk.group == owner.gvk.group).then_some((id, found))
}

/// Deletes an object none of whose owners is left, or drops references to owners that are gone, or that wait for it to go
/// (`attemptToDeleteItem`).
fn collect(object: &Arc<Object>, view: View<'_>) -> Plan {
    let owners = &object.meta.owners;
    if owners.is_empty() {
        return Plan::nothing();
    }
    let left: Vec<_> = owners.iter().filter_map(|owner| Some((owner, find(owner, object, view)?.1))).collect();
    let (waiting, solid): (Vec<_>, Vec<_>) = left.into_iter().partition(|(_, owner)| waits_in_foreground(owner));
    if !solid.is_empty() {
        // A reference to one that waits goes too: otherwise it would wait for ever.
        let kept: Arc<[OwnerRef]> = solid.iter().map(|(owner, _)| (*owner).clone()).collect();
        return if kept.len() == owners.len() { Plan::nothing() } else { Plan::of([with_owners(object, kept)]) };
    }
    let mut dependents = view.owned_by(object.uid).map(|(_, dependent)| dependent).peekable();
    if waiting.is_empty() || dependents.peek().is_none() {
        return Plan::of([delete(object, propagation_of(object))]);
    }
    // Its own dependents go first. If one of them waits too, there may be a circle: then it lets its owners go.
    let is_circle = dependents.any(|dependent| waits_in_foreground(dependent));
    let unblocked = owners.iter().map(|owner| {
        let block_owner_deletion = owner.block_owner_deletion.map(|_| false);
        OwnerRef { block_owner_deletion, ..owner.clone() }
    });
    let let_go = is_circle.then(|| with_owners(object, unblocked.collect()));
    Plan::of(let_go.into_iter().chain([delete(object, Propagation::Foreground)]))
}

/// Does it wait for its dependents to be gone?
fn waits_in_foreground(object: &Object) -> bool {
    object.is_deleting() && has(object, FOREGROUND)
}

/// What is to become of its dependents, as its own finalizers say.
fn propagation_of(object: &Object) -> Propagation {
    match (has(object, ORPHAN), has(object, FOREGROUND)) {
        (true, _) => Propagation::Orphan,
        (false, true) => Propagation::Foreground,
        (false, false) => Propagation::Background,
    }
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use sk_apiserver::ApiServer;

    use super::*;
    use crate::controllers::new_namespace;
    use crate::workqueue::Delays;

    fn apply(server: &mut ApiServer, json: Value) -> Arc<Object> {
        server.handle(SimTime::EPOCH, Request::apply(Object::from_json(json).unwrap())).unwrap()
    }

    /// The names of the objects that the garbage collector looks at because of the newest change.
    fn queued(server: &ApiServer) -> Vec<String> {
        let (store, mut queue) = (server.store(), WorkQueue::new(Delays::DEFAULT));
        let event = store.event(store.resource_version()).unwrap();
        Garbage.concerns(event, store.now(), &mut queue);
        std::iter::from_fn(|| queue.take()).map(|id| store.now().get(id).unwrap().key.name.to_string()).collect()
    }

    /// An owner of 30 objects, whose deletion waits in this way.
    fn going(server: &mut ApiServer, propagation: Propagation) -> Arc<Object> {
        let of = |name: &str, owners: Value| {
            let metadata = json!({"name": name, "namespace": "default", "ownerReferences": owners});
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        };
        server.handle(SimTime::EPOCH, Request::apply(new_namespace("default"))).unwrap();
        let owner = apply(server, of("owner", json!([])));
        let reference = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.uid.to_string(), "blockOwnerDeletion": true,
        });
        for number in 0..30 {
            apply(server, of(&format!("c{number}"), json!([reference])));
        }
        let options = DeleteOptions { propagation, ..DeleteOptions::default() };
        server.handle(SimTime::EPOCH, Request::Delete { target: owner.reference(), options }).unwrap();
        owner
    }

    #[test]
    fn dependents_are_looked_at_when_their_owner_begins_to_wait_and_not_at_its_later_changes() {
        let mut server = ApiServer::new(1);
        let owner = going(&mut server, Propagation::Foreground);
        assert_eq!(queued(&server).len(), 31, "the owner and its dependents");
        let mut changed = Object::clone(server.store().get(&owner.gvk, &owner.key).unwrap());
        changed.meta.labels = [("a".into(), "b".into())].into_iter().collect();
        server.handle(SimTime::EPOCH, Request::update(changed)).unwrap();
        assert_eq!(queued(&server), Vec::<String>::new());
    }

    #[test]
    fn an_owner_that_orphans_its_dependents_is_looked_at_alone() {
        let mut server = ApiServer::new(1);
        going(&mut server, Propagation::Orphan);
        assert_eq!(queued(&server), ["owner"]);
    }
}

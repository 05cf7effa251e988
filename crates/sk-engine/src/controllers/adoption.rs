//! Adoption and release: which pods a ReplicaSet, and which ReplicaSets a Deployment, adopts and releases
//! (`controller_ref_manager.go`, 1.36).
//!
//! A controller adopts objects without a controller that its selector matches, and releases its own objects that the
//! selector no longer matches. Kubernetes lists the namespace's pods in every sync; here both sorts are found as pods
//! change, so a sync looks only at objects to adopt or release, of which there are almost always none.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use sk_apiserver::{Change, KindTag, Object, ObjectId, Request, View, WatchEvent};
use sk_core::{Gvk, LabelSelector};

use super::selectors::Selectors;
use crate::workqueue::WorkQueue;

/// Pods in the wrong hands, for the sets of one kind.
#[derive(Clone, Debug)]
pub(crate) struct Adoption {
    kind: &'static Gvk,
    /// What kind of objects the sets take in.
    child: KindTag,
    /// What each set selects.
    selectors: Selectors,
    /// Orphans that a set selects.
    wanted: BTreeMap<ObjectId, BTreeSet<ObjectId>>,
    /// Pods of a set that it does not select.
    strangers: BTreeMap<ObjectId, BTreeSet<ObjectId>>,
}

impl Adoption {
    pub(crate) fn new(kind: &'static Gvk, child: KindTag) -> Self {
        Self { kind, child, selectors: Selectors::default(), wanted: BTreeMap::new(), strangers: BTreeMap::new() }
    }

    /// A set came, changed or went.
    pub(crate) fn set_seen(&mut self, event: &WatchEvent, selector: &Value, view: View<'_>) {
        let namespace = event.object.key.namespace.clone().unwrap_or_default();
        match event.change {
            Change::Deleted => {
                self.selectors.remove(&namespace, event.id);
                self.wanted.remove(&event.id);
                self.strangers.remove(&event.id);
            }
            // The API server refuses changes to a selector.
            Change::Modified => {}
            Change::Added => {
                // One that is no selector was refused by the API server.
                let Ok(selector) = LabelSelector::from_json(selector) else { return };
                let matches = |(_, orphan): &(ObjectId, &Arc<Object>)| {
                    orphan.body.tag() == self.child && selector.matches(&*orphan.meta.labels)
                };
                let orphans = view.orphans_in(&namespace).filter(matches);
                let wanted: BTreeSet<_> = orphans.map(|(orphan, _)| orphan).collect();
                if !wanted.is_empty() {
                    self.wanted.insert(event.id, wanted);
                }
                self.selectors.insert(namespace, event.id, selector);
            }
        }
    }

    /// A pod was created, changed or deleted: queues the sets that may adopt or release it.
    pub(crate) fn child_seen(&mut self, event: &WatchEvent, view: View<'_>, queue: &mut WorkQueue<ObjectId>) {
        let is_there = event.change != Change::Deleted;
        let before = event.before.as_ref();
        let same = |before: &Arc<Object>| {
            before.meta.labels == event.object.meta.labels && before.has_owners_of(&event.object)
        };
        if is_there && before.is_some_and(same) {
            return;
        }
        if let Some(orphan) = before.filter(|before| before.controller().is_none()) {
            self.forget_orphan(event.id, orphan);
        }
        match event.object.controller() {
            None if is_there => self.orphan_seen(event, queue),
            Some(owner) if owner.gvk == *self.kind => {
                if let Some((set, _)) = view.with_uid(owner.uid) {
                    self.own_seen(event, set, is_there);
                }
            }
            None | Some(_) => {}
        }
    }

    fn forget_orphan(&mut self, id: ObjectId, orphan: &Object) {
        if self.wanted.is_empty() {
            return;
        }
        for set in self.selectors.selecting(orphan.key.namespace_or_empty(), &orphan.meta.labels) {
            remove(&mut self.wanted, set, id);
        }
    }

    fn orphan_seen(&mut self, event: &WatchEvent, queue: &mut WorkQueue<ObjectId>) {
        let orphan = &event.object;
        for set in self.selectors.selecting(orphan.key.namespace_or_empty(), &orphan.meta.labels) {
            self.wanted.entry(set).or_default().insert(event.id);
            queue.add(set);
        }
    }

    fn own_seen(&mut self, event: &WatchEvent, set: ObjectId, is_there: bool) {
        let namespace = event.object.key.namespace_or_empty();
        let selector = self.selectors.get(namespace, set);
        if is_there && selector.is_some_and(|selector| !selector.matches(&*event.object.meta.labels)) {
            self.strangers.entry(set).or_default().insert(event.id);
        } else {
            remove(&mut self.strangers, set, event.id);
        }
    }

    /// Adopts the orphans that `accepts` lets in, and releases strangers. A set that is going does neither.
    pub(crate) fn claim(
        &self,
        id: ObjectId,
        set: &Object,
        view: View<'_>,
        accepts: impl Fn(&Object) -> bool,
    ) -> Vec<Request> {
        if set.is_deleting() {
            return Vec::new();
        }
        let pods = |of: &BTreeMap<ObjectId, BTreeSet<ObjectId>>| {
            of.get(&id).into_iter().flatten().filter_map(|pod| view.get(*pod)).collect::<Vec<_>>()
        };
        let adopted = pods(&self.wanted)
            .into_iter()
            .filter(|pod| pod.controller().is_none() && !pod.is_deleting() && accepts(pod));
        let released =
            pods(&self.strangers).into_iter().filter(|pod| pod.controller().is_some_and(|owner| owner.uid == set.uid));
        let adopt = |pod: &Arc<Object>| {
            let mut pod = Object::clone(pod);
            pod.meta.owners = pod.meta.owners.iter().cloned().chain([set.as_controller()]).collect();
            Request::update(pod)
        };
        let release = |pod: &Arc<Object>| {
            let mut pod = Object::clone(pod);
            pod.meta.owners = pod.meta.owners.iter().filter(|owner| owner.uid != set.uid).cloned().collect();
            Request::update(pod)
        };
        adopted.map(adopt).chain(released.map(release)).collect()
    }
}

fn remove(of: &mut BTreeMap<ObjectId, BTreeSet<ObjectId>>, set: ObjectId, pod: ObjectId) {
    if let Some(pods) = of.get_mut(&set) {
        pods.remove(&pod);
        if pods.is_empty() {
            of.remove(&set);
        }
    }
}

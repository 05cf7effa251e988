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
use sk_core::{Gvk, LabelSelector, SmolStr};

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
    /// What an adopted object is held by while it is a set's, and a released one no longer.
    finalizer: Option<SmolStr>,
}

impl Adoption {
    pub(crate) fn new(kind: &'static Gvk, child: KindTag) -> Self {
        let (wanted, strangers) = (BTreeMap::new(), BTreeMap::new());
        Self { kind, child, selectors: Selectors::default(), wanted, strangers, finalizer: None }
    }

    pub(crate) fn with_finalizer(self, finalizer: SmolStr) -> Self {
        Self { finalizer: Some(finalizer), ..self }
    }

    /// Does it know any set?
    pub(crate) fn is_idle(&self) -> bool {
        self.selectors.is_empty()
    }

    /// A set came, changed or went.
    pub(crate) fn set_seen(&mut self, event: &WatchEvent, selector: &Value, view: View<'_>) {
        match event.change {
            Change::Deleted => self.forget(event.id, event.object.key.namespace_or_empty()),
            // The API server refuses changes to a selector.
            Change::Modified => {}
            Change::Added => self.learn(event.id, &event.object, selector, view),
        }
    }

    /// From now on, what this set adopts and releases is known.
    pub(crate) fn learn(&mut self, id: ObjectId, set: &Object, selector: &Value, view: View<'_>) {
        // One that is no selector was refused by the API server.
        let Ok(selector) = LabelSelector::from_json(selector) else { return };
        let namespace = set.key.namespace.clone().unwrap_or_default();
        let matches = |(_, orphan): &(ObjectId, &Arc<Object>)| {
            orphan.body.tag() == self.child && selector.matches(&*orphan.meta.labels)
        };
        let orphans = view.orphans_in(&namespace).filter(matches);
        let wanted: BTreeSet<_> = orphans.map(|(orphan, _)| orphan).collect();
        if !wanted.is_empty() {
            self.wanted.insert(id, wanted);
        }
        self.selectors.insert(namespace, id, selector);
    }

    /// A set is gone.
    pub(crate) fn forget(&mut self, id: ObjectId, namespace: &str) {
        self.selectors.remove(namespace, id);
        self.wanted.remove(&id);
        self.strangers.remove(&id);
    }

    /// A pod was created, changed or deleted: queues the sets that may adopt or release it.
    pub(crate) fn child_seen(&mut self, event: &WatchEvent, view: View<'_>, queue: &mut WorkQueue<ObjectId>) {
        self.sets_for(event, view).into_iter().for_each(|set| queue.add(set));
    }

    /// The same for a controller whose queue holds other keys: the sets that may adopt the pod.
    pub(crate) fn sets_for(&mut self, event: &WatchEvent, view: View<'_>) -> Vec<ObjectId> {
        let is_there = event.change != Change::Deleted;
        let before = event.before.as_ref();
        let same = |before: &Arc<Object>| {
            before.meta.labels == event.object.meta.labels && before.has_owners_of(&event.object)
        };
        if is_there && before.is_some_and(same) {
            return Vec::new();
        }
        if let Some(orphan) = before.filter(|before| before.controller().is_none()) {
            self.forget_orphan(event.id, orphan);
        }
        match event.object.controller() {
            None if is_there => return self.orphan_seen(event),
            Some(owner) if owner.gvk == *self.kind => {
                if let Some((set, _)) = view.with_uid(owner.uid) {
                    self.own_seen(event, set, is_there);
                }
            }
            None | Some(_) => {}
        }
        Vec::new()
    }

    fn forget_orphan(&mut self, id: ObjectId, orphan: &Object) {
        if self.wanted.is_empty() {
            return;
        }
        for set in self.selectors.selecting(orphan.key.namespace_or_empty(), &orphan.meta.labels) {
            remove(&mut self.wanted, set, id);
        }
    }

    fn orphan_seen(&mut self, event: &WatchEvent) -> Vec<ObjectId> {
        let orphan = &event.object;
        let wanting = self.selectors.selecting(orphan.key.namespace_or_empty(), &orphan.meta.labels);
        for set in &wanting {
            self.wanted.entry(*set).or_default().insert(event.id);
        }
        wanting
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
            let held = self.finalizer.iter().filter(|finalizer| !pod.meta.finalizers.contains(finalizer));
            pod.meta.finalizers = pod.meta.finalizers.iter().chain(held).cloned().collect();
            Request::update(pod)
        };
        let release = |pod: &Arc<Object>| {
            let mut pod = Object::clone(pod);
            pod.meta.owners = pod.meta.owners.iter().filter(|owner| owner.uid != set.uid).cloned().collect();
            let kept = |finalizer: &&SmolStr| self.finalizer.as_ref() != Some(*finalizer);
            pod.meta.finalizers = pod.meta.finalizers.iter().filter(kept).cloned().collect();
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

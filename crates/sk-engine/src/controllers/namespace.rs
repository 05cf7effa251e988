//! The namespace controller: deletes the objects of a terminating namespace, then the namespace
//! (`pkg/controller/namespace`, 1.36).
//!
//! A namespace is looked at five seconds after its deletion. Its pods go first; five seconds later, when they are gone, the rest
//! goes. What is left then is counted as it goes, so that a namespace is looked through once and not after every object.
//!
//! Simplified: after that it looks again when the namespace is empty or something came, instead of after an estimate; the
//! namespace's conditions, which say what it waits for, are not written.

use std::collections::BTreeMap;
use std::sync::Arc;

use sk_apiserver::kinds::NAMESPACE;
use sk_apiserver::{Change, DeleteOptions, KindTag, Object, Request, View, WatchEvent};
use sk_core::{ObjectKey, SimDuration, SimTime, SmolStr};

use crate::controller::{Plan, Reconciler};
use crate::process::EVERY_KIND;
use crate::workqueue::WorkQueue;

/// From a change of a namespace that goes until it is looked at (`namespaceDeletionGracePeriod`). The first look changes its
/// conditions, so the second comes as much later.
const GRACE: SimDuration = SimDuration::from_secs(5);
/// What a pod has to end unless it says otherwise (`DefaultTerminationGracePeriodSeconds`).
const DEFAULT_POD_GRACE_SECS: i64 = 30;

/// The controller.
#[derive(Clone)]
pub(crate) struct Namespaces {
    /// The namespaces that are going: almost always none, so that almost every change is passed over at once.
    going: BTreeMap<SmolStr, Stage>,
}

/// How far a namespace's deletion has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Its pods are to go, or are going.
    Pods,
    /// All the rest was asked to go, and so much is left.
    Rest(usize),
}

impl Namespaces {
    pub(crate) fn new() -> Self {
        Self { going: BTreeMap::new() }
    }
}

impl Reconciler for Namespaces {
    type Key = SmolStr;

    const WATCHES: &'static [KindTag] = EVERY_KIND;

    fn wants_pods(&self) -> bool {
        !self.going.is_empty()
    }

    fn concerns(&mut self, event: &WatchEvent, _view: View<'_>, queue: &mut WorkQueue<SmolStr>) {
        let object = &event.object;
        if object.namespace().is_some() {
            let name = &object.key.name;
            if event.change == Change::Deleted {
                self.going.remove(name);
            } else if object.is_deleting() && !self.going.contains_key(name) {
                self.going.insert(name.clone(), Stage::Pods);
                queue.add_after(name.clone(), GRACE);
            }
            return;
        }
        let Some(namespace) = object.key.namespace.as_ref().filter(|_| !self.going.is_empty()) else { return };
        let Some(Stage::Rest(left)) = self.going.get_mut(namespace) else { return };
        match event.change {
            Change::Added => *left += 1,
            Change::Deleted => *left = left.saturating_sub(1),
            Change::Modified => return,
        }
        if *left == 0 || event.change == Change::Added {
            queue.add(namespace.clone());
        }
    }

    fn reconcile(&mut self, name: &SmolStr, view: View<'_>, _now: SimTime) -> Plan {
        let namespace = view.find(&NAMESPACE, &ObjectKey::cluster(name.clone()));
        if !namespace.is_some_and(|(_, namespace)| namespace.is_deleting()) {
            return Plan::nothing();
        }
        let mut content: Vec<_> = view.in_namespace(name).map(|(_, object)| object).collect();
        if content.is_empty() {
            return Plan::of([Request::FinalizeNamespace { name: name.clone() }]);
        }
        content.sort_by(|one, other| (&*one.gvk, &one.key).cmp(&(&*other.gvk, &other.key)));
        if self.going.get(name) == Some(&Stage::Pods) {
            let pods: Vec<_> = content.iter().filter(|object| object.pod().is_some()).copied().collect();
            if !pods.is_empty() {
                return Plan { again_after: Some(until_next_look(&pods)), ..deletions(pods) };
            }
        }
        self.going.insert(name.clone(), Stage::Rest(content.len()));
        deletions(content)
    }
}

/// When the pods are looked at again: soon if some were asked to go just now, else after half of what they have to end.
fn until_next_look(pods: &[&Arc<Object>]) -> SimDuration {
    if pods.iter().any(|pod| !pod.is_deleting()) {
        return GRACE;
    }
    let grace = |pod: &&Arc<Object>| pod.pod().and_then(|pod| pod.spec.termination_grace_period_seconds);
    let longest = pods.iter().map(|pod| grace(pod).unwrap_or(DEFAULT_POD_GRACE_SECS)).max().unwrap_or(0);
    SimDuration::from_secs(longest.max(0) / 2 + 1)
}

/// Asks all that are not going yet to go.
fn deletions(content: Vec<&Arc<Object>>) -> Plan {
    let content = content.into_iter().filter(|object| !object.is_deleting());
    Plan::of(content.map(|object| {
        let options = DeleteOptions { uid: Some(object.uid), ..DeleteOptions::default() };
        Request::Delete { target: object.reference(), options }
    }))
}

//! The namespace controller: deletes the objects of a terminating namespace, then the namespace
//! (`pkg/controller/namespace`, 1.36).
//!
//! It counts the remaining objects as they are deleted, so it lists a namespace once and not after every object.
//!
//! Simplified: it syncs again when the namespace is empty or a new object appears, instead of after an estimated time.

use std::collections::BTreeMap;

use sk_apiserver::kinds::NAMESPACE;
use sk_apiserver::{Change, DeleteOptions, KindTag, Request, View, WatchEvent};
use sk_core::{ObjectKey, SimTime, SmolStr};

use crate::controller::{Plan, Reconciler};
use crate::engine::EVERY_KIND;
use crate::workqueue::WorkQueue;

/// The controller. All it knows is in its view.
#[derive(Clone)]
pub(crate) struct Namespaces {
    /// The namespaces that are going, and how much is left in each once that was counted: almost always none, so that
    /// almost every change is passed over at once.
    going: BTreeMap<SmolStr, Option<usize>>,
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
                self.going.insert(name.clone(), None);
                queue.add(name.clone());
            }
            return;
        }
        let Some(namespace) = object.key.namespace.as_ref().filter(|_| !self.going.is_empty()) else { return };
        let Some(Some(left)) = self.going.get_mut(namespace) else { return };
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
        self.going.insert(name.clone(), Some(content.len()));
        if content.is_empty() {
            return Plan::of([Request::FinalizeNamespace { name: name.clone() }]);
        }
        content.retain(|object| !object.is_deleting());
        content.sort_by(|one, other| (&*one.gvk, &one.key).cmp(&(&*other.gvk, &other.key)));
        let deletions = content.into_iter().map(|object| {
            let options = DeleteOptions { uid: Some(object.uid), ..DeleteOptions::default() };
            Request::Delete { target: object.reference(), options }
        });
        Plan::of(deletions)
    }
}

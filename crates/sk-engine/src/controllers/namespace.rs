//! The namespace controller: empties a namespace that is to go, then lets it go (`pkg/controller/namespace`, 1.36).
//!
//! Simplified: it looks again whenever something in the namespace is gone, instead of after an estimate.

use sk_apiserver::kinds::NAMESPACE;
use sk_apiserver::{Change, DeleteOptions, KindTag, Request, View, WatchEvent};
use sk_core::{ObjectKey, SimTime, SmolStr};

use crate::controller::{Plan, Reconciler};
use crate::engine::EVERY_KIND;
use crate::workqueue::WorkQueue;

/// The controller. All it knows is in its view.
#[derive(Clone)]
pub(crate) struct Namespaces {
    /// The namespaces that are going: almost always none, so that almost every change is passed over at once.
    going: Vec<SmolStr>,
}

impl Namespaces {
    pub(crate) fn new() -> Self {
        Self { going: Vec::new() }
    }
}

impl Reconciler for Namespaces {
    type Key = SmolStr;

    const WATCHES: &'static [KindTag] = EVERY_KIND;

    fn concerns(&mut self, event: &WatchEvent, _view: View<'_>, queue: &mut WorkQueue<SmolStr>) {
        let object = &event.object;
        if object.namespace().is_some() {
            let name = &object.key.name;
            self.going.retain(|known| known != name);
            if object.is_deleting() && event.change != Change::Deleted {
                self.going.push(name.clone());
                queue.add(name.clone());
            }
        } else if event.change != Change::Modified
            && let Some(namespace) = self.going.iter().find(|known| object.key.namespace.as_ref() == Some(known))
        {
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
        content.retain(|object| !object.is_deleting());
        content.sort_by(|one, other| (&*one.gvk, &one.key).cmp(&(&*other.gvk, &other.key)));
        Plan::of(content.into_iter().map(|object| {
            let options = DeleteOptions { uid: Some(object.uid), ..DeleteOptions::default() };
            Request::Delete { target: object.reference(), options }
        }))
    }
}

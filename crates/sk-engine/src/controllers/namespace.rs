//! The namespace controller: empties a namespace that is to go, then lets it go (`pkg/controller/namespace`, 1.36).
//!
//! Simplified: it looks again whenever something in the namespace is gone, instead of after an estimate.

use sk_apiserver::kinds::NAMESPACE;
use sk_apiserver::{Change, DeleteOptions, Request};
use sk_core::{ObjectKey, SimTime, SmolStr};

use crate::cache::{Cache, Seen};
use crate::controller::{Plan, Reconciler};

/// The controller. All it knows is in its cache.
pub(crate) struct Namespaces;

impl Reconciler for Namespaces {
    type Key = SmolStr;

    fn concerns(&mut self, seen: &Seen, cache: &Cache) -> Vec<SmolStr> {
        if seen.object.gvk == NAMESPACE && seen.object.is_deleting() {
            return vec![seen.object.key.name.clone()];
        }
        let Some(namespace) = &seen.object.key.namespace else { return Vec::new() };
        let holder = cache.get(&NAMESPACE, &ObjectKey::cluster(namespace.clone()));
        let terminating = holder.is_some_and(|namespace| namespace.is_deleting());
        if terminating && seen.change != Change::Modified { vec![namespace.clone()] } else { Vec::new() }
    }

    fn reconcile(&mut self, name: &SmolStr, cache: &Cache, _now: SimTime) -> Plan {
        let Some(namespace) = cache.get(&NAMESPACE, &ObjectKey::cluster(name.clone())) else { return Plan::nothing() };
        if !namespace.is_deleting() {
            return Plan::nothing();
        }
        let content: Vec<_> = cache.all().filter(|object| object.key.namespace.as_ref() == Some(name)).collect();
        if content.is_empty() {
            return Plan::of([Request::FinalizeNamespace { name: name.clone() }]);
        }
        let waiting = content.into_iter().filter(|object| !object.is_deleting());
        Plan::of(waiting.map(|object| {
            let options = DeleteOptions { uid: Some(object.meta.uid), ..DeleteOptions::default() };
            Request::Delete { target: object.reference(), options }
        }))
    }
}

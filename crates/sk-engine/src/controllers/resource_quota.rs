//! The ResourceQuota controller: computes the usage of each quota (`pkg/controller/resourcequota`, 1.36).
//!
//! The API server charges new objects itself. This controller writes a quota's limits into its status, which puts them
//! into force, and subtracts deleted and finished objects. It updates usage as objects change instead of recounting in
//! every sync.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use sk_apiserver::quota::Quota;
use sk_apiserver::{Body, Change, KindTag, Object, ObjectId, Request, View, WatchEvent};
use sk_core::resources::Amounts;
use sk_core::{SimDuration, SimTime, SmolStr};

use crate::controller::{Plan, Reconciler};
use crate::process::EVERY_KIND;
use crate::workqueue::WorkQueue;

/// `--resource-quota-sync-period`: every quota is looked at so often whatever happens.
const SYNC_PERIOD: SimDuration = SimDuration::from_mins(5);

/// The controller.
#[derive(Clone, Default)]
pub(crate) struct ResourceQuotas {
    quotas: BTreeMap<SmolStr, BTreeMap<ObjectId, Tracked>>,
}

/// A quota, and how much of it is used.
#[derive(Clone, Default)]
struct Tracked {
    quota: Quota,
    used: Amounts,
}

impl Reconciler for ResourceQuotas {
    type Key = ObjectId;

    const WATCHES: &'static [KindTag] = EVERY_KIND;

    fn wants_pods(&self) -> bool {
        !self.quotas.is_empty()
    }

    fn concerns(&mut self, event: &WatchEvent, view: View<'_>, queue: &mut WorkQueue<ObjectId>) {
        let Some(namespace) = &event.object.key.namespace else { return };
        let recounted = match Quota::of(&event.object) {
            Some(quota) => self.quota_seen(event, namespace, quota, view, queue),
            None => false,
        };
        let Some(quotas) = self.quotas.get_mut(namespace) else { return };
        let after = (event.change != Change::Deleted).then_some(&event.object);
        for (id, tracked) in quotas.iter_mut().filter(|(id, _)| !(recounted && **id == event.id)) {
            let charge =
                |object: Option<&Arc<Object>>| object.map(|object| tracked.quota.charge(object)).unwrap_or_default();
            let (was, is) = (charge(event.before.as_ref()), charge(after));
            if was == is {
                continue;
            }
            for (name, amount) in is {
                *tracked.used.entry(name).or_default() += amount;
            }
            for (name, amount) in was {
                *tracked.used.entry(name).or_default() -= amount;
                queue.add(*id);
            }
        }
    }

    fn reconcile(&mut self, id: &ObjectId, view: View<'_>, _now: SimTime) -> Plan {
        let Some(object) = view.get(*id) else { return Plan::nothing() };
        let namespace = object.key.namespace.clone().unwrap_or_default();
        let tracked = self.quotas.get(&namespace).and_then(|quotas| quotas.get(id));
        let (Some(tracked), Body::Other(other)) = (tracked, &object.body) else { return Plan::nothing() };
        let mut plan = Plan { again_after: Some(SYNC_PERIOD), ..Plan::nothing() };
        let status = tracked.quota.status(&tracked.used);
        if status != *other.status.as_deref().unwrap_or(&Value::Null) {
            let mut updated = Object::clone(object);
            if let Body::Other(other) = &mut updated.body {
                other.status = Some(Arc::new(status));
            }
            plan.batches.push_back(vec![Request::update_status(updated)]);
        }
        plan
    }
}

impl ResourceQuotas {
    /// `true`: what it limits is new, and all that is used of it was counted.
    fn quota_seen(
        &mut self,
        event: &WatchEvent,
        namespace: &SmolStr,
        quota: Quota,
        view: View<'_>,
        queue: &mut WorkQueue<ObjectId>,
    ) -> bool {
        let quotas = self.quotas.entry(namespace.clone()).or_default();
        if event.change == Change::Deleted {
            quotas.remove(&event.id);
            if quotas.is_empty() {
                self.quotas.remove(namespace);
            }
            return false;
        }
        if quotas.get(&event.id).is_some_and(|tracked| tracked.quota == quota) {
            return false;
        }
        let mut used = Amounts::new();
        for (_, object) in view.in_namespace(namespace) {
            for (name, amount) in quota.charge(object) {
                *used.entry(name).or_default() += amount;
            }
        }
        quotas.insert(event.id, Tracked { quota, used });
        queue.add(event.id);
        true
    }
}

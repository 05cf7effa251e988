//! The replica set controller: as many pods as desired, no more and no fewer (`pkg/controller/replicaset`, 1.36).
//!
//! Simplified: pods without an owner are not adopted.

use std::sync::Arc;

use sk_apiserver::kinds::{POD, Pod, PodTemplate, REPLICA_SET, ReplicaSet, ReplicaSetStatus};
use sk_apiserver::{Body, Change, DeleteOptions, Meta, Object, Request};
use sk_core::{ObjectKey, SimDuration, SimTime, SmolStr};

use super::expectations::Expectations;
use super::victims;
use crate::cache::{Cache, Seen};
use crate::controller::{Plan, Reconciler};

/// At most this many creations or deletions in one go (`BurstReplicas`).
const BURST_REPLICAS: usize = 500;

/// The controller.
#[derive(Default)]
pub(crate) struct ReplicaSets {
    expectations: Expectations,
}

impl Reconciler for ReplicaSets {
    type Key = ObjectKey;

    fn concerns(&mut self, seen: &Seen, _cache: &Cache) -> Vec<ObjectKey> {
        let object = &seen.object;
        if object.gvk == REPLICA_SET {
            if seen.change == Change::Deleted {
                self.expectations.forget(&object.key);
            }
            return vec![object.key.clone()];
        }
        if object.gvk != POD {
            return Vec::new();
        }
        let Some(owner) = object.controller().filter(|owner| owner.gvk == REPLICA_SET) else { return Vec::new() };
        let key = ObjectKey { namespace: object.key.namespace.clone(), name: owner.name.clone() };
        let was_deleting = seen.before.as_ref().is_some_and(|before| before.is_deleting());
        match seen.change {
            Change::Added => self.expectations.creation_seen(&key),
            // A deletion counts from the moment it is asked for.
            Change::Modified if object.is_deleting() && !was_deleting => self.expectations.deletion_seen(&key),
            Change::Deleted if !was_deleting => self.expectations.deletion_seen(&key),
            _ => {}
        }
        vec![key]
    }

    fn reconcile(&mut self, key: &ObjectKey, cache: &Cache, now: SimTime) -> Plan {
        let Some(object) = cache.get(&REPLICA_SET, key) else { return Plan::nothing() };
        let Some(set) = object.replica_set() else { return Plan::nothing() };
        let pods: Vec<_> = cache.owned_by(object.meta.uid).filter(|pod| is_active(pod)).collect();
        let mut requests = Vec::new();
        if !object.is_deleting() && self.expectations.satisfied(key, now) {
            requests = self.balance(object, set, &pods, cache, now);
        }
        let (status, again_after) = status(object, set, &pods, now);
        requests.extend(status);
        Plan { requests, again_after }
    }

    fn refused(&mut self, key: &ObjectKey, unsent: &[Request]) {
        for request in unsent {
            match request {
                Request::Create(_) => self.expectations.creation_seen(key),
                Request::Delete { .. } => self.expectations.deletion_seen(key),
                _ => {}
            }
        }
    }
}

impl ReplicaSets {
    fn balance(
        &mut self,
        object: &Arc<Object>,
        set: &ReplicaSet,
        pods: &[&Arc<Object>],
        cache: &Cache,
        now: SimTime,
    ) -> Vec<Request> {
        let wanted = usize::try_from(set.spec.replicas).unwrap_or(0);
        let missing = wanted.saturating_sub(pods.len()).min(BURST_REPLICAS);
        let surplus = pods.len().saturating_sub(wanted).min(BURST_REPLICAS);
        if missing > 0 {
            self.expectations.expect(&object.key, missing as i64, 0, now);
            return (0..missing).map(|_| Request::Create(new_pod(object, &set.spec.template))).collect();
        }
        if surplus > 0 {
            self.expectations.expect(&object.key, 0, surplus as i64, now);
            let related = related_pods(object, cache);
            let mut pods = pods.to_vec();
            victims::sort(&mut pods, &related, now);
            return pods.into_iter().take(surplus).map(delete).collect();
        }
        Vec::new()
    }
}

/// Neither ended nor going.
fn is_active(pod: &Object) -> bool {
    !pod.is_deleting() && pod.pod().is_some_and(|pod| !pod.status.phase.is_final())
}

/// The active pods of all replica sets with the same owner.
fn related_pods<'a>(object: &'a Arc<Object>, cache: &'a Cache) -> Vec<&'a Arc<Object>> {
    let sets: Vec<_> = match object.controller() {
        Some(owner) => cache.owned_by(owner.uid).filter(|set| set.gvk == REPLICA_SET).collect(),
        None => vec![object],
    };
    sets.into_iter().flat_map(|set| cache.owned_by(set.meta.uid)).filter(|pod| is_active(pod)).collect()
}

fn delete(pod: &Arc<Object>) -> Request {
    let options = DeleteOptions { uid: Some(pod.meta.uid), ..DeleteOptions::default() };
    Request::Delete { target: pod.reference(), options }
}

/// A pod made from a template, owned by `owner`.
fn new_pod(owner: &Object, template: &PodTemplate) -> Object {
    Object {
        gvk: POD,
        key: ObjectKey { namespace: owner.key.namespace.clone(), name: SmolStr::default() },
        resource_version: 0,
        meta: Meta {
            generate_name: Some(format!("{}-", owner.key.name).into()),
            labels: template.metadata.labels.clone(),
            annotations: template.metadata.annotations.clone(),
            owners: vec![owner.as_controller()],
            ..Meta::default()
        },
        body: Body::Pod(Pod { spec: template.spec.clone(), ..Pod::default() }),
    }
}

/// What the set should report, if that is news, and when to look again for pods that become available by waiting.
fn status(
    object: &Arc<Object>,
    set: &ReplicaSet,
    pods: &[&Arc<Object>],
    now: SimTime,
) -> (Option<Request>, Option<SimDuration>) {
    let min_ready = SimDuration::from_secs(i64::from(set.spec.min_ready_seconds));
    let ready_for = pods.iter().filter_map(|pod| {
        let ready = pod.pod()?.status.condition("Ready").filter(|ready| ready.is_true())?;
        Some(now.since(ready.last_transition_time?))
    });
    let ready_for: Vec<SimDuration> = ready_for.collect();
    let available = ready_for.iter().filter(|ready| **ready >= min_ready).count();
    let again_after = ready_for.iter().filter(|ready| **ready < min_ready).map(|ready| min_ready - *ready).min();
    let labelled = |pod: &&&Arc<Object>| {
        set.spec.template.metadata.labels.iter().all(|(key, value)| pod.meta.labels.get(key) == Some(value))
    };
    let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    let status = ReplicaSetStatus {
        replicas: count(pods.len()),
        fully_labeled_replicas: count(pods.iter().filter(labelled).count()),
        ready_replicas: count(ready_for.len()),
        available_replicas: count(available),
        observed_generation: object.meta.generation,
    };
    if status == set.status {
        return (None, again_after);
    }
    let mut updated = Object::clone(object);
    // Figures, not decisions: they are written whatever else has changed meanwhile.
    updated.resource_version = 0;
    updated.body = Body::ReplicaSet(ReplicaSet { spec: set.spec.clone(), status });
    (Some(Request::UpdateStatus(updated)), again_after)
}

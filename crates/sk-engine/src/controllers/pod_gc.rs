//! The pod garbage collector: deletes surplus terminated pods, terminating pods that were never scheduled, and pods
//! bound to a node that does not exist (`pkg/controller/podgc`, 1.36).
//!
//! Kubernetes lists all pods every 20 s. Here the collector tracks the pods that such a list would find, and acts at
//! the same times. When a node is deleted, its virtual kubelet removes its pods at once (`kubelet.rs`), so the
//! collector never sees them.

use std::collections::BTreeSet;

use sk_apiserver::kinds::{Condition, NODE, Pod, PodPhase};
use sk_apiserver::{Body, Change, DeleteOptions, KindTag, Object, ObjectId, Request, View, WatchEvent};
use sk_core::{ObjectKey, SimDuration, SimTime};

use crate::controller::{Plan, Reconciler};
use crate::workqueue::WorkQueue;

/// How often it looks (`gcCheckPeriod`).
const PERIOD: SimDuration = SimDuration::from_secs(20);

/// A node that is missing may only be late (`quarantineTime`).
const QUARANTINE: SimDuration = SimDuration::from_secs(40);

/// The controller.
#[derive(Clone)]
pub(crate) struct PodGc {
    /// So many pods that have ended are kept (`--terminated-pod-gc-threshold`).
    threshold: usize,
    /// Pods that have ended, those first that go first.
    ended: BTreeSet<Ended>,
}

/// Evicted ones first, then the oldest.
type Ended = (bool, SimTime, ObjectKey, ObjectId);

/// What it works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// Pods that have ended, all of them.
    Ended,
    /// A terminating pod that never had a node: no kubelet will delete it.
    Unscheduled(ObjectId),
    /// A pod whose node is not there.
    Orphaned(ObjectId),
}

impl PodGc {
    pub(crate) fn new(threshold: usize) -> Self {
        Self { threshold, ended: BTreeSet::new() }
    }
}

impl Reconciler for PodGc {
    type Key = Key;

    const WATCHES: &'static [KindTag] = &[KindTag::Pod];

    fn concerns(&mut self, event: &WatchEvent, view: View<'_>, queue: &mut WorkQueue<Key>) {
        let wait = until_next_look(event.at);
        if let Some(entry) = event.before.as_ref().and_then(|before| ended(event.id, before)) {
            self.ended.remove(&entry);
        }
        if event.change == Change::Deleted {
            return;
        }
        if let Some(entry) = ended(event.id, &event.object) {
            self.ended.insert(entry);
            if self.ended.len() > self.threshold {
                queue.add_after(Key::Ended, wait);
            }
        }
        if is_unscheduled(&event.object) {
            queue.add_after(Key::Unscheduled(event.id), wait);
        }
        let was_bound = event.before.as_ref().and_then(|before| before.pod()?.node_name.as_ref()).is_some();
        if !was_bound && is_orphaned(&event.object, view) {
            queue.add_after(Key::Orphaned(event.id), wait + QUARANTINE);
        }
    }

    fn reconcile(&mut self, key: &Key, view: View<'_>, now: SimTime) -> Plan {
        match key {
            Key::Ended => {
                let surplus = self.ended.len().saturating_sub(self.threshold);
                let pods = self.ended.iter().take(surplus).filter_map(|(.., id)| view.get(*id));
                let mut plan = Plan::nothing();
                plan.batches.push_back(pods.map(|pod| delete(pod)).collect());
                plan.batches.retain(|batch| !batch.is_empty());
                plan
            }
            Key::Unscheduled(id) => {
                let Some(pod) = view.get(*id).filter(|pod| is_unscheduled(pod)) else { return Plan::nothing() };
                let mut failed = Object::clone(pod);
                if let Body::Pod(pod) = &mut failed.body {
                    pod.status.phase = PodPhase::Failed;
                }
                Plan::of([Request::update_status(failed), delete(pod)])
            }
            Key::Orphaned(id) => {
                let Some(pod) = view.get(*id).filter(|pod| is_orphaned(pod, view)) else { return Plan::nothing() };
                let mut failed = Object::clone(pod);
                if let Body::Pod(pod) = &mut failed.body
                    && !pod.status.phase.is_final()
                {
                    lost(pod, now);
                }
                Plan::of([Request::update_status(failed), delete(pod)])
            }
        }
    }
}

/// The looks come at whole periods.
fn until_next_look(at: SimTime) -> SimDuration {
    PERIOD - SimDuration::from_micros(at.as_micros().rem_euclid(PERIOD.as_micros()))
}

fn ended(id: ObjectId, object: &Object) -> Option<Ended> {
    let pod = object.pod().filter(|pod| pod.status.phase.is_final() && !object.is_deleting())?;
    let evicted = pod.status.why.as_ref().is_some_and(|why| why.reason == "Evicted");
    Some((!evicted, object.created, object.key.clone(), id))
}

/// The status of a pod whose node is gone, before it is deleted (`gcOrphaned`). How its containers ended is unknown.
pub(crate) fn lost(pod: &mut Pod, now: SimTime) {
    pod.status.phase = PodPhase::Failed;
    let condition = Condition::new("DisruptionTarget", true, now);
    pod.status.set_condition(condition.because("DeletionByPodGC", "PodGC: node no longer exists"));
}

fn is_orphaned(object: &Object, view: View<'_>) -> bool {
    let node = object.pod().and_then(|pod| pod.node_name.clone());
    node.is_some_and(|name| view.find(&NODE, &ObjectKey::cluster(name)).is_none())
}

fn is_unscheduled(object: &Object) -> bool {
    let waits = |pod: &Pod| pod.node_name.is_none() && !pod.status.phase.is_final();
    object.is_deleting() && object.pod().is_some_and(waits)
}

fn delete(pod: &Object) -> Request {
    let options = DeleteOptions { uid: Some(pod.uid), grace_secs: Some(0), ..DeleteOptions::default() };
    Request::Delete { target: pod.reference(), options }
}

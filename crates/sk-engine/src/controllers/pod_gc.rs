//! The pod garbage collector: deletes surplus terminated pods, terminating pods that were never scheduled, terminating
//! pods on nodes that are out of service, and pods bound to a node that does not exist (`pkg/controller/podgc`, 1.36).
//!
//! Kubernetes lists all pods every 20 s. Here the collector tracks the pods that such a list would find, and acts at
//! the same times. A node that is missing at one look is given 40 s to appear; its pods go at the look after that, so 40
//! to 60 s after the node was deleted. The real collector's third look and the end of the 40 s fall within a
//! millisecond, so in a small cluster it now and then misses them and collects 20 s later.

use std::collections::{BTreeMap, BTreeSet};

use sk_apiserver::kinds::{Condition, NODE, Node, Pod, PodPhase};
use sk_apiserver::{Body, Change, DeleteOptions, KindTag, Object, ObjectId, Request, View, WatchEvent};
use sk_core::{ObjectKey, SimDuration, SimTime, SmolStr};

use crate::controller::{Plan, Reconciler};
use crate::workqueue::WorkQueue;

/// How often it looks (`gcCheckPeriod`).
const PERIOD: SimDuration = SimDuration::from_secs(20);

/// A node that is missing may only be late (`quarantineTime`).
const QUARANTINE: SimDuration = SimDuration::from_secs(40);

/// Somebody says by this taint that a machine is off for good, so that nobody waits for its kubelet.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// The controller.
#[derive(Clone)]
pub(crate) struct PodGc {
    /// So many pods that have ended are kept (`--terminated-pod-gc-threshold`).
    threshold: usize,
    /// Pods that have ended, those first that go first.
    ended: BTreeSet<Ended>,
    /// Nodes that pods are bound to and that are not there.
    missing: BTreeMap<SmolStr, Missing>,
}

/// Evicted ones first, then the oldest.
type Ended = (bool, SimTime, ObjectKey, ObjectId);

/// How long a missing node is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    /// It may appear until then.
    Until(SimTime),
    /// It is gone for good, and its pods are being deleted.
    ForGood,
}

/// What it works on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// Pods that have ended, all of them.
    Ended,
    /// A terminating pod that never had a node: no kubelet will delete it.
    Unscheduled(ObjectId),
    /// A terminating pod whose node is out of service: its kubelet will never delete it.
    OutOfService(ObjectId),
    /// A node that is not there, with all pods that are bound to it.
    Missing(SmolStr),
}

impl PodGc {
    pub(crate) fn new(threshold: usize) -> Self {
        Self { threshold, ended: BTreeSet::new(), missing: BTreeMap::new() }
    }

    fn pod_seen(&mut self, event: &WatchEvent, view: View<'_>, queue: &mut WorkQueue<Key>) {
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
        if is_out_of_service(&event.object, view) {
            queue.add_after(Key::OutOfService(event.id), wait);
        }
        let node = event.object.pod().and_then(|pod| pod.node_name.as_ref());
        let was_bound = event.before.as_ref().and_then(|before| before.pod()?.node_name.as_ref()).is_some();
        if let Some(node) = node.filter(|node| !was_bound && self::node(node, view).is_none()) {
            queue.add_after(Key::Missing(node.clone()), wait);
        }
    }

    /// The pods of a node that is missing for longer than the quarantine go, one after the other.
    fn collect(&mut self, node: &SmolStr, view: View<'_>, now: SimTime) -> Plan {
        let mut pods: Vec<_> = view.pods_on(node).map(|(_, pod)| pod).collect();
        if pods.is_empty() || self::node(node, view).is_some() {
            self.missing.remove(node);
            return Plan::nothing();
        }
        let until = match self.missing.entry(node.clone()).or_insert(Missing::Until(now + QUARANTINE)) {
            Missing::Until(until) => *until,
            Missing::ForGood => now,
        };
        if until > now {
            return Plan { again_after: Some(until.since(now)), ..Plan::nothing() };
        }
        self.missing.insert(node.clone(), Missing::ForGood);
        pods.sort_by(|one, other| one.key.cmp(&other.key));
        let why =
            Condition::new("DisruptionTarget", true, now).because("DeletionByPodGC", "PodGC: node no longer exists");
        Plan::of(pods.into_iter().flat_map(|pod| fail_and_delete(pod, Some(&why))))
    }
}

impl Reconciler for PodGc {
    type Key = Key;

    const WATCHES: &'static [KindTag] = &[KindTag::Pod, KindTag::Node];

    fn concerns(&mut self, event: &WatchEvent, view: View<'_>, queue: &mut WorkQueue<Key>) {
        let Some(node) = event.object.node() else { return self.pod_seen(event, view, queue) };
        let (name, wait) = (&event.object.key.name, until_next_look(event.at));
        if event.change == Change::Deleted {
            if view.pods_on(name).next().is_some() {
                queue.add_after(Key::Missing(name.clone()), wait);
            }
        } else if is_off(node) {
            let going = view.pods_on(name).filter(|(_, pod)| pod.is_deleting());
            going.for_each(|(id, _)| queue.add_after(Key::OutOfService(id), wait));
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
                let pod = view.get(*id).filter(|pod| is_unscheduled(pod));
                Plan::of(pod.into_iter().flat_map(|pod| fail_and_delete(pod, None)))
            }
            Key::OutOfService(id) => {
                let pod = view.get(*id).filter(|pod| is_out_of_service(pod, view));
                Plan::of(pod.into_iter().flat_map(|pod| fail_and_delete(pod, None)))
            }
            Key::Missing(node) => self.collect(node, view, now),
        }
    }

    /// All pods of a missing node are gone: the next one that is bound to it has a quarantine of its own.
    fn follow_up(&mut self, key: &Key) -> Option<Request> {
        if let Key::Missing(node) = key
            && self.missing.get(node) == Some(&Missing::ForGood)
        {
            self.missing.remove(node);
        }
        None
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

fn node<'a>(name: &SmolStr, view: View<'a>) -> Option<&'a Node> {
    view.find(&NODE, &ObjectKey::cluster(name.clone())).and_then(|(_, node)| node.node())
}

/// Has somebody said that the machine is off, and is nothing heard of it?
fn is_off(node: &Node) -> bool {
    !node.is_ready() && node.spec.taints.iter().any(|taint| taint.key == OUT_OF_SERVICE)
}

fn is_out_of_service(object: &Object, view: View<'_>) -> bool {
    let name = object.pod().filter(|_| object.is_deleting()).and_then(|pod| pod.node_name.as_ref());
    name.and_then(|name| node(name, view)).is_some_and(is_off)
}

fn is_unscheduled(object: &Object) -> bool {
    let waits = |pod: &Pod| pod.node_name.is_none() && !pod.status.phase.is_final();
    object.is_deleting() && object.pod().is_some_and(waits)
}

/// No kubelet says how such a pod ends, so it counts as failed before it goes (`markFailedAndDeletePodWithCondition`).
/// How its containers ended is unknown.
fn fail_and_delete(pod: &Object, why: Option<&Condition>) -> Vec<Request> {
    let mut failed = pod.clone();
    let mut requests = Vec::with_capacity(2);
    if let Body::Pod(pod) = &mut failed.body
        && !pod.status.phase.is_final()
    {
        pod.status.phase = PodPhase::Failed;
        if let Some(why) = why {
            pod.status.set_condition(why.clone());
        }
        requests.push(Request::update_status(failed));
    }
    requests.push(delete(pod));
    requests
}

fn delete(pod: &Object) -> Request {
    let options = DeleteOptions { uid: Some(pod.uid), grace_secs: Some(0), ..DeleteOptions::default() };
    Request::Delete { target: pod.reference(), options }
}

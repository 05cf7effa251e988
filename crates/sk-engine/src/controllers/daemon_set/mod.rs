//! The DaemonSet controller (`pkg/controller/daemon`, 1.36): one pod on every eligible node, pinned there by node
//! affinity and bound by the scheduler.
//!
//! `placement` decides which nodes are eligible, `sync` what to create and delete on them, `rollout` how to update
//! pods to a new template, `backoff` how long to keep a failed pod.
//!
//! Nodes are taken in an order that chance gives, as Kubernetes ranges over a Go map of them.
//!
//! Simplified: the label `pod-template-generation`, a leftover of extensions/v1beta1, is not written.

mod backoff;
mod placement;
mod rollout;
mod sync;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sk_apiserver::kinds::{DAEMON_SET, DaemonSetSpec, PodPhase};
use sk_apiserver::{Answer, Body, Change, KindTag, Object, ObjectId, Verb, View, WatchEvent};
use sk_core::memo::Memo;
use sk_core::rng::Stream;
use sk_core::{SimTime, SmolStr};

use self::backoff::Backoff;
use self::placement::Placement;
use self::sync::Sync;
use super::adoption::Adoption;
use super::own_writes::OwnWrites;
use super::pods::is_active;
use super::revisions::{HASH_MEMORY, Revisions, template_hash};
use crate::controller::{Plan, Reconciler};
use crate::events::{self, Event};
use crate::workqueue::WorkQueue;

/// How it signs Events.
const FROM: &str = "daemonset-controller";
/// How many templates are remembered with what they mean; a cluster has some dozens of daemon sets, each a few KiB.
const PLACEMENT_MEMORY: usize = 1 << 10;

/// The controller.
#[derive(Clone)]
pub(crate) struct DaemonSets {
    adoption: Adoption,
    own_writes: OwnWrites,
    hashes: Memo<DaemonSetSpec, SmolStr>,
    placements: Memo<DaemonSetSpec, Arc<Placement>>,
    sets: BTreeSet<ObjectId>,
    nodes: BTreeMap<SmolStr, ObjectId>,
    failures: Backoff,
    /// In which order nodes are taken.
    order: Stream,
}

impl DaemonSets {
    pub(crate) fn new(order: Stream) -> Self {
        Self {
            adoption: Adoption::new(&DAEMON_SET, KindTag::Pod),
            own_writes: OwnWrites::default(),
            hashes: Memo::new(HASH_MEMORY),
            placements: Memo::new(PLACEMENT_MEMORY),
            sets: BTreeSet::new(),
            nodes: BTreeMap::new(),
            failures: Backoff::default(),
            order,
        }
    }
}

impl Reconciler for DaemonSets {
    type Key = ObjectId;

    const WATCHES: &'static [KindTag] = &[KindTag::DaemonSet, KindTag::Pod, KindTag::Node];

    fn pods_of(&self) -> Option<KindTag> {
        Some(KindTag::DaemonSet)
    }

    fn concerns(&mut self, event: &WatchEvent, view: View<'_>, queue: &mut WorkQueue<ObjectId>) {
        if let Body::DaemonSet(set) = &event.object.body {
            self.adoption.set_seen(event, &set.spec.selector, view);
            if event.change == Change::Deleted {
                self.own_writes.forget(event.id);
                self.failures.forget(event.id);
                self.sets.remove(&event.id);
            } else {
                self.sets.insert(event.id);
            }
            return queue.add(event.id);
        }
        if event.object.node().is_some() {
            return self.node_seen(event, view, queue);
        }
        self.adoption.child_seen(event, view, queue);
        let owner = |pod: &Arc<Object>| {
            let owner = pod.controller().filter(|owner| owner.gvk == DAEMON_SET)?;
            view.with_uid(owner.uid).map(|(id, _)| id)
        };
        for set in event.before.as_ref().and_then(owner).into_iter().chain(owner(&event.object)) {
            queue.add(set);
        }
    }

    fn reconcile(&mut self, id: &ObjectId, view: View<'_>, now: SimTime) -> Plan {
        let found = view.get(*id).and_then(|object| Some((object, object.daemon_set()?)));
        // What a set that is going still has of pods and revisions is not its to say.
        let Some((object, set)) = found.filter(|(object, _)| !object.is_deleting()) else { return Plan::nothing() };
        if !self.own_writes.are_seen(*id, view) {
            return Plan::nothing();
        }
        let claims = self.adoption.claim(*id, object, view, is_active);
        if !claims.is_empty() {
            return Plan::of(claims);
        }
        let hash = self.hashes.get_or_insert_with(&set.spec, |spec| template_hash(&spec.template));
        let placement = self.placements.get_or_insert_with(&set.spec, |spec| Arc::new(Placement::of(spec)));
        let nodes = self.nodes.values().filter_map(|node| view.get(*node)).collect();
        let sync = Sync::new((*id, object, set), &hash, &placement, nodes, view, now);
        sync.plan(&Revisions::of(object, view), &mut self.failures, &mut self.order)
    }

    fn events(&self, id: &ObjectId, verb: Verb, answer: &Answer, view: View<'_>) -> Vec<Event> {
        let Some(set) = view.get(*id) else { return Vec::new() };
        let ended = answer.as_ref().ok().filter(|_| verb == Verb::Delete).and_then(|pod| found_ended(set, pod));
        ended.into_iter().chain(events::of_pods(FROM, set, verb, answer)).collect()
    }

    fn answered(&mut self, id: &ObjectId, _verb: Verb, answer: &Answer) {
        if answer.as_ref().is_ok_and(|object| object.pod().is_some() || object.daemon_set().is_some()) {
            self.own_writes.answered(*id, answer);
        }
    }
}

impl DaemonSets {
    /// A node that came, or whose labels or taints changed, concerns the sets that it matters to (`syncNodeUpdate`).
    fn node_seen(&mut self, event: &WatchEvent, view: View<'_>, queue: &mut WorkQueue<ObjectId>) {
        let object = &event.object;
        let Some(node) = object.node() else { return };
        if event.change == Change::Deleted {
            // Its pods go, and that is when their sets look.
            self.nodes.remove(&object.key.name);
            return;
        }
        self.nodes.insert(object.key.name.clone(), event.id);
        let same = |before: &Arc<Object>| {
            before.meta.labels == object.meta.labels
                && before.node().is_some_and(|before| before.spec.taints == node.spec.taints)
        };
        if event.before.as_ref().is_some_and(same) {
            return;
        }
        for id in &self.sets {
            let Some((owner, set)) = view.get(*id).and_then(|object| Some((object, object.daemon_set()?))) else {
                continue;
            };
            let placement = self.placements.get_or_insert_with(&set.spec, |spec| Arc::new(Placement::of(spec)));
            let fit = placement.fit(object);
            let is_its_own = |pod: &Object| pod.controller().is_some_and(|controller| controller.uid == owner.uid);
            let has_pod = view.pods_on(&object.key.name).any(|(_, pod)| is_its_own(pod));
            let is_misplaced = has_pod && (!fit.may_stay || set.status.number_misscheduled > 0);
            if is_misplaced || (fit.should_run && !has_pod) {
                queue.add(*id);
            }
        }
    }
}

/// The Event of a failed pod that is deleted (`podsShouldBeOnNode`).
fn found_ended(set: &Object, object: &Object) -> Option<Event> {
    let pod = object.pod()?;
    let node = pod.node_name.as_deref().unwrap_or_default();
    match pod.status.phase {
        PodPhase::Failed => {
            let message = format!("Found failed daemon pod {} on node {node}, will try to kill it", object.key);
            Some(Event::warning(FROM, set, "FailedDaemonPod", message))
        }
        PodPhase::Succeeded => {
            let message = format!("Found succeeded daemon pod {} on node {node}, will try to delete it", object.key);
            Some(Event::normal(FROM, set, "SucceededDaemonPod", message))
        }
        PodPhase::Pending | PodPhase::Running | PodPhase::Unknown => None,
    }
}

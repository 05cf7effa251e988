//! The ReplicaSet controller: keeps as many pods as desired (`pkg/controller/replicaset`, 1.36). A second instance
//! works on ReplicationControllers, as in Kubernetes (`pkg/controller/replication`).
//!
//! It counts a set's pods as they change instead of in every sync, and lists them only to choose pods to delete.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use sk_apiserver::kinds::{
    Condition, REPLICA_SET, REPLICATION_CONTROLLER, ReplicaSet, ReplicaSetStatus, ReplicationController,
};
use sk_apiserver::{
    Answer, Body, Change, KindTag, Labels, Object, ObjectId, OwnerRef, Reason, Request, Verb, View, WatchEvent,
};
use sk_core::{Gvk, SimDuration, SimTime};

use super::adoption::Adoption;
use super::availability::Availability;
use super::expectations::Expectations;
use super::pod_ranking;
use super::pods::{delete, generated, is_active, ready_since, slow_start};
use crate::controller::{Plan, Reconciler};
use crate::events::{self, Event};
use crate::workqueue::WorkQueue;

/// The condition of a set whose pods were refused.
pub(super) const REPLICA_FAILURE: &str = "ReplicaFailure";
/// The path of a set's conditions in its status.
pub(super) const CONDITIONS: &str = "conditions";

/// At most this many creations or deletions in one go (`BurstReplicas`).
const BURST_REPLICAS: usize = 500;

/// The controller.
#[derive(Clone)]
pub(crate) struct ReplicaSets {
    /// Which of the two kinds it works on.
    kind: &'static Gvk,
    adoption: Adoption,
    expectations: Expectations,
    counts: BTreeMap<ObjectId, Counts>,
    /// The ready pods of sets that want them to be ready for a while before they count as available.
    available: BTreeMap<ObjectId, Availability>,
    /// What the current sync of a set was refused first.
    refusals: BTreeMap<ObjectId, Refusal>,
}

/// Why a pod could not be made or deleted.
#[derive(Clone)]
struct Refusal {
    reason: &'static str,
    message: String,
}

/// The active pods of one set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    active: i32,
    ready: i32,
    fully_labeled: i32,
    terminating: i32,
}

impl ReplicaSets {
    pub(crate) fn new() -> Self {
        Self::of(&REPLICA_SET)
    }

    pub(crate) fn of_replication_controllers() -> Self {
        Self::of(&REPLICATION_CONTROLLER)
    }

    fn of(kind: &'static Gvk) -> Self {
        let adoption = Adoption::new(kind, KindTag::Pod);
        Self {
            kind,
            adoption,
            expectations: Expectations::default(),
            counts: BTreeMap::new(),
            available: BTreeMap::new(),
            refusals: BTreeMap::new(),
        }
    }
}

impl Reconciler for ReplicaSets {
    type Key = ObjectId;

    const WATCHES: &'static [KindTag] = &[KindTag::ReplicaSet, KindTag::ReplicationController, KindTag::Pod];

    fn pods_of(&self) -> Option<KindTag> {
        Some(if *self.kind == REPLICA_SET { KindTag::ReplicaSet } else { KindTag::ReplicationController })
    }

    fn concerns(&mut self, event: &WatchEvent, view: View<'_>, queue: &mut WorkQueue<ObjectId>) {
        if let Some(set) = event.object.replica_set() {
            if event.object.gvk != *self.kind {
                return;
            }
            self.adoption.set_seen(event, &set.spec.selector, view);
            self.set_changed(event, set, view);
            queue.add(event.id);
        } else {
            self.adoption.child_seen(event, view, queue);
            self.pod_changed(event, view, queue);
        }
    }

    fn reconcile(&mut self, id: &ObjectId, view: View<'_>, now: SimTime) -> Plan {
        let Some(object) = view.get(*id) else { return Plan::nothing() };
        let Some(set) = object.replica_set() else { return Plan::nothing() };
        let claims = self.adoption.claim(*id, object, view, is_active);
        if !claims.is_empty() {
            return Plan::of(claims);
        }
        self.refusals.remove(id);
        let mut plan = Plan::nothing();
        if !object.is_deleting() && self.expectations.satisfied(*id, now) {
            plan = self.balance(*id, object, set, view, now);
        }
        let (available, again_after) = self.available(*id, object, view, now);
        plan.batches.extend(self.status(*id, object, set, available, now).map(|request| vec![request]));
        plan.again_after = again_after;
        plan
    }

    fn answered(&mut self, id: &ObjectId, verb: Verb, answer: &Answer) {
        let Err(error) = answer else { return };
        self.abandoned(id, verb);
        let reason = match verb {
            Verb::Create if error.is_namespace_terminating() => return,
            Verb::Create => "FailedCreate",
            Verb::Delete if error.reason != Reason::NotFound => "FailedDelete",
            _ => return,
        };
        self.refusals.entry(*id).or_insert_with(|| Refusal { reason, message: error.to_string() });
    }

    fn after_refusal(&mut self, id: &ObjectId, view: View<'_>, now: SimTime) -> Option<Request> {
        let object = view.get(*id)?;
        let set = object.replica_set()?;
        let (available, _) = self.available(*id, object, view, now);
        self.status(*id, object, set, available, now)
    }

    fn events(&self, id: &ObjectId, verb: Verb, answer: &Answer, view: View<'_>) -> Vec<Event> {
        let from = if *self.kind == REPLICA_SET { "replicaset-controller" } else { "replication-controller" };
        view.get(*id).and_then(|set| events::of_pods(from, set, verb, answer)).into_iter().collect()
    }

    /// What was not done, or was refused, is not waited for.
    fn abandoned(&mut self, id: &ObjectId, unsent: Verb) {
        match unsent {
            Verb::Create => self.expectations.creation_seen(*id),
            Verb::Delete => self.expectations.deletion_seen(*id),
            Verb::Apply
            | Verb::Update
            | Verb::UpdateStatus
            | Verb::PatchPodStatus
            | Verb::Bind
            | Verb::Evict
            | Verb::Patch
            | Verb::Scale
            | Verb::RemoveFinalizer
            | Verb::FinalizeNamespace => {}
        }
    }
}

impl ReplicaSets {
    fn set_changed(&mut self, event: &WatchEvent, set: &ReplicaSet, view: View<'_>) {
        if event.change == Change::Deleted {
            self.expectations.forget(event.id);
            self.counts.remove(&event.id);
            self.available.remove(&event.id);
            self.refusals.remove(&event.id);
            return;
        }
        let before = event.before.as_ref().and_then(|before| before.replica_set());
        if before.is_some_and(|before| before.spec.template.metadata.labels != set.spec.template.metadata.labels) {
            let pods =
                view.owned_by(event.object.uid).map(|(_, pod)| Counts::of(pod, &set.spec.template.metadata.labels));
            self.counts.insert(event.id, pods.fold(Counts::default(), |sum, one| sum.plus(one, 1)));
        }
        let min_ready = set.spec.min_ready_seconds;
        if min_ready <= 0 {
            self.available.remove(&event.id);
        } else if before.is_none_or(|before| before.spec.min_ready_seconds != min_ready) {
            self.available.insert(event.id, counted(&event.object, min_ready, view));
        }
    }

    fn pod_changed(&mut self, event: &WatchEvent, view: View<'_>, queue: &mut WorkQueue<ObjectId>) {
        let before = event.before.as_ref();
        let moved = before.filter(|before| !before.has_owners_of(&event.object));
        if let Some(before) = moved
            && let Some((id, labels)) = owner(before, self.kind).and_then(|owner| set_of(owner, view))
        {
            self.count(id, Counts::of(before, labels), -1);
            self.ready_changed(id, event.id, Some(before), None);
            queue.add(id);
        }
        let Some((id, labels)) = owner(&event.object, self.kind).and_then(|owner| set_of(owner, view)) else { return };
        let before = before.filter(|_| moved.is_none());
        let after = (event.change != Change::Deleted).then_some(&event.object);
        self.count(id, Counts::change(before, after, labels), 1);
        self.ready_changed(id, event.id, before, after);
        let was_deleting = event.before.as_ref().is_some_and(|before| before.is_deleting());
        match event.change {
            Change::Added => self.expectations.creation_seen(id),
            // A deletion counts from the moment it is asked for.
            Change::Modified if event.object.is_deleting() && !was_deleting => self.expectations.deletion_seen(id),
            Change::Deleted if !was_deleting => self.expectations.deletion_seen(id),
            Change::Modified | Change::Deleted => {}
        }
        queue.add(id);
    }

    fn count(&mut self, id: ObjectId, pod: Counts, by: i32) {
        if pod != Counts::default() {
            let counts = self.counts.entry(id).or_default();
            *counts = counts.plus(pod, by);
        }
    }

    fn ready_changed(
        &mut self,
        set: ObjectId,
        pod: ObjectId,
        before: Option<&Arc<Object>>,
        after: Option<&Arc<Object>>,
    ) {
        if let Some(available) = self.available.get_mut(&set) {
            let since = |pod: Option<&Arc<Object>>| pod.filter(|pod| is_active(pod)).and_then(|pod| ready_since(pod));
            available.change(pod, since(before), since(after));
        }
    }

    fn balance(&mut self, id: ObjectId, object: &Arc<Object>, set: &ReplicaSet, view: View<'_>, now: SimTime) -> Plan {
        let wanted = usize::try_from(set.spec.replicas).unwrap_or(0);
        let active = self.counts.get(&id).map_or(0, |counts| usize::try_from(counts.active).unwrap_or(0));
        let missing = wanted.saturating_sub(active).min(BURST_REPLICAS);
        let surplus = active.saturating_sub(wanted).min(BURST_REPLICAS);
        if missing > 0 {
            self.expectations.expect(id, missing as i64, 0, now);
            let owners: Arc<[OwnerRef]> = [object.as_controller()].into();
            let template = &set.spec.template;
            let pod = || generated(object, &owners, &template.metadata, &template.spec);
            return Plan { batches: slow_start((0..missing).map(|_| pod())), again_after: None };
        }
        if surplus > 0 {
            self.expectations.expect(id, 0, surplus as i64, now);
            let mut pods: Vec<_> = view.owned_by(object.uid).map(|(_, pod)| pod).filter(|pod| is_active(pod)).collect();
            pod_ranking::sort(&mut pods, &related_pods(object, view), now);
            let gone = pods.into_iter().take(surplus).map(|pod| delete(pod)).collect();
            return Plan { batches: [gone].into(), again_after: None };
        }
        Plan::nothing()
    }

    /// How many pods have been ready for long enough, and when to look again for those that become so by waiting.
    fn available(&mut self, id: ObjectId, object: &Object, view: View<'_>, now: SimTime) -> (i32, Option<SimDuration>) {
        let Some(available) = self.available.get_mut(&id) else {
            return (self.counts.get(&id).map_or(0, |counts| counts.ready), None);
        };
        let min_ready = object.replica_set().map_or(0, |set| set.spec.min_ready_seconds);
        debug_assert_eq!(
            available.at(now),
            counted(object, min_ready, view).at(now),
            "the available pods of {} are not as many as there are",
            object.key
        );
        available.at(now)
    }

    /// What the set should report, if that is news.
    fn status(&self, id: ObjectId, object: &Object, set: &ReplicaSet, available: i32, now: SimTime) -> Option<Request> {
        let counts = self.counts.get(&id).copied().unwrap_or_default();
        let status = ReplicaSetStatus {
            replicas: counts.active,
            fully_labeled_replicas: counts.fully_labeled,
            ready_replicas: counts.ready,
            available_replicas: available,
            // Replication controllers do not report it.
            terminating_replicas: (*self.kind == REPLICA_SET).then_some(counts.terminating),
            observed_generation: object.meta.generation,
            rest: self.told(id, &set.status.rest, now),
        };
        if status == set.status {
            return None;
        }
        let mut updated = object.clone();
        // Figures, not decisions: they are written whatever else has changed meanwhile.
        updated.resource_version = 0;
        let set = ReplicaSet { spec: set.spec.clone(), status };
        updated.body = match &object.body {
            Body::ReplicationController(_) => Body::ReplicationController(ReplicationController(set)),
            _ => Body::ReplicaSet(set),
        };
        Some(Request::update_status(updated))
    }
}

impl ReplicaSets {
    /// The conditions: whether pods were refused in this sync. An existing one keeps its message.
    fn told(&self, id: ObjectId, rest: &Map<String, Value>, now: SimTime) -> Map<String, Value> {
        let refusal = self.refusals.get(&id);
        if refusal.is_none() && !rest.contains_key(CONDITIONS) {
            return rest.clone();
        }
        let mut rest = rest.clone();
        let known = rest.remove(CONDITIONS);
        let mut conditions = known.as_ref().and_then(Value::as_array).cloned().unwrap_or_default();
        match refusal {
            None => conditions.retain(|condition| condition["type"] != REPLICA_FAILURE),
            Some(_) if conditions.iter().any(|condition| condition["type"] == REPLICA_FAILURE) => {}
            Some(Refusal { reason, message }) => {
                let condition = Condition::new(REPLICA_FAILURE, true, now).because(*reason, message.as_str());
                conditions.push(json!(condition));
            }
        }
        if !conditions.is_empty() {
            rest.insert(CONDITIONS.to_owned(), conditions.into());
        }
        rest
    }
}

impl Counts {
    /// What one pod adds.
    fn of(pod: &Object, template: &Labels) -> Self {
        if !is_active(pod) {
            let is_going = pod.is_deleting() && pod.pod().is_some_and(|pod| !pod.status.phase.is_final());
            return Self { terminating: i32::from(is_going), ..Self::default() };
        }
        let labels = &pod.meta.labels;
        let labelled = labels.is_same(template) || template.iter().all(|(key, value)| labels.get(key) == Some(value));
        let ready = i32::from(ready_since(pod).is_some());
        Self { active: 1, ready, fully_labeled: i32::from(labelled), terminating: 0 }
    }

    /// By how much the counts differ once a pod has changed.
    fn change(before: Option<&Arc<Object>>, after: Option<&Arc<Object>>, template: &Labels) -> Self {
        if let (Some(before), Some(after)) = (before, after)
            && is_active(before)
            && is_active(after)
            && before.meta.labels.is_same(&after.meta.labels)
        {
            let ready = |pod| i32::from(ready_since(pod).is_some());
            return Self { ready: ready(after) - ready(before), ..Self::default() };
        }
        let of = |pod: Option<&Arc<Object>>| pod.map_or_else(Self::default, |pod| Self::of(pod, template));
        of(after).plus(of(before), -1)
    }

    fn plus(self, pod: Self, times: i32) -> Self {
        Self {
            active: self.active + times * pod.active,
            ready: self.ready + times * pod.ready,
            fully_labeled: self.fully_labeled + times * pod.fully_labeled,
            terminating: self.terminating + times * pod.terminating,
        }
    }
}

/// The set of this kind that manages a pod, as the pod names it.
fn owner<'a>(pod: &'a Arc<Object>, kind: &Gvk) -> Option<&'a OwnerRef> {
    pod.controller().filter(|owner| owner.gvk == *kind)
}

/// The replica set itself, and the labels of its template.
fn set_of<'a>(owner: &OwnerRef, view: View<'a>) -> Option<(ObjectId, &'a Labels)> {
    let (id, set) = view.with_uid(owner.uid)?;
    Some((id, &set.replica_set()?.spec.template.metadata.labels))
}

/// The active pods of a set that are ready, counted anew.
fn counted(set: &Object, min_ready_seconds: i32, view: View<'_>) -> Availability {
    let mut available = Availability::new(min_ready_seconds);
    let is_its_own = |pod: &Object| is_active(pod) && pod.controller().is_some_and(|owner| owner.uid == set.uid);
    for (id, pod) in view.owned_by(set.uid).filter(|(_, pod)| is_its_own(pod)) {
        available.change(id, None, ready_since(pod));
    }
    available
}

/// The active pods of all replica sets with the same owner.
fn related_pods<'a>(object: &'a Arc<Object>, view: View<'a>) -> Vec<&'a Arc<Object>> {
    let sets: Vec<_> = match object.controller() {
        Some(owner) => view.owned_by(owner.uid).map(|(_, set)| set).filter(|set| set.gvk == REPLICA_SET).collect(),
        None => vec![object],
    };
    let pods = sets.into_iter().flat_map(|set| view.owned_by(set.uid)).map(|(_, pod)| pod);
    pods.filter(|pod| is_active(pod)).collect()
}

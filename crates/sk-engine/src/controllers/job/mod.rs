//! The Job controller: runs pods to completion and counts each exactly once (`pkg/controller/job`, 1.36).
//!
//! ```text
//! concerns: which Job to sync and when (changes of pods are batched for a second)
//! reconcile ─► sync (the current state) ─► verdict (is it finished?) ─► manage (pods to create or delete)
//!                                       ─► track (status, remove finalizers, status again) ─► Plan
//! ```
//!
//! A Job's pod has a finalizer until it is counted. The controller first writes the pod's uid into the status as
//! uncounted, then removes the finalizer, then increments the counter: whatever fails in between, no pod is counted
//! twice or lost.
//!
//! Simplified: when a creation is refused, the counts of active pods are still written, and pods that have ended are
//! counted by the next sync. Adopted pods are counted by the sync after the one that adopts them.

mod backoff;
mod claims;
mod creation;
mod failure_policy;
mod manage;
mod pods;
mod sync;
mod track;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sk_apiserver::kinds::{JOB, JOB_CONTROLLER, Job, JobStatus};
use sk_apiserver::{Answer, Body, Change, KindTag, Object, ObjectId, Request, Uid, Verb, View, WatchEvent};
use sk_core::{SimDuration, SimTime};

use self::backoff::Backoff;
use self::claims::Claims;
use self::pods::{is_tracked, release};
use self::sync::{Outcome, Sync};
use super::expectations::Expectations;
use crate::controller::{Plan, Reconciler};
use crate::events::{self, Event};
use crate::workqueue::{Delays, WorkQueue};

/// How it signs Events.
const FROM: &str = "job-controller";
/// News of pods and of the status is gathered for this long (`SyncJobBatchPeriod`).
const BATCH_PERIOD: SimDuration = SimDuration::from_secs(1);

/// The controller.
#[derive(Clone, Default)]
pub(crate) struct Jobs {
    expectations: Expectations,
    claims: Claims,
    /// Pods whose finalizer was taken off and that have not been seen without it.
    removals: BTreeMap<ObjectId, BTreeSet<Uid>>,
    /// Failures in a row, by Job.
    backoffs: BTreeMap<ObjectId, Backoff>,
    /// Records that come to hold once the status of the sync under way is written.
    pending: BTreeMap<ObjectId, Backoff>,
    /// Jobs of which a pod was refused: they report all the same.
    refused: BTreeSet<ObjectId>,
}

/// What it works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// A Job.
    Job(ObjectId),
    /// A pod with the finalizer whose Job is gone or over.
    Orphan(ObjectId),
}

impl Reconciler for Jobs {
    type Key = Key;

    const WATCHES: &'static [KindTag] = &[KindTag::Job, KindTag::Pod];

    /// `DefaultJobApiBackOff` and `MaxJobApiBackOff`
    const DELAYS: Delays = Delays { base: SimDuration::from_secs(1), max: SimDuration::from_secs(60) };

    fn pods_of(&self) -> Option<KindTag> {
        Some(KindTag::Job)
    }

    fn concerns(&mut self, event: &WatchEvent, view: View<'_>, queue: &mut WorkQueue<Key>) {
        match &event.object.body {
            Body::Job(job) => self.job_changed(event, job, view, queue),
            Body::Pod(_) => self.pod_changed(event, view, queue),
            Body::Node(_)
            | Body::Namespace(_)
            | Body::Deployment(_)
            | Body::ReplicaSet(_)
            | Body::ReplicationController(_)
            | Body::StatefulSet(_)
            | Body::DaemonSet(_)
            | Body::CronJob(_)
            | Body::Other(_) => {}
        }
    }

    fn reconcile(&mut self, key: &Key, view: View<'_>, now: SimTime) -> Plan {
        match key {
            Key::Orphan(pod) => release_orphan(*pod, view),
            Key::Job(id) => self.sync(*id, view, now),
        }
    }

    fn answered(&mut self, key: &Key, verb: Verb, answer: &Answer) {
        let Key::Job(id) = key else { return };
        if let Err(_refused) = answer {
            if verb == Verb::Create {
                self.refused.insert(*id);
            }
            return self.abandoned(key, verb);
        }
        if verb == Verb::UpdateStatus
            && let Some(backoff) = self.pending.remove(id)
        {
            self.backoffs.insert(*id, backoff);
        }
    }

    /// A Job whose pods are refused still reports those that it has (`syncJob` goes on after an error of `manageJob`).
    fn after_refusal(&mut self, key: &Key, view: View<'_>, now: SimTime) -> Option<Request> {
        let Key::Job(id) = key else { return None };
        let object = view.get(*id).filter(|_| self.refused.remove(id))?;
        let job = object.job().filter(|job| !job.status.is_finished())?;
        let nothing = BTreeSet::new();
        let removals = self.removals.get(id).unwrap_or(&nothing);
        let backoff = self.backoffs.get(id).copied().unwrap_or_default();
        let Outcome { plan, released, .. } = Sync::new(object, job, view, removals, backoff, false, now).run();
        let first = plan.batches.into_iter().flatten().find(|request| request.verb() == Verb::UpdateStatus);
        // Pods that are to be counted wait for the next sync.
        first.filter(|_| released.is_empty())
    }

    fn events(&self, key: &Key, verb: Verb, answer: &Answer, view: View<'_>) -> Vec<Event> {
        let Key::Job(id) = key else { return Vec::new() };
        let Some(job) = view.get(*id) else { return Vec::new() };
        let turned = answer.as_ref().ok().filter(|_| verb == Verb::UpdateStatus).map(|after| turns(job, after));
        turned.unwrap_or_default().into_iter().chain(events::of_pods(FROM, job, verb, answer)).collect()
    }

    /// What was not done, or was refused, is not waited for.
    fn abandoned(&mut self, key: &Key, unsent: Verb) {
        let Key::Job(id) = key else { return };
        match unsent {
            Verb::Create => self.expectations.creation_seen(*id),
            Verb::Delete => self.expectations.deletion_seen(*id),
            Verb::RemoveFinalizer => drop(self.removals.remove(id)),
            Verb::UpdateStatus => drop(self.pending.remove(id)),
            Verb::Apply
            | Verb::Update
            | Verb::PatchPodStatus
            | Verb::Bind
            | Verb::Evict
            | Verb::Patch
            | Verb::Scale
            | Verb::FinalizeNamespace => {}
        }
    }
}

impl Jobs {
    fn job_changed(&mut self, event: &WatchEvent, job: &Job, view: View<'_>, queue: &mut WorkQueue<Key>) {
        self.claims.job_seen(event, job, view);
        let over = event.change == Change::Deleted || job.status.is_finished();
        if over {
            // What a sync will not do any more: pods that still have the finalizer.
            let mut left: Vec<_> =
                pods::of(&event.object, view).into_iter().filter(|(_, pod)| is_tracked(pod)).collect();
            left.sort_by(|(_, one), (_, other)| one.key.cmp(&other.key));
            left.into_iter().for_each(|(id, _)| queue.add(Key::Orphan(id)));
            self.backoffs.remove(&event.id);
            self.pending.remove(&event.id);
            self.refused.remove(&event.id);
        }
        if event.change == Change::Deleted {
            self.expectations.forget(event.id);
            self.removals.remove(&event.id);
        } else if !over {
            let same_spec =
                event.before.as_ref().is_some_and(|before| before.meta.generation == event.object.meta.generation);
            match same_spec {
                true => queue.add_after(Key::Job(event.id), BATCH_PERIOD),
                false => queue.add(Key::Job(event.id)),
            }
        }
    }

    fn pod_changed(&mut self, event: &WatchEvent, view: View<'_>, queue: &mut WorkQueue<Key>) {
        let (pod, is_gone) = (&event.object, event.change == Change::Deleted);
        self.claims.pod_seen(event, view).into_iter().for_each(|job| queue.add_after(Key::Job(job), BATCH_PERIOD));
        let owner = pod.controller().filter(|owner| owner.gvk == JOB);
        let former = event.before.as_ref().and_then(|before| before.controller().cloned());
        if let Some(former) =
            former.filter(|former| former.gvk == JOB && owner.is_none_or(|owner| owner.uid != former.uid))
            && let Some((id, _)) = view.with_uid(former.uid)
        {
            queue.add_after(Key::Job(id), BATCH_PERIOD);
        }
        let job = owner.and_then(|owner| view.with_uid(owner.uid));
        let Some((id, _)) = job.filter(|(_, job)| job.job().is_some_and(|job| !job.status.is_finished())) else {
            // A sync will not remove this finalizer.
            if is_tracked(pod) && !is_gone && (owner.is_none() || pod.is_deleting()) {
                queue.add(Key::Orphan(event.id));
            }
            return;
        };
        if event.change == Change::Added {
            self.expectations.creation_seen(id);
        }
        if is_gone || pod.is_deleting() {
            self.expectations.deletion_seen(id);
        }
        if (is_gone || !is_tracked(pod))
            && let Some(removals) = self.removals.get_mut(&id)
        {
            removals.remove(&pod.uid);
        }
        // Its adoption was the first half of a sync, which goes on at once.
        let is_adopted = event.before.as_ref().is_some_and(|before| before.controller().is_none());
        match is_adopted {
            true => queue.add(Key::Job(id)),
            false => queue.add_after(Key::Job(id), BATCH_PERIOD),
        }
    }

    fn sync(&mut self, id: ObjectId, view: View<'_>, now: SimTime) -> Plan {
        let Some(object) = view.get(id) else { return Plan::nothing() };
        let Some(job) = object.job().filter(|job| is_ours(job) && !job.status.is_finished()) else {
            return Plan::nothing();
        };
        let claims = self.claims.of(id, object, view);
        if !claims.is_empty() {
            return Plan::of(claims);
        }
        let nothing = BTreeSet::new();
        let removals = self.removals.get(&id).unwrap_or(&nothing);
        let backoff = self.backoffs.get(&id).copied().unwrap_or_default();
        let satisfied = self.expectations.satisfied(id, now);
        let outcome = Sync::new(object, job, view, removals, backoff, satisfied, now).run();
        if let Some((creations, deletions)) = outcome.expects {
            self.expectations.expect(id, creations, deletions, now);
        }
        if !outcome.released.is_empty() {
            self.removals.entry(id).or_default().extend(outcome.released);
        }
        if let Some(backoff) = outcome.backoff {
            self.pending.insert(id, backoff);
        }
        outcome.plan
    }
}

/// The Events when a Job ends, is suspended or resumes.
fn turns(before: &Object, after: &Object) -> Vec<Event> {
    let status = |object: &'_ Object| object.job().map(|job| job.status.clone()).unwrap_or_default();
    let (old, new) = (status(before), status(after));
    let holds = |status: &JobStatus, kind: &str| status.true_condition(kind).is_some();
    let begins = |kind: &str| holds(&new, kind) && !holds(&old, kind);
    let mut said = Vec::new();
    if begins("Suspended") {
        said.push(Event::normal(FROM, after, "Suspended", "Job suspended".to_owned()));
    }
    if holds(&old, "Suspended") && !holds(&new, "Suspended") {
        said.push(Event::normal(FROM, after, "Resumed", "Job resumed".to_owned()));
    }
    if begins("Complete") {
        said.push(Event::normal(FROM, after, "Completed", "Job completed".to_owned()));
    }
    if let Some(failed) = new.true_condition("Failed").filter(|_| begins("Failed")) {
        said.push(Event::warning(FROM, after, &failed.reason, failed.message.to_string()));
    }
    said
}

/// Does this controller reconcile it?
fn is_ours(job: &Job) -> bool {
    job.spec.managed_by.as_ref().is_none_or(|name| name == JOB_CONTROLLER)
}

/// Takes the finalizer off a pod that no sync will count.
fn release_orphan(id: ObjectId, view: View<'_>) -> Plan {
    let Some(pod) = view.get(id).filter(|pod| is_tracked(pod)) else { return Plan::nothing() };
    let job = match pod.controller() {
        Some(owner) if owner.gvk != JOB => return Plan::nothing(),
        owner => owner.and_then(|owner| view.with_uid(owner.uid)).and_then(|(_, job)| job.job()),
    };
    match job {
        Some(job) if !is_ours(job) || !job.status.is_finished() => Plan::nothing(),
        Some(_) | None => Plan::of([release(pod)]),
    }
}

/// The tracked pods of a Job that a sync looks at, oldest first.
type Pods<'a> = Vec<&'a Arc<Object>>;

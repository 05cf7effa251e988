//! The CronJob controller: creates a Job for every scheduled time that is due (`pkg/controller/cronjob`, 1.36).
//!
//! Which moment that is, is decided in `due`; what is done about it in `sync`; what is only said about it in `remarks`. A Job is
//! named after its moment, so that no moment gets two.

mod due;
mod events;
mod sync;

use std::collections::BTreeMap;
use std::sync::Arc;

use sk_apiserver::kinds::{CRON_JOB, CronJob, CronJobStatus};
use sk_apiserver::{Answer, Body, Change, KindTag, Object, ObjectId, Request, Verb, View, WatchEvent};
use sk_core::{SimDuration, SimTime};

use self::sync::Sync;
use crate::controller::{Plan, Reconciler};
use crate::events::Event;
use crate::workqueue::WorkQueue;

/// How it signs Events.
const FROM: &str = "cronjob-controller";

/// The controller.
#[derive(Clone, Default)]
pub(crate) struct CronJobs {
    /// Syncs that make a Job: the status to be written when its uid is known.
    starting: BTreeMap<ObjectId, Starting>,
    /// The status that was written last: informers may not show it yet.
    written: BTreeMap<ObjectId, Arc<Object>>,
}

#[derive(Clone)]
struct Starting {
    object: Arc<Object>,
    status: CronJobStatus,
    scheduled: SimTime,
    /// The Job, once it is made.
    made: Option<Arc<Object>>,
}

impl Reconciler for CronJobs {
    type Key = ObjectId;

    const WATCHES: &'static [KindTag] = &[KindTag::CronJob, KindTag::Job];

    fn concerns(&mut self, event: &WatchEvent, view: View<'_>, queue: &mut WorkQueue<ObjectId>) {
        match &event.object.body {
            Body::CronJob(cron) => match new_schedule(event, cron) {
                Some(wait) => queue.add_after(event.id, wait),
                None if event.change == Change::Deleted => {
                    self.starting.remove(&event.id);
                    self.written.remove(&event.id);
                }
                None => queue.add(event.id),
            },
            Body::Job(_) => {
                let owner = event.object.controller().filter(|owner| owner.gvk == CRON_JOB);
                let cron = owner.and_then(|owner| view.with_uid(owner.uid));
                cron.into_iter().for_each(|(id, _)| queue.add(id));
            }
            Body::Pod(_)
            | Body::Node(_)
            | Body::Namespace(_)
            | Body::Deployment(_)
            | Body::ReplicaSet(_)
            | Body::ReplicationController(_)
            | Body::StatefulSet(_)
            | Body::DaemonSet(_)
            | Body::Other(_) => {}
        }
    }

    fn reconcile(&mut self, id: &ObjectId, view: View<'_>, now: SimTime) -> Plan {
        self.starting.remove(id);
        let Some(object) = view.get(*id) else { return Plan::nothing() };
        let Some(cron) = object.cron_job() else { return Plan::nothing() };
        let outcome = Sync::new(object, cron, view, now).run();
        if let Some((status, scheduled, made)) = outcome.starting {
            self.starting.insert(*id, Starting { object: object.clone(), status, scheduled, made });
        }
        outcome.plan
    }

    fn events(&self, id: &ObjectId, verb: Verb, answer: &Answer, view: View<'_>) -> Vec<Event> {
        let Some(cron) = view.get(*id) else { return Vec::new() };
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return events::not_made(cron, error).filter(|_| verb == Verb::Create).into_iter().collect(),
        };
        let normal = |reason, message| Event::normal(FROM, cron, reason, message);
        match verb {
            Verb::Create => vec![normal("SuccessfulCreate", format!("Created job {}", answer.key.name))],
            Verb::Delete => vec![normal("SuccessfulDelete", format!("Deleted job {}", answer.key.name))],
            _ => Vec::new(),
        }
    }

    fn remarks(&self, id: &ObjectId, view: View<'_>, now: SimTime) -> Vec<Event> {
        let Some((object, cron)) = view.get(*id).and_then(|object| Some((object, object.cron_job()?))) else {
            return Vec::new();
        };
        let newer = self.written.get(id).filter(|written| written.resource_version > object.resource_version);
        let known = newer.and_then(|written| written.cron_job()).unwrap_or(cron);
        Sync::new(object, cron, view, now).remarks(&known.status)
    }

    fn answered(&mut self, id: &ObjectId, verb: Verb, answer: &Answer) {
        if let (Verb::UpdateStatus, Ok(written)) = (verb, answer) {
            self.written.insert(*id, written.clone());
        }
        if let (Verb::Create, Some(starting)) = (verb, self.starting.get_mut(id)) {
            starting.made = answer.as_ref().ok().cloned();
        }
    }

    /// The Job is made and has a uid: it goes into the list of those that run.
    fn follow_up(&mut self, id: &ObjectId) -> Option<Request> {
        let Starting { object, mut status, scheduled, made } = self.starting.remove(id)?;
        let made = made?;
        status.active.push(sync::reference(&made));
        status.last_schedule_time = Some(scheduled);
        Some(write(&object, status))
    }
}

/// After a change of schedule or zone the CronJob is looked at when the new schedule is due next, and not before: what the
/// new one would have meant for the past does not count. `None`: there was no such change.
fn new_schedule(event: &WatchEvent, cron: &CronJob) -> Option<SimDuration> {
    let before = event.before.as_ref().filter(|_| event.change == Change::Modified)?.cron_job()?;
    if before.spec.schedule == cron.spec.schedule && before.spec.time_zone == cron.spec.time_zone {
        return None;
    }
    let schedule = cron.spec.parsed().ok()?;
    due::wait(&event.object, cron, &schedule, event.at)
}

/// Writes a status, unless it has changed in the meantime.
fn write(object: &Arc<Object>, status: CronJobStatus) -> Request {
    let mut updated = Object::clone(object);
    if let Body::CronJob(cron) = &mut updated.body {
        *cron = CronJob { spec: cron.spec.clone(), status: Arc::new(status) };
    }
    Request::update_status(updated)
}

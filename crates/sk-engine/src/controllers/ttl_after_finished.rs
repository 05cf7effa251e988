//! The TTL-after-finished controller: deletes a finished Job when its TTL expires (`pkg/controller/ttlafterfinished`,
//! 1.36).

use sk_apiserver::kinds::Job;
use sk_apiserver::{Change, DeleteOptions, KindTag, ObjectId, Propagation, Request, View, WatchEvent};
use sk_core::{SimDuration, SimTime};

use crate::controller::{Plan, Reconciler};
use crate::workqueue::WorkQueue;

/// The controller. All it knows is in its view.
#[derive(Clone)]
pub(crate) struct TtlAfterFinished;

impl Reconciler for TtlAfterFinished {
    type Key = ObjectId;

    const WATCHES: &'static [KindTag] = &[KindTag::Job];

    fn concerns(&mut self, event: &WatchEvent, _view: View<'_>, queue: &mut WorkQueue<ObjectId>) {
        let job = event.object.job().filter(|_| event.change != Change::Deleted && !event.object.is_deleting());
        if job.and_then(expires_at).is_some() {
            queue.add(event.id);
        }
    }

    fn reconcile(&mut self, id: &ObjectId, view: View<'_>, now: SimTime) -> Plan {
        let Some(object) = view.get(*id).filter(|object| !object.is_deleting()) else { return Plan::nothing() };
        let Some(at) = object.job().and_then(expires_at) else { return Plan::nothing() };
        if at > now {
            return Plan { again_after: Some(at.since(now)), ..Plan::nothing() };
        }
        let options =
            DeleteOptions { uid: Some(object.uid), propagation: Propagation::Foreground, ..DeleteOptions::default() };
        Plan::of([Request::Delete { target: object.reference(), options }])
    }
}

/// When a Job is to go: so long after it finished, to the second.
fn expires_at(job: &Job) -> Option<SimTime> {
    let ttl = job.spec.ttl_seconds_after_finished?;
    let finished = ["Complete", "Failed"].into_iter().find_map(|kind| job.status.true_condition(kind))?;
    let at = finished.last_transition_time?.whole_secs();
    Some(at + SimDuration::from_secs(i64::from(ttl)))
}

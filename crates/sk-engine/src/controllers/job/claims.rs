//! Which pods a Job adopts and releases (`getPodsForJob`, `pkg/controller/job`, 1.36).
//!
//! The generated selector of a Job selects pods with the Job's uid in a label, so hardly any pod without an owner is
//! ever selected. Only Jobs with a selector of their own are known from the start; any other one is when a pod without
//! an owner bears its uid, or when the labels of one of its pods change.

use std::sync::Arc;

use sk_apiserver::kinds::{JOB, JOB_TRACKING, Job, JobSpec};
use sk_apiserver::{Change, KindTag, Object, ObjectId, Request, Uid, View, WatchEvent};

use crate::controllers::adoption::Adoption;

/// The label that a generated selector asks for.
const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";

/// The pods in the wrong hands.
#[derive(Clone, Debug)]
pub(super) struct Claims(Adoption);

impl Default for Claims {
    fn default() -> Self {
        Self(Adoption::new(&JOB, KindTag::Pod).with_finalizer(JOB_TRACKING.clone()))
    }
}

impl Claims {
    /// A Job came, changed or went.
    pub(super) fn job_seen(&mut self, event: &WatchEvent, job: &Job, view: View<'_>) {
        if event.change == Change::Deleted {
            self.0.forget(event.id, event.object.key.namespace_or_empty());
        } else if event.change == Change::Added && job.spec.manual_selector == Some(true) {
            self.0.learn(event.id, &event.object, &job.spec.selector, view);
        }
    }

    /// A pod came, changed or went. Answers the Jobs that may adopt or release it.
    pub(super) fn pod_seen(&mut self, event: &WatchEvent, view: View<'_>) -> Vec<ObjectId> {
        let concerned = concerned(event, view);
        if let Some((id, object, spec)) = concerned.filter(|(_, _, spec)| spec.manual_selector != Some(true)) {
            self.0.learn(id, object, &spec.selector, view);
        }
        if self.0.is_idle() {
            return Vec::new();
        }
        let mut jobs = self.0.sets_for(event, view);
        jobs.extend(concerned.map(|(id, ..)| id));
        jobs
    }

    /// What a Job adopts and releases now.
    pub(super) fn of(&self, id: ObjectId, job: &Object, view: View<'_>) -> Vec<Request> {
        if self.0.is_idle() { Vec::new() } else { self.0.claim(id, job, view, |_| true) }
    }
}

/// The Job whose uid a pod without an owner bears, or whose pod has got other labels.
fn concerned<'a>(event: &WatchEvent, view: View<'a>) -> Option<(ObjectId, &'a Arc<Object>, &'a JobSpec)> {
    let pod = &event.object;
    let uid = match pod.controller() {
        None => pod.meta.labels.get(CONTROLLER_UID)?.parse::<Uid>().ok()?,
        Some(owner) => {
            let before = event.before.as_ref().filter(|before| before.meta.labels != pod.meta.labels)?;
            before.controller().filter(|known| known.uid == owner.uid && owner.gvk == JOB)?.uid
        }
    };
    let (id, object) = view.with_uid(uid)?;
    Some((id, object, &object.job()?.spec))
}

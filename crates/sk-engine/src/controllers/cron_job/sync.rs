//! One sync of a CronJob: removes old Jobs, takes finished ones off the active list, creates a Job that is due.

use std::sync::Arc;

use sk_apiserver::kinds::{ActiveJob, ConcurrencyPolicy, CronJob, CronJobStatus, JOB, Job, JobStatus};
use sk_apiserver::{Body, DeleteOptions, Meta, Object, Request, View};
use sk_core::cron::Schedule;
use sk_core::{ObjectKey, SimDuration, SimTime, SmolStr};

use super::{due, write};
use crate::controller::Plan;

/// On a Job: the moment it was made for, in the CronJob's zone.
const SCHEDULED: SmolStr = SmolStr::new_static("batch.kubernetes.io/cronjob-scheduled-timestamp");

/// A CronJob, its Jobs, and what is decided on the way.
pub(super) struct Sync<'a> {
    pub(super) object: &'a Arc<Object>,
    pub(super) cron: &'a CronJob,
    pub(super) view: View<'a>,
    pub(super) now: SimTime,
    /// By name.
    pub(super) jobs: Vec<(&'a Arc<Object>, &'a JobStatus)>,
    pub(super) status: CronJobStatus,
    requests: Vec<Request>,
}

/// What came of it.
pub(super) struct Outcome {
    pub(super) plan: Plan,
    /// The status to be written once the Job has a uid, its moment, and the Job if it is there already.
    pub(super) starting: Option<(CronJobStatus, SimTime, Option<Arc<Object>>)>,
}

impl<'a> Sync<'a> {
    pub(super) fn new(object: &'a Arc<Object>, cron: &'a CronJob, view: View<'a>, now: SimTime) -> Self {
        let mine = |job: &Object| job.controller().is_some_and(|owner| owner.uid == object.uid);
        let owned = view.owned_by(object.uid).map(|(_, job)| job).filter(|job| mine(job));
        let mut jobs: Vec<_> = owned.filter_map(|job| Some((job, &*job.job()?.status))).collect();
        jobs.sort_by(|(one, _), (other, _)| one.key.cmp(&other.key));
        Self { object, cron, view, now, jobs, status: CronJobStatus::clone(&cron.status), requests: Vec::new() }
    }

    pub(super) fn run(mut self) -> Outcome {
        self.remove_history();
        self.note_ends();
        let next = self.start();
        let mut batches = Plan::of(self.requests).batches;
        let (starting, again_after) = match next {
            Next::Wait(after) => (None, after),
            Next::Start { at, request, made, after } => {
                batches.extend(request.map(|request| vec![*request]));
                (Some((self.status.clone(), at, made)), after)
            }
        };
        if starting.is_none() && self.status != *self.cron.status {
            batches.push_back(vec![write(self.object, self.status)]);
        }
        Outcome { plan: Plan { batches, again_after }, starting }
    }

    /// Finished Jobs beyond the limits go.
    pub(super) fn remove_history(&mut self) {
        self.remove_oldest("Complete", self.cron.spec.successful_jobs_history_limit);
        self.remove_oldest("Failed", self.cron.spec.failed_jobs_history_limit);
    }

    /// Finished Jobs beyond the limit go, oldest first.
    fn remove_oldest(&mut self, condition: &str, limit: i32) {
        let mut finished: Vec<_> =
            self.jobs.iter().copied().filter(|(_, status)| status.true_condition(condition).is_some()).collect();
        finished.sort_by_key(|(job, status)| (status.start_time.is_none(), status.start_time, job.key.name.clone()));
        let surplus = finished.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
        for (job, _) in finished.into_iter().take(surplus) {
            self.delete(job);
        }
    }

    fn delete(&mut self, job: &Arc<Object>) {
        if !job.is_deleting() {
            let options = DeleteOptions { uid: Some(job.uid), ..DeleteOptions::default() };
            self.requests.push(Request::Delete { target: job.reference(), options });
        }
        self.status.active.retain(|active| active.uid != job.uid);
    }

    /// Jobs that have finished or are gone run no longer.
    fn note_ends(&mut self) {
        for (job, status) in &self.jobs {
            if !status.is_finished() {
                continue;
            }
            self.status.active.retain(|active| active.uid != job.uid);
            let completed = status.true_condition("Complete").and(status.completion_time);
            if completed > self.status.last_successful_time {
                self.status.last_successful_time = completed;
            }
        }
        let jobs = &self.jobs;
        self.status.active.retain(|active| jobs.iter().any(|(job, _)| job.uid == active.uid));
    }

    fn start(&mut self) -> Next {
        let spec = &self.cron.spec;
        if self.object.is_deleting() || spec.suspend {
            return Next::Wait(None);
        }
        // What cannot be read waits for a change of its spec.
        let Ok(schedule) = spec.parsed() else { return Next::Wait(None) };
        let Ok(due) = due::due(self.object, self.cron, &schedule, self.now) else { return Next::Wait(None) };
        let Some(at) = due.filter(|at| self.may_start(*at)) else { return Next::Wait(self.wait(&schedule)) };
        if spec.concurrency_policy == ConcurrencyPolicy::Replace {
            let running: Vec<_> = self.jobs.iter().map(|(job, _)| *job).collect();
            let is_active = |job: &&Arc<Object>| self.status.active.iter().any(|active| active.uid == job.uid);
            let replaced: Vec<_> = running.into_iter().filter(is_active).collect();
            replaced.into_iter().for_each(|job| self.delete(job));
        }
        let key = ObjectKey { namespace: self.object.key.namespace.clone(), name: self.job_name(at) };
        let made = match self.view.find(&JOB, &key) {
            // A Job of another owner has the name: that owner tracks it.
            Some((_, other)) if !self.jobs.iter().any(|(job, _)| job.uid == other.uid) => return Next::Wait(None),
            found => found.map(|(_, job)| job.clone()),
        };
        let request = made.is_none().then(|| Box::new(self.new_job(key, at, &schedule)));
        Next::Start { at, request, made, after: self.wait_after(at, &schedule) }
    }

    /// Is it within the deadline, not yet created, and allowed by the concurrency policy?
    fn may_start(&self, at: SimTime) -> bool {
        let spec = &self.cron.spec;
        let too_late = |secs: i64| at + SimDuration::from_secs(secs) < self.now;
        let in_the_way = spec.concurrency_policy == ConcurrencyPolicy::Forbid && !self.status.active.is_empty();
        !spec.starting_deadline_seconds.is_some_and(too_late) && !self.is_done(at) && !in_the_way
    }

    /// Has this moment its Job already?
    pub(super) fn is_done(&self, at: SimTime) -> bool {
        let name = self.job_name(at);
        let is_running = self.status.active.iter().any(|active| active.name == name);
        is_running || self.cron.status.last_schedule_time == Some(at)
    }

    /// The Jobs in the list that have not finished.
    pub(super) fn running(&self) -> Vec<&Arc<Object>> {
        let is_active = |job: &Object| self.cron.status.active.iter().any(|active| active.uid == job.uid);
        let running = self.jobs.iter().filter(|(job, status)| !status.is_finished() && is_active(job));
        running.map(|(job, _)| *job).collect()
    }

    fn wait(&self, schedule: &Schedule) -> Option<SimDuration> {
        due::wait(self.object, self.cron, schedule, self.now)
    }

    /// The wait once the moment `at` has its Job.
    fn wait_after(&self, at: SimTime, schedule: &Schedule) -> Option<SimDuration> {
        let status = CronJobStatus { last_schedule_time: Some(at), ..CronJobStatus::default() };
        let cron = CronJob { spec: self.cron.spec.clone(), status: Arc::new(status) };
        due::wait(self.object, &cron, schedule, self.now)
    }

    /// The name tells the minute, so that no minute gets two Jobs.
    fn job_name(&self, at: SimTime) -> SmolStr {
        format!("{}-{}", self.object.key.name, at.as_secs().div_euclid(60)).into()
    }

    fn new_job(&self, key: ObjectKey, at: SimTime, schedule: &Schedule) -> Request {
        let template = &self.cron.spec.job_template;
        let mut annotations = template.metadata.annotations.clone();
        annotations.make_mut().insert(SCHEDULED, schedule.in_zone(at).into());
        let meta = Meta {
            labels: template.metadata.labels.clone(),
            annotations,
            owners: [self.object.as_controller()].into(),
            ..Meta::default()
        };
        let body = Body::Job(Job { spec: template.spec.clone(), ..Job::default() });
        Request::create(Object::new(&JOB, key, meta, body))
    }
}

/// What a sync does about the schedule.
enum Next {
    /// Nothing is due; look again then.
    Wait(Option<SimDuration>),
    /// A Job is made, or was made before and forgotten.
    Start { at: SimTime, request: Option<Box<Request>>, made: Option<Arc<Object>>, after: Option<SimDuration> },
}

/// How a status names a Job.
pub(super) fn reference(job: &Object) -> ActiveJob {
    ActiveJob {
        api_version: JOB.api_version().into(),
        kind: JOB.kind.clone(),
        name: job.key.name.clone(),
        namespace: job.key.namespace.clone().unwrap_or_default(),
        resource_version: job.resource_version.to_string().into(),
        uid: job.uid,
        rest: Default::default(),
    }
}

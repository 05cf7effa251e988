//! The records of a generated trace, in order of time.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use bytes::{Bytes, BytesMut};
use serde_json::{Value, json};
use sk_core::{SimDuration, SimTime};
use sk_store::trace::{
    Change, Deletion, Encoded, Filling, Header, Ink, Mark, Object, OwnerLives, Record, Row, Stencil, TracerConfig,
};

use super::batch::{CronJob, Job, JobStencil};
use super::platform;
use super::random::{Draw, busy};
use super::reality::Reality;
use super::service::{self, Drawn, Service, Shape, Version};
use super::{GenerateSpec, Generated, SpecError};

const DAY_S: f64 = 86_400.0;

/// A rollout changes the configuration, and the replicas of what no autoscaler looks after, in these shares of cases.
const CONFIG_SHARE: f64 = 0.3;
const HUMAN_SCALING_SHARE: f64 = 0.15;

/// What comes with a platform.
const PLATFORM_KINDS: [&str; 5] = [
    "apps/v1.DaemonSet",
    "apps/v1.StatefulSet",
    "policy/v1.PodDisruptionBudget",
    "scheduling.k8s.io/v1.PriorityClass",
    "v1.Service",
];

/// Jobs of a burst follow each other at about this distance.
const BURST_GAP: SimDuration = SimDuration::from_millis(400);

/// What comes next in a generated trace.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Something happened.
    Record(Record),
    /// Something else that the trace holds.
    Row(Row),
}

/// A [`Step`] whose object may be encoded already.
#[derive(Debug)]
pub(super) enum Made {
    Step(Step),
    Object { at: SimTime, seq: u64, object: Encoded },
}

impl From<Made> for Step {
    fn from(made: Made) -> Self {
        match made {
            Made::Step(step) => step,
            Made::Object { at, seq, object } => {
                let object = object.decode().expect("a filled stencil is an object, which tests compare");
                Self::Record(Record { at, seq, change: Change::Apply(object) })
            }
        }
    }
}

/// Stencils of what there is much of, each made when it is first needed: at most twenty shapes of Deployments and six of
/// Jobs, of about 4 KB each.
#[derive(Debug, Default)]
struct Stencils {
    deployments: BTreeMap<Shape, Stencil>,
    jobs: BTreeMap<usize, JobStencil>,
    bodies: Bodies,
    /// Used again for each object.
    filling: Filling,
    walked: Vec<u8>,
}

/// Encodes objects into pieces of memory that hold some dozens of them. Another thread frees them, and the allocator is slow
/// at that for each object by itself.
#[derive(Debug, Default)]
struct Bodies {
    piece: BytesMut,
    /// Used again for each object.
    body: Vec<u8>,
}

impl Bodies {
    /// The size of a piece: a Deployment has about 2,200 bytes, a Job 1,400.
    const PIECE_BYTES: usize = 64 << 10;

    fn encode(&mut self, stencil: &Stencil, filling: &Filling) -> Bytes {
        self.body.clear();
        stencil.encode(filling, &mut self.body);
        if self.piece.capacity() < self.body.len() {
            self.piece = BytesMut::with_capacity(Self::PIECE_BYTES.max(self.body.len()));
        }
        self.piece.extend_from_slice(&self.body);
        self.piece.split().freeze()
    }
}

/// A generated trace as a stream.
#[derive(Debug)]
pub struct Generator {
    spec: GenerateSpec,
    due: BinaryHeap<Reverse<(SimTime, u64, Task)>>,
    /// Tasks that were ever put on the heap: the order of what is due at the same time.
    planned: u64,
    services: Vec<Slot>,
    stencils: Stencils,
    /// What happens to pods, if there are machines for them.
    reality: Option<Reality>,
    /// The numbers of the next service and the next Job.
    next_service: u64,
    next_job: u64,
    arrivals: Draw,
    /// What one task leads to, until it is told: at most a service's five objects and those of its successor, and at the
    /// beginning the platform.
    ready: VecDeque<Made>,
    seq: u64,
    generated: Generated,
    end: SimTime,
    /// How many of the rows after the last record were emitted.
    ending: Ending,
}

/// What comes after the last record, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// Not there yet: there are records, or the edge of the window is still to be told.
    Before,
    /// The lives of CronJobs, from this number on.
    CronJobs(u64),
    /// What happened to pods that are still there.
    Pods,
    Over,
}

/// A service's place; another service takes it when it is replaced.
#[derive(Debug)]
struct Slot {
    service: Service,
    version: Version,
    drawn: Drawn,
    /// The second of its newest change.
    changed_s: i64,
    draw: Draw,
}

/// What may be due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    Begin,
    CreateService(u32),
    CreateCronJob(u64),
    Scale(u32),
    Rollout(u32),
    Replace,
    Arrive,
    Burst,
    /// So many Jobs of a burst are left.
    BurstJob(u64),
    DeleteJob(u64),
}

impl Generator {
    /// The trace of this specification, at its beginning.
    pub fn new(spec: &GenerateSpec) -> Result<Self, SpecError> {
        spec.check()?;
        let mut generator = Self {
            spec: spec.clone(),
            due: BinaryHeap::new(),
            planned: 0,
            services: Vec::new(),
            stencils: Stencils::default(),
            reality: None,
            next_service: 0,
            next_job: 0,
            arrivals: Draw::new(spec.seed, "arrivals"),
            ready: VecDeque::new(),
            seq: 0,
            generated: Generated::default(),
            end: spec.start + spec.duration,
            ending: Ending::Before,
        };
        generator.plan_beginning();
        Ok(generator)
    }

    /// What the trace says of itself.
    pub fn header(&self) -> Header {
        let lived = json!({"trackLifecycle": true});
        let mut tracked = json!({"apps/v1.Deployment": {}, "batch/v1.CronJob": lived, "batch/v1.Job": lived});
        if self.spec.services.companions {
            for kind in ["v1.ConfigMap", "v1.Service", "v1.ServiceAccount"] {
                tracked[kind] = json!({});
            }
        }
        if self.spec.platform.is_some() {
            for kind in PLATFORM_KINDS {
                tracked[kind] = json!({});
            }
        }
        let config = TracerConfig::from_value(json!({"trackedObjects": tracked}));
        Header { config: config.expect("it is written out above"), origin: None }
    }

    /// How much was emitted so far.
    pub fn generated(&self) -> Generated {
        self.generated
    }

    fn plan_beginning(&mut self) {
        let start = self.spec.start;
        self.plan(start, Task::Begin);
        for slot in 0..self.spec.services.count {
            self.plan(start, Task::CreateService(slot));
        }
        for id in 0..u64::from(self.spec.cron.count) {
            self.plan(start, Task::CreateCronJob(id));
        }
        self.plan_random(start, per_day(self.spec.services.replaced_per_day), Task::Replace);
        self.plan_random(start, per_day(self.spec.batch.jobs_per_hour * 24.0), Task::Arrive);
        self.plan_random(start, per_day(self.spec.batch.bursts_per_day), Task::Burst);
    }

    /// `at`, unless the trace has ended by then.
    fn plan(&mut self, at: SimTime, task: Task) {
        if at < self.end {
            self.planned += 1;
            self.due.push(Reverse((at, self.planned, task)));
        }
    }

    /// At a random time after `at`, if it ever happens.
    fn plan_random(&mut self, at: SimTime, mean: Option<SimDuration>, task: Task) {
        if let Some(mean) = mean {
            let wait = self.arrivals.wait(mean);
            self.plan(at + wait, task);
        }
    }

    /// Puts the first task off until `at`, or drops it if the trace has ended by then.
    fn put_off(&mut self, at: SimTime) {
        let Some(mut first) = self.due.peek_mut() else { return };
        if at < self.end {
            self.planned += 1;
            let Reverse((due, number, _)) = &mut *first;
            (*due, *number) = (at, self.planned);
        } else {
            PeekMut::pop(first);
        }
    }

    /// Carries out the first task.
    fn perform(&mut self, at: SimTime, task: Task) {
        if self.is_too_soon(at, task) {
            return self.put_off(at + SimDuration::from_secs(1));
        }
        // Services look at their load far more often than anything else happens, so that task is put off in its place.
        if !matches!(task, Task::Scale(_)) {
            self.due.pop();
        }
        match task {
            Task::Begin => {
                self.tell(at, Change::Mark(Mark::Moment));
                let objects = platform::objects(&self.spec);
                self.reality = Reality::begin(&self.spec, &objects);
                objects.into_iter().for_each(|object| self.apply(at, object));
                self.tell_reality();
            }
            Task::CreateService(slot) => self.create_service(at, slot),
            Task::CreateCronJob(id) => {
                let mut cron = CronJob::new(&self.spec, id);
                self.apply(at, cron.object.take());
                if let Some(reality) = &mut self.reality {
                    reality.cron_job(at, cron);
                }
            }
            Task::Scale(slot) => self.scale(at, slot),
            Task::Rollout(slot) => self.roll_out(at, slot),
            Task::Replace => self.replace(at),
            Task::Arrive => self.arrive(at),
            Task::Burst => {
                let jobs = u64::from(self.spec.batch.jobs_per_burst);
                let jobs = self.arrivals.between(jobs / 2, jobs + jobs / 2);
                self.plan(at, Task::BurstJob(jobs));
                self.plan_random(at, per_day(self.spec.batch.bursts_per_day), Task::Burst);
            }
            Task::BurstJob(0) => {}
            Task::BurstJob(left) => {
                self.create_job(at);
                self.plan_random(at, Some(BURST_GAP), Task::BurstJob(left - 1));
            }
            Task::DeleteJob(id) => {
                let object = Job::reference(&self.spec, id);
                self.tell(at, Change::Delete(Deletion { object, last: None }));
            }
        }
    }

    /// In whole seconds, two changes of one service within a second would be at the same time, and the first of them
    /// never seen.
    fn is_too_soon(&self, at: SimTime, task: Task) -> bool {
        let (Task::Scale(place) | Task::Rollout(place)) = task else { return false };
        self.spec.whole_seconds && self.services.get(place as usize).is_some_and(|slot| slot.changed_s == at.as_secs())
    }

    fn create_service(&mut self, at: SimTime, slot: u32) {
        let id = self.next_service;
        self.next_service += 1;
        let service = Service::new(&self.spec, id);
        let draw = Draw::new(self.spec.seed, &format!("changes of {id}"));
        let version = service.first(at);
        let others = service.others(version);
        let drawn = service.drawn(version);
        let new = Slot { service, version, drawn, changed_s: at.as_secs(), draw };
        match self.services.get_mut(slot as usize) {
            Some(taken) => *taken = new,
            None => {
                self.services.push(new);
                self.plan_changes(at, slot);
            }
        }
        others.into_iter().for_each(|object| self.apply(at, object));
        self.apply_deployment(at, slot);
    }

    /// The Deployment of the service in that place, as it is now.
    fn apply_deployment(&mut self, at: SimTime, place: u32) {
        let Slot { service, version, drawn, .. } = &mut self.services[place as usize];
        let shape = service.shape();
        let deployments = &mut self.stencils.deployments;
        let stencil =
            deployments.entry(shape).or_insert_with(|| Stencil::of_encoding(&service::deployment(shape, Ink::Marks)));
        if !drawn.is_of(*version) {
            *drawn = service.drawn(*version);
        }
        let body = self.stencils.bodies.encode(stencil, drawn.scaled_to(version.replicas));
        let object = Encoded { object: service.reference(), labels: drawn.labels.clone(), body };
        if let Some(reality) = &mut self.reality {
            reality.deployment(at, place, service, drawn, version.replicas);
        }
        self.tell_encoded(at, object);
        self.tell_reality();
    }

    /// The first scaling and the first rollout; each plans the next.
    fn plan_changes(&mut self, at: SimTime, slot: u32) {
        let every = self.spec.services.scale_every;
        let draw = &mut self.services[slot as usize].draw;
        let first = at + SimDuration::from_micros(draw.below(every.as_micros().unsigned_abs()) as i64);
        self.plan(first, Task::Scale(slot));
        self.plan_rollout(at, slot);
    }

    /// At the pace of the busiest hours; those of quiet hours are passed over when they are due.
    fn plan_rollout(&mut self, at: SimTime, slot: u32) {
        /// The mean of a day over its peak, so that the day's sum is what was asked for.
        const MEAN_OF_PEAK: f64 = 0.63;
        if let Some(mean) = per_day(self.spec.services.rollouts_per_day / MEAN_OF_PEAK) {
            let wait = self.services[slot as usize].draw.wait(mean);
            self.plan(at + wait, Task::Rollout(slot));
        }
    }

    fn scale(&mut self, at: SimTime, place: u32) {
        let slot = &mut self.services[place as usize];
        let next = at + slot.draw.around(self.spec.services.scale_every);
        if slot.service.autoscaled {
            let wanted = slot.service.wanted(at, slot.version.replicas, &mut slot.draw);
            if wanted != slot.version.replicas {
                slot.version.replicas = wanted;
                slot.changed_s = at.as_secs();
                self.apply_deployment(at, place);
            }
        }
        self.put_off(next);
    }

    fn roll_out(&mut self, at: SimTime, place: u32) {
        let slot = &mut self.services[place as usize];
        if slot.draw.chance(busy(at, self.spec.peak_hour) as f64 / 10_000.0) {
            slot.version.revision += 1;
            slot.changed_s = at.as_secs();
            if !slot.service.autoscaled && slot.draw.chance(HUMAN_SCALING_SHARE) {
                slot.version.replicas = (slot.version.replicas + slot.draw.below(5)).saturating_sub(2).max(1);
            }
            let new_config = slot.draw.chance(CONFIG_SHARE);
            slot.version.config += u64::from(new_config);
            if new_config && self.spec.services.companions {
                let config_map = slot.service.config_map(slot.version.config);
                self.apply(at, config_map);
            }
            self.apply_deployment(at, place);
        }
        self.plan_rollout(at, place);
    }

    fn replace(&mut self, at: SimTime) {
        if !self.services.is_empty() {
            let place = self.arrivals.below(self.services.len() as u64) as u32;
            let old = &self.services[place as usize];
            let (deployment, others) = (old.service.reference(), old.service.others(old.version));
            if let Some(reality) = &mut self.reality {
                reality.delete_deployment(at, place);
            }
            // The other way round than they were created: the Deployment goes first.
            self.tell(at, Change::Delete(Deletion { object: deployment, last: None }));
            others.into_iter().rev().for_each(|object| self.delete(at, object));
            self.create_service(at, place);
        }
        self.plan_random(at, per_day(self.spec.services.replaced_per_day), Task::Replace);
    }

    fn arrive(&mut self, at: SimTime) {
        // Batch work is busiest when people are not.
        let night = (self.spec.peak_hour + 12) % 24;
        if self.arrivals.chance(busy(at, night) as f64 / 10_000.0) {
            self.create_job(at);
        }
        self.plan_random(at, per_day(self.spec.batch.jobs_per_hour * 24.0), Task::Arrive);
    }

    fn create_job(&mut self, at: SimTime) {
        let id = self.next_job;
        self.next_job += 1;
        let Stencils { jobs, filling, walked, bodies, .. } = &mut self.stencils;
        let mut job = Job::draw(&self.spec, id, at, filling);
        let stencil = jobs.entry(job.settings).or_insert_with(|| JobStencil::new(job.settings));
        let template = stencil.template(filling, walked);
        if let Some(reality) = &mut self.reality {
            reality.job(at, &mut job, template.clone(), self.spec.batch.kept);
        }
        let (done, lives) = (job.done(at), job.lives(self.end));
        let lives = stencil.lives(job.reference.clone(), (template, lives), filling, walked);
        let body = bodies.encode(stencil.object(), filling);
        let object = Encoded { object: job.reference, labels: job.labels.into(), body };
        self.tell_encoded(at, object);
        self.tell_lives(lives);
        self.tell_reality();
        self.plan(done + self.spec.batch.kept, Task::DeleteJob(id));
    }

    fn tell_reality(&mut self) {
        let Some(reality) = &mut self.reality else { return };
        for row in reality.take_rows() {
            self.generated.observations += u64::from(matches!(row, Row::Observation(_)));
            self.ready.push_back(Made::Step(Step::Row(row)));
        }
    }

    fn tell_lives(&mut self, lives: OwnerLives) {
        self.generated.lives += lives.templates.iter().map(|template| template.lives.len() as u64).sum::<u64>();
        self.ready.push_back(Made::Step(Step::Row(Row::Lives(lives))));
    }

    fn apply(&mut self, at: SimTime, object: Value) {
        let object = Object::new(object).expect("every generated object has a kind and a name");
        self.tell(at, Change::Apply(object));
    }

    fn delete(&mut self, at: SimTime, object: Value) {
        let object = Object::new(object).expect("every generated object has a kind and a name");
        self.tell(at, Change::Delete(Deletion { object: object.reference().clone(), last: None }));
    }

    fn tell(&mut self, at: SimTime, change: Change) {
        let is_mark = matches!(change, Change::Mark(_));
        self.tell_made(at, is_mark, |at, seq| Made::Step(Step::Record(Record { at, seq, change })));
    }

    fn tell_encoded(&mut self, at: SimTime, object: Encoded) {
        self.tell_made(at, false, |at, seq| Made::Object { at, seq, object });
    }

    fn tell_made(&mut self, at: SimTime, is_mark: bool, make: impl FnOnce(SimTime, u64) -> Made) {
        let full = self.spec.events.is_some_and(|limit| self.generated.events >= limit);
        if full && !is_mark {
            return;
        }
        self.generated.events += u64::from(!is_mark);
        let at = if self.spec.whole_seconds { at.whole_secs() } else { at };
        self.ready.push_back(make(at, self.seq));
        self.seq += 1;
        if !is_mark && self.spec.events == Some(self.generated.events) {
            self.end = at;
            self.due.clear();
        }
    }

    /// The edge of the window; then the CronJobs' lives, one CronJob at a time; then the pods that are still there, one owner
    /// at a time.
    fn tell_end(&mut self) {
        self.ending = match self.ending {
            Ending::Before => {
                self.tell(self.end, Change::Mark(Mark::Moment));
                Ending::CronJobs(0)
            }
            Ending::CronJobs(id) if id < u64::from(self.spec.cron.count) => {
                let lives = match &mut self.reality {
                    Some(reality) => reality.lives_of_cron(id as usize),
                    None => Some(CronJob::new(&self.spec, id).lives(self.spec.start, self.end)),
                };
                let some = lives.filter(|lives| lives.templates.iter().any(|template| !template.lives.is_empty()));
                some.into_iter().for_each(|lives| self.tell_lives(lives));
                Ending::CronJobs(id + 1)
            }
            Ending::CronJobs(_) => Ending::Pods,
            Ending::Pods => {
                let end = self.end;
                let is_more = self.reality.as_mut().is_some_and(|reality| reality.tell_rest(end));
                self.tell_reality();
                if is_more { Ending::Pods } else { Ending::Over }
            }
            Ending::Over => Ending::Over,
        };
    }
}

impl Iterator for Generator {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        self.next_made().map(Step::from)
    }
}

impl Generator {
    /// What comes next, encoded where that is quicker.
    pub(super) fn next_made(&mut self) -> Option<Made> {
        loop {
            if let Some(made) = self.ready.pop_front() {
                return Some(made);
            }
            let next = self.due.peek().map_or(self.end, |Reverse((at, ..))| *at);
            if self.reality.as_mut().is_some_and(|reality| reality.step(next)) {
                self.tell_reality();
                continue;
            }
            match self.due.peek().copied() {
                Some(Reverse((at, _, task))) => self.perform(at, task),
                None if self.ending == Ending::Over => return None,
                None => self.tell_end(),
            }
        }
    }
}

/// The mean wait for what happens so often in a day; `None` if it never does.
fn per_day(times: f64) -> Option<SimDuration> {
    (times > 0.0).then(|| SimDuration::from_micros((DAY_S * 1e6 / times) as i64).max(SimDuration::from_micros(1)))
}

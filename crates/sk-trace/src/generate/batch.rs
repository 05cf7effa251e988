//! Jobs and CronJobs, and the lives of their pods. Drawn from seed and number alone, as services are.

use serde_json::{Value, json};
use sk_core::{Gvk, ObjectKey, ObjectRef, SimDuration, SimTime, StableHash, TemplateId};
use sk_store::trace::{Life, OwnerLives, TemplateLives};

use super::pods::{self, Size, TEAMS};
use super::random::Draw;
use super::service::namespace;
use super::spec::{GenerateSpec, Lifetime};

const JOB: Gvk = Gvk::new_static("batch", "v1", "Job");
const CRON_JOB: Gvk = Gvk::new_static("batch", "v1", "CronJob");

const JOB_TEMPLATE: &str = "/spec/template";
const CRON_JOB_TEMPLATE: &str = "/spec/jobTemplate/spec/template";

const TASKS: [&str; 10] =
    ["backfill", "cleanup", "encode", "etl", "export", "import", "migrate", "report", "score", "train"];

const MINUTES_PER_DAY: u64 = 24 * 60;

/// A Job: what it is and how long its pods live.
pub(super) struct Job {
    pub(super) object: Value,
    pub(super) lives: OwnerLives,
    /// When its last pod has ended.
    pub(super) done: SimTime,
}

impl Job {
    /// The Job of that number, created at `at`, in a recording that ends at `end`.
    pub(super) fn new(spec: &GenerateSpec, id: u64, at: SimTime, end: SimTime) -> Self {
        let mut draw = Draw::new(spec.seed, &format!("job {id}"));
        let work = Work::draw(spec, &mut draw, id);
        // Most Jobs have one pod, some have many.
        let pods = if draw.chance(0.15) { draw.between(2, 20) } else { 1 };
        let template = work.template(&mut draw, "Never");
        let mut object = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": work.metadata(),
            "spec": {"backoffLimit": 3, "completionMode": "NonIndexed", "completions": pods, "manualSelector": false,
                "parallelism": pods, "podReplacementPolicy": "TerminatingOrFailed", "suspend": false,
                "template": null, "ttlSecondsAfterFinished": 600}});
        pods::put(&mut object, JOB_TEMPLATE, template.clone());
        let ends: Vec<(SimTime, SimTime)> = (0..pods).map(|_| life(&mut draw, spec.batch.life, at)).collect();
        let done = ends.iter().map(|(_, end)| *end).max().unwrap_or(at);
        let lives = ends.into_iter().map(|(start, stop)| recorded(start, stop, end)).collect();
        Self { object, lives: owner_lives(work.reference(JOB), JOB_TEMPLATE, &template, lives), done }
    }

    /// What the Job of that number is called.
    pub(super) fn reference(spec: &GenerateSpec, id: u64) -> ObjectRef {
        let mut draw = Draw::new(spec.seed, &format!("job {id}"));
        Work::draw(spec, &mut draw, id).reference(JOB)
    }
}

/// A CronJob and when it starts.
pub(super) struct CronJob {
    pub(super) object: Value,
    reference: ObjectRef,
    template: Value,
    every_minutes: u64,
    offset_minutes: u64,
    life: Lifetime,
    draw: Draw,
}

impl CronJob {
    pub(super) fn new(spec: &GenerateSpec, id: u64) -> Self {
        let mut draw = Draw::new(spec.seed, &format!("cron job {id}"));
        let work = Work::draw(spec, &mut draw, id);
        let every_minutes = *draw.pick(&[5, 10, 15, 30, 60, 60, 6 * 60, MINUTES_PER_DAY, MINUTES_PER_DAY]);
        let offset_minutes = draw.below(every_minutes);
        let template = work.template(&mut draw, "OnFailure");
        let mut object = json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": work.metadata(),
            "spec": {"concurrencyPolicy": "Allow", "failedJobsHistoryLimit": 1,
                "jobTemplate": {"metadata": {"labels": {"team": work.team}}, "spec": {"backoffLimit": 2, "template": null}},
                "schedule": schedule(every_minutes, offset_minutes), "successfulJobsHistoryLimit": 3, "suspend": false}});
        pods::put(&mut object, CRON_JOB_TEMPLATE, template.clone());
        let median = draw.spread(spec.cron.life.median, spec.cron.life.p95);
        let life = Lifetime { median, p95: median * 3 };
        Self { object, reference: work.reference(CRON_JOB), template, every_minutes, offset_minutes, life, draw }
    }

    /// The lives of its pods in a recording from `start` to `end`.
    pub(super) fn lives(mut self, start: SimTime, end: SimTime) -> OwnerLives {
        let every = SimDuration::from_mins(self.every_minutes as i64);
        let offset = SimDuration::from_mins(self.offset_minutes as i64);
        let before = start.since(SimTime::EPOCH + offset).as_micros().div_euclid(every.as_micros());
        let mut fires = SimTime::EPOCH + offset + every * before;
        let mut lives = Vec::new();
        while fires < end {
            if fires >= start {
                let (from, to) = life(&mut self.draw, self.life, fires);
                lives.push(recorded(from, to, end));
            }
            fires += every;
        }
        lives.retain(|life| life.start < end);
        owner_lives(self.reference, CRON_JOB_TEMPLATE, &self.template, lives)
    }
}

/// The cron expression for every so many minutes, all of which divide an hour or are whole hours that divide a day.
fn schedule(every_minutes: u64, offset: u64) -> String {
    let (minute, hour) = (offset % 60, offset / 60);
    match every_minutes {
        every if every < 60 && offset == 0 => format!("*/{every} * * * *"),
        every if every < 60 => format!("{offset}-59/{every} * * * *"),
        60 => format!("{minute} * * * *"),
        MINUTES_PER_DAY => format!("{minute} {hour} * * *"),
        every => format!("{minute} {hour}-23/{} * * *", every / 60),
    }
}

/// A pod starts some seconds after its Job is created, and ends when its life is over.
fn life(draw: &mut Draw, spread: Lifetime, created: SimTime) -> (SimTime, SimTime) {
    let start = created + SimDuration::from_millis(draw.between(800, 9_000) as i64);
    (start, start + draw.spread(spread.median, spread.p95))
}

/// A life as a recording that ends at `end` has it.
fn recorded(start: SimTime, stop: SimTime, end: SimTime) -> Life {
    Life { start, end: (stop < end).then_some(stop), guessed: false }
}

fn owner_lives(owner: ObjectRef, path: &'static str, template: &Value, lives: Vec<Life>) -> OwnerLives {
    let path = path.parse().expect("the paths above are pointers");
    let pod_hash = Some(StableHash::of_pod_spec(&pods::admitted(template)));
    let template = Some(TemplateId::of(path, template));
    OwnerLives { owner, templates: vec![TemplateLives { template, pod_hash, lives }] }
}

/// What Jobs and CronJobs have in common.
struct Work {
    name: String,
    namespace: String,
    team: &'static str,
    task: &'static str,
}

impl Work {
    fn draw(spec: &GenerateSpec, draw: &mut Draw, id: u64) -> Self {
        let (team, task) = (*draw.pick(&TEAMS), *draw.pick(&TASKS));
        let namespace = namespace(spec, team, draw.below(u64::from(spec.namespaces)));
        Self { name: format!("{team}-{task}-{id}-{}", draw.suffix()), namespace, team, task }
    }

    fn reference(&self, gvk: Gvk) -> ObjectRef {
        ObjectRef::new(gvk, ObjectKey::namespaced(self.namespace.as_str(), self.name.as_str()))
    }

    fn metadata(&self) -> Value {
        json!({"annotations": {"example.com/owner": format!("{}@example.com", self.team)},
            "labels": {"app.kubernetes.io/component": self.task, "app.kubernetes.io/name": self.name, "team": self.team},
            "name": self.name, "namespace": self.namespace})
    }

    fn template(&self, draw: &mut Draw, restart_policy: &str) -> Value {
        let image = format!("registry.example.com/{}/{}:{}", self.team, self.task, pods::version(draw.below(40)));
        let arguments = [
            "--config=/etc/task/task.yaml".to_owned(),
            format!("--partition={}", draw.hex(6)),
            format!("--batch-size={}", 100 << draw.below(8)),
        ];
        let container = json!({"args": arguments, "command": [format!("/app/{}", self.task)],
            "env": pods::settings(draw, 10), "image": image, "imagePullPolicy": "IfNotPresent", "name": self.task,
            "resources": Size::draw(draw).to_json(), "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File"});
        let labels =
            json!({"app.kubernetes.io/component": self.task, "app.kubernetes.io/name": self.name, "team": self.team});
        pods::template(json!({"labels": labels}), container, restart_policy)
    }
}

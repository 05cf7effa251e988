//! Jobs and CronJobs, and the lifecycles of their pods. Like services, each depends only on the seed and its number. There
//! are very many Jobs, so their objects are made by filling stencils.

use serde_json::{Value, json};
use sk_core::hash::stable_pod_spec;
use sk_core::{Gvk, ObjectKey, ObjectRef, Pointer, SimDuration, SimTime, SmolStr, StableHash, TemplateId};
use sk_store::trace::{Filling, Ink, Life, OwnerLives, Stencil, TemplateLives};

use super::pods::{self, Settings, Size, TEAMS};
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

/// The holes of a pod template, and of a Job around it: its texts, and behind them those of its resources and settings.
mod hole {
    pub(super) const NAME: usize = 0;
    pub(super) const NAMESPACE: usize = 1;
    pub(super) const TEAM: usize = 2;
    pub(super) const TASK: usize = 3;
    pub(super) const VERSION: usize = 4;
    pub(super) const PARTITION: usize = 5;
    pub(super) const BATCH_SIZE: usize = 6;
    pub(super) const RESOURCES: usize = 7;
    pub(super) const SETTINGS: usize = 10;
    /// Of its numbers.
    pub(super) const PODS: usize = 0;
}

/// A Job: its name and the lifetimes of its pods. The filling has the rest.
pub(super) struct Job {
    pub(super) reference: ObjectRef,
    pub(super) labels: [(SmolStr, SmolStr); 3],
    /// How many settings its container has: Jobs that have as many share a stencil.
    pub(super) settings: usize,
    /// When each of its pods starts and ends.
    pub(super) ends: Vec<(SimTime, SimTime)>,
    /// What each asks for.
    pub(super) size: Size,
}

impl Job {
    /// The Job of that number, created at `at`.
    pub(super) fn draw(spec: &GenerateSpec, id: u64, at: SimTime, filling: &mut Filling) -> Self {
        let mut draw = Draw::new(spec.seed, &format!("job {id}"));
        let work = Work::draw(spec, &mut draw, id);
        // Most Jobs have one pod, some have many.
        let pods = if draw.chance(0.15) { draw.between(2, 20) } else { 1 };
        let (settings, size) = work.fill(&mut draw, filling);
        filling.number(pods);
        let ends = (0..pods).map(|_| life(&mut draw, spec.batch.life, at)).collect();
        Self { reference: work.reference(JOB), labels: work.labels(), settings, ends, size }
    }

    /// When its last pod has ended; it was created at `at`.
    pub(super) fn done(&self, at: SimTime) -> SimTime {
        self.ends.iter().map(|(_, end)| *end).max().unwrap_or(at)
    }

    /// The lives of its pods in a recording that ends at `end`.
    pub(super) fn lives(&self, end: SimTime) -> Vec<Life> {
        self.ends.iter().map(|(start, stop)| recorded(*start, *stop, end)).collect()
    }

    /// What the Job of that number is called.
    pub(super) fn reference(spec: &GenerateSpec, id: u64) -> ObjectRef {
        let mut draw = Draw::new(spec.seed, &format!("job {id}"));
        Work::draw(spec, &mut draw, id).reference(JOB)
    }
}

/// What Jobs share whose containers have as many settings.
#[derive(Clone, Debug)]
pub(super) struct JobStencil {
    object: Stencil,
    template: Stencil,
    pod: Stencil,
    path: Pointer,
}

impl JobStencil {
    pub(super) fn new(settings: usize) -> Self {
        let template = template(Ink::Marks, settings, "Never");
        // What counts of a template: its annotations, of which there are none, its labels and what pods have in common.
        let counted = json!({"labels": template["metadata"]["labels"], "spec": stable_pod_spec(&template["spec"])});
        Self {
            object: Stencil::of_encoding(&job(Ink::Marks, settings)),
            template: Stencil::of_hash(&counted),
            pod: Stencil::of_hash(&stable_pod_spec(&pods::admitted(&template))),
            path: JOB_TEMPLATE.parse().expect("the path above is a pointer"),
        }
    }

    /// The Job that was drawn into the filling.
    pub(super) fn object(&self) -> &Stencil {
        &self.object
    }

    /// Which template its pods have.
    pub(super) fn template(&self, filling: &Filling, walked: &mut Vec<u8>) -> TemplateId {
        TemplateId { path: self.path.clone(), hash: self.template.hash(filling, walked) }
    }

    /// The lives of pods of this template.
    pub(super) fn lives(
        &self,
        owner: ObjectRef,
        (template, lives): (TemplateId, Vec<Life>),
        filling: &Filling,
        walked: &mut Vec<u8>,
    ) -> OwnerLives {
        let pod_hash = Some(self.pod.hash(filling, walked));
        OwnerLives { owner, templates: vec![TemplateLives { template: Some(template), pod_hash, lives }] }
    }
}

/// A Job whose container has so many settings.
pub(super) fn job(ink: Ink<'_>, settings: usize) -> Value {
    let pods = || ink.number(hole::PODS);
    let mut object = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata(ink),
        "spec": {"backoffLimit": 3, "completionMode": "NonIndexed", "completions": pods(), "manualSelector": false,
            "parallelism": pods(), "podReplacementPolicy": "TerminatingOrFailed", "suspend": false,
            "template": null, "ttlSecondsAfterFinished": 600}});
    pods::put(&mut object, JOB_TEMPLATE, template(ink, settings, "Never"));
    object
}

fn labels(ink: Ink<'_>) -> Value {
    json!({"app.kubernetes.io/component": ink.text(hole::TASK), "app.kubernetes.io/name": ink.text(hole::NAME),
        "team": ink.text(hole::TEAM)})
}

fn metadata(ink: Ink<'_>) -> Value {
    json!({"annotations": {"example.com/owner": format!("{}@example.com", ink.text(hole::TEAM))}, "labels": labels(ink),
        "name": ink.text(hole::NAME), "namespace": ink.text(hole::NAMESPACE)})
}

fn template(ink: Ink<'_>, settings: usize, restart_policy: &str) -> Value {
    let (team, task) = (ink.text(hole::TEAM), ink.text(hole::TASK));
    let arguments = [
        "--config=/etc/task/task.yaml".to_owned(),
        format!("--partition={}", ink.text(hole::PARTITION)),
        format!("--batch-size={}", ink.text(hole::BATCH_SIZE)),
    ];
    let container = json!({"args": arguments, "command": [format!("/app/{task}")],
        "env": pods::env(ink, hole::SETTINGS, settings),
        "image": format!("registry.example.com/{team}/{task}:{}", ink.text(hole::VERSION)),
        "imagePullPolicy": "IfNotPresent", "name": task, "resources": pods::resources(ink, hole::RESOURCES),
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"});
    pods::template(json!({"labels": labels(ink)}), container, restart_policy)
}

/// A CronJob and when it starts.
pub(super) struct CronJob {
    pub(super) object: Value,
    pub(super) reference: ObjectRef,
    template: Value,
    every_minutes: u64,
    offset_minutes: u64,
    pub(super) size: Size,
    pub(super) life: Lifetime,
    pub(super) draw: Draw,
}

impl CronJob {
    pub(super) fn new(spec: &GenerateSpec, id: u64) -> Self {
        let mut draw = Draw::new(spec.seed, &format!("cron job {id}"));
        let work = Work::draw(spec, &mut draw, id);
        let every_minutes = *draw.pick(&[5, 10, 15, 30, 60, 60, 6 * 60, MINUTES_PER_DAY, MINUTES_PER_DAY]);
        let offset_minutes = draw.below(every_minutes);
        let mut filling = Filling::default();
        let (settings, size) = work.fill(&mut draw, &mut filling);
        let template = template(Ink::Real(&filling), settings, "OnFailure");
        let mut object = json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata(Ink::Real(&filling)),
            "spec": {"concurrencyPolicy": "Allow", "failedJobsHistoryLimit": 1,
                "jobTemplate": {"metadata": {"labels": {"team": work.team}}, "spec": {"backoffLimit": 2, "template": null}},
                "schedule": schedule(every_minutes, offset_minutes), "successfulJobsHistoryLimit": 3, "suspend": false}});
        pods::put(&mut object, CRON_JOB_TEMPLATE, template.clone());
        let median = draw.spread(spec.cron.life.median, spec.cron.life.p95);
        let life = Lifetime { median, p95: median * 3 };
        let reference = work.reference(CRON_JOB);
        Self { object, reference, template, every_minutes, offset_minutes, size, life, draw }
    }

    /// The time from one start to the next.
    pub(super) fn every(&self) -> SimDuration {
        SimDuration::from_mins(self.every_minutes as i64)
    }

    /// When it first starts from then on.
    pub(super) fn first_from(&self, start: SimTime) -> SimTime {
        let (every, offset) = (self.every(), SimDuration::from_mins(self.offset_minutes as i64));
        let before = start.since(SimTime::EPOCH + offset).as_micros().div_euclid(every.as_micros());
        let fires = SimTime::EPOCH + offset + every * before;
        if fires >= start { fires } else { fires + every }
    }

    /// The lives of its pods in a recording from `start` to `end`.
    pub(super) fn lives(mut self, start: SimTime, end: SimTime) -> OwnerLives {
        let mut fires = self.first_from(start);
        let mut lives = Vec::new();
        while fires < end {
            let (from, to) = life(&mut self.draw, self.life, fires);
            lives.push(recorded(from, to, end));
            fires += self.every();
        }
        lives.retain(|life| life.start < end);
        self.with_lives(lives)
    }

    /// These lives as those of its pods.
    pub(super) fn with_lives(&self, lives: Vec<Life>) -> OwnerLives {
        owner_lives(self.reference.clone(), CRON_JOB_TEMPLATE, &self.template, lives)
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
pub(super) fn life(draw: &mut Draw, spread: Lifetime, created: SimTime) -> (SimTime, SimTime) {
    let start = created + SimDuration::from_millis(draw.between(800, 9_000) as i64);
    (start, start + draw.spread(spread.median, spread.p95))
}

/// A life as a recording that ends at `end` has it.
pub(super) fn recorded(start: SimTime, stop: SimTime, end: SimTime) -> Life {
    Life { start, end: (stop < end).then_some(stop), guessed: false, exit_code: None }
}

fn owner_lives(owner: ObjectRef, path: &'static str, template: &Value, lives: Vec<Life>) -> OwnerLives {
    let path = path.parse().expect("the paths above are pointers");
    let pod_hash = Some(StableHash::of_pod_spec(&pods::admitted(template)));
    let template = Some(TemplateId::of(path, template));
    OwnerLives { owner, templates: vec![TemplateLives { template, pod_hash, lives }] }
}

/// What Jobs and CronJobs have in common.
struct Work {
    name: SmolStr,
    namespace: SmolStr,
    team: &'static str,
    task: &'static str,
}

impl Work {
    fn draw(spec: &GenerateSpec, draw: &mut Draw, id: u64) -> Self {
        let (team, task) = (*draw.pick(&TEAMS), *draw.pick(&TASKS));
        let namespace = namespace(spec, team, draw.below(u64::from(spec.namespaces))).into();
        Self { name: format!("{team}-{task}-{id}-{}", draw.suffix()).into(), namespace, team, task }
    }

    fn reference(&self, gvk: Gvk) -> ObjectRef {
        ObjectRef::new(gvk, ObjectKey::namespaced(self.namespace.clone(), self.name.clone()))
    }

    /// Its labels. Nothing is copied: there are millions of Jobs.
    fn labels(&self) -> [(SmolStr, SmolStr); 3] {
        let pairs = [
            ("app.kubernetes.io/component", SmolStr::new_static(self.task)),
            ("app.kubernetes.io/name", self.name.clone()),
            ("team", SmolStr::new_static(self.team)),
        ];
        pairs.map(|(key, value)| (SmolStr::new_static(key), value))
    }

    /// Fills the texts of a template and of what is around it. Answers how many settings its container has, and what it
    /// asks for.
    fn fill(&self, draw: &mut Draw, filling: &mut Filling) -> (usize, Size) {
        filling.clear();
        [self.name.as_str(), &self.namespace, self.team, self.task].into_iter().for_each(|text| filling.text(text));
        filling.text(&pods::version(draw.below(40)));
        filling.text(&draw.hex(6));
        filling.text(&(100 << draw.below(8)).to_string());
        // Settings are drawn before the size, and stand behind it.
        let settings = Settings::draw(draw, 10);
        let size = Size::draw(draw);
        size.fill(filling);
        settings.fill(filling);
        (settings.count, size)
    }
}

#[cfg(test)]
mod tests {
    use sk_store::trace::Encoded;

    use super::*;

    #[test]
    fn a_filled_stencil_is_the_job_as_a_tree() {
        let spec = GenerateSpec::default();
        let (start, end) = (spec.start, spec.start + spec.duration);
        let mut filling = Filling::default();
        for id in 0..200 {
            let drawn = Job::draw(&spec, id, start, &mut filling);
            let tree = job(Ink::Real(&filling), drawn.settings);
            let stencil = JobStencil::new(drawn.settings);
            let recorded = drawn.lives(end);
            let mut body = Vec::new();
            stencil.object().encode(&filling, &mut body);
            let encoded = Encoded { object: drawn.reference, labels: drawn.labels.into(), body: body.into() };
            let object = encoded.decode().unwrap();
            assert_eq!(object.value(), &tree);
            assert!(object.labels().eq(encoded.labels.iter().map(|(key, value)| (key.as_str(), value.as_str()))));
            let template = stencil.template(&filling, &mut Vec::new());
            let lives = stencil.lives(encoded.object.clone(), (template, recorded.clone()), &filling, &mut Vec::new());
            let template = tree.pointer(JOB_TEMPLATE).unwrap();
            assert_eq!(lives, owner_lives(encoded.object, JOB_TEMPLATE, template, recorded));
        }
    }
}

//! The engine's arm of a scenario: plays its steps in virtual time and remembers what happened.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sk_core::{Gvk, ObjectRef, SimDuration, SimTime};
use sk_engine::api::directives::NODE_READY_DELAY;
use sk_engine::api::{ApiError, Change, DeleteOptions, Object, Propagation, Request, Rules, WatchEvent};
use sk_engine::kinds::{ConditionStatus, POD};
use sk_engine::{Engine, Event, Settings, Timing};
use sk_testkit::canonical::{self, History, Observation, canonicalise};
use sk_testkit::fixture::Refusal;
use sk_testkit::scenario::{Action, Condition, Scenario, with_uids};

const START: SimTime = SimTime::from_secs(1_767_600_000);
/// How long the recorder takes from one request of a step to the next.
const REQUEST: SimDuration = SimDuration::from_millis(5);
/// How often conditions are looked at, and for how long at most.
const LOOK: SimDuration = SimDuration::from_millis(20);
const LIMIT: SimDuration = SimDuration::from_mins(3);
/// KWOK's stages end a Job's pod about half a second after it started.
const POD_RUNS: SimDuration = SimDuration::from_millis(500);

pub(crate) struct Arm {
    engine: Engine,
    said: Vec<Event>,
    refusals: Vec<Refusal>,
    steps: Vec<u64>,
}

/// As fast as the control plane of the recordings, its virtual nodes as KWOK's stages have it, and all is said.
pub(crate) fn settings() -> Settings {
    let timing = Timing { job_duration: POD_RUNS, ..Timing::real_like() };
    Settings { timing, events: true, rules: Rules::Written, ..Settings::default() }
}

impl Arm {
    pub(crate) fn play(scenario: &Scenario) -> Self {
        Self::play_with(scenario, &settings())
    }

    pub(crate) fn play_with(scenario: &Scenario, settings: &Settings) -> Self {
        let mut arm =
            Self { engine: Engine::new(settings, START), said: Vec::new(), refusals: Vec::new(), steps: Vec::new() };
        for node in scenario.node_objects() {
            arm.create(node.as_value()).unwrap_or_else(|error| panic!("a node of the scenario is refused: {error}"));
        }
        for (index, step) in scenario.steps.iter().enumerate() {
            arm.engine.advance_to(START + step.at);
            arm.steps.push(millis(arm.engine.now()));
            match (arm.act(&step.action, &step.until), step.refused) {
                (Ok(()), false) => {}
                (Err(error), true) => arm.refusals.push(refusal(index + 1, &error)),
                (Ok(()), true) => panic!("{}: the engine takes what step {} says is refused", scenario.name, index + 1),
                (Err(error), false) => panic!("{}: the engine refuses step {}: {error}", scenario.name, index + 1),
            }
            arm.wait(scenario, index, &step.until);
        }
        arm.said = arm.engine.take_events();
        arm
    }

    fn act(&mut self, action: &Action, until: &[Condition]) -> Result<(), ApiError> {
        match action {
            Action::Create(objects) => {
                for object in objects {
                    self.create(object)?;
                    self.wait_for_each(object, until);
                }
                Ok(())
            }
            Action::Apply(object) => self.handle(Request::apply(parse(object.clone()))),
            Action::Patch(patch) => {
                let stored =
                    self.engine.get(&patch.of.0.gvk, &patch.of.0.key).expect("the scenario patches what exists");
                let mut json = stored.to_json();
                merge(&mut json, &with_uids(&patch.merge, &|target| self.uid(target)));
                let patched = parse(json);
                self.handle(if patch.status { Request::update_status(patched) } else { Request::update(patched) })
            }
            Action::Delete(delete) => {
                let propagation = match delete.propagation {
                    Some(sk_testkit::scenario::Propagation::Foreground) => Propagation::Foreground,
                    Some(sk_testkit::scenario::Propagation::Orphan) => Propagation::Orphan,
                    _ => Propagation::Background,
                };
                let grace_secs = delete.grace.map(i64::from);
                let options = DeleteOptions { propagation, grace_secs, ..DeleteOptions::default() };
                self.handle(Request::Delete { target: delete.of.0.clone(), options })
            }
            Action::Evict(evict) => self.handle(Request::Evict { pod: evict.of.0.key.clone() }),
            Action::Wait => Ok(()),
        }
    }

    /// Objects of one step come one after the other; the next waits for what `each` asks of the one before.
    fn wait_for_each(&mut self, object: &Value, until: &[Condition]) {
        self.settle(REQUEST);
        let fields: Vec<_> =
            until.iter().filter_map(|one| if let Condition::Each(field) = one { Some(field) } else { None }).collect();
        if fields.is_empty() {
            return;
        }
        let target = parse(object.clone()).reference();
        for field in fields {
            let began = self.engine.now();
            let is_there = |engine: &Engine| {
                let made = engine.get(&target.gvk, &target.key).map(|object| object.to_json());
                made.is_some_and(|made| made.pointer(field).is_some())
            };
            while !is_there(&self.engine) {
                assert!(self.engine.now().since(began) < LIMIT, "{target} waited in vain for {field}");
                self.settle(LOOK);
            }
        }
    }

    fn uid(&self, target: &ObjectRef) -> Option<String> {
        self.engine.get(&target.gvk, &target.key).map(|object| object.uid.to_string())
    }

    /// Lets time pass until what a step waits for holds, as the recorder does.
    fn wait(&mut self, scenario: &Scenario, step: usize, until: &[Condition]) {
        let began = self.engine.now();
        while let Some(unmet) = until.iter().find(|condition| !self.holds(scenario, began, condition)) {
            let waited = self.engine.now().since(began);
            assert!(waited < LIMIT, "{}: step {} waited {waited} in vain until {unmet:?}", scenario.name, step + 1);
            self.settle(LOOK);
        }
    }

    fn holds(&self, scenario: &Scenario, began: SimTime, condition: &Condition) -> bool {
        match condition {
            Condition::Field(field) => {
                let object = self.engine.get(&field.of.0.gvk, &field.of.0.key).map(|object| object.to_json());
                let found = object.as_ref().and_then(|object| object.pointer(&field.at));
                match &field.is {
                    Some(wanted) => found == Some(wanted),
                    None => found.is_some(),
                }
            }
            Condition::Gone(target) => self.engine.get(&target.0.gvk, &target.0.key).is_none(),
            Condition::Count(count) => self.engine.list(&count.of).count() == count.is,
            Condition::Quiet(span) => {
                let is_watched = |event: &&WatchEvent| scenario.watch.iter().any(|kind| event.object.gvk == *kind);
                let last = self.changes().filter(is_watched).map(|event| event.at).max();
                self.engine.now().since(last.unwrap_or(began).max(began)) >= *span
            }
            // Each was waited for when it was made.
            Condition::Each(_) => true,
        }
    }

    /// A node that is there before the first step is ready; one that comes later repels pods until it is, which an API
    /// server's admission and KWOK see to on a real control plane.
    fn create(&mut self, json: &Value) -> Result<(), ApiError> {
        let mut json = with_uids(json, &|target| self.uid(target));
        if json["kind"] == "Node" && json.pointer("/status/conditions").is_none() {
            let is_first = self.engine.now() == START;
            if is_first {
                json["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
            } else {
                json["spec"]["taints"] = json!([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]);
                json["metadata"]["annotations"][NODE_READY_DELAY.as_str()] = json!("1000ms");
            }
        }
        self.handle(Request::create(parse(json)))
    }

    fn handle(&mut self, request: Request) -> Result<(), ApiError> {
        self.engine.handle(request).map(drop)
    }

    /// When each step began, in milliseconds since the first.
    pub(crate) fn steps(&self) -> &[u64] {
        &self.steps
    }

    /// What was refused, in the engine's words.
    pub(crate) fn refusals(&self) -> &[Refusal] {
        &self.refusals
    }

    fn settle(&mut self, span: SimDuration) {
        self.engine.advance_to(self.engine.now() + span);
    }

    /// Every change of every object, in order.
    pub(crate) fn changes(&self) -> impl Iterator<Item = &WatchEvent> {
        self.engine.watch(0).expect("short scenarios stay within the log")
    }

    /// Where each pod is.
    pub(crate) fn placements(&self) -> BTreeMap<String, Option<String>> {
        let node = |pod: &Object| pod.pod().and_then(|pod| pod.node_name.as_ref()).map(ToString::to_string);
        self.engine.list(&POD).map(|pod| (pod.key.name.to_string(), node(pod))).collect()
    }

    /// Every distinct sentence the scheduler wrote into a pod, in order.
    pub(crate) fn sentences(&self, pod: &str) -> Vec<String> {
        let mut sentences: Vec<String> = Vec::new();
        for event in self.engine.watch(0).expect("short scenarios stay within the log") {
            let Some(body) = event.object.pod().filter(|_| event.object.key.name == pod) else { continue };
            let refused = body.status.condition("PodScheduled").filter(|c| c.status == ConditionStatus::False);
            if let Some(condition) = refused.filter(|c| sentences.last().is_none_or(|last| *last != c.message())) {
                sentences.push(condition.message().to_owned());
            }
        }
        sentences
    }

    /// Everything that happened to objects of these kinds, told as a recording tells it.
    pub(crate) fn histories(&self, kinds: &[Gvk]) -> Vec<History> {
        let events = self.engine.watch(0).expect("short scenarios stay within the log");
        let watched = events.filter(|event| kinds.iter().any(|kind| event.object.gvk == *kind));
        let observations = watched.map(|event| Observation {
            change: match event.change {
                Change::Added => canonical::Change::Added,
                Change::Modified => canonical::Change::Modified,
                Change::Deleted => canonical::Change::Deleted,
            },
            object: event.object.to_json(),
            at_ms: millis(event.at),
        });
        canonicalise(&observations.chain(self.said.iter().map(as_observation)).collect::<Vec<_>>())
    }

    /// The whole log as text: what two runs of one scenario must have in common.
    pub(crate) fn log(&self) -> String {
        let events = self.engine.watch(0).expect("short scenarios stay within the log");
        events.map(|event| format!("{:?} {:?} {}\n", event.at, event.change, event.object.to_json())).collect()
    }
}

/// An Event as a watch of a real cluster would show it.
fn as_observation(event: &Event) -> Observation {
    let object = json!({
        "apiVersion": "v1", "kind": "Event", "involvedObject": {"uid": event.about.uid.to_string()},
        "type": if event.is_warning { "Warning" } else { "Normal" },
        "reason": event.reason, "message": event.message, "reportingComponent": event.from,
    });
    Observation { change: canonical::Change::Added, object, at_ms: millis(event.at) }
}

/// Milliseconds since the first step.
fn millis(at: SimTime) -> u64 {
    u64::try_from(at.since(START).as_micros() / 1_000).unwrap_or(0)
}

fn refusal(step: usize, error: &ApiError) -> Refusal {
    let status = error.to_json();
    let text = |name: &str| status[name].as_str().unwrap_or_default().to_owned();
    let code = status["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or_default();
    Refusal { step, code, reason: text("reason"), message: text("message") }
}

fn parse(json: Value) -> Object {
    Object::from_json(json).unwrap_or_else(|error| panic!("the scenario's object does not parse: {error}"))
}

/// A JSON merge patch (RFC 7386).
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(serde_json::Map::new());
    }
    for (name, value) in fields {
        match value {
            Value::Null => drop(target.as_object_mut().and_then(|object| object.remove(name))),
            _ => merge(&mut target[name.as_str()], value),
        }
    }
}

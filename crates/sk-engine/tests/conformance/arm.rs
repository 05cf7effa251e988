//! The engine's arm of a scenario: plays its steps in virtual time and remembers what happened.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sk_core::{Gvk, ObjectRef, SimDuration, SimTime};
use sk_engine::api::directives::NODE_READY_DELAY;
use sk_engine::api::{Change, DeleteOptions, Object, Propagation, Request, WatchEvent};
use sk_engine::kinds::{ConditionStatus, POD};
use sk_engine::{Engine, Settings};
use sk_testkit::canonical::{self, History, Observation, canonicalise};
use sk_testkit::scenario::{Action, Scenario};

const START: SimTime = SimTime::from_secs(1_767_600_000);
/// Each object of a step is settled before the next: recorded steps wait for pods to be bound in the same way.
const SETTLE: SimDuration = SimDuration::from_secs(5);
/// How long the engine goes on after the last step.
const AFTERWARDS: SimDuration = SimDuration::from_mins(2);

pub(crate) struct Arm {
    engine: Engine,
}

impl Arm {
    pub(crate) fn play(scenario: &Scenario) -> Self {
        Self::play_with(scenario, &Settings::default())
    }

    pub(crate) fn play_with(scenario: &Scenario, settings: &Settings) -> Self {
        let mut arm = Self { engine: Engine::new(settings, START) };
        for node in scenario.node_objects() {
            arm.create(node.into_value());
        }
        for step in &scenario.steps {
            arm.engine.advance_to(START + step.at);
            arm.act(&step.action);
            arm.settle(SETTLE);
        }
        arm.settle(AFTERWARDS);
        arm
    }

    fn act(&mut self, action: &Action) {
        match action {
            Action::Create(objects) => {
                for object in objects {
                    self.create(object.clone());
                    self.settle(SETTLE);
                }
            }
            Action::Apply(object) => self.handle(Request::apply(parse(object.clone()))),
            Action::Patch(patch) => {
                let stored =
                    self.engine.get(&patch.of.0.gvk, &patch.of.0.key).expect("the scenario patches what exists");
                let mut json = stored.to_json();
                merge(&mut json, &patch.merge);
                self.handle(Request::update(parse(json)));
            }
            Action::Delete(delete) => {
                let propagation = match delete.propagation {
                    Some(sk_testkit::scenario::Propagation::Foreground) => Propagation::Foreground,
                    Some(sk_testkit::scenario::Propagation::Orphan) => Propagation::Orphan,
                    _ => Propagation::Background,
                };
                let options = DeleteOptions { propagation, ..DeleteOptions::default() };
                self.handle(Request::Delete { target: delete.of.0.clone(), options });
            }
            Action::Evict(evict) => self.handle(Request::Evict { pod: evict.of.0.key.clone() }),
            Action::Wait => {}
        }
    }

    /// A node that is there before the first step is ready; one that comes later repels pods until it is, which an API
    /// server's admission and KWOK see to on a real control plane.
    fn create(&mut self, mut json: Value) {
        if json["kind"] == "Node" {
            let is_first = self.engine.now() == START;
            if is_first {
                json["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
            } else {
                json["spec"]["taints"] = json!([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]);
                json["metadata"]["annotations"][NODE_READY_DELAY.as_str()] = json!("1000ms");
            }
        }
        self.handle(Request::create(parse(json)));
    }

    fn handle(&mut self, request: Request) {
        let target: ObjectRef = request.target();
        if let Err(error) = self.engine.handle(request) {
            panic!("the engine refuses what the real API server took: {target}: {error}");
        }
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
        });
        canonicalise(&observations.collect::<Vec<_>>())
    }

    /// The whole log as text: what two runs of one scenario must have in common.
    pub(crate) fn log(&self) -> String {
        let events = self.engine.watch(0).expect("short scenarios stay within the log");
        events.map(|event| format!("{:?} {:?} {}\n", event.at, event.change, event.object.to_json())).collect()
    }
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

//! The engine's arm of a scenario: plays its steps in virtual time and remembers what happened.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sk_core::{Gvk, ObjectRef, SimDuration, SimTime};
use sk_engine::api::directives::NODE_READY_DELAY;
use sk_engine::api::{Change, DeleteOptions, Object, Propagation, Request, Uid, WatchEvent};
use sk_engine::kinds::{ConditionStatus, POD};
use sk_engine::{Engine, Settings};
use sk_testkit::scenario::{Action, Scenario};

const START: SimTime = SimTime::from_secs(1_767_600_000);
/// Each object of a step is settled before the next: recorded steps wait for pods to be bound in the same way.
const SETTLE: SimDuration = SimDuration::from_secs(5);
/// How long the engine goes on after the last step.
const AFTERWARDS: SimDuration = SimDuration::from_mins(2);

pub(crate) struct Arm {
    engine: Engine,
}

/// Kinds whose life the engine models; others (events, leases, revisions) are not compared.
pub(crate) fn is_compared(kind: &Gvk) -> bool {
    ["Pod", "Deployment", "ReplicaSet", "Job", "Namespace"].contains(&kind.kind.as_str())
}

/// Namespaces that every cluster has.
pub(crate) fn is_built_in(name: &str) -> bool {
    ["Namespace/default", "Namespace/kube-node-lease", "Namespace/kube-public", "Namespace/kube-system"].contains(&name)
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
            Action::Wait => {}
        }
    }

    /// A node that is there before the first step is ready; one that comes later repels pods until it is, which an API
    /// server's admission and KWOK see to on a real control plane.
    fn create(&mut self, mut json: Value) {
        if json["kind"] == "Node" {
            let is_first = self.engine.now() == START;
            json["status"]["conditions"] =
                json!([{"type": "Ready", "status": if is_first { "True" } else { "False" }}]);
            if !is_first {
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

    /// Every object there was, by canonical name, and whether it is gone.
    pub(crate) fn lives(&self) -> BTreeMap<String, bool> {
        let mut names = BTreeMap::<Uid, String>::new();
        let mut counts = BTreeMap::<(String, String), usize>::new();
        let mut lives = BTreeMap::new();
        for event in self.engine.watch(0).expect("short scenarios stay within the log") {
            let object = &event.object;
            if !is_compared(&object.gvk) {
                continue;
            }
            let name = if event.change == Change::Added {
                let name = canonical(object, &names, &mut counts);
                names.insert(object.uid, name.clone());
                name
            } else {
                names[&object.uid].clone()
            };
            lives.insert(name, event.change == Change::Deleted);
        }
        lives
    }
}

/// By owner and ordinal where the name is generated, by itself otherwise.
fn canonical(object: &Object, names: &BTreeMap<Uid, String>, counts: &mut BTreeMap<(String, String), usize>) -> String {
    if let Some(owner) = object.controller().and_then(|owner| names.get(&owner.uid)) {
        let count = counts.entry((owner.clone(), object.gvk.kind.to_string())).or_default();
        *count += 1;
        return format!("{owner}/{}#{count}", object.gvk.kind);
    }
    match &object.key.namespace {
        Some(namespace) => format!("{namespace}/{}/{}", object.gvk.kind, object.key.name),
        None => format!("{}/{}", object.gvk.kind, object.key.name),
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

//! A cluster of roomy nodes without latencies, and objects for it.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sk_core::{Gvk, ObjectKey, ObjectRef, Quantity, SimDuration, SimTime, SmolStr};
use sk_engine::api::{ApiError, DeleteOptions, Object, Propagation, Request};
use sk_engine::kinds::POD;
use sk_engine::{Engine, NodeGroup, Settings, Timing};

/// 2026-01-05T08:00:00Z, a Monday.
pub(crate) const START: SimTime = SimTime::from_secs(1_767_600_000);

pub(crate) struct Cluster {
    pub(crate) engine: Engine,
}

/// Two nodes of 64 CPU and 500 pods each.
fn roomy() -> NodeGroup {
    let amounts = [("cpu", "64"), ("memory", "256Gi"), ("pods", "500")];
    let amounts: BTreeMap<SmolStr, Quantity> =
        amounts.into_iter().map(|(name, amount)| (name.into(), amount.parse().expect("a quantity"))).collect();
    let name = "big".into();
    NodeGroup { name, min: 2, max: 2, capacity: amounts.clone(), allocatable: amounts, ..NodeGroup::default() }
}

/// A Job in namespace `default` with this spec; its pods run for ten seconds and end with `exit_code`.
pub(crate) fn job(name: &str, exit_code: u8, spec: Value) -> Value {
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "default"},
        "spec": {"template": template(10, exit_code)},
    });
    merge(&mut job["spec"], spec);
    job
}

/// A template whose pods run for `secs` and end with `exit_code`.
pub(crate) fn template(secs: i64, exit_code: u8) -> Value {
    json!({
        "metadata": {"annotations": {
            "static.simkube.io/lifetime": format!("{}us", secs * 1_000_000),
            "static.simkube.io/exit-code": exit_code.to_string(),
        }},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "100m"}}}],
        },
    })
}

/// Fields of `more` over those of `target`.
pub(crate) fn merge(target: &mut Value, more: Value) {
    match (target, more) {
        (Value::Object(target), Value::Object(more)) => {
            more.into_iter().for_each(|(name, value)| merge(target.entry(name).or_insert(Value::Null), value));
        }
        (target, more) => *target = more,
    }
}

/// Two roomy nodes without latencies.
pub(crate) fn ideal_settings() -> Settings {
    Settings { seed: 1, timing: Timing::ideal(), groups: vec![roomy()], ..Settings::default() }
}

impl Cluster {
    pub(crate) fn new(timing: Timing) -> Self {
        Self::of(&Settings { timing, ..ideal_settings() })
    }

    pub(crate) fn of(settings: &Settings) -> Self {
        Self { engine: Engine::new(settings, START) }
    }

    pub(crate) fn ideal() -> Self {
        Self::new(Timing::ideal())
    }

    /// Lets time pass until `secs` after the start.
    pub(crate) fn until(&mut self, secs: i64) -> &mut Self {
        self.engine.advance_to(START + SimDuration::from_secs(secs));
        self
    }

    pub(crate) fn apply(&mut self, json: Value) -> &mut Self {
        self.try_apply(json).expect("the test's object is accepted");
        self
    }

    pub(crate) fn try_apply(&mut self, json: Value) -> Result<(), ApiError> {
        self.engine.handle(Request::apply(Object::from_json(json)?)).map(|_| ())
    }

    pub(crate) fn delete(&mut self, gvk: &Gvk, name: &str, propagation: Propagation) -> &mut Self {
        let target = ObjectRef::new(gvk.clone(), ObjectKey::namespaced("default", name));
        let options = DeleteOptions { propagation, ..DeleteOptions::default() };
        self.engine.handle(Request::Delete { target, options }).expect("there is something to delete");
        self
    }

    /// An object of namespace `default` as JSON.
    pub(crate) fn get(&self, gvk: &Gvk, name: &str) -> Value {
        let key = ObjectKey::namespaced("default", name);
        self.engine.get(gvk, &key).map_or(Value::Null, |object| object.to_json())
    }

    /// All pods as JSON, by name.
    pub(crate) fn pods(&self) -> Vec<Value> {
        self.engine.list(&POD).map(|pod| pod.to_json()).collect()
    }

    pub(crate) fn names(&self, gvk: &Gvk) -> Vec<String> {
        self.engine.list(gvk).map(|object| object.key.name.to_string()).collect()
    }

    /// How many pods are in this phase and not going.
    pub(crate) fn phase(&self, phase: &str) -> usize {
        let is_it = |pod: &&Value| pod["status"]["phase"] == phase && pod["metadata"]["deletionTimestamp"].is_null();
        self.pods().iter().filter(is_it).count()
    }

    /// Seconds after the start at which each pod was made that there ever was.
    pub(crate) fn creations(&self) -> Vec<i64> {
        let events = self.engine.watch(0).expect("short tests stay within the log");
        let made = events.filter(|event| event.before.is_none() && event.object.gvk == POD);
        made.map(|event| event.at.since(START).as_micros() / 1_000_000).collect()
    }
}

/// The conditions of a Job that hold: type and reason.
pub(crate) fn conditions(job: &Value) -> Vec<(String, String)> {
    let holds = job["status"]["conditions"].as_array().into_iter().flatten().filter(|one| one["status"] == "True");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    holds.map(|one| (text(&one["type"]), text(&one["reason"]))).collect()
}

//! A cluster with a clock that tests can read: seconds since its start.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sk_core::{Gvk, ObjectKey, ObjectRef, Quantity, SimDuration, SimTime, SmolStr};
use sk_engine::api::{DeleteOptions, Object, Propagation, Request};
use sk_engine::kinds::{NODE, POD, PodPhase};
use sk_engine::{Engine, NodeGroup, Settings, Timing};

pub(crate) const START: SimTime = SimTime::from_secs(1_767_600_000);

pub(crate) struct Cluster {
    pub(crate) engine: Engine,
}

pub(crate) fn group(name: &str, cpu: &str, min: u32, max: u32) -> NodeGroup {
    let amounts = [("cpu", cpu), ("memory", "4Gi"), ("pods", "110")];
    let quantity = |amount: &str| amount.parse().expect("the test's quantity is well-formed");
    let amounts: BTreeMap<SmolStr, Quantity> =
        amounts.into_iter().map(|(name, amount)| (name.into(), quantity(amount))).collect();
    NodeGroup {
        name: name.into(),
        min,
        max,
        capacity: amounts.clone(),
        allocatable: amounts,
        ready_delay: SimDuration::from_secs(60),
        ..NodeGroup::default()
    }
}

/// A deployment in namespace `default` whose pods ask for `cpu`.
pub(crate) fn deployment(name: &str, replicas: i64, cpu: Option<&str>) -> Value {
    let resources = cpu.map_or(json!({}), |cpu| json!({"requests": {"cpu": cpu}}));
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "app:1", "resources": resources}]},
            },
        },
    })
}

impl Cluster {
    pub(crate) fn new(groups: Vec<NodeGroup>, timing: Timing) -> Self {
        Self { engine: Engine::new(&Settings { seed: 1, timing, groups, ..Settings::default() }, START) }
    }

    /// One group of 1-CPU nodes, and no latencies.
    pub(crate) fn ideal(min: u32, max: u32) -> Self {
        Self::new(vec![group("small", "1", min, max)], Timing::ideal())
    }

    /// Lets time pass until `secs` after the start.
    pub(crate) fn until(&mut self, secs: i64) -> &mut Self {
        self.engine.advance_to(START + SimDuration::from_secs(secs));
        self
    }

    pub(crate) fn apply(&mut self, json: Value) -> &mut Self {
        let object = Object::from_json(json).expect("the test's object is well-formed");
        self.engine.handle(Request::apply(object)).expect("the test's object is accepted");
        self
    }

    pub(crate) fn delete(&mut self, gvk: &str, name: &str, propagation: Propagation) -> &mut Self {
        let gvk: Gvk = gvk.parse().expect("the test's kind is well-formed");
        let key =
            if gvk.kind == "Namespace" { ObjectKey::cluster(name) } else { ObjectKey::namespaced("default", name) };
        let options = DeleteOptions { propagation, ..DeleteOptions::default() };
        let target = ObjectRef::new(gvk, key);
        self.engine.handle(Request::Delete { target, options }).expect("there is something to delete");
        self
    }

    pub(crate) fn names(&self, gvk: &Gvk) -> Vec<String> {
        self.engine.list(gvk).map(|object| object.key.name.to_string()).collect()
    }

    pub(crate) fn nodes(&self) -> usize {
        self.engine.list(&NODE).count()
    }

    pub(crate) fn pods(&self, phase: PodPhase) -> usize {
        let in_phase = |object: &&std::sync::Arc<Object>| object.pod().is_some_and(|pod| pod.status.phase == phase);
        self.engine.list(&POD).filter(in_phase).count()
    }

    /// `(running, pending)` pods.
    pub(crate) fn running_and_pending(&self) -> (usize, usize) {
        (self.pods(PodPhase::Running), self.pods(PodPhase::Pending))
    }

    /// Everything that happened, as text.
    pub(crate) fn history(&self) -> String {
        let events = self.engine.watch(0).expect("short tests stay within the log");
        events.map(|event| format!("{:?} {}\n", event.change, event.object.to_json())).collect()
    }
}

//! Small clusters for what no recording shows: some groups, a few workloads, and what came of them.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sk_core::{Quantity, SimDuration, SimTime, SmolStr};
use sk_engine::api::directives::NODE_GROUP;
use sk_engine::api::{Object, Request};
use sk_engine::kinds::NODE;
use sk_engine::{Autoscaler, Decision, Engine, NodeGroup, Settings};

pub(crate) const START: SimTime = SimTime::from_secs(1_767_600_000);

pub(crate) fn group(name: &'static str, cpu: u32, price: f64) -> NodeGroup {
    let amounts: BTreeMap<SmolStr, Quantity> =
        [("cpu", cpu.to_string()), ("memory", format!("{}Gi", cpu * 4)), ("pods", "110".to_owned())]
            .map(|(name, amount)| (name.into(), amount.parse().expect("a quantity")))
            .into();
    NodeGroup {
        name: name.into(),
        max: 20,
        capacity: amounts.clone(),
        allocatable: amounts,
        ready_delay: SimDuration::from_secs(30),
        price_per_hour: Some(price),
        ..NodeGroup::default()
    }
}

pub(crate) fn engine(groups: Vec<NodeGroup>, autoscaler: Autoscaler) -> Engine {
    Engine::new(&Settings { groups, autoscaler, ..Settings::default() }, START)
}

pub(crate) fn after(mins: i64) -> SimTime {
    START + SimDuration::from_mins(mins)
}

pub(crate) fn deploy(engine: &mut Engine, name: &str, replicas: u32, requests: &Value) {
    let deployment = deployment(name, replicas, requests);
    engine.handle(Request::apply(Object::from_json(deployment).expect("a deployment"))).expect("it is taken");
}

/// A Deployment of pods that ask for so much.
pub(crate) fn deployment(name: &str, replicas: u32, requests: &Value) -> Value {
    let spec = json!({"containers": [{
        "name": "main", "image": "app:1", "resources": {"requests": requests, "limits": requests},
    }]});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
        },
    })
}

/// How many nodes each group has.
pub(crate) fn sizes(engine: &Engine) -> BTreeMap<String, usize> {
    let mut sizes = BTreeMap::new();
    for node in engine.list(&NODE) {
        let group = node.meta.labels.get(&NODE_GROUP).expect("every node has its group");
        *sizes.entry(group.to_string()).or_insert(0) += 1;
    }
    sizes
}

/// Reasons and messages of the events, with the minute in which they came.
pub(crate) fn events(decisions: &[Decision]) -> Vec<(i64, &'static str, String)> {
    let minute = |decision: &Decision| decision.at.since(START).as_micros() / 60_000_000;
    let of = |decision: &Decision| -> Vec<_> {
        decision.events().into_iter().map(|(reason, _, message)| (minute(decision), reason, message)).collect()
    };
    decisions.iter().flat_map(of).collect()
}

/// Puts in an object as it is.
pub(crate) fn create(engine: &mut Engine, object: Value) {
    engine.handle(Request::create(Object::from_json(object).expect("an object"))).expect("it is taken");
}

/// A DaemonSet whose pods have these resources.
pub(crate) fn daemon_set(resources: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {"containers": [{"name": "main", "image": "agent:1", "resources": resources}]},
            },
        },
    })
}

//! What the engine and the real control plane must agree on after a scenario: states, not just names.
//!
//! Compared of every object: whether it is gone, and its last state: labels, annotations, owners and generation, the spec as
//! far as the engine's says something (a real API server fills in defaults), the whole status with conditions, reasons
//! and messages. Of workloads also their counts over time, every turn that each takes and when ([`counts`]), and the order in
//! which their pods are made and deleted, a sync's batch as a set ([`order`]). Times inside objects are scrubbed by
//! [`canonical`](crate::canonical), and the last states of an owner's pods are compared as a bag. Where a scenario watches Events,
//! what was said of each object is compared too.
//!
//! What is left out stands in [`LEFT_OUT`] with its reason, or in the scenario under `incomparable`, where `/counts/…` names one of
//! the counts, `/times` when counts turn, `/order` the order of an owner's pods, `/events` what was said, and `/deleted` objects
//! that are gone, however many they were.

mod counts;
mod order;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use sk_core::Gvk;

use crate::canonical::{EventLine, History};
use crate::compare::{remove, star_pod_ordinals, without_pod_ordinals};
use crate::fixture;
use crate::scenario::{Incomparable, Scenario, ScenarioError};

pub use counts::TOLERANCE_MS;

/// What came of a scenario in one arm.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// One history per object.
    pub objects: &'a [History],
    /// When each step began, in milliseconds as the histories' moments.
    pub steps: &'a [u64],
}

/// The kinds whose states are compared; of others a scenario may say what it likes.
const COMPARED: [&str; 15] = [
    "ConfigMap",
    "Pod",
    "Job",
    "CronJob",
    "ReplicationController",
    "Node",
    "Deployment",
    "ReplicaSet",
    "StatefulSet",
    "DaemonSet",
    "ControllerRevision",
    "PersistentVolumeClaim",
    "PodDisruptionBudget",
    "ResourceQuota",
    "Namespace",
];

/// Fields that are not compared: of which kind, where, and why.
pub const LEFT_OUT: &[(&str, &str, &str)] = &[
    ("*", "/metadata/deletionTimestamp", "is a time"),
    ("*", "/metadata/deletionGracePeriodSeconds", "is 0 in the last moment of a real pod only"),
    ("Pod", "/status/podIP", "there is no network"),
    ("Pod", "/status/podIPs", "there is no network"),
    ("Pod", "/status/hostIP", "there is no network"),
    ("Pod", "/status/hostIPs", "there is no network"),
    ("Pod", "/status/qosClass", "nobody here acts on it"),
    ("Pod", "/status/observedGeneration", "nobody here acts on it"),
    ("Pod", "/status/conditions/*/observedGeneration", "nobody here acts on it"),
    ("Pod", "/status/containerStatuses/*/image", "says what the spec says"),
    ("Pod", "/status/containerStatuses/*/imageID", "there are no images"),
    ("Pod", "/status/containerStatuses/*/lastState", "is empty in these scenarios"),
    ("Pod", "/metadata/labels/pod-template-generation", "is a leftover of extensions/v1beta1"),
    (
        "DaemonSet",
        "/metadata/annotations/deprecated.daemonset.template.generation",
        "is a leftover of extensions/v1beta1",
    ),
    ("PersistentVolumeClaim", "/metadata/finalizers", "claims in use are not protected"),
    ("PersistentVolumeClaim", "/metadata/annotations", "claims are bound at once"),
    ("PersistentVolumeClaim", "/status", "claims are bound at once"),
    (
        "ControllerRevision",
        "/metadata/annotations/deprecated.daemonset.template.generation",
        "is a leftover of extensions/v1beta1",
    ),
    ("ControllerRevision", "/metadata/labels", "hold the hash of the template"),
    ("ControllerRevision", "/data", "is the template as the server has filled it in"),
    ("Namespace", "/metadata/labels/kubernetes.io~1metadata.name", "is not written"),
    ("Namespace", "/status/conditions", "are written for people who wait for a deletion"),
];

/// Reasons of Events that are not compared, and why.
pub const UNSAID: &[(&str, &str)] = &[
    ("FailedScheduling", "its words hang on the moment"),
    ("TaintManagerEviction", "names no uid, so nobody knows which object of that name it is about"),
    ("RegisteredNode", "is said within five seconds, when a short scenario is over"),
    ("RemovingNode", "the same"),
    ("MultiplePodDisruptionBudgets", "names one of the budgets by chance, and is not said by the engine"),
];

/// The component that writes no Events in a recording, because KWOK replaces it.
const KUBELET: &str = "kubelet";

/// Scenarios that are not compared by state: tests of their own compare what these are about.
const NOT_OF_STATES: [&str; 5] = ["job", "placement", "placement-zones", "preemption", "unschedulable"];

/// The scenarios that are compared by state, by name.
pub fn scenarios() -> Result<Vec<Scenario>, ScenarioError> {
    let mut all = Scenario::all()?;
    all.retain(|scenario| !NOT_OF_STATES.contains(&scenario.name.as_str()));
    Ok(all)
}

/// Has the real control plane played it? One that is new is played by the engine alone until somebody records it.
pub fn is_recorded(scenario: &Scenario) -> bool {
    fixture::path_of(&scenario.name).exists()
}

/// Is this kind compared at all?
pub fn is_compared(kind: &Gvk) -> bool {
    COMPARED.contains(&kind.kind.as_str())
}

/// Every difference between what was recorded and what the engine did, one sentence each.
pub fn differences(scenario: &Scenario, recorded: &Run<'_>, played: &Run<'_>) -> Vec<String> {
    let (mut real, mut ours) = (bags(scenario, recorded.objects), bags(scenario, played.objects));
    // What was there before the first step and nobody touched tells nothing.
    let is_untouched =
        |name: &str| ["Namespace/default", "Namespace/kube-"].iter().any(|known| name.starts_with(known));
    real.retain(|name, _| !is_untouched(name));
    ours.retain(|name, _| !is_untouched(name));
    let empty = Vec::new();
    let names = real.keys().chain(ours.keys().filter(|name| !real.contains_key(*name)));
    let of_states =
        names.flat_map(|name| of_bag(name, real.get(name).unwrap_or(&empty), ours.get(name).unwrap_or(&empty)));
    of_states.chain(of_times(scenario, recorded, played)).collect()
}

/// Every count that turns too soon or too late, and every owner whose pods come or go in another order.
fn of_times(scenario: &Scenario, recorded: &Run<'_>, played: &Run<'_>) -> Vec<String> {
    let is_left_out = |history: &History, field: &str| {
        scenario.incomparable.iter().any(|exception| exception.of == history.kind && exception.field == field)
    };
    let ours: BTreeMap<&str, &History> = played.objects.iter().map(|history| (&*history.name, history)).collect();
    let timed = recorded.objects.iter().filter(|history| !is_left_out(history, "/times"));
    let late = timed.filter_map(|real| Some((real, *ours.get(&*real.name)?))).flat_map(|(real, ours)| {
        let late = counts::late((recorded, real), (played, ours));
        late.into_iter().map(move |late| format!("{}: {late}", real.name))
    });
    let order = order::differences(recorded.objects, played.objects, |owner| !is_left_out(owner, "/order"));
    late.chain(order).collect()
}

/// What is compared of the objects of each name; pods of one owner share a name.
fn bags(scenario: &Scenario, histories: &[History]) -> BTreeMap<String, Vec<Value>> {
    let mut bags: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let watched =
        histories.iter().filter(|history| is_compared(&history.kind) && scenario.watch.contains(&history.kind));
    let listens = scenario.watch.iter().any(|kind| kind.kind == "Event");
    let skips_deleted = |history: &History| {
        let mut own = scenario.incomparable.iter().filter(|exception| exception.of == history.kind);
        own.any(|exception| exception.field == "/deleted")
    };
    for history in watched.filter(|history| !(history.deleted && skips_deleted(history))) {
        let mut outcome = outcome(history, &scenario.incomparable);
        if !listens {
            remove(&mut outcome, &["events"]);
        }
        bags.entry(star_pod_ordinals(&history.name)).or_default().push(outcome);
    }
    bags
}

fn outcome(history: &History, incomparable: &[Incomparable]) -> Value {
    let mut state = without_pod_ordinals(history.last_state());
    let own = incomparable.iter().filter(|exception| exception.of == history.kind).map(|exception| &*exception.field);
    let general = LEFT_OUT.iter().filter(|(kind, ..)| *kind == "*" || *kind == history.kind.kind.as_str());
    for field in own.clone().chain(general.map(|(_, field, _)| *field)) {
        remove(&mut state, &field.split('/').skip(1).collect::<Vec<_>>());
    }
    if history.deleted && history.kind.kind == "Pod" {
        // A pod that goes without grace has one more in the last moment of a real one only.
        remove(&mut state, &["metadata", "generation"]);
    }
    if let Some(conditions) = state.pointer_mut("/status/conditions").and_then(Value::as_array_mut) {
        conditions.sort_by_key(|condition| condition["type"].to_string());
    }
    let spec = state.as_object_mut().and_then(|state| state.remove("spec")).unwrap_or_default();
    let mut outcome = json!({
        "deleted": history.deleted, "counts": counts::over_time(history), "events": events(history), "spec": spec,
        "state": without_empty(&state),
    });
    for field in own.filter(|field| field.starts_with("/counts") || *field == "/events") {
        remove(&mut outcome, &field.split('/').skip(1).collect::<Vec<_>>());
    }
    outcome
}

/// The Events of an object, each once.
fn events(history: &History) -> Value {
    let is_compared =
        |event: &&EventLine| !UNSAID.iter().any(|(reason, _)| *reason == event.reason) && event.from != KUBELET;
    let said = history.events.iter().filter(is_compared).map(|event| {
        // What a client gathers of many Events that are alike is said no differently.
        let message = star_pod_ordinals(event.message.trim_start_matches("(combined from similar events): "));
        // Which node a pod got is compared in its spec.
        let is_placement = event.reason == "Scheduled";
        let message = message.rsplit_once(" to ").filter(|_| is_placement).map_or(&*message, |(before, _)| before);
        json!(format!("{} {} from {}: {message}", event.r#type, event.reason, event.from))
    });
    let mut said: Vec<Value> = said.collect();
    said.sort_by_key(Value::to_string);
    said.dedup();
    said.into()
}

/// `null`, `{}`, `[]` and what holds nothing else say the same as nothing.
fn without_empty(value: &Value) -> Value {
    let says_nothing = |value: &Value| match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    };
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().map(|(key, value)| (key.clone(), without_empty(value)));
            Value::Object(kept.filter(|(_, value)| !says_nothing(value)).collect())
        }
        Value::Array(list) => list.iter().map(without_empty).collect(),
        plain => plain.clone(),
    }
}

fn of_bag(name: &str, real: &[Value], ours: &[Value]) -> Vec<String> {
    let mut unmatched: Vec<&Value> = real.iter().collect();
    let mut alone = Vec::new();
    for one in ours {
        match unmatched.iter().position(|other| difference(one, other).is_none()) {
            Some(index) => drop(unmatched.swap_remove(index)),
            None => alone.push(one),
        }
    }
    let pairs = alone.len().min(unmatched.len());
    let differ = (0..pairs).filter_map(|i| Some(format!("{name}: {}", difference(alone[i], unmatched[i])?)));
    let too_many = alone[pairs..].iter().map(|_| format!("{name} is not in the recording"));
    let missing = unmatched[pairs..].iter().map(|_| format!("{name} was recorded and did not come"));
    differ.chain(too_many).chain(missing).collect()
}

fn difference(ours: &Value, real: &Value) -> Option<String> {
    let turned = counts::differences(&ours["counts"], &real["counts"]);
    if !turned.is_empty() {
        return Some(turned.join("; "));
    }
    for part in ["deleted", "events", "state"] {
        if let Some(at) = unequal(&ours[part], &real[part], part) {
            return Some(at);
        }
    }
    said_otherwise(&without_empty(&ours["spec"]), &real["spec"], "spec")
}

/// Where two values differ, if they do.
fn unequal(ours: &Value, real: &Value, at: &str) -> Option<String> {
    match (ours, real) {
        (Value::Object(ours), Value::Object(real)) => {
            let keys = ours.keys().chain(real.keys().filter(|key| !ours.contains_key(*key)));
            let null = &Value::Null;
            let field = |of: &Map<String, Value>, key: &str| of.get(key).unwrap_or(null).clone();
            keys.into_iter().find_map(|key| unequal(&field(ours, key), &field(real, key), &format!("{at}/{key}")))
        }
        (Value::Array(ours), Value::Array(real)) if ours.len() == real.len() => {
            let pairs = ours.iter().zip(real).enumerate();
            pairs.into_iter().find_map(|(i, (ours, real))| unequal(ours, real, &format!("{at}/{i}")))
        }
        _ if ours == real => None,
        _ => Some(format!("{at} is {ours} and was recorded as {real}")),
    }
}

/// Where ours says something that the real one does not say so.
fn said_otherwise(ours: &Value, real: &Value, at: &str) -> Option<String> {
    match (ours, real) {
        (Value::Object(ours), Value::Object(real)) => ours.iter().find_map(|(key, value)| {
            let other = real.get(key).unwrap_or(&Value::Null);
            said_otherwise(value, other, &format!("{at}/{key}"))
        }),
        (Value::Array(ours), Value::Array(real)) if ours.len() == real.len() => {
            let pairs = ours.iter().zip(real).enumerate();
            pairs.into_iter().find_map(|(i, (ours, real))| said_otherwise(ours, real, &format!("{at}/{i}")))
        }
        _ if ours == real => None,
        _ => Some(format!("{at} is {ours} and was recorded as {real}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(recorded: &[History], played: &[History]) -> Vec<String> {
        differences(&scenario(), &Run { objects: recorded, steps: &[] }, &Run { objects: played, steps: &[] })
    }

    fn scenario() -> Scenario {
        let yaml = "{name: x, about: y, watch: [v1.Pod, apps/v1.ReplicaSet], steps: []}";
        Scenario::from_yaml("x", yaml).unwrap()
    }

    fn history(kind: &str, name: &str, states: &[Value]) -> History {
        let kind = kind.parse().unwrap();
        History {
            name: name.into(),
            kind,
            states: states.to_vec(),
            moments: Vec::new(),
            deleted: false,
            end: None,
            events: Vec::new(),
        }
    }

    #[test]
    fn a_different_status_condition_or_count_in_between_is_told_with_its_place() {
        let set = |counts: &[i64]| {
            let states: Vec<_> = counts.iter().map(|count| json!({"status": {"availableReplicas": count}})).collect();
            [history("apps/v1.ReplicaSet", "d/ReplicaSet/a", &states)]
        };
        assert_eq!(told(&set(&[0, 3, 1]), &set(&[0, 2, 3, 2, 1])), Vec::<String>::new());
        let found = told(&set(&[0, 3, 1]), &set(&[0, 4, 1]));
        assert_eq!(found, ["d/ReplicaSet/a: counts/availableReplicas is [0,4,1] and was recorded as [0,3,1]"]);
        let found = told(&set(&[3, 1, 2]), &set(&[3, 2]));
        assert_eq!(found, ["d/ReplicaSet/a: counts/availableReplicas is [3,2] and was recorded as [3,1,2]"]);
    }

    #[test]
    fn a_spec_may_have_defaults_that_the_engine_leaves_out_but_not_other_values() {
        let pod = |spec: Value| [history("v1.Pod", "d/Pod/a", &[json!({"spec": spec})])];
        let real = pod(json!({"nodeName": "n", "dnsPolicy": "ClusterFirst"}));
        assert!(told(&real, &pod(json!({"nodeName": "n"}))).is_empty());
        let found = told(&real, &pod(json!({"nodeName": "m"})));
        assert_eq!(found, [r#"d/Pod/a: spec/nodeName is "m" and was recorded as "n""#]);
    }

    #[test]
    fn pods_of_one_owner_are_a_bag_and_one_too_many_or_too_few_is_told() {
        let pod = |number: u32, phase: &str| {
            history("v1.Pod", &format!("d/ReplicaSet/a/Pod#{number}"), &[json!({"status": {"phase": phase}})])
        };
        let real = [pod(1, "Running"), pod(2, "Pending")];
        assert!(told(&real, &[pod(1, "Pending"), pod(2, "Running")]).is_empty());
        let found = told(&real, &[pod(1, "Pending")]);
        assert_eq!(found, ["d/ReplicaSet/a/Pod#* was recorded and did not come"]);
    }
}

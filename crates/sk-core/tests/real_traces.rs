//! The hashes inside traces that SimKube 2 recorded come out again here.
//!
//! The traces are not part of the repository. Where their folder is absent this says so and passes.
#![expect(clippy::disallowed_methods, reason = "the test reads files; the crate does not")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};
use sk_core::StableHash;

/// The parts of a v2 trace that hold hashes, and the objects they are of.
#[derive(Deserialize)]
struct Trace {
    events: Vec<Event>,
    index: BTreeMap<String, BTreeMap<String, u64>>,
    pod_lifecycles: BTreeMap<(String, String), BTreeMap<u64, Value>>,
}

#[derive(Deserialize)]
struct Event {
    applied_objs: Vec<Value>,
}

fn read(name: &str) -> Option<Trace> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces").join(name);
    let Ok(bytes) = std::fs::read(&path) else {
        eprintln!("{name} is absent from ../shared/traces: nothing was compared");
        return None;
    };
    Some(rmp_serde::from_slice(&bytes).expect("the trace is a v2 one"))
}

fn applied(trace: &Trace) -> impl Iterator<Item = &Value> {
    trace.events.iter().flat_map(|event| &event.applied_objs)
}

fn key(object: &Value) -> String {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    format!("{}/{}", text("namespace"), text("name"))
}

#[test]
fn the_cron_jobs_index_hash_is_that_of_its_spec() {
    let Some(trace) = read("cronjob.sktrace") else { return };
    let job = applied(&trace).next().unwrap();
    assert_eq!(StableHash::of(&job["spec"]).get(), trace.index["batch/v1.CronJob"][&key(job)]);
}

#[test]
fn the_cron_jobs_pod_hash_is_that_of_its_template_once_admitted() {
    let Some(trace) = read("cronjob.sktrace") else { return };
    let job = applied(&trace).next().unwrap();
    let mut spec = job.pointer("/spec/jobTemplate/spec/template/spec").unwrap().clone();
    let tolerate =
        |key: &str| json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300});
    spec["enableServiceLinks"] = json!(true);
    spec["preemptionPolicy"] = json!("PreemptLowerPriority");
    spec["priority"] = json!(0);
    spec["tolerations"] = json!([tolerate("node.kubernetes.io/not-ready"), tolerate("node.kubernetes.io/unreachable")]);
    let lives = &trace.pod_lifecycles[&("batch/v1.CronJob".to_owned(), key(job))];
    assert_eq!(lives.keys().copied().collect::<Vec<_>>(), [StableHash::of_pod_spec(&spec).get()]);
}

#[test]
fn every_bare_pod_in_the_trace_hashes_to_the_key_of_its_life() {
    let Some(trace) = read("bare-pods.sktrace") else { return };
    let mut compared = BTreeSet::new();
    for pod in applied(&trace) {
        let Some(lives) = trace.pod_lifecycles.get(&("v1.Pod".to_owned(), key(pod))) else { continue };
        assert!(lives.contains_key(&StableHash::of_pod_spec(&pod["spec"]).get()), "{}", key(pod));
        compared.insert(key(pod));
    }
    assert!(!compared.is_empty(), "the trace holds pods with lives");
    eprintln!("{} bare pods compared", compared.len());
}

//! The hashes inside v2 traces come out again here.
//!
//! Two traces are our own and always there; their hashes were made by another program (`make.py` beside them). Those that
//! SimKube 2 recorded are not part of the repository; where they are absent, this says so.
#![expect(clippy::disallowed_methods, reason = "the test reads files; the crate does not")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
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

/// Our own trace, and the recorded one of that kind if it is there.
fn read(ours: &str, recorded: &str) -> Vec<Trace> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut traces = vec![std::fs::read(root.join("../sk-store/tests/traces").join(ours)).expect("it is committed")];
    match std::fs::read(root.join("../../../shared/traces").join(recorded)) {
        Ok(bytes) => traces.push(bytes),
        Err(_) => {
            // Not `eprintln!`, which the harness keeps to itself when a test passes.
            let _ = writeln!(std::io::stderr(), "note: {recorded} is not beside the repository: only {ours} was read");
        }
    }
    traces.iter().map(|bytes| rmp_serde::from_slice(bytes).expect("the trace is a v2 one")).collect()
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
    for trace in read("cron-job.sktrace", "cronjob.sktrace") {
        let job = applied(&trace).last().expect("a CronJob is applied");
        assert_eq!(StableHash::of(&job["spec"]).get(), trace.index["batch/v1.CronJob"][&key(job)]);
    }
}

#[test]
fn the_cron_jobs_pod_hash_is_that_of_its_template_once_admitted() {
    for trace in read("cron-job.sktrace", "cronjob.sktrace") {
        let job = applied(&trace).next().expect("a CronJob is applied");
        let spec = job.pointer("/spec/jobTemplate/spec/template/spec").expect("it has a template");
        let lives = &trace.pod_lifecycles[&("batch/v1.CronJob".to_owned(), key(job))];
        assert_eq!(lives.keys().copied().collect::<Vec<_>>(), [StableHash::of_pod_spec(&admitted(spec)).get()]);
    }
}

/// What admission adds to a pod's spec.
fn admitted(spec: &Value) -> Value {
    let mut spec = spec.clone();
    let tolerate =
        |key: &str| json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300});
    spec["enableServiceLinks"] = json!(true);
    spec["preemptionPolicy"] = json!("PreemptLowerPriority");
    spec["priority"] = json!(0);
    spec["tolerations"] = json!([tolerate("node.kubernetes.io/not-ready"), tolerate("node.kubernetes.io/unreachable")]);
    spec
}

#[test]
fn every_bare_pod_in_the_trace_hashes_to_the_key_of_its_life() {
    for trace in read("bare-pods.sktrace", "bare-pods.sktrace") {
        let mut compared = BTreeSet::new();
        for pod in applied(&trace) {
            let Some(lives) = trace.pod_lifecycles.get(&("v1.Pod".to_owned(), key(pod))) else { continue };
            assert!(lives.contains_key(&StableHash::of_pod_spec(&pod["spec"]).get()), "{}", key(pod));
            compared.insert(key(pod));
        }
        assert!(!compared.is_empty(), "the trace holds pods with lives");
    }
}

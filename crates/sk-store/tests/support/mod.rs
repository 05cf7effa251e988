//! What several tests need: small objects, v2 traces made by an encoder that is not ours, real traces if there are any.

#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Value, json};
use sk_store::trace::{Change, Trace, from_bytes};

/// A Deployment with so many replicas.
pub(crate) fn deployment(name: &str, replicas: u32) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"annotations": {}, "labels": {"app": name}, "name": name, "namespace": "default"},
        "spec": {"replicas": replicas}})
}

/// Only an object's names, as newer v2 traces have them in `deleted_objs`.
pub(crate) fn names(name: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"}})
}

/// A v2 event.
pub(crate) fn event(ts: i64, applied: &[Value], deleted: &[Value]) -> Value {
    json!({"ts": ts, "applied_objs": applied, "deleted_objs": deleted})
}

/// A v2 trace with these events and no lives, encoded by rmp-serde.
pub(crate) fn v2(events: &[Value]) -> Vec<u8> {
    #[derive(Serialize)]
    struct V2<'a> {
        version: u32,
        config: Value,
        events: &'a [Value],
        index: Value,
        pod_lifecycles: Value,
    }
    let config = json!({"trackedObjects": {"apps/v1.Deployment": {"podSpecTemplatePaths": null}}});
    rmp_serde::to_vec_named(&V2 { version: 2, config, events, index: json!({}), pod_lifecycles: json!({}) }).unwrap()
}

/// Opens bytes that must be a trace.
pub(crate) fn open(bytes: impl Into<bytes::Bytes>) -> Trace {
    from_bytes("test", bytes).unwrap()
}

/// What happens in a trace, a line each; marks are left out.
pub(crate) fn story(trace: &Trace) -> Vec<String> {
    let records = trace.records().unwrap().map(Result::unwrap);
    records.filter(|record| !matches!(record.change, Change::Mark(_))).map(|record| record.to_string()).collect()
}

/// Small traces of our own: see the README.md there.
pub(crate) const OURS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/traces");

/// v2 traces: our own, which are always there, and those that SimKube 2 recorded, if they lie beside the repository; they
/// are not ours to commit.
pub(crate) fn v2_traces() -> Vec<PathBuf> {
    let ours = ["cron-job.sktrace", "bare-pods.sktrace"].map(|name| Path::new(OURS).join(name));
    ours.into_iter().chain(recorded_traces()).collect()
}

fn recorded_traces() -> Vec<PathBuf> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/traces");
    let Ok(entries) = std::fs::read_dir(folder) else {
        // Not `eprintln!`, which the harness keeps to itself when a test passes.
        let _ = writeln!(std::io::stderr(), "note: no recorded traces in {folder}: only our own were read");
        return Vec::new();
    };
    entries.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|e| e == "sktrace")).collect()
}

//! What several tests need: generated traces, traces made by hand, real ones if there are any.

#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sk_core::SimTime;
use sk_store::trace::{
    Change, Deletion, Format, Header, Mark, Object, Record, Row, Trace, TracerConfig, Writer, from_bytes,
};
use sk_trace::generate::{GenerateSpec, generate};

/// When traces made by hand begin.
pub(crate) const START: SimTime = SimTime::from_secs(1_767_571_200);

/// A trace made by hand.
pub(crate) struct Story {
    header: Header,
    records: Vec<Record>,
    rows: Vec<Row>,
}

/// A trace that tracks these kinds, with these settings.
pub(crate) fn story(tracked: &Value) -> Story {
    let config = TracerConfig::from_value(json!({ "trackedObjects": tracked })).unwrap();
    Story { header: Header { config, origin: None }, records: Vec::new(), rows: Vec::new() }
}

impl Story {
    fn at(mut self, secs: i64, change: Change) -> Self {
        let at = SimTime::from_secs(START.as_secs() + secs);
        self.records.push(Record { at, seq: self.records.len() as u64, change });
        self
    }

    pub(crate) fn mark(self, secs: i64) -> Self {
        self.at(secs, Change::Mark(Mark::Moment))
    }

    pub(crate) fn apply(self, secs: i64, object: Value) -> Self {
        self.at(secs, Change::Apply(Object::new(object).unwrap()))
    }

    pub(crate) fn delete(self, secs: i64, object: Value) -> Self {
        self.at(secs, Change::Delete(Deletion::from_value(object).unwrap()))
    }

    pub(crate) fn row(mut self, row: Row) -> Self {
        self.rows.push(row);
        self
    }

    pub(crate) fn trace(self) -> Trace {
        let mut writer = Writer::new(Format::JsonLines, Vec::new(), &self.header).unwrap();
        self.records.iter().for_each(|record| writer.record(record).unwrap());
        self.rows.iter().for_each(|row| writer.row(row).unwrap());
        open(writer.finish().unwrap().0)
    }
}

/// A Deployment with so many replicas.
pub(crate) fn deployment(name: &str, replicas: u32) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"annotations": {}, "labels": {"app": name}, "name": name, "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [
                {"image": "nginx:1", "name": "main", "resources": {"requests": {"cpu": "100m"}}}]}}}})
}

/// Only an object's names.
pub(crate) fn names(object: &Value) -> Value {
    let metadata = &object["metadata"];
    json!({"apiVersion": object["apiVersion"], "kind": object["kind"],
        "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]}})
}

/// Opens bytes that must be a trace.
pub(crate) fn open(bytes: Vec<u8>) -> Trace {
    from_bytes("test", bytes).unwrap()
}

/// The bytes of a generated trace.
pub(crate) fn generated(spec: &GenerateSpec, format: Format) -> Vec<u8> {
    generate(spec, format, Vec::new()).unwrap().out
}

/// What happens in a trace, a line each; marks are left out.
pub(crate) fn told(trace: &Trace) -> Vec<String> {
    let records = trace.records().unwrap().map(Result::unwrap);
    records.filter(|record| !matches!(record.change, Change::Mark(_))).map(|record| record.to_string()).collect()
}

/// Small traces of our own: see the README.md there.
pub(crate) const OURS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../sk-store/tests/traces");

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

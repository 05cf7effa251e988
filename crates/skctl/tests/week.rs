//! A generated week with a zone loss: the longest that people ask, on a small cluster, with every pod simulated.

mod support;

use serde_json::Value;
use support::{folder, skctl, write};
use tempfile::TempDir;

const WORKLOAD: &str = "seed: 3
start: 2026-11-09T00:00:00Z
duration: 7d
namespaces: 3
services: {count: 3, scaleEvery: 2h}
batch: {jobsPerHour: 1, burstsPerDay: 1, jobsPerBurst: 2}
cron: {count: 1}
";

const SCENARIO: &str = "apiVersion: simkube.io/v1
kind: Scenario
name: week
begin: {placement: schedule}
cluster:
  groups:
    a: &group {min: 1, max: 40, cpu: 8, memory: 32Gi, price: 0.4, ready: {p50: 55s, p99: 140s}, labels: {topology.kubernetes.io/zone: zone-a}}
    b: {<<: *group, labels: {topology.kubernetes.io/zone: zone-b}}
timeline:
  - {at: +3d, loseZone: {zone: zone-a, for: 30m}}
  - {every: 1d, reclaim: {group: b, share: 0.2, notice: 2m}}
assert:
  - unschedulable.pods == 0
";

fn json(dir: &TempDir, path: &str) -> Value {
    let text = std::fs::read_to_string(dir.path().join(path)).expect("the run left it");
    serde_json::from_str(&text).expect("it is JSON")
}

#[test]
fn a_week_with_a_lost_zone_runs_to_its_end_and_every_pod_is_simulated() {
    let dir = folder();
    write(&dir, "workload.yaml", WORKLOAD);
    write(&dir, "week.yaml", SCENARIO);
    skctl(&dir).args(["trace", "generate", "-f", "workload.yaml", "-O", "week.sktrace", "-q"]).assert().success();
    let run = |out: &str| {
        let args = ["run", "week.sktrace", "-f", "week.yaml", "-O", out, "-q"];
        skctl(&dir).args(args).assert().success();
        json(&dir, &format!("{out}/run.json"))
    };
    let meta = run("out");
    assert_eq!(meta["missing"], Value::Null, "every pod is simulated");
    let happened = meta["timeline"].as_array().expect("it says what happened");
    let of = |word: &'static str| {
        happened.iter().filter(move |entry| entry["what"].as_str().is_some_and(|what| what.starts_with(word)))
    };
    assert_eq!((of("loseZone").count(), of("reclaim").count()), (1, 6), "{happened:?}");
    let lost = of("loseZone").next().expect("one");
    assert_eq!(
        (lost["at"].as_str(), lost["until"].as_str()),
        (Some("2026-11-12T00:00:00Z"), Some("2026-11-12T00:30:00Z"))
    );
    assert_eq!(json(&dir, "out/summary.json")["verdict"], "PASS");
    assert_eq!(run("again")["tables"], meta["tables"], "the same bytes twice");
}

//! Several runs of one command: variants, varied fields, repetitions, a run to compare with, manifests laid over a trace.

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;
use support::{folder, names, skctl, write};
use tempfile::TempDir;

/// A cluster of which nothing is claimed.
const PLAIN: &str = include_str!("support/pack.yaml");
/// The same with a variant and assertions.
const PACK: &str = concat!(
    include_str!("support/pack.yaml"),
    "variants:
  as-is: {}
  tight: {cluster.groups.small.max: 4}
assert:
  - nodes.max <= 10
  - {that: ratio.nodes.max < 0.9, for: [tight]}
  - {that: nodes.max <= baseline.nodes.max}
"
);

/// Every file below a folder with its content.
fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for name in names(dir) {
        let path = dir.join(&name);
        if path.is_dir() {
            all.extend(contents(&path).into_iter().map(|(inner, bytes)| (format!("{name}/{inner}"), bytes)));
        } else {
            all.insert(name, std::fs::read(&path).expect("a file of a run can be read"));
        }
    }
    all
}

fn pack() -> TempDir {
    let dir = folder();
    write(&dir, "pack.yaml", PACK);
    write(&dir, "plain.yaml", PLAIN);
    dir
}

fn json(dir: &TempDir, args: &[&str]) -> Value {
    let out = skctl(dir).args(args).args(["-o", "json"]).output().expect("skctl runs");
    serde_json::from_slice(&out.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&out.stderr)))
}

#[test]
fn the_variants_of_a_scenario_are_run_side_by_side_and_compared_with_the_first() {
    let dir = pack();
    let run = skctl(&dir).args(["run", "example:nginx", "-f", "pack.yaml", "-O", "out"]).assert();
    run.success().stdout(contains("RUN    VERDICT").and(contains("as-is  PASS")).and(contains("tight  PASS")));
    assert_eq!(names(&dir.path().join("out")), ["as-is", "tight"]);
    // A report of the run alone judges it by the figures that it was compared with.
    skctl(&dir).args(["report", "out/tight"]).assert().success().stdout(contains("PASS   3 of 3 assertions"));
    let again = ["run", "example:nginx", "-f", "out/tight/scenario.yaml", "--baseline", "out/as-is", "-O", "again"];
    skctl(&dir).args(again).assert().success();
    let again = contents(&dir.path().join("again"));
    assert_eq!(again["nodes.parquet"], contents(&dir.path().join("out/tight"))["nodes.parquet"], "the same question");
    let alone = skctl(&dir).args(["run", "example:nginx", "-f", "out/tight/scenario.yaml"]).assert();
    alone.code(2).stderr(contains("--baseline RUN"));
}

#[test]
fn the_list_shows_variants_by_names_that_other_commands_take() {
    let dir = pack();
    skctl(&dir).args(["run", "example:nginx", "-f", "pack.yaml", "-q", "-O", "runs/pack"]).assert().success();
    let out = skctl(&dir).arg("list").assert().success();
    let text = String::from_utf8_lossy(&out.get_output().stdout).into_owned();
    let runs: Vec<&str> = text.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(runs.len(), 2, "{text}");
    for run in ["pack/as-is", "pack/tight"] {
        assert!(runs.contains(&run), "{text}");
    }
    skctl(&dir).args(["compare", "pack/as-is", "pack/tight"]).assert().success().stdout(contains("tight vs as-is"));
}

#[test]
fn an_assertion_that_fails_in_one_variant_fails_the_command_and_names_the_variant() {
    let dir = pack();
    let args = ["run", "example:nginx", "-f", "pack.yaml", "--assert", "nodes.max >= 5", "--junit", "all.xml"];
    let run = skctl(&dir).args(args).assert().code(1);
    run.stdout(contains("as-is  PASS").and(contains("FAIL  tight: nodes.max >= 5   (nodes.max = 4)")));
    let junit = std::fs::read_to_string(dir.path().join("all.xml")).unwrap();
    assert!(junit.starts_with("<?xml") && junit.contains("<testsuites tests=\"7\" failures=\"1\""), "{junit}");
    assert_eq!(junit.matches("<testsuite ").count(), 2);
}

#[test]
fn results_do_not_depend_on_how_many_run_at_the_same_time() {
    let record = |jobs: &str| {
        let dir = pack();
        let args = ["run", "example:nginx", "-f", "pack.yaml", "-N", "2", "-O", "out", "--jobs", jobs];
        let (zone, locale) = if jobs == "1" { ("America/Lima", "C") } else { ("Asia/Tokyo", "tr_TR.UTF-8") };
        skctl(&dir).args(args).env("TZ", zone).env("LC_ALL", locale).assert().success();
        contents(&dir.path().join("out"))
    };
    let one_by_one = record("1");
    assert!(one_by_one.keys().any(|name| name == "tight.2/pods.parquet"), "{:?}", one_by_one.keys());
    assert_eq!(one_by_one, record("4"));
}

#[test]
fn varied_fields_multiply_and_the_same_repetition_has_the_same_seed_in_all() {
    let dir = folder();
    let args = ["run", "example:nginx", "--seed", "7", "-N", "2"];
    let vary = ["--vary", "cluster.groups.small.max=10,4", "--vary", "autoscaler.scale-down-unneeded-time=10m,2m"];
    let all = json(&dir, &[&args[..], &vary[..]].concat());
    let runs = all["runs"].as_array().unwrap();
    let told: Vec<_> = runs.iter().map(|run| (run["label"].as_str().unwrap(), run["seed"].as_u64().unwrap())).collect();
    assert_eq!(told.len(), 8);
    assert_eq!(told[0], ("max=10 scale-down-unneeded-time=10m #1", 7));
    assert_eq!(told[7], ("max=4 scale-down-unneeded-time=2m #2", 8));
    assert_eq!(runs[0]["summary"]["nodes"]["max"], 10);
    assert_eq!(runs[7]["summary"]["nodes"]["max"], 4);
    assert_eq!(names(&dir.path().join("runs")).len(), 8);
}

#[test]
fn repetitions_are_judged_together_where_an_assertion_says_so() {
    let dir = folder();
    let spread = "apiVersion: simkube.io/v1
kind: Scenario
cluster: {groups: {small: {min: 1, max: 10, cpu: 1, memory: 4Gi}}}
timing: {imagePullJitter: 5m}
repetitions: 3
assert:
  - {that: start_latency.max > duration(\"1s\"), for: mean}
  - {that: start_latency.max < duration(\"1s\"), for: any}
";
    write(&dir, "spread.yaml", spread);
    let run = skctl(&dir).args(["run", "example:nginx", "-f", "spread.yaml"]).assert().code(1);
    let told = contains("PASS  for: mean: start_latency.max >").and(contains("FAIL  for: any: start_latency.max <"));
    run.stdout(told.and(contains("#3  ")));
    let latencies: Vec<Value> = json(&dir, &["run", "example:nginx", "-f", "spread.yaml"])["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["summary"]["start_latency"]["mean"].clone())
        .collect();
    assert_ne!(latencies[0], latencies[1], "each repetition has a seed of its own");
}

#[test]
fn a_run_can_be_compared_with_one_that_was_made_before() {
    let dir = pack();
    skctl(&dir).args(["run", "example:nginx", "-f", "plain.yaml", "-O", "runs/main"]).assert().success();
    let tight =
        ["run", "example:nginx", "-f", "plain.yaml", "--set", "cluster.groups.small.max=4", "--baseline", "main"];
    let held = ["--assert", "cost.total <= baseline.cost.total", "--assert", "ratio.nodes.max == 0.4"];
    skctl(&dir).args(tight).args(held).assert().success();
    let failed = skctl(&dir).args(tight).args(["--assert", "ratio.nodes.max >= 1.0"]).assert();
    failed.code(1).stdout(contains("(ratio.nodes.max = 0.4)"));
    let none = skctl(&dir).args(["run", "example:nginx", "--baseline", "nowhere"]).assert();
    none.code(2).stderr(contains("--baseline"));
}

#[test]
fn manifests_laid_over_a_trace_change_the_spec_and_keep_replicas_and_times() {
    let dir = pack();
    let rendered = "apiVersion: apps/v1
kind: Deployment
metadata: {name: nginx, namespace: default}
spec:
  replicas: 1
  selector: {matchLabels: {app: nginx}}
  template:
    metadata: {labels: {app: nginx}}
    spec: {containers: [{name: nginx, image: nginx, resources: {requests: {cpu: 100m}}}]}
";
    write(&dir, "rendered.yaml", rendered);
    skctl(&dir).args(["run", "example:nginx", "-f", "plain.yaml", "-O", "runs/main"]).assert().success();
    let overlay = [
        "run",
        "example:nginx",
        "-f",
        "plain.yaml",
        "--overlay",
        "rendered.yaml",
        "-O",
        "runs/slim",
        "--baseline",
        "main",
    ];
    let asserted = ["--assert", "pods.created == baseline.pods.created", "--assert", "nodes.max < 3"];
    skctl(&dir).args(overlay).args(asserted).assert().success();
    // The folder asks the same again, without the file that was laid over the trace.
    std::fs::remove_file(dir.path().join("rendered.yaml")).unwrap();
    let again = ["run", "example:nginx", "-f", "runs/slim/scenario.yaml", "--baseline", "main", "-O", "runs/again"];
    skctl(&dir).args(again).assert().success();
    let run_id = |run: &str| {
        let text = std::fs::read(dir.path().join("runs").join(run).join("run.json")).unwrap();
        serde_json::from_slice::<Value>(&text).unwrap()["run_id"].clone()
    };
    assert_eq!(run_id("slim"), run_id("again"));
    write(&dir, "elsewhere.yaml", rendered.replace("namespace: default", "namespace: prod"));
    let added = skctl(&dir)
        .args(["run", "example:nginx", "-f", "plain.yaml", "--overlay", "elsewhere.yaml", "-O", "more"])
        .assert();
    added.success();
    let told = String::from_utf8(contents(&dir.path().join("more"))["run.json"].clone()).unwrap();
    assert!(told.contains("added at the start: Deployment prod/nginx"), "{told}");
}

#[test]
fn a_program_in_the_scenario_changes_the_trace_on_the_way() {
    let dir = folder();
    let scenario = format!("{PLAIN}trace: {{transform: halve.jq}}\n");
    std::fs::create_dir(dir.path().join("sub")).unwrap();
    write(&dir, "sub/pack.yaml", scenario);
    write(&dir, "sub/halve.jq", "if .spec.replicas then .spec.replicas |= (. / 2 | floor) else . end");
    let run = |file: &str| json(&dir, &["run", "example:nginx", "-f", file, "-O", "out"]);
    assert_eq!(run("sub/pack.yaml")["nodes"]["max"], 5);
    std::fs::remove_file(dir.path().join("sub/halve.jq")).unwrap();
    assert_eq!(run("out/scenario.yaml")["nodes"]["max"], 5, "the program lies in the run's folder");
}

#[test]
fn a_dry_run_says_what_would_be_run_and_leaves_nothing() {
    let dir = pack();
    let run = skctl(&dir).args(["run", "example:nginx", "-f", "pack.yaml", "-N", "2", "--dry-run"]).assert();
    let told = contains("VALID  example:nginx").and(contains("would run  tight #2: 40m from "));
    run.success().stdout(told.and(contains("seed 2, into runs/pack-tight-")));
    assert!(!dir.path().join("runs").exists());
    let wrong = ["run", "example:nginx", "-f", "pack.yaml", "--dry-run", "--assert", "nodes.maxx < 3"];
    skctl(&dir).args(wrong).assert().code(2).stderr(contains("did you mean nodes.max?"));
}

#[test]
fn a_speed_lets_the_wall_clock_in() {
    let dir = folder();
    let began = Instant::now();
    skctl(&dir).args(["run", "example:nginx", "--speed", "1200", "-D", "20m"]).assert().success();
    assert!(began.elapsed() >= Duration::from_millis(950), "20 minutes at 1,200 times life take a second");
    skctl(&dir).args(["run", "example:nginx", "--speed", "0"]).assert().code(2).stderr(contains("must be from"));
}

#[cfg(unix)]
#[test]
fn ctrl_c_leaves_valid_records_marked_partial() {
    let dir = pack();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_skctl"));
    // Slow enough to be caught in the middle: 40 minutes at 40 times life are a minute.
    command.args(["run", "example:nginx", "-f", "plain.yaml", "-O", "out", "--speed", "40", "--jobs", "2"]);
    command.args(["--vary", "cluster.groups.small.max=8,4,2"]);
    let child = command.current_dir(dir.path()).stdout(std::process::Stdio::piped()).spawn().expect("skctl starts");
    std::thread::sleep(Duration::from_secs(6));
    let pid = rustix::process::Pid::from_child(&child);
    // Twice at once, as `timeout` sends it: that is one interruption and no reason to give everything up.
    for _ in 0..2 {
        rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it still runs");
        std::thread::sleep(Duration::from_millis(50));
    }
    let ended = child.wait_with_output().expect("it ends");
    assert_eq!(ended.status.code(), Some(130));
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(said.contains("not begun  max=2\n"), "{said}");
    assert_eq!(names(&dir.path().join("out")), ["max-4", "max-8"], "the third had not begun");
    for run in ["out/max-8", "out/max-4"] {
        let text = std::fs::read(dir.path().join(run).join("run.json")).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&text).unwrap()["partial"], true);
        skctl(&dir).args(["report", run]).assert().stdout(contains("PARTIAL"));
    }
}

#[test]
fn a_warmup_and_what_stands_at_the_start_are_in_no_figure() {
    let dir = pack();
    // The story's pods are made, and wait for nodes, in its first ten minutes.
    for part in [["--set", "begin.warmup=10m"], ["-s", "+10m"]] {
        let run = json(&dir, &["run", "example:nginx", part[0], part[1]]);
        for figure in ["/pods/created", "/pods/ran", "/pending/pods", "/pending/max", "/nodes/created"] {
            assert_eq!(run.pointer(figure).and_then(Value::as_i64), Some(0), "{part:?} {figure}");
        }
        for figure in ["/pending/longest", "/start_latency/max"] {
            assert_eq!(run.pointer(figure).and_then(Value::as_f64), Some(0.0), "{part:?} {figure}");
        }
        assert_eq!((&run["pods"]["running_max"], &run["nodes"]["max"]), (&Value::from(12), &Value::from(10)));
        let hours = run["node_hours"]["total"].as_f64().expect("a number");
        assert!(hours < 10.0 * 0.5, "half an hour of at most ten nodes: {hours}");
    }
}

#[test]
fn what_cannot_be_is_refused_before_anything_runs() {
    let dir = pack();
    let refused = |args: &[&str], words: &str| {
        skctl(&dir).args(["run", "example:nginx"]).args(args).assert().code(2).stderr(contains(words.to_owned()));
    };
    refused(&["--vary", "cluster.groups.small.max=3,x"], "--vary cluster.groups.small.max=x: ");
    refused(&["--vary", "seed=1,2", "--vary", "seed=3"], "--vary seed is given twice");
    refused(&["--junit", "nowhere/junit.xml"], "there is no folder nowhere");
    refused(&["-N", "0"], "from 1 to 1000");
    refused(&["--jobs", "0"], "runs nothing");
    refused(&["-f", "pack.yaml", "--open"], "--open is for one run");
    refused(&["--overlay", "nowhere.yaml"], "nowhere.yaml");
    refused(&["--cluster", "--vary", "seed=1,2"], "--vary is not for --cluster");
    refused(&["--cluster", "-f", "pack.yaml"], "variants is not for --cluster");
}

#[test]
fn a_scenario_for_a_trace_is_written_and_says_beforehand_what_will_not_fit() {
    let dir = folder();
    let out = skctl(&dir).args(["scenario", "init", "example:nginx"]).assert().success();
    let text = String::from_utf8(out.get_output().stdout.clone()).unwrap();
    assert!(text.contains("# price: 0.00") && text.contains("such as m7i.xlarge"), "{text}");
    write(&dir, "init.yaml", &text);
    skctl(&dir).args(["validate", "example:nginx", "-f", "init.yaml"]).assert().success();
    write(&dir, "tiny.yaml", text.replace("cpu: 4\n", "cpu: 100m\n"));
    let tiny = skctl(&dir).args(["validate", "example:nginx", "-f", "tiny.yaml"]).assert().code(1);
    tiny.stdout(contains("VALID  example:nginx").and(contains("fits nowhere  ")).and(contains("Insufficient cpu")));
    write(&dir, "bytes.yaml", text.replace("memory: 16Gi", "memory: 16"));
    let bytes = skctl(&dir).args(["validate", "example:nginx", "-f", "bytes.yaml"]).assert().code(2);
    bytes.stderr(contains("cluster.groups.general.memory: 16 bytes? write the unit, such as 16Gi"));
}

#[test]
fn nodes_of_a_file_stand_from_beginning_to_end() {
    let dir = folder();
    let node = |name: &str| {
        format!(
            "apiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{pool: a}}}}\nspec: {{taints: [{{key: node.kubernetes.io/not-ready, effect: NoSchedule}}]}}\nstatus: {{allocatable: {{cpu: '4', memory: 16Gi, pods: '110'}}}}\n---\n"
        )
    };
    write(&dir, "nodes.yaml", ["one", "two", "three"].map(node).concat());
    write(&dir, "fixed.yaml", "apiVersion: simkube.io/v1\nkind: Scenario\ncluster: {nodes: nodes.yaml}\n");
    let run = json(&dir, &["run", "example:nginx", "-f", "fixed.yaml", "-O", "out"]);
    assert_eq!((&run["nodes"]["min"], &run["nodes"]["max"]), (&3.into(), &3.into()));
    assert_eq!(run["unschedulable"]["pods"], 0);
    std::fs::remove_file(dir.path().join("nodes.yaml")).unwrap();
    let again = json(&dir, &["run", "example:nginx", "-f", "out/scenario.yaml", "-O", "again"]);
    assert_eq!(again["run_id"], run["run_id"]);
}

#[test]
fn a_namespace_that_the_trace_does_not_have_is_refused_before_anything_runs() {
    let dir = pack();
    let wrong = PACK.replace("- nodes.max <= 10", "- namespaces[\"defualt\"].evicted.pods == 0");
    write(&dir, "wrong.yaml", wrong);
    let out = skctl(&dir).args(["run", "example:nginx", "-f", "wrong.yaml"]).assert().code(2);
    out.stderr(contains("wrong.yaml:12:").and(contains("`defualt`")).and(contains("only in default")));
    assert!(!dir.path().join("runs").exists());
    let right = ["run", "example:nginx", "-f", "plain.yaml", "--assert", "namespaces[\"default\"].evicted.pods == 0"];
    skctl(&dir).args(right).assert().success();
}

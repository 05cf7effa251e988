//! Sweeps on this machine: a plan, its runs, a kill in the middle, and what cannot be.

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command as Process, Stdio};
use std::time::{Duration, Instant};

use predicates::prelude::PredicateBooleanExt as _;
use predicates::str::contains;
use serde_json::Value;
use support::{folder, names, skctl, write};
use tempfile::TempDir;

const PACK: &str = concat!(include_str!("support/pack.yaml"), "assert: [nodes.max <= 10]\n");

fn pack() -> TempDir {
    let dir = folder();
    write(&dir, "pack.yaml", PACK);
    dir
}

/// Plans two sizes of so many repetitions each.
fn plan(dir: &TempDir, repetitions: &str) {
    let vary = "cluster.groups.small.max=10,4";
    let args = ["sweep", "plan", "example:nginx", "-f", "pack.yaml", "--vary", vary, "-N", repetitions];
    skctl(dir).args(args).assert().success().stdout(contains("of 2 variants"));
}

fn lines(dir: &TempDir) -> Vec<Value> {
    let text = std::fs::read_to_string(dir.path().join("sweeps/pack/runs.jsonl")).expect("a plan has runs");
    text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

fn status(dir: &TempDir) -> Value {
    let out = skctl(dir).args(["sweep", "status", "sweeps/pack", "-o", "json"]).output().expect("skctl runs");
    serde_json::from_slice(&out.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&out.stderr)))
}

fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let read = |name: String| (name.clone(), std::fs::read(dir.join(name)).expect("a file of a run"));
    names(dir).into_iter().map(read).collect()
}

#[test]
fn a_planned_run_has_the_bytes_that_skctl_run_would_make() {
    let dir = pack();
    plan(&dir, "2");
    let planned = lines(&dir);
    let seeds: Vec<_> = planned.iter().map(|line| line["seed"].as_u64().expect("a seed")).collect();
    assert_eq!(seeds, [1, 2, 1, 2]);
    assert_eq!(status(&dir)["missing"], 4);
    skctl(&dir).args(["sweep", "run", "sweeps/pack", "--jobs", "2"]).assert().success().stdout(contains("4 of 4"));
    assert_eq!(status(&dir)["done"], 4);

    let vary = "cluster.groups.small.max=10,4";
    let args = ["run", "example:nginx", "-f", "pack.yaml", "--vary", vary, "-N", "2", "-O", "other"];
    skctl(&dir).args(args).assert().success();
    let of_run: Vec<_> =
        names(&dir.path().join("other")).iter().map(|name| contents(&dir.path().join("other").join(name))).collect();
    for line in &planned {
        let made = contents(&dir.path().join("runs").join(line["runId"].as_str().expect("a run id")));
        assert!(of_run.contains(&made), "{line} differs from what `skctl run` makes");
    }
    skctl(&dir).args(["sweep", "run", "sweeps/pack"]).assert().success().stdout(contains("0 of 0"));
}

#[test]
fn a_sweep_that_is_killed_goes_on_where_it_was() {
    let dir = pack();
    plan(&dir, "100");
    let mut sweep = Process::new(env!("CARGO_BIN_EXE_skctl"));
    sweep.args(["sweep", "run", "sweeps/pack", "--jobs", "2"]).current_dir(dir.path()).stdout(Stdio::null());
    let mut sweep = sweep.spawn().expect("skctl runs");
    let since = Instant::now();
    let done = || status(&dir)["done"].as_u64().expect("a number");
    while done() < 3 {
        assert!(since.elapsed() < Duration::from_secs(600), "three runs of forty minutes are made in ten");
        std::thread::sleep(Duration::from_millis(50));
    }
    sweep.kill().expect("it was running");
    sweep.wait().expect("it ends");
    let before = done();
    assert!(before < 200, "it was killed in the middle");
    let whole: Vec<_> = lines(&dir)
        .iter()
        .filter_map(|line| {
            dir.path().join("runs").join(line["runId"].as_str()?).join("run.json").metadata().ok()?.modified().ok()
        })
        .collect();
    skctl(&dir).args(["sweep", "run", "sweeps/pack"]).assert().success();
    assert_eq!(status(&dir)["done"], 200);
    let after: Vec<_> = names(&dir.path().join("runs")).into_iter().filter(|name| name.starts_with('.')).collect();
    assert!(after.is_empty(), "nothing half-made is left: {after:?}");
    let untouched = lines(&dir)
        .iter()
        .filter_map(|line| {
            dir.path().join("runs").join(line["runId"].as_str()?).join("run.json").metadata().ok()?.modified().ok()
        })
        .filter(|modified| whole.contains(modified))
        .count();
    assert_eq!(untouched as u64, before, "what was there was not made again");
}

/// A sweep of two fields, each combination twice.
#[test]
fn a_sweep_is_compared_as_a_whole_with_its_front_and_what_each_parameter_moved() {
    let dir = pack();
    let vary = ["--vary", "cluster.groups.small.max=10,4,2", "--vary", "autoscaler.scale-down-unneeded-time=2m,20m"];
    let plan = ["sweep", "plan", "example:nginx", "-f", "pack.yaml", "-N", "2"];
    skctl(&dir).args(plan).args(vary).assert().success().stdout(contains("12 runs of 6 variants"));
    skctl(&dir).args(["compare", "sweeps/pack"]).assert().code(2).stderr(contains("alone cannot be compared"));
    skctl(&dir).args(["sweep", "run", "sweeps/pack"]).assert().success();

    let out = skctl(&dir).args(["compare", "sweeps/pack", "-o", "json"]).output().expect("skctl runs");
    let told: Value = serde_json::from_slice(&out.stdout).expect("JSON");
    assert_eq!(told["columns"].as_array().expect("columns").len(), 6);
    let points = told["study"]["points"].as_array().expect("points");
    assert_eq!(points.len(), 6);
    let on_front: Vec<&Value> = points.iter().filter(|point| point["front"] == true).collect();
    assert!(
        !on_front.is_empty() && on_front.len() < 6,
        "some variants are worth a choice and some are not: {points:?}"
    );
    for beaten in points.iter().filter(|point| point["front"] == false) {
        let better = &points[beaten["beaten_by"].as_u64().expect("a column") as usize];
        for figure in ["cost.total", "pending.p99"] {
            assert!(better[figure].as_f64() <= beaten[figure].as_f64(), "{better} {beaten}");
        }
    }
    let parameters = told["study"]["parameters"].as_array().expect("parameters");
    let paths: Vec<&str> = parameters.iter().filter_map(|one| one["paths"][0].as_str()).collect();
    assert_eq!(paths, ["autoscaler.scale-down-unneeded-time", "cluster.groups.small.max"]);
    let moved = |place: usize| -> Vec<&str> {
        let effects = parameters[place]["effects"].as_array().expect("effects");
        effects.iter().filter(|effect| effect["real"] == true).filter_map(|effect| effect["figure"].as_str()).collect()
    };
    assert!(moved(0).contains(&"cost.total"), "nodes that stay longer cost more: {parameters:?}");
    assert!(moved(1).contains(&"pending.longest"), "fewer nodes let pods wait longer: {parameters:?}");

    let table = skctl(&dir).args(["compare", "sweeps/pack"]).assert().success();
    table.stdout(contains("Pareto front").and(contains("parameter  cluster.groups.small.max 10 → 4 → 2\n    moved")));
    let page = skctl(&dir).args(["compare", "sweeps/pack", "-o", "html"]).assert().success();
    page.stdout(contains("Cost against waiting").and(contains("Which parameter moved what")));
    let markdown = skctl(&dir).args(["compare", "runs", "-o", "markdown"]).assert().success();
    markdown.stdout(contains("pending p99"));

    // One run is taken away: what is left is compared, and the gap is said.
    let gone = lines(&dir)[11]["runId"].as_str().expect("a run id").to_owned();
    std::fs::remove_dir_all(dir.path().join("runs").join(&gone)).expect("it was there");
    let partial = skctl(&dir).args(["compare", "sweeps/pack"]).assert().success();
    partial.stdout(contains("1 of 12 runs of sweeps/pack are missing"));
    let listed = skctl(&dir).args(["list", "sweeps/pack", "-o", "json"]).output().expect("skctl runs");
    let listed: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    assert_eq!(listed.as_array().expect("a list").len(), 11);
    skctl(&dir).args(["list", "nowhere"]).assert().code(2).stderr(contains("neither a folder of runs"));
}

#[test]
fn one_index_is_one_run_and_a_run_that_cannot_be_is_named_while_the_others_go_on() {
    let dir = pack();
    plan(&dir, "1");
    skctl(&dir).args(["sweep", "run", "sweeps/pack", "--index", "1"]).assert().success().stdout(contains("is done"));
    skctl(&dir)
        .args(["sweep", "run", "sweeps/pack", "--index", "1"])
        .assert()
        .success()
        .stdout(contains("already has a record"));
    skctl(&dir).args(["sweep", "run", "sweeps/pack", "--index", "2"]).assert().code(2).stderr(contains("has 2 runs"));
    // Somebody changes the scenario of the first variant after the plan was made.
    let scenario = dir.path().join("sweeps/pack/v0/scenario.yaml");
    let text = std::fs::read_to_string(&scenario).expect("a scenario");
    std::fs::write(&scenario, text.replace("max: 10", "max: 9")).expect("it can be written");
    let refused = skctl(&dir).args(["sweep", "run", "sweeps/pack"]).assert().code(2);
    refused.stdout(contains("max=10 seed 1: this is another run than was planned"));
    let status = status(&dir);
    assert_eq!((&status["done"], &status["failed"][0]["index"]), (&Value::from(1), &Value::from(0)));
    assert!(status["failed"][0]["reason"].as_str().expect("a reason").contains("Make a new plan"), "{status}");
}

#[test]
fn what_cannot_be_a_sweep_is_refused_before_anything_is_written() {
    let dir = pack();
    for (args, words) in [
        (vec!["-", "-f", "pack.yaml"], "standard input can be read once"),
        (vec!["example:nginx", "-f", "pack.yaml", "--to", "s3://bucket"], "names no object"),
        (vec!["example:nginx", "-f", "pack.yaml", "--to", "ftp://a/b"], "not a known location"),
        (vec!["missing.sktrace", "-f", "pack.yaml"], "missing.sktrace"),
        (vec!["example:nginx", "-f", "pack.yaml", "--apply"], "--to s3://"),
        (
            vec!["example:nginx", "-f", "pack.yaml", "--vary", "seed=1,2", "--assert", "ratio.cost.total < 1.0"],
            "judged one by one",
        ),
    ] {
        let sweep = skctl(&dir).args(["sweep", "plan", "-O", "p"]).args(&args).assert().code(2);
        sweep.stderr(contains(words));
        std::fs::remove_dir_all(dir.path().join("p")).ok();
    }
    skctl(&dir).args(["sweep", "run", "nowhere"]).assert().code(2).stderr(contains("skctl sweep plan"));
    write(&dir, "pack", "");
    plan(&dir, "1");
    let again = ["sweep", "plan", "example:nginx", "-f", "pack.yaml"];
    skctl(&dir).args(again).assert().code(2).stderr(contains("is not empty"));
}

#[test]
fn a_plan_whose_job_could_not_be_applied_stays_and_says_what_to_do_next() {
    let dir = pack();
    let plan = ["sweep", "plan", "example:nginx", "-f", "pack.yaml", "--to", "s3://runs/pack", "--apply"];
    let failed = skctl(&dir).args(plan).args(["--kubeconfig", "nowhere.yaml"]).assert().code(2);
    failed.stderr(contains("nowhere.yaml").and(contains("kubectl apply -f sweeps/pack/job.yaml")));
    assert_eq!(lines(&dir).len(), 1, "the plan can be carried out");
    assert!(dir.path().join("sweeps/pack/job.yaml").exists());
}

#[test]
fn a_plan_for_an_object_store_has_a_job() {
    let dir = pack();
    let args =
        ["sweep", "plan", "example:nginx", "-f", "pack.yaml", "-N", "3", "--to", "s3://runs/pack", "--secret", "s3"];
    skctl(&dir).args(args).assert().success().stdout(contains("kubectl apply -f sweeps/pack/job.yaml"));
    let job = std::fs::read_to_string(dir.path().join("sweeps/pack/job.yaml")).expect("a job");
    for words in ["completionMode: Indexed", "completions: 3", "automountServiceAccountToken: false", "FailIndex"] {
        assert!(job.contains(words), "{words}: {job}");
    }
}

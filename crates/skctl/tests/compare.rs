//! `skctl compare` as people and pipelines meet it.

mod support;

use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;
use support::{folder, skctl, write};
use tempfile::TempDir;

/// A recording of ours that has every part, observations included.
const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../sk-store/tests/traces/every-part.jsonl");

/// Two runs of the bundled example: as it is, and with nodes that go sooner.
fn two_runs() -> TempDir {
    let dir = folder();
    let run = |name: &str, more: &[&str]| {
        let args = ["run", "example:nginx", "-q", "--name", name, "-O", &format!("runs/{name}")].map(str::to_owned);
        skctl(&dir).args(args).args(more).assert().success();
    };
    run("as-is", &[]);
    run("sooner", &["--set", "autoscaler.scale-down-unneeded-time=2m"]);
    dir
}

fn compared(dir: &TempDir, runs: &[&str]) -> Value {
    let out = skctl(dir).arg("compare").args(runs).args(["-o", "json"]).assert().success();
    serde_json::from_slice(&out.get_output().stdout).expect("it is JSON")
}

#[test]
fn a_setting_that_saves_node_hours_is_called_better_and_named() {
    let dir = two_runs();
    let out = skctl(&dir).args(["compare", "as-is", "sooner"]).assert().success();
    let differs = "differs  sooner: autoscaler.scale-down-unneeded-time 10m → 2m\n";
    out.stdout(contains("sooner vs as-is").and(contains(differs)).and(contains("better")));
    let told = compared(&dir, &["as-is", "sooner"]);
    let rows = told["rows"].as_array().expect("rows are a list");
    let hours = rows.iter().find(|row| row["figure"] == "node_hours.total").expect("node-hours are compared");
    let figure = |place: usize| told["columns"][place]["runs"][0]["figures"]["node_hours"]["total"].as_f64();
    assert_eq!(hours["means"][0].as_f64(), figure(0));
    assert_eq!(hours["means"][1].as_f64(), figure(1));
    assert!(figure(1) < figure(0), "{hours}");
    assert_eq!(hours["changes"][0]["judged"], "better");
    assert_eq!(hours["changes"][0]["noise"], Value::Null, "one run each says nothing about noise");
}

#[test]
fn a_run_compared_with_itself_shows_no_difference() {
    let dir = two_runs();
    let out = skctl(&dir).args(["compare", "as-is", "as-is"]).assert().success();
    let text = contains("nothing: the same inputs").and(contains("better").not()).and(contains("WORSE").not());
    out.stdout(text);
}

#[test]
fn no_line_of_the_table_is_wider_than_a_pipe_is_taken_to_be() {
    let dir = two_runs();
    let out = skctl(&dir).args(["compare", "as-is", "sooner", "as-is", "sooner", "@", "@2"]).assert().success();
    let text = String::from_utf8_lossy(&out.get_output().stdout).into_owned();
    for line in text.lines().filter(|line| !line.starts_with("differs") && !line.starts_with("TRUST")) {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert!(text.matches("as-is").count() >= 2, "every block repeats the baseline:\n{text}");
}

#[test]
fn narrow_terminals_get_lines_that_fit_and_whole_names() {
    let dir = two_runs();
    let asked: [&[&str]; 6] = [
        &["compare", "as-is", "sooner"],
        &["compare", "as-is", "sooner", "@", "--assert", "ratio.node_hours.total < 0.1"],
        &["report", "as-is"],
        &["why", "as-is"],
        &["why", "as-is", "default/nginx"],
        &["list"],
    ];
    for (args, columns) in asked.iter().flat_map(|args| [60, 40].map(|columns| (args, columns))) {
        let out = skctl(&dir).args(*args).env("COLUMNS", columns.to_string()).output().expect("skctl runs");
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(text.lines().count() > 2, "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
        for line in text.lines().filter(|line| line.chars().count() > columns) {
            // A path, a field or an owner that is wider than its line stays whole.
            let longest = line.split_whitespace().map(|word| word.chars().count()).max();
            assert!(longest > Some(columns - 16), "{args:?} in {columns} columns: {line}\n{text}");
        }
        assert!(!text.contains("report.h…") && (text.contains("as-is") || text.contains("nginx")), "{text}");
    }
}

#[test]
fn the_page_holds_the_curves_and_needs_no_network() {
    let dir = two_runs();
    let out = skctl(&dir).args(["compare", "as-is", "sooner", "-o", "html"]).assert().success();
    let page = String::from_utf8_lossy(&out.get_output().stdout).into_owned();
    assert!(
        page.contains("default-src 'none'") && page.contains("\"label\":\"sooner\",\"recorded\":false,\"running\":[["),
        "{page}"
    );
    assert!(!page.contains("http://") || page.matches("http://").count() == page.matches("http://www.w3.org").count());
}

#[test]
fn what_cannot_be_compared_is_refused_with_a_sentence() {
    let dir = two_runs();
    skctl(&dir).args(["compare", "as-is"]).assert().code(2);
    skctl(&dir).args(["compare", "as-is", "nothing"]).assert().code(2).stderr(contains("nothing"));
}

#[test]
fn reality_stands_beside_its_replay() {
    let dir = folder();
    let nodes =
        "apiVersion: simkube.io/v1\nkind: Scenario\ncluster: {groups: {g: {min: 1, max: 3, cpu: 8, memory: 32Gi}}}\n";
    write(&dir, "nodes.yaml", nodes);
    let run = ["run", RECORDED, "-f", "nodes.yaml", "-q", "--name", "as-is", "-O", "runs/as-is"];
    skctl(&dir).args(run).assert().success();
    let out = skctl(&dir).args(["compare", RECORDED, "as-is"]).assert().success();
    out.stdout(contains("recorded").and(contains("TRUST  as-is vs recorded: ")));
}

#[test]
fn repetitions_are_one_column_and_alone_are_compared_with_one_another() {
    let dir = folder();
    let run = |name: &str, more: &[&str]| {
        let args = ["run", "example:nginx", "-q", "--name", name, "-N", "2", "-O"];
        skctl(&dir).args(args).arg(format!("runs/{name}")).args(more).assert().success();
    };
    run("as-is", &[]);
    run("sooner", &["--set", "autoscaler.scale-down-unneeded-time=2m"]);
    let found = |name: &str| -> Vec<String> {
        let folders = std::fs::read_dir(dir.path().join("runs").join(name)).expect("two runs lie there");
        let mut found: Vec<String> =
            folders.map(|folder| folder.expect("it can be read").path().display().to_string()).collect();
        found.sort();
        found
    };
    let (as_is, sooner) = (found("as-is"), found("sooner"));
    assert_eq!((as_is.len(), sooner.len()), (2, 2));
    let all: Vec<&str> = as_is.iter().chain(&sooner).map(String::as_str).collect();
    let told = compared(&dir, &all);
    assert_eq!(told["columns"].as_array().map(Vec::len), Some(2));
    let hours = told["rows"].as_array().and_then(|rows| rows.iter().find(|row| row["label"] == "node-hours"));
    assert!(hours.is_some_and(|row| row["changes"][0]["noise"].is_number()), "two seeds each tell how noisy it is");
    assert_eq!(compared(&dir, &all[..2])["columns"].as_array().map(Vec::len), Some(2));
    // So are they by the folder's name.
    assert_eq!(compared(&dir, &["as-is", "sooner"])["columns"], told["columns"]);
}

#[test]
fn a_name_means_every_repetition_of_its_newest_question() {
    let dir = folder();
    let run = |name: &str, more: &[&str]| {
        skctl(&dir).args(["run", "example:nginx", "-q", "--name", name, "-N", "2"]).args(more).assert().success();
    };
    run("as-is", &["--set", "autoscaler.scale-down-unneeded-time=3m"]);
    run("as-is", &[]);
    run("sooner", &["--set", "autoscaler.scale-down-unneeded-time=2m"]);
    let told = compared(&dir, &["as-is", "sooner"]);
    let columns = told["columns"].as_array().expect("columns are a list");
    let seeds = |column: &Value| {
        let runs = column["runs"].as_array().expect("runs are a list");
        runs.iter().map(|run| run["seed"].as_u64().expect("a seed")).collect::<Vec<_>>()
    };
    assert_eq!(columns.iter().map(seeds).collect::<Vec<_>>(), [[1, 2], [1, 2]]);
    let alone = compared(&dir, &["as-is"]);
    assert_eq!(alone["columns"].as_array().map(Vec::len), Some(2), "alone they are compared with one another");
}

/// A replay on a cluster leaves its repetitions as `week.0`, `week.1`.
#[test]
fn a_name_means_the_repetitions_of_a_cluster_run_too() {
    let dir = folder();
    for (name, seed) in [("week", "1"), ("week", "2"), ("sooner", "1"), ("sooner", "2")] {
        let repetition = seed.parse::<u32>().expect("a number") - 1;
        let out = format!("runs/{name}.{repetition}");
        let more = if name == "week" { "seed=1" } else { "autoscaler.scale-down-unneeded-time=2m" };
        let args = ["run", "example:nginx", "-q", "--set", more, "--name", name, "--seed", seed, "-O", &out];
        skctl(&dir).args(args).assert().success();
    }
    let told = compared(&dir, &["week", "sooner"]);
    let columns = told["columns"].as_array().expect("columns are a list");
    let runs = |column: &Value| column["runs"].as_array().map(Vec::len);
    assert_eq!(columns.iter().map(runs).collect::<Vec<_>>(), [Some(2), Some(2)], "{told}");
}

#[test]
fn assertions_about_a_comparison_decide_the_exit_code() {
    let dir = two_runs();
    let cases = [
        ("ratio.node_hours.total < 1.0", 0, "PASS  sooner: ratio.node_hours.total < 1.0"),
        ("node_hours.total <= baseline.node_hours.total * 0.5", 1, "FAIL  sooner: node_hours.total <= baseline"),
        ("start_latency.p99 <= baseline.start_latency.p99 + duration(\"5s\")", 0, "PASS  sooner"),
        ("nodes.max == baseline.nodes.max", 0, "baseline.nodes.max = 10"),
        ("ratio.cost.total <= 0.01", 1, "ratio.cost.total = 0."),
        ("cost.totl < 1.0", 2, ""),
        ("fidelity.start_latency.error < 0.1", 2, ""),
        ("owners[\"no/such/owner\"].pods.created == 1", 2, "ERROR  sooner"),
    ];
    for (assertion, code, words) in cases {
        let out = skctl(&dir).args(["compare", "as-is", "sooner", "--assert", assertion]).assert().code(code);
        out.stdout(contains(words));
    }
    let both = ["--assert", "nodes.max == 10", "--assert", "nodes.max == 11", "-o", "json"];
    let out = skctl(&dir).args(["compare", "as-is", "sooner"]).args(both).assert().code(1);
    let told: Value = serde_json::from_slice(&out.get_output().stdout).expect("it is JSON");
    assert_eq!((&told["assertions"][0]["passed"], &told["assertions"][1]["passed"]), (&true.into(), &false.into()));
    assert_eq!(told["assertions"][1]["values"]["nodes.max"], "10");
    let markdown = ["--assert", "nodes.max == 11", "-o", "markdown"];
    let out = skctl(&dir).args(["compare", "as-is", "sooner"]).args(markdown).assert().code(1);
    out.stdout(contains("- **FAIL** sooner: nodes.max == 11"));
}

#[test]
fn a_run_of_a_recording_tells_how_close_it_comes_and_keeps_it() {
    let dir = folder();
    let nodes =
        "apiVersion: simkube.io/v1\nkind: Scenario\ncluster: {groups: {g: {min: 1, max: 3, cpu: 8, memory: 32Gi}}}\n";
    write(&dir, "nodes.yaml", nodes);
    let run = ["run", RECORDED, "-f", "nodes.yaml", "-q", "--name", "as-is", "-O", "runs/as-is"];
    let asserted = ["--assert", "fidelity.pods.compared > 0", "--assert", "fidelity.start_latency.error >= 0.0"];
    skctl(&dir).args(run).args(asserted).assert().success().stdout(contains("vs recorded: start latency p99"));
    let summary = std::fs::read(dir.path().join("runs/as-is/summary.json")).expect("it has a summary");
    let summary: Value = serde_json::from_slice(&summary).expect("it is JSON");
    assert!(summary["fidelity"]["pods"]["compared"].as_i64().is_some_and(|pods| pods > 0), "{summary}");
    let page = std::fs::read_to_string(dir.path().join("runs/as-is/report.html")).expect("it has a page");
    assert!(page.contains("\"recorded\":{\"running\":[["), "what was recorded is drawn beside it");
    let out = skctl(&dir).args(["report", "as-is", "-o", "json"]).assert().success();
    let told: Value = serde_json::from_slice(&out.get_output().stdout).expect("it is JSON");
    assert_eq!(told["fidelity"], summary["fidelity"], "a later report says the same without the trace");
    let fidelity = ["--assert", "fidelity.pods.within_5s >= 0.0", "-o", "json"];
    let out = skctl(&dir).args(["compare", RECORDED, "as-is"]).args(fidelity).assert().success();
    let told: Value = serde_json::from_slice(&out.get_output().stdout).expect("it is JSON");
    assert_eq!(told["fidelity"][0]["figures"], summary["fidelity"], "compare and run agree");
    let cost = ["--assert", "evicted.pods <= baseline.evicted.pods"];
    skctl(&dir).args(["compare", RECORDED, "as-is"]).args(cost).assert().code(2);
}

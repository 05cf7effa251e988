//! The command line as people use it: answers, exit codes, and what it says when something is wrong.

use std::path::Path;

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;
use tempfile::TempDir;

/// `skctl` in a folder of its own.
fn skctl(dir: &Path) -> Command {
    let mut command = Command::cargo_bin("skctl").expect("the binary of this crate is built");
    command.current_dir(dir).env("NO_COLOR", "1");
    command
}

fn folder() -> TempDir {
    TempDir::new().expect("there is room for a temporary folder")
}

fn write(dir: &TempDir, name: &str, text: impl AsRef<[u8]>) {
    std::fs::write(dir.path().join(name), text).expect("a temporary folder can be written to");
}

/// The only run in the folder.
fn only_run(dir: &Path) -> std::path::PathBuf {
    let entries = std::fs::read_dir(dir.join("runs")).expect("there are runs");
    let mut runs: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    assert_eq!(runs.len(), 1, "{runs:?}");
    runs.remove(0)
}

#[test]
fn the_demo_passes_and_leaves_a_whole_run() {
    let dir = folder();
    let out = skctl(dir.path()).args(["demo", "--no-open"]).assert().success();
    out.stdout(contains("PASS   2 of 2 assertions").and(contains("1 → 10 → 1")))
        .stderr(contains("skctl run example:nginx"));
    let run = only_run(dir.path());
    let files =
        ["summary.json", "run.json", "scenario.yaml", "report.html", "junit.xml", "pods.parquet", "nodes.parquet"];
    for file in files.into_iter().chain(["series.parquet", "decisions.parquet", "autoscaler.parquet", "events.parquet"])
    {
        assert!(run.join(file).is_file(), "{file}");
    }
}

#[test]
fn the_same_question_gives_the_same_bytes() {
    let (one, two) = (folder(), folder());
    for dir in [&one, &two] {
        skctl(dir.path()).args(["run", "example:nginx", "--seed", "7"]).assert().success();
    }
    let (one, two) = (only_run(one.path()), only_run(two.path()));
    assert_eq!(one.file_name(), two.file_name());
    for entry in std::fs::read_dir(&one).expect("a run is a folder") {
        let name = entry.expect("an entry").file_name();
        let bytes = |run: &Path| std::fs::read(run.join(&name)).expect("both runs have it");
        assert!(bytes(&one) == bytes(&two), "{} differs", name.display());
    }
}

#[test]
fn another_seed_is_another_run() {
    let dir = folder();
    for seed in ["1", "2"] {
        skctl(dir.path()).args(["run", "example:nginx", "--seed", seed]).assert().success();
    }
    assert_eq!(std::fs::read_dir(dir.path().join("runs")).expect("there are runs").count(), 2);
    skctl(dir.path()).arg("list").assert().success().stdout(contains("example:nginx").count(2));
}

#[test]
fn a_changed_field_changes_the_answer_and_a_missed_limit_exits_with_1() {
    let dir = folder();
    let args = ["run", "example:nginx", "--set", "cluster.groups.small.max=6", "--assert", "pending.pods == 0"];
    let out = skctl(dir.path()).args(args).assert().code(1);
    out.stdout(contains("FAIL").and(contains("1 → 6 → 1")).and(contains("pending.pods = ")));
    skctl(dir.path()).args(["report", "@"]).assert().code(1).stdout(contains("FAIL"));
    skctl(dir.path()).args(["report", "@", "-o", "json"]).assert().code(1).stdout(contains("\"nodes\""));
}

#[test]
fn the_bundled_story_has_nothing_that_is_not_modelled() {
    let dir = folder();
    skctl(dir.path()).args(["run", "example:nginx", "--strict"]).assert().success().stdout(contains("\nPASS"));
}

#[test]
fn a_missing_file_is_named_with_what_to_check() {
    let dir = folder();
    let out = skctl(dir.path()).args(["run", "nowhere.sktrace"]).assert().code(2);
    out.stderr(contains("nowhere.sktrace").and(contains("check that the path is right"))).stdout("");
}

#[test]
fn a_truncated_trace_is_refused_and_leaves_nothing() {
    let dir = folder();
    let whole = include_bytes!("../../../examples/nginx.sktrace");
    for cut in [1, 10, whole.len() / 2, whole.len() - 1] {
        write(&dir, "cut.sktrace", &whole[..cut]);
        skctl(dir.path()).args(["run", "cut.sktrace"]).assert().code(2).stderr(contains("cut.sktrace"));
    }
    assert!(
        !dir.path().join("runs").exists()
            || std::fs::read_dir(dir.path().join("runs")).is_ok_and(|mut runs| runs.next().is_none())
    );
}

#[test]
fn a_foreign_file_is_told_from_a_trace() {
    let dir = folder();
    write(&dir, "cat.png", b"\x89PNG\r\n\x1a\nrest");
    write(&dir, "empty.sktrace", b"");
    skctl(dir.path())
        .args(["run", "cat.png"])
        .assert()
        .code(2)
        .stderr(contains("cat.png").and(contains("not a trace")));
    skctl(dir.path()).args(["run", "empty.sktrace"]).assert().code(2).stderr(contains("is empty"));
    skctl(dir.path()).args(["run", "example:apache"]).assert().code(2).stderr(contains("bundled are: example:nginx"));
}

#[test]
fn a_wrong_scenario_field_is_named_with_line_and_column() {
    let dir = folder();
    let text = "apiVersion: simkube.io/v1\nkind: Scenario\ncluster:\n  groups:\n    small: {mini: 1, max: 2, cpu: 1, memory: 1Gi}\n";
    write(&dir, "wrong.yaml", text);
    let out = skctl(dir.path()).args(["run", "example:nginx", "-f", "wrong.yaml"]).assert().code(2);
    out.stderr(contains("wrong.yaml:5:13").and(contains("did you mean `min`")));
}

#[test]
fn a_misspelt_figure_is_found_before_the_run() {
    let dir = folder();
    let out = skctl(dir.path()).args(["run", "example:nginx", "--assert", "nodes.maximum <= 3"]).assert().code(2);
    out.stderr(contains("nodes.maximum"));
    assert!(!dir.path().join("runs").exists());
}

#[test]
fn a_wrong_assertion_in_a_file_is_named_with_line_and_column() {
    let dir = folder();
    let text = "apiVersion: simkube.io/v1\nkind: Scenario\ncluster:\n  groups:\n    a: {max: 2, cpu: 1, memory: 1Gi}\nassert:\n  - nodes.max <= 3\n  - nodes.maxx <= 3\n";
    write(&dir, "wrong.yaml", text);
    let out = skctl(dir.path()).args(["run", "example:nginx", "-f", "wrong.yaml"]).assert().code(2);
    out.stderr(contains("wrong.yaml:8:5").and(contains("nodes.maxx")));
}

#[test]
fn what_a_running_cluster_cannot_be_told_is_refused_where_it_stands() {
    let dir = folder();
    write(
        &dir,
        "later.yaml",
        "apiVersion: simkube.io/v1\nkind: Scenario\ncluster:\n  groups:\n    a: {max: 2, cpu: 1, memory: 1Gi}\ntimeline: [{at: +1h, set: {cluster.nodes: recorded}}]\n",
    );
    let out = skctl(dir.path()).args(["run", "example:nginx", "-f", "later.yaml"]).assert().code(2);
    out.stderr(contains("later.yaml:6:43: timeline[0].set[\"cluster.nodes\"]").and(contains("cannot change")));
}

#[test]
fn the_old_form_of_run_is_answered_with_the_new_one() {
    let dir = folder();
    write(&dir, "week.sktrace", include_bytes!("../../../examples/nginx.sktrace"));
    let out = skctl(dir.path()).args(["run", "my-sim", "-f", "week.sktrace"]).assert().code(2);
    out.stderr(contains("my-sim is not a trace").and(contains("skctl run week.sktrace --name my-sim")));
}

#[test]
fn plain_manifests_run_with_assumed_nodes_and_say_so() {
    let dir = folder();
    let deployment = "apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web, resources: {requests: {cpu: '1'}}}]}
";
    let out = skctl(dir.path()).args(["run", "-"]).write_stdin(deployment).assert().success();
    out.stdout(contains("3 of 3 pods ran").and(contains("assumed nodes")).and(contains("assumed duration")));
    write(&dir, "web.yaml", deployment);
    skctl(dir.path()).args(["run", "web.yaml", "-D", "10m"]).assert().success().stdout(contains("10m simulated"));
}

#[test]
fn an_output_folder_that_is_something_else_is_left_alone() {
    let dir = folder();
    std::fs::create_dir(dir.path().join("precious")).expect("a temporary folder can be written to");
    write(&dir, "precious/thesis.txt", "years of work");
    skctl(dir.path()).args(["run", "example:nginx", "-O", "precious"]).assert().code(2).stderr(contains("precious"));
    assert!(dir.path().join("precious/thesis.txt").is_file());
}

#[test]
fn help_version_and_completions_are_answers() {
    let dir = folder();
    skctl(dir.path()).arg("--help").assert().success().stdout(contains("skctl demo"));
    skctl(dir.path()).arg("version").assert().success().stdout(contains("Kubernetes 1.36"));
    skctl(dir.path()).args(["completions", "bash"]).assert().success().stdout(contains("_skctl"));
    skctl(dir.path()).arg("sing").assert().code(2).stderr(contains("unrecognized subcommand"));
}

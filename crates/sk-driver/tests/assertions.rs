//! Assertions of a run without a controller may be somebody else's: checked before the run, in a process with limits, and
//! refused with a sentence. Nothing here reaches a cluster.

use std::fs;
use std::path::Path;
use std::time::Duration;

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;
use tempfile::TempDir;

/// Far above the bounds of one evaluation, far below a test that hangs.
const TIMEOUT: Duration = Duration::from_secs(120);

const KUBECONFIG: &str = "apiVersion: v1
kind: Config
current-context: nowhere
clusters: [{name: nowhere, cluster: {server: 'https://127.0.0.1:1'}}]
contexts: [{name: nowhere, context: {cluster: nowhere, user: nobody}}]
users: [{name: nobody, user: {}}]
";

const TRACE: &str = r#"{"simkube":"trace","version":1,"config":{"trackedObjects":{}}}
{"at":"2026-01-05T09:00:00Z","mark":"moment"}
{"at":"2026-01-05T09:10:00Z","mark":"moment"}
"#;

/// The driver's answer to a scenario with this assertion.
fn refused(assertion: &str) -> assert_cmd::assert::Assert {
    let folder = TempDir::new().expect("a folder for the test");
    let write = |name: &str, text: &str| {
        let file = folder.path().join(name);
        fs::write(&file, text).expect("the folder takes files");
        file.display().to_string()
    };
    let trace = write("trace.jsonl", TRACE);
    let simulation = write("simulation.yaml", &simulation(Path::new(&trace)));
    let groups = "cluster: {groups: {g: {min: 1, max: 1, cpu: 1, memory: 1Gi}}}";
    let assertion = serde_json::Value::from(assertion);
    let scenario = write(
        "mine.yaml",
        &format!("apiVersion: simkube.io/v1\nkind: Scenario\n{groups}\nassert: [{{name: mine, that: {assertion}}}]\n"),
    );
    let kubeconfig = write("kubeconfig", KUBECONFIG);
    let mut driver = Command::cargo_bin("sk-driver").expect("cargo builds the driver for its tests");
    driver.current_dir(folder.path()).args(["run", "-f", &simulation, "--kubeconfig", &kubeconfig]);
    driver.args(["--scenario", &scenario, "--out", "record"]).timeout(TIMEOUT).assert().code(2)
}

fn simulation(trace: &Path) -> String {
    format!(
        "apiVersion: simkube.io/v1\nkind: Simulation\nmetadata: {{name: s}}\nspec: {{driver: {{tracePath: {}}}}}\n",
        trace.display()
    )
}

#[test]
fn an_assertion_that_names_no_figure_is_refused_before_the_run_with_its_file() {
    refused("pods.maximal >= 1").stderr(contains("mine.yaml").and(contains("pods.maximal")));
}

#[test]
fn an_assertion_without_end_is_refused_before_the_run() {
    // A list multiplied by itself eleven times over: 10^11 steps.
    let list = "[1,2,3,4,5,6,7,8,9,0]";
    let nested = (0..11).fold("true".to_owned(), |inner, depth| format!("{list}.all(x{depth}, {inner})"));
    refused(&format!("{nested} && nodes.max >= 0")).stderr(contains("takes more than 10 s"));
}

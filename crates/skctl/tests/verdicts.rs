//! Verdicts as people and pipelines meet them: what was not simulated is never green, in the terminal, in files, in the
//! list and in the exit code.

mod support;

use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;
use support::{folder, skctl, write};
use tempfile::TempDir;

const NODES: &str = "apiVersion: simkube.io/v1
kind: Scenario
cluster:
  groups:
    small: {min: 1, max: 10, cpu: 4, memory: 16Gi}
";

fn workload(api_version: &str, kind: &str, name: &str, replicas: &str) -> String {
    format!(
        "apiVersion: {api_version}
kind: {kind}
metadata: {{name: {name}, namespace: shop}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec: {{containers: [{{name: main, image: x, resources: {{requests: {{cpu: '2'}}}}}}]}}
---
"
    )
}

/// A folder with a web shop of which a part is not simulated.
fn shop() -> TempDir {
    let dir = folder();
    let trace = [
        workload("apps/v1", "Deployment", "web", "2"),
        workload("example.com/v1", "Broker", "kafka", "3"),
        workload("argoproj.io/v1alpha1", "Rollout", "checkout", "6"),
    ];
    write(&dir, "shop.yaml", trace.concat());
    write(&dir, "nodes.yaml", NODES);
    dir
}

fn run(dir: &TempDir, more: &[&str]) -> assert_cmd::assert::Assert {
    let args = ["run", "shop.yaml", "-f", "nodes.yaml", "-D", "10m", "-O", "runs/shop"];
    skctl(dir).args(args).args(more).assert()
}

fn summary(dir: &TempDir) -> Value {
    let text = std::fs::read(dir.path().join("runs/shop/summary.json")).expect("the run has a summary");
    serde_json::from_slice(&text).expect("it is JSON")
}

fn file(dir: &TempDir, name: &str) -> String {
    std::fs::read_to_string(dir.path().join("runs/shop").join(name)).expect("the run has it")
}

/// The summary, JUnit, page, list and report of the run agree.
fn agree(dir: &TempDir, word: &str, code: i32) {
    assert_eq!(summary(dir)["verdict"], word);
    assert!(file(dir, "report.html").contains(&format!("<title>{word} ")), "{word}");
    skctl(dir).arg("list").assert().success().stdout(contains("shop").and(contains(word)));
    skctl(dir).args(["report", "runs/shop"]).assert().code(code).stdout(contains(format!("\n{word}")));
    let green = file(dir, "junit.xml").contains("failures=\"0\" errors=\"0\" skipped=\"0\"");
    assert_eq!(green, word == "PASS" || word == "DONE", "{}", file(dir, "junit.xml"));
}

#[test]
fn an_incomplete_run_says_how_much_is_missing_and_the_worst_first() {
    let dir = shop();
    let out = run(&dir, &[]).success();
    let headline = "\nINCOMPLETE: about 9 pods, 18 CPU not simulated";
    out.stdout(contains(headline).and(contains("Rollout  about 6 pods, 12 CPU: shop/checkout\n")));
    agree(&dir, "INCOMPLETE", 0);
    let missing = &summary(&dir)["not_simulated"];
    assert_eq!(
        (&missing[0]["object"], &missing[1]["object"]),
        (&"shop/Rollout/checkout".into(), &"shop/Broker/kafka".into())
    );
    run(&dir, &["--strict"]).code(1).stdout(contains("INCOMPLETE"));
    agree(&dir, "INCOMPLETE", 1);
}

#[test]
fn a_folder_with_a_deployment_a_stateful_set_and_a_daemon_set_passes_with_every_pod() {
    let dir = folder();
    std::fs::create_dir(dir.path().join("shop")).expect("the folder is new");
    let small = |kind, name, replicas| workload("apps/v1", kind, name, replicas).replace("'2'", "600m");
    write(&dir, "shop/web.yaml", small("Deployment", "web", "2"));
    write(&dir, "shop/kafka.yaml", small("StatefulSet", "kafka", "3"));
    write(&dir, "shop/agent.yaml", small("DaemonSet", "agent", "1").replace("  replicas: 1\n", ""));
    write(&dir, "nodes.yaml", NODES);
    let args =
        ["run", "shop", "-f", "nodes.yaml", "-D", "10m", "-O", "runs/shop", "--assert", "unschedulable.pods == 0"];
    skctl(&dir).args(args).assert().success().stdout(contains("PASS"));
    agree(&dir, "PASS", 0);
    let summary = summary(&dir);
    assert_eq!(summary["not_simulated"], serde_json::json!([]));
    let (pods, nodes) = (summary["pods"]["created"].as_i64(), summary["nodes"]["max"].as_i64());
    assert_eq!(pods, nodes.map(|nodes| 2 + 3 + nodes), "{summary:#}");
}

#[test]
fn what_holds_on_an_incomplete_run_exits_with_2_and_what_fails_with_1() {
    let dir = shop();
    run(&dir, &["--assert", "unschedulable.pods == 0"]).code(2).stdout(contains("INCOMPLETE"));
    agree(&dir, "INCOMPLETE", 2);
    assert!(file(&dir, "junit.xml").contains("<skipped"), "{}", file(&dir, "junit.xml"));
    run(&dir, &["--assert", "nodes.max == 0"]).code(1).stdout(contains("FAIL"));
    agree(&dir, "FAIL", 1);
}

#[test]
fn gaps_that_the_scenario_accepts_are_judged_and_named() {
    let dir = shop();
    let holds = ["--assert", "unschedulable.pods == 0"];
    let half = ["--set", "accept=[example.com/Broker]"];
    run(&dir, &[holds, half].concat()).code(2).stdout(contains("INCOMPLETE: about 6 pods, 12 CPU not simulated"));
    write(&dir, "nodes.yaml", format!("{NODES}accept: [example.com/Broker, argoproj.io/Rollout]\n"));
    let out = run(&dir, &holds).success();
    out.stdout(
        contains("PASS")
            .and(contains("accepted: about 9 pods, 18 CPU not simulated"))
            .and(contains("Broker, accepted")),
    );
    agree(&dir, "PASS", 0);
}

#[test]
fn a_run_without_a_pod_is_not_judged() {
    let dir = shop();
    write(&dir, "shop.yaml", workload("example.com/v1", "Broker", "kafka", "3"));
    run(&dir, &[]).code(2).stdout(contains("INCOMPLETE: no pod was simulated · about 3 pods, 6 CPU not simulated"));
    agree(&dir, "INCOMPLETE", 2);
    write(&dir, "nodes.yaml", format!("{NODES}accept: [Broker]\n"));
    run(&dir, &[]).code(2).stdout(contains("no pod was simulated"));
}

#[test]
fn a_recorded_cron_job_runs_its_pods_at_their_times_for_as_long_as_recorded() {
    let dir = shop();
    let spec = r#"{"schedule":"*/5 * * * *","jobTemplate":{"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","resources":{"requests":{"cpu":"2"}}}]}}}}}"#;
    let cron = format!(
        r#"{{"apiVersion":"batch/v1","kind":"CronJob","metadata":{{"name":"etl","namespace":"shop"}},"spec":{spec}}}"#
    );
    let life = |minute: u32| {
        format!(r#"{{"start":"2026-01-05T09:{minute:02}:00Z","end":"2026-01-05T09:{:02}:00Z"}}"#, minute + 2)
    };
    let owner = r#"{"gvk":"batch/v1.CronJob","key":"shop/etl"}"#;
    let lines = [
        r#"{"simkube":"trace","version":1,"config":{"trackedObjects":{"batch/v1.CronJob":{"trackLifecycle":true}}}}"#
            .to_owned(),
        format!(r#"{{"at":"2026-01-05T09:00:00Z","apply":{cron}}}"#),
        r#"{"at":"2026-01-05T09:30:00Z","mark":"moment"}"#.to_owned(),
        format!(r#"{{"lives":{{"owner":{owner},"templates":[{{"lives":[{},{}]}}]}}}}"#, life(5), life(10)),
    ];
    write(&dir, "shop.yaml", lines.join("\n") + "\n");
    let out = skctl(&dir).args(["run", "shop.yaml", "-f", "nodes.yaml", "-O", "runs/shop"]).assert().success();
    out.stdout(contains("5 of 5 pods ran"));
}

#[test]
fn a_deployment_a_job_and_a_cron_job_run_every_pod_and_say_what_was_assumed() {
    let dir = shop();
    let pod = "{restartPolicy: Never, containers: [{name: main, image: x, resources: {requests: {cpu: '2'}}}]}";
    let job = format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: sums, namespace: shop}}\n\
         spec: {{completions: 4, parallelism: 2, template: {{spec: {pod}}}}}\n---\n"
    );
    let cron = format!(
        "apiVersion: batch/v1\nkind: CronJob\nmetadata: {{name: tick, namespace: shop}}\n\
         spec: {{schedule: '@every 2m', jobTemplate: {{spec: {{template: {{spec: {pod}}}}}}}}}\n"
    );
    write(&dir, "shop.yaml", workload("apps/v1", "Deployment", "web", "2") + &job + &cron);
    let out = run(&dir, &[]).success();
    // Two of the Deployment, four of the Job, one every two minutes of ten.
    out.stdout(contains("10 of 10 pods ran").and(contains("assumed")).and(contains("INCOMPLETE").not()));
    assert_eq!(summary(&dir)["warnings"]["assumed"], 1);
}

#[test]
fn validate_and_run_refuse_the_same_object_by_its_name() {
    let dir = shop();
    let wrong = workload("apps/v1", "Deployment", "web", "'three'") + &workload("apps/v1", "Deployment", "api", "1");
    write(&dir, "shop.yaml", wrong);
    let out = run(&dir, &[]).success();
    out.stdout(contains("INCOMPLETE").and(contains("Deployment, refused")).and(contains("shop/web")));
    assert_eq!(summary(&dir)["not_simulated"][0]["why"], "refused");
    let out = skctl(&dir).args(["validate", "shop.yaml"]).assert().code(1);
    out.stdout(contains("refused  Deployment shop/web").and(contains("INVALID")));
    let out = skctl(&dir).args(["validate", "shop.yaml", "-o", "json"]).assert().code(1);
    out.stdout(contains("\"refused\": [").and(contains("shop/web")));
}

#[test]
fn strict_fails_what_warnings_limit_everywhere_and_accepts_what_is_named() {
    let dir = folder();
    let webhook =
        "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\nmetadata: {name: w}\n";
    write(&dir, "shop.yaml", workload("apps/v1", "Deployment", "web", "2") + webhook);
    write(&dir, "nodes.yaml", NODES);
    let strict = ["--strict", "--assert", "unschedulable.pods == 0"];
    run(&dir, &strict).code(1).stdout(contains("\nFAIL   --strict and "));
    agree(&dir, "FAIL", 1);
    run(&dir, &[&strict[..], &["--set", "accept=[webhooks]"]].concat()).success().stdout(contains("\nPASS"));
    agree(&dir, "PASS", 0);
}

#[test]
fn workloads_whose_pods_lack_their_service_account_are_not_passed_over() {
    let dir = folder();
    let api = workload("apps/v1", "Deployment", "api", "6");
    let api = api.replace("spec: {containers", "spec: {serviceAccountName: api, containers");
    let both = workload("apps/v1", "Deployment", "web", "2") + &api;
    write(&dir, "shop.yaml", both.clone());
    write(&dir, "nodes.yaml", NODES);
    run(&dir, &[]).success().stdout(contains("\nINCOMPLETE: about 6 pods, 12 CPU not simulated"));
    assert!(file(&dir, "run.json").contains("looking up service account shop/api"));
    run(&dir, &["--assert", "unschedulable.pods == 0"]).code(2);
    let account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: api, namespace: shop}\n";
    write(&dir, "shop.yaml", both + account);
    run(&dir, &["--assert", "unschedulable.pods == 0"]).success().stdout(contains("8 pods created"));
}

#[test]
fn notes_beside_a_run_are_not_replaced_with_it() {
    let dir = shop();
    run(&dir, &[]).success();
    write(&dir, "runs/shop/thesis.md", "years of work");
    run(&dir, &[]).code(2).stderr(contains("thesis.md").and(contains("no run made")));
    assert_eq!(file(&dir, "thesis.md"), "years of work");
}

#[test]
fn names_forge_no_line_of_an_answer() {
    let dir = shop();
    let forged = r#""x\nVALID  all is well\nPASS   9 of 9 assertions\u202e""#;
    let metadata = format!(r#"{{"name":{forged},"namespace":{forged},"labels":{{"a b":"c"}}}}"#);
    let spec = r#"{"replicas":"x","template":{"spec":{"containers":[{"name":"c"}]}}}"#;
    let object = |kind: &str| {
        let group = if kind == "Rollout" { "argoproj.io/v1" } else { "apps/v1" };
        format!(
            r#"{{"at":"2026-01-05T09:00:00Z","apply":{{"apiVersion":"{group}","kind":"{kind}","metadata":{metadata},"spec":{spec}}}}}"#
        )
    };
    let lines = [
        r#"{"simkube":"trace","version":1,"config":{"trackedObjects":{}}}"#.to_owned(),
        object("Deployment"),
        object("Rollout"),
        r#"{"at":"2026-01-05T09:30:00Z","mark":"moment"}"#.to_owned(),
        format!(r#"{{"gap":{{"from":"2026-01-05T09:10:00Z","to":"2026-01-05T09:11:00Z","reason":{forged}}}}}"#),
    ];
    write(&dir, "shop.yaml", lines.join("\n") + "\n");
    let assertion = format!("assert: [{{name: {forged}, that: unschedulable.pods < 0}}]\n");
    write(&dir, "nodes.yaml", format!("{NODES}{assertion}"));
    write(&dir, "drop.jq", ".metadata.labels.x = \"y\"");
    for args in [
        &["run", "shop.yaml", "-f", "nodes.yaml", "-O", "runs/shop"][..],
        &["report", "runs/shop"],
        &["report", "runs/shop", "-o", "markdown"],
        &["report", "runs/shop", "-o", "junit"],
        &["report", "runs/shop", "-o", "json"],
        &["list"],
        &["validate", "shop.yaml"],
        &["trace", "show", "shop.yaml"],
        &["trace", "show", "shop.yaml", "-o", "json"],
        &["trace", "show", "shop.yaml", "--values"],
        &["trace", "transform", "shop.yaml", "-f", "drop.jq"],
    ] {
        let output = skctl(&dir).args(args).output().expect("skctl starts");
        for text in [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()) {
            let forged = text.lines().find(|line| line.starts_with("VALID  all") || line.starts_with("PASS   9"));
            assert_eq!(forged, None, "{args:?}: {text}");
            assert!(!text.contains('\u{202e}'), "{args:?}: {text}");
        }
    }
}

#[test]
fn flags_of_the_autoscaler_that_change_nothing_are_named() {
    let dir = folder();
    let args = ["run", "example:nginx", "-q", "--set", "autoscaler.leader-elect=true", "-O", "runs/shop"];
    skctl(&dir).args(args).assert().success().stdout(contains("autoscaler: leader-elect cannot matter"));
}

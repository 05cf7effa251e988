//! `skctl why` as people meet it: the scheduler's own words, for runs and for recordings.

mod support;

use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;
use support::{folder, skctl, write};
use tempfile::TempDir;

/// A recording of ours that has every part, observations included.
const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../sk-store/tests/traces/every-part.jsonl");

fn nginx() -> TempDir {
    let dir = folder();
    skctl(&dir).args(["run", "example:nginx", "-q"]).assert().success();
    dir
}

fn json(dir: &TempDir, args: &[&str]) -> Value {
    let out = skctl(dir).arg("why").args(args).args(["-o", "json"]).assert().success();
    serde_json::from_slice(&out.get_output().stdout).expect("it is JSON")
}

#[test]
fn pods_that_waited_are_told_in_the_schedulers_words() {
    let dir = nginx();
    let out = skctl(&dir).args(["why", "@", "default/nginx"]).assert().success();
    let words = contains("nodes are available: ").and(contains("Insufficient cpu"));
    out.stdout(contains("default/Deployment/nginx").and(words).and(contains("until a node of group small was ready")));
    let told = json(&dir, &["@", "default/Deployment/nginx"]);
    let pods: u64 = told["waits"].as_array().expect("a list").iter().filter_map(|wait| wait["pods"].as_u64()).sum();
    let summary = std::fs::read_dir(dir.path().join("runs")).expect("there are runs").next().expect("one run");
    let summary = std::fs::read(summary.expect("it is there").path().join("summary.json")).expect("it has a summary");
    let summary: Value = serde_json::from_slice(&summary).expect("it is JSON");
    assert_eq!(Some(pods), summary["pending"]["pods"].as_u64(), "every pod that waited is told");
}

#[test]
fn a_moment_in_which_nobody_waited_has_no_waits() {
    let dir = nginx();
    assert_eq!(json(&dir, &["@", "default/nginx", "--at", "+14m"])["waits"], Value::Array(Vec::new()));
    let waiting = json(&dir, &["@", "default/nginx", "--at", "+5m10s"]);
    assert_ne!(waiting["waits"], Value::Array(Vec::new()));
    assert!(waiting["waits"][0]["said"][0]["message"].as_str().is_some_and(|words| words.contains("Insufficient cpu")));
}

#[test]
fn a_group_tells_how_it_grew_and_a_node_when_it_stood_empty() {
    let dir = nginx();
    skctl(&dir).args(["why", "@", "small"]).assert().success().stdout(contains("10 nodes, its maximum"));
    let pod = json(&dir, &["@", "default/nginx"])["waits"][0]["owner"].as_str().map(str::to_owned);
    assert_eq!(pod.as_deref(), Some("default/Deployment/nginx"));
    skctl(&dir).args(["why", "@", "no-such-node"]).assert().code(2).stderr(contains("no-such-node"));
    skctl(&dir).args(["why", "@", "default/nothing"]).assert().code(2).stderr(contains("default/Deployment/nginx"));
}

#[test]
fn a_group_at_its_maximum_is_named_as_the_cause() {
    let dir = folder();
    skctl(&dir).args(["run", "example:nginx", "-q", "--set", "cluster.groups.small.max=6"]).assert().code(1);
    let out = skctl(&dir).args(["why", "default/nginx"]).assert().success();
    out.stdout(contains("autoscaler small at its max 6 since 09:05:10"));
}

#[test]
fn a_wait_is_told_in_the_autoscalers_words_too() {
    let dir = folder();
    skctl(&dir).args(["run", "example:nginx", "-q", "--set", "cluster.groups.small.max=6"]).assert().code(1);
    let out = skctl(&dir).env("COLUMNS", "200").args(["why", "default/nginx"]).assert().success();
    let grew = contains("TriggeredScaleUp: pod triggered scale-up: [{small ");
    let full = contains("NotTriggerScaleUp: pod didn't trigger scale-up: 1 max node group size reached");
    out.stdout(grew.and(full));
    skctl(&dir).args(["run", "example:nginx", "-q", "--set", "cluster.groups.small.cpu=500m"]).assert().code(1);
    let out = skctl(&dir).env("COLUMNS", "200").args(["why", "@", "default/nginx"]).assert().success();
    out.stdout(contains("NotTriggerScaleUp: pod didn't trigger scale-up: 1 Insufficient cpu"));
}

#[test]
fn a_node_tells_why_it_stayed_and_why_it_went() {
    let dir = nginx();
    let pods = json(&dir, &["@", "default/nginx"]);
    assert!(pods["waits"][0]["autoscaler"][0]["message"].as_str().is_some_and(|words| words.contains("scale-up")));
    let group = json(&dir, &["@", "small"]);
    let said =
        group["groups"][0]["events"].as_array().expect("a list").iter().filter_map(|event| event["what"].as_str());
    let grew = said.clone().any(|what| what.starts_with("autoscaler: scale up from 2 to "));
    let went = said.clone().find_map(|what| what.strip_prefix("autoscaler: ")?.strip_suffix(" unneeded"));
    assert!(grew, "{group:#}");
    let node = went.expect("some node of the group was unneeded");
    let out = skctl(&dir).args(["why", "@", node]).assert().success();
    let stayed = contains("autoscaler: unneeded").and(contains("autoscaler: cooldown"));
    out.stdout(stayed.and(contains("autoscaler: scale down: marked the node as toBeDeleted/unschedulable")));
}

#[test]
fn a_pod_tells_why_it_is_on_its_node_and_a_wait_what_would_have_fitted() {
    let dir = folder();
    skctl(&dir).args(["run", "example:nginx", "-q", "--set", "cluster.groups.small.max=6"]).assert().code(1);
    let told = json(&dir, &["@", "default/nginx"]);
    let fitted = told["waits"][0]["would_have_fitted"][0].as_str().unwrap_or_default().to_owned();
    assert!(fitted.starts_with("small +") && fitted.ends_with("(its max is 6)"), "{fitted}");
    let out = skctl(&dir).args(["why", "@", "web-tools/status-page"]).assert().success();
    out.stdout(contains("bound to ").and(contains("evaluated node")));
}

/// Two groups that could grow, and one whose taint nobody tolerates.
const THREE_GROUPS: &str = "apiVersion: simkube.io/v1
kind: Scenario
cluster:
  groups:
    small: {min: 1, max: 10, cpu: 1, memory: 4Gi}
    large: {max: 10, cpu: 8, memory: 64Gi}
    guarded: {max: 10, cpu: 16, memory: 64Gi, taints: [{key: dedicated, value: team, effect: NoSchedule}]}
";

#[test]
fn a_wait_tells_which_groups_were_considered_and_offers_none_that_repels_the_pods() {
    let dir = folder();
    write(&dir, "three.yaml", THREE_GROUPS);
    skctl(&dir).args(["run", "example:nginx", "-f", "three.yaml", "-q"]).assert().success();
    let told = json(&dir, &["@", "default/nginx"]);
    let wait = &told["waits"][0];
    let considered = wait["considered"][0]["message"].as_str().unwrap_or_default();
    let small = considered.split("; ").find(|said| said.starts_with("small: ")).unwrap_or_default();
    assert!(small.contains(", waste ") && small.ends_with(", chosen by least-waste"), "{considered}");
    assert!(considered.contains("; guarded: node(s) had untolerated taint(s)"), "{considered}");
    assert!(considered.contains("large: 1 node for "), "{considered}");
    let fitted = wait["would_have_fitted"].as_array().expect("a list");
    assert!(!fitted.is_empty(), "{wait:#}");
    assert!(fitted.iter().all(|group| !group.as_str().unwrap_or_default().starts_with("guarded")), "{fitted:?}");
    let out = skctl(&dir).env("COLUMNS", "300").args(["why", "@", "default/nginx"]).assert().success();
    out.stdout(contains("considered small: ").or(contains("considered large: ")));
    let out = skctl(&dir).env("COLUMNS", "300").args(["why", "@", "small"]).assert().success();
    out.stdout(contains("autoscaler: scale up from 1 to 2 (").and(contains("chosen by least-waste")));
    let page = std::fs::read_dir(dir.path().join("runs")).expect("there are runs").next().expect("one run");
    let page = std::fs::read_to_string(page.expect("it is there").path().join("report.html")).expect("it has a page");
    assert!(page.contains("chosen by least-waste"), "the page shows the options too");
}

#[test]
fn the_name_of_a_pod_of_another_run_leads_to_its_owner() {
    let dir = nginx();
    let out = skctl(&dir).env("COLUMNS", "200").args(["why", "@", "default/nginx-5d4f8c7b9-x2x9q"]).assert().success();
    out.stdout(contains("which is not in this run; its owner default/Deployment/nginx"));
}

#[test]
fn a_recording_answers_without_any_simulation() {
    let dir = folder();
    let out = skctl(&dir).args(["why", RECORDED, "shop/orders"]).assert().success();
    out.stdout(contains("shop/Deployment/orders").and(contains("0/1 nodes are available: 1 Insufficient cpu.")));
}

#[test]
fn what_is_neither_a_run_nor_a_trace_is_refused_with_a_sentence() {
    let dir = folder();
    write(&dir, "notes.txt", "remember the milk");
    skctl(&dir).args(["why", "notes.txt"]).assert().code(2).stderr(contains("notes.txt"));
    skctl(&dir).args(["why", "nothing", "default/nginx"]).assert().code(2).stderr(contains("nothing"));
}

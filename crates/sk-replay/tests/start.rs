//! A run that begins in the middle of a trace begins with the cluster that was there, not with a storm of creations.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use serde_json::{Value, json};
use sk_api::Scenario;
use sk_core::{SimDuration, SimTime};
use sk_record::{NodeRow, PodRow, RunMeta};
use sk_replay::embedded::{self, RunError, RunRequest};
use sk_replay::plan::Window;
use sk_replay::setup::Setup;
use sk_store::trace;

const START: &str = "2026-01-05T09:00:00Z";
const SERVICES: usize = 12;

fn at(minutes: i64) -> SimTime {
    SimTime::parse_rfc3339(START).expect("a time") + SimDuration::from_mins(minutes)
}

/// Two hours of a dozen services that grow and shrink every few minutes, each in its own rhythm.
fn workload() -> String {
    let mut changes = Vec::new();
    for service in 0..SERVICES {
        let replicas = |minute: i64| 5 + (minute / 7 + service as i64 * 3) % 11;
        for minute in (0..120).step_by(7) {
            let name = format!("svc-{service}");
            let object = json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "shop"},
                "spec": {
                    "replicas": replicas(minute), "selector": {"matchLabels": {"app": name}},
                    "template": {
                        "metadata": {"labels": {"app": name}},
                        "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "500m"}}}]},
                    },
                },
            });
            changes.push((minute, service, json!({"at": at(minute).to_string(), "apply": object}).to_string()));
        }
    }
    changes.sort();
    let head = json!({"simkube": "trace", "version": 1, "config": {"trackedObjects": {"apps/v1.Deployment": {}}}});
    let lines: Vec<String> = changes.into_iter().map(|(_, _, line)| line).collect();
    let end = json!({"at": at(120).to_string(), "mark": "moment"});
    format!("{head}\n{}\n{end}\n", lines.join("\n"))
}

struct Ran {
    meta: RunMeta,
    pods: Vec<PodRow>,
    nodes: Vec<NodeRow>,
}

fn try_run(trace: &str, scenario: &str, from: i64) -> Result<Ran, RunError> {
    let trace = trace::from_bytes("test", trace.to_owned().into_bytes()).expect("the test's trace opens");
    let scenario = format!("apiVersion: simkube.io/v1\nkind: Scenario\n{scenario}");
    let scenario = Scenario::parse("test.yaml", &scenario).expect("the test's scenario is well-formed");
    let setup = Setup::new(&scenario);
    let text = scenario.to_yaml();
    let window = Window { start: at(from), end: at(120), includes_end: true };
    let request = RunRequest::new(&trace, window, &setup, &text, "test");
    let dir = tempfile::tempdir().expect("there is room for a temporary folder");
    let staged = embedded::run(&request, &dir.path().join("run"), &mut |_| ControlFlow::Continue(()))?;
    let run = staged.run().expect("its record opens");
    Ok(Ran {
        pods: run.pods().expect("pods").collect::<Result<_, _>>().expect("the pods are whole"),
        nodes: run.nodes().expect("nodes").collect::<Result<_, _>>().expect("the nodes are whole"),
        meta: run.meta().clone(),
    })
}

fn run(trace: &str, scenario: &str, from: i64) -> Ran {
    try_run(trace, scenario, from).unwrap_or_else(|error| panic!("{error}"))
}

/// What a cloud would have called a node.
fn real_name(node: &str) -> String {
    format!("ip-10-0-0-{}", node.trim_start_matches("general-"))
}

/// The trace as it would have been recorded in the cluster of a run: with what happened to pods and nodes.
fn recorded(trace: &str, ran: &Ran) -> String {
    let mut text = trace.to_owned();
    let time = |time: Option<SimTime>| time.map(|time| time.to_string());
    for pod in &ran.pods {
        let (_, name) = pod.owner.rsplit_once('/').expect("an owner has a name");
        let mut row = json!({
            "pod": format!("{}/{}", pod.namespace, pod.name),
            "owner": {"gvk": "apps/v1.Deployment", "key": format!("{}/{name}", pod.namespace)},
            "created": pod.created.to_string(),
        });
        let known = [
            ("scheduled", time(pod.scheduled)),
            ("started", time(pod.started)),
            ("finished", time(pod.finished)),
            ("deleted", time(pod.deleted)),
            ("node", pod.node.as_deref().map(real_name)),
        ];
        for (field, value) in known {
            if let Some(value) = value {
                row[field] = json!(value);
            }
        }
        text += &format!("{}\n", json!({"observation": row}));
    }
    let mut events: Vec<(SimTime, Value)> = Vec::new();
    for node in &ran.nodes {
        let object = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": real_name(&node.name), "labels": {"pool": "general"}},
            "status": {
                "allocatable": {"cpu": format!("{}m", node.cpu_m), "memory": node.memory_bytes.to_string(), "pods": node.pods.to_string()},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        });
        let ready = node.ready.unwrap_or(node.created);
        events.push((ready, json!({"at": ready.to_string(), "node": real_name(&node.name), "object": object})));
        events.extend(node.deleted.map(|gone| (gone, json!({"at": gone.to_string(), "node": real_name(&node.name)}))));
    }
    events.sort_by_key(|(at, _)| *at);
    for (_, event) in events {
        text += &format!("{}\n", json!({"node": event}));
    }
    text
}

/// Running pods of each owner at a moment.
fn running(ran: &Ran, moment: SimTime) -> BTreeMap<&str, i64> {
    let mut counts = BTreeMap::new();
    for pod in &ran.pods {
        let end = pod.finished.or(pod.deleted);
        if pod.started.is_some_and(|started| started <= moment) && end.is_none_or(|end| end > moment) {
            *counts.entry(pod.owner.as_str()).or_default() += 1;
        }
    }
    counts
}

const GROUPS: &str = "cluster: {groups: {general: {min: 2, max: 40, cpu: 4, memory: 16Gi}}}\n";
const RECORDED: &str = "cluster: {nodes: recorded}\n";

fn created_soon_after(ran: &Ran, from: i64) -> usize {
    ran.pods.iter().filter(|pod| pod.created >= at(from) && pod.created < at(from + 3)).count()
}

#[test]
fn with_recorded_nodes_and_places_a_run_from_the_middle_is_the_full_run_within_a_hundredth() {
    let trace = recorded(&workload(), &run(&workload(), GROUPS, 0));
    let (full, half) = (run(&trace, RECORDED, 0), run(&trace, RECORDED, 60));
    let (mut differences, mut total) = (0, 0);
    for minute in 60..=120 {
        let (expected, found) = (running(&full, at(minute)), running(&half, at(minute)));
        assert_eq!(expected.len(), SERVICES, "every service runs at {minute}");
        for (owner, count) in &expected {
            total += count;
            differences += (count - found.get(owner).copied().unwrap_or(0)).abs();
        }
    }
    assert!(differences * 100 <= total, "{differences} of {total} pod-minutes differ");
    assert_eq!(created_soon_after(&half, 60), created_soon_after(&full, 60), "nothing but what happened is created");
    let names = |ran: &Ran| -> Vec<String> {
        let standing =
            ran.nodes.iter().filter(|node| node.created <= at(61) && node.deleted.is_none_or(|gone| gone > at(61)));
        let mut names: Vec<String> = standing.map(|node| node.name.clone()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&half), names(&full), "the same nodes stand");
}

#[test]
fn pods_stand_at_the_start_on_the_nodes_that_they_had() {
    let before = run(&workload(), GROUPS, 0);
    let half = run(&recorded(&workload(), &before), RECORDED, 60);
    let load = |ran: &Ran, named: fn(&str) -> String| {
        let mut load: BTreeMap<(String, String), u32> = BTreeMap::new();
        for pod in ran.pods.iter().filter(|pod| pod.scheduled.is_some_and(|bound| bound < at(60))) {
            if pod.finished.or(pod.deleted).is_none_or(|end| end > at(60)) {
                *load.entry((named(pod.node.as_deref().unwrap_or_default()), pod.owner.clone())).or_default() += 1;
            }
        }
        load
    };
    assert_eq!(load(&half, str::to_owned), load(&before, real_name));
}

#[test]
fn without_recorded_places_pods_are_placed_before_the_clock_runs() {
    let half = run(&workload(), GROUPS, 60);
    let full = run(&workload(), GROUPS, 0);
    assert_eq!(half.meta.start, at(60));
    let count = |ran: &Ran| running(ran, at(60)).values().sum::<i64>();
    assert_eq!(count(&half), count(&full), "all of them run when the clock begins");
    let waited =
        half.pods.iter().filter(|pod| pod.created >= at(60) && pod.created < at(61) && pod.waited_for.is_some());
    assert_eq!(waited.count(), 0, "none of them waits in the figures");
    assert_eq!(created_soon_after(&half, 60), created_soon_after(&full, 60));
}

#[test]
fn a_first_moment_is_a_storm_unless_the_scenario_says_that_it_was_there() {
    let cold = run(&workload(), GROUPS, 0);
    assert!(created_soon_after(&cold, 0) > 50);
    let warm = run(&workload(), &format!("{GROUPS}begin: {{placement: schedule}}\n"), 0);
    assert_eq!(created_soon_after(&warm, 0), 0);
    assert!(running(&warm, at(0)).values().sum::<i64>() > 50);
}

#[test]
fn a_trace_that_knows_its_nodes_is_of_a_cluster_that_was_running() {
    let object = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "m-1"}});
    let node = json!({"node": {"at": at(0).to_string(), "node": "m-1", "object": object}});
    let ran = run(&format!("{}{node}\n", workload()), GROUPS, 0);
    assert_eq!(created_soon_after(&ran, 0), 0);
    assert!(running(&ran, at(0)).values().sum::<i64>() > 50);
}

#[test]
fn a_warmup_is_simulated_and_left_out_of_the_figures() {
    let warm = run(&workload(), &format!("{GROUPS}begin: {{warmup: 15m}}\n"), 0);
    assert_eq!(warm.meta.start, at(15));
    assert!(warm.pods.iter().any(|pod| pod.created < at(15)));
    assert_eq!(warm.meta.end, at(120));
}

#[test]
fn what_was_not_recorded_cannot_be_asked_for() {
    let refused = |scenario: &str| try_run(&workload(), scenario, 0).err().map(|error| error.to_string());
    assert!(refused(RECORDED).is_some_and(|why| why.contains("the trace has no recorded nodes")));
    let placed = format!("{GROUPS}begin: {{placement: recorded}}\n");
    assert!(refused(&placed).is_some_and(|why| why.contains("write `begin: {placement: schedule}`")));
}

#[test]
fn under_groups_recorded_nodes_join_the_group_that_takes_them_and_other_pods_are_placed_anew() {
    let trace = recorded(&workload(), &run(&workload(), GROUPS, 0));
    let group = |label: &str| {
        format!(
            "cluster: {{groups: {{general: {{match: {{pool: {label}}}, min: 2, max: 40, cpu: 4, memory: 16Gi, allocatable: {{cpu: 4, memory: 16Gi, pods: 110}}}}}}}}\n"
        )
    };
    let joined = run(&trace, &group("general"), 60);
    let standing = joined.nodes.iter().filter(|node| node.created < at(60)).count();
    assert!(standing > 2 && joined.nodes.iter().all(|node| node.group.as_deref() == Some("general")));
    assert!(joined.meta.warnings.iter().all(|warning| warning.code != "placed-anew"));
    let anew = run(&trace, &group("other"), 60);
    let told = anew.meta.warnings.iter().find(|warning| warning.code == "placed-anew").expect("it is told");
    assert!(told.count > 50, "{}", told.message);
    assert_eq!(running(&anew, at(60)).values().sum::<i64>(), running(&joined, at(60)).values().sum::<i64>());
}

/// A recording of two nodes, of which the first is closed after 20 minutes, opened again or not, and gone after 40.
fn closed_and_gone(is_opened: bool) -> String {
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"replicas": 8, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}},
    });
    let node = |minute: i64, name: &str, is_closed: bool| {
        let object = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
            "spec": {"unschedulable": is_closed}, "status": {"allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110"}}});
        json!({"node": {"at": at(minute).to_string(), "node": name, "object": object}}).to_string()
    };
    let head = json!({"simkube": "trace", "version": 1, "config": {"trackedObjects": {"apps/v1.Deployment": {}}}});
    let mut lines = vec![head.to_string(), json!({"at": at(0).to_string(), "apply": deployment}).to_string()];
    lines.push(json!({"at": at(120).to_string(), "mark": "moment"}).to_string());
    lines.extend([node(0, "m-1", false), node(0, "m-2", false), node(20, "m-1", true)]);
    lines.extend(is_opened.then(|| node(30, "m-1", false)));
    lines.push(json!({"node": {"at": at(40).to_string(), "node": "m-1"}}).to_string());
    lines.join("\n") + "\n"
}

#[test]
fn a_recorded_node_that_was_closed_until_it_went_is_drained_and_any_other_takes_its_pods_along() {
    let ended = |is_opened: bool| {
        let ran = run(&closed_and_gone(is_opened), RECORDED, 0);
        let gone = ran.pods.into_iter().filter(|pod| pod.node.as_deref() == Some("m-1"));
        gone.filter_map(|pod| Some((pod.deleted?.since(at(0)).as_micros() / 60_000_000, pod.ended_by)))
            .collect::<Vec<_>>()
    };
    let drained = ended(false);
    assert!(!drained.is_empty() && drained.iter().all(|(minute, _)| *minute == 20), "{drained:?}");
    assert!(drained.iter().all(|(_, by)| *by == Some(sk_record::EndedBy::Evicted)), "{drained:?}");
    let lost = ended(true);
    assert!(!lost.is_empty() && lost.iter().all(|(minute, _)| (40..=41).contains(minute)), "{lost:?}");
}

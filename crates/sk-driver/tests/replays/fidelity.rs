//! Fidelity of the whole: the same traces on the embedded engine and on the real control plane with KWOK, on the same fixed
//! nodes, compared by `skctl compare` and owner by owner.
//!
//! Two things must be the same. The pods of each owner over time: at any moment one side has as many as the other had at some
//! moment within [`LATENCY`] of wall time before or after it. And, where owners come seconds apart and the real scheduler
//! looks at one node at a time, the nodes on which each owner's pods were placed. docs/fidelity.md shows the output of this.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use serde_json::{Value, json};
use sk_api::Scenario;
use sk_core::{SimDuration, SimTime};
use sk_record::{PodRow, Run};
use sk_replay::embedded::{self, RunRequest};
use sk_replay::plan::Window;
use sk_replay::setup::Setup;
use sk_report::html::Asked;
use sk_report::{Analysis, Judgement, Terms};
use sk_store::trace::{self, Trace};
use sk_testkit::control_plane::ControlPlane;
use sk_testkit::objects;

use crate::support::*;

/// How much earlier or later one side may be, by the wall clock: what the API server, the controllers, the scheduler and
/// KWOK take on a machine that other tests share. At 40 times the speed it is 4 minutes of the trace.
const LATENCY: SimDuration = SimDuration::from_secs(6);
/// Seconds between two changes of a generated trace.
const APART: u32 = 3;

const SCENARIO: &str = "apiVersion: simkube.io/v1
kind: Scenario
cluster:
  groups:
    fixed: {min: 4, max: 4, cpu: 8, memory: 16Gi, ready: 0s}
autoscaler: {scale-down-enabled: false}
";

/// A trace, and how to play it.
struct Played {
    name: &'static str,
    trace: Arc<Trace>,
    speed: f64,
    /// Owners come seconds apart by the wall clock, so that placements can be compared.
    has_same_nodes: bool,
    /// Owners whose pods come by the wall clock of a cluster, not by the trace's.
    by_the_clock: &'static [&'static str],
}

#[tokio::test(flavor = "multi_thread")]
async fn the_repositorys_traces_have_the_same_pods_on_the_engine_and_on_a_cluster() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let open = |path: &str| Arc::new(trace::open(&root.join(path)).unwrap());
    let played = |name, path, speed, by_the_clock| Played {
        name,
        trace: open(path),
        speed,
        has_same_nodes: false,
        by_the_clock,
    };
    let all = [
        played("nginx", "examples/nginx.sktrace", 40.0, &[]),
        played("bare-pods", "crates/sk-store/tests/traces/bare-pods.sktrace", 30.0, &[]),
        played("every-part", "crates/sk-store/tests/traces/every-part.jsonl", 90.0, &["shop/CronJob/invoices"]),
    ];
    let cluster = one_node_at_a_time().await;
    compare_all(&cluster, &all).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn generated_traces_of_every_controller_have_the_same_pods_on_the_same_nodes() {
    let played = |name, seed| Played {
        name,
        trace: generated(seed).trace(),
        speed: 1.0,
        has_same_nodes: true,
        by_the_clock: &[],
    };
    let cluster = one_node_at_a_time().await;
    compare_all(&cluster, &[played("generated-1", 1), played("generated-2", 2), played("generated-3", 3)]).await;
}

/// Every kind of controller, in an order, with sizes and numbers that the seed chooses, [`APART`] seconds from one another;
/// then two of them grow, and one goes. The Job's pods end when nothing else happens any more.
fn generated(seed: u32) -> Story {
    let draw = |number: u32, most: u32| (seed.wrapping_mul(2_654_435_761).rotate_left(number * 5) >> 7) % most;
    let size =
        |number: u32| (format!("{}m", 200 + 100 * draw(number, 9)), format!("{}Mi", 256 * (1 + draw(number + 9, 6))));
    let mut owners = workloads(&size, &|number| 1 + draw(number + 3, 4));
    let turn = draw(1, owners.len() as u32) as usize;
    owners.rotate_left(turn);
    let mut applied = owners.clone();
    for owner in owners.iter().filter(|owner| ["Deployment", "StatefulSet"].contains(&owner["kind"].as_str().unwrap()))
    {
        let mut grown = owner.clone();
        grown["spec"]["replicas"] = json!(owner["spec"]["replicas"].as_u64().unwrap() + 3);
        applied.push(grown);
    }
    let last = (applied.len() as u32 + 1) * APART;
    let story = (1..).zip(&applied).fold(Story::of_secs(62), |story, (place, owner)| story.apply(place * APART, owner));
    let gone = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "set", "namespace": "shop"}});
    story.delete(last, &gone).lives("batch/v1.Job:shop/job", &[last])
}

/// One of each kind that has pods. The CronJob's time does not come.
fn workloads(size: &impl Fn(u32) -> (String, String), count: &impl Fn(u32) -> u32) -> Vec<Value> {
    let pod = |number: u32| {
        let (cpu, memory) = size(number);
        json!({"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu, "memory": memory}}}]})
    };
    let of = |api: &str, kind: &str, name: &str, number: u32, spec: Value| {
        let labels = json!({"app": name});
        let template = json!({"metadata": {"labels": labels}, "spec": pod(number)});
        let mut spec = spec;
        spec["template"] = template;
        spec["selector"] = json!({"matchLabels": labels});
        json!({"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": "shop"}, "spec": spec})
    };
    let run_to_end = |number: u32| {
        let mut spec = pod(number);
        spec["restartPolicy"] = json!("Never");
        spec
    };
    let job_pods = count(4);
    vec![
        of("apps/v1", "Deployment", "web", 1, json!({"replicas": count(1)})),
        of(
            "apps/v1",
            "StatefulSet",
            "db",
            2,
            json!({"replicas": count(2), "serviceName": "db", "podManagementPolicy": "Parallel"}),
        ),
        of("apps/v1", "DaemonSet", "agent", 3, json!({})),
        of("apps/v1", "ReplicaSet", "set", 4, json!({"replicas": count(3)})),
        json!({
            "apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "old", "namespace": "shop"},
            "spec": {
                "replicas": count(5), "selector": {"app": "old"},
                "template": {"metadata": {"labels": {"app": "old"}}, "spec": pod(8)},
            },
        }),
        json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job", "namespace": "shop"},
            "spec": {"completions": job_pods, "parallelism": job_pods, "template": {"spec": run_to_end(5)}},
        }),
        json!({
            "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "yearly", "namespace": "shop"},
            "spec": {"schedule": "0 0 1 7 *", "jobTemplate": {"spec": {"template": {"spec": run_to_end(6)}}}},
        }),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bare", "namespace": "shop"}, "spec": pod(7)}),
    ]
}

/// Plays each trace on both sides, shows what `skctl compare` says, and compares owner by owner.
async fn compare_all(cluster: &ControlPlane, all: &[Played]) {
    install_kinds(cluster).await;
    let folder = tempfile::tempdir().unwrap();
    let mut differences = Vec::new();
    for played in all {
        let [engine, real] = ["embedded", "cluster"].map(|side| folder.path().join(format!("{}-{side}", played.name)));
        simulate(&played.trace, &engine);
        replay(cluster, played, &real).await;
        println!("{}", compared(&engine, &real));
        differences.extend(differing(played, &pods(&engine), &pods(&real)));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// A control plane whose scheduler looks at one node at a time, with the scenario's nodes.
async fn one_node_at_a_time() -> ControlPlane {
    let options = sk_testkit::Options::default()
        .stages(&sk_driver::stages_yaml())
        .webhook_routing()
        .service_account_admission()
        .feature_gate("OpportunisticBatching", false)
        .feature_gate("WatchListClient", false)
        .scheduler(json!({"parallelism": 1}));
    let cluster = ControlPlane::start(options).await.expect("the control plane starts");
    let nodes = sk_driver::nodes::from_scenario(&scenario()).into_iter().map(objects::object);
    cluster.create_nodes(nodes).await.expect("the virtual nodes are ready");
    cluster
}

fn scenario() -> Scenario {
    Scenario::parse("test.yaml", SCENARIO).unwrap()
}

fn simulate(trace: &Trace, out: &Path) {
    let (start, end) = trace.span().unwrap();
    let scenario = scenario();
    let (setup, text) = (Setup::new(&scenario), scenario.to_yaml());
    let window = Window { start, end, includes_end: true };
    let request = RunRequest::new(trace, window, &setup, &text, "embedded");
    let staged = embedded::run(&request, out, &mut |_| ControlFlow::Continue(())).unwrap();
    staged.publish().unwrap();
    judge(out);
}

async fn replay(cluster: &ControlPlane, played: &Played, out: &Path) {
    let mut play = Play::of(played.name, played.speed, played.trace.clone());
    play.options.destination = sk_driver::cluster::Destination::Folder(out.to_owned());
    let outcome = play.run(cluster.client()).await.unwrap();
    assert_eq!((outcome.stopped, outcome.totals.refused), (None, 0), "{}", played.name);
    judge(out);
}

/// Lays the figures beside a record, as `skctl run` does.
fn judge(dir: &Path) {
    let analysis = Analysis::of(&Run::open(dir).unwrap()).unwrap();
    let judgement = Judgement::of(&analysis, Vec::new(), &Terms::default());
    for (name, content) in sk_report::files(&analysis, &judgement, Asked { text: SCENARIO, differs: &[] }).unwrap() {
        fs::write(dir.join(name), content).unwrap();
    }
}

/// What `skctl compare` says.
fn compared(engine: &Path, real: &Path) -> String {
    let skctl = sk_testkit::programs::built("skctl", Path::new(env!("CARGO_BIN_EXE_sk-driver")));
    let output = Command::new(skctl).arg("compare").args([engine, real]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

fn pods(dir: &Path) -> Vec<PodRow> {
    Run::open(dir).unwrap().pods().unwrap().map(Result::unwrap).collect()
}

/// How the two sides differ, owner by owner.
fn differing(played: &Played, engine: &[PodRow], real: &[PodRow]) -> Vec<String> {
    let owners: BTreeSet<&str> = engine.iter().chain(real).map(|pod| pod.owner.as_str()).collect();
    let latency = SimDuration::from_micros((LATENCY.as_micros() as f64 * played.speed) as i64);
    let mut found = Vec::new();
    for owner in owners.into_iter().filter(|owner| !played.by_the_clock.contains(owner)) {
        let [a, b] = [engine, real].map(|pods| pods.iter().filter(|pod| pod.owner == owner).collect::<Vec<_>>());
        for (one, other) in [(&a, &b), (&b, &a)] {
            found.extend(outside(one, other, latency).map(|what| format!("{} {owner}: {what}", played.name)));
        }
        if played.has_same_nodes && nodes(&a) != nodes(&b) {
            found.push(format!("{} {owner}: on {:?}, really on {:?}", played.name, nodes(&a), nodes(&b)));
        }
    }
    found
}

/// The first moment at which one side has a number of pods that the other did not have within the latency.
fn outside(one: &[&PodRow], other: &[&PodRow], latency: SimDuration) -> Option<String> {
    let moments = |pods: &[&PodRow]| -> BTreeSet<SimTime> {
        pods.iter().flat_map(|pod| [Some(pod.created), end(pod)]).flatten().collect()
    };
    let theirs = moments(other);
    moments(one).into_iter().find_map(|at| {
        let (from, to) = (at - latency, at + latency);
        let near = [from, to].into_iter().chain(theirs.range(from..=to).copied());
        let counts: Vec<usize> = near.map(|at| alive(other, at)).collect();
        let (least, most) = (*counts.iter().min()?, *counts.iter().max()?);
        let here = alive(one, at);
        (here < least || here > most)
            .then(|| format!("{here} pods at {at}, where the other side has {least} to {most}"))
    })
}

fn end(pod: &PodRow) -> Option<SimTime> {
    pod.finished.into_iter().chain(pod.deleted).min()
}

fn alive(pods: &[&PodRow], at: SimTime) -> usize {
    pods.iter().filter(|pod| pod.created <= at && end(pod).is_none_or(|end| at < end)).count()
}

/// How many pods were on each node.
fn nodes(pods: &[&PodRow]) -> BTreeMap<String, usize> {
    let mut nodes = BTreeMap::new();
    for node in pods.iter().filter_map(|pod| pod.node.clone()) {
        *nodes.entry(node).or_default() += 1;
    }
    nodes
}

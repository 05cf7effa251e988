//! The nginx story: played on the real control plane, recorded, exported, and replayed on the embedded engine. It is the
//! same story: the same replica counts in the same order, and the same pods of the same owner.

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use sk_core::SimTime;
use sk_record::{PodRow, Run};
use sk_store::trace::{self, Change};
use sk_testkit::objects;

use super::fixture::Fixture;

const OWNER: &str = "default/Deployment/nginx";

/// Nodes enough for ten pods, as in the cluster, and none to come or go.
const SCENARIO: &str = "apiVersion: simkube.io/v1
kind: Scenario
cluster:
  groups:
    fixed: {min: 2, max: 2, cpu: 16, memory: 64Gi}
assert:
  - unschedulable.pods == 0
";

/// The nodes that the recording has, as they came and went.
const RECORDED_NODES: &str = "apiVersion: simkube.io/v1
kind: Scenario
cluster: {nodes: recorded}
";

/// What the story does to the Deployment: so many replicas, or none at all.
const STORY: [Option<u32>; 4] = [Some(2), Some(10), Some(5), None];

#[tokio::test(flavor = "multi_thread")]
async fn a_story_that_was_recorded_is_told_again_by_the_embedded_engine() {
    let fixture = Fixture::start().await;
    fixture.install_tracer().await;
    let tracer = fixture.start_tracer().await;
    fixture.until_well("tracer").await;
    for replicas in STORY {
        play(&fixture, replicas).await;
    }
    fixture.skctl().args(["export", "-s", fixture.since(), "-O", "nginx.sktrace"]).assert().success();
    tracer.shutdown().await.expect("the tracer ends");

    let turns = turns(&fixture);
    let replicas: Vec<Option<u32>> = turns.iter().map(|(_, replicas)| *replicas).collect();
    assert_eq!(replicas, STORY, "the trace tells the story");

    std::fs::write(fixture.path("nodes.yaml"), SCENARIO).expect("a temporary folder can be written to");
    fixture.skctl().args(["run", "nginx.sktrace", "-f", "nodes.yaml", "-O", "run"]).assert().success();
    let run = Run::open(&fixture.path("run")).expect("the run opens");
    let pods: Vec<PodRow> = run.pods().expect("pods").collect::<Result<_, _>>().expect("the pods are whole");
    assert!(pods.iter().all(|pod| pod.owner == OWNER), "somebody else's pods: {pods:?}");
    assert_eq!(pods.len(), 10, "two, and eight more");
    assert_eq!(pods.iter().filter(|pod| pod.deleted.is_some()).count(), 10, "none is left");

    // How many there were when the next thing happened, and at the end.
    let end = run.meta().end + sk_core::SimDuration::from_micros(1);
    let ends = turns.iter().skip(1).map(|(at, _)| *at).chain([end]);
    let seen: Vec<u32> = ends.map(|at| alive_before(&pods, at)).collect();
    let told: Vec<u32> = STORY.iter().map(|replicas| replicas.unwrap_or(0)).collect();
    assert_eq!(seen, told, "the replay tells the story");
    a_replay_on_the_recorded_nodes_is_close_to_the_recording(&fixture);
}

/// `skctl compare` of the recording and its own replay: every pod has a counterpart that started within five seconds of it.
/// Under the real scheduler's default flags chance has a part in where pods go.
fn a_replay_on_the_recorded_nodes_is_close_to_the_recording(fixture: &Fixture) {
    std::fs::write(fixture.path("recorded.yaml"), RECORDED_NODES).expect("a temporary folder can be written to");
    fixture.skctl().args(["run", "nginx.sktrace", "-f", "recorded.yaml", "-O", "replay"]).assert().success();
    let mut compare = fixture.skctl();
    compare.args(["compare", "nginx.sktrace", "replay"]);
    for assertion in [
        "fidelity.pods.compared == 10",
        "fidelity.pods.unmatched == 0",
        "fidelity.pods.within_5s == 1.0",
        "fidelity.placements.same >= 0.8",
    ] {
        compare.args(["--assert", assertion]);
    }
    let compared = compare.assert().success();
    println!("{}", String::from_utf8_lossy(&compared.get_output().stdout));
}

/// Does it, and waits until the cluster has followed.
async fn play(fixture: &Fixture, replicas: Option<u32>) {
    let deployments: Api<Deployment> = Api::default_namespaced(fixture.cluster.client());
    match replicas {
        Some(replicas) if deployments.get_opt("nginx").await.expect("the server answers").is_none() => {
            let nginx = objects::deployment().name("nginx").replicas(replicas).requests("1", "1Gi");
            fixture.cluster.create(&nginx).await.expect("a Deployment can be made");
        }
        Some(replicas) => {
            let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
            deployments.patch("nginx", &PatchParams::default(), &patch).await.expect("it can be scaled");
        }
        None => {
            deployments.delete("nginx", &DeleteParams::default()).await.expect("it can be deleted");
        }
    }
    fixture.until_running("nginx", replicas.unwrap_or(0) as usize).await;
    // Quiet after each turn, so that the replay, whose pods take two seconds to start, can follow too.
    tokio::time::sleep(std::time::Duration::from_secs(4)).await;
}

/// When the trace says that the Deployment changed its number of replicas, and to what.
fn turns(fixture: &Fixture) -> Vec<(SimTime, Option<u32>)> {
    let trace = trace::open(&fixture.path("nginx.sktrace")).expect("the trace opens");
    let mut turns: Vec<(SimTime, Option<u32>)> = Vec::new();
    for record in trace.records().expect("the records can be read") {
        let record = record.expect("the trace is whole");
        let replicas = match &record.change {
            Change::Apply(object) if object.reference().key.name == "nginx" => {
                Some(object.value().pointer("/spec/replicas").and_then(Value::as_u64).expect("a number") as u32)
            }
            Change::Delete(deletion) if deletion.object.key.name == "nginx" => None,
            _ => continue,
        };
        if turns.last().is_none_or(|(_, last)| *last != replicas) {
            turns.push((record.at, replicas));
        }
    }
    turns
}

fn alive_before(pods: &[PodRow], at: SimTime) -> u32 {
    pods.iter().filter(|pod| pod.created < at && pod.deleted.is_none_or(|deleted| deleted >= at)).count() as u32
}

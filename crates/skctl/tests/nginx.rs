//! The founding demonstration: nodes follow pods from 1 to 10 and come down again. The whole curve, minute by minute.

use std::path::Path;

use assert_cmd::Command;
use sk_core::{SimDuration, SimTime};
use sk_record::{NodeRow, PodRow, Run};

const STEP: SimDuration = SimDuration::from_secs(30);

fn run() -> (tempfile::TempDir, Run) {
    let dir = tempfile::TempDir::new().expect("there is room for a temporary folder");
    let mut command = Command::cargo_bin("skctl").expect("the binary of this crate is built");
    command.current_dir(dir.path()).args(["run", "example:nginx", "-q", "-O", "run"]).assert().success();
    let run = Run::open(&dir.path().join("run")).expect("the run opens");
    (dir, run)
}

fn is_between(at: SimTime, from: Option<SimTime>, to: Option<SimTime>) -> bool {
    from.is_some_and(|from| from <= at) && to.is_none_or(|to| at < to)
}

/// One line per half minute: running pods, pending pods, nodes, ready nodes.
fn curve(run: &Run) -> String {
    let pods: Vec<PodRow> = run.pods().expect("pods").collect::<Result<_, _>>().expect("the pods are whole");
    let nodes: Vec<NodeRow> = run.nodes().expect("nodes").collect::<Result<_, _>>().expect("the nodes are whole");
    let (start, end) = (run.meta().start, run.meta().end);
    let mut text = String::from("time    running pending nodes ready\n");
    let mut at = start + SimDuration::from_secs(15);
    while at < end {
        let running = pods.iter().filter(|pod| is_between(at, pod.started, pod.finished.or(pod.deleted))).count();
        let pending =
            pods.iter().filter(|pod| is_between(at, Some(pod.created), pod.scheduled.or(pod.deleted))).count();
        let present = nodes.iter().filter(|node| is_between(at, Some(node.created), node.deleted)).count();
        let ready = nodes.iter().filter(|node| is_between(at, node.ready, node.deleted)).count();
        let time = at.since(start).to_string();
        text += &format!("{time:<8}{running:>7}{pending:>8}{present:>6}{ready:>6}\n");
        at += STEP;
    }
    text
}

#[test]
fn nodes_follow_pods_from_1_to_10_and_come_down_again() {
    let (_dir, run) = run();
    let curve = curve(&run);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/nginx-curve.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &curve).expect("the golden file can be written");
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(curve == golden, "the curve changed; if that is meant, UPDATE_GOLDEN=1 writes it:\n{curve}");
}

#[test]
fn every_pod_is_accounted_for() {
    let (_dir, run) = run();
    let pods: Vec<PodRow> = run.pods().expect("pods").collect::<Result<_, _>>().expect("the pods are whole");
    let of = |owner: &str| pods.iter().filter(|pod| pod.owner == owner).count();
    assert_eq!(of("default/Deployment/nginx"), 10);
    assert_eq!((of("monitoring/Deployment/node-watch"), of("web-tools/Deployment/status-page")), (1, 1));
    assert!(pods.iter().all(|pod| pod.started.is_some()), "every pod ran");
    let still_there = pods.iter().filter(|pod| pod.deleted.is_none()).count();
    assert_eq!(still_there, 2, "the request-less workloads stay");
}

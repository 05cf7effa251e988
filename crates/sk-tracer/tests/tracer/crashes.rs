//! Kill −9, of the tracer and of the API server, at random moments in a storm of changes: what the log has in the end is
//! what the server has, and every change that the server took is in it, unless a recorded gap says that it may not be.
//!
//! The witness is the storm itself: each write carries a number that is never used again, and is noted with its time once
//! the server has acknowledged it.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kube::Client;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use sk_core::SimTime;
use sk_store::log::{Fact, Log};
use sk_testkit::control_plane::{ControlPlane, eventually};
use sk_testkit::{Component, Options};

use crate::support::{self, LIMIT, Process, api, entries, gaps, now, until_ready};

const CONFIG: &str = "trackedObjects: {v1.ConfigMap: {}}\nprivacy: full\nnamespaces: {include: [default]}\n";
/// Killings of the tracer alone; then of the API server. Twenty in all.
const TRACER_KILLS: usize = 13;
const SERVER_KILLS: usize = 7;
/// Objects that are written to by turns.
const OBJECTS: u64 = 40;
/// Up to so long the storm goes on between two killings.
const LONGEST_CALM: Duration = Duration::from_millis(1_500);
const SHORTEST_CALM: Duration = Duration::from_millis(100);

/// A write that the server has acknowledged.
#[derive(Clone, Debug)]
struct Written {
    number: u64,
    sent: SimTime,
    acknowledged: SimTime,
}

/// Somebody who writes without pause.
struct Storm {
    written: Arc<Mutex<Vec<Written>>>,
    stop: Arc<AtomicBool>,
    task: tokio::task::JoinHandle<()>,
}

impl Storm {
    fn begin(client: Client) -> Self {
        let (written, stop) = (Arc::default(), Arc::new(AtomicBool::new(false)));
        let task = tokio::spawn(blow(client, Arc::clone(&written), Arc::clone(&stop)));
        Self { written, stop, task }
    }

    async fn end(self) -> Vec<Written> {
        self.stop.store(true, Ordering::Relaxed);
        self.task.await.expect("the storm ends by itself");
        self.written.lock().expect("nobody panicked").clone()
    }
}

async fn blow(client: Client, written: Arc<Mutex<Vec<Written>>>, stop: Arc<AtomicBool>) {
    let config_maps = api(client, "v1.ConfigMap", "configmaps", Some("default"));
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let name = format!("storm-{}", number % OBJECTS);
        // Now and then an object goes, and comes back with the next write.
        if number % 97 == 0 {
            let _ = config_maps.delete(&name, &DeleteParams::default()).await;
        }
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"n": number.to_string()}});
        let sent = now();
        let params = PatchParams::apply("storm").force();
        match config_maps.patch(&name, &params, &Patch::Apply(&body)).await {
            Ok(_) => {
                let acknowledged = now();
                written.lock().expect("nobody panicked").push(Written { number, sent, acknowledged });
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

/// Some time, never the same.
async fn calm() {
    let share = RandomState::new().build_hasher().finish() as f64 / u64::MAX as f64;
    let calm = SHORTEST_CALM + (LONGEST_CALM - SHORTEST_CALM).mul_f64(share);
    tokio::time::sleep(calm).await;
}

struct Scene {
    config: PathBuf,
    data: PathBuf,
    kubeconfig: PathBuf,
}

impl Scene {
    fn start(&self) -> Process {
        Process::start(&self.config, &self.data, &self.kubeconfig, &["--insecure"])
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_killings_in_a_storm_lose_nothing_but_recorded_gaps() {
    let mut cluster = ControlPlane::start(Options::api_only()).await.expect("a control plane starts");
    let folder = tempfile::tempdir().unwrap();
    let scene = Scene {
        config: folder.path().join("config.yaml"),
        data: folder.path().join("data"),
        kubeconfig: cluster.kubeconfig(),
    };
    std::fs::write(&scene.config, CONFIG).unwrap();
    let storm = Storm::begin(cluster.client());

    let mut tracer = scene.start();
    until_ready(&tracer).await;
    let recording_since = now();
    // A tracer that is killed before its first sync has seen nothing; an export syncs.
    support::until_recorded(&tracer, recording_since, "+ ConfigMap default/storm-1").await;
    for _ in 0..TRACER_KILLS {
        calm().await;
        tracer.kill();
        tracer = scene.start();
    }
    until_ready(&tracer).await;
    calm().await;
    tracer.kill();
    let found = gaps(&support::open(&scene.data).reader());
    assert!(found.is_empty(), "the API server had the history all along, so nothing was missed: {found:?}");

    tracer = scene.start();
    for _ in 0..SERVER_KILLS {
        calm().await;
        cluster.kill(Component::ApiServer).await.unwrap();
        cluster.restart(Component::ApiServer).await.unwrap();
    }
    calm().await;
    let written = storm.end().await;
    until_last_is_recorded(&cluster, &tracer, written.last().expect("something was written")).await;
    assert!(tracer.stop().success(), "it ends in order when it is asked to");

    let log = support::open(&scene.data);
    assert_eq!(recorded_numbers(&log), server_numbers(&cluster).await, "the final state is the server's");
    let missing = missing_outside_gaps(&log, &written, recording_since);
    assert!(
        missing.is_empty(),
        "{} writes are missing outside the gaps {:?}: {missing:?}",
        missing.len(),
        gaps(&log.reader())
    );
}

/// Waits until the tracer has stored what was written last, as its metrics tell: everything received, nothing queued.
async fn until_last_is_recorded(cluster: &ControlPlane, tracer: &Process, last: &Written) {
    until_ready(tracer).await;
    let marker = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "marker"}, "data": {"n": "end"}});
    let config_maps = api(cluster.client(), "v1.ConfigMap", "configmaps", Some("default"));
    eventually("the marker to be written", LIMIT, || async {
        config_maps.patch("marker", &PatchParams::apply("storm").force(), &Patch::Apply(&marker)).await.map(Some)
    })
    .await
    .expect("the API server is back");
    support::until_recorded(tracer, last.sent, "+ ConfigMap default/marker").await;
}

fn number(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    Some(body["data"]["n"].as_str()?.to_owned())
}

/// The last number of each object, as the log has it.
fn recorded_numbers(log: &Log) -> BTreeMap<String, String> {
    let numbered = log.state().objects().map(|(object, live)| (object.key.name.to_string(), number(&live.body)));
    numbered.filter_map(|(name, number)| Some((name, number?))).collect()
}

/// The last number of each object, as the server has it.
async fn server_numbers(cluster: &ControlPlane) -> BTreeMap<String, String> {
    let config_maps = api(cluster.client(), "v1.ConfigMap", "configmaps", Some("default"));
    let listed = config_maps.list(&Default::default()).await.expect("the server is back");
    let numbered = listed
        .items
        .into_iter()
        .filter_map(|object| Some((object.metadata.name?, object.data["data"]["n"].as_str()?.to_owned())));
    numbered.collect()
}

/// Acknowledged writes of which the log knows nothing although no gap excuses it. What was overwritten before the first
/// list was never promised.
fn missing_outside_gaps(log: &Log, written: &[Written], since: SimTime) -> Vec<Written> {
    let reader = log.reader();
    let seen: BTreeSet<_> = entries(&reader)
        .iter()
        .filter_map(|entry| match &entry.fact {
            Fact::Applied(applied) => number(&applied.body),
            _ => None,
        })
        .collect();
    let mut gaps = gaps(&reader);
    gaps.retain(|gap| gap.kind.as_ref().is_none_or(|kind| kind.kind == "ConfigMap"));
    let excused = |write: &Written| gaps.iter().any(|gap| gap.from <= write.acknowledged && write.sent <= gap.to);
    let missing = written.iter().filter(|write| write.sent > since && !seen.contains(&write.number.to_string()));
    let (excused, missing): (Vec<_>, Vec<_>) = missing.cloned().partition(excused);
    println!("{} acknowledged writes, {} of them only within one of {} gaps", written.len(), excused.len(), gaps.len());
    missing
}

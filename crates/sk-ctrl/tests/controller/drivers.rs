//! Whole simulations with the real driver: a recorded trace, virtual nodes, the webhook behind its Service, the record in
//! the controller's keeping; and what may happen to them on the way. One cluster is shared, for one simulation runs at a
//! time anyway.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use http::{Method, Request};
use kube::api::{Api, DeleteParams};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use sk_api::simulation::{SimulationRoot, SimulationStatus, State, names};
use sk_ctrl::install::Options;
use sk_testkit::{Component, objects};

use crate::lab::Lab;
use crate::records::{ask, caller};

/// Drivers that are killed.
const KILLINGS: usize = 4;
/// The example's 40 minutes take 4 s at this speed.
const SPEED: f64 = 600.0;
/// With a driver to which something happens they take two minutes, so that its end never comes first. It replays after one to
/// three: a killing may come before its webhook answers, before its first event, or in the middle.
const SPEED_OF_THE_DOOMED: f64 = 20.0;
const LATEST_MS: u64 = 6000;

#[tokio::test(flavor = "multi_thread")]
async fn the_real_driver_replays_a_trace_and_whatever_happens_to_it_nothing_stays() {
    let stage = tempfile::tempdir().expect("a folder");
    let doomed = doomed_driver(stage.path());
    let plane = sk_testkit::Options::default().stages(&stages());
    let programs = [("sk-driver:real", driver()), ("sk-driver:doomed", doomed)];
    let programs: Vec<_> = programs.iter().map(|(image, program)| (*image, program.as_path())).collect();
    let installed = Options { allow_hooks: true, ..Options::default() };
    let mut lab = Lab::start_with(plane, installed, &programs).await;
    create_nodes(&lab).await;
    let _controller = lab.controller().await;
    let before = lab.settled().await;

    a_trace_is_replayed_and_its_record_is_kept(&lab).await;
    lab.assert_nothing_left(&before).await;
    hooks_of_a_repetition_count_unless_they_are_ignored(&lab, stage.path()).await;
    killed_drivers_fail_their_simulations_and_the_next_has_its_turn(&lab, stage.path()).await;
    lab.assert_nothing_left(&before).await;
    a_run_whose_root_is_deleted_fails(&lab).await;
    lab.assert_nothing_left(&before).await;
    a_run_whose_webhook_is_not_reached_fails(&lab).await;
    lab.assert_nothing_left(&before).await;
    // An API server that starts again refuses everything for a moment, until it has read who may do what.
    lab.assert_nothing_was_forbidden();
    a_restart_of_the_api_server_is_survived(&mut lab).await;
    lab.assert_nothing_left(&before).await;
}

/// The trace is sent to the controller, as `skctl run --cluster` does, and fetched by the driver.
async fn a_trace_is_replayed_and_its_record_is_kept(lab: &Lab) {
    let reader = caller(lab, &lab.token(names::RECORD_READER, Some(names::CONTROLLER_AUDIENCE)).await).await;
    let bytes = fs::read(trace()).expect("the example's trace");
    let sha256: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    let request = Request::put(format!("/traces/{sha256}")).body(bytes).expect("a request");
    reader.request_text(request).await.expect("the trace is taken");
    let mut twice = spec(lab);
    twice["repetitions"] = json!(2);
    twice["driver"]["tracePath"] = json!(names::uploaded_trace_path(&sha256));
    lab.simulate("whole", "sk-driver:real", &twice).await;
    // The driver writes the one, the controller the other; which comes first is nobody's business.
    lab.until("whole", "progress", has_progress).await;
    lab.until("whole", "its run", |status| !matches!(status.state, None | Some(State::Initializing))).await;
    let status = lab.ends("whole").await;
    assert_eq!((status.state, status.completed_runs), (Some(State::Finished), Some(2)), "{status:?}");
    assert_eq!(status.record_path.as_deref(), Some("/records/whole"));

    assert_eq!(ask(&reader, Method::GET, "/records/whole", "").await.as_deref(), Ok("[0,1]"));
    assert!(!ask(&reader, Method::GET, "/logs/whole", "").await.expect("a log").is_empty());
    lab.delete("whole").await;
}

/// The driver runs these, not the controller: one that fails and is ignored, and one that is not.
async fn hooks_of_a_repetition_count_unless_they_are_ignored(lab: &Lab, stage: &Path) {
    let note = stage.join("hooks");
    let hook = |word: &str, code: u8, ignored: bool| {
        let script = format!("echo {word} >> {}; echo {word} went wrong >&2; exit {code}", note.display());
        json!({"cmd": "sh", "args": ["-c", script], "ignoreFailure": ignored})
    };
    let mut hooked = spec(lab);
    hooked["hooks"] = json!({
        "preRunHooks": [hook("a", 3, true), hook("b", 0, false)], "postRunHooks": [hook("z", 4, false)],
    });
    lab.simulate("hooked", "sk-driver:real", &hooked).await;
    let status = lab.ends("hooked").await;
    assert_eq!((status.state, status.reason.as_deref()), (Some(State::Failed), Some("HookFailed")), "{status:?}");
    let message = status.message.unwrap_or_default();
    assert!(message.contains("postRun hook `sh`") && message.contains("z went wrong"), "{message}");
    assert_eq!(fs::read_to_string(&note).expect("notes"), "a\nb\nz\n");
    lab.delete("hooked").await;
}

async fn killed_drivers_fail_their_simulations_and_the_next_has_its_turn(lab: &Lab, stage: &Path) {
    let random = RandomState::new();
    let moments: Vec<_> = (0..KILLINGS).map(|killing| random.hash_one(killing) % LATEST_MS).collect();
    for (killing, moment) in moments.iter().enumerate() {
        let name = format!("doomed-{killing}");
        fs::write(stage.join(&name), format!("{}.{:03}", moment / 1000, moment % 1000)).expect("a moment");
        lab.simulate(&name, "sk-driver:doomed", &slow_spec(lab)).await;
    }
    lab.simulate("heir", "sk-driver:real", &spec(lab)).await;
    for killing in 0..KILLINGS {
        let status = lab.ends(&format!("doomed-{killing}")).await;
        let told = (status.state, status.reason.as_deref());
        assert_eq!(told, (Some(State::Failed), Some("DriverKilled")), "killed after {moments:?} ms: {status:?}");
    }
    let status = lab.ends("heir").await;
    assert_eq!(status.state, Some(State::Finished), "{status:?}");
}

/// Somebody deletes the root that everything belongs to, and does not wait for the rest.
async fn a_run_whose_root_is_deleted_fails(lab: &Lab) {
    lab.simulate("uprooted", "sk-driver:real", &slow_spec(lab)).await;
    lab.until("uprooted", "progress", has_progress).await;
    let roots: Api<SimulationRoot> = Api::all(lab.cluster.client());
    let root = names::metaroot("uprooted");
    roots.delete(&root, &DeleteParams::background()).await.expect("the root can be deleted");
    let status = lab.ends("uprooted").await;
    assert_eq!((status.state, status.reason.as_deref()), (Some(State::Failed), Some("RootGone")), "{status:?}");
}

/// The driver listens where its Service does not lead: no pod of the run could be made, so that it does not begin.
async fn a_run_whose_webhook_is_not_reached_fails(lab: &Lab) {
    let mut deaf = spec(lab);
    deaf["driver"]["args"] = json!(["--bind", "127.0.0.1:0", "--webhook-within", "2"]);
    lab.simulate("deaf", "sk-driver:real", &deaf).await;
    let status = lab.ends("deaf").await;
    assert_eq!((status.state, status.reason.as_deref()), (Some(State::Failed), Some("WebhookUnreachable")));
    let message = status.message.unwrap_or_default();
    assert!(message.starts_with("the API server did not reach the driver's webhook"), "{message}");
}

async fn a_restart_of_the_api_server_is_survived(lab: &mut Lab) {
    let mut longer = spec(lab);
    longer["speed"] = json!(SPEED / 2.0);
    lab.simulate("steadfast", "sk-driver:real", &longer).await;
    lab.until("steadfast", "progress", has_progress).await;
    lab.cluster.kill(Component::ApiServer).await.expect("the API server can be killed");
    lab.cluster.restart(Component::ApiServer).await.expect("the API server starts again");
    let status = lab.ends("steadfast").await;
    let refused = status.totals.as_ref().map(|totals| totals.refused);
    assert_eq!((status.state, refused), (Some(State::Finished), Some(0)), "{status:?}");
}

fn has_progress(status: &SimulationStatus) -> bool {
    status.progress.as_ref().is_some_and(|progress| progress.events_done > 0)
}

/// The example's trace, from this machine's disk.
fn spec(lab: &Lab) -> Value {
    json!({"driver": {"tracePath": trace().to_string_lossy(), "port": lab.driver_port}, "speed": SPEED})
}

fn slow_spec(lab: &Lab) -> Value {
    let mut slow = spec(lab);
    slow["speed"] = json!(SPEED_OF_THE_DOOMED);
    slow
}

fn trace() -> PathBuf {
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/nginx.sktrace").canonicalize();
    trace.expect("the example's trace")
}

fn driver() -> PathBuf {
    sk_testkit::programs::built("sk-driver", Path::new(env!("CARGO_BIN_EXE_sk-ctrl")))
}

/// The real driver, killed after as many seconds as a file called like its simulation says.
fn doomed_driver(stage: &Path) -> PathBuf {
    let (script, driver) = (stage.join("doomed"), driver());
    let lines = [
        "#!/bin/sh".to_owned(),
        format!("'{}' \"$@\" &", driver.display()),
        format!("sleep \"$(cat '{}'/\"$3\")\"", stage.display()),
        // One that has ended is one that was killed too late, and the test says when.
        "kill -9 $!".to_owned(),
        "wait $!".to_owned(),
    ];
    fs::write(&script, lines.join("\n")).expect("a script");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("a script that can be run");
    script
}

async fn create_nodes(lab: &Lab) {
    let nodes = ["a", "b"].map(|name| {
        let taint = json!([{"key": names::NODE_TAINT, "effect": "NoSchedule", "value": "true"}]);
        let (label, value) = names::NODE_SELECTOR;
        // The group is how the shipped stages know a node for theirs.
        let node = objects::node().name(name).label(label, value).label("simkube.io/node-group", "small");
        node.capacity("16", "64Gi", "110").set("/spec/taints", taint)
    });
    lab.cluster.create_nodes(nodes).await.expect("virtual nodes");
}

/// The stages that are shipped with the driver, as one stream.
fn stages() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sk-driver/stages");
    let mut files: Vec<_> = fs::read_dir(folder).expect("stages").map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    files.iter().map(|file| fs::read_to_string(file).expect("a stage")).collect::<Vec<_>>().join("\n---\n")
}

//! A whole simulation with the real driver: a recorded trace, virtual nodes, the webhook behind its Service, and the
//! record in the controller's keeping.

use std::path::{Path, PathBuf};

use http::Method;
use serde_json::json;
use sk_api::simulation::{State, names};
use sk_ctrl::install::Options;
use sk_testkit::objects;

use crate::lab::Lab;
use crate::records::{ask, caller};

fn driver() -> PathBuf {
    sk_testkit::programs::built("sk-driver", Path::new(env!("CARGO_BIN_EXE_sk-ctrl")))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_is_replayed_by_the_real_driver_and_its_record_is_kept() {
    let stages: String = stages();
    let plane = sk_testkit::Options::default().stages(&stages);
    let lab = Lab::start_with(plane, Options::default(), &[("sk-driver:real", &driver())]).await;
    let nodes = ["a", "b"].map(|name| {
        let taint = json!([{"key": names::NODE_TAINT, "effect": "NoSchedule", "value": "true"}]);
        let (label, value) = names::NODE_SELECTOR;
        // The group is how the shipped stages know a node for theirs.
        let node = objects::node().name(name).label(label, value).label("simkube.io/node-group", "small");
        node.capacity("16", "64Gi", "110").set("/spec/taints", taint)
    });
    lab.cluster.create_nodes(nodes).await.expect("virtual nodes");
    let _controller = lab.controller().await;
    let before = lab.settled().await;

    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/nginx.sktrace").canonicalize();
    let trace = trace.expect("the example's trace");
    let spec = json!({
        "driver": {"tracePath": trace.to_string_lossy(), "port": 18_888}, "speed": 240.0, "repetitions": 2,
    });
    lab.simulate("whole", "sk-driver:real", &spec).await;
    let running = lab.until("whole", "progress", |status| status.progress.as_ref().is_some_and(|p| p.events_done > 0));
    assert_eq!(running.await.state, Some(State::Running));
    let status = lab.ends("whole").await;
    assert_eq!((status.state, status.completed_runs), (Some(State::Finished), Some(2)), "{status:?}");
    assert_eq!(status.record_path.as_deref(), Some("/records/whole"));
    lab.assert_nothing_left(&before).await;

    let reader = caller(&lab, &lab.token(names::RECORD_READER, Some(names::CONTROLLER_AUDIENCE)).await).await;
    assert_eq!(ask(&reader, Method::GET, "/records/whole", "").await.as_deref(), Ok("[0,1]"));
    assert!(!ask(&reader, Method::GET, "/logs/whole", "").await.expect("a log").is_empty());
    lab.delete("whole").await;
    lab.assert_nothing_left(&before).await;
    lab.assert_nothing_was_forbidden();
}

/// The stages that are shipped with the driver, as one stream.
fn stages() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sk-driver/stages");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("stages").map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    files.iter().map(|file| std::fs::read_to_string(file).expect("a stage")).collect::<Vec<_>>().join("\n---\n")
}

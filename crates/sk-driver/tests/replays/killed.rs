//! The program itself, killed at any moment and started again, and asked to stop.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, ListParams};
use sk_api::simulation::names;
use sk_record::Run;
use sk_testkit::control_plane::{ControlPlane, eventually};
use sk_testkit::objects;

use crate::support::*;

/// Kills before our kinds are installed, when the driver brings them itself, and after. Where they fall, from before the
/// root to the middle of the replay, is left to chance.
const KILLS: [u64; 2] = [2, 8];

fn story() -> Story {
    let web = |replicas| value(&objects::deployment().name("web").namespace("shop").replicas(replicas));
    let class = serde_json::json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "of-the-run"}, "value": 7,
    });
    Story::of_secs(60).apply(0, &class).apply(0, &web(3)).apply(20, &web(6)).apply(40, &web(2))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_driver_that_was_killed_leaves_nothing_that_the_next_one_does_not_remove() {
    let cluster = cluster().await;
    let folder = tempfile::tempdir().unwrap();
    write_files(folder.path(), &story(), "killed", 10.0);
    let mut chance = sk_core::rng::Stream::new(u64::from(std::process::id()), "kills");
    for kills in KILLS {
        let before = everything(&cluster).await;
        for _ in 0..kills {
            let mut driver = start(&cluster, folder.path(), &[]);
            tokio::time::sleep(Duration::from_millis(chance.below(5_000))).await;
            driver.kill().await.unwrap();
            // As the refusal of the next one would say.
            remove_lease(&cluster).await;
        }
        if kills == KILLS[1] {
            // Once, nobody does: the next one waits until it sees that the holder is dead.
            let mut driver = start(&cluster, folder.path(), &[]);
            holds_lease(&cluster).await;
            driver.kill().await.unwrap();
        }
        let ended = start(&cluster, folder.path(), &[]).wait().await.unwrap();
        assert!(ended.success(), "{ended}");
        let run = Run::open(&folder.path().join("run")).unwrap();
        assert!(!run.meta().partial);
        let replicas: Vec<_> = run.series().unwrap().map(|row| row.unwrap().value).collect();
        assert_eq!(replicas, [Some(3.0), Some(6.0), Some(2.0)]);
        // How many of the six controllers get to in two seconds is theirs; more are none of this run's.
        let web: Vec<_> = run.pods().unwrap().map(Result::unwrap).collect();
        assert!(web.len() <= 6, "pods of the killed ones are not in the record: {web:#?}");
        assert_eq!(difference(&cluster, &before).await, Vec::<String>::new());
        if kills == KILLS[0] {
            install_kinds(&cluster).await;
        }
    }

    let before = everything(&cluster).await;
    // Ten minutes, so that it does not end by itself.
    write_files(folder.path(), &story(), "killed", 0.1);
    asked_to_stop(&cluster, folder.path()).await;
    assert_eq!(difference(&cluster, &before).await, Vec::<String>::new());
    a_trace_that_is_not_there(&cluster, folder.path()).await;
}

/// SIGTERM: the record so far is kept and marked, and the cluster is left clean.
async fn asked_to_stop(cluster: &ControlPlane, folder: &std::path::Path) {
    let mut driver = start(cluster, folder, &[]);
    let pods: Api<Pod> = Api::namespaced(cluster.client(), "virtual-shop");
    eventually("pods of the run", LIMIT, || async {
        Ok((pods.list(&ListParams::default()).await?.items.len() >= 3).then_some(()))
    })
    .await
    .unwrap();
    // While it runs, another one of the same name does not touch what is its own.
    assert_eq!(start(cluster, folder, &[]).wait().await.unwrap().code(), Some(2));
    let words = std::fs::read_to_string(folder.join("last-words")).unwrap();
    assert!(words.starts_with("LeaseHeld: killed-") && words.contains("kubectl -n default delete lease"), "{words}");
    assert!(pods.list(&ListParams::default()).await.unwrap().items.len() >= 3);
    terminate(&driver);
    assert_eq!(driver.wait().await.unwrap().code(), Some(130));
    assert!(Run::open(&folder.join("run")).unwrap().meta().partial);
    let words = std::fs::read_to_string(folder.join("last-words")).unwrap();
    assert!(words.contains("asked to stop"), "{words}");
}

async fn remove_lease(cluster: &ControlPlane) {
    let leases: Api<Lease> = Api::namespaced(cluster.client(), names::DRIVER_LEASE_NAMESPACE);
    match leases.delete(names::LEASE, &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.code == 404 => {}
        removed => drop(removed.unwrap()),
    }
}

async fn holds_lease(cluster: &ControlPlane) {
    let leases: Api<Lease> = Api::namespaced(cluster.client(), names::DRIVER_LEASE_NAMESPACE);
    eventually("the driver to take the Lease", LIMIT, || leases.get_opt(names::LEASE)).await.unwrap();
}

async fn a_trace_that_is_not_there(cluster: &ControlPlane, folder: &std::path::Path) {
    std::fs::remove_file(folder.join("trace.jsonl")).unwrap();
    assert_eq!(start(cluster, folder, &[]).wait().await.unwrap().code(), Some(2));
    let words = std::fs::read_to_string(folder.join("last-words")).unwrap();
    assert!(words.contains("cannot read the trace") && words.contains("trace.jsonl"), "{words}");
}

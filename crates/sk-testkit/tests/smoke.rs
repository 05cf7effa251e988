//! Is the real control plane real? Pods run on KWOK's nodes, Jobs complete, owners take what they own with them, and
//! a watcher outlives its API server.

use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, DeleteParams, ListParams};
use kube::runtime::{WatchStreamExt, watcher};
use sk_testkit::control_plane::{ControlPlane, eventually};
use sk_testkit::{Component, Options, Versions, objects};

const LIMIT: Duration = Duration::from_secs(120);

async fn cluster_with_two_nodes() -> ControlPlane {
    let cluster = ControlPlane::start(Options::default()).await.expect("a control plane starts");
    println!("control plane ready after {:.1} s", cluster.took().as_secs_f64());
    cluster.create_nodes(["a", "b"].map(|name| objects::node().name(name))).await.expect("KWOK makes nodes ready");
    cluster
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployments_pods_become_running_on_kwok_nodes_and_go_with_it() {
    let cluster = cluster_with_two_nodes().await;
    assert_eq!(cluster.version().await.unwrap(), format!("v{}", Versions::pinned().kubernetes));
    cluster.create(&objects::deployment().name("web").replicas(4).requests("100m", "64Mi")).await.unwrap();

    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    let running = eventually("four running pods", LIMIT, || async {
        let listed = pods.list(&ListParams::default()).await?.items;
        let phase = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.clone());
        Ok((listed.len() == 4 && listed.iter().all(|pod| phase(pod).as_deref() == Some("Running"))).then_some(listed))
    })
    .await
    .unwrap();
    for pod in running {
        let node = pod.spec.unwrap().node_name.unwrap();
        assert!(["a", "b"].contains(&node.as_str()), "{node} is no node of KWOK's");
    }

    let deployments: Api<Deployment> = Api::default_namespaced(cluster.client());
    deployments.delete("web", &DeleteParams::default()).await.unwrap();
    let sets: Api<ReplicaSet> = Api::default_namespaced(cluster.client());
    eventually("the ReplicaSet and the pods to go", LIMIT, || async {
        let left =
            sets.list(&ListParams::default()).await?.items.len() + pods.list(&ListParams::default()).await?.items.len();
        Ok((left == 0).then_some(()))
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_completes() {
    let cluster = cluster_with_two_nodes().await;
    cluster.create(&objects::job().name("sum").set("/spec/completions", 3).set("/spec/parallelism", 3)).await.unwrap();
    let jobs: Api<Job> = Api::default_namespaced(cluster.client());
    eventually("the Job to complete", LIMIT, || async {
        let status = jobs.get("sum").await?.status.unwrap_or_default();
        let complete = status.conditions.iter().flatten().any(|c| c.type_ == "Complete" && c.status == "True");
        Ok((complete && status.succeeded == Some(3)).then_some(()))
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_goes_on_after_the_api_server_was_killed() {
    let mut cluster = ControlPlane::start(Options::api_only()).await.unwrap();
    let config_maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    let config_map = |name: &str| {
        objects::object(serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}))
    };
    let mut seen = watcher(config_maps, watcher::Config::default())
        .default_backoff()
        .applied_objects()
        .filter_map(|event| async { event.ok()?.metadata.name })
        .boxed();

    cluster.create(&config_map("before")).await.unwrap();
    assert_eq!(tokio::time::timeout(LIMIT, seen.next()).await.unwrap().as_deref(), Some("before"));
    cluster.kill(Component::ApiServer).await.unwrap();
    cluster.restart(Component::ApiServer).await.unwrap();
    cluster.create(&config_map("after")).await.unwrap();
    // After its server came back the watcher may list again and tell of `before` once more.
    let mut later = seen.filter(|name| std::future::ready(name != "before"));
    assert_eq!(tokio::time::timeout(LIMIT, later.next()).await.unwrap().as_deref(), Some("after"));
}

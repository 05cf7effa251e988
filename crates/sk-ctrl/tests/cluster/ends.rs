//! How simulations fail, in words; and what was there before stays as it was.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, Node, Service, ServiceAccount};
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::json;
use sk_api::simulation::{SimulationStatus, State};
use sk_ctrl::install::Options;
use sk_testkit::control_plane::eventually;

use crate::lab::{LIMIT, Lab};

fn why(status: &SimulationStatus) -> (Option<State>, &str, &str) {
    (status.state, status.reason.as_deref().unwrap_or_default(), status.message.as_deref().unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_simulation_that_fails_says_why_and_leaves_nothing() {
    let lab = Lab::start(Options::default()).await;
    let _controller = lab.controller().await;
    let before = lab.settled().await;
    let failed = Some(State::Failed);

    lab.simulate("told", "driver:fails", &json!({})).await;
    assert_eq!(why(&lab.ends("told").await), (failed, "TraceMissing", "s3://traces/a is not there"));

    lab.simulate("logged", "driver:speechless", &json!({})).await;
    let status = lab.ends("logged").await;
    let (state, reason, message) = why(&status);
    assert_eq!((state, reason), (failed, "DriverFailed"));
    assert!(message.ends_with("said: this is all that I logged"), "{message}");

    lab.simulate("no-image", "driver:nowhere", &json!({})).await;
    let status = lab.ends("no-image").await;
    let (state, reason, message) = why(&status);
    assert_eq!((state, reason), (failed, "ImageUnavailable"));
    assert!(message.starts_with("the driver's image `driver:nowhere` cannot be pulled"), "{message}");

    lab.simulate("late", "driver:waits", &json!({"driver": {"deadlineSeconds": 2, "args": ["/never"]}})).await;
    let words = "the driver was stopped after 2 s, as spec.driver.deadlineSeconds says";
    assert_eq!(why(&lab.ends("late").await), (failed, "DeadlineExceeded", words));

    let nodes: Api<Node> = Api::all(lab.cluster.client());
    let cordon = |on: bool| Patch::Merge(json!({"spec": {"unschedulable": on}}));
    nodes.patch("process-runner", &PatchParams::default(), &cordon(true)).await.expect("the node can be cordoned");
    lab.simulate("homeless", "driver:quick", &json!({})).await;
    let status = lab.ends("homeless").await;
    let (state, reason, message) = why(&status);
    assert_eq!((state, reason), (failed, "DriverUnschedulable"));
    assert!(message.contains("0/1 nodes are available"), "{message}");
    nodes.patch("process-runner", &PatchParams::default(), &cordon(false)).await.expect("the node can be uncordoned");

    lab.simulate("robbed", "driver:waits", &json!({"driver": {"args": ["/never"]}})).await;
    lab.reaches("robbed", State::Running).await;
    let jobs: Api<Job> = Api::namespaced(lab.cluster.client(), "simkube");
    jobs.delete("sk-robbed-driver", &DeleteParams::foreground()).await.expect("the Job can be deleted");
    assert_eq!(why(&lab.ends("robbed").await), (failed, "DriverGone", "somebody has deleted the driver's Job"));

    lab.simulate("abroad", "driver:quick", &json!({"driver": {"namespace": "lab"}})).await;
    assert_eq!(why(&lab.ends("abroad").await).1, "NamespaceNotAllowed");
    lab.simulate("hooked", "driver:quick", &json!({"hooks": {"preRunHooks": [{"cmd": "true"}]}})).await;
    assert_eq!(why(&lab.ends("hooked").await).1, "HooksNotAllowed");
    lab.assert_nothing_left(&before).await;

    // A Service that somebody else has made under our name is not ours to use, to change or to delete.
    lab.create(json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "sk-taken-driver-svc", "namespace": "simkube"},
        "spec": {"ports": [{"port": 80}], "selector": {"app": "theirs"}},
    }))
    .await;
    let services: Api<Service> = Api::namespaced(lab.cluster.client(), "simkube");
    let theirs = services.get("sk-taken-driver-svc").await.expect("their Service");
    lab.simulate("taken", "driver:quick", &json!({})).await;
    assert_eq!(why(&lab.ends("taken").await).1, "NameTaken");
    let after = services.get("sk-taken-driver-svc").await.expect("their Service is still there");
    assert_eq!(after.metadata.resource_version, theirs.metadata.resource_version);
    lab.assert_nothing_was_forbidden();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_and_an_account_that_were_there_are_used_and_left_alone() {
    let lab = Lab::start(Options { any_namespace: true, ..Options::default() }).await;
    let _controller = lab.controller().await;
    lab.create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "theirs"}})).await;
    let account = json!({"name": "sk-driver", "namespace": "theirs", "labels": {"team": "theirs"}});
    lab.create(json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})).await;
    let namespaces: Api<Namespace> = Api::all(lab.cluster.client());
    let accounts: Api<ServiceAccount> = Api::namespaced(lab.cluster.client(), "theirs");
    let before = lab.settled().await;
    let (namespace, account) = (namespaces.get("theirs").await.unwrap(), accounts.get("sk-driver").await.unwrap());

    lab.simulate("guest", "driver:quick", &json!({"driver": {"namespace": "theirs"}})).await;
    assert_eq!(lab.ends("guest").await.state, Some(State::Finished));
    assert_eq!(namespaces.get("theirs").await.unwrap(), namespace);
    assert_eq!(accounts.get("sk-driver").await.unwrap(), account);
    lab.assert_nothing_left(&before).await;

    // One that is not there is made, with an account that has the driver's rights, and goes in the end.
    lab.simulate("own", "driver:waits", &json!({"driver": {"namespace": "ours", "args": ["/never"]}})).await;
    lab.reaches("own", State::Running).await;
    assert!(lab.everything().await.contains("ServiceAccount ours/sk-driver"));
    lab.delete("own").await;
    eventually("our namespace to be gone", LIMIT, || async {
        Ok(namespaces.get_opt("ours").await?.is_none().then_some(()))
    })
    .await
    .expect("our namespace goes");
    lab.assert_nothing_left(&before).await;
    lab.assert_nothing_was_forbidden();
}

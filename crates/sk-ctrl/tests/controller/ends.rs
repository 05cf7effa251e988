//! How simulations fail, in words; and what was there before stays as it was.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, Node, Secret, Service, ServiceAccount};
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::json;
use sk_api::simulation::{SimulationStatus, State, names};
use sk_ctrl::install::{Options, mark};
use sk_testkit::control_plane::eventually;

use crate::lab::{LIMIT, Lab};

fn why(status: &SimulationStatus) -> (Option<State>, &str, &str) {
    (status.state, status.reason.as_deref().unwrap_or_default(), status.message.as_deref().unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_simulation_that_fails_says_why_and_leaves_nothing() {
    let lab = Lab::start(Options::default()).await;
    let controller = lab.controller().await;
    let before = lab.settled().await;
    let failed = Some(State::Failed);

    lab.simulate("told", "driver:fails", &json!({})).await;
    assert_eq!(why(&lab.ends("told").await), (failed, "TraceMissing", "s3://traces/a is not there"));

    lab.simulate("logged", "driver:speechless", &json!({})).await;
    let status = lab.ends("logged").await;
    let (state, reason, message) = why(&status);
    assert_eq!((state, reason), (failed, "DriverFailed"));
    assert!(message.ends_with("ended with exit code 3; its last line: this is all that I logged"), "{message}");

    lab.simulate("late", "driver:waits", &json!({"driver": {"deadlineSeconds": 2, "args": ["/never"]}})).await;
    let words = "the driver was stopped after 2 s, as spec.driver.deadlineSeconds says";
    assert_eq!(why(&lab.ends("late").await), (failed, "DeadlineExceeded", words));

    // What keeps a driver from starting is told while it is waited for, and is the reason when that takes too long.
    let told = |words: &'static str| {
        move |status: &SimulationStatus| status.message.as_deref().is_some_and(|message| message.contains(words))
    };
    lab.simulate("no-image", "driver:nowhere", &json!({})).await;
    lab.until("no-image", "an obstacle", told("cannot be pulled")).await;
    controller.kill().await;
    let impatient = lab.controller_that_waits(Duration::from_secs(1)).await;
    let status = lab.ends("no-image").await;
    let (state, reason, message) = why(&status);
    assert_eq!((state, reason), (failed, "ImageUnavailable"));
    assert!(message.starts_with("the driver's image `driver:nowhere` cannot be pulled"), "{message}");
    impatient.kill().await;

    let controller = lab.controller().await;
    let nodes: Api<Node> = Api::all(lab.cluster.client());
    let cordon = |on: bool| Patch::Merge(json!({"spec": {"unschedulable": on}}));
    nodes.patch("process-runner", &PatchParams::default(), &cordon(true)).await.expect("the node can be cordoned");
    lab.simulate("homeless", "driver:quick", &json!({})).await;
    lab.until("homeless", "an obstacle", told("0/1 nodes are available")).await;
    controller.kill().await;
    let impatient = lab.controller_that_waits(Duration::from_secs(1)).await;
    assert_eq!(why(&lab.ends("homeless").await).1, "DriverUnschedulable");
    impatient.kill().await;
    nodes.patch("process-runner", &PatchParams::default(), &cordon(false)).await.expect("the node can be uncordoned");

    let _controller = lab.controller().await;
    lab.simulate("robbed", "driver:waits", &json!({"driver": {"args": ["/never"]}})).await;
    lab.reaches("robbed", State::Running).await;
    let jobs: Api<Job> = Api::namespaced(lab.cluster.client(), "simkube");
    jobs.delete("sk-robbed-driver", &DeleteParams::foreground()).await.expect("the Job can be deleted");
    assert_eq!(why(&lab.ends("robbed").await), (failed, "DriverGone", "the driver's Job was deleted"));

    lab.simulate("abroad", "driver:quick", &json!({"driver": {"namespace": "lab"}})).await;
    assert_eq!(why(&lab.ends("abroad").await).1, "NamespaceNotAllowed");
    lab.simulate("hooked", "driver:quick", &json!({"hooks": {"preRunHooks": [{"cmd": "true"}]}})).await;
    assert_eq!(why(&lab.ends("hooked").await).1, "HooksNotAllowed");
    lab.simulate("masked", "somebody/else:1", &json!({})).await;
    let status = lab.ends("masked").await;
    assert_eq!(why(&status).1, "ImageNotAllowed");
    assert!(why(&status).2.ends_with("--allow-driver-image=somebody/else:1"), "{status:?}");
    lab.simulate("keyless", "driver:quick", &json!({"driver": {"secrets": ["keys"]}})).await;
    assert_eq!(why(&lab.ends("keyless").await).1, "SecretMissing");
    lab.assert_nothing_left(&before).await;

    // A Secret goes to a driver once somebody has said that it may.
    let keys = json!({"name": "keys", "namespace": "simkube"});
    lab.create(json!({"apiVersion": "v1", "kind": "Secret", "metadata": keys, "stringData": {"KEY": "k"}})).await;
    lab.simulate("thief", "driver:quick", &json!({"driver": {"secrets": ["keys"]}})).await;
    let status = lab.ends("thief").await;
    assert_eq!(why(&status).1, "SecretNotAllowed");
    let advice = "kubectl -n simkube label secret keys simkube.io/driver-secret=true";
    assert!(why(&status).2.ends_with(advice), "{status:?}");
    let secrets: Api<Secret> = Api::namespaced(lab.cluster.client(), "simkube");
    let label = Patch::Merge(json!({"metadata": {"labels": {names::DRIVER_SECRET_LABEL: "true"}}}));
    secrets.patch("keys", &PatchParams::default(), &label).await.expect("the Secret can be labelled");
    lab.simulate("entrusted", "driver:keyed", &json!({"driver": {"secrets": ["keys"]}})).await;
    assert_eq!(lab.ends("entrusted").await.state, Some(State::Finished));

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
    let client = lab.cluster.client();
    for (name, own) in [("simkube", true), ("theirs", false), ("of-nobody-yet", true)] {
        assert_eq!(mark::owns(&client, name).await.expect("an answer"), own, "{name}");
        assert!(mark::is_there(&client, name).await.expect("an answer"), "asked from {name}");
    }
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

    // An installation in a namespace that is not its own is marked beside it.
    let unmarked = Patch::Merge(json!({"metadata": {"labels": {names::INSTALLED_LABEL: null}}}));
    namespaces.patch("simkube", &PatchParams::default(), &unmarked).await.expect("a label can be taken off");
    assert!(mark::is_there(&client, "simkube").await.expect("an answer"));
    assert!(!mark::is_there(&client, "theirs").await.expect("an answer"));
    assert!(!mark::owns(&client, "simkube").await.expect("an answer"));
    lab.assert_nothing_was_forbidden();
}

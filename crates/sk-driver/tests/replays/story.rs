//! Whole runs: from a trace to a record whose rows say what happened.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use sk_api::simulation::{Simulation, names};
use sk_driver::cluster::Webhook;
use sk_record::{EndedBy, Engine};
use sk_testkit::control_plane::{ControlPlane, eventually};
use sk_testkit::objects;

use crate::support::*;

fn web(replicas: u32) -> objects::Object {
    objects::deployment().name("web").namespace("shop").replicas(replicas).requests("100m", "64Mi")
}

fn job() -> objects::Object {
    objects::job().name("report").namespace("shop").set("/spec/completions", 2).set("/spec/parallelism", 2)
}

/// A pod without an owner that ends badly.
fn doomed() -> objects::Object {
    objects::pod().name("doomed").namespace("shop").annotation(sk_driver::FAIL_ANNOTATION, "true")
}

/// A Deployment grows, stays so for 20 s of wall time, shrinks and goes; a Job's pods live for 20 recorded seconds each. The
/// test ends it: how soon controllers follow is theirs.
fn story() -> Story {
    let mut refused = value(&objects::pod().name("wrong").namespace("shop"));
    refused["spec"]["containers"][0]["name"] = json!("Not A Name");
    let gone = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}});
    Story::of_secs(3600)
        .apply(0, &value(&web(2)))
        .apply(0, &value(&job()))
        .apply(0, &value(&doomed()))
        .apply(10, &refused)
        .apply(20, &value(&web(5)))
        .apply(120, &value(&web(1)))
        .delete(130, &gone)
        .lives("batch/v1.Job:shop/report", &[20])
        .lives("v1.Pod:shop/doomed", &[10])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_becomes_a_record_and_leaves_nothing_behind() {
    let cluster = cluster().await;
    install_kinds(&cluster).await;
    let before = everything(&cluster).await;
    let play = Play::new("story", 5.0, &story());
    let (outcome, ()) = tokio::join!(play.run(cluster.client()), the_end(&cluster, &play));
    let outcome = outcome.unwrap();
    assert_eq!(outcome.stopped.as_deref(), Some("seen enough"));
    let run = play.record();
    let meta = run.meta();
    assert_eq!((meta.engine, meta.partial, meta.kubernetes.as_str()), (Engine::Cluster, true, "1.36"));
    assert_eq!(outcome.totals.pods_without_webhook, 0, "{:?}", meta.warnings);

    let refused = meta.warnings.iter().find(|warning| warning.code == "refused").expect("it is said");
    assert!(
        refused.message.contains("Pod shop/wrong") && refused.message.contains("Not A Name"),
        "{}",
        refused.message
    );
    assert!(codes(&run).contains(&("speed".to_owned(), 1)), "{:?}", codes(&run));

    let pods: Vec<_> = run.pods().unwrap().map(Result::unwrap).collect();
    let of = |owner: &str| pods.iter().filter(|pod| pod.owner == owner).collect::<Vec<_>>();
    let (web, report) = (of("shop/Deployment/web"), of("shop/Job/report"));
    let doomed = of("shop/Pod/doomed");
    assert_eq!((web.len(), report.len(), doomed.len(), pods.len()), (5, 2, 1, 8), "{pods:#?}");
    assert_eq!((doomed[0].phase.as_str(), doomed[0].ended_by), ("Failed", Some(EndedBy::Failed)));
    assert!(pods.iter().all(|pod| pod.namespace == "shop" && pod.scheduled.is_some() && pod.started.is_some()));
    assert!(web.iter().all(|pod| pod.deleted.is_some() && pod.ended_by == Some(EndedBy::Deleted) && pod.cpu_m == 100));
    for pod in report {
        assert_eq!((pod.phase.as_str(), pod.ended_by), ("Succeeded", Some(EndedBy::Finished)));
        let lived = pod.finished.unwrap().since(pod.started.unwrap()).as_secs_f64();
        // At least its recorded life; the watch, the patch and KWOK add what they take, times five.
        assert!((18.0..1200.0).contains(&lived), "{lived}");
    }
    let group = |pod: &sk_record::PodRow| pod.group.as_deref() == Some("small");
    assert!(pods.iter().all(group), "pods are on virtual nodes");

    let replicas: Vec<_> = run.series().unwrap().map(Result::unwrap).map(|row| (row.key, row.value)).collect();
    let steps = [Some(2.0), Some(5.0), Some(1.0), None].map(|value| ("shop/Deployment/web".to_owned(), value));
    assert_eq!(replicas, steps);
    let nodes: Vec<_> = run.nodes().unwrap().map(Result::unwrap).collect();
    assert!(nodes.len() == 3 && nodes.iter().all(|node| node.created == meta.start && node.cpu_m == 8000), "{nodes:?}");
    assert!(run.file("cluster.json").unwrap().is_some());
    let asked: serde_json::Value = serde_json::from_slice(&run.file("simulation.json").unwrap().unwrap()).unwrap();
    assert_eq!(asked["spec"]["speed"], 5.0);
    assert_eq!(asked["spec"]["driver"].get("tracePath"), None, "a record holds no path");
    let figures = sk_report::Analysis::of(&run).unwrap().summary;
    assert_eq!((figures.pods.created, figures.pods.ran), (8, 8));
    assert!((5..=8).contains(&figures.pods.running_max), "{:?}", figures.pods);
    assert_eq!((figures.nodes.min, figures.nodes.max, figures.unschedulable.pods), (3, 3, 0));
    assert_eq!(figures.owners["shop/Deployment/web"].pods.created, 5);
    assert_eq!(difference(&cluster, &before).await, Vec::<String>::new());

    a_controllers_simulation_is_not_disturbed(&cluster).await;
    the_webhook_is_down(&cluster).await;
    a_refusal_stops_if_that_was_asked(&cluster).await;
    an_interrupted_bare_pod_is_made_again(&cluster).await;
    assert_eq!(difference(&cluster, &before).await, Vec::<String>::new());
}

/// A driver without a controller does not begin beside it.
async fn a_controllers_simulation_is_not_disturbed(cluster: &ControlPlane) {
    let simulations: Api<Simulation> = Api::all(cluster.client());
    simulations.create(&PostParams::default(), &simulation("theirs", 1.0)).await.unwrap();
    let runs = Patch::Merge(json!({"status": {"state": "Running"}}));
    simulations.patch_status("theirs", &PatchParams::default(), &runs).await.unwrap();
    let error = Play::new("beside", 1.0, &story()).run(cluster.client()).await.unwrap_err();
    assert!(error.reason() == "LeaseHeld" && error.to_string().contains("theirs"), "{error}");
    simulations.delete("theirs", &DeleteParams::default()).await.unwrap();
}

/// Stops the run when the Deployment's pods have come and gone and all others have ended.
async fn the_end(cluster: &ControlPlane, play: &Play) {
    let pods: Api<Pod> = Api::namespaced(cluster.client(), "virtual-shop");
    let deployments: Api<Deployment> = Api::namespaced(cluster.client(), "virtual-shop");
    eventually("the Deployment", LIMIT, || deployments.get_opt("web")).await.unwrap();
    eventually("the end of the story", LIMIT, || async {
        let is_gone = deployments.get_opt("web").await?.is_none();
        let pods = pods.list(&ListParams::default()).await?.items;
        Ok((is_gone && pods.len() == 3 && pods.iter().all(has_ended)).then_some(()))
    })
    .await
    .unwrap();
    play.stop.ask("seen enough");
}

fn has_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// A pod of an operator, which knows nothing of virtual nodes; `labels` are what it hands down.
fn operators_pod(name: &str, labels: &serde_json::Value) -> Pod {
    let mut pod = value(&objects::pod().name(name).namespace("virtual-shop"));
    pod["metadata"]["labels"] = labels.clone();
    serde_json::from_value(pod).unwrap()
}

/// Pods are made all the same, live as recorded, and are counted; but none that could go to a real node.
async fn the_webhook_is_down(cluster: &ControlPlane) {
    let story = Story::of_secs(3600).apply(0, &value(&job())).lives("batch/v1.Job:shop/report", &[20]);
    let mut play = Play::new("unreachable", 10.0, &story);
    // Nobody listens on port 1.
    play.options.webhook = Webhook::Own { bind: ([127, 0, 0, 1], 0).into(), url: "https://127.0.0.1:1".into() };
    let pods: Api<Pod> = Api::namespaced(cluster.client(), "virtual-shop");
    let look = async {
        eventually("the Job's pods to end", LIMIT, || async {
            let pods = pods.list(&ListParams::default()).await?.items;
            Ok((pods.len() == 2 && pods.iter().all(has_ended)).then_some(()))
        })
        .await
        .unwrap();
        for labels in [json!({}), json!({names::SIMULATION_LABEL: "unreachable", names::VIRTUAL_LABEL: "true"})] {
            let error = pods.create(&PostParams::default(), &operators_pod("real", &labels)).await.unwrap_err();
            assert!(error.to_string().contains("failed calling webhook"), "{error}");
        }
        play.stop.ask("seen enough");
    };
    let (outcome, ()) = tokio::join!(play.run(cluster.client()), look);
    let outcome = outcome.unwrap();
    let run = play.record();
    assert_eq!(outcome.totals.pods_without_webhook, 2);
    assert!(codes(&run).contains(&("webhook".to_owned(), 2)), "{:?}", codes(&run));
    let phases: Vec<_> = run.pods().unwrap().map(|pod| pod.unwrap().phase).collect();
    assert_eq!(phases, ["Succeeded", "Succeeded"]);
}

/// Somebody deletes a bare pod in the middle of a run, as an eviction does. When the replay is over and a hook still runs,
/// an operator's pods are kept off real nodes all the same.
async fn an_interrupted_bare_pod_is_made_again(cluster: &ControlPlane) {
    let story = Story::of_secs(3600).apply(0, &value(&objects::pod().name("bare").namespace("shop")));
    let mut play = Play::new("bare", 1.0, &story);
    play.simulation.spec.reschedule_interrupted_bare_pods = true;
    let folder = tempfile::tempdir().unwrap();
    let script = "touch hooked; until [ -e enough ]; do sleep 0.1; done";
    let script = format!("cd '{}'; {script}", folder.path().display());
    let hook = serde_json::from_value(json!({"cmd": "sh", "args": ["-c", script], "timeoutSeconds": LIMIT.as_secs()}));
    play.simulation.spec.hooks.post_run_hooks.push(hook.unwrap());
    let pods: Api<Pod> = Api::namespaced(cluster.client(), "virtual-shop");
    let interrupt = async {
        let running = || async {
            let pod = pods.get("bare").await?;
            let runs = pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Running"));
            Ok(runs.then_some(pod.metadata.uid))
        };
        let first = eventually("the bare pod to run", LIMIT, running).await.unwrap();
        pods.delete("bare", &DeleteParams::default()).await.unwrap();
        let again = || async { Ok(running().await?.filter(|uid| *uid != first)) };
        eventually("the bare pod to run again", LIMIT, again).await.unwrap();
        play.stop.ask("seen enough");
        eventually("the hook to run", LIMIT, || async { Ok(folder.path().join("hooked").exists().then_some(())) })
            .await
            .unwrap();
        let late = pods.create(&PostParams::default(), &operators_pod("late", &json!({}))).await.unwrap();
        let selector = late.spec.unwrap().node_selector.unwrap_or_default();
        assert_eq!(selector.get(names::NODE_SELECTOR.0).map(String::as_str), Some(names::NODE_SELECTOR.1));
        std::fs::write(folder.path().join("enough"), "").unwrap();
    };
    let (outcome, ()) = tokio::join!(play.run(cluster.client()), interrupt);
    assert_eq!(outcome.unwrap().totals.rescheduled, 1);
    assert_eq!(play.record().pods().unwrap().count(), 2);
}

async fn a_refusal_stops_if_that_was_asked(cluster: &ControlPlane) {
    let mut play = Play::new("strict", 10.0, &story());
    play.options.stop_on_refusal = true;
    let outcome = play.run(cluster.client()).await.unwrap();
    assert!(outcome.stopped.unwrap().contains("Not A Name"));
    assert!(play.record().meta().partial);
}

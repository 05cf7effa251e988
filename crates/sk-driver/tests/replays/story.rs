//! Whole runs: from a trace to a record whose rows say what happened.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams};
use serde_json::json;
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

/// Half a minute of wall time: a Deployment grows, shrinks and goes; a Job's pods live for 20 recorded seconds each.
fn story() -> Story {
    let mut refused = value(&objects::pod().name("wrong").namespace("shop"));
    refused["spec"]["containers"][0]["name"] = json!("Not A Name");
    let gone = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}});
    Story::of_secs(150)
        .apply(0, &value(&web(2)))
        .apply(0, &value(&job()))
        .apply(0, &value(&doomed()))
        .apply(10, &refused)
        .apply(30, &value(&web(5)))
        .apply(60, &value(&web(1)))
        .delete(120, &gone)
        .lives("batch/v1.Job:shop/report", &[20])
        .lives("v1.Pod:shop/doomed", &[10])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_becomes_a_record_and_leaves_nothing_behind() {
    let cluster = cluster().await;
    install_kinds(&cluster).await;
    let before = everything(&cluster.client()).await;
    let play = Play::new("story", 5.0, &story());
    let outcome = play.run(cluster.client()).await.unwrap();
    assert_eq!(outcome.stopped, None);
    let run = play.record();
    let meta = run.meta();
    assert_eq!((meta.engine, meta.partial, meta.kubernetes.as_str()), (Engine::Cluster, false, "1.36"));
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
        assert!((18.0..120.0).contains(&lived), "{lived}");
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
    assert_eq!(difference(&cluster.client(), &before).await, Vec::<String>::new());

    the_webhook_is_down(&cluster).await;
    a_refusal_stops_if_that_was_asked(&cluster).await;
    an_interrupted_bare_pod_is_made_again(&cluster).await;
    assert_eq!(difference(&cluster.client(), &before).await, Vec::<String>::new());
}

/// Pods are made all the same, live as recorded, and are counted.
async fn the_webhook_is_down(cluster: &ControlPlane) {
    let short = Story::of_secs(120).apply(0, &value(&job())).lives("batch/v1.Job:shop/report", &[20]);
    let mut play = Play::new("unreachable", 10.0, &short);
    // Nobody listens on port 1.
    play.options.webhook = Webhook::Own { bind: ([127, 0, 0, 1], 0).into(), url: "https://127.0.0.1:1".into() };
    let outcome = play.run(cluster.client()).await.unwrap();
    let run = play.record();
    assert_eq!(outcome.totals.pods_without_webhook, 2);
    assert!(codes(&run).contains(&("webhook".to_owned(), 2)), "{:?}", codes(&run));
    let phases: Vec<_> = run.pods().unwrap().map(|pod| pod.unwrap().phase).collect();
    assert_eq!(phases, ["Succeeded", "Succeeded"]);
}

/// Somebody deletes a bare pod in the middle of a run, as an eviction does.
async fn an_interrupted_bare_pod_is_made_again(cluster: &ControlPlane) {
    let story = Story::of_secs(3600).apply(0, &value(&objects::pod().name("bare").namespace("shop")));
    let mut play = Play::new("bare", 1.0, &story);
    play.simulation.spec.reschedule_interrupted_bare_pods = true;
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

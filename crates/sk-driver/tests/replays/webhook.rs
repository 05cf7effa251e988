//! The webhook of an installation, which must answer: a run that does not reach it does not begin, and one that loses it
//! goes on and says so.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{Api, DeleteParams, ListParams};
use sk_api::simulation::SimulationRoot;
use sk_testkit::control_plane::{ControlPlane, eventually};
use sk_testkit::objects;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::support::*;

/// Nobody listens there.
const NOWHERE: u16 = 1;
/// So many calls that get no answer, and the driver has asked and heard at least twice.
const CALLS: u32 = 3;

fn story() -> Story {
    Story::of_secs(3600).apply(0, &value(&objects::deployment().name("web").namespace("shop").replicas(1)))
}

pub(crate) async fn a_run_that_cannot_be_admitted_does_not_begin(cluster: &ControlPlane) {
    let client = cluster.client();
    let webhook = Installed::new(cluster, "deaf").await;
    webhook.lead_to(NOWHERE).await;
    let mut play = Play::new("deaf", 1.0, &story());
    play.announce(&client).await;
    play.options.webhook = webhook.told(Duration::from_secs(3));
    let error = play.run(client.clone()).await.unwrap_err();
    assert_eq!(error.reason(), "WebhookUnreachable");
    assert!(error.to_string().contains("failed calling webhook"), "{error}");
    let roots: Api<SimulationRoot> = Api::all(client);
    assert!(roots.get_opt("sk-deaf-driver-root-0").await.unwrap().is_none(), "what it made is gone");
}

/// Takes calls and hangs up, and counts them.
async fn deaf() -> (u16, watch::Receiver<u32>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (counted, calls) = watch::channel(0);
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            drop(connection);
            counted.send_modify(|calls| *calls += 1);
        }
    });
    (port, calls)
}

pub(crate) async fn a_run_that_loses_its_webhook_goes_on_and_says_so(cluster: &ControlPlane) {
    let client = cluster.client();
    let webhook = Installed::new(cluster, "lost").await;
    let mut play = Play::new("lost", 1.0, &story());
    play.announce(&client).await;
    play.options.webhook = webhook.told(LIMIT);
    let pods: Api<Pod> = Api::namespaced(client.clone(), "virtual-shop");
    let events: Api<Event> = Api::namespaced(client.clone(), "virtual-shop");
    let running = || async {
        let pods = pods.list(&ListParams::default()).await?.items;
        let runs = |pod: &Pod| pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Running"));
        Ok(pods.into_iter().filter(runs).find_map(|pod| pod.metadata.name))
    };
    let look = async {
        let first = eventually("a pod to run", LIMIT, running).await.unwrap();
        let (port, mut calls) = deaf().await;
        webhook.lead_to(port).await;
        // No controller makes pods now, so these are the driver's own questions.
        tokio::time::timeout(LIMIT, calls.wait_for(|calls| *calls >= CALLS)).await.unwrap().unwrap();
        pods.delete(&first, &DeleteParams::default()).await.unwrap();
        eventually("the controller to be refused a pod", LIMIT, || async {
            let events = events.list(&ListParams::default()).await?.items;
            let refused =
                |event: &Event| event.message.as_deref().is_some_and(|text| text.contains("failed calling webhook"));
            Ok(events.iter().any(refused).then_some(()))
        })
        .await
        .unwrap();
        webhook.lead_to(webhook.port).await;
        let another = || async { Ok(running().await?.filter(|name| *name != first)) };
        eventually("another pod to run", LIMIT, another).await.unwrap();
        play.stop.ask("seen enough");
    };
    let (outcome, ()) = tokio::join!(play.run(client.clone()), look);
    let outcome = outcome.unwrap();
    let run = play.record();
    assert!(outcome.totals.webhook_outage_secs >= 1.0, "{:?}", outcome.totals);
    assert!(codes(&run).iter().any(|(code, _)| code == "webhook-outage"), "{:?}", codes(&run));
    assert_eq!((outcome.totals.pods_without_webhook, run.pods().unwrap().count()), (0, 2));
}

//! A pause, and an API server that is restarted in the middle of a run.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use sk_api::simulation::Simulation;
use sk_testkit::Component;
use sk_testkit::control_plane::eventually;

use crate::support::*;

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}, "data": {}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_run_stands_still_and_a_restarted_api_server_costs_only_time() {
    let mut cluster = cluster().await;
    let client = cluster.client();
    install_kinds(&cluster).await;
    let simulations: Api<Simulation> = Api::all(client.clone());
    let play_of = |name: &str, story: &Story| {
        let mut play = Play::new(name, 10.0, story);
        play.options.in_cluster = true;
        play
    };
    // At ten times the speed the second one would come after ten seconds.
    let story = Story::of_secs(110).apply(0, &config_map("first")).apply(100, &config_map("second"));
    let play = play_of("paused", &story);
    let refused = play.run(client.clone()).await.unwrap_err();
    assert!(refused.to_string().contains("sk-paused"), "nobody would remove what this run makes: {refused}");
    create_metaroot(&client, "paused").await;
    let made = eventually("the Simulation to be created", LIMIT, || async {
        simulations.create(&PostParams::default(), &play.simulation).await.map(Some)
    });
    made.await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "virtual-shop");
    let progress = |name: &'static str| {
        let simulations = simulations.clone();
        async move { Ok(simulations.get(name).await?.status.and_then(|status| status.progress)) }
    };
    let pause = |paused: Value| {
        let (simulations, patch) = (simulations.clone(), json!({"spec": {"pausedTime": paused}}));
        async move { simulations.patch("paused", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap() }
    };
    let look = async {
        eventually("the first object", LIMIT, || maps.get_opt("first")).await.unwrap();
        pause(json!("2026-01-05T09:00:00Z")).await;
        // Progress is written every second, so it stands still when it is the same for three.
        let mut last = (None, 0);
        eventually("progress to be told", LIMIT, || progress("paused")).await.unwrap();
        while last.1 < 3 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let now = progress("paused").await.unwrap().and_then(|progress| progress.simulated_time);
            last = if now == last.0 { (now, last.1 + 1) } else { (now, 0) };
        }
        assert!(maps.get_opt("second").await.unwrap().is_none(), "replayed in a pause");
        let percent = progress("paused").await.unwrap().unwrap().percent;
        assert!(percent < 90, "paused at {percent}%");
        pause(Value::Null).await;
        eventually("the second object", LIMIT, || maps.get_opt("second")).await.unwrap();
    };
    let (outcome, ()) = tokio::join!(play.run(client.clone()), look);
    let outcome = outcome.unwrap();
    assert_eq!((outcome.stopped, outcome.totals.refused, outcome.totals.operations), (None, 0, 3));
    assert_eq!(outcome.totals.lateness.late, 0, "a pause is not lateness: {:?}", outcome.totals);
    let told = simulations.get("paused").await.unwrap().status.unwrap();
    assert_eq!(told.progress.map(|progress| (progress.percent, progress.events_total)), Some((100, 2)));
    assert_eq!(told.totals.map(|totals| totals.events), Some(3));

    // Fifty objects in ten seconds; the API server is away for some of them.
    let story = (0..50).fold(Story::of_secs(110), |story, n| story.apply(n * 2, &config_map(&format!("c{n}"))));
    let play = play_of("restarted", &story);
    create_metaroot(&client, "restarted").await;
    let made = eventually("the Simulation to be created", LIMIT, || async {
        simulations.create(&PostParams::default(), &play.simulation).await.map(Some)
    });
    made.await.unwrap();
    let restart = async {
        eventually("some objects", LIMIT, || maps.get_opt("c5")).await.unwrap();
        cluster.restart(Component::ApiServer).await.unwrap();
    };
    let (outcome, ()) = tokio::join!(play.run(client.clone()), restart);
    let outcome = outcome.unwrap();
    assert_eq!((outcome.stopped, outcome.totals.refused), (None, 0), "{:?}", play.record().meta().warnings);
    // The namespace is the plan's operation besides the fifty.
    assert_eq!(outcome.totals.operations, 51);
    assert!(outcome.totals.retries > 0, "{:?}", outcome.totals);
    assert!(!play.record().meta().partial);
}

//! A pause, a webhook that is not reached, and an API server that is restarted or does not come back.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use sk_api::simulation::Simulation;
use sk_testkit::Component;
use sk_testkit::control_plane::{ControlPlane, eventually};

use crate::support::*;
use crate::webhook::{a_run_that_cannot_be_admitted_does_not_begin, a_run_that_loses_its_webhook_goes_on_and_says_so};

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}, "data": {}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_lives_through_pauses_and_parts_of_the_cluster_that_go_away() {
    let mut cluster = cluster().await;
    let client = cluster.client();
    install_kinds(&cluster).await;
    let simulations: Api<Simulation> = Api::all(client.clone());
    // At ten times the speed the second one would come after ten seconds.
    let story = Story::of_secs(110).apply(0, &config_map("first")).apply(100, &config_map("second"));
    let mut play = Play::new("paused", 10.0, &story);
    play.options.in_cluster = true;
    let refused = play.run(client.clone()).await.unwrap_err();
    assert!(refused.to_string().contains("sk-paused"), "nobody would remove what this run makes: {refused}");
    play.announce(&client).await;
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
    // From the news of it to the clock that stands or goes on; how soon the news comes is the API server's.
    assert!(outcome.totals.pauses == 2 && outcome.totals.slowest_pause_ms < 1_000.0, "{:?}", outcome.totals);
    assert_eq!(outcome.totals.lateness.late, 0, "a pause is not lateness: {:?}", outcome.totals);
    let told = simulations.get("paused").await.unwrap().status.unwrap();
    assert_eq!(told.progress.map(|progress| (progress.percent, progress.events_total)), Some((100, 2)));
    assert_eq!(told.totals.map(|totals| totals.events), Some(3));

    a_run_that_cannot_be_admitted_does_not_begin(&cluster).await;
    a_run_that_loses_its_webhook_goes_on_and_says_so(&cluster).await;
    an_api_server_that_is_restarted_costs_only_time(&mut cluster).await;
    a_run_that_is_stopped_while_the_api_server_is_away_keeps_its_record(&mut cluster).await;
}

/// Fifty objects in ten seconds; the API server is away for some of them.
async fn an_api_server_that_is_restarted_costs_only_time(cluster: &mut ControlPlane) {
    let client = cluster.client();
    let story = (0..50).fold(Story::of_secs(110), |story, n| story.apply(n * 2, &config_map(&format!("c{n}"))));
    let mut play = Play::new("restarted", 10.0, &story);
    play.announce(&client).await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "virtual-shop");
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

/// The program, because its exit code and last words are what whoever stopped it sees. The API server does not come back.
async fn a_run_that_is_stopped_while_the_api_server_is_away_keeps_its_record(cluster: &mut ControlPlane) {
    let folder = tempfile::tempdir().unwrap();
    let story = (0..1000).fold(Story::of_secs(1001), |story, n| story.apply(n, &config_map(&format!("c{n}"))));
    write_files(folder.path(), &story, "away", 10.0);
    let mut driver = start(cluster, folder.path(), &["--stop-within", "5"]);
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client(), "virtual-shop");
    eventually("some objects", LIMIT, || maps.get_opt("c5")).await.unwrap();
    cluster.kill(Component::ApiServer).await.unwrap();
    terminate(&driver);
    let ended = tokio::time::timeout(LIMIT, driver.wait()).await.expect("it ends by itself").unwrap();
    assert_eq!(ended.code(), Some(130));
    let words = std::fs::read_to_string(folder.path().join("last-words")).unwrap();
    let where_it_is = folder.path().join("run").display().to_string();
    assert!(words.contains("asked to stop") && words.contains(&where_it_is), "{words}");
    assert!(words.contains("sk-away-driver-root-0"), "what is left is named: {words}");
    assert!(sk_record::Run::open(&folder.path().join("run")).unwrap().meta().partial);
}

//! A pause, a webhook that is not reached, and an API server that is restarted or does not come back.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use sk_api::simulation::Simulation;
use sk_driver::cluster::Outcome;
use sk_testkit::Component;
use sk_testkit::control_plane::{ControlPlane, eventually};

use crate::support::*;
use crate::webhook::{a_run_that_cannot_be_admitted_does_not_begin, a_run_that_loses_its_webhook_goes_on_and_says_so};

/// How long the first pause lasts: longer than an operation is late.
const PAUSE: Duration = Duration::from_secs(5);
/// How many others there are; the one in the middle is judged.
const PAUSES: usize = 5;

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}, "data": {}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_lives_through_pauses_and_parts_of_the_cluster_that_go_away() {
    let mut cluster = cluster().await;
    install_kinds(&cluster).await;
    a_pause_stops_the_clock_at_once(&cluster).await;
    a_run_that_cannot_be_admitted_does_not_begin(&cluster).await;
    a_run_that_loses_its_webhook_goes_on_and_says_so(&cluster).await;
    an_api_server_that_is_restarted_costs_only_time(&mut cluster).await;
    a_run_that_is_stopped_while_the_api_server_is_away_keeps_its_record(&mut cluster).await;
}

/// The run begins paused, so that whatever is done in a pause would be done before anything else.
async fn a_pause_stops_the_clock_at_once(cluster: &ControlPlane) {
    let client = cluster.client();
    let simulations: Api<Simulation> = Api::all(client.clone());
    let mut play = Play::new("paused", 10.0, &Story::of_secs(3600).apply(0, &config_map("first")));
    play.simulation.spec.paused_time = Some(serde_json::from_value(json!(START)).unwrap());
    play.options.in_cluster = true;
    let refused = play.run(client.clone()).await.unwrap_err();
    assert!(refused.to_string().contains("sk-paused"), "nobody would remove what this run makes: {refused}");
    play.announce(&client).await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "virtual-shop");
    let simulated_time = || async {
        let progress = simulations.get("paused").await?.status.and_then(|status| status.progress);
        Ok(progress.and_then(|progress| progress.simulated_time))
    };
    let set_paused = |paused: Value| {
        let (simulations, patch) = (simulations.clone(), json!({"spec": {"pausedTime": paused}}));
        async move {
            simulations.patch("paused", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
            Instant::now()
        }
    };
    let mut clock = clock_lines();
    let look = async {
        let begun = eventually("progress to be told", LIMIT, simulated_time).await.unwrap();
        tokio::time::sleep(PAUSE).await;
        assert_eq!(simulated_time().await.unwrap(), Some(begun.clone()), "time goes on in a pause");
        assert!(maps.get_opt("first").await.unwrap().is_none(), "replayed in a pause");
        set_paused(Value::Null).await;
        clock.heard("resumed").await;
        eventually("the first object", LIMIT, || maps.get_opt("first")).await.unwrap();
        let later = || async { Ok(simulated_time().await?.filter(|time| *time > begun)) };
        eventually("time to go on", LIMIT, later).await.unwrap();
        // From the answer to whoever paused it to the clock that stands. A driver that looked now and then, or one that
        // heard of it after what it had to do, would fail; one stall of the machine does not.
        let mut delays = Vec::new();
        for _ in 0..PAUSES {
            let answered = set_paused(json!(START)).await;
            delays.push(clock.heard("paused").await.saturating_duration_since(answered));
            set_paused(Value::Null).await;
            clock.heard("resumed").await;
        }
        delays.sort();
        assert!(delays[PAUSES / 2] < Duration::from_secs(2), "{delays:?}");
        play.stop.ask("seen enough");
    };
    let (outcome, ()) = tokio::join!(play.run(client.clone()), look);
    let Outcome { totals, stopped, .. } = outcome.unwrap();
    assert_eq!((stopped.as_deref(), totals.refused, totals.operations), (Some("seen enough"), 0, 2));
    assert_eq!(totals.pauses, 2 * PAUSES as u64 + 1);
    assert!(totals.lateness.max_ms < PAUSE.as_secs_f64() * 1e3, "a pause is not lateness: {totals:?}");
    let told = simulations.get("paused").await.unwrap().status.unwrap();
    assert_eq!(told.progress.map(|progress| (progress.events_done, progress.events_total)), Some((1, 1)));
    assert_eq!(told.totals.map(|totals| totals.events), Some(1), "the namespace is no event of the trace");
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

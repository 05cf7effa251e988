//! 200,000 events through the whole program: its memory is that of the objects that live, not of the history.
//!
//! The events come from the test's own API server, as fast as the tracer takes them; the tracer is a process of its own,
//! so that nobody else's memory is counted.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use serde_json::json;
use tokio::sync::Notify;

use crate::fake::{self, Fake, watch};
use crate::support::{self, Process, ask};

const OBJECTS: u64 = 1_000;
const EVENTS: u64 = 200_000;
/// By then every object has been changed many times, and all buffers have had their largest size.
const WARM: usize = 50_000;
/// What may come on top in the three quarters after that: buffers and fragments, not 150,000 events of 2.4 KB, which are
/// 360 MB.
const MAX_GROWTH_BYTES: u64 = 24 << 20;
const LIMIT: Duration = Duration::from_secs(600);

/// Stand for the numbers in which the versions of an object differ.
const VERSION: u64 = 111_111_111;
const GENERATION: u64 = 222_222_222;
const REPLICAS: u64 = 333_333_333;

/// An object of about 2.4 KB as text, without its numbers: writing 200,000 of them as JSON would take longer than
/// recording them.
fn object(number: u64) -> String {
    let name = format!("web-{number}");
    let env: Vec<_> = (0..12)
        .map(|n| json!({"name": format!("VARIABLE_{n}"), "value": format!("value-{n}-{name}-{}", "x".repeat(60))}))
        .collect();
    let object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": name, "namespace": "default", "uid": format!("0000-{name}"), "resourceVersion": VERSION.to_string(),
            "labels": {"app": name}, "generation": GENERATION,
        },
        "spec": {
            "replicas": REPLICAS,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "nginx:1", "env": env, "resources": {"requests": {"cpu": "100m"}}}]},
            },
        },
        "status": {"observedGeneration": GENERATION, "replicas": 1},
    });
    fake::event("MODIFIED", &object)
}

/// All events: each object comes, and then its replicas change again and again.
fn lines() -> impl Iterator<Item = String> + Send {
    let objects: Vec<_> = (0..OBJECTS).map(object).collect();
    (0..EVENTS).zip((0..OBJECTS).cycle()).map(move |(number, index)| {
        let object = &objects[usize::try_from(index).expect("a thousand fits")];
        let line = object.replace(&VERSION.to_string(), &(number + 2).to_string());
        let line = line.replace(&GENERATION.to_string(), &number.to_string());
        let line = line.replace(&REPLICAS.to_string(), &(number / OBJECTS).to_string());
        if number < OBJECTS { line.replace("MODIFIED", "ADDED") } else { line }
    })
}

/// Bytes that a process has in memory.
fn resident(process: &Process) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.pid())).expect("the process lives");
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).expect("Linux tells");
    line.split_whitespace().nth(1).and_then(|number| number.parse::<u64>().ok()).expect("a number") << 10
}

/// How many events the tracer has handed to its store, unless it has stored fewer changes than that.
async fn stored(port: u16) -> u64 {
    let metrics = ask(port, "/metrics").await.map(|(_, text)| text).unwrap_or_default();
    let value = |name: &str| {
        let line = metrics.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_whitespace().nth(1)).and_then(|number| number.parse().ok()).unwrap_or(0)
    };
    let events: u64 = value("simkube_tracer_events_total{kind=\"apps/v1.Deployment\"}");
    events.min(value("simkube_tracer_facts_total"))
}

/// Waits until so many events are stored.
async fn until_stored(port: u16, wanted: u64) {
    let began = Instant::now();
    loop {
        match stored(port).await {
            enough if enough >= wanted => return,
            stored => assert!(began.elapsed() < LIMIT, "only {stored} events are stored after {LIMIT:?}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_grows_with_what_lives_and_not_with_history() {
    let folder = tempfile::tempdir().unwrap();
    // The rest comes only when the memory after the first part has been read.
    let gate = Arc::new(Notify::new());
    let opened = Arc::clone(&gate);
    let server = Fake::start(move |asked| {
        let is_stream = asked.plural == "deployments" && asked.watch.as_deref() == Some("1");
        let opened = Arc::clone(&opened);
        let rest = async move {
            opened.notified().await;
            stream::iter(lines().skip(WARM))
        };
        is_stream.then(|| watch(stream::iter(lines().take(WARM)).chain(stream::once(rest).flatten())))
    })
    .await;
    let config = folder.path().join("config.yaml");
    std::fs::write(&config, "trackedObjects: {apps/v1.Deployment: {}}\n").unwrap();
    let kubeconfig = server.kubeconfig(folder.path(), "t");
    let tracer = Process::start(&config, &folder.path().join("data"), &kubeconfig, &["--insecure"]);
    let (began, port) = (Instant::now(), tracer.port().await);
    until_stored(port, WARM as u64).await;
    let before = resident(&tracer);
    gate.notify_one();
    until_stored(port, EVENTS).await;
    let took = began.elapsed();
    let after = resident(&tracer);
    assert!(tracer.stop().success());
    let log = support::open(&folder.path().join("data"));
    let (stats, live) = (log.stats(), log.state().objects().count());
    println!(
        "{EVENTS} events in {:.1} s; {:.1} MiB after {WARM}, {:.1} MiB after all; {} bytes on disk, {} per event",
        took.as_secs_f64(),
        before as f64 / 1048576.0,
        after as f64 / 1048576.0,
        stats.bytes,
        stats.bytes / EVENTS,
    );
    assert_eq!(live as u64, OBJECTS);
    assert!(stats.entries >= EVENTS, "every event is a change, and every change is kept: {stats:?}");
    let replicas =
        log.state().objects().map(|(_, live)| serde_json::from_slice::<serde_json::Value>(&live.body).unwrap());
    assert!(
        replicas.into_iter().all(|body| body["spec"]["replicas"] == EVENTS / OBJECTS - 1),
        "the last version of each"
    );
    assert!(after.saturating_sub(before) < MAX_GROWTH_BYTES, "it grew from {before} to {after} bytes");
}

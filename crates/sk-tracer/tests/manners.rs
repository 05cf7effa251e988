//! How the tracer bears an API server with bad manners: one that forgets, refuses, cuts and garbles. Hermetic: the server
//! is the test's own.

#[path = "support/fake.rs"]
mod fake;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fake::{Fake, config_map, event, list, refuse, short_watch, watch};
use futures::stream;
use sk_api::tracer::Config;
use sk_core::Gvk;
use sk_store::log::{Fact, Item};
use sk_store::trace::Gap;
use sk_tracer::access::Place;
use sk_tracer::{Access, Options, Tracer};

const LIMIT: Duration = Duration::from_secs(60);

fn config() -> Config {
    Config::parse("test", "trackedObjects: {v1.ConfigMap: {}, apps/v1.Deployment: {}}\nprivacy: full\n")
        .expect("it is right")
}

async fn record(kubeconfig: std::path::PathBuf) -> Tracer {
    let place = Place { kubeconfig: Some(kubeconfig), context: None };
    let (access, _) = Access::to(place).await.expect("the kubeconfig is right");
    Tracer::start(access, config(), Options::default()).await.expect("the tracer starts")
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < LIMIT, "waited in vain for {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The values of all recorded versions, and the gaps.
async fn recorded(tracer: &Tracer) -> (Vec<String>, Vec<Gap>) {
    tracer.flush().await.expect("the store works");
    let (mut values, mut gaps) = (Vec::new(), Vec::new());
    for item in tracer.reader().items() {
        match item {
            Item::Entry(entry) => match entry.fact {
                Fact::Applied(applied) => {
                    let body: serde_json::Value = serde_json::from_slice(&applied.body).expect("bodies are JSON");
                    values.push(body["data"]["value"].as_str().unwrap_or_default().to_owned());
                }
                Fact::Gap(gap) => gaps.push(gap),
                _ => {}
            },
            _ => continue,
        }
    }
    (values, gaps)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forgotten_version_relists_its_kind_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let lists = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&lists);
    let server = Fake::start(move |asked| match (asked.plural.as_str(), asked.watch.as_deref()) {
        // The first list, one event, and then the server has forgotten; after the second list all is well.
        ("configmaps", None) => {
            let round = counted.fetch_add(1, Ordering::SeqCst) as u64;
            let left = config_map("stays", 10 + round * 10, "listed");
            let gone = config_map("goes", 10, "going");
            Some(if round == 0 { list(10, &[left, gone]) } else { list(20, &[left]) })
        }
        ("configmaps", Some("10")) => {
            let changed = event("MODIFIED", &config_map("stays", 11, "watched"));
            let forgotten = event("ERROR", &serde_json::json!({"kind": "Status", "code": 410, "message": "too old"}));
            Some(short_watch(format!("{changed}\n{forgotten}\n")))
        }
        _ => None,
    })
    .await;
    let tracer = record(server.kubeconfig(folder.path(), "t")).await;
    let config_maps: Gvk = "v1.ConfigMap".parse().unwrap();
    until("a second list", || tracer.lists(&config_maps) == 2).await;
    tracer.ready().await;
    let (values, gaps) = recorded(&tracer).await;
    assert_eq!(values, ["listed", "going", "watched", "listed"], "what came before the error is not lost");
    assert_eq!(gaps.iter().map(|gap| gap.kind.clone()).collect::<Vec<_>>(), [Some(config_maps)]);
    assert!(gaps[0].reason.contains("too old"), "{gaps:?}");
    assert_eq!(tracer.lists(&"apps/v1.Deployment".parse().unwrap()), 1);
    let reader = tracer.reader();
    let deleted =
        reader.items().filter(|item| matches!(item, Item::Entry(entry) if matches!(&entry.fact, Fact::Deleted(_))));
    assert_eq!(deleted.count(), 1, "what the second list lacks is gone");
    tracer.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_credentials_are_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let accepted = Arc::new(Mutex::new("first".to_owned()));
    let believed = Arc::clone(&accepted);
    let server = Fake::start(move |asked| {
        let accepted = believed.lock().unwrap().clone();
        if asked.token != accepted {
            return Some(refuse(401, "Unauthorized"));
        }
        match (asked.plural.as_str(), asked.watch.as_deref()) {
            ("configmaps", None) => Some(list(10, &[])),
            // Each watch ends at once, so that the next request shows its token.
            ("configmaps", Some("10")) if accepted == "first" => Some(short_watch(String::new())),
            ("configmaps", Some("10")) => {
                Some(watch(stream::iter([event("ADDED", &config_map("a", 11, "after the renewal"))])))
            }
            _ => None,
        }
    })
    .await;
    let tracer = record(server.kubeconfig(folder.path(), "first")).await;
    tracer.ready().await;
    // The file has new credentials before the server stops to accept the old ones, as when a token is rotated.
    server.kubeconfig(folder.path(), "second");
    "second".clone_into(&mut accepted.lock().unwrap());
    until("the event after the renewal", || tracer.counts().events == 1).await;
    let (values, gaps) = recorded(&tracer).await;
    assert_eq!((values, gaps), (vec!["after the renewal".to_owned()], Vec::new()), "and nothing was missed");
    tracer.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn cut_lines_rubbish_and_refusals_cost_time_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let watches = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&watches);
    let server = Fake::start(move |asked| match (asked.plural.as_str(), asked.watch.as_deref()) {
        ("configmaps", None) => Some(list(10, &[])),
        ("configmaps", Some(version)) => {
            let next =
                |version: u64| event("ADDED", &config_map(&format!("n{version}"), version, &version.to_string()));
            Some(match (counted.fetch_add(1, Ordering::SeqCst), version) {
                (0, "10") => short_watch(format!("{}\n{}", next(11), &next(12)[..40])),
                (1, "11") => short_watch(format!("{}\nthis is no event\n{}\n", next(12), next(13))),
                (2, "12") => refuse(500, "InternalError"),
                (3, "12") => refuse(429, "TooManyRequests"),
                (4, "12") => short_watch(String::new()),
                (_, "12") => watch(stream::iter([next(13), next(14)])),
                (count, version) => panic!("watch number {count} is asked from {version}"),
            })
        }
        _ => None,
    })
    .await;
    let tracer = record(server.kubeconfig(folder.path(), "t")).await;
    until("all four objects", || tracer.counts().events >= 4).await;
    let (values, gaps) = recorded(&tracer).await;
    assert_eq!(values, ["11", "12", "13", "14"], "each once, in order");
    assert_eq!(gaps, []);
    tracer.shutdown().await.unwrap();
}

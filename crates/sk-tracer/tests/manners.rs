//! How the tracer bears an API server with bad manners: one that forgets, refuses, cuts and garbles. Hermetic: the server
//! is the test's own.

#[path = "tracer/fake.rs"]
mod fake;

use std::io::Read;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fake::{Fake, config_map, event, late, list, refuse, short_watch, watch};
use futures::stream;
use serde_json::{Value, json};
use sk_api::tracer::Config;
use sk_core::{Gvk, SimDuration, SimTime};
use sk_store::log::{Entry, Fact, Item, Query};
use sk_store::trace::{Change, Format, Gap, Record};
use sk_tracer::access::Place;
use sk_tracer::{Access, ExportError, Options, Tracer};

const LIMIT: Duration = Duration::from_secs(60);

fn config() -> Config {
    Config::parse("test", "trackedObjects: {v1.ConfigMap: {}, apps/v1.Deployment: {}}\nprivacy: full\n")
        .expect("it is right")
}

async fn record(kubeconfig: PathBuf) -> Tracer {
    record_in(kubeconfig, None).await
}

async fn record_in(kubeconfig: PathBuf, data_dir: Option<PathBuf>) -> Tracer {
    record_with(kubeconfig, config(), Options { data_dir, ..Options::default() }).await
}

async fn record_with(kubeconfig: PathBuf, config: Config, options: Options) -> Tracer {
    let place = Place { kubeconfig: Some(kubeconfig), context: None };
    let (access, _) = Access::to(place).await.expect("the kubeconfig is right");
    Tracer::start(access, config, options).await.expect("the tracer starts")
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
                    let body: Value = serde_json::from_slice(&applied.body).expect("bodies are JSON");
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
            let forgotten = event("ERROR", &json!({"kind": "Status", "code": 410, "message": "too old"}));
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
    let watched = |item| match item {
        Item::Entry(Entry { at, fact: Fact::Applied(applied), .. }) => {
            String::from_utf8_lossy(&applied.body).contains("watched").then_some(at)
        }
        _ => None,
    };
    let last = tracer.reader().items().find_map(watched).expect("it is recorded");
    assert!(gaps[0].from < last, "what follows an event may have happened before the event was received");
    assert_eq!(tracer.lists(&"apps/v1.Deployment".parse().unwrap()), 1);
    let reader = tracer.reader();
    let deleted =
        reader.items().filter(|item| matches!(item, Item::Entry(entry) if matches!(&entry.fact, Fact::Deleted(_))));
    assert_eq!(deleted.count(), 1, "what the second list lacks is gone");
    tracer.shutdown().await.unwrap();
}

/// A server on which a child is seen a second before its owner, although the owner came first. `bookmarks`: does it say in
/// short watches how far it is?
async fn server_with_a_late_owner(bookmarks: bool) -> Fake {
    let watches = Mutex::new(std::collections::BTreeMap::<String, usize>::new());
    let owner = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 1}, "metadata":
        {"name": "owner", "namespace": "default", "uid": "uid-owner", "resourceVersion": "15"}});
    let mut child = config_map("child", 20, "x");
    child["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "owner", "uid": "uid-owner"}]);
    Fake::start(move |asked| {
        if asked.path.ends_with("/v1") {
            return None;
        }
        let mut watches = watches.lock().expect("nobody panicked");
        if asked.watch.is_none() {
            // Whoever lists a kind for the second time asks how far the server is.
            let is_first = watches.insert(format!("list {}", asked.plural), 1).is_none();
            return Some(list(if is_first { 10 } else { 20 }, &[]));
        }
        let count = watches.entry(asked.plural.clone()).or_default();
        *count += 1;
        let owner = event("ADDED", &owner);
        match (asked.plural.as_str(), *count) {
            ("configmaps", 1) => Some(watch(stream::iter([event("ADDED", &child)]))),
            ("deployments", 1) => {
                let late = async move {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    owner
                };
                Some(watch(stream::once(late)))
            }
            (_, 1) => None,
            _ if !bookmarks => None,
            (kind, _) => {
                let bookmark = event("BOOKMARK", &json!({"metadata": {"resourceVersion": "20"}}));
                let lines = if kind == "deployments" { vec![owner, bookmark] } else { vec![bookmark] };
                Some(watch(stream::iter(lines)))
            }
        }
    })
    .await
}

/// Which objects a whole export has for which every watch has caught up. On a busy machine that may take a second try.
async fn exported_whole(tracer: &Tracer) -> Vec<String> {
    let began = Instant::now();
    loop {
        let (objects, behind) = exported(tracer).await;
        if behind.is_empty() {
            return objects;
        }
        assert!(began.elapsed() < LIMIT, "{behind:?} never catch up");
    }
}

/// Which objects a whole export has, and which kinds had not caught up.
async fn exported(tracer: &Tracer) -> (Vec<String>, Vec<Gvk>) {
    tracer.flush().await.expect("the store works");
    let (from, _) = tracer.reader().kept().expect("something is recorded");
    let query = Query::window(from, SimTime::from_secs(4_000_000_000));
    let mut spooled = tracer.export(query, Format::Native).await.expect("the export succeeds");
    let mut bytes = Vec::new();
    spooled.file.read_to_end(&mut bytes).expect("the file is there");
    let trace = sk_store::trace::from_bytes("exported", bytes).expect("it is a trace");
    let name = |record: Result<Record, _>| match record.expect("the trace reads").change {
        Change::Apply(object) => Some(object.reference().to_string()),
        _ => None,
    };
    (trace.records().expect("the trace reads").filter_map(name).collect(), spooled.behind)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_waits_for_an_owner_that_is_seen_after_its_child() {
    let folder = tempfile::tempdir().unwrap();
    let server = server_with_a_late_owner(true).await;
    let tracer = record(server.kubeconfig(folder.path(), "t")).await;
    until("the child", || tracer.counts().events >= 1).await;
    tracer.flush().await.unwrap();
    assert_eq!(exported_whole(&tracer).await, ["Deployment default/owner"], "the child is its owner's to make");
    tracer.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_waits_for_nobody_for_ever_and_says_whom_it_did_not_wait_for() {
    let folder = tempfile::tempdir().unwrap();
    let server = server_with_a_late_owner(false).await;
    let tracer = record(server.kubeconfig(folder.path(), "t")).await;
    until("child and owner", || tracer.counts().events >= 2).await;
    tracer.flush().await.unwrap();
    let (objects, behind) = exported(&tracer).await;
    assert_eq!(objects, ["Deployment default/owner"]);
    assert!(behind.iter().any(|kind| kind.kind == "Pod"), "nobody can say that no pod was missed: {behind:?}");
    tracer.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_has_what_the_server_had_although_no_watch_has_brought_it_yet() {
    let folder = tempfile::tempdir().unwrap();
    let server = server_with_a_late_owner(true).await;
    let tracer = record(server.kubeconfig(folder.path(), "t")).await;
    tracer.ready().await;
    // Whether a watch has brought something by now or not: the server says that it is at 20.
    assert_eq!(exported_whole(&tracer).await, ["Deployment default/owner"]);
    tracer.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_that_was_not_served_is_asked_for_at_once_when_an_export_begins_and_came_with_a_gap() {
    let folder = tempfile::tempdir().unwrap();
    let served = Arc::new(AtomicBool::new(false));
    let is_served = Arc::clone(&served);
    let new = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 1}, "metadata":
        {"name": "new", "namespace": "default", "uid": "uid-new", "resourceVersion": "15"}});
    let server = Fake::start(move |asked| match (asked.path.as_str(), asked.watch.as_deref()) {
        ("/apis/apps/v1", _) if !is_served.load(Ordering::SeqCst) => Some(refuse(404, "NotFound")),
        ("/apis/apps/v1/deployments", None) => Some(list(20, std::slice::from_ref(&new))),
        (path, None) if path.ends_with("/v1") => None,
        // Everything else stands where the server stands, so that nobody has to be waited for but the new kinds.
        (_, None) => Some(list(20, &[])),
        _ => None,
    })
    .await;
    let tracer = record(server.kubeconfig(folder.path(), "t")).await;
    let deployments: Gvk = "apps/v1.Deployment".parse().unwrap();
    until("the answer that the kind is not served", || tracer.readiness().not_served.contains(&deployments)).await;
    tracer.ready().await;
    tracer.flush().await.unwrap();
    assert!(exported_whole(&tracer).await.is_empty(), "a kind that is not served has no objects to wait for");
    served.store(true, Ordering::SeqCst);
    assert_eq!(exported_whole(&tracer).await, ["Deployment default/new"]);
    let (_, gaps) = recorded(&tracer).await;
    let kinds: Vec<_> = gaps.iter().map(|gap| gap.kind.clone()).collect();
    assert_eq!(kinds, [Some(deployments)], "the ReplicaSets, of which there are none, missed nothing");
    assert!(gaps[0].reason.contains("not watched before"), "{gaps:?}");
    tracer.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_waits_for_an_owner_that_is_being_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let reference = |api_version: &str, kind: &str, name: &str| json!([{"apiVersion": api_version, "kind": kind, "name": name, "uid": format!("uid-{name}")}]);
    let meta = |name: &str, owners: Value| json!({"name": name, "namespace": "default", "uid": format!("uid-{name}"), "resourceVersion": "5", "ownerReferences": owners});
    let owner = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta("owner", json!([]))});
    let between = json!({"metadata": meta("between", reference("apps/v1", "Deployment", "owner"))});
    let mut child = config_map("child", 5, "x");
    child["metadata"] = meta("child", reference("x.io/v1", "Thing", "between"));
    let server = Fake::start(move |asked| match (asked.path.as_str(), asked.watch.is_some()) {
        ("/apis/x.io/v1", _) => Some(fake::kinds("/apis/x.io/v1", &[("", "Thing", "things")])),
        ("/apis/x.io/v1/namespaces/default/things/between", _) => Some(late(&between, Duration::from_millis(500))),
        (_, false) if asked.plural == "configmaps" => Some(list(1, std::slice::from_ref(&child))),
        (_, false) if asked.plural == "deployments" => Some(list(1, std::slice::from_ref(&owner))),
        _ => None,
    })
    .await;
    let tracer = record(server.kubeconfig(folder.path(), "t")).await;
    tracer.ready().await;
    tracer.flush().await.unwrap();
    // An export that took as long as it waits at most has not waited for the answer.
    let mut began = Instant::now();
    let mut objects = exported_whole(&tracer).await;
    while began.elapsed() > Duration::from_secs(4) {
        began = Instant::now();
        objects = exported_whole(&tracer).await;
    }
    assert_eq!(objects, ["Deployment default/owner"], "the child is its owner's");
    assert!((1..=5).contains(&tracer.counts().lookups), "{:?}: once, unless the answer came too late", tracer.counts());
    tracer.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_whose_owners_come_after_a_restart_is_looked_at_once_more_for_its_template() {
    let folder = tempfile::tempdir().unwrap();
    let template =
        json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "web:1"}]}});
    let meta = |name: &str, owner: Option<(&str, &str)>| {
        let owners = owner.map(|(kind, name)| json!({"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": format!("uid-{name}"), "controller": true}));
        json!({"name": name, "namespace": "default", "uid": format!("uid-{name}"), "resourceVersion": "5", "labels": {"app": "web"}, "ownerReferences": owners.into_iter().collect::<Vec<_>>()})
    };
    let spec = json!({"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template});
    let deployment =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta("web", None), "spec": spec});
    let set = json!({"metadata": meta("web-a", Some(("Deployment", "web")))});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": meta("web-a-x", Some(("ReplicaSet", "web-a"))), "spec": template["spec"]});
    let (owners, looks) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let (are_owners_there, looked) = (Arc::clone(&owners), Arc::clone(&looks));
    let server = Fake::start(move |asked| match (asked.path.as_str(), asked.watch.is_some()) {
        ("/api/v1/pods", false) => Some(list(10, std::slice::from_ref(&pod))),
        ("/api/v1/namespaces/default/pods/web-a-x", false) => {
            looked.fetch_add(1, Ordering::SeqCst);
            Some(late(&pod, Duration::ZERO))
        }
        ("/apis/apps/v1", _) => None,
        (path, _) if path.starts_with("/apis/apps/v1/") && !are_owners_there.load(Ordering::SeqCst) => {
            Some(refuse(503, "ServiceUnavailable"))
        }
        ("/apis/apps/v1/deployments", false) => Some(list(10, std::slice::from_ref(&deployment))),
        ("/apis/apps/v1/replicasets", false) => Some(list(10, std::slice::from_ref(&set))),
        _ => None,
    })
    .await;
    let kubeconfig = server.kubeconfig(folder.path(), "t");
    let data = folder.path().join("data");
    let before = record_in(kubeconfig.clone(), Some(data.clone())).await;
    until("the pod", || before.lists(&"v1.Pod".parse().unwrap()) == 1).await;
    before.flush().await.unwrap();
    let (beginning, _) = before.reader().kept().expect("the pod is recorded");
    before.shutdown().await.unwrap();

    owners.store(true, Ordering::SeqCst);
    let tracer = record_in(kubeconfig, Some(data)).await;
    let began = Instant::now();
    while template_of_last_pod(&tracer).await.is_none() {
        assert!(began.elapsed() < LIMIT, "the pod's template is never known");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(tracer.lists(&"v1.Pod".parse().unwrap()), 0, "its watch went on from where it was");
    assert!(looks.load(Ordering::SeqCst) > 0, "it was looked at");
    let (_, gaps) = recorded(&tracer).await;
    let missed: Vec<_> = gaps.iter().map(|gap| (gap.kind.clone().unwrap().kind, gap.from)).collect();
    for kind in ["Deployment", "ReplicaSet"] {
        assert!(missed.contains(&(kind.into(), beginning)), "what was never listed was never seen: {missed:?}");
    }
    tracer.shutdown().await.unwrap();
}

/// The template that the last fact about a pod names.
async fn template_of_last_pod(tracer: &Tracer) -> Option<sk_core::TemplateId> {
    tracer.flush().await.expect("the store works");
    let pod = |item| match item {
        Item::Entry(entry) => match entry.fact {
            Fact::Pod(pod) => Some(pod),
            _ => None,
        },
        _ => None,
    };
    tracer.reader().items().filter_map(pod).last()?.attributions.first()?.template.clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_list_that_is_refused_leaves_a_gap_and_a_watch_that_is_level_leaves_none() {
    let folder = tempfile::tempdir().unwrap();
    let refusals = AtomicUsize::new(0);
    let server = Fake::start(move |asked| match (asked.plural.as_str(), asked.watch.is_some()) {
        ("deployments", false) if refusals.fetch_add(1, Ordering::SeqCst) < 2 => Some(refuse(500, "InternalError")),
        // This kind can be listed but not watched.
        ("configmaps", true) => Some(refuse(403, "Forbidden")),
        (_, false) if !asked.path.ends_with("/v1") => Some(list(20, &[])),
        _ => None,
    })
    .await;
    let tracer = record(server.kubeconfig(folder.path(), "t")).await;
    tracer.ready().await;
    let (deployments, config_maps): (Gvk, Gvk) =
        ("apps/v1.Deployment".parse().unwrap(), "v1.ConfigMap".parse().unwrap());
    until("the watch that is refused", || tracer.readiness().broken.iter().any(|(kind, _)| *kind == config_maps)).await;
    let (_, gaps) = recorded(&tracer).await;
    let kinds: Vec<_> = gaps.iter().map(|gap| gap.kind.clone()).collect();
    assert_eq!(kinds, [Some(deployments)], "there may have been some that came and went");
    assert!(gaps[0].from < gaps[0].to, "{gaps:?}");
    // The server is at 20, and so is every watch.
    let query = Query::window(gaps[0].to + SimDuration::from_micros(1), SimTime::from_secs(4_000_000_000));
    let spooled = tracer.export(query, Format::Native).await.unwrap();
    assert_eq!(
        (spooled.behind, spooled.exported.gaps),
        (Vec::new(), 0),
        "nothing is missed of what can be watched again"
    );
    tracer.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_that_is_added_to_the_configuration_was_not_seen_since_the_log_began() {
    let folder = tempfile::tempdir().unwrap();
    let server = Fake::start(|_| None).await;
    let kubeconfig = server.kubeconfig(folder.path(), "t");
    let options = || Options { data_dir: Some(folder.path().join("data")), ..Options::default() };
    let fewer = Config::parse("test", "trackedObjects: {v1.ConfigMap: {}}\nprivacy: full\n").unwrap();
    let before = record_with(kubeconfig.clone(), fewer, options()).await;
    before.ready().await;
    before.flush().await.unwrap();
    let (beginning, _) = before.reader().kept().expect("positions are recorded");
    let remembered = folder.path().join("data/recorded-with");
    until("the configuration to be remembered", || remembered.exists()).await;
    before.shutdown().await.unwrap();

    let tracer = record_with(kubeconfig, config(), options()).await;
    tracer.ready().await;
    let (_, gaps) = recorded(&tracer).await;
    let deployments = gaps.iter().find(|gap| gap.kind.as_ref().is_some_and(|kind| kind.kind == "Deployment"));
    assert_eq!(deployments.map(|gap| gap.from), Some(beginning), "though none is there now: {gaps:?}");
    tracer.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_a_kind_that_went_before_a_restart_do_not_live_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let gone = Arc::new(AtomicBool::new(false));
    let is_gone = Arc::clone(&gone);
    let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 1}, "metadata":
        {"name": "left", "namespace": "default", "uid": "uid-left", "resourceVersion": "15"}});
    let server = Fake::start(move |asked| match asked.path.as_str() {
        path if path.starts_with("/apis/apps/v1") && is_gone.load(Ordering::SeqCst) => Some(refuse(404, "NotFound")),
        "/apis/apps/v1/deployments" if asked.watch.is_none() => Some(list(20, std::slice::from_ref(&object))),
        // Each watch ends at once, so that the next request shows that the kind is gone.
        "/apis/apps/v1/deployments" => Some(short_watch(String::new())),
        _ => None,
    })
    .await;
    let kubeconfig = server.kubeconfig(folder.path(), "t");
    let options = |gone_after| Options { data_dir: Some(folder.path().join("data")), gone_after, ..Options::default() };
    let before = record_with(kubeconfig.clone(), config(), options(LIMIT * 10)).await;
    before.ready().await;
    gone.store(true, Ordering::SeqCst);
    let deployments: Gvk = "apps/v1.Deployment".parse().unwrap();
    until("the kind to be gone", || before.readiness().not_served.contains(&deployments)).await;
    assert_eq!(deletions(&before).await, 0, "it may come back in a moment");
    before.shutdown().await.unwrap();

    let tracer = record_with(kubeconfig, config(), options(Duration::ZERO)).await;
    let began = Instant::now();
    while deletions(&tracer).await == 0 {
        assert!(began.elapsed() < LIMIT, "the object of a kind that nobody serves lives on");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let (_, gaps) = recorded(&tracer).await;
    assert!(gaps.iter().any(|gap| gap.kind.as_ref() == Some(&deployments)), "when it went nobody saw: {gaps:?}");
    tracer.shutdown().await.unwrap();
}

/// How many objects the log says are gone.
async fn deletions(tracer: &Tracer) -> usize {
    tracer.flush().await.expect("the store works");
    let deleted = |item: &Item| matches!(item, Item::Entry(entry) if matches!(&entry.fact, Fact::Deleted(_)));
    tracer.reader().items().filter(deleted).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn whose_a_folder_is_is_asked_again_if_the_right_to_know_comes_late() {
    let folder = tempfile::tempdir().unwrap();
    let allowed = Arc::new(AtomicBool::new(false));
    let is_allowed = Arc::clone(&allowed);
    let server = Fake::start(move |asked| match asked.path.as_str() {
        "/api/v1/namespaces/kube-system" if !is_allowed.load(Ordering::SeqCst) => {
            Some(refuse(403, "Forbidden"))
        }
        "/api/v1/namespaces/kube-system" => Some(late(
            &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": "this-cluster"}}),
            Duration::ZERO,
        )),
        _ => None,
    })
    .await;
    let data = folder.path().join("data");
    let tracer = record_in(server.kubeconfig(folder.path(), "t"), Some(data.clone())).await;
    tracer.ready().await;
    let file = data.join("recorded-of");
    assert!(!file.exists(), "it records although it may not know");
    allowed.store(true, Ordering::SeqCst);
    until("the answer to be written down", || file.exists()).await;
    assert_eq!(std::fs::read_to_string(file).unwrap(), "this-cluster");
    tracer.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn only_so_many_exports_are_made_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let server = Fake::start(|_| None).await;
    let tracer = record(server.kubeconfig(folder.path(), "t")).await;
    tracer.ready().await;
    tracer.flush().await.unwrap();
    let (from, _) = tracer.reader().kept().unwrap();
    let export = || tracer.export(Query::window(from, SimTime::from_secs(4_000_000_000)), Format::V2);
    let (first, second) = (export().await.unwrap(), export().await.unwrap());
    assert!(matches!(export().await, Err(ExportError::Busy)));
    drop((first, second));
    export().await.unwrap();
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

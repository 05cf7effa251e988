//! Golden runs: whole replays whose every row is kept as text, so that a change underneath shows what it changes.
//!
//! Rows and figures are compared, not Parquet's bytes. An intended change of behaviour is a commit of its own that shows
//! its golden difference: `UPDATE_GOLDEN=1 cargo test -p sk-replay --test golden` writes the files anew.

use std::fmt::{Debug, Write as _};
use std::ops::ControlFlow;
use std::path::PathBuf;

use serde_json::{Value, json};
use sk_api::Scenario;
use sk_core::rng::Stream;
use sk_core::{SimDuration, SimTime, StableHash};
use sk_record::Run;
use sk_replay::embedded::{self, RunRequest};
use sk_replay::plan::Window;
use sk_replay::setup::Setup;
use sk_store::trace::{self, Format};

/// A longer table is kept as its first rows and a hash of all.
const ROWS_SHOWN: usize = 120;

const START: SimTime = SimTime::from_secs(1_767_603_600);

/// A trace in the making: JSON Lines, in the order of time.
#[derive(Default)]
struct Story {
    lines: Vec<(i64, String)>,
}

impl Story {
    fn apply(&mut self, at_secs: i64, object: &Value) {
        self.lines.push((at_secs, format!("\"apply\":{object}")));
    }

    fn delete(&mut self, at_secs: i64, api_version: &str, kind: &str, namespace: Option<&str>, name: &str) {
        let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
        if let Some(namespace) = namespace {
            object["metadata"]["namespace"] = json!(namespace);
        }
        self.lines.push((at_secs, format!("\"delete\":{object}")));
    }

    fn text(mut self, end_secs: i64) -> String {
        self.lines.sort_by_key(|(at, _)| *at);
        let mut text = json!({"simkube": "trace", "version": 1, "config": {"trackedObjects": {}}}).to_string();
        let moment = |secs: i64| (START + SimDuration::from_secs(secs)).to_rfc3339_secs();
        for (at, line) in self.lines {
            write!(text, "\n{{\"at\":\"{}\",{line}}}", moment(at)).expect("writing into a string");
        }
        write!(text, "\n{{\"at\":\"{}\",\"mark\":\"moment\"}}\n", moment(end_secs)).expect("writing into a string");
        text
    }
}

fn deployment(name: &str, replicas: i64, cpu: &str, version: &str, more: &Value) -> Value {
    let mut spec = json!({
        "replicas": replicas, "selector": {"matchLabels": {"app": name}},
        "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{
                "name": "main", "image": format!("{name}:{version}"),
                "resources": {"requests": {"cpu": cpu, "memory": "256Mi"}},
            }]},
        },
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "shop"}, "spec": spec})
}

fn pod(name: &str, namespace: &str, cpu_milli: u64, more: &Value) -> Value {
    let mut spec = json!({"containers": [{
        "name": "main", "image": "job:1", "resources": {"requests": {"cpu": format!("{cpu_milli}m"), "memory": "100Mi"}},
    }]});
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": spec})
}

fn scenario(groups: &str, rest: &str) -> String {
    format!("apiVersion: simkube.io/v1\nkind: Scenario\n{rest}cluster:\n  groups:\n{groups}")
}

const TIMING: &str = "timing: {imagePullDelay: 2s, imagePullJitter: 3s, podStartupDelay: 1s}\n";

/// Deployments that grow, shrink, roll, are recreated and deleted, with an autoscaler behind them.
fn rollouts() -> (String, String) {
    let mut story = Story::default();
    let recreate = json!({"strategy": {"type": "Recreate"}});
    let careful = json!({"strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}, "minReadySeconds": 20});
    story.apply(0, &deployment("web", 4, "500m", "1", &json!({})));
    story.apply(0, &deployment("api", 3, "700m", "1", &recreate));
    story.apply(5, &deployment("cart", 6, "300m", "1", &careful));
    story.apply(300, &deployment("web", 20, "500m", "1", &json!({})));
    story.apply(600, &deployment("web", 20, "500m", "2", &json!({})));
    story.apply(630, &deployment("web", 14, "500m", "3", &json!({})));
    story.apply(700, &deployment("api", 3, "900m", "2", &recreate));
    story.apply(900, &deployment("cart", 6, "300m", "2", &careful));
    story.apply(1200, &deployment("web", 2, "500m", "3", &json!({})));
    story.apply(1300, &deployment("web", 2, "500m", "1", &json!({"paused": true})));
    story.delete(1500, "apps/v1", "Deployment", Some("shop"), "api");
    story.delete(2400, "v1", "Namespace", None, "shop");
    let groups = "    small: {min: 1, max: 12, cpu: 2, memory: 4Gi, price: 0.05, ready: 45s}\n    \
                  large: {min: 0, max: 4, cpu: 8, memory: 16Gi, price: 0.21, ready: 70s}\n";
    (story.text(4800), scenario(groups, TIMING))
}

/// Bare pods of many sizes that come and go on fixed nodes with taints, labels and zones; some fit nowhere.
fn bare_pods() -> (String, String) {
    let mut story = Story::default();
    let mut draw = Stream::new(7, "golden");
    for number in 0..600 {
        let (name, at) = (format!("p{number}"), i64::try_from(draw.below(3000)).expect("small"));
        let mut more = json!({});
        if draw.below(4) == 0 {
            more["nodeSelector"] = json!({"disk": "ssd"});
        }
        if draw.below(5) == 0 {
            more["tolerations"] = json!([{"key": "spot", "operator": "Exists"}]);
        }
        if draw.below(10) == 0 {
            more["priority"] = json!(10);
        }
        let namespace = ["default", "batch", "ml"][draw.below(3) as usize];
        story.apply(at, &pod(&name, namespace, 100 + 50 * draw.below(40), &more));
        if draw.below(3) > 0 {
            story.delete(at + 60 + i64::try_from(draw.below(900)).expect("small"), "v1", "Pod", Some(namespace), &name);
        }
    }
    story.apply(10, &pod("giant", "default", 64_000, &json!({})));
    let groups = "    a: {min: 4, max: 4, cpu: 8, memory: 16Gi, labels: {disk: ssd, topology.kubernetes.io/zone: a}}\n    \
                  b: {min: 3, max: 3, cpu: 16, memory: 32Gi, labels: {topology.kubernetes.io/zone: b}}\n    \
                  c: {min: 2, max: 2, cpu: 8, memory: 16Gi, taints: [{key: spot, effect: NoSchedule}]}\n    \
                  d: {min: 2, max: 2, cpu: 8, memory: 16Gi, taints: [{key: soft, effect: PreferNoSchedule}]}\n";
    (story.text(3600), scenario(groups, "autoscaler: {scan-interval: 10s}\n"))
}

/// A surge in the ideal profile, where nothing takes time.
fn ideal_surge() -> (String, String) {
    let mut story = Story::default();
    for number in 0..12 {
        let (name, grow) = (format!("d{number}"), 60 + number * 7);
        story.apply(number * 3, &deployment(&name, 2, "250m", "1", &json!({})));
        story.apply(grow, &deployment(&name, 30, "250m", "1", &json!({})));
        story.apply(1200 + number, &deployment(&name, 1, "250m", "1", &json!({})));
    }
    let groups = "    g: {min: 2, max: 60, cpu: 4, memory: 16Gi, ready: 30s}\n";
    (story.text(4000), scenario(groups, "timing: {profile: ideal}\nseed: 5\n"))
}

/// A workload of any kind whose pods are like those of a Deployment.
fn workload(api_version: &str, kind: &str, name: &str, more: &Value) -> Value {
    let mut object = deployment(name, 1, "200m", "1", &json!({}));
    (object["apiVersion"], object["kind"]) = (json!(api_version), json!(kind));
    let spec = object["spec"].as_object_mut().expect("a spec");
    spec.remove("replicas");
    if api_version == "batch/v1" {
        spec.remove("selector");
        spec["template"]["spec"]["restartPolicy"] = json!("Never");
    }
    for (key, value) in more.as_object().into_iter().flatten() {
        spec.insert(key.clone(), value.clone());
    }
    object
}

/// With another image, and so another template.
fn version_two(mut workload: Value) -> Value {
    workload["spec"]["template"]["spec"]["containers"][0]["image"] = json!("other:2");
    workload
}

/// How long the pods of a Job run.
fn lasting(mut job: Value, lifetime: &str) -> Value {
    job["spec"]["template"]["metadata"] = json!({"annotations": {"static.simkube.io/lifetime": lifetime}});
    job
}

/// StatefulSets, DaemonSets, Jobs and CronJobs, budgets and priorities, on nodes of two groups.
fn workloads() -> (String, String) {
    let mut story = Story::default();
    let apps = |kind, name, more: &Value| workload("apps/v1", kind, name, more);
    let sets = json!({
        "replicas": 4, "serviceName": "db",
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
        }}],
    });
    let parallel = json!({"replicas": 6, "serviceName": "cache", "podManagementPolicy": "Parallel"});
    story.apply(0, &apps("StatefulSet", "db", &sets));
    story.apply(0, &apps("StatefulSet", "cache", &parallel));
    story.apply(
        5,
        &json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "db", "namespace": "shop"},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "db"}}},
        }),
    );
    let careful = json!({"updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}}});
    let beside = json!({"updateStrategy": {"rollingUpdate": {"maxSurge": "50%", "maxUnavailable": 0}}});
    story.apply(10, &apps("DaemonSet", "log", &careful));
    story.apply(10, &apps("DaemonSet", "net", &beside));
    let job = |name, more: &Value| workload("batch/v1", "Job", name, more);
    story.apply(60, &lasting(job("sums", &json!({"completions": 9, "parallelism": 3})), "40s"));
    let indexed =
        json!({"completions": 5, "parallelism": 5, "completionMode": "Indexed", "ttlSecondsAfterFinished": 300});
    story.apply(70, &lasting(job("parts", &indexed), "90s"));
    let nightly = lasting(job("nightly", &json!({"completions": 2, "parallelism": 2})), "30s");
    story.apply(90, &json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly", "namespace": "shop"},
        "spec": {"schedule": "*/10 * * * *", "concurrencyPolicy": "Forbid", "jobTemplate": {"spec": nightly["spec"]}},
    }));
    story.apply(100, &json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 1000,
    }));
    let mut urgent = deployment("urgent", 4, "1500m", "1", &json!({}));
    urgent["spec"]["template"]["spec"]["priorityClassName"] = json!("urgent");
    story.apply(300, &deployment("filler", 14, "1", "1", &json!({})));
    story.apply(600, &urgent);
    story.apply(900, &version_two(apps("StatefulSet", "db", &sets)));
    story.apply(1000, &version_two(apps("DaemonSet", "log", &careful)));
    story.apply(1100, &version_two(apps("DaemonSet", "net", &beside)));
    story.apply(1400, &apps("StatefulSet", "cache", &json!({"replicas": 2, "serviceName": "cache"})));
    story.delete(1500, "apps/v1", "StatefulSet", Some("shop"), "db");
    story.delete(1800, "apps/v1", "DaemonSet", Some("shop"), "log");
    let groups =
        "    a: {min: 4, max: 4, cpu: 4, memory: 16Gi}\n    b: {min: 1, max: 3, cpu: 4, memory: 16Gi, ready: 40s}\n";
    (story.text(2700), scenario(groups, TIMING))
}

/// The bundled story.
fn nginx() -> (String, String) {
    (include_str!("../../../examples/nginx.jsonl").to_owned(), include_str!("../../../examples/nginx.yaml").to_owned())
}

/// The trace in the native format, in which objects that are alike are read once.
fn native(text: &str) -> Vec<u8> {
    let trace = trace::from_bytes("golden", text.to_owned().into_bytes()).expect("the trace opens");
    let mut bytes = Vec::new();
    trace::convert(&trace, Format::Native, &mut bytes).expect("the trace is converted");
    bytes
}

fn run(trace: Vec<u8>, scenario: &str) -> String {
    let trace = trace::from_bytes("golden", trace).expect("the trace opens");
    let scenario = Scenario::parse("golden.yaml", scenario).expect("the scenario is well-formed");
    let (start, end) = trace.span().expect("the trace has records");
    let setup = Setup::new(&scenario);
    let text = scenario.to_yaml();
    let window = Window { start, end, includes_end: true };
    let request = RunRequest::new(&trace, window, &setup, &text, "golden");
    let dir = tempfile::tempdir().expect("there is room for a temporary folder");
    let staged = embedded::run(&request, &dir.path().join("run"), &mut |_| ControlFlow::Continue(()));
    let staged = staged.expect("the replay ends");
    rows(&staged.run().expect("its record opens"))
}

fn rows(run: &Run) -> String {
    let mut text = format!("{:#?}\n", run.meta().warnings);
    table(&mut text, "pods", run.pods().expect("pods"));
    table(&mut text, "nodes", run.nodes().expect("nodes"));
    table(&mut text, "series", run.series().expect("series"));
    table(&mut text, "decisions", run.decisions().expect("decisions"));
    table(&mut text, "autoscaler", run.autoscaler().expect("decisions of the autoscaler"));
    table(&mut text, "events", run.events().expect("events"));
    text
}

fn table<R: Debug, E: Debug>(text: &mut String, name: &str, rows: impl Iterator<Item = Result<R, E>>) {
    let rows: Vec<String> = rows.map(|row| format!("{:?}", row.expect("the record is whole"))).collect();
    let hash = StableHash::of(&json!(rows));
    writeln!(text, "\n== {name}: {} rows, hash {hash}", rows.len()).expect("writing into a string");
    for row in rows.iter().take(ROWS_SHOWN) {
        writeln!(text, "{row}").expect("writing into a string");
    }
}

fn check(name: &str, (trace, scenario): &(String, String)) {
    let found = run(trace.clone().into_bytes(), scenario);
    assert!(found == run(native(trace), scenario), "{name}: the same trace in another form has another answer");
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{name}.txt"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &found).expect("the golden file is written");
        return;
    }
    let expected = std::fs::read_to_string(&path).expect("the golden file is there");
    let different = expected.lines().zip(found.lines()).enumerate().find(|(_, (old, new))| old != new);
    assert_eq!(different, None, "{name}: first difference (line, (golden, now))");
    assert_eq!(expected.lines().count(), found.lines().count(), "{name}: more or fewer lines");
}

#[test]
fn the_nginx_story_is_as_it_was() {
    check("nginx", &nginx());
}

#[test]
fn rollouts_with_an_autoscaler_are_as_they_were() {
    check("rollouts", &rollouts());
}

#[test]
fn bare_pods_on_fixed_nodes_are_as_they_were() {
    check("bare-pods", &bare_pods());
}

#[test]
fn workloads_of_every_kind_are_as_they_were() {
    check("workloads", &workloads());
}

#[test]
fn a_surge_without_latencies_is_as_it_was() {
    check("ideal-surge", &ideal_surge());
}

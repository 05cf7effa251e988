//! A simulation can be forked at any moment: the cluster, what is still to be replayed, and the record so far. Whatever is
//! done to one of the two, the other's record is that of a run that nobody forked, byte for byte.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::Path;

use serde_json::{Value, json};
use sk_api::Scenario;
use sk_core::rng::Stream;
use sk_core::{SimDuration, SimTime};
use sk_engine::api::{Object, Request};
use sk_record::Run;
use sk_replay::embedded::{RunRequest, Running};
use sk_replay::plan::Window;
use sk_replay::setup::Setup;
use sk_store::trace::{self, Trace};

const START: SimTime = SimTime::from_secs(1_767_603_600);
const SECONDS: u64 = 1800;

fn deployment(name: &str, replicas: u64, cpu_milli: u64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{
                "name": "main", "image": "a:1", "resources": {"requests": {"cpu": format!("{cpu_milli}m")}},
            }]}},
        },
    })
}

/// One workload of each of the other kinds; the pods of Jobs end after twenty seconds.
fn others(number: u64, replicas: u64) -> Vec<Value> {
    let object = |api_version: &str, kind: &str, name: &str, spec: Value| {
        let mut object = deployment(name, replicas, 100);
        (object["apiVersion"], object["kind"]) = (json!(api_version), json!(kind));
        let changes = spec.as_object().cloned().unwrap_or_default();
        let spec = object["spec"].as_object_mut().expect("a spec");
        changes.into_iter().for_each(|(name, value)| drop(spec.insert(name, value)));
        spec.retain(|_, value| !value.is_null());
        object
    };
    let ending = json!({
        "metadata": {"annotations": {"static.simkube.io/lifetime": "20s"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "a:1"}]},
    });
    let job = json!({"replicas": null, "selector": null, "completions": 4, "parallelism": 2, "template": ending});
    let mut cron = object("batch/v1", "CronJob", "cron", json!({"replicas": null, "selector": null, "template": null}));
    cron["spec"] = json!({"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": ending}}});
    let mut budget = cron.clone();
    (budget["apiVersion"], budget["kind"]) = (json!("policy/v1"), json!("PodDisruptionBudget"));
    budget["spec"] = json!({"minAvailable": 1, "selector": {"matchLabels": {"app": "set"}}});
    vec![
        object("apps/v1", "StatefulSet", "set", json!({"serviceName": "set"})),
        object("apps/v1", "DaemonSet", "daemon", json!({"replicas": null})),
        object("batch/v1", "Job", &format!("job{number}"), job),
        cron,
        budget,
    ]
}

/// Deployments that grow and shrink, other workloads, and bare pods that come and go.
fn story(seed: u64) -> Trace {
    let mut draw = Stream::new(seed, "story");
    let mut lines = Vec::new();
    for number in 0..60 {
        let at = draw.below(SECONDS);
        let name = format!("d{}", draw.below(4));
        lines.push((at, format!("\"apply\":{}", deployment(&name, draw.below(10), 200 + 100 * draw.below(9)))));
        if number % 12 == 0 {
            let all = others(number, draw.below(5));
            lines.extend(all.iter().map(|object| (at, format!("\"apply\":{object}"))));
        }
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("p{number}"), "namespace": "load"},
            "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "300m"}}}]},
        });
        let at = draw.below(SECONDS);
        lines.push((at, format!("\"apply\":{pod}")));
        lines.push((at + 1 + draw.below(600), format!("\"delete\":{pod}")));
    }
    lines.sort_by_key(|(at, _)| *at);
    lines.push((3 * SECONDS, "\"mark\":\"moment\"".to_owned()));
    let mut text = json!({"simkube": "trace", "version": 1, "config": {"trackedObjects": {}}}).to_string();
    for (at, line) in lines {
        let at = START + SimDuration::from_secs(i64::try_from(at).expect("small"));
        write!(text, "\n{{\"at\":\"{at}\",{line}}}").expect("writing into a string");
    }
    text.push('\n');
    trace::from_bytes("story", text.into_bytes()).expect("the story is a trace")
}

/// Every file of a record, by name.
fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(dir).expect("the record is complete").map(|entry| entry.expect("it can be listed"));
    let mut files: Vec<_> = entries
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path()).expect("a file")))
        .collect();
    files.sort();
    files
}

fn pods(dir: &Path) -> Vec<sk_record::PodRow> {
    let run = Run::open(dir).expect("the record is whole");
    run.pods().expect("it has pods").collect::<Result<_, _>>().expect("its pods can be read")
}

/// Goes on to the end.
fn complete(mut running: Running<'_>, dir: &Path) {
    while running.step(&mut |_| ControlFlow::Continue(())).expect("resumed") {}
    running.finish().expect("it ends").publish().expect("its place is free");
    assert!(dir.exists());
}

#[test]
fn a_fork_goes_on_as_the_unforked_run_byte_for_byte_whatever_is_done_to_its_twin() {
    let text = "apiVersion: simkube.io/v1\nkind: Scenario\ntiming: {imagePullDelay: 2s, imagePullJitter: 3s}\n\
                cluster:\n  groups:\n    g: {min: 1, max: 9, cpu: 4, memory: 8Gi, price: 1, ready: 40s}\n";
    for seed in 1..=2 {
        let (trace, scenario) = (story(seed), Scenario::parse("s.yaml", text).expect("it is a scenario"));
        let (start, end) = trace.span().expect("it has a span");
        let setup = Setup::new(&scenario);
        let window = Window { start, end, includes_end: true };
        let request = RunRequest::new(&trace, window, &setup, text, "fork");
        let temp = tempfile::tempdir().expect("a temporary folder");
        let dir = |name: &str| temp.path().join(name);
        let run_id = request.run_id().expect("the trace has a digest");

        complete(Running::begin(&request, &dir("unforked")).expect("it begins"), &dir("unforked"));

        let mut one = Running::begin(&request, &dir("one")).expect("it begins");
        let steps = 1 + Stream::new(seed, "fork").below(150);
        for _ in 0..steps {
            assert!(one.step(&mut |_| ControlFlow::Continue(())).expect("resumed"), "the story is longer than that");
        }
        let mut equal = one.fork(&dir("equal"), &run_id).expect("it can be forked");
        let mut other = one.fork(&dir("other"), "other").expect("it can be forked twice");
        // In turns: nothing of one may be seen by another.
        let mut more = [true; 3];
        let mut turn = 0;
        while more.iter().any(|more| *more) {
            if turn == 3 {
                let extra = Object::from_json(deployment("extra", 5, 100)).expect("an object");
                other.handle(Request::apply(extra)).expect("it is recorded").expect("it is taken");
            }
            for (running, more) in [&mut other, &mut one, &mut equal].into_iter().zip(&mut more) {
                *more = running.step(&mut |_| ControlFlow::Continue(())).expect("resumed");
            }
            turn += 1;
        }
        for (running, name) in [(one, "one"), (equal, "equal"), (other, "other")] {
            complete(running, &dir(name));
        }
        let unforked = files(&dir("unforked"));
        assert!(files(&dir("one")) == unforked, "seed {seed}, forked after {steps} steps: the original changed");
        assert!(files(&dir("equal")) == unforked, "seed {seed}, forked after {steps} steps: the fork went another way");
        let kinds = ["Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob"];
        let ran = pods(&dir("unforked"));
        for kind in kinds {
            let is_of = |pod: &sk_record::PodRow| pod.owner.contains(kind) && pod.started.is_some();
            assert!(ran.iter().any(is_of), "seed {seed}: a {kind} makes pods");
        }
        let (other, unforked) = (pods(&dir("other")), pods(&dir("unforked")));
        assert!(other.iter().any(|pod| pod.owner.ends_with("/extra")), "seed {seed}: what only the twin was asked for");
        assert!(!unforked.iter().any(|pod| pod.owner.ends_with("/extra")) && other.len() > unforked.len());
    }
}

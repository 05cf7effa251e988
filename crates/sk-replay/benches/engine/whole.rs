//! A whole run: a native trace from disk, the engine in the real-like profile, the record on disk, the report's figures.

use std::fmt::Write as _;
use std::fs::File;
use std::io::BufWriter;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde_json::json;
use sk_api::Scenario;
use sk_core::{SimDuration, SimTime};
use sk_record::Staged;
use sk_replay::embedded::{self, RunRequest};
use sk_replay::plan::Window;
use sk_replay::setup::Setup;
use sk_report::html::Asked;
use sk_report::{Analysis, Judgement, Terms};
use sk_store::trace::{self, Format, Trace};

use crate::case::Case;

const START: SimTime = SimTime::from_secs(1_767_603_600);

fn trace_path(case: &Case, folder: &Path) -> PathBuf {
    folder.join(format!("{}.sktrace", case.name))
}

/// Writes the trace of a workload.
pub(crate) fn write_trace(case: &Case, folder: &Path) {
    let mut text = json!({"simkube": "trace", "version": 1, "config": {"trackedObjects": {}}}).to_string();
    let mut lines: Vec<(i64, String)> = Vec::new();
    if let Some(deployments) = case.pods.checked_div(case.per_deployment) {
        for number in 0..deployments {
            let at = i64::try_from(number * 1000).unwrap();
            lines.push((at, format!("\"apply\":{}", workload(case, number))));
            if case.has_budgets {
                lines.push((at, format!("\"apply\":{}", budget(number))));
            }
        }
    } else {
        for number in 0..case.pods {
            let (come, go) = case.span(number);
            let (cpu, memory) = case.size(number);
            let pod = json!({
                "apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("pod-{number}"), "namespace": "load"},
                "spec": {"containers": [{
                    "name": "main", "image": "load:1",
                    "resources": {"requests": {"cpu": format!("{cpu}m"), "memory": format!("{memory}Mi")}},
                }]},
            });
            lines.push((come, format!("\"apply\":{pod}")));
            let gone = json!({"apiVersion": "v1", "kind": "Pod", "metadata": pod["metadata"]});
            lines.extend(go.map(|go| (go, format!("\"delete\":{gone}"))));
        }
    }
    lines.sort_by_key(|(at, _)| *at);
    let end = lines.last().unwrap().0.max(3_600_000) + 6_000_000;
    lines.push((end, "\"mark\":\"moment\"".to_owned()));
    for (at, line) in lines {
        let at = START + SimDuration::from_millis(at);
        write!(text, "\n{{\"at\":\"{at}\",{line}}}").unwrap();
    }
    text.push('\n');
    let trace = trace::from_bytes("bench", text.into_bytes()).unwrap();
    let file = BufWriter::new(File::create(trace_path(case, folder)).unwrap());
    trace::convert(&trace, Format::Native, file).unwrap();
}

fn budget(number: u64) -> serde_json::Value {
    let name = format!("web-{number}");
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name, "namespace": "load"},
        "spec": {"maxUnavailable": "10%", "selector": {"matchLabels": {"app": name}}},
    })
}

fn workload(case: &Case, number: u64) -> serde_json::Value {
    let name = format!("web-{number}");
    let (cpu, memory) = case.size(number);
    let kind = if case.is_stateful { "StatefulSet" } else { "Deployment" };
    let mut workload = json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": "load"},
        "spec": {
            "replicas": case.per_deployment, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{
                "name": "main", "image": "load:1",
                "resources": {"requests": {"cpu": format!("{cpu}m"), "memory": format!("{memory}Mi")}},
            }]}},
        },
    });
    if case.is_stateful {
        workload["spec"]["serviceName"] = json!(name);
    }
    workload
}

fn scenario(case: &Case) -> Scenario {
    let text = format!(
        "apiVersion: simkube.io/v1\nkind: Scenario\nautoscaler: {{scan-interval: {}s, scale-down-enabled: true}}\n\
         cluster:\n  groups:\n    g: {{min: {}, max: {}, cpu: 32, memory: 128Gi, price: 1}}\n",
        case.scan_secs, case.nodes, case.nodes
    );
    Scenario::parse("bench.yaml", &text).unwrap()
}

/// From the trace on disk to the figures.
pub(crate) fn run(case: &Case, folder: &Path) {
    let trace = trace::open(&trace_path(case, folder)).unwrap();
    let out = tempfile::tempdir_in(folder).unwrap();
    let staged = simulate(&trace, &scenario(case), "bench", &out.path().join("run"));
    let run = staged.run().unwrap();
    let summary = Analysis::of(&run).unwrap().summary;
    assert_eq!(summary.pods.ran, i64::try_from(case.pods).unwrap(), "every pod runs: {:?}", run.meta().warnings);
}

pub(crate) fn simulate(trace: &Trace, scenario: &Scenario, name: &str, out: &Path) -> Staged {
    let (start, end) = trace.span().unwrap();
    let setup = Setup::new(scenario);
    let text = scenario.to_yaml();
    let window = Window { start, end, includes_end: true };
    let request = RunRequest::new(trace, window, &setup, &text, name);
    embedded::run(&request, out, &mut |_| ControlFlow::Continue(())).unwrap()
}

/// Replays a trace under a scenario, leaves the run's folder with its page, and tells how much of its user time was for the
/// page: 100,000 pods for the browser suite, which a program without optimisation would take minutes for.
pub(crate) fn leave(trace: &Path, scenario: &Path, out: &Path) {
    let trace = trace::open(trace).unwrap();
    let text = std::fs::read_to_string(scenario).unwrap();
    let scenario = Scenario::parse("scenario.yaml", &text).unwrap();
    let name = out.file_name().unwrap().to_string_lossy();
    let read = user_secs();
    let mut staged = simulate(&trace, &scenario, &name, out);
    let simulated = user_secs();
    let analysis = Analysis::of(&staged.run().unwrap()).unwrap();
    let judgement = Judgement::of(&analysis, Vec::new(), &Terms::default());
    for (name, content) in sk_report::files(&analysis, &judgement, Asked { text: &text, differs: &[] }).unwrap() {
        staged.add_file(name, content.as_bytes()).unwrap();
    }
    staged.publish().unwrap();
    println!("run {:.2} s, report {:.2} s", simulated - read, user_secs() - simulated);
}

fn user_secs() -> f64 {
    crate::measured().user_secs
}

/// The same process without a run: what memory is counted from.
pub(crate) fn read(case: &Case, folder: &Path) {
    let trace = trace::open(&trace_path(case, folder)).unwrap();
    assert!(trace.span().is_some() && !scenario(case).to_yaml().is_empty());
}

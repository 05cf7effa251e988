//! What is known before a run: which pods fit on no node, what is not modelled, and what is not simulated at all.
//!
//! The engine's own scheduler gets each pod template of the trace alone, on a cluster with one empty node of each
//! group, or with the nodes that exist at the start. A template that does not fit there will not fit later; one that
//! fits alone may still have to wait.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use sk_core::{ObjectRef, SimDuration, SmolStr, TemplateId};
use sk_engine::Engine;
use sk_engine::api::{Object, Request};
use sk_engine::kinds::{ConditionStatus, POD};
use sk_engine::new_namespace;
use sk_record::{Missing, Warning, WarningKind};
use sk_store::trace::Change;

use crate::embedded::{RunError, RunRequest};
use crate::initial_state::InitialState;
use crate::plan::{Plan, Start};
use crate::refusals::rules_of;

/// How long the scheduler is given: one look takes milliseconds.
const PATIENCE: SimDuration = SimDuration::from_secs(5);
/// How many different templates are tried. One takes about a millisecond.
const MAX_TEMPLATES: usize = 100_000;

/// What is known before a run.
#[derive(Debug, Default)]
pub struct Forecast {
    /// Pods that fit on no node, by the object that makes them, with the scheduler's message.
    pub misfits: BTreeMap<ObjectRef, String>,
    /// What the engine does not model.
    pub unmodelled: Vec<Warning>,
    /// What is not simulated, worst first.
    pub missing: Vec<Missing>,
    /// Templates that were not tried.
    pub untried: u64,
}

/// Looks at everything that the run would replay.
pub fn forecast(request: &RunRequest<'_>) -> Result<Forecast, RunError> {
    let mut found = Forecast::default();
    look_at_templates(request, &mut found)?;
    let records = request.overlay.over(request.trace.records()?, request.window.start);
    let plan = Plan::new(records, request.trace.config(), request.window);
    let mut plan = plan.judged_by(rules_of(request.trace));
    for operation in plan.by_ref() {
        operation?;
    }
    found.unmodelled = plan
        .unmodelled()
        .findings()
        .map(|(finding, count)| Warning {
            code: finding.code.to_owned(),
            kind: WarningKind::Unmodelled,
            message: finding.message.to_owned(),
            count,
        })
        .collect();
    let lives = request.trace.lives()?.collect::<Result<Vec<_>, _>>()?;
    found.missing = plan.into_gaps().into_missing(&lives, request.window);
    Ok(found)
}

fn look_at_templates(request: &RunRequest<'_>, found: &mut Forecast) -> Result<(), RunError> {
    let cluster = empty_cluster(request)?;
    let mut tried: BTreeSet<String> = BTreeSet::new();
    for record in request.overlay.over(request.trace.records()?, request.window.start) {
        let record = record?;
        let Change::Apply(object) = record.change else { continue };
        if request.window.is_after(record.at) {
            continue;
        }
        for pod in pods_of(&object, request) {
            let spec = pod["spec"].to_string();
            if tried.contains(&spec) {
                continue;
            }
            if tried.len() == MAX_TEMPLATES {
                found.untried += 1;
                continue;
            }
            tried.insert(spec);
            if let Some(words) = misfit(&cluster, pod) {
                found.misfits.entry(object.reference().clone()).or_insert(words);
            }
        }
    }
    Ok(())
}

/// A cluster with one empty node of each group, or with the nodes that exist at the start.
fn empty_cluster(request: &RunRequest<'_>) -> Result<Engine, RunError> {
    let mut setup = request.setup.clone();
    for group in &mut setup.settings.groups {
        group.min = 1;
        group.max = 1;
    }
    let start = Start { at: request.window.start, includes_first_moment: false };
    let request = RunRequest { setup: &setup, assumptions: Vec::new(), ..*request };
    let initial = InitialState::of(&request, &start, SimDuration::ZERO)?;
    let mut engine = initial.engine(&request)?;
    engine.advance_to(start.at + PATIENCE);
    Ok(engine)
}

/// The pods that an object makes, or is.
fn pods_of(object: &sk_store::trace::Object, request: &RunRequest<'_>) -> Vec<Value> {
    let reference = object.reference();
    let namespace = reference.key.namespace.clone().unwrap_or_else(|| SmolStr::new_static("default"));
    let pod = |template: &Value| {
        let labels = template.pointer("/metadata/labels").cloned().unwrap_or_else(|| json!({}));
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": NAME, "namespace": namespace, "labels": labels},
            "spec": template.get("spec").cloned().unwrap_or_else(|| json!({})),
        })
    };
    let paths = request.trace.config().template_paths(&reference.gvk);
    let all = TemplateId::all_in(object.value(), &paths);
    all.iter().filter_map(|template| template.path.get(object.value())).map(pod).collect()
}

/// What the pod that is tried is called.
const NAME: &str = "forecast";

/// The scheduler's message about a pod that fits nowhere; nothing if it fits, or if the API server would not take it, which
/// is reported elsewhere.
fn misfit(cluster: &Engine, pod: Value) -> Option<String> {
    let mut engine = cluster.clone();
    let pod = Object::from_json(pod).ok()?;
    let namespace = pod.key.namespace.clone()?;
    // It may be one that every cluster has.
    let _ = engine.handle(Request::create(new_namespace(&namespace)));
    let key = pod.key.clone();
    engine.handle(Request::create(pod)).ok()?;
    engine.advance_to(engine.now() + PATIENCE);
    let pod = engine.get(&POD, &key)?.pod()?;
    let refused = pod.status.condition("PodScheduled").filter(|said| said.status == ConditionStatus::False)?;
    pod.node_name.is_none().then(|| refused.message().to_owned())
}

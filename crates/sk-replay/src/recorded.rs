//! Reads a trace with observations as a run: what really happened, in the rows of a run record.
//!
//! So a recording can be compared with simulations of it. What a recording does not say stays unknown: prices, and
//! whether a deleted pod was evicted, preempted or deleted by its owner ([`UNKNOWN`]).

use std::collections::BTreeMap;

use serde_json::Value;
use sk_core::template::TemplateId;
use sk_core::{Gvk, ObjectRef, Resources, SimTime, SmolStr};
use sk_record::{DecisionRow, EndedBy, Engine, Explained, NodeRow, Outcome, PodRow, RunMeta, SeriesRow};
use sk_store::trace::{Change, NodeEvent, Observation, Trace, TraceError};

use crate::plan::{Window, demand};
use crate::record::{about, owner_name};

/// Pods that are read into memory: as many as a run may have.
const MAX_PODS: usize = 1_000_000;

/// Figures that a recording cannot tell; everything else it can.
pub const UNKNOWN: [&str; 7] =
    ["pods.finished", "pods.failed", "evicted.pods", "preempted.pods", "churn.pods", "cost.total", "missing.pods"];

/// What the recorded run is called.
pub const NAME: &str = "recorded";

/// Why a trace cannot be read as a run.
#[derive(Debug, thiserror::Error)]
pub enum RecordedError {
    /// It cannot be read at all.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// There is nothing in it to compare with.
    #[error("{0} has no observations, so there is nothing to compare with; record it with `skctl record` or `export`")]
    NoObservations(String),
    /// It is too large.
    #[error("{0} holds more than {MAX_PODS} pods; cut it with `skctl trace slice`")]
    TooManyPods(String),
}

/// What really happened, as rows.
#[derive(Debug)]
pub struct Recorded {
    /// About the recording.
    pub meta: RunMeta,
    /// Every pod.
    pub pods: Vec<PodRow>,
    /// Every node.
    pub nodes: Vec<NodeRow>,
    /// Desired replicas.
    pub series: Vec<SeriesRow>,
    /// The scheduler's messages, as far as pods' conditions have them.
    pub decisions: Vec<DecisionRow>,
}

impl Recorded {
    /// Reads the part of a trace inside the window.
    pub fn of(trace: &Trace, window: Window, version: &str) -> Result<Self, RecordedError> {
        let (requests, series) = objects(trace)?;
        let mut pods = Vec::new();
        let mut decisions = Vec::new();
        for observation in trace.observations()? {
            let observation = observation?;
            if observation.created > window.end || end_of(&observation).is_some_and(|end| end < window.start) {
                continue;
            }
            if pods.len() >= MAX_PODS {
                return Err(RecordedError::TooManyPods(trace.name().to_owned()));
            }
            pods.push(pod(&observation, &requests));
            self::decisions(&observation, &mut decisions);
        }
        if pods.is_empty() {
            return Err(RecordedError::NoObservations(trace.name().to_owned()));
        }
        decisions.sort_by_key(|decision| decision.time);
        let nodes = nodes(trace)?;
        Ok(Self { meta: meta(trace, window, version)?, pods, nodes, series, decisions })
    }
}

fn meta(trace: &Trace, window: Window, version: &str) -> Result<RunMeta, TraceError> {
    Ok(RunMeta {
        run_id: NAME.to_owned(),
        name: NAME.to_owned(),
        version: version.to_owned(),
        engine: Engine::Cluster,
        kubernetes: "recorded".to_owned(),
        seed: 0,
        trace: about(trace, window)?,
        start: window.start,
        end: window.end,
        scenario_digest: String::new(),
        currency: String::new(),
        groups: Vec::new(),
        autoscaler: None,
        warnings: crate::embedded::gaps(trace)?,
        missing: Vec::new(),
        timeline: Vec::new(),
        partial: false,
    })
}

fn end_of(observation: &Observation) -> Option<SimTime> {
    observation.deleted.or(observation.finished)
}

/// What pods request, by template or by the bare pod itself.
type Requests = BTreeMap<(ObjectRef, Option<TemplateId>), Resources>;

/// What the objects of the trace say about their pods' requests and their own replicas, in one pass.
fn objects(trace: &Trace) -> Result<(Requests, Vec<SeriesRow>), TraceError> {
    let mut requests = Requests::new();
    let mut series = Vec::new();
    let mut replicas: BTreeMap<ObjectRef, Option<i64>> = BTreeMap::new();
    for record in trace.records()? {
        let record = record?;
        let (object, value) = match &record.change {
            Change::Apply(object) => (object.reference(), Some(object.value())),
            Change::Delete(deletion) => (&deletion.object, None),
            Change::Mark(_) => continue,
        };
        if let Some(value) = value {
            learn_requests(object, value, trace, &mut requests);
        }
        let now = value.and_then(|value| value["spec"]["replicas"].as_i64());
        let before = replicas.insert(object.clone(), now).flatten();
        if before != now {
            let key = owner_name(object);
            let value = now.map(|now| now as f64);
            series.push(SeriesRow { time: record.at, series: SeriesRow::REPLICAS.to_owned(), key, value });
        }
    }
    Ok((requests, series))
}

fn learn_requests(object: &ObjectRef, value: &Value, trace: &Trace, requests: &mut Requests) {
    if object.gvk.kind == "Pod" {
        requests.insert((object.clone(), None), demand::requested(&value["spec"]));
    }
    for path in trace.config().template_paths(&object.gvk) {
        for (at, template) in path.find(value) {
            let requested = demand::requested(&template["spec"]);
            let id = TemplateId::of(at, template);
            // The newest template stands in for pods of which nobody knows the template.
            requests.insert((object.clone(), None), requested.clone());
            requests.insert((object.clone(), Some(id)), requested);
        }
    }
}

fn pod(observation: &Observation, requests: &Requests) -> PodRow {
    let bare = || ObjectRef { gvk: Gvk::new_static("", "v1", "Pod"), key: observation.pod.clone() };
    let owner = observation.owner.clone().unwrap_or_else(bare);
    let by_template = requests.get(&(owner.clone(), observation.template.clone()));
    let requested = by_template.or_else(|| requests.get(&(owner.clone(), None)));
    let (cpu_m, memory_bytes) = requested.map_or((0, 0), |requested| (requested.cpu_milli, requested.memory));
    let phase = match (observation.started, observation.finished) {
        (None, _) => "Pending",
        (Some(_), None) => "Running",
        (Some(_), Some(_)) => "Succeeded",
    };
    PodRow {
        namespace: observation.pod.namespace_or_empty().to_owned(),
        name: observation.pod.name.to_string(),
        uid: String::new(),
        owner: owner_name(&owner),
        created: observation.created,
        scheduled: observation.scheduled,
        started: observation.started,
        finished: observation.finished,
        deleted: observation.deleted,
        node: observation.node.as_ref().map(ToString::to_string),
        group: None,
        cpu_m,
        memory_bytes,
        phase: phase.to_owned(),
        waited_for: observation.waits.last().map(|wait| wait.message.clone()),
        ended_by: match (observation.deleted, observation.finished) {
            (Some(_), _) => Some(EndedBy::Deleted),
            (None, Some(_)) => Some(EndedBy::Finished),
            (None, None) => None,
        },
    }
}

fn decisions(observation: &Observation, decisions: &mut Vec<DecisionRow>) {
    let bare = || ObjectRef { gvk: Gvk::new_static("", "v1", "Pod"), key: observation.pod.clone() };
    let owner = owner_name(&observation.owner.clone().unwrap_or_else(bare));
    let row = |time, outcome, node: Option<String>, message: Option<String>| DecisionRow {
        time,
        namespace: observation.pod.namespace_or_empty().to_owned(),
        pod: observation.pod.name.to_string(),
        owner: owner.clone(),
        outcome,
        node,
        message,
        explained: Explained::default(),
    };
    for wait in &observation.waits {
        decisions.push(row(wait.at, Outcome::Unschedulable, None, Some(wait.message.clone())));
    }
    if let Some(time) = observation.scheduled {
        let node = observation.node.as_ref().map(ToString::to_string);
        decisions.push(row(time, Outcome::Scheduled, node, None));
    }
}

/// Every life of every node, in order of creation.
fn nodes(trace: &Trace) -> Result<Vec<NodeRow>, TraceError> {
    let mut living: BTreeMap<SmolStr, NodeRow> = BTreeMap::new();
    let mut gone = Vec::new();
    for event in trace.node_events()? {
        let NodeEvent { at, node, object } = event?;
        match object {
            Some(object) => {
                let row = living.entry(node).or_insert_with_key(|name| new_node(name, at, &object));
                row.ready = row.ready.or_else(|| is_ready(&object).then_some(at));
            }
            None => gone.extend(living.remove(&node).map(|row| NodeRow { deleted: Some(at), ..row })),
        }
    }
    gone.extend(living.into_values());
    gone.sort_by(|a, b| (a.created, &a.name).cmp(&(b.created, &b.name)));
    Ok(gone)
}

fn new_node(name: &str, at: SimTime, object: &Value) -> NodeRow {
    let allocatable = &object["status"]["allocatable"];
    let quantity = |name: &str| allocatable[name].as_str().and_then(|text| text.parse::<sk_core::Quantity>().ok());
    let created = object["metadata"]["creationTimestamp"].as_str().and_then(|text| SimTime::parse_rfc3339(text).ok());
    NodeRow {
        name: name.to_owned(),
        group: None,
        created: created.unwrap_or(at).min(at),
        ready: None,
        deleted: None,
        cpu_m: quantity("cpu").map_or(0, sk_core::Quantity::milli_value),
        memory_bytes: quantity("memory").map_or(0, sk_core::Quantity::value),
        pods: quantity("pods").map_or(0, sk_core::Quantity::value),
        price_per_hour: None,
    }
}

fn is_ready(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    // A recording under `privacy: minimal` may leave conditions out: then a node that is there is taken for ready.
    conditions.is_none_or(|all| all.iter().any(|one| one["type"] == "Ready" && one["status"] == "True"))
}

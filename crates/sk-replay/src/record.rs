//! From watched changes to the rows of a run record: the same for both engines.
//!
//! A change is a [`Seen`]: the embedded engine has them in its log; for a live cluster they are made from what its
//! watches say, with original names and times on the trace's clock. Holds one row per pod and node that is alive; a row
//! is written when its pod or node is gone, or when the run ends.

use std::collections::BTreeMap;
use std::sync::Arc;

use sk_core::{ObjectKey, ObjectRef, SimTime, SmolStr};
use sk_engine::api::directives::NODE_GROUP;
use sk_engine::api::{Body, Change, Object, Uid, WatchEvent};
use sk_engine::kinds::{Condition, ConditionStatus, Node, Pod, PodPhase};
use sk_record::{DecisionRow, EndedBy, Error, Explained, NodeRow, Outcome, PodRow, SeriesRow, Writer};
use sk_store::trace::{Trace, TraceError};

use crate::plan::{OWNER_ANNOTATION, Window, parse_owner};

/// What a run record says of the trace that was replayed, the same for both targets.
pub fn about(trace: &Trace, window: Window) -> Result<sk_record::Trace, TraceError> {
    let (start, end) = trace.span().unwrap_or((window.start, window.end));
    Ok(sk_record::Trace {
        name: trace.name().rsplit('/').next().unwrap_or_default().to_owned(),
        digest: trace.digest()?.to_string(),
        format: trace.format().name().to_owned(),
        start,
        end,
        recorded: trace.observations()?.next().is_some(),
    })
}

/// One change of one object.
#[derive(Clone, Debug)]
pub struct Seen {
    /// When, on the trace's clock.
    pub at: SimTime,
    /// What happened.
    pub change: Change,
    /// The object after it; for a deletion, its last state.
    pub object: Arc<Object>,
}

impl From<&WatchEvent> for Seen {
    fn from(event: &WatchEvent) -> Self {
        Self { at: event.at, change: event.change, object: event.object.clone() }
    }
}

/// The series of desired replicas.
const REPLICAS: &str = "replicas";

/// Turns changes into rows.
pub struct Recorder {
    writer: Writer,
    /// Price of a node-hour by group.
    prices: BTreeMap<SmolStr, f64>,
    pods: BTreeMap<ObjectKey, PodRow>,
    nodes: BTreeMap<SmolStr, NodeRow>,
    /// Every object that may own others: what it is called at the top of its chain.
    owners: BTreeMap<Uid, String>,
    replicas: BTreeMap<String, i64>,
    /// What the scheduler said of decisions that are yet to be seen: those by which a pod gets a node, and those by which
    /// it is told something.
    explained: BTreeMap<(Uid, Option<String>), Explained>,
}

impl Recorder {
    /// A recorder that writes here; `prices` are those of a node-hour, by group.
    pub fn new(writer: Writer, prices: BTreeMap<SmolStr, f64>) -> Self {
        Self {
            writer,
            prices,
            pods: BTreeMap::new(),
            nodes: BTreeMap::new(),
            owners: BTreeMap::new(),
            replicas: BTreeMap::new(),
            explained: BTreeMap::new(),
        }
    }

    /// Takes in one change.
    pub fn see(&mut self, event: &Seen) -> Result<(), Error> {
        match &event.object.body {
            Body::Pod(pod) => self.see_pod(event, pod),
            Body::Node(node) => self.see_node(event, node),
            _ => self.see_owner(event),
        }
    }

    /// Writes what is still alive; the caller ends the record.
    pub fn finish(mut self) -> Result<Writer, Error> {
        for mut row in std::mem::take(&mut self.pods).into_values() {
            name_group(&mut row, &self.nodes);
            self.writer.push_pod(&row)?;
        }
        for row in std::mem::take(&mut self.nodes).into_values() {
            self.writer.push_node(&row)?;
        }
        Ok(self.writer)
    }

    /// What the scheduler says of a decision whose outcome is yet to be seen.
    pub fn explain(&mut self, said: sk_engine::Explained) {
        let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let explained = Explained {
            evaluated: said.counts.map(|(evaluated, _)| count(evaluated)),
            feasible: said.counts.map(|(_, feasible)| count(feasible)),
            scores: joined(&said.scores, "; ", shown_scores),
            victims: joined(&said.victims, ", ", ToString::to_string),
        };
        self.explained.insert((said.pod, said.message), explained);
    }

    fn see_pod(&mut self, event: &Seen, pod: &Pod) -> Result<(), Error> {
        let (object, at) = (&event.object, event.at);
        if !self.pods.contains_key(&object.key) {
            let row = new_pod_row(object, pod, at, self.owner_of(object));
            self.pods.insert(object.key.clone(), row);
        }
        self.decide(event, pod)?;
        let Some(row) = self.pods.get_mut(&object.key) else { return Ok(()) };
        name_group(row, &self.nodes);
        row.phase = format!("{:?}", pod.status.phase);
        if pod.status.phase != PodPhase::Pending {
            row.started = row.started.or(pod.status.started);
        }
        if pod.status.phase.is_final() {
            row.finished = row.finished.or(pod.status.finished).or(Some(at));
            row.ended_by.get_or_insert(match pod.status.phase {
                PodPhase::Failed => EndedBy::Failed,
                _ => EndedBy::Finished,
            });
        }
        if event.change == Change::Deleted {
            forget(&mut self.explained, object.uid);
            row.deleted = Some(at);
            row.ended_by.get_or_insert(end_of(pod, &self.nodes));
            let row = self.pods.remove(&object.key).expect("the row was there a moment ago");
            self.writer.push_pod(&row)?;
        }
        Ok(())
    }

    /// The scheduler's word on a pod, as it stands in the pod itself.
    fn decide(&mut self, event: &Seen, pod: &Pod) -> Result<(), Error> {
        let Some(row) = self.pods.get_mut(&event.object.key) else { return Ok(()) };
        let mut decision = DecisionRow {
            time: event.at,
            namespace: row.namespace.clone(),
            pod: row.name.clone(),
            owner: row.owner.clone(),
            outcome: Outcome::Unschedulable,
            node: None,
            message: None,
            explained: Explained::default(),
        };
        if let (Some(node), None) = (&pod.node_name, row.scheduled) {
            row.scheduled = Some(event.at);
            row.node = Some(node.to_string());
            decision.outcome = Outcome::Scheduled;
            decision.node = Some(node.to_string());
            decision.explained = self.explained.remove(&(event.object.uid, None)).unwrap_or_default();
            return self.writer.push_decision(&decision);
        }
        let refused =
            pod.status.condition("PodScheduled").filter(|condition| condition.status == ConditionStatus::False);
        let message = refused.map(|condition| condition.message().to_owned());
        if message.is_some() && row.scheduled.is_none() && message != row.waited_for {
            row.waited_for.clone_from(&message);
            let about = (event.object.uid, message.clone());
            decision.explained = self.explained.remove(&about).unwrap_or_default();
            decision.message = message;
            return self.writer.push_decision(&decision);
        }
        Ok(())
    }

    fn see_node(&mut self, event: &Seen, node: &Node) -> Result<(), Error> {
        let (object, at) = (&event.object, event.at);
        let group = object.meta.labels.get(&NODE_GROUP);
        let price_per_hour = group.and_then(|group| self.prices.get(group)).copied();
        let row = self.nodes.entry(object.key.name.clone()).or_insert_with(|| {
            let (allocatable, pods) = node.allocatable();
            NodeRow {
                name: object.key.name.to_string(),
                group: group.map(SmolStr::to_string),
                created: at,
                ready: None,
                deleted: None,
                cpu_m: allocatable.cpu_milli,
                memory_bytes: allocatable.memory,
                pods,
                price_per_hour,
            }
        });
        if node.is_ready() {
            row.ready.get_or_insert(at);
        }
        if event.change == Change::Deleted {
            row.deleted = Some(at);
            let row = self.nodes.remove(&object.key.name).expect("the row was there a moment ago");
            self.writer.push_node(&row)?;
        }
        Ok(())
    }

    fn see_owner(&mut self, event: &Seen) -> Result<(), Error> {
        let object = &event.object;
        let owner = self.owner_of(object);
        if object.controller().is_none() {
            self.see_replicas(event, &owner)?;
        }
        match event.change {
            Change::Deleted => self.owners.remove(&object.uid),
            _ => self.owners.insert(object.uid, owner),
        };
        Ok(())
    }

    /// The desired replicas of what was replayed, as a step function.
    fn see_replicas(&mut self, event: &Seen, owner: &str) -> Result<(), Error> {
        let replicas = match &event.object.body {
            Body::Deployment(deployment) => Some(i64::from(deployment.spec.replicas)),
            Body::ReplicaSet(set) => Some(i64::from(set.spec.replicas)),
            Body::StatefulSet(set) => Some(i64::from(set.spec.replicas)),
            Body::Other(other) => {
                other.fields.get("spec").and_then(|spec| spec.get("replicas")).and_then(serde_json::Value::as_i64)
            }
            _ => None,
        };
        let Some(replicas) = replicas else { return Ok(()) };
        let value = (event.change != Change::Deleted).then_some(replicas);
        let before = match value {
            Some(value) => self.replicas.insert(owner.to_owned(), value),
            None => self.replicas.remove(owner),
        };
        if before == value {
            return Ok(());
        }
        self.writer.push_series(&SeriesRow {
            time: event.at,
            series: REPLICAS.to_owned(),
            key: owner.to_owned(),
            value: value.map(|value| value as f64),
        })
    }

    /// `namespace/Kind/name` at the top of the object's chain of controllers.
    fn owner_of(&self, object: &Object) -> String {
        let above = object.controller().and_then(|owner| self.owners.get(&owner.uid)).cloned();
        // Who watches only pods, as on a live cluster, knows their owners by the stamp on their template.
        above.or_else(|| stamped_owner(object)).unwrap_or_else(|| owner_name(&object.reference()))
    }
}

fn stamped_owner(object: &Object) -> Option<String> {
    object.meta.annotations.get(OWNER_ANNOTATION).and_then(|text| parse_owner(text)).map(|owner| owner_name(&owner))
}

/// What an object is called in the record: `namespace/Kind/name`.
pub(crate) fn owner_name(owner: &ObjectRef) -> String {
    match &owner.key.namespace {
        Some(namespace) => format!("{namespace}/{}/{}", owner.gvk.kind, owner.key.name),
        None => format!("{}/{}", owner.gvk.kind, owner.key.name),
    }
}

fn new_pod_row(object: &Object, pod: &Pod, at: SimTime, owner: String) -> PodRow {
    let requests = pod.spec.requests();
    PodRow {
        namespace: object.key.namespace_or_empty().to_owned(),
        name: object.key.name.to_string(),
        uid: object.uid.to_string(),
        owner,
        created: at,
        scheduled: None,
        started: None,
        finished: None,
        deleted: None,
        node: None,
        group: None,
        cpu_m: requests.cpu_milli,
        memory_bytes: requests.memory,
        phase: String::new(),
        waited_for: None,
        ended_by: None,
    }
}

/// Says which group the pod's node is of. Each time the pod is seen, until it is known: on a cluster nodes and pods are two
/// watches, and a pod may be seen on a new node before that node is.
fn name_group(row: &mut PodRow, nodes: &BTreeMap<SmolStr, NodeRow>) {
    if row.group.is_none() {
        let node = row.node.as_deref().and_then(|name| nodes.get(name));
        row.group = node.and_then(|node| node.group.clone());
    }
}

/// Why a pod that was deleted went.
fn end_of(pod: &Pod, nodes: &BTreeMap<SmolStr, NodeRow>) -> EndedBy {
    let disruption = pod.status.condition("DisruptionTarget").map(Condition::reason);
    let node_is_gone = pod.node_name.as_ref().is_some_and(|node| !nodes.contains_key(node));
    match disruption {
        Some("PreemptionByScheduler") => EndedBy::Preempted,
        Some("EvictionByEvictionAPI") => EndedBy::Evicted,
        _ if node_is_gone => EndedBy::NodeLost,
        _ => EndedBy::Deleted,
    }
}
/// Forgets what was said of a pod.
fn forget(explained: &mut BTreeMap<(Uid, Option<String>), Explained>, pod: Uid) {
    while let Some(key) = explained.range((pod, None)..).next().map(|(key, _)| key.clone()).filter(|key| key.0 == pod) {
        explained.remove(&key);
    }
}

/// `node-1 512 (NodeResourcesFit 92, TaintToleration 300)`.
fn shown_scores(node: &sk_engine::NodeScore) -> String {
    let plugins: Vec<String> = node.plugins.iter().map(|(plugin, score)| format!("{plugin} {score}")).collect();
    format!("{} {} ({})", node.node, node.total, plugins.join(", "))
}

/// Nothing where there is nothing.
fn joined<T>(items: &[T], between: &str, show: impl Fn(&T) -> String) -> Option<String> {
    let texts: Vec<String> = items.iter().map(show).collect();
    (!texts.is_empty()).then(|| texts.join(between))
}

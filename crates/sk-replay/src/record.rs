//! Turns watched changes into rows of a run record: the same for both engines.
//!
//! A change is a [`Seen`]: the embedded engine has them in its log; for a live cluster they are made from its watches,
//! with original names and times on the trace's clock. The recorder holds what a row needs of each existing pod and
//! node, and of a pod only what its object does not say. It writes a row when its pod or node is deleted, or when the
//! run ends.

mod live_pods;
mod names;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use sk_core::lookup::Keyed;
use sk_core::memo::Memo;
use sk_core::{ObjectKey, ObjectRef, Resources, SimTime, SmolStr};
use sk_engine::api::directives::NODE_GROUP;
use sk_engine::api::{Body, Change, Object, ObjectId, Uid, WatchEvent};
use sk_engine::kinds::{Condition, Node, POD, Pod, PodSpec};
use sk_record::{EndedBy, Error, EventRow, Explained, NodeRow, Outcome, SeriesRow, Writer};
use sk_store::trace::{Trace, TraceError};

use live_pods::{LivePod, LivePods};
use names::{NameId, Texts};

use crate::autoscaler_rows::{self, Names};
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

/// Of how many specs it is remembered what they ask for: 4,096 × 100 bytes are 0.4 MB, and the specs are those of pods.
const SPEC_MEMORY: usize = 1 << 12;

/// At most so many rows of the autoscaler's decisions are kept of one run: a loop that names a hundred pods every ten
/// seconds fills them in half a day, and a million rows are some 20 MB on disk.
const MAX_AUTOSCALER_ROWS: u64 = 1_000_000;

/// The most Events that are kept of one run: those of a million pods, some 40 MB on disk.
const MAX_EVENT_ROWS: u64 = 2_000_000;

/// Turns changes into rows.
pub struct Recorder {
    writer: Writer,
    /// Price of a node-hour by group.
    prices: BTreeMap<SmolStr, f64>,
    pods: LivePods,
    nodes: Nodes,
    /// Every object that may own others: what it is called at the top of its chain.
    owners: Keyed<Uid, NameId>,
    /// Names of owners and of node groups.
    names: Texts,
    replicas: BTreeMap<SmolStr, i64>,
    /// What pods of a spec ask for, by the spec's address.
    requests: Memo<PodSpec, Resources>,
    /// The scheduler's explanations of decisions that were not observed yet: those that bind a pod, and those that set its
    /// condition.
    explained: Keyed<Uid, Vec<(Option<SmolStr>, Explained)>>,
    /// Reused between rows: what a pod that owns itself is called.
    own_name: String,
    /// How many rows of the autoscaler's decisions there would be without a limit.
    autoscaler_rows: u64,
    /// The same of events.
    event_rows: u64,
}

/// The rows of nodes that there are, by name.
type Nodes = Keyed<SmolStr, NodeRow>;

impl Recorder {
    /// A recorder that writes here; `prices` are those of a node-hour, by group.
    pub fn new(writer: Writer, prices: BTreeMap<SmolStr, f64>) -> Self {
        Self {
            writer,
            prices,
            pods: LivePods::default(),
            nodes: Nodes::default(),
            owners: Keyed::default(),
            names: Texts::default(),
            replicas: BTreeMap::new(),
            requests: Memo::new(SPEC_MEMORY),
            explained: Keyed::default(),
            own_name: String::new(),
            autoscaler_rows: 0,
            event_rows: 0,
        }
    }

    /// What a node of each group costs from now on.
    pub(crate) fn set_prices(&mut self, prices: BTreeMap<SmolStr, f64>) {
        self.prices = prices;
    }

    /// A recorder that goes on from here by itself, for a run of that id whose record will be the folder `dir`.
    pub fn fork(&mut self, dir: &Path, run_id: &str) -> Result<Self, Error> {
        Ok(Self {
            writer: self.writer.fork(dir, run_id)?,
            prices: self.prices.clone(),
            pods: self.pods.clone(),
            nodes: self.nodes.clone(),
            owners: self.owners.clone(),
            names: self.names.clone(),
            replicas: self.replicas.clone(),
            requests: self.requests.clone(),
            explained: self.explained.clone(),
            own_name: String::new(),
            autoscaler_rows: self.autoscaler_rows,
            event_rows: self.event_rows,
        })
    }

    /// Takes in one change.
    pub fn see(&mut self, seen: &Seen) -> Result<(), Error> {
        self.see_change(seen.at, seen.change, None, &seen.object)
    }

    /// Takes in one change of the engine's log.
    pub fn see_event(&mut self, event: &WatchEvent) -> Result<(), Error> {
        self.see_change(event.at, event.change, Some(event.id), &event.object)
    }

    fn see_change(
        &mut self,
        at: SimTime,
        change: Change,
        id: Option<ObjectId>,
        object: &Arc<Object>,
    ) -> Result<(), Error> {
        match &object.body {
            Body::Pod(pod) => self.see_pod(at, change, id, object, pod),
            Body::Node(node) => self.see_node(at, change, object, node),
            Body::Namespace(_)
            | Body::Deployment(_)
            | Body::ReplicaSet(_)
            | Body::ReplicationController(_)
            | Body::StatefulSet(_)
            | Body::DaemonSet(_)
            | Body::Job(_)
            | Body::CronJob(_)
            | Body::Other(_) => self.see_owner(at, change, object),
        }
    }

    /// Writes what is still alive; the caller ends the record.
    pub fn finish(mut self) -> Result<Writer, Error> {
        for mut pod in std::mem::take(&mut self.pods).into_all() {
            pod.name_group(&self.nodes, &mut self.names);
            pod.push(None, &self.names, &mut self.own_name, &mut self.writer)?;
        }
        for (_, row) in std::mem::take(&mut self.nodes).into_sorted() {
            self.writer.push_node(&row)?;
        }
        Ok(self.writer)
    }

    /// Takes in a decision of the cluster autoscaler. Pods and nodes are named as they are known now: changes before the
    /// decision come first.
    pub fn decide(&mut self, decision: &sk_engine::Decision) -> Result<(), Error> {
        for row in autoscaler_rows::rows(decision, self) {
            self.autoscaler_rows += 1;
            if self.autoscaler_rows <= MAX_AUTOSCALER_ROWS {
                self.writer.push_autoscaler(&row)?;
            }
        }
        for row in autoscaler_rows::events(decision, self) {
            self.push_event(&row)?;
        }
        Ok(())
    }

    /// Takes in an Event about an object.
    pub fn tell(&mut self, event: &sk_engine::Event) -> Result<(), Error> {
        self.event_rows += 1;
        if self.event_rows > MAX_EVENT_ROWS {
            return Ok(());
        }
        let about = &*event.about;
        let owner = match self.owners.get(&about.uid) {
            Some(owner) => Some(self.names.get(*owner).as_str()),
            None if about.gvk == POD => {
                self.pods.find(&about.key).map(|pod| pod.owner_name(&self.names, &mut self.own_name))
            }
            None => None,
        };
        self.writer.push_event(&EventRow {
            time: event.at,
            is_warning: event.is_warning,
            reason: event.reason.as_str(),
            kind: &about.gvk.kind,
            namespace: about.key.namespace.as_deref(),
            name: &about.key.name,
            owner,
            source: event.from.as_str(),
            message: &event.message,
        })
    }

    fn push_event(&mut self, row: &EventRow<impl AsRef<str>>) -> Result<(), Error> {
        self.event_rows += 1;
        if self.event_rows <= MAX_EVENT_ROWS { self.writer.push_event(row) } else { Ok(()) }
    }

    /// How many events were left out because there were too many.
    pub fn untold(&self) -> u64 {
        self.event_rows.saturating_sub(MAX_EVENT_ROWS)
    }

    /// How many rows of the autoscaler's decisions were left out because there were too many.
    pub fn undecided(&self) -> u64 {
        self.autoscaler_rows.saturating_sub(MAX_AUTOSCALER_ROWS)
    }

    /// What the scheduler says of a decision whose outcome is yet to be seen.
    pub fn explain(&mut self, said: sk_engine::Explained) {
        let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let explained = Explained {
            evaluated: said.counts.map(|(evaluated, _)| count(evaluated)),
            feasible: said.counts.map(|(_, feasible)| count(feasible)),
            scores: said.preemption.as_ref().map(why_victims).or_else(|| joined(&said.scores, "; ", shown_scores)),
            victims: joined(&said.victims, ", ", ToString::to_string),
        };
        let of_pod = self.explained.or_insert_with(&said.pod, || Vec::with_capacity(1));
        of_pod.push((said.message.map(SmolStr::from), explained));
    }

    fn see_pod(
        &mut self,
        at: SimTime,
        change: Change,
        id: Option<ObjectId>,
        object: &Arc<Object>,
        pod: &Pod,
    ) -> Result<(), Error> {
        let place = match self.pods.place_of(id, object) {
            Some(place) => place,
            None => {
                let owner = self.owner_above(object);
                let requests = self.requests.get_or_insert_with(&pod.spec, PodSpec::requests);
                let place = self.pods.add(LivePod::new(object, &requests, at, owner));
                self.pods.note(id, place);
                place
            }
        };
        let Some(live) = self.pods.get_mut(place) else { return Ok(()) };
        live.object.clone_from(object);
        if let Some(outcome) = live.decide(at, pod) {
            let message = live.waited_for.as_deref().filter(|_| outcome == Outcome::Unschedulable);
            let explained = take_explained(&mut self.explained, object.uid, message).unwrap_or_default();
            let names = (&self.names, &mut self.own_name);
            live.push_decision(at, outcome, &explained, names, &mut self.writer)?;
        }
        live.see(at, pod, &self.nodes, &mut self.names);
        if change == Change::Deleted {
            self.explained.remove(&object.uid);
            live.ended_by.get_or_insert_with(|| end_of(pod, &self.nodes));
            if let Some(live) = self.pods.remove(place) {
                live.push(Some(at), &self.names, &mut self.own_name, &mut self.writer)?;
            }
        }
        Ok(())
    }

    fn see_node(&mut self, at: SimTime, change: Change, object: &Object, node: &Node) -> Result<(), Error> {
        let group = object.meta.labels.get(&NODE_GROUP);
        let price_per_hour = group.and_then(|group| self.prices.get(group)).copied();
        let row = self.nodes.or_insert_with(&object.key.name, || {
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
        if change == Change::Deleted {
            row.deleted = Some(at);
            let row = self.nodes.remove(&object.key.name).expect("the row was there a moment ago");
            self.writer.push_node(&row)?;
        }
        Ok(())
    }

    fn see_owner(&mut self, at: SimTime, change: Change, object: &Object) -> Result<(), Error> {
        let owner = self.owner_of(object);
        if object.controller().is_none() {
            self.see_replicas(at, change, object, &owner)?;
        }
        match change {
            Change::Deleted => self.owners.remove(&object.uid),
            Change::Added | Change::Modified => self.owners.insert(object.uid, self.names.intern(&owner)),
        };
        Ok(())
    }

    /// The desired replicas of what was replayed, as a step function.
    fn see_replicas(&mut self, at: SimTime, change: Change, object: &Object, owner: &SmolStr) -> Result<(), Error> {
        let replicas = match &object.body {
            Body::Deployment(deployment) => Some(i64::from(deployment.spec.replicas)),
            Body::ReplicaSet(set) => Some(i64::from(set.spec.replicas)),
            Body::ReplicationController(controller) => Some(i64::from(controller.0.spec.replicas)),
            Body::StatefulSet(set) => Some(i64::from(set.spec.replicas)),
            Body::Other(other) => {
                other.fields.get("spec").and_then(|spec| spec.get("replicas")).and_then(serde_json::Value::as_i64)
            }
            Body::Pod(_)
            | Body::Node(_)
            | Body::Namespace(_)
            | Body::DaemonSet(_)
            | Body::Job(_)
            | Body::CronJob(_) => None,
        };
        let Some(replicas) = replicas else { return Ok(()) };
        let value = (change != Change::Deleted).then_some(replicas);
        let before = match value {
            Some(value) => self.replicas.insert(owner.clone(), value),
            None => self.replicas.remove(owner),
        };
        if before == value {
            return Ok(());
        }
        self.writer.push_series(&SeriesRow {
            time: at,
            series: SeriesRow::REPLICAS.to_owned(),
            key: owner.to_string(),
            value: value.map(|value| value as f64),
        })
    }

    /// `namespace/Kind/name` at the top of the object's chain of controllers, which may be the object itself.
    fn owner_of(&mut self, object: &Object) -> SmolStr {
        let above = self.owner_above(object).map(|owner| self.names.get(owner).clone());
        above.unwrap_or_else(|| owner_name(&object.reference()).into())
    }

    /// The same; nothing if it is the object itself.
    fn owner_above(&mut self, object: &Object) -> Option<NameId> {
        let above = object.controller().and_then(|owner| self.owners.get(&owner.uid)).copied();
        // Who watches only pods, as on a live cluster, knows their owners by the stamp on their template.
        above.or_else(|| stamped_owner(object).map(|owner| self.names.intern(&owner)))
    }
}

impl Names for Recorder {
    fn owner(&self, pod: &ObjectKey) -> Option<SmolStr> {
        let pod = self.pods.find(pod)?;
        let owner = pod.owner.map(|owner| self.names.get(owner).clone());
        Some(owner.unwrap_or_else(|| owner_name(&pod.object.reference()).into()))
    }

    fn group(&self, node: &str) -> Option<String> {
        self.nodes.get(node).and_then(|node| node.group.clone())
    }
}

fn stamped_owner(object: &Object) -> Option<SmolStr> {
    object
        .meta
        .annotations
        .get(OWNER_ANNOTATION)
        .and_then(|text| parse_owner(text))
        .map(|owner| owner_name(&owner).into())
}

/// What an object is called in the record: `namespace/Kind/name`.
pub(crate) fn owner_name(owner: &ObjectRef) -> String {
    let mut name = String::new();
    write_name(&mut name, &owner.key, &owner.gvk.kind);
    name
}

fn write_name(name: &mut String, key: &ObjectKey, kind: &str) {
    let parts = key.namespace.as_deref().into_iter().chain([kind]);
    for part in parts {
        name.push_str(part);
        name.push('/');
    }
    name.push_str(&key.name);
}

/// Why a pod was deleted.
fn end_of(pod: &Pod, nodes: &Nodes) -> EndedBy {
    let disruption = pod.status.condition("DisruptionTarget").map(Condition::reason);
    let node_is_gone = pod.node_name.as_ref().is_some_and(|node| !nodes.contains(node));
    match disruption {
        Some("PreemptionByScheduler") => EndedBy::Preempted,
        Some("EvictionByEvictionAPI") => EndedBy::Evicted,
        _ if node_is_gone => EndedBy::NodeLost,
        _ => EndedBy::Deleted,
    }
}

/// Takes out what was last said of a pod with this message.
fn take_explained(
    explained: &mut Keyed<Uid, Vec<(Option<SmolStr>, Explained)>>,
    pod: Uid,
    message: Option<&SmolStr>,
) -> Option<Explained> {
    let of_pod = explained.get_mut(&pod)?;
    let place = of_pod.iter().rposition(|(said, _)| said.as_ref() == message)?;
    let (_, found) = of_pod.swap_remove(place);
    of_pod.retain(|(said, _)| said.as_ref() != message);
    if of_pod.is_empty() {
        explained.remove(&pod);
    }
    Some(found)
}

/// `node-1 512 (NodeResourcesFit 92, TaintToleration 300)`.
fn shown_scores(node: &sk_engine::NodeScore) -> String {
    let plugins: Vec<String> = node.plugins.iter().map(|(plugin, score)| format!("{plugin} {score}")).collect();
    format!("{} {} ({})", node.node, node.total, plugins.join(", "))
}

/// `node-1, one of 3 candidates, chosen for the fewest victims; could stay: ns/a, ns/b`.
fn why_victims(why: &sk_engine::WhyVictims) -> String {
    let mut text = match why.candidates {
        1 => format!("{}, the only candidate", why.node),
        candidates => format!("{}, one of {candidates} candidates, chosen for {}", why.node, why.criterion.words()),
    };
    if why.budget_violations > 0 {
        text.push_str(&format!("; victims that a PodDisruptionBudget protects: {}", why.budget_violations));
    }
    let (named, count) = &why.reprieved;
    text.extend(joined(named, ", ", ToString::to_string).map(|named| format!("; could stay: {named}")));
    if *count > named.len() {
        text.push_str(&format!(" and {} more", count - named.len()));
    }
    text
}

/// Nothing where there is nothing.
fn joined<T>(items: &[T], between: &str, show: impl Fn(&T) -> String) -> Option<String> {
    let texts: Vec<String> = items.iter().map(show).collect();
    (!texts.is_empty()).then(|| texts.join(between))
}

//! The node lifecycle controller: turns a node's conditions and cordon into taints, which the scheduler and the taint
//! eviction controller read, and marks the pods of a node that is no longer ready as not ready
//! (`pkg/controller/nodelifecycle`, 1.36).
//!
//! Simplified: nodes have no Leases, so the controller does not detect missing heartbeats; a scenario's timeline
//! writes `Ready: Unknown`. Evictions are not slowed down when many nodes of a zone are unhealthy. A node without a
//! `Ready` condition has not reported yet and is left alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sk_apiserver::kinds::{Condition, ConditionStatus, Node};
use sk_apiserver::{Answer, Change, KindTag, Object, ObjectId, Request, Verb, View, WatchEvent};
use sk_core::{SimTime, SmolStr, Taint, TaintEffect};

use super::pods::ready_since;
use crate::controller::{Plan, Reconciler};
use crate::events::Event;
use crate::workqueue::WorkQueue;

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
/// Conditions that keep new pods away while they hold.
const PRESSURES: [(&str, &str); 4] = [
    ("MemoryPressure", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "node.kubernetes.io/disk-pressure"),
    ("PIDPressure", "node.kubernetes.io/pid-pressure"),
    ("NetworkUnavailable", "node.kubernetes.io/network-unavailable"),
];

/// How it signs Events.
const FROM: &str = "node-controller";

/// The controller.
#[derive(Clone, Default)]
pub(crate) struct NodeLifecycle {
    /// Nodes that have just ceased to be ready.
    fallen: BTreeSet<ObjectId>,
    /// Nodes that have just come or gone.
    turnover: BTreeMap<ObjectId, WatchEvent>,
}

impl Reconciler for NodeLifecycle {
    type Key = ObjectId;

    const WATCHES: &'static [KindTag] = &[KindTag::Node];

    fn concerns(&mut self, event: &WatchEvent, _view: View<'_>, queue: &mut WorkQueue<ObjectId>) {
        if event.change == Change::Deleted {
            self.fallen.remove(&event.id);
        }
        if event.change != Change::Modified {
            self.turnover.insert(event.id, event.clone());
        }
        let was_ready = event.before.as_ref().and_then(|before| before.node()).is_some_and(Node::is_ready);
        if was_ready && event.object.node().is_some_and(|node| !node.is_ready()) {
            self.fallen.insert(event.id);
        }
        queue.add(event.id);
    }

    fn events(&self, _id: &ObjectId, verb: Verb, answer: &Answer, _view: View<'_>) -> Vec<Event> {
        let Some(pod) = answer.as_ref().ok().filter(|_| verb == Verb::PatchPodStatus) else { return Vec::new() };
        vec![Event::warning(FROM, pod, "NodeNotReady", "Node is not ready".to_owned())]
    }

    fn remarks(&self, id: &ObjectId, view: View<'_>, _now: SimTime) -> Vec<Event> {
        let turnover = self.turnover.get(id).map(|event| turnover(&event.object, event.change));
        let fallen = view.get(*id).filter(|_| self.fallen.contains(id)).and_then(silent);
        turnover.into_iter().chain(fallen).collect()
    }

    fn reconcile(&mut self, id: &ObjectId, view: View<'_>, now: SimTime) -> Plan {
        self.turnover.remove(id);
        let found = view.get(*id).and_then(|object| Some((object, object.node()?)));
        let Some((object, node)) = found.filter(|(object, _)| !object.is_deleting()) else { return Plan::nothing() };
        let Some(wanted) = wanted(node) else { return Plan::nothing() };
        let unready = if self.fallen.remove(id) { pods_not_ready(object, view, now) } else { Vec::new() };
        let is_ours = |taint: &Taint| is_of_conditions(taint);
        let has: BTreeSet<_> = node.spec.taints.iter().filter(|taint| is_ours(taint)).map(key_of).collect();
        if has == wanted {
            return Plan::of(unready);
        }
        let kept = node.spec.taints.iter().filter(|taint| !is_ours(taint) || wanted.contains(&key_of(taint)));
        let new = wanted.difference(&has).map(|(key, effect)| Taint {
            // Only these say since when they are there.
            time_added: (*effect == TaintEffect::NoExecute).then(|| SmolStr::from(now.to_rfc3339_secs())),
            ..Taint::new(key.clone(), *effect)
        });
        let taints: Vec<Taint> = kept.cloned().chain(new).collect();
        Plan::of([with_taints(object, taints)].into_iter().chain(unready))
    }
}

/// What is said of a node that has come or gone (`monitorNodeHealth`, which looks every five seconds in Kubernetes).
fn turnover(node: &Object, change: Change) -> Event {
    let name = &node.key.name;
    let (reason, what) = match change {
        Change::Deleted => ("RemovingNode", format!("Removing Node {name} from Controller")),
        Change::Added | Change::Modified => ("RegisteredNode", format!("Registered Node {name} in Controller")),
    };
    Event::normal(FROM, node, reason, format!("Node {name} event: {what}"))
}

/// What is said of a node that is not heard of any more. Of one that says itself that it is not ready, nothing is.
fn silent(node: &Arc<Object>) -> Option<Event> {
    let ready = node.node()?.status.conditions.iter().find(|condition| condition.is("Ready"))?;
    let message = || format!("Node {} status is now: NodeNotReady", node.key.name);
    (ready.status == ConditionStatus::Unknown).then(|| Event::normal(FROM, node, "NodeNotReady", message()))
}

/// The pods of a node that is ready no longer cannot be reached, so no Service may send anybody there
/// (`MarkPodsNotReady`).
fn pods_not_ready(node: &Object, view: View<'_>, now: SimTime) -> Vec<Request> {
    let mut pods: Vec<_> = view.pods_on(&node.key.name).map(|(_, pod)| pod).collect();
    pods.sort_by(|one, other| one.key.cmp(&other.key));
    let is_ready = |pod: &&Arc<Object>| ready_since(pod).is_some();
    let mark = |pod: &Arc<Object>| Request::PatchPodStatus {
        pod: pod.key.clone(),
        uid: pod.uid,
        conditions: vec![Condition::new("Ready", false, now)],
        nominated_node_name: None,
    };
    pods.into_iter().filter(is_ready).map(mark).collect()
}

type Key = (SmolStr, TaintEffect);

fn key_of(taint: &Taint) -> Key {
    (taint.key.clone(), taint.effect)
}

/// Is it one of those that this controller writes?
fn is_of_conditions(taint: &Taint) -> bool {
    let key = taint.key.as_str();
    match taint.effect {
        TaintEffect::NoSchedule => {
            [NOT_READY, UNREACHABLE, UNSCHEDULABLE].contains(&key) || PRESSURES.iter().any(|(_, known)| *known == key)
        }
        TaintEffect::NoExecute => [NOT_READY, UNREACHABLE].contains(&key),
        TaintEffect::PreferNoSchedule => false,
    }
}

/// The taints that a node should have; `None`: it has not reported yet.
fn wanted(node: &Node) -> Option<BTreeSet<Key>> {
    let status = |kind: &str| {
        node.status.conditions.iter().find(|condition| condition.is(kind)).map(|condition| condition.status)
    };
    let of_ready = match status("Ready")? {
        ConditionStatus::True => None,
        ConditionStatus::False => Some(NOT_READY),
        ConditionStatus::Unknown => Some(UNREACHABLE),
    };
    let holds = |kind: &str| status(kind) == Some(ConditionStatus::True);
    let pressures = PRESSURES.iter().filter(|(kind, _)| holds(kind)).map(|(_, taint)| *taint);
    let cordon = node.spec.unschedulable.then_some(UNSCHEDULABLE);
    let no_schedule = of_ready.into_iter().chain(pressures).chain(cordon);
    let taints = no_schedule.map(|key| (SmolStr::new_static(key), TaintEffect::NoSchedule));
    let no_execute = of_ready.map(|key| (SmolStr::new_static(key), TaintEffect::NoExecute));
    Some(taints.chain(no_execute).collect())
}

fn with_taints(object: &Arc<Object>, taints: Vec<Taint>) -> Request {
    let mut tainted = Object::clone(object);
    if let Some(node) = tainted.node_mut() {
        Arc::make_mut(&mut node.spec).taints = taints;
    }
    Request::update(tainted)
}

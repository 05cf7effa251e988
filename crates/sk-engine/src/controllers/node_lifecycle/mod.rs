//! The node lifecycle controller: turns a node's conditions and cordon into taints, which the scheduler and the taint
//! eviction controller read, and marks the pods of a node that is no longer heard of as not ready
//! (`pkg/controller/nodelifecycle`, 1.36).
//!
//! Taints that keep new pods away follow a node's conditions at once. The ones that pods leave for come later: every
//! five seconds the controller looks at all nodes (`monitorNodeHealth`), and of those that it finds sick, each zone's
//! are tainted one by one (`zones`). Here a look happens only if a node came, went or changed since the last one.
//!
//! Simplified: nodes have no Leases, so the controller does not detect missing heartbeats; a scenario's timeline
//! writes `Ready: Unknown` of a machine that it has silenced. Since the real controller would have found that out in a
//! look, there is a look then. A node without a `Ready` condition has not reported yet and is left alone.

mod taints;
mod zones;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sk_apiserver::directives::NODE_SILENT;
use sk_apiserver::kinds::{Condition, ConditionStatus, NODE, Node};
use sk_apiserver::{Answer, Change, KindTag, Object, ObjectId, Request, Verb, View, WatchEvent};
use sk_core::{ObjectKey, SimDuration, SimTime, SmolStr};

use self::taints::status;
use self::zones::{Outlook, Zones};
use super::pods::ready_since;
use crate::controller::{Plan, Reconciler};
use crate::events::Event;
use crate::workqueue::WorkQueue;

/// How it signs Events.
const FROM: &str = "node-controller";
/// How often it looks at all nodes (`--node-monitor-period`).
const PERIOD: SimDuration = SimDuration::from_secs(5);
/// A node with this label does not count when its zone is judged (`labelNodeDisruptionExclusion`).
const EXCLUDED: &str = "node.kubernetes.io/exclude-disruption";
/// The labels of a zone, old and new (`GetZoneKey`).
const ZONE: [&str; 2] = ["failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"];
const REGION: [&str; 2] = ["failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"];

/// The controller.
#[derive(Clone, Default)]
pub(crate) struct NodeLifecycle {
    /// Nodes that have just ceased to be heard of.
    fallen: BTreeSet<ObjectId>,
    /// Nodes that have come or gone since the last look.
    turnover: BTreeMap<ObjectId, WatchEvent>,
    /// Nodes of which it is to be seen in the next look how they are, and when that is.
    changed: BTreeSet<ObjectId>,
    look_at: Option<SimTime>,
    zones: Zones,
    /// The taint of each node that pods have to leave.
    evicting: BTreeMap<ObjectId, &'static str>,
}

/// What it works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// One node.
    Node(ObjectId),
    /// The look at all nodes, and the taints that follow from it.
    All,
}

impl Reconciler for NodeLifecycle {
    type Key = Key;

    const WATCHES: &'static [KindTag] = &[KindTag::Node];

    fn concerns(&mut self, event: &WatchEvent, _view: View<'_>, queue: &mut WorkQueue<Key>) {
        let before = event.before.as_deref().and_then(health);
        let after = health(&event.object).filter(|_| event.change != Change::Deleted);
        if event.change != Change::Modified {
            self.turnover.insert(event.id, event.clone());
        }
        let ready = |health: &Option<Health>| health.as_ref().and_then(|health| health.ready);
        let fell = ready(&before) == Some(ConditionStatus::True) && ready(&after) == Some(ConditionStatus::Unknown);
        if fell {
            self.fallen.insert(event.id);
        }
        if before != after {
            self.counted(event, before.as_ref(), after.as_ref());
            let was_found_out = fell && event.object.meta.annotations.contains_key(&NODE_SILENT);
            let look_at = if was_found_out { event.at } else { next_look(event.at) };
            self.changed.insert(event.id);
            self.look_at = Some(self.look_at.map_or(look_at, |known| known.min(look_at)));
            queue.add_after(Key::All, look_at.since(event.at));
        }
        self.tainted_by_others(event);
        queue.add(Key::Node(event.id));
    }

    fn events(&self, _key: &Key, verb: Verb, answer: &Answer, _view: View<'_>) -> Vec<Event> {
        let Some(pod) = answer.as_ref().ok().filter(|_| verb == Verb::PatchPodStatus) else { return Vec::new() };
        vec![Event::warning(FROM, pod, "NodeNotReady", "Node is not ready".to_owned())]
    }

    fn remarks(&self, key: &Key, view: View<'_>, now: SimTime) -> Vec<Event> {
        match key {
            Key::Node(id) => view.get(*id).filter(|_| self.fallen.contains(id)).map(silent).into_iter().collect(),
            Key::All if self.looks(now) => {
                self.turnover.values().map(|event| turnover(&event.object, event.change)).collect()
            }
            Key::All => Vec::new(),
        }
    }

    fn reconcile(&mut self, key: &Key, view: View<'_>, now: SimTime) -> Plan {
        match key {
            Key::Node(id) => {
                let fell = self.fallen.remove(id);
                let Some(object) = view.get(*id).filter(|object| !object.is_deleting()) else {
                    return Plan::nothing();
                };
                let unready = if fell { pods_not_ready(object, view, now) } else { Vec::new() };
                Plan::of(self.taints(*id, view, now).into_iter().chain(unready))
            }
            Key::All => self.all(view, now),
        }
    }
}

impl NodeLifecycle {
    fn looks(&self, now: SimTime) -> bool {
        self.look_at.is_some_and(|at| at <= now)
    }

    /// Keeps the zones' sums true.
    fn counted(&mut self, event: &WatchEvent, before: Option<&Health>, after: Option<&Health>) {
        for (health, enters) in [(before, false), (after, true)] {
            if let Some(health) = health.filter(|health| !health.is_excluded) {
                self.zones.count(&health.zone, health.is_ready(), enters);
            }
        }
        if let Some(before) = before.filter(|before| after.is_none_or(|after| after.zone != before.zone)) {
            self.zones.forget(&before.zone, &event.object.key.name);
        }
        if after.is_none() {
            self.fallen.remove(&event.id);
            self.evicting.remove(&event.id);
        }
    }

    /// Somebody else has put the taint of a sick node on it, a recording for example: it stays until the node is well.
    fn tainted_by_others(&mut self, event: &WatchEvent) {
        let taint = |object: &Object| object.node().and_then(taints::evicting);
        let is_sick = health(&event.object).is_some_and(|health| health.taint().is_some());
        if event.change != Change::Deleted
            && is_sick
            && event.before.as_deref().and_then(taint).is_none()
            && let Some(taint) = taint(&event.object)
        {
            self.evicting.entry(event.id).or_insert(taint);
        }
    }

    /// A look, if it is time for one, and the nodes whose turn it is.
    fn all(&mut self, view: View<'_>, now: SimTime) -> Plan {
        let mut touched = BTreeSet::new();
        if self.looks(now) {
            self.look_at = None;
            self.turnover.clear();
            for id in std::mem::take(&mut self.changed) {
                self.see(id, view, &mut touched);
            }
            if self.zones.look(now) == Outlook::AllFellSick {
                self.spare_all(view, &mut touched);
            }
        }
        for name in self.zones.take_due(now) {
            let Some((id, node)) = view.find(&NODE, &ObjectKey::cluster(name)) else { continue };
            if let Some(taint) = health(node).and_then(|health| health.taint()) {
                self.evicting.insert(id, taint);
                touched.insert(id);
            }
        }
        let requests: Vec<Request> = touched.into_iter().filter_map(|id| self.taints(id, view, now)).collect();
        // A node that has changed meanwhile refuses; the news of that change brings its taints about.
        let batches = Some(requests).filter(|requests| !requests.is_empty()).into_iter().collect();
        let next = self.look_at.into_iter().chain(self.zones.next_due()).min();
        Plan { batches, again_after: next.map(|at| at.since(now).max(SimDuration::ZERO)) }
    }

    /// How a node is that has changed (`processTaintBaseEviction`): one that is well loses its taint, one that is tainted
    /// gets the other one at once, and any other one waits for its turn.
    fn see(&mut self, id: ObjectId, view: View<'_>, touched: &mut BTreeSet<ObjectId>) {
        let Some((object, health)) = view.get(id).and_then(|object| Some((object, health(object)?))) else { return };
        match (health.taint(), self.evicting.get_mut(&id)) {
            (None, _) => {
                self.zones.forget(&health.zone, &object.key.name);
                self.evicting.remove(&id);
            }
            (Some(taint), Some(evicting)) => *evicting = taint,
            (Some(_), None) => self.zones.wait(&health.zone, object.key.name.clone()),
        }
        touched.insert(id);
    }

    /// Nobody has to leave any more. Those whose nodes are sick do once some nodes are well.
    fn spare_all(&mut self, view: View<'_>, touched: &mut BTreeSet<ObjectId>) {
        for (id, _) in std::mem::take(&mut self.evicting) {
            if let Some((object, health)) = view.get(id).and_then(|object| Some((object, health(object)?))) {
                self.zones.wait(&health.zone, object.key.name.clone());
                touched.insert(id);
            }
        }
    }

    fn taints(&self, id: ObjectId, view: View<'_>, now: SimTime) -> Option<Request> {
        let node = view.get(id).filter(|node| !node.is_deleting())?;
        taints::put(node, self.evicting.get(&id).copied(), now)
    }
}

/// What the looks see of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Health {
    zone: SmolStr,
    /// `None`: it has not reported yet.
    ready: Option<ConditionStatus>,
    is_excluded: bool,
}

impl Health {
    fn is_ready(&self) -> bool {
        self.ready == Some(ConditionStatus::True)
    }

    fn taint(&self) -> Option<&'static str> {
        self.ready.and_then(taints::of_ready)
    }
}

fn health(object: &Object) -> Option<Health> {
    let node: &Node = object.node()?;
    let label = |names: [&str; 2]| names.iter().find_map(|name| object.meta.labels.get(*name)).cloned();
    let (region, zone) = (label(REGION).unwrap_or_default(), label(ZONE).unwrap_or_default());
    let zone = if region.is_empty() && zone.is_empty() { zone } else { format!("{region}/{zone}").into() };
    Some(Health { zone, ready: status(node, "Ready"), is_excluded: object.meta.labels.contains_key(EXCLUDED) })
}

/// The looks come at whole periods. What happens in the moment of one is seen by the next.
fn next_look(at: SimTime) -> SimTime {
    at + (PERIOD - SimDuration::from_micros(at.as_micros().rem_euclid(PERIOD.as_micros())))
}

/// What is said of a node that has come or gone.
fn turnover(node: &Object, change: Change) -> Event {
    let name = &node.key.name;
    let (reason, what) = match change {
        Change::Deleted => ("RemovingNode", format!("Removing Node {name} from Controller")),
        Change::Added | Change::Modified => ("RegisteredNode", format!("Registered Node {name} in Controller")),
    };
    Event::normal(FROM, node, reason, format!("Node {name} event: {what}"))
}

/// What is said of a node that is not heard of any more. Of one that says itself that it is not ready, nothing is.
fn silent(node: &Arc<Object>) -> Event {
    Event::normal(FROM, node, "NodeNotReady", format!("Node {} status is now: NodeNotReady", node.key.name))
}

/// The pods of a node that is not heard of any more cannot be reached, so no Service may send anybody there
/// (`MarkPodsNotReady`). A node that says itself that it is not ready speaks for its pods, too.
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

//! The node lifecycle controller's taints: what a node's conditions and its cordon say, said so that scheduler and taint
//! eviction hear it (`pkg/controller/nodelifecycle`, 1.36).
//!
//! Simplified: nodes send no heartbeats, so nobody finds out that one has fallen silent; a condition `Ready: Unknown` has to
//! be written. Evictions are not slowed down when many nodes of a zone are sick. A node without a condition `Ready` has not
//! reported yet and is left alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use sk_apiserver::kinds::{ConditionStatus, Node};
use sk_apiserver::{Change, KindTag, Object, ObjectId, Request, View, WatchEvent};
use sk_core::{SimTime, SmolStr, Taint, TaintEffect};

use crate::controller::{Plan, Reconciler};
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

/// The controller. All it knows is in its view.
#[derive(Clone)]
pub(crate) struct NodeLifecycle;

impl Reconciler for NodeLifecycle {
    type Key = ObjectId;

    const WATCHES: &'static [KindTag] = &[KindTag::Node];

    fn concerns(&mut self, event: &WatchEvent, _view: View<'_>, queue: &mut WorkQueue<ObjectId>) {
        if event.change != Change::Deleted {
            queue.add(event.id);
        }
    }

    fn reconcile(&mut self, id: &ObjectId, view: View<'_>, now: SimTime) -> Plan {
        let found = view.get(*id).and_then(|object| Some((object, object.node()?)));
        let Some((object, node)) = found.filter(|(object, _)| !object.is_deleting()) else { return Plan::nothing() };
        let Some(wanted) = wanted(node) else { return Plan::nothing() };
        let is_ours = |taint: &Taint| is_of_conditions(taint);
        let has: BTreeSet<_> = node.spec.taints.iter().filter(|taint| is_ours(taint)).map(key_of).collect();
        if has == wanted {
            return Plan::nothing();
        }
        let kept = node.spec.taints.iter().filter(|taint| !is_ours(taint) || wanted.contains(&key_of(taint)));
        let new = wanted.difference(&has).map(|(key, effect)| Taint {
            // Only these say since when they are there.
            time_added: (*effect == TaintEffect::NoExecute).then(|| SmolStr::from(now.to_rfc3339_secs())),
            ..Taint::new(key.clone(), *effect)
        });
        let taints: Vec<Taint> = kept.cloned().chain(new).collect();
        Plan::of([with_taints(object, taints)])
    }
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
        node.status.conditions.iter().find(|condition| condition.kind == kind).map(|condition| condition.status)
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

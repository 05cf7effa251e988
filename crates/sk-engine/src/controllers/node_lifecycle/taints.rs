//! The taints that follow from a node's conditions and its cordon.

use std::collections::BTreeSet;
use std::sync::Arc;

use sk_apiserver::kinds::{ConditionStatus, Node};
use sk_apiserver::{Object, Request};
use sk_core::{SimTime, SmolStr, Taint, TaintEffect};

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

/// What a node's condition says.
pub(super) fn status(node: &Node, kind: &str) -> Option<ConditionStatus> {
    node.status.conditions.iter().find(|condition| condition.is(kind)).map(|condition| condition.status)
}

/// The taint of a node that is not ready.
pub(super) fn of_ready(ready: ConditionStatus) -> Option<&'static str> {
    match ready {
        ConditionStatus::True => None,
        ConditionStatus::False => Some(NOT_READY),
        ConditionStatus::Unknown => Some(UNREACHABLE),
    }
}

/// The taint on a node that pods leave for because it is not ready.
pub(super) fn evicting(node: &Node) -> Option<&'static str> {
    let is_on =
        |key: &str| node.spec.taints.iter().any(|taint| taint.effect == TaintEffect::NoExecute && taint.key == key);
    [NOT_READY, UNREACHABLE].into_iter().find(|key| is_on(key))
}

/// Gives a node the taints that it should have: by its conditions, and `evicting`, which its pods leave for. `None`: it
/// has them, or it has not reported yet.
pub(super) fn put(object: &Arc<Object>, evicting: Option<&'static str>, now: SimTime) -> Option<Request> {
    let node = object.node()?;
    let wanted = wanted(node, evicting)?;
    let has: BTreeSet<_> = node.spec.taints.iter().filter(|taint| is_of_conditions(taint)).map(key_of).collect();
    if has == wanted {
        return None;
    }
    let kept = node.spec.taints.iter().filter(|taint| !is_of_conditions(taint) || wanted.contains(&key_of(taint)));
    let new = wanted.difference(&has).map(|(key, effect)| Taint {
        // Only these say since when they are there.
        time_added: (*effect == TaintEffect::NoExecute).then(|| SmolStr::from(now.to_rfc3339_secs())),
        ..Taint::new(key.clone(), *effect)
    });
    let taints: Vec<Taint> = kept.cloned().chain(new).collect();
    let mut tainted = Object::clone(object);
    Arc::make_mut(&mut tainted.node_mut()?.spec).taints = taints;
    Some(Request::update(tainted))
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
fn wanted(node: &Node, evicting: Option<&'static str>) -> Option<BTreeSet<Key>> {
    let of_ready = of_ready(status(node, "Ready")?);
    let holds = |kind: &str| status(node, kind) == Some(ConditionStatus::True);
    let pressures = PRESSURES.iter().filter(|(kind, _)| holds(kind)).map(|(_, taint)| *taint);
    let cordon = node.spec.unschedulable.then_some(UNSCHEDULABLE);
    let no_schedule = of_ready.into_iter().chain(pressures).chain(cordon);
    let taints = no_schedule.map(|key| (SmolStr::new_static(key), TaintEffect::NoSchedule));
    let no_execute = evicting.map(|key| (SmolStr::new_static(key), TaintEffect::NoExecute));
    Some(taints.chain(no_execute).collect())
}

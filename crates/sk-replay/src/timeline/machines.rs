//! What happens to single machines: they stop reporting, report again, disappear, or are drained before they
//! disappear.
//!
//! All of it is requests to the API server that any client could send.

use std::sync::Arc;

use sk_core::{ObjectKey, ObjectRef, SmolStr};
use sk_engine::Engine;
use sk_engine::api::directives::NODE_SILENT;
use sk_engine::api::{DeleteOptions, Object, Reason, Request};
use sk_engine::kinds::{Condition, ConditionStatus, NODE};

fn get(engine: &Engine, name: &SmolStr) -> Option<Arc<Object>> {
    engine.get(&NODE, &ObjectKey::cluster(name.clone())).cloned()
}

/// Has the kubelet stopped reporting?
pub(super) fn is_silent(engine: &Engine, name: &SmolStr) -> bool {
    get(engine, name).is_some_and(|node| node.meta.annotations.contains_key(&NODE_SILENT))
}

/// The kubelet stops reporting, or reports again.
pub(super) fn set_silent(engine: &mut Engine, name: &SmolStr, is_silent: bool) {
    let Some(node) = get(engine, name) else { return };
    let mut changed = Object::clone(&node);
    let annotations = changed.meta.annotations.make_mut();
    match is_silent {
        true => drop(annotations.insert(NODE_SILENT, "true".into())),
        false => drop(annotations.remove(&NODE_SILENT)),
    }
    // The only writer beside the controllers, and it does not race with them: nothing to be refused for.
    let _ = engine.handle(Request::update(changed));
}

/// The control plane notices that a node has not reported for too long, or that it reports again.
pub(super) fn set_known(engine: &mut Engine, name: &SmolStr, is_ready: bool) {
    let Some(node) = get(engine, name) else { return };
    let now = engine.now();
    let mut changed = Object::clone(&node);
    let Some(body) = changed.node_mut() else { return };
    let status = Arc::make_mut(&mut body.status);
    let was = status.conditions.iter().find(|condition| condition.is("Ready")).map(|condition| condition.status);
    if was == Some(ConditionStatus::False) {
        return;
    }
    let mut condition = Condition::new("Ready", is_ready, now);
    if is_ready {
        condition = condition.because("KubeletReady", "kubelet is posting ready status");
    } else {
        condition.status = ConditionStatus::Unknown;
        condition = condition.because("NodeStatusUnknown", "Kubelet stopped posting node status.");
    }
    status.conditions.retain(|condition| !condition.is("Ready"));
    status.conditions.push(condition);
    let _ = engine.handle(Request::update_status(changed));
}

/// The cloud's controller finds that there is no such machine any more.
pub(super) fn remove(engine: &mut Engine, name: &SmolStr) {
    let options = DeleteOptions { grace_secs: Some(0), ..DeleteOptions::default() };
    let target = ObjectRef::new(NODE.clone(), ObjectKey::cluster(name.clone()));
    let _ = engine.handle(Request::Delete { target, options });
}

/// Keeps new pods away.
pub(super) fn cordon(engine: &mut Engine, name: &SmolStr) {
    let Some(node) = get(engine, name) else { return };
    let mut changed = Object::clone(&node);
    if let Some(body) = changed.node_mut() {
        Arc::make_mut(&mut body.spec).unschedulable = true;
    }
    let _ = engine.handle(Request::update(changed));
}

/// Asks for every pod of a node to be evicted, but for those that belong to the node. `true`: a disruption budget refused
/// one, so it is worth asking again.
pub(super) fn drain(engine: &mut Engine, name: &SmolStr) -> bool {
    let must_move = |pod: &&Arc<Object>| !pod.is_deleting() && !stays_with_its_node(pod) && is_running(pod);
    let pods = engine.objects().pods_on(name).map(|(_, pod)| pod).filter(must_move);
    let mut pods: Vec<ObjectKey> = pods.map(|pod| pod.key.clone()).collect();
    pods.sort();
    let mut refused = false;
    for pod in pods {
        let answer = engine.handle(Request::Evict { pod });
        refused |= answer.is_err_and(|error| error.reason == Reason::TooManyRequests);
    }
    refused
}

fn is_running(pod: &Object) -> bool {
    pod.pod().is_some_and(|pod| !pod.status.phase.is_final())
}

/// Pods of DaemonSets and mirror pods are not evicted, as `kubectl drain` leaves them.
fn stays_with_its_node(pod: &Object) -> bool {
    pod.controller().is_some_and(|owner| matches!(owner.gvk.kind.as_str(), "DaemonSet" | "Node"))
}

/// The nodes of a group whose kubelets report, by name.
pub(super) fn of_group(engine: &Engine, group: &str) -> Vec<SmolStr> {
    matching(engine, &sk_engine::api::directives::NODE_GROUP, group)
}

/// The nodes of a zone, the same.
pub(super) fn of_zone(engine: &Engine, zone: &str) -> Vec<SmolStr> {
    matching(engine, &ZONE, zone)
}

/// The label that says in which zone a node is.
pub(super) const ZONE: SmolStr = SmolStr::new_static("topology.kubernetes.io/zone");

fn matching(engine: &Engine, label: &SmolStr, value: &str) -> Vec<SmolStr> {
    let is_it = |node: &&Arc<Object>| {
        node.meta.labels.get(label).is_some_and(|has| has == value)
            && !node.meta.annotations.contains_key(&NODE_SILENT)
            && !node.is_deleting()
    };
    engine.list(&NODE).filter(is_it).map(|node| node.key.name.clone()).collect()
}

/// The n-th machine in the place of a node: a name that no group gives, because theirs have no dots.
pub(super) fn successor(name: &str) -> SmolStr {
    let (stem, number) = match name.rsplit_once('.') {
        Some((stem, digits)) => match digits.parse::<u64>() {
            Ok(number) => (stem, number),
            Err(_) => (name, 1),
        },
        None => (name, 1),
    };
    format!("{stem}.{}", number.saturating_add(1)).into()
}

/// The nodes at one time, for the record.
pub(super) fn listed(names: &[SmolStr]) -> String {
    const SHOWN: usize = 3;
    let shown: Vec<&str> = names.iter().take(SHOWN).map(SmolStr::as_str).collect();
    match names.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        Some(more) => format!("{} and {more} more", shown.join(", ")),
        None => shown.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_in_the_place_of_others_are_numbered() {
        assert_eq!(successor("general-3"), "general-3.2");
        assert_eq!(successor("general-3.2"), "general-3.3");
        assert_eq!(
            successor("ip-10-0-0-1.eu-central-1.compute.internal"),
            "ip-10-0-0-1.eu-central-1.compute.internal.2"
        );
    }

    #[test]
    fn many_nodes_are_counted() {
        let names: Vec<SmolStr> = (1..=5).map(|number| format!("n-{number}").into()).collect();
        assert_eq!(listed(&names), "n-1, n-2, n-3 and 2 more");
        assert_eq!(listed(&names[..3]), "n-1, n-2, n-3");
    }
}

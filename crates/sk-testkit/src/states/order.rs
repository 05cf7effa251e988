//! The order in which each owner's pods are made and deleted.
//!
//! Which pod of one sync comes first is chance; what one sync did and what the next did is not. A controller writes its owner's
//! status at the end of a sync, so the status writes before a change tell its sync: the changes between two writes are one batch
//! and have no order among themselves. Versions order the changes of both kinds exactly, so no clock is asked.
//!
//! Two runs agree unless two changes lie in different batches in both, and the other way round. One run may see one batch
//! where the other sees two: a controller that is quicker writes its status more often.
//!
//! A pod that its controller names is told by its name, an indexed Job's by its index. Other pods of one owner are alike (which
//! node a DaemonSet turns to first is chance even in Kubernetes); of these it counts how many come before how many go, and whether
//! those that go were ready.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::canonical::{History, Moment};
use crate::compare::star_pod_ordinals;

/// One change of an owner's pods: what it was, and after how many status writes.
#[derive(Debug, PartialEq)]
struct Change {
    what: String,
    batch: usize,
}

/// Every owner whose pods come or go in another order, one sentence each.
pub(super) fn differences(real: &[History], ours: &[History], is_compared: impl Fn(&History) -> bool) -> Vec<String> {
    let ours: BTreeMap<&str, Vec<Change>> = by_owner(ours).map(|(owner, changes)| (&*owner.name, changes)).collect();
    let owners = by_owner(real).filter(|(owner, _)| is_compared(owner));
    owners
        .filter_map(|(owner, real)| Some(format!("{}: {}", owner.name, disorder(&real, ours.get(&*owner.name)?)?)))
        .collect()
}

/// Each owner with the changes of its pods, in order.
fn by_owner(histories: &[History]) -> impl Iterator<Item = (&History, Vec<Change>)> {
    let names: BTreeMap<&str, &History> = histories.iter().map(|history| (&*history.name, history)).collect();
    let mut owned: BTreeMap<&str, Vec<(Moment, String)>> = BTreeMap::new();
    for pod in histories.iter().filter(|history| history.kind.kind == "Pod") {
        let Some(owner) = owner_of(&pod.name).filter(|owner| names.contains_key(owner)) else { continue };
        owned.entry(owner).or_default().extend(changes_of(pod));
    }
    owned.into_iter().map(move |(owner, mut changes)| {
        changes.sort();
        let owner = names[owner];
        let writes = status_writes(owner);
        let batch = |at: &Moment| writes.iter().filter(|write| **write < at.number).count();
        let changes = changes.into_iter().map(|(at, what)| Change { what, batch: batch(&at) }).collect();
        (owner, changes)
    })
}

/// `d/ReplicaSet/a/Pod#3` and `d/StatefulSet/a/Pod/a-0` are of `d/ReplicaSet/a` and `d/StatefulSet/a`.
fn owner_of(pod: &str) -> Option<&str> {
    pod.rfind("/Pod#").or_else(|| pod.rfind("/Pod/")).map(|end| &pod[..end])
}

/// When a pod was made and when somebody asked it to go. A pod without moments tells nothing.
fn changes_of(pod: &History) -> Vec<(Moment, String)> {
    let who = who(pod);
    let made = pod.moments.first().map(|at| (*at, format!("{who} is made")));
    let is_going = |state: &Value| state.pointer("/metadata/deletionTimestamp").is_some();
    let going = pod.states.iter().position(is_going);
    let last = going.and_then(|index| index.checked_sub(1)).and_then(|index| pod.states.get(index));
    let gone = going.and_then(|index| pod.moments.get(index)).or(pod.end.as_ref());
    let how = if last.is_some_and(is_ready) { "ready" } else { "not ready" };
    made.into_iter().chain(gone.map(|at| (*at, format!("{who}, {how}, is deleted")))).collect()
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    conditions.into_iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// What tells a pod from the others of its owner.
fn who(pod: &History) -> String {
    const INDEX: &str = "/metadata/annotations/batch.kubernetes.io~1job-completion-index";
    let field = |at: &str| pod.states.first().and_then(|state| state.pointer(at)).and_then(Value::as_str);
    match field(INDEX) {
        Some(index) => format!("the pod of index {index}"),
        None => star_pod_ordinals(pod.name.rsplit('/').next().unwrap_or_default()),
    }
}

/// The numbers of the changes that wrote another status.
fn status_writes(owner: &History) -> Vec<usize> {
    let pairs = owner.states.windows(2).zip(owner.moments.iter().skip(1));
    pairs.filter(|(states, _)| states[0]["status"] != states[1]["status"]).map(|(_, at)| at.number).collect()
}

/// The first two changes that come the other way round.
fn disorder(real: &[Change], ours: &[Change]) -> Option<String> {
    let ours: BTreeMap<(&str, usize), usize> = numbered(ours).collect();
    let both: Vec<_> = numbered(real).filter_map(|(key, batch)| Some((key, batch, *ours.get(&key)?))).collect();
    let pairs = both.iter().enumerate().flat_map(|(index, one)| both[..index].iter().map(move |before| (before, one)));
    let mut turned = pairs.filter(|((_, real, ours), (_, then_real, then_ours))| real < then_real && ours > then_ours);
    turned.next().map(|((first, ..), (second, ..))| {
        format!("{} before {}, and was recorded the other way round", told(*second), told(*first))
    })
}

/// Each change with its number among those that are alike.
fn numbered(changes: &[Change]) -> impl Iterator<Item = ((&str, usize), usize)> {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    changes.iter().map(move |change| {
        let number = seen.entry(&change.what).or_default();
        *number += 1;
        ((&*change.what, *number), change.batch)
    })
}

fn told((what, number): (&str, usize)) -> String {
    if number == 1 { what.to_owned() } else { format!("{what} ({number})") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn history(kind: &str, name: &str, states: Vec<Value>, numbers: &[usize]) -> History {
        let moments = numbers.iter().map(|number| Moment { at_ms: 0, number: *number }).collect();
        let kind = kind.parse().unwrap();
        History { name: name.into(), kind, states, moments, deleted: false, end: None, events: Vec::new() }
    }

    /// Pods made at these moments, and an owner that writes its status at those.
    fn run(pods: &[(&str, usize)], writes: &[usize]) -> Vec<History> {
        let statuses = (0..=writes.len()).map(|count| json!({"status": {"replicas": count}})).collect();
        let moments: Vec<usize> = std::iter::once(0).chain(writes.iter().copied()).collect();
        let owner = history("apps/v1.StatefulSet", "d/StatefulSet/db", statuses, &moments);
        let pod = |(name, at): &(&str, usize)| {
            history("v1.Pod", &format!("d/StatefulSet/db/Pod/{name}"), vec![json!({})], &[*at])
        };
        std::iter::once(owner).chain(pods.iter().map(pod)).collect()
    }

    #[test]
    fn pods_of_one_sync_have_no_order_and_those_of_two_have() {
        let real = run(&[("db-0", 1), ("db-1", 3)], &[2, 4]);
        let all = |_: &History| true;
        assert!(differences(&real, &run(&[("db-0", 2), ("db-1", 1)], &[3]), all).is_empty());
        let found = differences(&real, &run(&[("db-1", 1), ("db-0", 3)], &[2, 4]), all);
        assert_eq!(found, ["d/StatefulSet/db: db-1 is made before db-0 is made, and was recorded the other way round"]);
        assert!(differences(&real, &run(&[("db-1", 1), ("db-0", 3)], &[2, 4]), |_| false).is_empty());
    }

    #[test]
    fn pods_that_are_alike_are_counted_and_told_by_whether_they_were_ready() {
        let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        let going = json!({"metadata": {"deletionTimestamp": "<time>"}});
        let pod = history("v1.Pod", "d/ReplicaSet/a/Pod#7", vec![json!({}), ready, going], &[3, 4, 5]);
        let told: Vec<_> = changes_of(&pod).into_iter().map(|(at, what)| (at.number, what)).collect();
        assert_eq!(told, [(3, "Pod#* is made".to_owned()), (5, "Pod#*, ready, is deleted".to_owned())]);
    }
}

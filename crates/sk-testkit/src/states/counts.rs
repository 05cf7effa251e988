//! The counts in a workload's status over time, in a form in which two runs can be compared.
//!
//! A controller writes its status when it gets to it: while five pods start one after the other, one run reports 1, 3,
//! 5 and another 2, 5. Batching cannot change where a count turns: how far it rose before it fell, how far it fell
//! before it rose again, where it began and where it ended. So all turning points of each count are compared, in
//! order.
//!
//! Where one pod is deleted while another is created, even that is chance: a controller that syncs after both sees no
//! turn. A scenario with such a step lists `/counts/NAME/turns` under `incomparable`; then only the first value, the
//! largest and the last are compared.

use serde_json::{Map, Value, json};

use crate::canonical::History;

/// The counts that are followed, by kind.
const FOLLOWED: [(&str, &[&str]); 7] = [
    ("Deployment", &["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"]),
    ("ReplicaSet", REPLICAS),
    ("ReplicationController", REPLICAS),
    ("StatefulSet", &["replicas", "currentReplicas", "updatedReplicas", "readyReplicas", "availableReplicas"]),
    (
        "DaemonSet",
        &[
            "desiredNumberScheduled",
            "currentNumberScheduled",
            "updatedNumberScheduled",
            "numberReady",
            "numberAvailable",
        ],
    ),
    ("Job", &["active", "ready", "succeeded", "failed"]),
    ("PodDisruptionBudget", &["currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"]),
];
const REPLICAS: &[&str] = &["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas"];

/// The turning points of each count of an object, by the count's name. A count that is not there is 0.
pub(super) fn over_time(history: &History) -> Map<String, Value> {
    let names =
        FOLLOWED.iter().find(|(kind, _)| *kind == history.kind.kind.as_str()).map_or(&[][..], |(_, names)| names);
    // How much of its going a workload that is deleted gets to report is a race.
    let is_going = |state: &&Value| state.pointer("/metadata/deletionTimestamp").is_some();
    let states: Vec<&Value> = history.states.iter().take_while(|state| !is_going(state)).collect();
    let counts = names.iter().map(|name| {
        let values = states.iter().map(|state| state["status"][*name].as_i64().unwrap_or(0));
        ((*name).to_owned(), told(&turning_points(values)))
    });
    counts.collect()
}

fn told(turns: &[i64]) -> Value {
    json!({"first": turns.first(), "largest": turns.iter().max(), "last": turns.last(), "turns": turns})
}

/// Every count that turned otherwise, one sentence each.
pub(super) fn differences(ours: &Value, real: &Value) -> Vec<String> {
    let none = Map::new();
    let (ours, real) = (ours.as_object().unwrap_or(&none), real.as_object().unwrap_or(&none));
    let told = |count: &Value| count.get("turns").unwrap_or(count).to_string();
    let differ = ours.iter().filter_map(|(name, ours)| {
        let real = real.get(name).filter(|real| *real != ours)?;
        Some(format!("counts/{name} is {} and was recorded as {}", told(ours), told(real)))
    });
    differ.collect()
}

/// The first and the last value, and each between them at which a row turns from rising to falling or back.
fn turning_points(values: impl Iterator<Item = i64>) -> Vec<i64> {
    let mut turns: Vec<i64> = Vec::new();
    for value in values {
        match *turns {
            [.., last] if last == value => {}
            [.., before, last] if (before < last) == (last < value) => *turns.last_mut().expect("it has two") = value,
            _ => turns.push(value),
        }
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(values: &[i64]) -> Vec<i64> {
        turning_points(values.iter().copied())
    }

    #[test]
    fn steps_on_the_way_do_not_count_and_turns_do() {
        assert_eq!(turns(&[0, 1, 3, 5]), turns(&[0, 2, 2, 5]));
        assert_eq!(turns(&[0, 3, 4, 4, 3, 1, 2]), [0, 4, 1, 2]);
        assert_ne!(turns(&[0, 3, 2, 3]), turns(&[0, 3]));
        assert_eq!(turns(&[]), Vec::<i64>::new());
    }
}

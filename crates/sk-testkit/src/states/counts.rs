//! The counts in a workload's status over time, in a form in which two runs can be compared.
//!
//! A controller writes its status when it gets to it: while five pods start one after the other, one run reports 1, 3,
//! 5 and another 2, 5. Batching cannot change where a count turns: how far it rose before it fell, how far it fell
//! before it rose again, where it began and where it ended. So all turning points of each count are compared, in
//! order.
//!
//! When a count turns is compared too: the moments at which it reached and left each turning point, since the step that they
//! belong to, may differ by [`TOLERANCE_MS`]. A scenario lists `/times` under `incomparable` where its steps leave that to chance.
//!
//! Where one pod goes while another comes, even the turns are chance: whoever looks after both sees none. A scenario with such a
//! moment lists `/counts/NAME/turns` under `incomparable`; then only the first value, the largest and the last are compared.

use serde_json::{Map, Value, json};

use super::Run;
use crate::canonical::History;

/// How much sooner or later than recorded a count may turn. The profile's requests and watches take some milliseconds, and so do
/// the real ones; but the recordings' control plane shares two cores with others, and it reckons in whole seconds (when a pod is
/// available, when a Job is due).
pub const TOLERANCE_MS: u64 = 1_500;

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

/// A value at which a count turned, or with which it began or ended.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Turn {
    value: i64,
    reached_ms: u64,
    left_ms: Option<u64>,
}

/// The turning points of each count of an object, by the count's name. A count that is not there is 0.
pub(super) fn over_time(history: &History) -> Map<String, Value> {
    names(history).iter().map(|name| ((*name).to_owned(), told(&turns(history, name)))).collect()
}

fn names(history: &History) -> &'static [&'static str] {
    FOLLOWED.iter().find(|(kind, _)| *kind == history.kind.kind.as_str()).map_or(&[][..], |(_, names)| names)
}

fn turns(history: &History, name: &str) -> Vec<Turn> {
    // How much of its going a workload that is deleted gets to report is a race.
    let is_going = |state: &&Value| state.pointer("/metadata/deletionTimestamp").is_some();
    let states = history.states.iter().take_while(|state| !is_going(state));
    let moments = history.moments.iter().map(|at| at.at_ms).chain(std::iter::repeat(0));
    turning_points(states.zip(moments).map(|(state, at)| (state["status"][name].as_i64().unwrap_or(0), at)))
}

fn told(turns: &[Turn]) -> Value {
    let turns: Vec<i64> = turns.iter().map(|turn| turn.value).collect();
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

/// Every count of one object that turned at another time, one sentence each. Counts that turned otherwise have no times in common.
pub(super) fn late(real: (&Run<'_>, &History), ours: (&Run<'_>, &History)) -> Vec<String> {
    if real.1.moments.is_empty() || ours.1.moments.is_empty() {
        return Vec::new();
    }
    let of_count = |name: &&str| {
        let (recorded, played) = (turns(real.1, name), turns(ours.1, name));
        let is_same = recorded.iter().map(|turn| turn.value).eq(played.iter().map(|turn| turn.value));
        let mut pairs = recorded.iter().zip(&played).filter(|_| is_same);
        pairs.find_map(|(recorded, played)| {
            let reached = apart(real.0, recorded.reached_ms, ours.0, played.reached_ms);
            let left = recorded.left_ms.zip(played.left_ms).map_or(0, |(one, other)| apart(real.0, one, ours.0, other));
            let (what, by) = if reached >= left { ("comes to", reached) } else { ("leaves", left) };
            (by > TOLERANCE_MS)
                .then(|| format!("{name} {what} {} {by} ms before or after it was recorded", played.value))
        })
    };
    names(real.1).iter().filter_map(of_count).collect()
}

/// How far two moments are apart, each since the step in which it lies. Steps that follow at once may share what comes of them, so
/// the step of either counts.
fn apart(real: &Run<'_>, real_ms: u64, ours: &Run<'_>, our_ms: u64) -> u64 {
    let step = |run: &Run<'_>, at: u64| run.steps.iter().rposition(|began| *began <= at).unwrap_or(0);
    let since =
        |run: &Run<'_>, step: usize, at: u64| at.cast_signed() - run.steps.get(step).map_or(0, |at| at.cast_signed());
    let steps = [step(real, real_ms), step(ours, our_ms)];
    let apart = steps.map(|step| since(real, step, real_ms).abs_diff(since(ours, step, our_ms)));
    apart[0].min(apart[1])
}

/// The first and the last value, and each between them at which a row turns from rising to falling or back.
fn turning_points(values: impl Iterator<Item = (i64, u64)>) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    for (value, at) in values {
        let turn = Turn { value, reached_ms: at, left_ms: None };
        match *turns {
            [.., last] if last.value == value => {}
            [.., before, last] if (before.value < last.value) == (last.value < value) => {
                *turns.last_mut().expect("it has two") = turn;
            }
            _ => {
                turns.iter_mut().last().into_iter().for_each(|last| last.left_ms = Some(at));
                turns.push(turn);
            }
        }
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical::Moment;

    fn turns_of(values: &[i64]) -> Vec<i64> {
        turning_points(values.iter().map(|value| (*value, 0))).iter().map(|turn| turn.value).collect()
    }

    #[test]
    fn steps_on_the_way_do_not_count_and_turns_do() {
        assert_eq!(turns_of(&[0, 1, 3, 5]), turns_of(&[0, 2, 2, 5]));
        assert_eq!(turns_of(&[0, 3, 4, 4, 3, 1, 2]), [0, 4, 1, 2]);
        assert_ne!(turns_of(&[0, 3, 2, 3]), turns_of(&[0, 3]));
        assert_eq!(turns_of(&[]), Vec::<i64>::new());
    }

    #[test]
    fn a_turn_has_the_moment_at_which_it_was_reached_and_the_one_at_which_it_was_left() {
        let turns = turning_points([(0, 10), (2, 20), (3, 30), (3, 40), (1, 50)].into_iter());
        let turn = |value, reached_ms, left_ms| Turn { value, reached_ms, left_ms };
        assert_eq!(turns, [turn(0, 10, Some(20)), turn(3, 30, Some(50)), turn(1, 50, None)]);
    }

    #[test]
    fn a_count_that_turns_late_in_its_step_is_told() {
        let set = |at: &[(i64, u64)]| History {
            name: "d/ReplicaSet/a".into(),
            kind: "apps/v1.ReplicaSet".parse().unwrap(),
            states: at.iter().map(|(count, _)| json!({"status": {"readyReplicas": count}})).collect(),
            moments: at.iter().map(|(_, at_ms)| Moment { at_ms: *at_ms, number: 0 }).collect(),
            deleted: false,
            end: None,
            events: Vec::new(),
        };
        let run = |steps| Run { objects: &[], steps };
        // The second step began two seconds later here than there, and the count rose as soon in it.
        let (real, ours) = (run(&[0, 3_000]), run(&[0, 5_000]));
        let recorded = set(&[(0, 10), (2, 3_100)]);
        assert!(late((&real, &recorded), (&ours, &set(&[(0, 10), (2, 5_050)]))).is_empty());
        let found = late((&real, &recorded), (&ours, &set(&[(0, 10), (2, 7_100)])));
        assert_eq!(found, ["readyReplicas leaves 0 2000 ms before or after it was recorded"]);
    }
}

//! The tracker on lines that the real scheduler writes.

use super::*;

fn after(lines: &[&str]) -> Tracker {
    let mut tracker = Tracker::default();
    for line in lines {
        tracker.take(&Line::parse(&format!("I1 7 x.go:1] {line}")).unwrap());
    }
    tracker
}

const ADDED: &str = r#""Add event for unscheduled pod" pod="default/p""#;
const ACTIVE: &str =
    r#""Pod moved to an internal scheduling queue" pod="default/p" event="UnscheduledPodAdd" queue="Active""#;
const TRIED: &str = r#""Attempting to schedule pod" pod="default/p""#;
const BOUND: &str = r#""Successfully bound pod to node" pod="default/p" node="a" evaluatedNodes=3 feasibleNodes=2"#;
const LEFT: &str = r#""Delete event for unscheduled pod" pod="default/p""#;
const NO_FIT: &str = r#""Unable to schedule pod; no fit; waiting" pod="default/p" err="0/1 nodes are available""#;
const PARKED: &str = r#""Pod moved to an internal scheduling queue" pod="default/p" event="ScheduleAttemptFailure" queue="Unschedulable""#;
const POSTED: &str = r#""Updating pod condition and nominated node name" pod="default/p" conditionType="PodScheduled" nominatedNodeName="a""#;

#[test]
fn a_pod_is_under_way_until_it_is_bound() {
    for lines in [&[ADDED, ACTIVE][..], &[ADDED, ACTIVE, TRIED], &[ADDED, ACTIVE, TRIED, LEFT]] {
        assert!(!after(lines).is_idle(), "{lines:?}");
    }
    assert!(after(&[ADDED, ACTIVE, TRIED, BOUND]).is_idle());
    assert!(after(&[ADDED, ACTIVE, TRIED, BOUND, LEFT]).is_idle());
}

#[test]
fn a_pod_without_a_node_waits_once_its_condition_is_written() {
    assert!(!after(&[ADDED, ACTIVE, TRIED, NO_FIT, PARKED]).is_idle());
    let tracker = after(&[ADDED, ACTIVE, TRIED, NO_FIT, PARKED, POSTED]);
    assert!(tracker.is_idle());
    let Outcome::Unschedulable { unschedulable, nominated, .. } = &tracker.attempts()[0].outcome else {
        panic!("it did not fit")
    };
    assert_eq!((unschedulable.as_str(), nominated.as_deref()), ("0/1 nodes are available", Some("a")));
}

#[test]
fn a_pod_that_was_deleted_is_not_queued_by_a_late_word() {
    assert!(after(&[ADDED, ACTIVE, TRIED, NO_FIT, PARKED, POSTED, LEFT, ACTIVE]).is_idle());
}

#[test]
fn a_pod_without_any_node_is_at_rest_although_the_clock_will_have_it_tried_again() {
    let no_nodes = r#""Unable to schedule pod; no nodes are registered to the cluster; waiting" pod="default/p""#;
    let backoff =
        r#""Pod moved to an internal scheduling queue" pod="default/p" event="ScheduleAttemptFailure" queue="Backoff""#;
    assert!(after(&[ADDED, ACTIVE, TRIED, no_nodes, backoff, POSTED]).is_idle());
}

#[test]
fn scores_come_as_a_table_by_plugin() {
    let scored = |plugin: &str, node: &str, score: i64| {
        format!(r#""Plugin scored node for pod" pod="default/p" plugin="{plugin}" node="{node}" score={score}"#)
    };
    let total = |node: &str, score: i64| {
        format!(r#""Calculated node's final score for pod" pod="default/p" node="{node}" score={score}"#)
    };
    let lines = [
        scored("F", "a", 1),
        scored("G", "a", 2),
        scored("F", "b", 3),
        scored("G", "b", 4),
        total("a", 3),
        total("b", 7),
    ];
    let lines: Vec<&str> = [TRIED].into_iter().chain(lines.iter().map(String::as_str)).chain([BOUND, LEFT]).collect();
    let scores = after(&lines).attempts()[0].scores.clone().unwrap();
    assert_eq!(scores.nodes, ["a", "b"]);
    assert_eq!(scores.plugins, [("F".to_owned(), vec![1, 3]), ("G".to_owned(), vec![2, 4])]);
    assert_eq!(scores.totals, [3, 7]);
}

#[test]
fn an_attempt_tells_which_pods_came_went_and_changed_before_it() {
    let came = r#""Add event for scheduled pod" pod="default/a""#;
    let went = r#""Delete event for scheduled pod" pod="x/b""#;
    let changed = r#""Update event for unscheduled pod" pod="default/c""#;
    let attempts =
        after(&[came, went, changed, TRIED, NO_FIT, PARKED, POSTED, TRIED, NO_FIT, PARKED, POSTED]).attempts();
    assert_eq!(attempts[0].events, ["+a", "-x/b", "~c"]);
    assert!(attempts[1].events.is_empty());
}

#[test]
fn victims_belong_to_the_pod_that_they_make_room_for() {
    let started = r#""Start the preemption asynchronously" preemptor="default/p" node="a" numVictims=1"#;
    let victim = r#""Preemptor Pod preempted victim Pod" preemptor="default/p" victim="x/v" node="a""#;
    let finished = r#""Async Preemption finished completely" preemptor="default/p" node="a""#;
    assert!(!after(&[TRIED, started, NO_FIT, PARKED, POSTED]).is_idle());
    for lines in [
        [TRIED, started, NO_FIT, PARKED, POSTED, victim, finished],
        [TRIED, started, victim, NO_FIT, PARKED, POSTED, finished],
    ] {
        let tracker = after(&lines);
        assert!(tracker.is_idle());
        let Outcome::Unschedulable { victims, unschedulable, .. } = &tracker.attempts()[0].outcome else {
            panic!("it does not fit yet")
        };
        assert_eq!((victims.as_slice(), unschedulable.is_empty()), (&["x/v".to_owned()][..], false));
    }
}

#[test]
fn a_preemption_is_under_way_from_its_decision_on() {
    let would_go = r#""Pod is a potential preemption victim on node" pod="default/p" pod="x/v" node="a""#;
    let decided = r#""the target node for the preemption is determined" node="a" pod="default/p""#;
    let going = r#""Victim Pod is already being deleted, skipping the API call for it" preemptor="default/p" node="a" victim="x/v""#;
    let lines = [TRIED, would_go, decided, NO_FIT, PARKED, POSTED];
    assert!(!after(&lines).is_idle(), "the goroutine that deletes the victim has not spoken yet");
    let lines = [TRIED, would_go, decided, going, NO_FIT, PARKED, POSTED];
    assert!(after(&lines).is_idle(), "nobody is left to delete");
    let lines = [TRIED, would_go, would_go, decided, going, NO_FIT, PARKED, POSTED];
    assert!(!after(&lines).is_idle(), "one of two is left to delete");
}

#[test]
fn the_fence_is_counted_and_no_event() {
    let moved = r#""Update event for scheduled pod" pod="fence/fence""#;
    let tracker = after(&[moved, moved]);
    assert_eq!(tracker.fences(), 2);
    assert!(!tracker.has_seen(ASSIGNED_UPDATED, FENCE));
}

#[test]
fn what_comes_in_the_middle_of_a_decision_is_noticed() {
    let in_flight = r#""Event received while pods are in flight" event="AssignedPodDelete""#;
    let mut tracker = after(&[ADDED, ACTIVE, TRIED, in_flight, NO_FIT, PARKED, POSTED]);
    assert_eq!(tracker.disturbed().as_deref(), Some("AssignedPodDelete"));
    tracker.begin();
    assert_eq!(tracker.disturbed(), None);
}

#[test]
fn a_move_that_is_told_twice_queues_a_pod_once() {
    let again = r#""Pod moved to an internal scheduling queue because the Pod is updated" pod="default/p" event="PodUpdate" queue="Active""#;
    assert!(after(&[ADDED, ACTIVE, TRIED, again, NO_FIT, PARKED, POSTED]).is_idle());
    assert!(after(&[ADDED, ACTIVE, TRIED, NO_FIT, PARKED, POSTED, again]).is_idle());
}

//! How long a pod lived: from its first container's start to its last container's end.
//!
//! A life is read from one observation of a pod and only ever moves forward, [`Empty`](PodLifecycle::Empty) to
//! [`Running`](PodLifecycle::Running) to [`Finished`](PodLifecycle::Finished), so observations may come late, twice or
//! after a restart of the tracer. Deletion is not part of it: a life without an end lasts until its pod is deleted.

use serde_json::Value;

use crate::SimTime;

/// What is known of one pod's life; later states are greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PodLifecycle {
    /// No container has started yet.
    #[default]
    Empty,
    /// A container has started.
    Running {
        /// The first start that was seen.
        start: SimTime,
    },
    /// Every main container has ended and will not be started again.
    Finished {
        /// The first start that was seen.
        start: SimTime,
        /// The end of the container that ended last.
        end: SimTime,
    },
}

impl PodLifecycle {
    /// What one observation of a pod says. Absent, null or unreadable times count as not yet known.
    pub fn of_pod(pod: &Value) -> Self {
        let containers = || statuses(pod, "containerStatuses").chain(statuses(pod, "initContainerStatuses"));
        let Some(start) = containers().flat_map(starts).min() else { return Self::Empty };
        if !is_over(pod) {
            return Self::Running { start };
        }
        // A sidecar ends after the main containers and because of them: its end is not the pod's.
        let ends = containers().filter(|status| !is_sidecar(pod, status)).filter_map(end);
        match ends.max() {
            Some(end) => Self::Finished { start, end: end.max(start) },
            None => Self::Running { start },
        }
    }

    /// What a pod's containers failed with: of a pod that has ended and was not deleted, the first main container's
    /// code that is not 0.
    pub fn failure_of_pod(pod: &Value) -> Option<i32> {
        if !pod["metadata"]["deletionTimestamp"].is_null() || !is_over(pod) {
            return None;
        }
        let codes = statuses(pod, "containerStatuses").chain(statuses(pod, "initContainerStatuses"));
        let mut codes = codes.filter(|status| !is_sidecar(pod, status)).filter_map(exit_code);
        codes.find(|code| *code != 0)
    }

    /// Takes a later observation into account and says whether that changed anything. The first start wins, because a
    /// restarted container no longer shows it; a finished life stays as it is.
    pub fn advance(&mut self, seen: Self) -> bool {
        let next = match (*self, seen) {
            (Self::Empty, seen) => seen,
            (Self::Running { start }, Self::Finished { end, .. }) => Self::Finished { start, end: end.max(start) },
            (known, _) => known,
        };
        let changed = next != *self;
        *self = next;
        changed
    }

    /// When the first container started.
    pub const fn start(self) -> Option<SimTime> {
        match self {
            Self::Empty => None,
            Self::Running { start } | Self::Finished { start, .. } => Some(start),
        }
    }

    /// When the last container ended, if it has.
    pub const fn end(self) -> Option<SimTime> {
        match self {
            Self::Empty | Self::Running { .. } => None,
            Self::Finished { end, .. } => Some(end),
        }
    }
}

fn statuses<'a>(pod: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> {
    pod["status"][list].as_array().into_iter().flatten()
}

fn time(value: &Value) -> Option<SimTime> {
    SimTime::parse_rfc3339(value.as_str()?).ok()
}

/// The starts that a container's status still shows: of this run and of the one before.
fn starts(status: &Value) -> impl Iterator<Item = SimTime> {
    let at = |state: &str, field: &str| time(&status[state][field]["startedAt"]);
    [at("state", "running"), at("state", "terminated"), at("lastState", "terminated")].into_iter().flatten()
}

fn exit_code(status: &Value) -> Option<i32> {
    status["state"]["terminated"]["exitCode"].as_i64().and_then(|code| i32::try_from(code).ok())
}

fn end(status: &Value) -> Option<SimTime> {
    time(&status["state"]["terminated"]["finishedAt"])
}

/// Has every main container ended for good? The kubelet's own verdict, where there is one, also covers pods whose main
/// containers never started because an init container failed.
fn is_over(pod: &Value) -> bool {
    if matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed")) {
        return true;
    }
    let expected = pod["spec"]["containers"].as_array().map_or(0, Vec::len);
    let reported = statuses(pod, "containerStatuses").count();
    reported > 0
        && reported >= expected
        && statuses(pod, "containerStatuses").all(|status| has_ended_for_good(pod, status))
}

/// A terminated container of a living pod may be about to restart; that is a pause in the pod's life, not its end.
fn has_ended_for_good(pod: &Value, status: &Value) -> bool {
    let Some(terminated) = status["state"].get("terminated").filter(|state| !state.is_null()) else { return false };
    if !pod["metadata"]["deletionTimestamp"].is_null() {
        return true;
    }
    let own_policy = spec_of(pod, "containers", status)["restartPolicy"].as_str();
    match own_policy.or(pod["spec"]["restartPolicy"].as_str()) {
        Some("Always") => false,
        Some("OnFailure") => terminated["exitCode"].as_i64() == Some(0),
        _ => true,
    }
}

/// Init containers that restart always run beside the main ones.
fn is_sidecar(pod: &Value, status: &Value) -> bool {
    spec_of(pod, "initContainers", status)["restartPolicy"] == "Always"
}

/// The part of the spec that a container's status is about; null if there is none.
fn spec_of<'a>(pod: &'a Value, list: &str, status: &Value) -> &'a Value {
    let containers = pod["spec"][list].as_array().map_or(&[][..], Vec::as_slice);
    containers.iter().find(|container| container["name"] == status["name"]).unwrap_or(&Value::Null)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const T: i64 = 1_700_000_000;

    fn at(second: i64) -> SimTime {
        SimTime::from_secs(T + second)
    }

    fn running(name: &str, start: i64) -> Value {
        json!({"name": name, "state": {"running": {"startedAt": at(start).to_rfc3339_secs()}}})
    }

    fn ended(name: &str, start: i64, end: i64, exit_code: i64) -> Value {
        let terminated = json!({
            "startedAt": at(start).to_rfc3339_secs(),
            "finishedAt": at(end).to_rfc3339_secs(),
            "exitCode": exit_code,
        });
        json!({"name": name, "state": {"terminated": terminated}})
    }

    fn pod(restart_policy: &str, phase: &str, statuses: &[Value]) -> Value {
        let containers: Vec<_> = statuses.iter().map(|status| json!({"name": status["name"]})).collect();
        json!({
            "spec": {"restartPolicy": restart_policy, "containers": containers},
            "status": {"phase": phase, "containerStatuses": statuses},
        })
    }

    #[test]
    fn a_pod_whose_containers_wait_has_no_life_yet() {
        let waiting = json!({"name": "a", "state": {"waiting": {"reason": "ContainerCreating"}}});
        for pod in [json!({}), json!({"status": null}), json!(7), pod("Never", "Pending", &[waiting])] {
            assert_eq!(PodLifecycle::of_pod(&pod), PodLifecycle::Empty, "{pod}");
        }
    }

    #[test]
    fn a_life_starts_with_the_earliest_container_init_containers_included() {
        let mut pod = pod("Never", "Running", &[running("a", 20), running("b", 15)]);
        assert_eq!(PodLifecycle::of_pod(&pod), PodLifecycle::Running { start: at(15) });
        pod["status"]["initContainerStatuses"] = json!([ended("init", 3, 9, 0)]);
        assert_eq!(PodLifecycle::of_pod(&pod), PodLifecycle::Running { start: at(3) });
    }

    #[test]
    fn a_life_ends_with_the_latest_container_once_all_have_ended() {
        let one = pod("Never", "Running", &[ended("a", 0, 40, 0), running("b", 5)]);
        assert_eq!(PodLifecycle::of_pod(&one), PodLifecycle::Running { start: at(0) });
        let both = pod("Never", "Failed", &[ended("a", 0, 40, 0), ended("b", 5, 30, 1)]);
        assert_eq!(PodLifecycle::of_pod(&both), PodLifecycle::Finished { start: at(0), end: at(40) });
    }

    #[test]
    fn a_container_without_a_status_yet_keeps_the_pod_open() {
        let mut pod = pod("Never", "Running", &[ended("a", 0, 40, 0)]);
        pod["spec"]["containers"] = json!([{"name": "a"}, {"name": "b"}]);
        assert_eq!(PodLifecycle::of_pod(&pod), PodLifecycle::Running { start: at(0) });
    }

    #[test]
    fn a_sidecar_starts_a_life_but_neither_holds_it_open_nor_ends_it() {
        let mut pod = pod("Never", "Running", &[ended("a", 5, 40, 0)]);
        pod["spec"]["initContainers"] = json!([{"name": "proxy", "restartPolicy": "Always"}]);
        for sidecar in [running("proxy", 1), ended("proxy", 1, 70, 0)] {
            pod["status"]["initContainerStatuses"] = json!([sidecar]);
            assert_eq!(PodLifecycle::of_pod(&pod), PodLifecycle::Finished { start: at(1), end: at(40) });
        }
    }

    #[test]
    fn a_container_about_to_restart_does_not_end_the_life() {
        let crashed = [ended("a", 0, 40, 1)];
        for policy in ["Always", "OnFailure"] {
            let pod = pod(policy, "Running", &crashed);
            assert_eq!(PodLifecycle::of_pod(&pod), PodLifecycle::Running { start: at(0) }, "{policy}");
        }
        let finished = PodLifecycle::Finished { start: at(0), end: at(40) };
        assert_eq!(PodLifecycle::of_pod(&pod("Always", "Failed", &crashed)), finished);
        assert_eq!(PodLifecycle::of_pod(&pod("OnFailure", "Running", &[ended("a", 0, 40, 0)])), finished);
        let mut deleted = pod("Always", "Running", &crashed);
        deleted["metadata"] = json!({"deletionTimestamp": at(41).to_rfc3339_secs()});
        assert_eq!(PodLifecycle::of_pod(&deleted), finished);
    }

    #[test]
    fn a_restart_shows_the_start_before_it_and_does_not_block_the_end() {
        let mut again = ended("a", 50, 90, 0);
        again["lastState"] = ended("a", 10, 40, 1)["state"].clone();
        let seen = PodLifecycle::of_pod(&pod("OnFailure", "Succeeded", &[again]));
        assert_eq!(seen, PodLifecycle::Finished { start: at(10), end: at(90) });
        let mut life = PodLifecycle::Running { start: at(0) };
        assert!(life.advance(seen));
        assert_eq!(life, PodLifecycle::Finished { start: at(0), end: at(90) });
    }

    #[test]
    fn a_pod_that_failed_in_its_init_container_has_ended() {
        let mut pod = pod("Never", "Failed", &[json!({"name": "a", "state": {"waiting": {}}})]);
        pod["spec"]["initContainers"] = json!([{"name": "init"}]);
        pod["status"]["initContainerStatuses"] = json!([ended("init", 1, 2, 1)]);
        assert_eq!(PodLifecycle::of_pod(&pod), PodLifecycle::Finished { start: at(1), end: at(2) });
    }

    fn any_life() -> impl Strategy<Value = PodLifecycle> {
        let time = || (0_i64..100).prop_map(at);
        prop_oneof![
            Just(PodLifecycle::Empty),
            time().prop_map(|start| PodLifecycle::Running { start }),
            (time(), time()).prop_map(|(start, end)| PodLifecycle::Finished { start, end: end.max(start) }),
        ]
    }

    proptest! {
        #[test]
        fn lives_move_only_forward_and_the_first_start_wins(seen in prop::collection::vec(any_life(), 0..8)) {
            let mut life = PodLifecycle::Empty;
            for seen in seen {
                let before = life;
                prop_assert_eq!(life.advance(seen), life != before);
                prop_assert!(life >= before);
                prop_assert!(before.start().is_none() || life.start() == before.start());
                prop_assert!(before.end().is_none() || life == before);
                prop_assert!(life.end().is_none() || life.end() >= life.start());
            }
        }
    }
}

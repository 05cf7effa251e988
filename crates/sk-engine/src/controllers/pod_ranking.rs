//! Which pods a ReplicaSet deletes first when it scales down (`ActivePodsWithRanks`, `controller_utils.go`, 1.36).
//!
//! Kubernetes compares ages by order of magnitude and then by uid, but only where they differ by at least a second,
//! which is not a total order. Here magnitudes always come before uids; where the two differ, Kubernetes' own result
//! depends on its sorting algorithm.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use sk_apiserver::kinds::{Pod, PodPhase};
use sk_apiserver::{Object, Uid};
use sk_core::{SimTime, SmolStr};

/// Sorts `pods` so that those to be deleted first stand first. `related` are the active pods of all replica sets of the
/// same owner: a pod beside many of them is spared least.
pub(crate) fn sort(pods: &mut [&Arc<Object>], related: &[&Arc<Object>], now: SimTime) {
    let mut crowd = BTreeMap::<Option<&SmolStr>, usize>::new();
    for pod in related {
        *crowd.entry(node_of(pod)).or_default() += 1;
    }
    pods.sort_by_cached_key(|pod| worth(pod, crowd.get(&node_of(pod)).copied().unwrap_or(0), now));
}

/// What a pod is worth: the least goes first. Has a node, phase, is ready, deletion cost, company, how long it has been
/// ready, how often the containers of one that is not were started again, how old it is.
type Worth = (bool, u8, bool, i32, Reverse<usize>, i64, Reverse<i32>, i64, Uid);

fn worth(pod: &Arc<Object>, crowd: usize, now: SimTime) -> Worth {
    let phase = match pod.pod().map(|pod| pod.status.phase) {
        Some(PodPhase::Pending) | None => 0,
        Some(PodPhase::Unknown) => 1,
        Some(_) => 2,
    };
    let ready = ready_since(pod);
    (
        node_of(pod).is_some(),
        phase,
        ready.is_some(),
        deletion_cost(pod),
        Reverse(crowd),
        ready.map_or(-1, |since| magnitude(since, now)),
        // Of two that are ready, uids decide before this does, unless they became so within one second.
        Reverse(if ready.is_some() { 0 } else { restarts(pod) }),
        magnitude(pod.created, now),
        pod.uid,
    )
}

/// The age's order of magnitude: the whole part of the base-2 logarithm of its nanoseconds.
fn magnitude(since: SimTime, now: SimTime) -> i64 {
    let nanos = i128::from(now.since(since).as_micros()) * 1000;
    if nanos > 0 { i64::from(nanos.ilog2()) } else { -1 }
}

fn node_of(pod: &Arc<Object>) -> Option<&SmolStr> {
    pod.pod().and_then(|pod| pod.node_name.as_ref())
}

fn ready_since(pod: &Arc<Object>) -> Option<SimTime> {
    let ready = |pod: &Pod| pod.status.condition("Ready").filter(|ready| ready.is_true())?.last_transition_time;
    pod.pod().and_then(ready)
}

/// How often its containers were started again.
pub(super) fn restarts(pod: &Object) -> i32 {
    pod.pod().map_or(0, |pod| pod.status.restarts)
}

fn deletion_cost(pod: &Arc<Object>) -> i32 {
    let cost = pod.meta.annotations.get("controller.kubernetes.io/pod-deletion-cost");
    cost.and_then(|cost| cost.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(name: &str, node: Option<&str>, change: impl Fn(&mut Value)) -> Arc<Object> {
        let mut json = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "a", "creationTimestamp": "1970-01-01T00:00:00Z", "annotations": {}},
            "spec": {"containers": []},
            "status": {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "1970-01-01T00:00:10Z"}],
            },
        });
        if let Some(node) = node {
            json["spec"]["nodeName"] = json!(node);
        }
        change(&mut json);
        Arc::new(Object::from_json(json).unwrap())
    }

    #[test]
    fn the_least_useful_pods_go_first() {
        let pods = [
            pod("good", Some("n1"), |_| {}),
            pod("crowded", Some("n2"), |_| {}),
            pod("cheap", Some("n3"), |pod| {
                pod["metadata"]["annotations"]["controller.kubernetes.io/pod-deletion-cost"] = json!("-1");
            }),
            pod("sick", Some("n4"), |pod| pod["status"]["conditions"] = json!([])),
            pod("starting", Some("n5"), |pod| pod["status"] = json!({"phase": "Pending"})),
            pod("homeless", None, |pod| pod["status"] = json!({"phase": "Pending"})),
            pod("fresh", Some("n6"), |pod| {
                pod["status"]["conditions"][0]["lastTransitionTime"] = json!("1970-01-01T01:00:00Z");
            }),
        ];
        let neighbour = pod("neighbour", Some("n2"), |_| {});
        let related: Vec<_> = pods.iter().chain([&neighbour]).collect();
        let mut sorted: Vec<_> = pods.iter().collect();
        sort(&mut sorted, &related, SimTime::from_secs(3_601));
        let names: Vec<_> = sorted.iter().map(|pod| pod.key.name.as_str()).collect();
        assert_eq!(names, ["homeless", "starting", "sick", "cheap", "crowded", "fresh", "good"]);
    }

    #[test]
    fn of_pods_that_are_not_ready_those_go_first_that_were_restarted_most() {
        let crashing = |name: &str, restarts: i32| {
            pod(name, Some("n"), |pod| {
                pod["metadata"]["creationTimestamp"] = json!(format!("1970-01-01T00:0{restarts}:00Z"));
                pod["status"]["conditions"] = json!([]);
                pod["spec"]["containers"] = json!([{"name": "main"}]);
                pod["status"]["containerStatuses"] = json!([{"name": "main", "restartCount": restarts}]);
            })
        };
        let pods = [crashing("never", 0), crashing("often", 5), crashing("once", 1)];
        let mut sorted: Vec<_> = pods.iter().collect();
        sort(&mut sorted, &[], SimTime::from_secs(3_601));
        let names: Vec<_> = sorted.iter().map(|pod| pod.key.name.as_str()).collect();
        assert_eq!(names, ["often", "once", "never"], "although the oldest was restarted least");
    }

    #[test]
    fn ages_of_one_magnitude_are_alike() {
        let now = SimTime::from_secs(1_000);
        assert_eq!(magnitude(SimTime::from_secs(400), now), magnitude(SimTime::from_secs(350), now));
        assert!(magnitude(SimTime::from_secs(990), now) < magnitude(SimTime::from_secs(400), now));
        assert_eq!(magnitude(now, now), -1);
    }
}

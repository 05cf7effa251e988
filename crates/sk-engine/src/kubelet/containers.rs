//! The container lifecycle on a virtual node: start, end, restart, stop.
//!
//! In a simulation all main containers of a pod start and end together. How long they run and with which exit code
//! they end comes, in this order, from the pod's recorded life, from its annotations (`static.simkube.io/lifetime`,
//! `static.simkube.io/exit-code`), and for pods of Jobs from the scenario; any other pod runs until it is deleted. A
//! recorded life is the life of the whole pod, restarts included, so a pod that ends successfully is not restarted,
//! whatever its restart policy.

use sk_apiserver::Object;
use std::sync::Arc;

use sk_apiserver::directives;
use sk_apiserver::kinds::{Condition, Directives, LastRun, Pod, PodPhase};
use sk_core::{SimDuration, SimTime};

/// After the second failure in a row (`initialBackoff`, `pkg/kubelet/kubelet.go`, 1.36); the first restart is at once.
const FIRST_BACKOFF: SimDuration = SimDuration::from_secs(10);
/// At most (`MaxCrashLoopBackOff`).
const LONGEST_BACKOFF: SimDuration = SimDuration::from_secs(300);
/// A container that has run for so long begins anew: twice the longest wait, as the kubelet forgets it.
const FORGIVEN_AFTER: SimDuration = SimDuration::from_secs(600);
/// What a container ends with that is told to stop and has not said otherwise: 128 and the number of SIGKILL.
const KILLED: i32 = 137;

/// What the driver decided for a pod, or its annotations.
pub(super) fn directives_of(object: &Object) -> Directives {
    match object.pod().and_then(|pod| pod.directives) {
        // No recorded life was found for it: its own annotation says how long it runs.
        Some(decided) if decided.lifetime.is_none() && decided.sequence.is_none() => {
            let (lifetime, exit_code) =
                (directives::lifetime(&object.meta.annotations), directives::exit_code(&object.meta.annotations));
            Directives { lifetime, exit_code, ..decided }
        }
        Some(decided) => decided,
        None => directives::read(&object.meta.annotations),
    }
}

/// What the containers of a pod end with. A recorded life that ended well does not overrule what stands on the pod.
pub(super) fn exit_code(object: &Object) -> i32 {
    let recorded = object.pod().and_then(|pod| pod.directives).and_then(|directives| directives.exit_code);
    recorded.or_else(|| directives::exit_code(&object.meta.annotations)).map_or(0, i32::from)
}

/// How long the containers of a pod run before they end; `None`: until it is deleted.
pub(super) fn lifetime(object: &Object, job_duration: SimDuration) -> Option<SimDuration> {
    let directives = directives_of(object);
    let assumed = || directives::is_assumed(object, &directives).then_some(job_duration);
    directives.lifetime.or_else(assumed)
}

/// Starts the containers, for the first time or again: the pod runs and is ready.
pub(super) fn start(pod: &mut Pod, now: SimTime) {
    let status = &mut pod.status;
    if let (Some(started), Some(finished)) = (status.started, status.finished.take()) {
        status.last_run = Some(Arc::new(LastRun { started, finished, exit_code: status.exit_code }));
        status.restarts = status.restarts.saturating_add(1);
    }
    status.exit_code = 0;
    status.phase = PodPhase::Running;
    status.start_time.get_or_insert(now);
    const CONDITIONS: [&str; 4] = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"];
    if status.started.is_none() {
        status.conditions.reserve_exact(CONDITIONS.len());
    }
    status.started = Some(now);
    for condition in CONDITIONS {
        status.set_condition(Condition::new(condition, true, now));
    }
}

/// Sets the pod ready again after the node lifecycle controller marked it; `false` if it was not marked.
pub(super) fn ready_again(pod: &mut Pod, now: SimTime) -> bool {
    let is_unready = pod.status.condition("Ready").is_some_and(|ready| !ready.is_true());
    if is_unready {
        pod.status.set_condition(Condition::new("Ready", true, now));
    }
    is_unready
}

/// The containers end. A failure ends the pod only if they may not start again: otherwise they wait ([`backoff`]).
pub(super) fn end(pod: &mut Pod, exit_code: i32, now: SimTime) {
    pod.status.finished = Some(now);
    pod.status.exit_code = exit_code;
    if exit_code == 0 {
        return conclude(pod, PodPhase::Succeeded, now);
    }
    if pod.spec.restart_policy == "Never" {
        return conclude(pod, PodPhase::Failed, now);
    }
    let names: Vec<_> = pod.spec.containers.iter().map(|container| container.name.as_str()).collect();
    let message = format!("containers with unready status: [{}]", names.join(" "));
    for condition in ["Ready", "ContainersReady"] {
        let unready = Condition::new(condition, false, now).because("ContainersNotReady", message.clone());
        pod.status.set_condition(unready);
    }
}

/// Stops a pod that has a finalizer: it reports how it ended before it is deleted.
pub(super) fn stop(pod: &mut Pod, now: SimTime) {
    pod.status.finished = pod.status.started.map(|_| now);
    pod.status.exit_code = KILLED;
    conclude(pod, PodPhase::Failed, now);
}

/// How long containers that have just failed wait before they start again.
pub(super) fn backoff(pod: &Pod) -> SimDuration {
    let status = &pod.status;
    let ran = status.finished.zip(status.started).map_or(SimDuration::ZERO, |(end, start)| end.since(start));
    if status.restarts == 0 || ran >= FORGIVEN_AFTER {
        return SimDuration::ZERO;
    }
    // Five doublings reach the longest; more would overflow and change nothing.
    let doublings = (status.restarts - 1).clamp(0, 5);
    (FIRST_BACKOFF * (1_i64 << doublings)).min(LONGEST_BACKOFF)
}

fn conclude(pod: &mut Pod, phase: PodPhase, now: SimTime) {
    pod.status.phase = phase;
    let reason = if phase == PodPhase::Succeeded { "PodCompleted" } else { "PodFailed" };
    for condition in ["Ready", "ContainersReady"] {
        pod.status.set_condition(Condition::new(condition, false, now).because(reason, ""));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_restart_is_at_once_and_later_ones_wait_up_to_five_minutes() {
        let wait = |restarts, ran| {
            let mut pod = Pod::default();
            pod.status.restarts = restarts;
            (pod.status.started, pod.status.finished) = (Some(SimTime::EPOCH), Some(SimTime::from_secs(ran)));
            backoff(&pod).as_micros() / 1_000_000
        };
        assert_eq!([0, 1, 2, 3, 5, 6, i32::MAX].map(|restarts| wait(restarts, 1)), [0, 10, 20, 40, 160, 300, 300]);
        assert_eq!(wait(9, 600), 0, "a container that ran for ten minutes begins anew");
    }
}

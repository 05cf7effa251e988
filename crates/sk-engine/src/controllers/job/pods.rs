//! What the Job controller reads from a pod.

use std::sync::Arc;

use sk_apiserver::kinds::{COMPLETION_INDEX, JOB_TRACKING, JobSpec, POD, PodPhase};
use sk_apiserver::{DeleteOptions, Object, ObjectId, Request, View};
use sk_core::{SimDuration, SimTime, SmolStr};

use super::super::pod_ranking::restarts;

/// The pods that a Job manages.
pub(super) fn of<'a>(job: &Object, view: View<'a>) -> Vec<(ObjectId, &'a Arc<Object>)> {
    let manages = |pod: &Object| pod.gvk == POD && pod.controller().is_some_and(|owner| owner.uid == job.uid);
    view.owned_by(job.uid).filter(|(_, pod)| manages(pod)).collect()
}

/// Is it still to be counted?
pub(super) fn is_tracked(pod: &Object) -> bool {
    pod.meta.finalizers.contains(&JOB_TRACKING)
}

/// Where it is in its life.
pub(super) fn phase(pod: &Object) -> PodPhase {
    pod.pod().map_or(PodPhase::Unknown, |pod| pod.status.phase)
}

/// Neither ended nor going.
pub(super) fn is_active(pod: &Object) -> bool {
    !pod.is_deleting() && !phase(pod).is_final()
}

/// Going and not ended.
pub(super) fn is_terminating(pod: &Object) -> bool {
    pod.is_deleting() && !phase(pod).is_final()
}

/// Failed, or on its way there: a pod that is deleted may never get the chance to say so.
pub(super) fn is_failed(pod: &Object, spec: &JobSpec) -> bool {
    match phase(pod) {
        PodPhase::Failed => true,
        PodPhase::Succeeded => false,
        PodPhase::Pending | PodPhase::Running | PodPhase::Unknown => !spec.only_replaces_failed() && pod.is_deleting(),
    }
}

/// Since when it is ready.
pub(super) fn ready_since(pod: &Object) -> Option<SimTime> {
    pod.pod()?.status.condition("Ready").filter(|ready| ready.is_true())?.last_transition_time
}

/// Which index of its Job it is.
pub(super) fn index(pod: &Object) -> Option<u32> {
    pod.meta.annotations.get(&COMPLETION_INDEX)?.parse().ok()
}

/// The same, if the Job still has that index.
pub(super) fn valid_index(pod: &Object, completions: u32) -> Option<u32> {
    index(pod).filter(|index| *index < completions)
}

/// When it ended, to the second, as statuses say it: when its containers ended, else when it ceased to be ready, else when
/// it was asked to go, else when it was made.
pub(super) fn finished_at(pod: &Object) -> SimTime {
    let status = pod.pod().map(|pod| &pod.status);
    let not_ready = |ready: &sk_apiserver::kinds::Condition| !ready.is_true();
    let ended = status.and_then(|status| status.finished);
    let unready = || status?.condition("Ready").filter(|ready| not_ready(ready))?.last_transition_time;
    let asked = || pod.meta.deletion.map(|deletion| deletion.at + SimDuration::from_secs(-deletion.grace_secs));
    whole_seconds(ended.or_else(unready).or_else(asked).unwrap_or(pod.created))
}

/// A time as `metav1.Time` keeps it.
pub(super) fn whole_seconds(time: SimTime) -> SimTime {
    time.whole_secs()
}

/// Takes the finalizer off.
pub(super) fn release(pod: &Object) -> Request {
    Request::RemoveFinalizer { target: pod.reference(), uid: pod.uid, finalizer: JOB_TRACKING.clone() }
}

/// Asks it to go.
pub(super) fn delete(pod: &Object) -> Request {
    let options = DeleteOptions { uid: Some(pod.uid), ..DeleteOptions::default() };
    Request::Delete { target: pod.reference(), options }
}

/// Sorts `pods` so that those that have come least far stand first (`ActivePods`, `controller_utils.go`, 1.36).
pub(super) fn sort_for_removal(pods: &mut [&Arc<Object>]) {
    pods.sort_by_cached_key(|pod| {
        let has_node = pod.pod().is_some_and(|pod| pod.node_name.is_some());
        let phase = match phase(pod) {
            PodPhase::Pending => 0,
            PodPhase::Unknown => 1,
            PodPhase::Running | PodPhase::Succeeded | PodPhase::Failed => 2,
        };
        let newest_first = |time: SimTime| std::cmp::Reverse(time.as_secs());
        let ready = ready_since(pod);
        let name: SmolStr = pod.key.name.clone();
        let restarts = std::cmp::Reverse(restarts(pod));
        (has_node, phase, ready.is_some(), ready.map(newest_first), restarts, newest_first(pod.created), name)
    });
}

//! The status of a pod with one container as a kubelet reports it, as strategic merge patches.

use serde_json::{Value, json};

/// Where a container stands in its life. Times are RFC 3339.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ContainerLife {
    /// Its name.
    pub(super) name: String,
    /// Its image.
    pub(super) image: String,
    /// How often it was started again.
    pub(super) restarts: u32,
    /// When it was started last.
    pub(super) started: String,
}

/// The status of a pod that runs and is ready.
pub(super) fn running(life: &ContainerLife, pod_started: &str, address: &str) -> Value {
    let conditions = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"]
        .map(|kind| condition(kind, "True", None, &life.started));
    json!({
        "phase": "Running", "startTime": pod_started, "hostIP": address, "podIP": address, "podIPs": [{"ip": address}],
        "conditions": conditions,
        "containerStatuses": [container(life, true, &json!({"running": {"startedAt": life.started}}))],
    })
}

/// The status of a pod that waits for its restart.
pub(super) fn waiting(life: &ContainerLife, code: i32, ended: &str) -> Value {
    let mut status = container(life, false, &json!({"waiting": {"reason": "CrashLoopBackOff"}}));
    status["lastState"] = terminated(life, code, ended);
    json!({"phase": "Running", "conditions": not_ready("ContainersNotReady", ended), "containerStatuses": [status]})
}

/// The status of a pod that has ended.
pub(super) fn ended(life: &ContainerLife, code: i32, ended: &str, words: &str) -> Value {
    let (phase, reason) = if code == 0 { ("Succeeded", "PodCompleted") } else { ("Failed", "PodFailed") };
    let mut state = terminated(life, code, ended);
    if !words.is_empty() {
        state["terminated"]["message"] = words.into();
    }
    json!({
        "phase": phase, "conditions": not_ready(reason, ended),
        "containerStatuses": [container(life, false, &state)],
    })
}

/// Its image is nowhere to be had; a kubelet goes on trying.
pub(super) fn image_missing(life: &ContainerLife, words: &str) -> Value {
    let state = json!({"waiting": {"reason": "ImagePullBackOff", "message": words}});
    json!({"phase": "Pending", "containerStatuses": [container(life, false, &state)]})
}

/// The status of a pod that could not be started, as a kubelet reports it.
pub(super) fn refused(reason: &str) -> Value {
    json!({"phase": "Failed", "reason": "ProcessRunner", "message": reason})
}

fn container(life: &ContainerLife, up: bool, state: &Value) -> Value {
    json!({
        "name": life.name, "image": life.image, "imageID": "", "restartCount": life.restarts,
        "ready": up, "started": up, "state": state,
    })
}

fn terminated(life: &ContainerLife, code: i32, ended: &str) -> Value {
    let reason = if code == 0 { "Completed" } else { "Error" };
    json!({"terminated": {"exitCode": code, "reason": reason, "startedAt": life.started, "finishedAt": ended}})
}

fn not_ready(reason: &str, at: &str) -> [Value; 2] {
    ["Ready", "ContainersReady"].map(|kind| condition(kind, "False", Some(reason), at))
}

fn condition(kind: &str, status: &str, reason: Option<&str>, at: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "lastTransitionTime": at})
}

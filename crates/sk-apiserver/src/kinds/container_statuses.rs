//! Container statuses, derived from a pod's compact status when a client asks for JSON. In a simulation all main
//! containers of a pod start and end together; init containers run before them, sidecars around them.

use serde_json::{Value, json};
use sk_core::SimTime;

use super::{LastRun, Pod};

/// The main containers.
pub(super) fn of_main(pod: &Pod, started: SimTime) -> Value {
    let status = &pod.status;
    let running = status.finished.is_none();
    let last_state =
        status.last_run.as_deref().filter(|_| running).map_or(json!({}), |run| json!({"terminated": terminated(*run)}));
    let containers = pod.spec.containers.iter().map(|container| {
        let (mut state, mut last) = (state(pod, started), last_state.clone());
        if status.is_waiting() {
            last = state;
            let message = format!("back-off restarting failed container={}", container.name);
            state = json!({"waiting": {"reason": "CrashLoopBackOff", "message": message}});
        }
        json!({
            "name": container.name, "image": container.rest.get("image").cloned().unwrap_or(json!("")), "imageID": "",
            "ready": running, "started": running, "restartCount": status.restarts, "state": state, "lastState": last,
        })
    });
    containers.collect()
}

/// Init containers: those that set up have ended when the main ones start, sidecars run as long as they do.
pub(super) fn of_init(pod: &Pod, started: SimTime) -> Value {
    let ended = LastRun { started, finished: started, exit_code: 0 };
    let sidecars_run = !pod.status.phase.is_final();
    let containers = pod.spec.init_containers.iter().map(|container| {
        let (ready, state) = match container.is_sidecar() {
            true if sidecars_run => (true, json!({"running": {"startedAt": started.to_rfc3339_secs()}})),
            true => (false, json!({"terminated": terminated(LastRun { finished: pod.status.finished.unwrap_or(started), ..ended })})),
            false => (true, json!({"terminated": terminated(ended)})),
        };
        json!({
            "name": container.name, "image": container.rest.get("image").cloned().unwrap_or(json!("")), "imageID": "",
            "ready": ready, "started": container.is_sidecar() && sidecars_run, "restartCount": 0, "state": state, "lastState": {},
        })
    });
    containers.collect()
}

fn state(pod: &Pod, started: SimTime) -> Value {
    match pod.status.finished {
        None => json!({"running": {"startedAt": started.to_rfc3339_secs()}}),
        Some(finished) => {
            json!({"terminated": terminated(LastRun { started, finished, exit_code: pod.status.exit_code })})
        }
    }
}

fn terminated(run: LastRun) -> Value {
    json!({
        "exitCode": run.exit_code, "reason": if run.exit_code == 0 { "Completed" } else { "Error" },
        "startedAt": run.started.to_rfc3339_secs(), "finishedAt": run.finished.to_rfc3339_secs(),
    })
}

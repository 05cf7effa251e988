//! The state of a driver, from its Job, its pods and their warning Events. Pure.
//!
//! A user who reads "Failed" should not have to look anywhere else, so every reason that Kubernetes gives for a pod
//! that does not run becomes a sentence here.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

use crate::observed::Verdict;

/// The longest text that is taken over from a pod: a termination message has at most 4096 bytes.
const MAX_WORDS: usize = 4096;

/// How a driver does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Driver {
    /// There is no Job.
    Absent,
    /// Its first or next pod does not run yet.
    Starting {
        /// Repetitions that are done.
        completed: u32,
        /// What it waits for, if that is known.
        waits_for: Option<String>,
    },
    /// A pod runs.
    Running {
        /// Repetitions that are done.
        completed: u32,
    },
    /// It has ended.
    Ended {
        /// Repetitions that are done.
        completed: u32,
        /// How.
        verdict: Verdict,
    },
}

/// Judges a driver. `warnings` are what Kubernetes' events say about the Job and its pods, the newest first.
pub fn judge(job: &Job, pods: &[Pod], warnings: &[String], now: Timestamp, start_limit: Duration) -> Driver {
    let completed = completed(job);
    let ended = |verdict| Driver::Ended { completed, verdict };
    if has_condition(job, "Complete").is_some() {
        return ended(Verdict::success(format!("{completed} of {completed} repetitions are done")));
    }
    if let Some(failure) = has_condition(job, "Failed").or_else(|| has_condition(job, "FailureTarget")) {
        return ended(failed(job, pods, failure));
    }
    if pods.iter().any(|pod| phase(pod) == "Running") {
        return Driver::Running { completed };
    }
    let obstacle = pods.iter().filter(|pod| phase(pod) == "Pending").find_map(obstacle);
    let waited = waiting_since(job, pods).map_or(0, |since| now.duration_since(since).as_secs());
    let too_long = u64::try_from(waited).unwrap_or(0) >= start_limit.as_secs();
    // A name that can never be an image's gets no better by waiting.
    let hopeless = obstacle.as_ref().is_some_and(|(_, _, hopeless)| *hopeless);
    if too_long || hopeless {
        return ended(not_started(obstacle, warnings, waited));
    }
    Driver::Starting { completed, waits_for: obstacle.map(|(_, words, _)| words) }
}

/// Since when the next pod is waited for: its creation, else the end of the one before, else the Job's creation.
fn waiting_since(job: &Job, pods: &[Pod]) -> Option<Timestamp> {
    let pending = pods.iter().filter(|pod| phase(pod) == "Pending").filter_map(created).max();
    let ended = || pods.iter().filter_map(|pod| ended_at(pod).or_else(|| created(pod))).max();
    pending.or_else(ended).or_else(|| job.metadata.creation_timestamp.as_ref().map(|time| time.0))
}

fn completed(job: &Job) -> u32 {
    let succeeded = job.status.as_ref().and_then(|status| status.succeeded).unwrap_or(0);
    u32::try_from(succeeded).unwrap_or(0)
}

/// The reason and message of a condition that is true.
fn has_condition<'a>(job: &'a Job, kind: &str) -> Option<(&'a str, &'a str)> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let found = conditions.iter().find(|condition| condition.type_ == kind && condition.status == "True")?;
    Some((found.reason.as_deref().unwrap_or_default(), found.message.as_deref().unwrap_or_default()))
}

/// A Job that has failed: what its last pod said, or else what the Job controller says.
fn failed(job: &Job, pods: &[Pod], (reason, message): (&str, &str)) -> Verdict {
    if reason == "DeadlineExceeded" {
        let limit = job.spec.as_ref().and_then(|spec| spec.active_deadline_seconds).unwrap_or(0);
        let words = format!("the driver was stopped after {limit} s, as spec.driver.deadlineSeconds says");
        return Verdict::failure("DeadlineExceeded", words);
    }
    let last = pods.iter().filter(|pod| phase(pod) == "Failed").max_by_key(|pod| created(pod));
    match last {
        Some(pod) => last_words(pod),
        None => {
            let words = "its pod is gone: was it deleted, or its node drained?";
            Verdict::failure("DriverFailed", format!("the driver's Job has failed ({message}), and {words}"))
        }
    }
}

/// The reason why a pod failed: from its node, from Kubernetes, from its own termination message, or its exit code, in this
/// order. A driver that was killed has left nothing but its log.
fn last_words(pod: &Pod) -> Verdict {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    if let Some(verdict) = taken_away(pod, name) {
        return verdict;
    }
    let ended = container(pod).and_then(|container| container.state.as_ref()?.terminated.as_ref());
    let Some(ended) = ended else {
        return Verdict::failure("DriverFailed", format!("the driver's pod {name} failed and gave no reason"));
    };
    let words = ended.message.as_deref().unwrap_or_default().trim();
    match ended.reason.as_deref().unwrap_or_default() {
        "OOMKilled" => Verdict::failure(
            "DriverOutOfMemory",
            format!(
                "the driver's pod {name} needed more memory than its limit allows: replay less of the trace \
                 (spec.duration), or a smaller one"
            ),
        ),
        "StartError" | "ContainerCannotRun" => Verdict::failure(
            "DriverNotStarted",
            format!("the driver's container cannot be started; is `{}` the image of a driver? {words}", image(pod)),
        ),
        _ => said(words).unwrap_or_else(|| by_exit_code(name, ended.exit_code, words)),
    }
}

/// The pod was ended from outside: node pressure, node shutdown, eviction, preemption.
fn taken_away(pod: &Pod, name: &str) -> Option<Verdict> {
    let status = pod.status.as_ref()?;
    if let Some(reason) = &status.reason {
        let words = status.message.as_deref().unwrap_or("its node gives no reason");
        let kind = if reason == "Evicted" { "DriverEvicted" } else { "DriverFailed" };
        return Some(Verdict::failure(kind, format!("the driver's pod {name} was ended ({reason}): {words}")));
    }
    let disrupted = |kind: &str, status: &str| kind == "DisruptionTarget" && status == "True";
    let disruption = status.conditions.iter().flatten().find(|found| disrupted(&found.type_, &found.status))?;
    let reason = disruption.reason.as_deref().unwrap_or("for no reason given");
    let words = disruption.message.as_deref().unwrap_or_default();
    Some(Verdict::failure("DriverEvicted", format!("the driver's pod {name} was removed ({reason}): {words}")))
}

/// What an exit code means, with the end of the log if there is one.
fn by_exit_code(pod: &str, code: i32, words: &str) -> Verdict {
    let (reason, what) = match code {
        // 128 and the signal's number, as shells and kubelets count.
        137 => ("DriverKilled", "was killed (SIGKILL), by its node or by a user".to_owned()),
        143 => ("DriverKilled", "was stopped (SIGTERM), by its node or by a user".to_owned()),
        132 | 134 | 135 | 136 | 139 => {
            ("DriverCrashed", format!("crashed (signal {}); please report this", code - 128))
        }
        101 => ("DriverCrashed", "panicked; please report this".to_owned()),
        code => ("DriverFailed", format!("ended with exit code {code}")),
    };
    let said = if words.is_empty() { "it gave no reason".to_owned() } else { format!("its last line: {words}") };
    let sentence: String = format!("the driver's pod {pod} {what}; {said}").chars().take(MAX_WORDS).collect();
    Verdict::failure(reason, sentence)
}

/// The driver's own words, if they begin with one word in capitals and a colon, such as `TraceMissing:`. Others are its log.
fn said(words: &str) -> Option<Verdict> {
    let words: String = words.chars().take(MAX_WORDS).collect();
    let (reason, message) = words.split_once(": ")?;
    let is_reason =
        reason.starts_with(|c: char| c.is_ascii_uppercase()) && reason.chars().all(|c| c.is_ascii_alphanumeric());
    is_reason.then(|| Verdict::failure(reason, message))
}

/// Why a pod does not run: a reason, a message, and whether it is permanent.
fn obstacle(pod: &Pod) -> Option<(&'static str, String, bool)> {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let status = pod.status.as_ref()?;
    let unscheduled = status
        .conditions
        .iter()
        .flatten()
        .find(|condition| condition.type_ == "PodScheduled" && condition.status == "False");
    if let Some(condition) = unscheduled {
        let words = condition.message.as_deref().unwrap_or("the scheduler gives no reason");
        return Some(("DriverUnschedulable", format!("the driver's pod {name} is unschedulable: {words}"), false));
    }
    let waiting = container(pod)?.state.as_ref()?.waiting.as_ref()?;
    let image = image(pod);
    let words = waiting.message.as_deref().unwrap_or_default();
    match waiting.reason.as_deref().unwrap_or_default() {
        "InvalidImageName" => {
            Some(("ImageUnavailable", format!("`{image}` is not a valid image: change spec.driver.image"), true))
        }
        "ErrImagePull" | "ImagePullBackOff" | "ErrImageNeverPull" => {
            let sentence = format!("the driver's image `{image}` cannot be pulled: {words}");
            Some(("ImageUnavailable", sentence, false))
        }
        "CreateContainerConfigError" | "CreateContainerError" | "RunContainerError" => {
            let sentence = format!("the driver's container cannot be created: {words}");
            Some(("DriverNotStarted", sentence, false))
        }
        _ => None,
    }
}

fn not_started(obstacle: Option<(&'static str, String, bool)>, warnings: &[String], waited: i64) -> Verdict {
    match (obstacle, warnings.first()) {
        (Some((reason, words, _)), _) => Verdict::failure(reason, words),
        (None, Some(warning)) => {
            Verdict::failure("DriverNotStarted", format!("the driver did not start within {waited} s: {warning}"))
        }
        (None, None) => Verdict::failure(
            "DriverNotStarted",
            format!(
                "the driver did not start within {waited} s, and there is no Event that says why; check the kubelet of its node"
            ),
        ),
    }
}

fn image(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.containers.first()?.image.as_deref()).unwrap_or_default()
}

fn container(pod: &Pod) -> Option<&ContainerStatus> {
    pod.status.as_ref()?.container_statuses.as_ref()?.first()
}

fn ended_at(pod: &Pod) -> Option<Timestamp> {
    container(pod)?.state.as_ref()?.terminated.as_ref()?.finished_at.as_ref().map(|time| time.0)
}

fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

fn created(pod: &Pod) -> Option<Timestamp> {
    pod.metadata.creation_timestamp.as_ref().map(|time| time.0)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    fn judged(job: &Value, pods: &[Value], warnings: &[&str], seconds: i64) -> Driver {
        let began: Timestamp = "2026-11-10T14:00:00Z".parse().unwrap();
        let mut job = job.clone();
        job["metadata"] = json!({"creationTimestamp": began.to_string()});
        let pod = |status: &Value| -> Pod {
            let metadata = json!({"name": "p", "creationTimestamp": began.to_string()});
            let spec = json!({"containers": [{"name": "driver", "image": "sk-driver:9"}]});
            serde_json::from_value(json!({"metadata": metadata, "spec": spec, "status": status})).unwrap()
        };
        let pods: Vec<_> = pods.iter().map(pod).collect();
        let warnings: Vec<_> = warnings.iter().map(|warning| (*warning).to_owned()).collect();
        let now = began + jiff::SignedDuration::from_secs(seconds);
        judge(&serde_json::from_value(job).unwrap(), &pods, &warnings, now, LIMIT)
    }

    fn failure(reason: &str, message: &str) -> Driver {
        Driver::Ended { completed: 0, verdict: Verdict::failure(reason, message) }
    }

    fn ended_container(terminated: &Value) -> Value {
        let state = json!({"terminated": terminated});
        json!({"phase": "Failed", "containerStatuses": [
            {"name": "driver", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state},
        ]})
    }

    fn waiting(reason: &str, message: &str) -> Value {
        let state = json!({"waiting": {"reason": reason, "message": message}});
        json!({"phase": "Pending", "containerStatuses": [
            {"name": "driver", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state},
        ]})
    }

    #[test]
    fn a_failed_driver_is_told_in_its_own_words() {
        let job =
            json!({"status": {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]}});
        for (terminated, reason, message) in [
            (
                json!({"exitCode": 1, "message": "TraceMissing: s3://a is not there\n"}),
                "TraceMissing",
                "s3://a is not there",
            ),
            (
                json!({"exitCode": 1, "message": "no luck: today"}),
                "DriverFailed",
                "the driver's pod p ended with exit code 1; its last line: no luck: today",
            ),
            (json!({"exitCode": 3}), "DriverFailed", "the driver's pod p ended with exit code 3; it gave no reason"),
            (
                json!({"exitCode": 137, "message": "INFO all is well"}),
                "DriverKilled",
                "the driver's pod p was killed (SIGKILL), by its node or by a user; its last line: INFO all is well",
            ),
            (
                json!({"exitCode": 139}),
                "DriverCrashed",
                "the driver's pod p crashed (signal 11); please report this; it gave no reason",
            ),
            (
                json!({"exitCode": 137, "reason": "OOMKilled", "message": "INFO all is well"}),
                "DriverOutOfMemory",
                "the driver's pod p needed more memory than its limit allows: replay less of the trace (spec.duration), \
                 or a smaller one",
            ),
            (
                json!({"exitCode": 128, "reason": "StartError", "message": "exec: \"run\": not found"}),
                "DriverNotStarted",
                "the driver's container cannot be started; is `sk-driver:9` the image of a driver? exec: \"run\": not \
                 found",
            ),
        ] {
            assert_eq!(judged(&job, &[ended_container(&terminated)], &[], 5), failure(reason, message));
        }
    }

    #[test]
    fn a_driver_that_was_taken_away_is_told_in_the_words_of_who_did_it() {
        let job = json!({"status": {"conditions": [
            {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "Job has failed"},
        ]}});
        // Its log is what a kubelet takes for its last words.
        let mut evicted = ended_container(&json!({"exitCode": 137, "message": "INFO all is well"}));
        let mut drained = evicted.clone();
        evicted["reason"] = json!("Evicted");
        evicted["message"] = json!("low on memory");
        let words = "the driver's pod p was ended (Evicted): low on memory";
        assert_eq!(judged(&job, &[evicted.clone()], &[], 5), failure("DriverEvicted", words));
        evicted["reason"] = json!("Terminated");
        let words = "the driver's pod p was ended (Terminated): low on memory";
        assert_eq!(judged(&job, &[evicted], &[], 5), failure("DriverFailed", words));
        drained["conditions"] = json!([
            {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": "drained"},
        ]);
        let words = "the driver's pod p was removed (EvictionByEvictionAPI): drained";
        assert_eq!(judged(&job, &[drained], &[], 5), failure("DriverEvicted", words));
        let words =
            "the driver's Job has failed (Job has failed), and its pod is gone: was it deleted, or its node drained?";
        assert_eq!(judged(&job, &[], &[], 5), failure("DriverFailed", words));
    }

    #[test]
    fn a_driver_that_does_not_start_is_given_up_after_the_limit_with_the_obstacle() {
        let unschedulable = json!({"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available"},
        ]});
        let words = "the driver's pod p is unschedulable: 0/3 nodes are available";
        let patient = judged(&json!({}), std::slice::from_ref(&unschedulable), &[], 59);
        assert_eq!(patient, Driver::Starting { completed: 0, waits_for: Some(words.to_owned()) });
        assert_eq!(judged(&json!({}), &[unschedulable], &[], 60), failure("DriverUnschedulable", words));

        let pull = waiting("ImagePullBackOff", "Back-off pulling");
        let words = "the driver's image `sk-driver:9` cannot be pulled: Back-off pulling";
        assert_eq!(judged(&json!({}), &[pull], &[], 61), failure("ImageUnavailable", words));
        let secret = waiting("CreateContainerConfigError", "secret \"s3\" not found");
        let words = "the driver's container cannot be created: secret \"s3\" not found";
        assert_eq!(judged(&json!({}), &[secret], &[], 61), failure("DriverNotStarted", words));
        let invalid = waiting("InvalidImageName", "");
        let words = "`sk-driver:9` is not a valid image: change spec.driver.image";
        assert_eq!(judged(&json!({}), &[invalid], &[], 0), failure("ImageUnavailable", words));

        let warning = "FailedMount: hostPath type check failed: /a is not a file";
        let words = format!("the driver did not start within 61 s: {warning}");
        let creating = waiting("ContainerCreating", "");
        assert_eq!(judged(&json!({}), &[creating], &[warning], 61), failure("DriverNotStarted", &words));
        let words = format!("the driver did not start within 61 s: {warning}");
        assert_eq!(judged(&json!({}), &[], &[warning], 61), failure("DriverNotStarted", &words));
    }

    #[test]
    fn a_deadline_and_an_end_are_what_the_job_says() {
        let late = json!({
            "spec": {"activeDeadlineSeconds": 9, "template": {}},
            "status": {"conditions": [{"type": "Failed", "status": "True", "reason": "DeadlineExceeded"}]},
        });
        let words = "the driver was stopped after 9 s, as spec.driver.deadlineSeconds says";
        assert_eq!(judged(&late, &[], &[], 9), failure("DeadlineExceeded", words));
        let done = json!({"status": {"succeeded": 3, "conditions": [{"type": "Complete", "status": "True"}]}});
        let verdict = Verdict::success("3 of 3 repetitions are done");
        assert_eq!(judged(&done, &[], &[], 9), Driver::Ended { completed: 3, verdict });
        let second = json!({"status": {"succeeded": 1}});
        assert_eq!(judged(&second, &[json!({"phase": "Running"})], &[], 900), Driver::Running { completed: 1 });
        // A repetition that took an hour is no reason to give the next one up.
        let mut hour = ended_container(&json!({"exitCode": 0, "finishedAt": "2026-11-10T15:00:00Z"}));
        hour["phase"] = json!("Succeeded");
        let starting = Driver::Starting { completed: 1, waits_for: None };
        assert_eq!(judged(&second, &[hour], &[], 3601), starting);
        assert_eq!(
            judged(&second, &[json!({"phase": "Pending"})], &[], 9),
            Driver::Starting { completed: 1, waits_for: None }
        );
    }
}

//! Jobs from their first pod to their end.

use serde_json::{Value, json};
use sk_core::SimDuration;
use sk_engine::Timing;
use sk_engine::api::{Change, Propagation};
use sk_engine::kinds::{JOB, POD};

use crate::harness::{Cluster, conditions, job, merge, template};

/// What a status says of the numbers of pods.
fn counts(job: &Value) -> [i64; 5] {
    ["active", "ready", "terminating", "succeeded", "failed"].map(|name| job["status"][name].as_i64().unwrap_or(0))
}

#[test]
fn a_job_runs_so_many_pods_at_a_time_until_enough_have_succeeded() {
    let mut cluster = Cluster::ideal();
    cluster.until(1).apply(job("sum", 0, json!({"completions": 5, "parallelism": 2})));
    cluster.until(3);
    assert_eq!(counts(&cluster.get(&JOB, "sum")), [2, 2, 0, 0, 0]);
    cluster.until(13);
    assert_eq!(counts(&cluster.get(&JOB, "sum")), [2, 2, 0, 2, 0]);
    cluster.until(60);
    let done = cluster.get(&JOB, "sum");
    assert_eq!(counts(&done), [0, 0, 0, 5, 0]);
    let reached = "CompletionsReached".to_owned();
    assert_eq!(conditions(&done), [("SuccessCriteriaMet".into(), reached.clone()), ("Complete".into(), reached)]);
    assert_eq!(done["status"]["uncountedTerminatedPods"], json!({}));
    assert!(done["status"]["completionTime"].is_string(), "{done}");
    assert_eq!((cluster.phase("Succeeded"), cluster.creations().len()), (5, 5));
    assert!(cluster.pods().iter().all(|pod| pod["metadata"].get("finalizers").is_none()), "all pods are counted");
}

#[test]
fn a_stale_cache_never_counts_a_pod_twice_or_makes_one_too_many() {
    let slow = Timing { watch_latency: SimDuration::from_secs(5), ..Timing::real_like() };
    let mut cluster = Cluster::new(slow);
    cluster.until(1).apply(job("sum", 0, json!({"completions": 30, "parallelism": 7})));
    cluster.until(900);
    assert_eq!(counts(&cluster.get(&JOB, "sum")), [0, 0, 0, 30, 0]);
    assert_eq!(cluster.creations().len(), 30);
}

#[test]
fn a_work_queue_job_is_complete_when_one_pod_has_succeeded_and_none_is_left() {
    let mut cluster = Cluster::ideal();
    cluster.until(1).apply(job("queue", 0, json!({"parallelism": 3})));
    cluster.until(60);
    assert_eq!(counts(&cluster.get(&JOB, "queue")), [0, 0, 0, 3, 0]);
    assert_eq!(cluster.creations().len(), 3, "no pod follows the first success");
}

#[test]
fn failures_wait_twice_as_long_each_time_until_the_limit_is_reached() {
    let mut cluster = Cluster::ideal();
    cluster.until(0).apply(job("bad", 3, json!({"backoffLimit": 3})));
    cluster.until(300);
    // Each pod fails after 10 s; the next comes 10, 20 and 40 s later, or when the failure is seen a second later.
    assert_eq!(cluster.creations(), [0, 20, 50, 100]);
    let failed = cluster.get(&JOB, "bad");
    assert_eq!(counts(&failed), [0, 0, 0, 0, 4]);
    let why = "BackoffLimitExceeded".to_owned();
    assert_eq!(conditions(&failed), [("FailureTarget".into(), why.clone()), ("Failed".into(), why)]);
    assert_eq!(failed["status"]["conditions"][1]["message"], "Job has reached the specified backoff limit");
    assert!(failed["status"].get("completionTime").is_none());
}

#[test]
fn a_backoff_limit_of_zero_allows_no_failure_at_all() {
    let mut cluster = Cluster::ideal();
    cluster.until(0).apply(job("once", 1, json!({"backoffLimit": 0, "parallelism": 3, "completions": 9})));
    cluster.until(100);
    assert_eq!((counts(&cluster.get(&JOB, "once")), cluster.creations().len()), ([0, 0, 0, 0, 3], 3));
}

#[test]
fn each_index_succeeds_once_and_its_pods_know_which_they_are() {
    let mut cluster = Cluster::ideal();
    cluster.until(0).apply(job("rows", 0, json!({"completions": 4, "parallelism": 3, "completionMode": "Indexed"})));
    cluster.until(2);
    let pods = cluster.pods();
    let indexes: Vec<_> =
        pods.iter().map(|pod| &pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"]).collect();
    assert_eq!(indexes, ["0", "1", "2"]);
    assert_eq!(pods[1]["spec"]["hostname"], "rows-1");
    assert!(pods[1]["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("rows-1-")));
    assert_eq!(pods[1]["spec"]["containers"][0]["env"][0]["name"], "JOB_COMPLETION_INDEX");
    cluster.until(60);
    let done = cluster.get(&JOB, "rows");
    assert_eq!((&done["status"]["completedIndexes"], counts(&done)), (&json!("0-3"), [0, 0, 0, 4, 0]));
}

#[test]
fn a_deadline_ends_a_job_and_its_pods() {
    let mut cluster = Cluster::ideal();
    let mut long = job("slow", 0, json!({"activeDeadlineSeconds": 30, "parallelism": 2, "completions": 2}));
    merge(&mut long["spec"]["template"], template(3_600, 0));
    cluster.until(0).apply(long);
    cluster.until(29);
    assert_eq!(cluster.phase("Running"), 2);
    cluster.until(40);
    let failed = cluster.get(&JOB, "slow");
    let why = "DeadlineExceeded".to_owned();
    assert_eq!(conditions(&failed), [("FailureTarget".into(), why.clone()), ("Failed".into(), why)]);
    assert_eq!((counts(&failed), cluster.pods().len()), ([0, 0, 0, 0, 2], 0));
}

#[test]
fn a_suspended_job_has_no_pods_and_its_deadline_begins_when_it_goes_on() {
    let mut cluster = Cluster::ideal();
    let spec =
        |suspend: bool| json!({"suspend": suspend, "activeDeadlineSeconds": 60, "parallelism": 2, "completions": 2});
    cluster.until(0).apply(job("later", 0, spec(true)));
    cluster.until(100);
    let waiting = cluster.get(&JOB, "later");
    assert_eq!(conditions(&waiting), [("Suspended".into(), "JobSuspended".into())]);
    assert!(waiting["status"].get("startTime").is_none());
    cluster.apply(job("later", 0, spec(false)));
    cluster.until(105);
    assert_eq!(cluster.phase("Running"), 2);
    cluster.apply(job("later", 0, spec(true)));
    cluster.until(108);
    assert_eq!((cluster.pods().len(), counts(&cluster.get(&JOB, "later"))), (0, [0; 5]), "its pods are not failures");
    cluster.apply(job("later", 0, spec(false)));
    cluster.until(140);
    assert_eq!(counts(&cluster.get(&JOB, "later")), [0, 0, 0, 2, 0]);
}

#[test]
fn a_job_that_shrinks_deletes_pods_without_counting_them() {
    let mut cluster = Cluster::ideal();
    cluster.until(0).apply(job("wide", 0, json!({"completions": 10, "parallelism": 8})));
    cluster.until(2).apply(job("wide", 0, json!({"completions": 10, "parallelism": 3})));
    cluster.until(4);
    assert_eq!(counts(&cluster.get(&JOB, "wide")), [3, 3, 0, 0, 0]);
    cluster.until(120);
    assert_eq!(counts(&cluster.get(&JOB, "wide")), [0, 0, 0, 10, 0]);
}

#[test]
fn a_pod_that_somebody_deletes_is_a_failure_and_is_replaced() {
    let mut cluster = Cluster::ideal();
    cluster.until(0).apply(job("sum", 0, json!({})));
    cluster.until(5);
    let name = cluster.names(&POD).remove(0);
    cluster.delete(&POD, &name, Propagation::Background);
    cluster.until(60);
    let done = cluster.get(&JOB, "sum");
    assert_eq!((counts(&done), cluster.creations()), ([0, 0, 0, 1, 1], vec![0, 15]));
    assert!(!cluster.names(&POD).contains(&name), "its finalizer fell once it was counted");
}

#[test]
fn a_deleted_job_takes_its_pods_with_it_whatever_their_finalizers() {
    for propagation in [Propagation::Background, Propagation::Foreground] {
        let mut cluster = Cluster::new(Timing::real_like());
        cluster.until(0).apply(job("sum", 0, json!({"completions": 4, "parallelism": 2})));
        cluster.until(14);
        assert!(cluster.pods().len() >= 3);
        cluster.delete(&JOB, "sum", propagation);
        cluster.until(30);
        assert_eq!((cluster.names(&JOB), cluster.pods()), (vec![], vec![]), "{propagation:?}");
    }
    let mut cluster = Cluster::ideal();
    cluster.until(0).apply(job("sum", 0, json!({"completions": 2})));
    cluster.until(5).delete(&JOB, "sum", Propagation::Orphan);
    cluster.until(60);
    assert_eq!((cluster.phase("Succeeded"), cluster.creations().len()), (1, 1), "an orphan runs to its end");
}

#[test]
fn pods_without_a_recorded_life_run_for_the_time_that_the_settings_assume() {
    let mut cluster = Cluster::new(Timing { job_duration: SimDuration::from_secs(90), ..Timing::ideal() });
    let mut plain = job("plain", 0, json!({}));
    plain["spec"]["template"]["metadata"] = json!({});
    cluster.until(0).apply(plain).until(89);
    assert_eq!(cluster.phase("Running"), 1);
    cluster.until(91);
    assert_eq!(cluster.phase("Succeeded"), 1);
    assert_eq!(cluster.engine.notices().len(), 1, "and that is said");
}

#[test]
fn every_change_of_a_status_is_written_before_finalizers_fall_and_after() {
    let mut cluster = Cluster::ideal();
    cluster.until(0).apply(job("one", 0, json!({}))).until(30);
    let mut story = Vec::new();
    for event in cluster.engine.watch(0).expect("a short test").filter(|event| event.change == Change::Modified) {
        let json = event.object.to_json();
        if event.object.gvk == JOB {
            let uncounted = json["status"]["uncountedTerminatedPods"]["succeeded"].as_array().map_or(0, Vec::len);
            story.push(format!("status: {} uncounted, {} succeeded", uncounted, counts(&json)[3]));
        } else if event.before.as_ref().is_some_and(|before| before.meta.finalizers != event.object.meta.finalizers) {
            story.push("finalizer".to_owned());
        }
    }
    let expected = [
        "status: 0 uncounted, 0 succeeded",
        "status: 0 uncounted, 0 succeeded",
        "status: 1 uncounted, 0 succeeded",
        "finalizer",
        "status: 0 uncounted, 1 succeeded",
    ];
    assert_eq!(story, expected, "started, ready, ended, released, counted");
}

#[test]
fn pods_have_the_finalizers_of_their_template_and_that_of_jobs() {
    let mut cluster = Cluster::ideal();
    let template = json!({"template": {"metadata": {"finalizers": ["example.com/audit"]}}});
    cluster.until(1).apply(job("audited", 0, template)).until(5);
    let finalizers = cluster.pods()[0]["metadata"]["finalizers"].clone();
    assert_eq!(finalizers, json!(["example.com/audit", "batch.kubernetes.io/job-tracking"]));
}

#[test]
fn a_job_adopts_pods_that_its_selector_matches_and_makes_so_many_fewer() {
    let mut cluster = Cluster::ideal();
    let orphan = |name: &str| {
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "spec": template(30, 0)["spec"],
            "metadata": {"name": name, "namespace": "default", "labels": {"work": "mine"}}});
        merge(&mut pod["metadata"], template(30, 0)["metadata"].clone());
        pod
    };
    let mut mine = job(
        "mine",
        0,
        json!({"completions": 3, "parallelism": 3, "manualSelector": true,
        "selector": {"matchLabels": {"work": "mine"}}}),
    );
    mine["spec"]["template"]["metadata"]["labels"] = json!({"work": "mine"});
    cluster.until(1).apply(orphan("first")).until(2).apply(mine).until(4);
    let first = cluster.get(&POD, "first");
    assert_eq!(first["metadata"]["ownerReferences"][0]["name"], "mine");
    assert_eq!(first["metadata"]["finalizers"], json!(["batch.kubernetes.io/job-tracking"]));
    assert_eq!(cluster.creations().len(), 3, "one was there, and two are made");
    cluster.apply(orphan("late")).until(6);
    assert_eq!(cluster.names(&POD).len(), 3, "one too many: the youngest goes");
    cluster.until(60);
    assert_eq!(counts(&cluster.get(&JOB, "mine")), [0, 0, 0, 3, 0]);
}

#[test]
fn a_job_lets_go_of_a_pod_that_it_no_longer_selects_and_takes_it_back() {
    let mut cluster = Cluster::ideal();
    cluster.until(1).apply(job("one", 0, json!({}))).until(3);
    let name = cluster.names(&POD).remove(0);
    let label = "batch.kubernetes.io/controller-uid";
    let mut pod = cluster.get(&POD, &name);
    let uid = pod["metadata"]["labels"][label].take();
    pod["metadata"]["labels"][label] = json!("another");
    cluster.apply(pod).until(5);
    let released = cluster.get(&POD, &name);
    assert_eq!(released["metadata"].get("ownerReferences"), None);
    assert_eq!(released["metadata"].get("finalizers"), None, "nobody counts it any more");
    assert_eq!(cluster.creations().len(), 2, "another one takes its place");
    let mut pod = released;
    pod["metadata"]["labels"][label] = uid;
    cluster.apply(pod).until(7);
    assert_eq!(cluster.names(&POD).len(), 1, "two are one too many");
    cluster.until(60);
    assert_eq!(counts(&cluster.get(&JOB, "one"))[3], 1);
}

//! Which failures count, which indexes may fail, and when enough has succeeded.

use serde_json::{Value, json};
use sk_core::{SimDuration, SimTime};
use sk_engine::Timing;
use sk_engine::api::{AdmitPod, Object, Propagation};
use sk_engine::kinds::{Directives, JOB, POD};

use crate::harness::{Cluster, conditions, job, merge};

/// Pods of some indexes fail with these codes; the others end well.
#[derive(Clone)]
struct FailingIndexes(Vec<(u32, u8)>);

impl AdmitPod for FailingIndexes {
    fn admit(&mut self, pod: &mut Object, _now: SimTime) {
        let index = pod.meta.annotations.get("batch.kubernetes.io/job-completion-index").cloned();
        let code = self.0.iter().find(|(failing, _)| index.as_deref() == Some(&failing.to_string()));
        let code = code.map_or(0, |(_, code)| *code);
        pod.meta.annotations.make_mut().insert("static.simkube.io/exit-code".into(), code.to_string().into());
    }

    fn fork(&self) -> Box<dyn AdmitPod> {
        Box::new(self.clone())
    }
}

/// The first pod has a recorded life that failed, the others have one that ended well.
#[derive(Clone, Default)]
struct FirstLifeFailed(u64);

impl AdmitPod for FirstLifeFailed {
    fn admit(&mut self, pod: &mut Object, _now: SimTime) {
        let directives = Directives {
            create_delay: SimDuration::ZERO,
            ready_delay: SimDuration::ZERO,
            lifetime: Some(SimDuration::from_secs(5)),
            exit_code: (self.0 == 0).then_some(42),
            sequence: Some(self.0),
        };
        pod.pod_mut().expect("the hook sees pods").directives = Some(directives);
        self.0 += 1;
    }

    fn fork(&self) -> Box<dyn AdmitPod> {
        Box::new(self.clone())
    }
}

#[test]
fn a_pod_whose_recorded_life_failed_fails_with_that_code_and_its_job_tries_again() {
    let mut cluster = Cluster::ideal();
    cluster.engine.set_pod_hook(Box::new(FirstLifeFailed::default()));
    cluster.until(0).apply(job("sum", 0, json!({"backoffLimit": 2}))).until(60);
    let status = &cluster.get(&JOB, "sum")["status"];
    assert_eq!((&status["failed"], &status["succeeded"]), (&json!(1), &json!(1)));
    let codes: Vec<_> = cluster
        .pods()
        .iter()
        .map(|pod| pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"].clone())
        .collect();
    assert!(codes.contains(&json!(42)) && codes.contains(&json!(0)), "{codes:?}");
    let failed = cluster.pods().into_iter().find(|pod| pod["status"]["phase"] == "Failed").expect("one failed");
    assert_eq!(failed["metadata"]["annotations"]["static.simkube.io/exit-code"], "42");
}

fn indexed(failing: &[(u32, u8)], spec: Value) -> Cluster {
    let mut cluster = Cluster::ideal();
    cluster.engine.set_pod_hook(Box::new(FailingIndexes(failing.to_vec())));
    let mut job = job("rows", 0, json!({"completions": 4, "parallelism": 4, "completionMode": "Indexed"}));
    merge(&mut job["spec"], spec);
    cluster.until(0).apply(job);
    cluster
}

fn ended_by(cluster: &Cluster, name: &str) -> String {
    conditions(&cluster.get(&JOB, name)).pop().map(|(kind, reason)| format!("{kind}: {reason}")).unwrap_or_default()
}

#[test]
fn an_index_that_fails_too_often_fails_alone_and_the_others_go_on() {
    let mut cluster = indexed(&[(1, 1)], json!({"backoffLimitPerIndex": 1}));
    cluster.until(200);
    let status = &cluster.get(&JOB, "rows")["status"];
    assert_eq!((&status["completedIndexes"], &status["failedIndexes"]), (&json!("0,2,3"), &json!("1")));
    assert_eq!((&status["succeeded"], &status["failed"]), (&json!(3), &json!(2)));
    assert_eq!(ended_by(&cluster, "rows"), "Failed: FailedIndexes");
    assert_eq!(cluster.creations(), [0, 0, 0, 0, 20], "the index is tried again ten seconds after it failed");
    let last = cluster
        .pods()
        .into_iter()
        .find(|pod| pod["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"] == "1");
    assert!(last.is_some(), "its second pod knows of the first");
}

#[test]
fn too_many_failed_indexes_end_the_job_at_once() {
    let spec = json!({"backoffLimitPerIndex": 0, "maxFailedIndexes": 1, "completions": 50});
    let mut cluster = indexed(&[(0, 1), (2, 1)], spec);
    cluster.until(60);
    assert_eq!(ended_by(&cluster, "rows"), "Failed: MaxFailedIndexesExceeded");
    assert_eq!(cluster.get(&JOB, "rows")["status"]["failedIndexes"], "0,2");
}

#[test]
fn a_success_policy_ends_the_job_and_its_other_pods_are_no_failures() {
    let mut cluster = indexed(
        &[(0, 1)],
        json!({
            "backoffLimit": 100, "completions": 6, "parallelism": 3,
            "successPolicy": {"rules": [{"succeededIndexes": "1-3", "succeededCount": 2}]},
        }),
    );
    cluster.until(100);
    assert_eq!(ended_by(&cluster, "rows"), "Complete: SuccessPolicy");
    let status = &cluster.get(&JOB, "rows")["status"];
    assert_eq!(
        (&status["completedIndexes"], &status["conditions"][0]["message"]),
        (&json!("1,2"), &json!("Matched rules at index 0"))
    );
}

#[test]
fn a_failure_policy_fails_the_job_an_index_or_nothing() {
    let policy = json!({"podFailurePolicy": {"rules": [
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
        {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [7]}},
    ]}});
    let mut cluster = Cluster::ideal();
    cluster.until(0).apply(job("fatal", 42, policy.clone())).until(30);
    assert_eq!(ended_by(&cluster, "fatal"), "Failed: PodFailurePolicy");
    let message = cluster.get(&JOB, "fatal")["status"]["conditions"][0]["message"].clone();
    let words = message.as_str().unwrap_or_default();
    assert!(words.starts_with("Container main for pod default/fatal-"), "{words}");
    assert!(words.ends_with("failed with exit code 42 matching FailJob rule at index 0"), "{words}");
    let mut lenient = job("lenient", 7, policy);
    lenient["spec"]["backoffLimit"] = json!(0);
    cluster.apply(lenient).until(200);
    let status = &cluster.get(&JOB, "lenient")["status"];
    assert_eq!(
        (&status["failed"], &status["conditions"]),
        (&Value::Null, &Value::Null),
        "ignored failures do not count"
    );
    assert!(cluster.creations().len() > 3, "but pods are tried again");
    let mut cluster = indexed(
        &[(3, 9)],
        json!({
            "backoffLimitPerIndex": 5,
            "podFailurePolicy": {"rules": [{"action": "FailIndex", "onExitCodes": {"operator": "NotIn", "values": [1]}}]},
        }),
    );
    cluster.until(60);
    assert_eq!(ended_by(&cluster, "rows"), "Failed: FailedIndexes");
    assert_eq!(cluster.creations().len(), 4, "the index failed at once");
}

#[test]
fn a_pod_is_replaced_when_it_goes_or_only_when_it_has_ended() {
    let replaced_at = |policy: &str| {
        let mut cluster = Cluster::new(Timing { pod_termination: SimDuration::from_secs(25), ..Timing::ideal() });
        let mut long = job("sum", 0, json!({"podReplacementPolicy": policy}));
        long["spec"]["template"]["metadata"]["annotations"]["static.simkube.io/lifetime"] = json!("90000000us");
        cluster.until(0).apply(long).until(5);
        let name = cluster.names(&POD).remove(0);
        cluster.delete(&POD, &name, Propagation::Background).until(7);
        let terminating = cluster.get(&JOB, "sum")["status"]["terminating"].clone();
        cluster.until(200);
        assert_eq!(cluster.get(&JOB, "sum")["status"]["succeeded"], 1, "{policy}");
        (terminating, cluster.creations())
    };
    // Ten seconds after the deletion was asked for, or after the pod had ended 25 s later.
    assert_eq!(replaced_at("TerminatingOrFailed"), (json!(1), vec![0, 15]));
    assert_eq!(replaced_at("Failed"), (json!(1), vec![0, 40]));
}

#[test]
fn what_a_server_refuses_is_refused_in_its_words() {
    let refused = |spec: Value| {
        let mut cluster = Cluster::ideal();
        let mut bad = job("bad", 0, json!({}));
        merge(&mut bad["spec"], spec);
        cluster.try_apply(bad).expect_err("the API server refuses it").message
    };
    let cases = [
        (json!({"parallelism": -1}), "spec.parallelism: Invalid value: -1: must be greater than or equal to 0"),
        (json!({"backoffLimit": -3}), "spec.backoffLimit: Invalid value: -3: must be greater than or equal to 0"),
        (
            json!({"completionMode": "Indexed", "parallelism": 2}),
            "spec.completions: Required value: when completion mode is Indexed",
        ),
        (
            json!({"backoffLimitPerIndex": 1}),
            "spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode",
        ),
        (
            json!({"completionMode": "Indexed", "completions": 5, "parallelism": i32::MAX}),
            "spec.parallelism: Invalid value: 2147483647: must be less than or equal to 100000 when completion mode is Indexed",
        ),
        (
            json!({"template": {"spec": {"restartPolicy": "Always"}}}),
            "spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\"",
        ),
        (
            json!({"manualSelector": true, "selector": {"matchLabels": {"app": "other"}}}),
            "spec.template.metadata.labels: Invalid value: `selector` does not match template `labels`",
        ),
    ];
    for (spec, words) in cases {
        assert_eq!(refused(spec.clone()), format!("Job.batch \"bad\" is invalid: {words}"), "{spec}");
    }
    let mut cluster = Cluster::ideal();
    cluster.apply(job("sum", 0, json!({})));
    let changed = cluster.try_apply(job("sum", 0, json!({"completions": 2}))).expect_err("completions do not change");
    assert!(changed.message.ends_with("spec.completions: Invalid value: field is immutable"), "{changed}");
}

#[test]
fn a_job_for_two_billion_pods_is_made_in_bounded_steps_and_can_be_deleted() {
    let mut cluster = Cluster::ideal();
    let all = i32::MAX;
    cluster.until(0).apply(job("many", 0, json!({"parallelism": all, "completions": all})));
    cluster.until(2);
    let made = cluster.creations().len();
    assert!((500..=1_500).contains(&made), "500 in a sync, and a sync a second: {made}");
    cluster.delete(&JOB, "many", Propagation::Background).until(10);
    assert_eq!((cluster.names(&JOB).len(), cluster.pods().len()), (0, 0));
    let indexed = json!({"parallelism": 3, "completions": all, "completionMode": "Indexed"});
    cluster.apply(job("rows", 0, indexed)).until(40);
    assert_eq!(cluster.get(&JOB, "rows")["status"]["completedIndexes"], "0-5");
}

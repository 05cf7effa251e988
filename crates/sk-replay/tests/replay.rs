//! Whole replays of small traces written as text: from records to the rows of the record.

use std::ops::ControlFlow;

use serde_json::{Value, json};
use sk_api::Scenario;
use sk_core::SimTime;
use sk_record::{DecisionRow, MissingWhy, Outcome, PodRow, RunMeta, Staged, WarningKind};
use sk_replay::embedded::{self, RunError, RunRequest};
use sk_replay::plan::Window;
use sk_replay::setup::Setup;
use sk_store::trace;

const START: &str = "2026-01-05T09:00:00Z";

/// The record of a replay of half an hour.
fn replay(changes: &[(&str, &str, Value)]) -> (RunMeta, Vec<PodRow>) {
    try_replay(changes).expect("the replay ends")
}

fn try_replay(changes: &[(&str, &str, Value)]) -> Result<(RunMeta, Vec<PodRow>), RunError> {
    let (_dir, staged) = run(changes)?;
    let run = staged.run().expect("its record opens");
    let pods = run.pods().expect("pods").collect::<Result<_, _>>().expect("the pods are whole");
    Ok((run.meta().clone(), pods))
}

/// What the scheduler answered in a replay of half an hour.
fn decisions(changes: &[(&str, &str, Value)]) -> Vec<DecisionRow> {
    let (_dir, staged) = run(changes).expect("the replay ends");
    let run = staged.run().expect("its record opens");
    run.decisions().expect("decisions").collect::<Result<_, _>>().expect("the decisions are whole")
}

fn run(changes: &[(&str, &str, Value)]) -> Result<(tempfile::TempDir, Staged), RunError> {
    let mut text = json!({"simkube": "trace", "version": 1, "config": {"trackedObjects": {}}}).to_string();
    for (at, verb, object) in changes {
        text += &format!("\n{{\"at\":\"2026-01-05T{at}Z\",\"{verb}\":{object}}}");
    }
    text += "\n{\"at\":\"2026-01-05T09:30:00Z\",\"mark\":\"moment\"}\n";
    let trace = trace::from_bytes("test", text.into_bytes()).expect("the test's trace opens");
    let scenario = "apiVersion: simkube.io/v1\nkind: Scenario\ncluster:\n  groups:\n    g: {min: 1, max: 3, cpu: 4, memory: 8Gi}\n";
    let scenario = Scenario::parse("test.yaml", scenario).expect("the test's scenario is well-formed");
    let (start, end) = (SimTime::parse_rfc3339(START).expect("a time"), trace.span().expect("records").1);
    let setup = Setup::new(&scenario);
    let text = scenario.to_yaml();
    let window = Window { start, end, includes_end: true };
    let request = RunRequest::new(&trace, window, &setup, &text, "test");
    let dir = tempfile::tempdir().expect("there is room for a temporary folder");
    let staged = embedded::run(&request, &dir.path().join("run"), &mut |_| ControlFlow::Continue(()))?;
    Ok((dir, staged))
}

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop"},
        "spec": {"containers": [{"name": "main", "image": "x", "resources": {"limits": {"cpu": "1"}}}]},
    })
}

fn namespace() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
}

fn codes(meta: &RunMeta) -> Vec<&str> {
    meta.warnings.iter().map(|warning| warning.code.as_str()).collect()
}

#[test]
fn a_pod_deleted_and_made_again_in_the_same_second_is_two_pods() {
    let gone = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "shop"}});
    let (_, pods) =
        replay(&[("09:00:00", "apply", pod("a")), ("09:05:00", "delete", gone), ("09:05:00", "apply", pod("a"))]);
    assert_eq!(pods.len(), 2);
    assert_eq!(pods.iter().filter(|pod| pod.deleted.is_none() && pod.started.is_some()).count(), 1);
}

#[test]
fn a_namespace_deleted_and_made_again_takes_objects_again() {
    let (meta, pods) = replay(&[
        ("09:00:00", "apply", namespace()),
        ("09:00:00", "apply", pod("a")),
        ("09:05:00", "delete", namespace()),
        ("09:05:00", "apply", namespace()),
        ("09:05:00", "apply", pod("b")),
    ]);
    let alive: Vec<_> = pods.iter().filter(|pod| pod.deleted.is_none()).map(|pod| pod.name.as_str()).collect();
    assert_eq!(alive, ["b"], "{:?}", meta.warnings);
    assert!(!codes(&meta).contains(&"refused"), "{:?}", meta.warnings);
}

#[test]
fn a_pod_that_is_labelled_later_still_asks_for_what_it_asked() {
    let mut labelled = pod("a");
    labelled["metadata"]["labels"] = json!({"team": "a"});
    let (_, pods) = replay(&[("09:00:00", "apply", pod("a")), ("09:01:00", "apply", labelled)]);
    assert_eq!((pods.len(), pods[0].cpu_m), (1, 1000));
}

#[test]
fn records_out_of_order_are_replayed_late_and_that_is_said() {
    let (meta, pods) = replay(&[("09:10:00", "apply", pod("late")), ("09:00:00", "apply", pod("early"))]);
    assert_eq!(pods.len(), 2);
    assert!(codes(&meta).contains(&"late"), "{:?}", meta.warnings);
}

#[test]
fn what_happens_at_the_very_end_of_a_trace_is_replayed() {
    let (_, pods) = replay(&[("09:30:00", "apply", pod("last"))]);
    assert_eq!(pods.len(), 1);
}

#[test]
fn a_refused_object_is_named_with_the_servers_words() {
    let mut wrong = pod("a");
    wrong["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "-1"}});
    let (meta, pods) = replay(&[("09:00:00", "apply", wrong), ("09:00:00", "apply", pod("b"))]);
    assert_eq!(pods.len(), 1, "the run goes on");
    let refused = &meta.missing[0];
    assert_eq!((refused.object.as_str(), refused.why), ("shop/Pod/a", MissingWhy::Refused));
    assert!(refused.message.as_ref().is_some_and(|words| words.contains("must be greater")), "{refused:?}");
}

#[test]
fn what_is_not_modelled_is_said() {
    let mut demanding = pod("a");
    demanding["spec"]["priorityClassName"] = json!("high");
    demanding["spec"]["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    let autoscaler = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "j", "namespace": "shop"},
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "web"}}});
    let (meta, _) = replay(&[("09:00:00", "apply", demanding), ("09:00:00", "apply", autoscaler)]);
    let codes = codes(&meta);
    for code in ["volumes", "hpa", "priority-class"] {
        assert!(codes.contains(&code), "{code} is missing in {codes:?}");
    }
}

#[test]
fn pods_whose_needs_the_scheduler_passes_through_are_counted_and_named() {
    let volume = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    let rules = json!([{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}]);
    let with = |name: &str, field: &str, value: Value| {
        let mut pod = pod(name);
        pod["spec"][field] = value;
        ("09:00:00", "apply", pod)
    };
    let mut restarts = pod("restarts");
    restarts["spec"]["containers"][0]["restartPolicyRules"] = rules;
    // An extended resource is a device if a DeviceClass says so, or by its name.
    let device_class = json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpus"},
        "spec": {"extendedResourceName": "example.com/gpu"}});
    let asks = |name: &str, resource: &str| {
        let mut pod = pod(name);
        pod["spec"]["containers"][0]["resources"] = json!({"requests": {resource: "1"}, "limits": {resource: "1"}});
        ("09:00:01", "apply", pod)
    };
    let mut events = vec![
        with("device", "resourceClaims", json!([{"name": "gpu", "resourceClaimName": "gpu"}])),
        ("09:00:00", "apply", device_class),
        asks("gpu", "example.com/gpu"),
        asks("by-class", "deviceclass.resource.kubernetes.io/gpus"),
        asks("tpu", "example.com/tpu"),
        ("09:00:00", "apply", restarts),
        ("09:00:00", "apply", pod("plain")),
    ];
    events.extend(["a", "b", "c", "d", "e", "f", "g"].map(|name| with(name, "volumes", volume.clone())));
    let (meta, _) = replay(&events);
    let told = |code: &str| {
        let told: Vec<_> = meta.warnings.iter().filter(|warning| warning.code == code).collect();
        assert_eq!(told.len(), 1, "{code}: {:?}", meta.warnings);
        (told[0].kind, told[0].message.clone(), told[0].count)
    };
    let expected = [
        ("declared-features", "whether a node has the features that pods require is not looked at: shop/restarts", 1),
        ("dra", "dynamic resource claims are not modelled: shop/device, shop/gpu, shop/by-class", 3),
        (
            "volume-limits",
            "how many volumes a node takes, and which pods may share one, is not looked at: shop/a, shop/b, shop/c, \
             shop/d, shop/e and 2 more",
            7,
        ),
    ];
    for (code, message, count) in expected {
        assert_eq!(told(code), (WarningKind::Unmodelled, message.to_owned(), count));
    }
    assert!(!meta.warnings.iter().any(|warning| warning.message.contains("shop/plain")), "{:?}", meta.warnings);
}

fn web(spec: &Value) -> Value {
    let mut web = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "replicas": 3, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main"}]}},
        },
    });
    for (name, value) in spec.as_object().expect("the test gives fields") {
        web["spec"][name] = value.clone();
    }
    web
}

#[test]
fn what_no_server_would_take_is_refused_in_its_words_and_what_a_recording_leaves_out_is_not_missed() {
    let stuck = json!({"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}});
    let (meta, pods) = replay(&[("09:00:00", "apply", web(&stuck))]);
    assert!(pods.is_empty());
    let words = meta.missing[0].message.as_deref().unwrap_or_default();
    assert!(words.contains("may not be 0 when `maxSurge` is 0"), "{words}");
    let (meta, pods) = replay(&[("09:00:00", "apply", web(&json!({})))]);
    assert_eq!((pods.len(), meta.missing.len()), (3, 0), "a recording without images runs");
}

#[test]
fn a_quota_of_the_trace_holds_and_who_was_refused_is_told() {
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "shop"},
        "spec": {"hard": {"pods": "2"}}});
    let (meta, pods) = replay(&[("09:00:00", "apply", quota), ("09:01:00", "apply", web(&json!({})))]);
    assert_eq!(pods.len(), 2);
    let told = meta.warnings.iter().find(|warning| warning.code == "refused-pods").expect("somebody is told");
    assert!(told.message.contains("exceeded quota: q"), "{told:?}");
}

#[test]
fn an_object_that_asks_for_more_pods_than_there_can_be_is_refused_at_once_by_its_name() {
    let labels = json!({"app": "web"});
    let spec = json!({"replicas": i32::MAX, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod("web")["spec"]}});
    let metadata = json!({"name": "web", "namespace": "shop"});
    let web = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec});
    let refused = try_replay(&[("09:00:00", "apply", web)]).expect_err("nobody waits for a million pods").to_string();
    assert!(refused.contains("Deployment shop/web: `/spec/replicas` asks for 2147483647 pods"), "{refused}");
    assert!(refused.contains("at most 1048576 objects") && refused.contains("trace transform"), "{refused}");
}

fn workload(api_version: &str, kind: &str, spec: &serde_json::Value) -> serde_json::Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "w", "namespace": "shop"}, "spec": spec})
}

#[test]
fn what_no_controller_acts_on_is_missing_with_its_size_and_by_its_name() {
    let spec = pod("x")["spec"].clone();
    let template = json!({"metadata": {"labels": {"app": "w"}}, "spec": spec});
    let sized = json!({"replicas": 3, "selector": {"matchLabels": {"app": "w"}}, "template": template});
    let kinds = [("argoproj.io/v1alpha1", "Rollout", &sized, "argoproj.io/Rollout", Some(3))];
    for (api_version, kind, spec, name, pods) in kinds {
        let (meta, rows) = replay(&[("09:00:00", "apply", workload(api_version, kind, spec))]);
        assert_eq!(rows.len(), 0, "{kind}");
        let missing = &meta.missing[0];
        assert_eq!((missing.kind.as_str(), missing.pods), (name, pods), "{kind}");
        assert_eq!(missing.object, format!("shop/{kind}/w"));
        assert_eq!(missing.cpu_m, pods.map(|pods| pods * 1_000), "{kind}");
    }
    for kind in ["Deployment", "ReplicaSet", "StatefulSet"] {
        let (meta, rows) = replay(&[("09:00:00", "apply", workload("apps/v1", kind, &sized))]);
        assert_eq!((rows.len(), meta.missing.len()), (3, 0), "{kind}: {:?}", meta.missing);
    }
    let older = json!({"replicas": 3, "selector": {"app": "w"}, "template": sized["template"]});
    let (meta, rows) = replay(&[("09:00:00", "apply", workload("v1", "ReplicationController", &older))]);
    assert_eq!((rows.len(), meta.missing.len()), (3, 0), "{:?}", meta.missing);
    let daemon = json!({"selector": sized["selector"], "template": sized["template"]});
    let (meta, rows) = replay(&[("09:00:00", "apply", workload("apps/v1", "DaemonSet", &daemon))]);
    assert!(!rows.is_empty() && meta.missing.is_empty(), "{} pods, {:?}", rows.len(), meta.missing);
}

#[test]
fn pods_for_another_scheduler_are_missing() {
    let mut other = pod("a");
    other["spec"]["schedulerName"] = json!("volcano");
    let (meta, _) = replay(&[("09:00:00", "apply", other), ("09:00:00", "apply", pod("b"))]);
    let missing: Vec<_> = meta.missing.iter().map(|missing| (missing.object.as_str(), missing.why)).collect();
    assert_eq!(missing, [("shop/Pod/a", MissingWhy::OtherScheduler)]);
}

/// A template whose pods may end.
fn ending() -> Value {
    let mut spec = pod("x")["spec"].clone();
    spec["restartPolicy"] = json!("Never");
    json!({"spec": spec})
}

#[test]
fn a_job_without_a_recorded_life_runs_for_an_assumed_time_and_that_is_said() {
    let spec = json!({"completions": 3, "parallelism": 2, "template": ending()});
    let (meta, pods) = replay(&[("09:00:00", "apply", workload("batch/v1", "Job", &spec))]);
    assert_eq!((pods.len(), meta.missing.len()), (3, 0));
    assert!(pods.iter().all(|pod| pod.started.is_some()), "{pods:?}");
    let assumed = meta.warnings.iter().find(|warning| warning.code == "job-duration").expect("a warning");
    assert_eq!(assumed.count, 3);
    assert!(assumed.message.contains("1m assumed (timing.jobDuration"), "{}", assumed.message);
}

#[test]
fn a_job_whose_ttl_removed_it_before_its_recorded_end_is_no_gap() {
    let spec = json!({"ttlSecondsAfterFinished": 5, "template": ending()});
    let job = workload("batch/v1", "Job", &spec);
    let gone = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": job["metadata"]});
    let (meta, pods) = replay(&[("09:00:00", "apply", job), ("09:30:00", "delete", gone)]);
    assert_eq!((pods.len(), codes(&meta)), (1, vec!["job-duration"]));
}

#[test]
fn a_recorded_job_of_a_recorded_cron_job_is_not_made_twice() {
    let cron = json!({"schedule": "*/10 * * * *", "jobTemplate": {"spec": {"template": ending()}}});
    let owner = json!([{
        "apiVersion": "batch/v1", "kind": "CronJob", "name": "w", "controller": true,
        "uid": "6f1b5c7e-93a4-4c55-9a3b-0d4f86a6a001",
    }]);
    let mut job = workload("batch/v1", "Job", &json!({"template": ending()}));
    job["metadata"]["name"] = json!("w-29459470");
    job["metadata"]["ownerReferences"] = owner;
    let gone = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": job["metadata"]});
    let (meta, pods) = replay(&[
        ("09:00:00", "apply", workload("batch/v1", "CronJob", &cron)),
        ("09:10:00", "apply", job),
        ("09:20:00", "delete", gone),
    ]);
    assert_eq!(pods.len(), 2, "at 09:10 and 09:20");
    assert_eq!((codes(&meta), meta.missing.len()), (vec!["job-duration"], 0));
}

#[test]
fn a_decision_says_how_many_nodes_would_have_done_and_of_a_pod_that_waited_why_this_one() {
    let mut large = pod("large");
    large["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "3500m"}});
    let decisions = decisions(&[
        ("09:00:00", "apply", pod("first")),
        ("09:05:00", "apply", pod("second")),
        ("09:10:00", "apply", large),
    ]);
    let of = |pod: &str, outcome: Outcome| {
        let found = decisions.iter().find(|decision| decision.pod == pod && decision.outcome == outcome);
        &found.unwrap_or_else(|| panic!("{pod} {outcome:?} in {decisions:?}")).explained
    };
    let first = of("first", Outcome::Scheduled);
    assert_eq!((first.evaluated, first.feasible), (Some(1), Some(1)));
    assert!(of("second", Outcome::Scheduled).scores.is_none(), "neither did it wait nor is it a sample");
    assert_eq!(of("large", Outcome::Unschedulable).feasible, None);
    let large = of("large", Outcome::Scheduled);
    assert_eq!((large.evaluated, large.feasible), (Some(2), Some(1)), "a node was added for it");
    let scores = large.scores.as_deref().expect("it waited");
    assert!(scores.starts_with("g-2 ") && scores.contains("NodeResourcesFit "), "{scores}");
}

#[test]
fn a_preemption_names_its_victims() {
    let class = json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000,
    });
    let sized = |name: &str, class: &str| {
        let mut pod = pod(name);
        pod["spec"]["priorityClassName"] = json!(class);
        pod["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "4", "memory": "1Gi"}});
        pod
    };
    let mut changes = vec![("09:00:00", "apply", class)];
    let low = [("09:00:00", "low-1"), ("09:05:00", "low-2"), ("09:10:00", "low-3")];
    changes.extend(low.map(|(at, name)| (at, "apply", sized(name, ""))));
    changes.push(("09:20:00", "apply", sized("urgent", "high")));
    let (_dir, staged) = run(&changes).expect("the replay ends");
    let run = staged.run().expect("its record opens");
    let decisions: Vec<DecisionRow> =
        run.decisions().expect("decisions").collect::<Result<_, _>>().expect("the decisions are whole");
    let nominated = decisions.iter().find(|decision| decision.pod == "urgent" && decision.explained.victims.is_some());
    let victims = nominated.unwrap_or_else(|| panic!("{decisions:?}")).explained.victims.as_deref();
    assert!(victims.is_some_and(|victims| victims.starts_with("shop/low-")), "{victims:?}");
    let why = nominated.and_then(|nominated| nominated.explained.scores.as_deref()).unwrap_or_default();
    let latest = "one of 3 candidates, chosen for its most important victims, which started last";
    assert!(why.starts_with("g-") && why.ends_with(latest), "{why}");
    let mut events = run.events().expect("events").map(|event| event.expect("the events are whole"));
    let said = events.find(|event| event.reason == "Preempted").expect("the victim is told");
    let urgent = run.pods().expect("pods").map(|pod| pod.expect("the pods are whole")).find(|pod| pod.name == "urgent");
    let by = urgent.expect("it is in the record").uid;
    assert!(said.message.starts_with(&format!("Preempted by pod {by} on node g-")), "{}", said.message);
    assert_eq!((said.source.as_str(), said.name.starts_with("low-")), ("default-scheduler", true));
}

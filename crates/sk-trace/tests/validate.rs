//! Validation: each code is found where it is, nothing is found where nothing is, and mending mends.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod support;

use proptest::prelude::*;
use serde_json::{Value, json};
use sk_core::{ObjectKey, ObjectRef, SimDuration, SimTime};
use sk_store::trace::{Format, Gap, Life, OwnerLives, Row, TemplateLives, Trace};
use sk_trace::generate::{GenerateSpec, PRESETS};
use sk_trace::show::show;
use sk_trace::validate::{MAX_KEPT_PER_RULE, Severity, all, fix, validate};
use support::{START, deployment, generated, names, open, story, told, v2_traces};

fn tracked() -> Value {
    json!({"apps/v1.Deployment": {}})
}

/// The findings of a trace, a line each.
fn found(trace: &Trace) -> Vec<String> {
    validate(trace).unwrap().report.findings.iter().map(ToString::to_string).collect()
}

/// The codes found when `change` is done to an ordinary Deployment.
fn codes(change: impl FnOnce(&mut Value)) -> Vec<String> {
    let mut object = deployment("web", 2);
    change(&mut object);
    let found = found(&story(&tracked()).apply(0, object).trace());
    found.iter().map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
}

fn set(pointer: &'static str, value: Value) -> impl FnOnce(&mut Value) {
    move |object| *object.pointer_mut(pointer).unwrap() = value
}

fn lives(name: &str, start: i64, end: i64) -> Row {
    let at = |secs| SimTime::from_secs(START.as_secs() + secs);
    let gvk = "apps/v1.Deployment".parse().unwrap();
    let owner = ObjectRef::new(gvk, ObjectKey::namespaced("default", name));
    let lives = vec![Life { start: at(start), end: Some(at(end)), guessed: false, exit_code: None }];
    Row::Lives(OwnerLives { owner, templates: vec![TemplateLives { template: None, pod_hash: None, lives }] })
}

#[test]
fn an_ordinary_trace_has_no_findings() {
    assert_eq!(codes(|_| {}), Vec::<String>::new());
    for preset in &PRESETS {
        let spec = GenerateSpec { events: Some(3_000), duration: SimDuration::from_mins(60), ..preset.spec() };
        let trace = open(generated(&spec, Format::Native));
        assert_eq!(found(&trace), Vec::<String>::new(), "{}", preset.name);
    }
}

#[test]
fn each_flaw_of_an_object_is_found_under_its_code() {
    assert_eq!(codes(|object| object["status"] = json!({"replicas": 1})), ["W0000"]);
    assert_eq!(codes(|object| object["status"] = json!({})), Vec::<String>::new());
    assert_eq!(codes(|object| drop(object["metadata"].as_object_mut().unwrap().shift_remove("namespace"))), ["E0102"]);
    assert_eq!(codes(|object| object["apiVersion"] = "extensions/v1beta1".into()), ["E0105"]);
    assert_eq!(codes(set("/metadata/name", "Web_1".into())), ["E0106"]);
    assert_eq!(codes(set("/spec/selector/matchLabels/app", "other".into())), ["E0107"]);
    assert_eq!(codes(set("/spec/selector", json!({}))), ["E0107"]);
    assert_eq!(codes(set("/spec/template/spec/containers/0/resources/requests/cpu", "1x".into())), ["E0108"]);
    assert_eq!(codes(set("/spec/template/spec/containers/0/resources/requests/cpu", "-1".into())), ["E0108"]);
    assert_eq!(codes(set("/spec/template/spec/containers/0/resources/requests/cpu", json!([]))), ["E0108"]);
    let above = json!({"requests": {"cpu": 2}, "limits": {"cpu": "1500m"}});
    assert_eq!(codes(set("/spec/template/spec/containers/0/resources", above)), ["E0109"]);
    assert_eq!(codes(set("/spec/template/spec/containers", json!([]))), ["E0110"]);
    assert_eq!(codes(set("/spec/template/spec/containers", json!([{"name": "a"}, {"name": "a"}]))), ["E0110"]);
    assert_eq!(codes(set("/spec/replicas", json!(-1))), ["E0111"]);
    assert_eq!(codes(set("/spec/replicas", json!(i32::MAX))), ["E0121"]);
    assert_eq!(codes(|object| object["spec"]["template"]["spec"]["restartPolicy"] = "Never".into()), ["E0112"]);
    let owner = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "a", "uid": "1"}]);
    assert_eq!(codes(|object| object["metadata"]["ownerReferences"] = owner), ["W0119"]);
}

#[test]
fn a_cluster_scoped_object_with_a_namespace_and_a_wrong_schedule_are_found() {
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "namespace": "b"}});
    let template = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "a"}]}});
    let cron = json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "a", "namespace": "b"},
        "spec": {"schedule": "hourly", "jobTemplate": {"spec": {"template": template}}}});
    let found = found(&story(&tracked()).apply(0, node).apply(1, cron).trace());
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("E0103 event 0, 2026-01-05T00:00:00Z, Node b/a /metadata/namespace:"), "{found:?}");
    assert!(found[1].starts_with("E0113 event 1,"), "{found:?}");
}

#[test]
fn a_trace_that_takes_longer_than_a_run_replays_is_found() {
    let days = |days: i64| story(&tracked()).apply(0, deployment("web", 2)).apply(days * 86_400, deployment("web", 3));
    assert_eq!(found(&days(400).trace()), Vec::<String>::new());
    let found = found(&days(401).trace());
    assert_eq!(found, ["W0122: it is from 2026-01-05T00:00:00Z to 2027-02-10T00:00:00Z"]);
}

#[test]
fn what_never_comes_is_missing_and_what_comes_later_is_not() {
    let refer = |object: &mut Value| {
        let spec = &mut object["spec"]["template"]["spec"];
        spec["serviceAccountName"] = "robot".into();
        spec["volumes"] = json!([{"name": "a", "secret": {"secretName": "tls"}}, {"name": "b", "configMap": {"name": "conf"}},
            {"name": "c", "projected": {"sources": [{"configMap": {"name": "kube-root-ca.crt"}}]}},
            {"name": "d", "secret": {"secretName": "maybe", "optional": true}},
            {"name": "e", "configMap": {"name": "gone"}}]);
        spec["containers"][0]["env"] = json!([{"name": "A", "valueFrom": {"secretKeyRef": {"name": "key", "key": "k"}}},
            {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "conf", "key": "k"}}}]);
        spec["containers"][0]["envFrom"] = json!([{"configMapRef": {"name": "all"}}]);
    };
    let (mut web, mut api) = (deployment("web", 1), deployment("api", 1));
    refer(&mut web);
    refer(&mut api);
    let conf = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "conf", "namespace": "default"}});
    let trace = story(&tracked()).apply(0, web).apply(1, api).apply(2, conf).trace();
    let validation = validate(&trace).unwrap();
    let lines: Vec<_> = validation.report.findings.iter().map(ToString::to_string).collect();
    let codes: Vec<_> = lines.iter().map(|line| &line[..5]).collect();
    assert_eq!(codes, ["E0002", "E0003", "E0001", "E0004", "E0005"], "{lines:#?}");
    assert!(lines[2].contains("ServiceAccount default/robot is never in the trace; 1 other"), "{lines:#?}");
    assert!(lines[0].contains("/spec/template/spec/containers/0/env/0/valueFrom/secretKeyRef"), "{lines:#?}");
    assert!(!validation.report.is_valid());

    let fixed = fix(&trace, &validation, Format::JsonLines, Vec::new()).unwrap();
    assert_eq!(fixed.summary.changes.values().sum::<u64>(), 10, "five flaws in two objects: {:?}", fixed.summary);
    assert_eq!(found(&open(fixed.out)), Vec::<String>::new());
}

#[test]
fn the_order_and_the_ends_of_things_are_checked() {
    let web = deployment("web", 1);
    let trace = story(&tracked())
        .apply(10, web.clone())
        .apply(10, deployment("web", 2))
        .apply(5, deployment("late", 1))
        .delete(20, names(&deployment("never", 1)))
        .delete(20, names(&web))
        .delete(21, names(&web))
        .row(lives("web", 12, 11))
        .row(lives("stranger", 1, 2))
        .row(Row::Gap(Gap { from: START, to: START, kind: None, reason: "restart".into() }))
        .trace();
    let validation = validate(&trace).unwrap();
    let report = &validation.report;
    let codes: Vec<_> = report.counts.keys().map(|rule| rule.code().code).collect();
    assert_eq!(codes, ["E0101", "E0114", "W0116", "W0117", "W0118", "W0120"]);
    assert_eq!((report.count(Severity::Error), report.count(Severity::Warning)), (2, 5), "{report:#?}");
    let json = serde_json::to_value(report).unwrap();
    assert_eq!(json["counts"]["W0116"], 2);
    let first = json!({"code": "W0117", "event": 1, "at": "2026-01-05T00:00:10Z",
        "object": {"gvk": "apps/v1.Deployment", "key": "default/web"}, "detail": "it was applied at this moment before"});
    assert_eq!(json["findings"][0], first);
    let fixed = fix(&trace, &validation, Format::Native, Vec::new()).unwrap();
    let after = validate(&open(fixed.out)).unwrap().report;
    let codes: Vec<_> = after.counts.keys().map(|rule| rule.code().code).collect();
    assert_eq!(codes, ["E0101", "W0117", "W0120"], "what no fix is promised for stays");
}

#[test]
fn a_template_path_that_finds_nothing_is_named() {
    let settings = json!({"apps/v1.Deployment": {"podSpecTemplatePaths": ["/spec/pod", "spec"]}});
    let found = found(&story(&settings).apply(0, deployment("web", 1)).apply(1, deployment("web", 2)).trace());
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().all(|line| line.starts_with("E0104")), "{found:?}");
    assert!(found.iter().any(|line| line.contains("Deployment default/web /spec/pod:")), "{found:?}");
    assert!(found.iter().any(|line| line.contains("`spec` is not a JSON pointer")), "{found:?}");
}

#[test]
fn an_empty_trace_has_nothing_to_replay() {
    assert!(found(&story(&tracked()).mark(0).trace())[0].starts_with("E0115"));
}

#[test]
fn only_the_first_findings_of_a_rule_are_kept_and_all_are_counted() {
    let many = MAX_KEPT_PER_RULE + 50;
    let trace = (0..many).fold(story(&tracked()), |story, n| story.apply(0, deployment(&format!("Web{n}"), 1))).trace();
    let report = validate(&trace).unwrap().report;
    assert_eq!(report.findings.len(), MAX_KEPT_PER_RULE);
    assert_eq!(report.counts.values().copied().collect::<Vec<_>>(), [many as u64]);
}

#[test]
fn mending_leaves_a_good_trace_as_it_is() {
    let spec = GenerateSpec::preset("small").unwrap();
    let bytes = generated(&spec, Format::Native);
    let trace = open(bytes.clone());
    let fixed = fix(&trace, &validate(&trace).unwrap(), Format::Native, Vec::new()).unwrap();
    assert!(fixed.summary.changes.is_empty());
    assert!(fixed.out == bytes, "not a byte differs");
}

#[test]
fn lives_follow_a_template_that_is_mended() {
    let mut job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a", "namespace": "b"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "serviceAccountName": "robot", "containers": [{"name": "a"}]}}}});
    let paths = ["/spec/template".parse().unwrap()];
    let template = sk_core::TemplateId::all_in(&job, &paths).pop();
    let owner = ObjectRef::new("batch/v1.Job".parse().unwrap(), ObjectKey::namespaced("b", "a"));
    let lives = vec![Life { start: START, end: None, guessed: false, exit_code: None }];
    let row = OwnerLives { owner, templates: vec![TemplateLives { template, pod_hash: None, lives }] };
    let trace =
        story(&json!({"batch/v1.Job": {"trackLifecycle": true}})).apply(0, job.clone()).row(Row::Lives(row)).trace();
    let fixed = fix(&trace, &validate(&trace).unwrap(), Format::Native, Vec::new()).unwrap();
    let lives = open(fixed.out).lives().unwrap().next().unwrap().unwrap();
    job["spec"]["template"]["spec"].as_object_mut().unwrap().shift_remove("serviceAccountName");
    assert_eq!(lives.templates[0].template, sk_core::TemplateId::all_in(&job, &paths).pop());
}

#[test]
fn v2_traces_validate_and_mending_removes_what_it_can() {
    for path in v2_traces() {
        let trace = sk_store::trace::open(&path).unwrap();
        let validation = validate(&trace).unwrap();
        assert_eq!(validation.report.events, show(&trace, None).unwrap().events, "an event is one thing everywhere");
        validation.report.findings.iter().for_each(|finding| eprintln!("{}: {finding}", path.display()));
        let fixed = fix(&trace, &validation, Format::V2, Vec::new()).unwrap();
        let after = open(fixed.out);
        assert_eq!(told(&after).len(), told(&trace).len());
        let left = validate(&after).unwrap().report;
        let unmended: Vec<_> = left.counts.keys().filter(|rule| rule.code().fix.is_some()).collect();
        assert!(unmended.is_empty(), "{}: {:#?}", path.display(), left.findings);
    }
}

#[test]
fn every_rule_that_is_listed_is_shown_by_a_test_here() {
    let text = include_str!("validate.rs");
    let tested = |code: &&str| text.contains(&format!("\"{code}"));
    let untested: Vec<_> = all().iter().map(|code| code.code).filter(|code| !tested(code)).collect();
    assert!(untested.is_empty(), "{untested:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn whatever_is_generated_is_valid(
        seed in any::<u64>(),
        namespaces in 1_u32..200,
        services in 0_u32..20,
        scale_every_s in 1_i64..300,
        jobs_per_hour in 0.0..2_000.0,
        cron in 0_u32..10,
        (whole_seconds, companions) in any::<(bool, bool)>(),
    ) {
        let mut spec = GenerateSpec { seed, namespaces, whole_seconds, events: Some(400), ..GenerateSpec::default() };
        spec.services.count = services;
        spec.services.companions = companions;
        spec.services.scale_every = SimDuration::from_secs(scale_every_s);
        spec.services.replaced_per_day = 2_000.0;
        spec.services.rollouts_per_day = 100.0;
        spec.batch.jobs_per_hour = jobs_per_hour;
        spec.cron.count = cron;
        let report = validate(&open(generated(&spec, Format::Native))).unwrap().report;
        // With nothing to generate, nothing can be replayed.
        let nothing = report.counts.keys().all(|rule| rule.code().code == "E0115");
        prop_assert!(nothing, "{:#?}", report.findings);
    }
}

#[test]
fn a_finding_in_a_v2_trace_says_where_it_stands_in_both_counts() {
    let twice =
        |at| story(&tracked()).apply(0, deployment("a", 1)).apply(0, deployment("b", 1)).apply(at, names_nobody());
    let v2 = sk_store::trace::convert(&twice(5).trace(), Format::V2, Vec::new()).unwrap().0;
    let found = found(&open(v2));
    assert!(found[0].starts_with("E0106 event 2 (in v2 event 1), 2026-01-05T00:00:05Z, Deployment"), "{found:?}");
    assert!(self::found(&twice(5).trace())[0].starts_with("E0106 event 2, 2026-01-05T00:00:05Z,"));
}

/// A Deployment whose name no API server takes.
fn names_nobody() -> Value {
    let mut object = deployment("web", 1);
    object["metadata"]["name"] = "Web_1".into();
    object
}

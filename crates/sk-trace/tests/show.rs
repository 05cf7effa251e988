//! Showing: figures that add up, the same text every time, and every text of a trace.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod support;

use std::collections::BTreeMap;

use serde_json::json;
use sk_store::trace::{Format, Gap, Life, OwnerLives, Row, TemplateLives, Trace, convert};
use sk_trace::generate::GenerateSpec;
use sk_trace::show::{Counts, show, values};
use support::{START, deployment, generated, names, open, story, told, v2_traces};

fn small() -> Trace {
    open(generated(&GenerateSpec::preset("small").unwrap(), Format::Native))
}

fn texts(trace: &Trace) -> Vec<String> {
    let mut told = Vec::new();
    values(trace, |row| {
        told.push(format!("{} {} {:?} {}", row.part, row.pointer, row.value, row.count));
        Ok(())
    })
    .unwrap();
    told
}

#[test]
fn the_small_preset_is_shown_as_it_always_was() {
    let shown = show(&small(), Some(1_234)).unwrap().to_string();
    assert_eq!(shown, include_str!("golden/show-small.txt"), "it is now:\n{shown}");
}

#[test]
fn figures_do_not_depend_on_the_form() {
    let spec = GenerateSpec { whole_seconds: true, ..GenerateSpec::preset("small").unwrap() };
    let figures = |format| {
        let summary = show(&open(generated(&spec, format)), None).unwrap();
        (summary.span, summary.events, summary.most_objects, summary.kinds, summary.namespaces, summary.busy)
    };
    assert_eq!(figures(Format::Native), figures(Format::JsonLines));
    assert_eq!(figures(Format::Native), figures(Format::V2));
}

#[test]
fn what_comes_changes_and_goes_is_counted_apart() {
    let web = deployment("web", 1);
    let life = |from: i64, to: Option<i64>| {
        let at = |secs| sk_core::SimTime::from_secs(START.as_secs() + secs);
        Life { start: at(from), end: to.map(at), guessed: false, exit_code: None }
    };
    let owner = sk_store::trace::Object::new(web.clone()).unwrap().reference().clone();
    let lives = vec![life(0, Some(10)), life(0, Some(10)), life(0, None)];
    let lives = OwnerLives { owner, templates: vec![TemplateLives { template: None, pod_hash: None, lives }] };
    let trace = story(&json!({"apps/v1.Deployment": {}}))
        .apply(0, web.clone())
        .apply(5, deployment("web", 2))
        .apply(6, deployment("api", 1))
        .delete(7, names(&web))
        .apply(60, web)
        .row(Row::Lives(lives))
        .row(Row::Gap(Gap {
            from: START,
            to: START + sk_core::SimDuration::from_secs(3),
            kind: None,
            reason: "restart".into(),
        }))
        .trace();
    let summary = show(&trace, None).unwrap();
    let counts = Counts { initial: 1, created: 2, changed: 1, deleted: 1 };
    assert_eq!(summary.kinds.values().copied().collect::<Vec<_>>(), [counts]);
    assert_eq!(summary.namespaces, BTreeMap::from([("default".into(), counts)]));
    assert_eq!((summary.events, summary.most_objects), (5, 2));
    assert_eq!(summary.busy.events.iter().sum::<u64>(), 4, "the state at the start is no event of its time");
    assert_eq!((summary.lives.finished, summary.lives.unfinished, summary.lives.owners), (2, 1, 1));
    assert_eq!(summary.lives.median.to_string(), "10s");
    let json = serde_json::to_value(&summary).unwrap();
    assert_eq!(json["kinds"]["apps/v1.Deployment"], json!({"initial": 1, "created": 2, "changed": 1, "deleted": 1}));
    assert_eq!((&json["span"]["start"], &json["lives"]["median"]), (&json!("2026-01-05T00:00:00Z"), &json!("10s")));
    assert_eq!((summary.gaps.count, summary.gaps.total.to_string()), (1, "3s".to_owned()));
}

#[test]
fn an_empty_trace_can_be_shown() {
    let summary = show(&story(&json!({})).trace(), None).unwrap();
    assert_eq!((summary.events, summary.span), (0, None));
    assert!(summary.to_string().contains("empty"));
}

#[test]
fn every_text_is_told_with_its_place() {
    let mut web = deployment("web", 1);
    web["metadata"]["annotations"] = json!({"a/b": "secret"});
    let trace = story(&json!({"apps/v1.Deployment": {}}))
        .apply(0, web.clone())
        .apply(1, web.clone())
        .delete(2, names(&web))
        .row(Row::Gap(Gap { from: START, to: START, kind: None, reason: "the tracer was down".into() }))
        .trace();
    let told = texts(&trace);
    for expected in [
        "apps/v1.Deployment /metadata/annotations/a~1b \"secret\" 2",
        "apps/v1.Deployment /metadata/name \"web\" 3",
        "apps/v1.Deployment /spec/template/spec/containers/*/image \"nginx:1\" 2",
        "gaps /reason \"the tracer was down\" 1",
    ] {
        assert!(told.iter().any(|line| line == expected), "{expected} is not in {told:#?}");
    }
    assert!(told.is_sorted());
}

#[test]
fn a_trace_holds_the_same_texts_in_every_form() {
    let native = small();
    let (jsonl, _) = convert(&native, Format::JsonLines, Vec::new()).unwrap();
    assert!(texts(&native) == texts(&open(jsonl)));
}

#[test]
fn v2_traces_are_shown() {
    for path in v2_traces() {
        let trace = sk_store::trace::open(&path).unwrap();
        let summary = show(&trace, None).unwrap();
        assert_eq!(summary.events, told(&trace).len() as u64);
        assert!(summary.span.is_some() && !summary.kinds.is_empty());
        assert!(!texts(&trace).is_empty());
        eprintln!("{summary}");
    }
}

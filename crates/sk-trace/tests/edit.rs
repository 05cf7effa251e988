//! Slices, merges, shifts and scales: what is kept is kept whole, and what is undone is undone.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod support;

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use sk_core::{ObjectRef, SimDuration, SimTime, TemplateId};
use sk_store::trace::{Change, Format, Gap, Life, NodeEvent, OwnerLives, Row, TemplateLives, Trace};
use sk_trace::generate::GenerateSpec;
use sk_trace::merge::{Overlap, merge};
use sk_trace::scale::{COPY_LABEL, Scale, scale};
use sk_trace::shift::shift;
use sk_trace::slice::{Slice, slice};
use sk_trace::validate::validate;
use support::{START, deployment, generated, names, open, story, told};

fn small() -> Vec<u8> {
    generated(&GenerateSpec::preset("small").unwrap(), Format::Native)
}

fn tracked() -> Value {
    json!({"apps/v1.Deployment": {}})
}

fn at(secs: i64) -> SimTime {
    SimTime::from_secs(START.as_secs() + secs)
}

fn sliced(trace: &Trace, part: &Slice) -> Trace {
    open(slice(trace, part, Format::Native, Vec::new()).unwrap().out)
}

/// What exists at the end.
fn state(trace: &Trace) -> BTreeMap<ObjectRef, Value> {
    let mut state = BTreeMap::new();
    for record in trace.records().unwrap() {
        match record.unwrap().change {
            Change::Apply(object) => drop(state.insert(object.reference().clone(), object.into_value())),
            Change::Delete(deletion) => drop(state.remove(&deletion.object)),
            Change::Mark(_) => {}
        }
    }
    state
}

fn lives_of(object: &Value, lives: &[(i64, Option<i64>)]) -> Row {
    let owner = sk_store::trace::Object::new(object.clone()).unwrap().reference().clone();
    let template = TemplateId::all_in(object, &["/spec/template".parse().unwrap()]).pop();
    let lives = lives
        .iter()
        .map(|(from, to)| Life { start: at(*from), end: to.map(at), guessed: false, exit_code: None })
        .collect();
    Row::Lives(OwnerLives { owner, templates: vec![TemplateLives { template, pod_hash: None, lives }] })
}

/// Every life, by owner and template.
fn lives(trace: &Trace) -> Vec<(ObjectRef, Option<TemplateId>, Life)> {
    let mut all = Vec::new();
    for row in trace.lives().unwrap() {
        let OwnerLives { owner, templates } = row.unwrap();
        for template in templates {
            all.extend(template.lives.iter().map(|life| (owner.clone(), template.template.clone(), *life)));
        }
    }
    all.sort();
    all
}

#[test]
fn a_slice_begins_with_the_state_at_its_start() {
    let trace = story(&tracked())
        .apply(0, deployment("web", 1))
        .apply(0, deployment("gone", 1))
        .apply(10, deployment("web", 2))
        .delete(20, names(&deployment("gone", 1)))
        .apply(40, deployment("web", 3))
        .apply(50, deployment("late", 1))
        .trace();
    let part = Slice { start: Some(at(30)), end: Some(at(50)), ..Slice::default() };
    let written = slice(&trace, &part, Format::Native, Vec::new()).unwrap();
    assert_eq!((written.summary.state, written.summary.kept, written.summary.left_out), (1, 1, 0));
    let after = open(written.out);
    assert_eq!(
        told(&after),
        ["2026-01-05T00:00:30Z apply Deployment default/web", "2026-01-05T00:00:40Z apply Deployment default/web"]
    );
    let first = after.records().unwrap().map(Result::unwrap).find_map(|record| match record.change {
        Change::Apply(object) => Some(object.value()["spec"]["replicas"].clone()),
        _ => None,
    });
    assert_eq!(first, Some(json!(2)), "the newest version before the start");
    assert_eq!(after.span(), Some((at(30), at(50))));
}

#[test]
fn a_slice_takes_the_lives_nodes_and_gaps_that_reach_into_it() {
    let node =
        |secs, name: &str, object: Option<Value>| Row::Node(NodeEvent { at: at(secs), node: name.into(), object });
    let web = deployment("web", 1);
    let trace = story(&tracked())
        .apply(0, web.clone())
        .mark(100)
        .row(lives_of(&web, &[(1, Some(5)), (2, Some(15)), (3, None), (60, Some(61))]))
        .row(lives_of(&deployment("other", 1), &[(12, None)]))
        .row(node(0, "a", Some(json!({"old": true}))))
        .row(node(5, "a", Some(json!({"new": true}))))
        .row(node(0, "b", Some(json!({}))))
        .row(node(6, "b", None))
        .row(node(20, "c", Some(json!({}))))
        .row(Row::Gap(Gap { from: at(8), to: at(12), kind: None, reason: "restart".into() }))
        .trace();
    let after = sliced(&trace, &Slice { start: Some(at(10)), end: Some(at(50)), ..Slice::default() });
    let lives: Vec<_> = after.lives().unwrap().map(Result::unwrap).collect();
    assert_eq!(lives.len(), 1);
    let starts: Vec<_> = lives[0].templates[0].lives.iter().map(|life| life.start).collect();
    assert_eq!(starts, [at(2), at(3)]);
    let nodes: Vec<_> =
        after.node_events().unwrap().map(Result::unwrap).map(|row| (row.at, row.node, row.object)).collect();
    assert_eq!(nodes, [(at(10), "a".into(), Some(json!({"new": true}))), (at(20), "c".into(), Some(json!({})))]);
    let gap = after.gaps().unwrap().next().unwrap().unwrap();
    assert_eq!((gap.from, gap.to), (at(10), at(12)));
}

#[test]
fn a_slice_by_label_is_what_a_watch_with_that_selector_sees() {
    let mut moved = deployment("web", 1);
    moved["metadata"]["labels"]["app"] = "other".into();
    let trace = story(&tracked())
        .apply(0, deployment("web", 1))
        .apply(1, deployment("api", 1))
        .apply(2, moved.clone())
        .delete(3, names(&moved))
        .trace();
    let after = sliced(&trace, &Slice { labels: "app=web".parse().unwrap(), ..Slice::default() });
    assert_eq!(
        told(&after),
        ["2026-01-05T00:00:00Z apply Deployment default/web", "2026-01-05T00:00:02Z delete Deployment default/web"]
    );
}

#[test]
fn a_slice_by_namespace_or_kind_keeps_those() {
    let trace = open(small());
    let all = told(&trace).len();
    let ads = sliced(&trace, &Slice { namespaces: vec!["ads".into()], ..Slice::default() });
    let rest = sliced(&trace, &Slice { excluded_namespaces: vec!["ads".into()], ..Slice::default() });
    assert!(told(&ads).iter().all(|line| line.contains(" ads/")) && !told(&ads).is_empty());
    assert_eq!(told(&ads).len() + told(&rest).len(), all);
    let jobs = sliced(&trace, &Slice { kinds: vec!["batch/v1.Job".into()], ..Slice::default() });
    assert!(told(&jobs).iter().all(|line| line.contains(" Job ")) && !told(&jobs).is_empty());
    assert!(jobs.lives().unwrap().all(|row| row.unwrap().owner.gvk.kind == "Job"));
    let short = sliced(&trace, &Slice { kinds: vec!["Job".into()], ..Slice::default() });
    assert_eq!(told(&short), told(&jobs));
    assert!(validate(&jobs).unwrap().report.is_clean());
}

#[test]
fn a_slice_without_time_is_refused() {
    let part = Slice { start: Some(at(5)), end: Some(at(5)), ..Slice::default() };
    let error = slice(&open(small()), &part, Format::Native, Vec::new()).unwrap_err();
    assert!(error.to_string().contains("has no time in it"), "{error}");
}

#[test]
fn nothing_asked_for_is_nothing_done() {
    let bytes = small();
    let trace = open(bytes.clone());
    assert!(slice(&trace, &Slice::default(), Format::Native, Vec::new()).unwrap().out == bytes);
    assert!(scale(&trace, Scale::default(), Format::Native, Vec::new()).unwrap().out == bytes);
    assert!(shift(&trace, SimDuration::ZERO, Format::Native, Vec::new()).unwrap().out == bytes);
}

#[test]
fn what_is_shifted_there_and_back_is_where_it_was() {
    let bytes = small();
    let by = SimDuration::from_mins(60 * 24 * 7);
    let there = open(shift(&open(bytes.clone()), by, Format::Native, Vec::new()).unwrap().out);
    let (start, end) = open(bytes.clone()).span().unwrap();
    assert_eq!(there.span(), Some((start + by, end + by)));
    let back = shift(&there, SimDuration::ZERO - by, Format::Native, Vec::new()).unwrap().out;
    assert!(back == bytes);
}

#[test]
fn different_clusters_merge_in_the_order_of_time() {
    let spec = |seed| GenerateSpec { seed, ..GenerateSpec::preset("small").unwrap() };
    let first = open(generated(&spec(1), Format::Native));
    let mut other = spec(2);
    other.start += SimDuration::from_mins(1);
    let second = open(generated(&other, Format::Native));
    let renamed = sk_trace::transform::Program::compile(r#".metadata.namespace += "-two""#).unwrap();
    let renamed = sk_trace::transform::transform(&second, &renamed, Format::Native, Vec::new()).unwrap();
    let second = open(renamed.out);
    let merged = merge(&[&first, &second], Overlap::Refuse, Format::Native, Vec::new()).unwrap();
    assert_eq!(merged.summary.events, (told(&first).len() + told(&second).len()) as u64);
    let merged = open(merged.out);
    assert!(validate(&merged).unwrap().report.is_clean());
    let count = |trace: &Trace| trace.lives().unwrap().count();
    assert_eq!(count(&merged), count(&first) + count(&second));
}

#[test]
fn the_same_object_in_two_traces_is_refused_by_name() {
    let trace = || story(&tracked()).apply(0, deployment("web", 1)).trace();
    let error = merge(&[&trace(), &trace()], Overlap::Refuse, Format::Native, Vec::new()).unwrap_err().to_string();
    assert!(error.contains("Deployment default/web is both in test and in test"), "{error}");
    let otherwise = story(&json!({"apps/v1.Deployment": {"trackLifecycle": true}})).trace();
    let error = merge(&[&trace(), &otherwise], Overlap::Join, Format::Native, Vec::new()).unwrap_err().to_string();
    assert!(error.contains("apps/v1.Deployment"), "{error}");
    assert!(merge(&[], Overlap::Join, Format::Native, Vec::new()).is_ok());
}

#[test]
fn copies_live_beside_their_originals() {
    let web = deployment("web", 3);
    let trace =
        story(&tracked()).apply(0, web.clone()).delete(9, names(&web)).row(lives_of(&web, &[(1, None)])).trace();
    let by = Scale { replicas: 0.5, arrivals: 2.0, seed: 1 };
    let written = scale(&trace, by, Format::Native, Vec::new()).unwrap();
    assert_eq!((written.summary.rescaled, written.summary.added, written.summary.left_out), (1, 2, 0));
    let after = open(written.out);
    assert_eq!(told(&after).len(), 4);
    assert!(validate(&after).unwrap().report.is_clean(), "{:?}", validate(&after).unwrap().report.findings);
    let objects: Vec<Value> = after
        .records()
        .unwrap()
        .filter_map(|record| match record.unwrap().change {
            Change::Apply(object) => Some(object.into_value()),
            _ => None,
        })
        .collect();
    assert_eq!(objects[0]["spec"]["replicas"], 2);
    assert_eq!(objects[1]["metadata"]["name"], "web-x2");
    assert_eq!(objects[1]["spec"]["selector"]["matchLabels"][COPY_LABEL], "2");
    let paths = ["/spec/template".parse().unwrap()];
    for (lives, object) in after.lives().unwrap().zip(&objects) {
        assert_eq!(lives.unwrap().templates[0].template, TemplateId::all_in(object, &paths).pop());
    }
}

#[test]
fn thinning_leaves_out_whole_workloads_and_nothing_else() {
    let trace = open(small());
    let by = Scale { arrivals: 0.5, ..Scale::default() };
    let half = open(scale(&trace, by, Format::Native, Vec::new()).unwrap().out);
    assert!(validate(&half).unwrap().report.is_clean(), "{:?}", validate(&half).unwrap().report.findings);
    let jobs = |trace: &Trace| told(trace).iter().filter(|line| line.contains("apply Job")).count();
    assert!((jobs(&trace) / 4..=jobs(&trace) * 3 / 4).contains(&jobs(&half)), "{} of {}", jobs(&half), jobs(&trace));
    let config_maps = |trace: &Trace| told(trace).iter().filter(|line| line.contains("ConfigMap")).count();
    assert_eq!(config_maps(&half), config_maps(&trace), "what is no workload stays");
    for wrong in [f64::NAN, -1.0, 1e9] {
        assert!(scale(&trace, Scale { replicas: wrong, ..Scale::default() }, Format::Native, Vec::new()).is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn two_slices_side_by_side_end_as_the_whole_does(secs in 1_i64..299) {
        let trace = open(small());
        let middle = Some(trace.span().unwrap().0 + SimDuration::from_secs(secs));
        let before = sliced(&trace, &Slice { end: middle, ..Slice::default() });
        let after = sliced(&trace, &Slice { start: middle, ..Slice::default() });
        prop_assert!(validate(&after).unwrap().report.is_clean());
        prop_assert!(state(&after) == state(&trace));
        let joined = merge(&[&before, &after], Overlap::Join, Format::Native, Vec::new()).unwrap();
        let joined = open(joined.out);
        prop_assert!(state(&joined) == state(&trace));
        prop_assert_eq!(lives(&joined), lives(&trace), "a life that reaches over the cut is told once");
    }
}

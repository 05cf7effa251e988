//! Slicing, scaling, merging and shifting: what comes out can be replayed by itself.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod support;

use serde_json::{Value, json};
use sk_core::{Gvk, LabelSelector, SimDuration, SimTime};
use sk_store::trace::{
    Change, Format, Gap, Header, Life, Losses, NodeEvent, Object, Observation, OwnerLives, Record, Reserved, Row,
    Scale, Slice, TemplateLives, Trace, Wait, WriteError, Writer, merge, scale, shift, slice,
};
use support::{deployment, event, names, story, v2};

fn secs(secs: i64) -> SimTime {
    SimTime::from_secs(secs)
}

fn opened(written: Result<(Vec<u8>, Losses), WriteError>) -> Trace {
    support::open(written.unwrap().0)
}

fn object(kind: &str, namespace: Option<&str>, name: &str) -> Value {
    let mut value = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}});
    if let Some(namespace) = namespace {
        value["metadata"]["namespace"] = json!(namespace);
    }
    value
}

/// a at 10, b at 20, a changes at 30, b goes at 40, c at 50; the window ends at 60.
fn trace() -> Trace {
    support::open(v2(&[
        event(10, &[deployment("a", 1)], &[]),
        event(20, &[deployment("b", 2)], &[]),
        event(30, &[deployment("a", 3)], &[]),
        event(40, &[], &[names("b")]),
        event(50, &[deployment("c", 5)], &[]),
        event(60, &[], &[]),
    ]))
}

fn replicas(trace: &Trace) -> Vec<String> {
    let records = trace.records().unwrap().map(Result::unwrap);
    records
        .filter_map(|Record { at, change, .. }| match change {
            Change::Apply(object) => {
                let (name, replicas) = (&object.reference().key.name, &object.value()["spec"]["replicas"]);
                Some(format!("{} {name} {replicas}", at.as_secs()))
            }
            Change::Delete(deletion) => Some(format!("{} {} gone", at.as_secs(), deletion.object.key.name)),
            Change::Mark(_) => None,
        })
        .collect()
}

#[test]
fn a_part_begins_with_the_state_of_its_first_moment() {
    for format in [Format::V2, Format::Native, Format::JsonLines] {
        let part = Slice { start: Some(secs(35)), end: Some(secs(55)), ..Slice::default() };
        let part = opened(slice(&trace(), &part, format, Vec::new()));
        assert_eq!(replicas(&part), ["35 b 2", "35 a 3", "40 b gone", "50 c 5"]);
        assert_eq!(part.span(), Some((secs(35), secs(55))), "the window is what was asked for");
    }
    let late = Slice { start: Some(secs(45)), ..Slice::default() };
    assert_eq!(replicas(&opened(slice(&trace(), &late, Format::V2, Vec::new()))), ["45 a 3", "50 c 5"]);
}

#[test]
fn a_part_by_namespace_and_kind_keeps_what_belongs_to_it() {
    let trace = support::open(v2(&[event(
        1,
        &[
            object("Namespace", None, "shop"),
            object("Namespace", None, "bank"),
            object("Node", None, "n"),
            object("ConfigMap", Some("shop"), "c"),
            object("ConfigMap", Some("bank"), "c"),
        ],
        &[],
    )]));
    let told = |part: &Slice| -> Vec<String> {
        story(&opened(slice(&trace, part, Format::Native, Vec::new())))
            .iter()
            .map(|line| line[27..].to_owned())
            .collect()
    };
    let shop = Slice { namespaces: vec!["shop".into()], ..Slice::default() };
    assert_eq!(told(&shop), ["Namespace shop", "Node n", "ConfigMap shop/c"]);
    let no_bank = Slice { excluded_namespaces: vec!["bank".into()], ..Slice::default() };
    assert_eq!(told(&no_bank), told(&shop));
    let nodes = Slice { kinds: vec![Gvk::new_static("", "v1", "Node")], ..Slice::default() };
    assert_eq!(told(&nodes), ["Node n"]);
}

#[test]
fn an_object_that_loses_its_labels_leaves_the_part() {
    let with = |replicas, tier: &str| {
        let mut value = deployment("a", replicas);
        value["metadata"]["labels"]["tier"] = json!(tier);
        value
    };
    let trace = support::open(v2(&[
        event(1, &[with(1, "gold")], &[]),
        event(2, &[with(2, "tin")], &[]),
        event(3, &[with(3, "tin")], &[]),
        event(4, &[with(4, "gold")], &[]),
        event(5, &[], &[names("a")]),
        event(6, &[], &[names("a")]),
    ]));
    let labels: LabelSelector = "tier=gold".parse().unwrap();
    let part = Slice { labels: Some(labels), ..Slice::default() };
    let part = opened(slice(&trace, &part, Format::Native, Vec::new()));
    assert_eq!(replicas(&part), ["1 a 1", "2 a gone", "4 a 4", "5 a gone"]);
}

fn with_rows() -> Trace {
    let owner = Object::new(deployment("a", 1)).unwrap();
    let mut writer = Writer::new(Format::Native, Vec::new(), &Header::default()).unwrap();
    let reference = owner.reference().clone();
    writer.record(&Record { at: secs(0), seq: 0, change: Change::Apply(owner) }).unwrap();
    let life = |start, end: Option<i64>| Life { start: secs(start), end: end.map(secs) };
    let node = |at, node: &str, there: bool| {
        Row::Node(NodeEvent { at: secs(at), node: node.into(), object: there.then(|| json!({"at": at})) })
    };
    let observation = |pod: &str, created, deleted| {
        Row::Observation(Observation {
            pod: pod.parse().unwrap(),
            owner: Some(reference.clone()),
            template: None,
            created: secs(created),
            scheduled: None,
            started: None,
            finished: None,
            deleted: Some(secs(deleted)),
            node: None,
            waits: vec![Wait { at: secs(created), reason: "Unschedulable".into(), message: String::new() }],
        })
    };
    let reserved = |at, pods| Row::Reserved(Reserved { at: secs(at), node: "n".into(), pods, requests: [].into() });
    for row in [
        Row::Lives(OwnerLives {
            owner: reference.clone(),
            templates: vec![TemplateLives {
                template: None,
                pod_hash: Some(sk_core::StableHash::new(7)),
                lives: vec![life(1, Some(5)), life(1, Some(15)), life(1, None), life(30, None)],
            }],
        }),
        observation("default/before", 1, 5),
        observation("default/within", 12, 13),
        node(1, "gone", true),
        node(2, "old", true),
        node(3, "old", true),
        node(4, "gone", false),
        node(15, "new", true),
        node(35, "late", true),
        reserved(1, 3),
        reserved(12, 4),
        Row::Gap(Gap { from: secs(5), to: secs(12), reason: "down".into() }),
    ] {
        writer.row(&row).unwrap();
    }
    support::open(writer.finish().unwrap().0)
}

#[test]
fn what_else_is_known_is_cut_to_the_part() {
    let part = Slice { start: Some(secs(10)), end: Some(secs(20)), ..Slice::default() };
    let part = opened(slice(&with_rows(), &part, Format::Native, Vec::new()));
    let lives = part.lives().unwrap().next().unwrap().unwrap();
    assert_eq!(lives.templates[0].lives.len(), 2, "those that were lived then");
    let pods: Vec<_> = part.observations().unwrap().map(|seen| seen.unwrap().pod.to_string()).collect();
    assert_eq!(pods, ["default/within"]);
    let nodes: Vec<_> =
        part.node_events().unwrap().map(Result::unwrap).map(|e| (e.at.as_secs(), e.node, e.object)).collect();
    assert_eq!(nodes, [(10, "old".into(), Some(json!({"at": 3}))), (15, "new".into(), Some(json!({"at": 15})))]);
    let reserved: Vec<_> = part.reserved().unwrap().map(Result::unwrap).map(|r| (r.at.as_secs(), r.pods)).collect();
    assert_eq!(reserved, [(10, 3), (12, 4)]);
    let gap = part.gaps().unwrap().next().unwrap().unwrap();
    assert_eq!((gap.from, gap.to), (secs(10), secs(12)));
}

#[test]
fn replicas_scale_to_the_nearest_and_not_to_nothing() {
    let by = Scale { replicas: "0.5".parse().unwrap(), ..Scale::default() };
    let scaled = opened(scale(&trace(), &by, Format::V2, Vec::new()));
    assert_eq!(replicas(&scaled), ["10 a 1", "20 b 1", "30 a 2", "40 b gone", "50 c 3"]);
}

#[test]
fn arrivals_scale_with_their_ends_and_lives() {
    let by = Scale { arrivals: "2".parse().unwrap(), ..Scale::default() };
    let scaled = opened(scale(&trace(), &by, Format::Native, Vec::new()));
    assert_eq!(
        replicas(&scaled),
        ["10 a 1", "20 b 2", "20 b-x2 2", "30 a 3", "40 b gone", "40 b-x2 gone", "50 c 5", "50 c-x2 5"],
        "what was there at the start stays as it is"
    );
    let none = Scale { arrivals: "0".parse().unwrap(), ..Scale::default() };
    assert_eq!(replicas(&opened(scale(&trace(), &none, Format::Native, Vec::new()))), ["10 a 1", "30 a 3"]);
    let many: Vec<_> = (0..1000).map(|n| event(n, &[deployment(&format!("d{n}"), 1)], &[])).collect();
    let third = Scale { arrivals: "1.3".parse().unwrap(), ..Scale::default() };
    let count = replicas(&opened(scale(&support::open(v2(&many)), &third, Format::Native, Vec::new()))).len();
    assert!((1250..1350).contains(&count), "{count}");
}

#[test]
fn merging_keeps_the_order_of_time() {
    let other = support::open(v2(&[event(10, &[deployment("x", 1)], &[]), event(45, &[deployment("y", 1)], &[])]));
    let merged = opened(merge(&[trace(), other], Format::V2, Vec::new()));
    assert_eq!(replicas(&merged), ["10 a 1", "10 x 1", "20 b 2", "30 a 3", "40 b gone", "45 y 1", "50 c 5"]);
    assert_eq!(merged.span(), Some((secs(10), secs(60))));
    let text =
        r#"{"simkube":"trace","version":1,"config":{"trackedObjects":{"apps/v1.Deployment":{"skipOwned":true}}}}"#;
    let refused = merge(&[trace(), support::open(text)], Format::V2, Vec::new()).unwrap_err().to_string();
    assert!(refused.contains("tracked otherwise"), "{refused}");
}

#[test]
fn shifting_moves_everything_and_back() {
    let original = with_rows();
    let there = opened(shift(&original, SimDuration::from_secs(100), Format::Native, Vec::new()));
    assert_eq!(there.span(), Some((secs(100), secs(100))));
    assert_eq!(there.gaps().unwrap().next().unwrap().unwrap().from, secs(105));
    let (back, _) = shift(&there, SimDuration::from_secs(-100), Format::JsonLines, Vec::new()).unwrap();
    let (same, _) = shift(&original, SimDuration::ZERO, Format::JsonLines, Vec::new()).unwrap();
    assert!(back == same);
}

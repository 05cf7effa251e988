//! Exports: what of the log becomes a trace, in which order, in every form.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "support/facts.rs"]
mod facts;

use facts::{applied, apply, at, attribution, delete, link, object, open, owned_by, pod, story};
use serde_json::json;
use sk_core::{LabelSelector, SimDuration, SmolStr};
use sk_store::log::{ExportError, Exported, Fact, Log, Options, Query};
use sk_store::trace::{self, Format, Gap, Trace, TracerConfig};

const WEB: &str = "apps/v1.Deployment default/web";
const DB: &str = "apps/v1.StatefulSet default/db";

/// A log of these facts, each a second after the one before.
fn log_of(facts: impl IntoIterator<Item = Fact>) -> (tempfile::TempDir, Log) {
    let folder = tempfile::tempdir().unwrap();
    let mut log = open(folder.path());
    for (secs, fact) in (0..).zip(facts) {
        log.append(at(secs), fact).unwrap();
    }
    log.sync().unwrap();
    (folder, log)
}

fn export(log: &Log, query: &Query, format: Format) -> (Trace, Exported) {
    let mut bytes = Vec::new();
    let exported = log.reader().export(query, format, &mut bytes).unwrap();
    (trace::from_bytes("export", bytes).unwrap(), exported)
}

/// The lines of the story after the time, which is the same in all of them or of no matter.
fn told(trace: &Trace) -> Vec<String> {
    story(trace).iter().map(|line| line.split_once(' ').unwrap().1.to_owned()).collect()
}

#[test]
fn a_window_begins_with_the_whole_state_and_ends_where_it_ends() {
    let (_folder, log) = log_of([
        apply("v1.ConfigMap default/b", 1),
        apply(WEB, 1),
        apply("v1.Namespace default", 1),
        apply("scheduling.k8s.io/v1.PriorityClass high", 1),
        apply("v1.ConfigMap default/gone", 1),
        delete("v1.ConfigMap default/gone"),
        apply(WEB, 2),
        // The window begins here.
        apply(WEB, 3),
        delete("v1.ConfigMap default/b"),
        // And ends here.
        apply(WEB, 4),
    ]);
    let query = Query::window(at(7), at(9));
    let expected = [
        "2026-01-05T09:00:07Z apply Namespace default",
        "2026-01-05T09:00:07Z apply PriorityClass high",
        "2026-01-05T09:00:07Z apply ConfigMap default/b",
        "2026-01-05T09:00:07Z apply Deployment default/web",
        "2026-01-05T09:00:07Z apply Deployment default/web",
        "2026-01-05T09:00:08Z delete ConfigMap default/b",
    ];
    for format in [Format::Native, Format::JsonLines, Format::V2] {
        let (trace, exported) = export(&log, &query, format);
        assert_eq!(trace.format(), format);
        let happened: Vec<_> = story(&trace).into_iter().filter(|line| !line.contains("(nothing)")).collect();
        assert_eq!(happened, expected, "{format:?}");
        assert_eq!(trace.span(), Some((at(7), at(9))), "{format:?}");
        assert_eq!((exported.objects, exported.gaps, exported.unreadable), (4, 0, 0));
    }
}

#[test]
fn delete_and_recreate_in_the_same_second_stay_two_events() {
    let mut again = applied(WEB, 2);
    again.uid = "another".into();
    let (_folder, mut log) = log_of([apply(WEB, 1)]);
    let later = at(5) + SimDuration::from_millis(10);
    log.append(later, delete(WEB)).unwrap();
    log.append(later, Fact::Applied(again)).unwrap();
    log.sync().unwrap();
    for format in [Format::Native, Format::JsonLines, Format::V2] {
        let (trace, _) = export(&log, &Query::window(at(1), at(9)), format);
        let happened: Vec<_> = told(&trace).into_iter().filter(|line| line != "(nothing)").collect();
        assert_eq!(
            happened,
            ["apply Deployment default/web", "delete Deployment default/web", "apply Deployment default/web"],
            "{format:?}"
        );
    }
}

#[test]
fn the_same_question_gives_the_same_bytes_also_after_a_restart() {
    let (folder, log) = log_of((0..50).map(|n| apply(&format!("v1.ConfigMap default/c{}", n % 7), n)));
    let ask = |log: &Log| {
        let mut bytes = Vec::new();
        log.reader().export(&Query::window(at(10), at(40)), Format::Native, &mut bytes).unwrap();
        bytes
    };
    let first = ask(&log);
    assert_eq!(first, ask(&log));
    drop(log);
    let mut log = open(folder.path());
    log.append(at(60), apply(WEB, 1)).unwrap();
    log.sync().unwrap();
    assert_eq!(first, ask(&log));
}

#[test]
fn what_an_export_begins_with_does_not_depend_on_where_segments_end() {
    let facts: Vec<_> = (0..200).map(|n| apply(&format!("v1.ConfigMap default/c{}", n % 7), n)).collect();
    let folder = tempfile::tempdir().unwrap();
    let options = Options { segment_bytes: 700, ..Options::default() };
    let (mut cut, _) = Log::open(folder.path(), options).unwrap();
    for (secs, fact) in (0..).zip(facts.clone()) {
        cut.append(at(secs), fact).unwrap();
    }
    cut.sync().unwrap();
    assert!(cut.stats().segments > 5);
    let (_folder, whole) = log_of(facts);
    for start in 0..199 {
        let query = Query::window(at(start), at(200));
        let (mut a, mut b) = (Vec::new(), Vec::new());
        cut.reader().export(&query, Format::Native, &mut a).unwrap();
        whole.reader().export(&query, Format::Native, &mut b).unwrap();
        assert!(a == b, "from {start}");
    }
}

#[test]
fn an_owner_that_comes_after_its_child_still_keeps_it_out() {
    let mut owned = applied(WEB, 1);
    owned.owners.push(owned_by("example.com/v1.App default/app"));
    let facts = [Fact::Applied(owned), apply(DB, 1), apply("example.com/v1.App default/app", 1)];
    let (_folder, log) = log_of(facts.clone());
    let in_other_order = log_of(facts.into_iter().rev());
    for log in [&log, &in_other_order.1] {
        let (trace, _) = export(log, &Query::window(at(0), at(9)), Format::Native);
        let mut told: Vec<_> = told(&trace).into_iter().filter(|line| line != "(nothing)").collect();
        told.sort();
        assert_eq!(told, ["apply App default/app", "apply StatefulSet default/db"]);
    }
}

#[test]
fn filters_leave_out_namespaces_and_labels_and_what_belongs_to_them() {
    let mut owned = applied("batch/v1.Job hr/pay", 1);
    owned.owners.push(owned_by("batch/v1.CronJob hr/pay"));
    let mut hidden = pod("db-0", Some(DB), at(0), Some("n1"));
    hidden.attributions.push(attribution(DB));
    let (_folder, log) = log_of([
        apply("v1.Namespace hr", 1),
        apply("v1.Namespace default", 1),
        apply("batch/v1.CronJob hr/pay", 1),
        Fact::Applied(owned),
        apply(WEB, 1),
        apply(DB, 1),
        Fact::Pod(Box::new(hidden)),
    ]);
    let of = |change: &dyn Fn(&mut Query)| {
        let mut query = Query::window(at(6), at(9));
        change(&mut query);
        let (trace, exported) = export(&log, &query, Format::Native);
        let told: Vec<_> = told(&trace).into_iter().filter(|line| line != "(nothing)").collect();
        (told.join(", "), exported.observations)
    };
    let all = "apply Namespace default, apply Namespace hr, apply Deployment default/web, \
               apply StatefulSet default/db, apply CronJob hr/pay";
    assert_eq!(of(&|_| {}), (all.to_owned(), 1));
    assert_eq!(
        of(&|query| query.excluded_namespaces.push("hr".into())).0,
        "apply Namespace default, apply Deployment default/web, apply StatefulSet default/db"
    );
    assert_eq!(
        of(&|query| query.included_namespaces.push("hr".into())),
        ("apply Namespace hr, apply CronJob hr/pay".into(), 0)
    );
    let app = |name: &str| LabelSelector::from_match_labels(&json!({"app": name})).unwrap();
    assert_eq!(of(&|query| query.excluded_labels.push(app("db"))).1, 0, "its pod goes with it");
    assert_eq!(of(&|query| query.included_labels.push(app("web"))), ("apply Deployment default/web".into(), 0));
    assert_eq!(of(&|query| query.included_labels.push(app("db"))), ("apply StatefulSet default/db".into(), 1));
}

#[test]
fn a_label_that_an_object_had_once_in_the_window_decides_for_all_of_it() {
    let mut labelled = applied(WEB, 2);
    let mut body = facts::body(&labelled.object, 2);
    body["metadata"]["labels"]["private"] = json!("yes");
    labelled.body = body.to_string().into();
    let (_folder, log) = log_of([apply(WEB, 1), Fact::Applied(labelled), apply(WEB, 3)]);
    let mut query = Query::window(at(0), at(9));
    query.excluded_labels.push(LabelSelector::from_match_labels(&json!({"private": "yes"})).unwrap());
    assert_eq!(export(&log, &query, Format::Native).1.objects, 0);
    query.start = at(3);
    assert_eq!(export(&log, &query, Format::Native).1.objects, 1, "before the window it does not matter");
}

#[test]
fn lives_are_told_of_the_owner_that_is_exported() {
    let mut first = pod("web-1", Some("apps/v1.ReplicaSet default/web-x"), at(1), Some("n1"));
    first.attributions = vec![attribution("apps/v1.ReplicaSet default/web-x"), attribution(WEB)];
    let mut ended = first.clone();
    ended.finished = Some(at(8));
    let mut second = first.clone();
    second.uid = "second".into();
    second.started = Some(at(3));
    let mut before = first.clone();
    before.uid = "before".into();
    before.finished = Some(at(2));
    let (_folder, log) = log_of([
        apply(WEB, 1),
        link("apps/v1.ReplicaSet default/web-x", WEB),
        Fact::Pod(Box::new(first)),
        Fact::Pod(Box::new(before)),
        Fact::Pod(Box::new(second)),
        Fact::Pod(Box::new(ended)),
    ]);
    let query = Query::window(at(3), at(9));
    let (trace, exported) = export(&log, &query, Format::Native);
    let rows: Vec<_> = trace.lives().unwrap().map(Result::unwrap).collect();
    assert_eq!((rows.len(), exported.lives, rows[0].owner.clone()), (1, 2, object(WEB)));
    let lives: Vec<_> = rows[0].templates[0].lives.iter().map(|life| (life.start, life.end)).collect();
    assert_eq!(lives, [(at(1), Some(at(8))), (at(3), None)], "one ended before the window");
    assert!(rows[0].templates[0].template.is_some());
    let (v2, exported) = export(&log, &query, Format::V2);
    let rows: Vec<_> = v2.lives().unwrap().map(Result::unwrap).collect();
    assert_eq!(rows[0].templates[0].pod_hash.unwrap().get(), 7);
    assert_eq!((rows[0].templates[0].lives.len(), exported.losses.lives), (2, 0));
}

#[test]
fn observations_nodes_reservations_and_gaps_are_told() {
    let mut bare = pod("static", None, at(0), Some("n1"));
    bare.requests = [("cpu".into(), "100m".to_owned())].into();
    let mut daemon = pod("agent", Some("apps/v1.DaemonSet default/agent"), at(2), Some("n1"));
    let mut of_web = pod("web-1", Some(WEB), at(2), Some("n1"));
    of_web.attributions.push(attribution(WEB));
    let early = daemon.clone();
    daemon.finished = Some(at(7));
    let (_folder, log) = log_of([
        Fact::Node("n1".into(), Some(r#"{"kind":"Node","v":1}"#.into())),
        Fact::Pod(Box::new(bare)),
        apply(WEB, 1),
        Fact::Pod(Box::new(early)),
        Fact::Pod(Box::new(of_web)),
        Fact::Node("n1".into(), Some(r#"{"kind":"Node","v":2}"#.into())),
        Fact::Gap(Gap { from: at(0), to: at(1), kind: None, reason: "too early".into() }),
        Fact::Pod(Box::new(daemon)),
        Fact::Node("n1".into(), None),
        Fact::Gap(Gap { from: at(4), to: at(20), kind: Some("v1.Pod".parse().unwrap()), reason: "down".into() }),
    ]);
    let (trace, exported) = export(&log, &Query::window(at(4), at(9)), Format::Native);
    let observed: Vec<_> = trace.observations().unwrap().map(Result::unwrap).collect();
    let owners: Vec<_> =
        observed.iter().map(|row| (row.pod.name.as_str(), row.owner.as_ref().map(ToString::to_string))).collect();
    assert_eq!(
        owners,
        [
            ("static", None),
            ("agent", Some("DaemonSet default/agent".into())),
            ("web-1", Some("Deployment default/web".into())),
        ]
    );
    let nodes: Vec<_> = trace.node_events().unwrap().map(Result::unwrap).collect();
    let versions: Vec<_> =
        nodes.iter().map(|row| (row.at, row.object.as_ref().map(|node| node["v"].clone()))).collect();
    assert_eq!(versions, [(at(4), Some(json!(1))), (at(5), Some(json!(2))), (at(8), None)]);
    let reserved: Vec<_> = trace.reserved().unwrap().map(Result::unwrap).collect();
    let sums: Vec<_> =
        reserved.iter().map(|row| (row.at, row.pods, row.requests[&SmolStr::from("cpu")].as_str())).collect();
    assert_eq!(sums, [(at(4), 2, "350m"), (at(7), 1, "100m")], "the Deployment's pod is in the trace");
    let gaps: Vec<_> = trace.gaps().unwrap().map(|gap| gap.unwrap().reason).collect();
    assert_eq!((gaps, exported.gaps), (vec!["down".to_owned()], 1), "though it was found out after the window");
}

#[test]
fn a_v2_export_carries_the_hash_of_the_newest_spec_of_each_object() {
    let (_folder, log) = log_of([apply(WEB, 1), apply(WEB, 2), delete(WEB)]);
    let (trace, _) = export(&log, &Query::window(at(0), at(9)), Format::V2);
    let rows: Vec<_> = trace.rows(trace::Section::Index).unwrap().map(Result::unwrap).collect();
    let trace::Row::Index(part) = &rows[0] else { panic!("an index row was asked for") };
    assert_eq!((part.kind.as_str(), part.objects[0].0.as_str()), ("apps/v1.Deployment", "default/web"));
    assert_eq!(part.objects[0].1, Some(sk_core::StableHash::of(&json!({"replicas": 2}))));
    let first = trace.records().unwrap().map(Result::unwrap).find_map(|record| match record.change {
        trace::Change::Apply(object) => Some(object),
        _ => None,
    });
    assert_eq!(first.unwrap().value()["metadata"]["annotations"], json!({}));
}

#[test]
fn the_configuration_travels_with_the_trace() {
    let (_folder, log) = log_of([apply(WEB, 1)]);
    let kind = object(WEB).gvk;
    let query = Query { config: TracerConfig::of_kinds([&kind]), ..Query::window(at(0), at(9)) };
    let (trace, _) = export(&log, &query, Format::Native);
    assert!(trace.config().tracked().contains_key(&kind));
}

#[test]
fn a_window_outside_of_what_is_kept_is_refused_with_what_is() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(folder.path());
    let ask = |log: &Log, start, end| {
        log.reader().export(&Query::window(at(start), at(end)), Format::Native, std::io::sink()).unwrap_err()
    };
    assert!(matches!(ask(&log, 0, 1), ExportError::Empty));
    // Each lasts a minute, so each has a segment of its own; the first is given up.
    let options = Options { age: SimDuration::from_secs(60), ..Options::default() };
    drop(log);
    let (mut log, _) = Log::open(folder.path(), options).unwrap();
    for secs in [-120, 10, 20] {
        log.append(at(secs), apply(WEB, secs.unsigned_abs())).unwrap();
    }
    log.sync().unwrap();
    assert!(log.retain(at(71)) > 0);
    let error = ask(&log, 5, 15);
    assert!(
        matches!(error, ExportError::OutsideRetention { kept_from, kept_to } if (kept_from, kept_to) == (at(10), at(20)))
    );
    assert!(error.to_string().contains("2026-01-05T09:00:10Z"), "{error}");
    assert!(matches!(ask(&log, 15, 15), ExportError::Window { .. }));
    let (trace, _) = export(&log, &Query::window(at(500), at(600)), Format::Native);
    assert_eq!(told(&trace), ["(nothing)", "apply Deployment default/web", "(nothing)"], "nothing has changed since");
}

#[test]
fn what_is_no_object_is_counted_and_left_out() {
    let mut wrong = applied(DB, 1);
    wrong.body = "{".into();
    let mut other = applied("v1.ConfigMap default/a", 1);
    other.body = facts::body(&object("v1.ConfigMap default/b"), 1).to_string().into();
    let (_folder, log) = log_of([Fact::Applied(wrong), Fact::Applied(other), apply(WEB, 1)]);
    let (trace, exported) = export(&log, &Query::window(at(0), at(9)), Format::Native);
    assert_eq!(exported.unreadable, 2);
    assert_eq!(told(&trace), ["(nothing)", "apply Deployment default/web", "(nothing)"]);
}

#[test]
fn an_export_runs_beside_the_writer() {
    let (_folder, mut log) = log_of((0..200).map(|n| apply(WEB, n)));
    let reader = log.reader();
    let exporting = std::thread::spawn(move || {
        let ask = || reader.export(&Query::window(at(0), at(200)), Format::Native, std::io::sink()).unwrap().records;
        (0..50).map(|_| ask()).collect::<Vec<_>>()
    });
    for n in 200..3_000 {
        log.append(at(n), apply(WEB, n as u64)).unwrap();
        if n % 10 == 0 {
            log.sync().unwrap();
        }
    }
    assert!(exporting.join().unwrap().iter().all(|records| *records == 202));
}

#[test]
fn a_window_that_begins_before_a_young_recording_begins_with_it_and_says_so() {
    let (_folder, log) = log_of([apply(WEB, 1), apply(WEB, 2)]);
    let (trace, exported) = export(&log, &Query::window(at(-1_800), at(9)), Format::Native);
    assert_eq!((trace.span(), exported.gaps), (Some((at(0), at(9))), 1));
    let gap = trace.gaps().unwrap().next().unwrap().unwrap();
    assert_eq!((gap.from, gap.to, gap.reason.as_str()), (at(-1_800), at(0), "the tracer was not there yet"));
    let wholly_before = Query::window(at(-1_800), at(0));
    let refused = log.reader().export(&wholly_before, Format::Native, std::io::sink()).unwrap_err();
    assert!(matches!(refused, ExportError::OutsideRetention { .. }), "{refused}");
}

#[test]
fn what_is_not_seen_even_now_is_a_gap_up_to_the_end_of_the_window() {
    let pod: sk_core::Gvk = "v1.Pod".parse().unwrap();
    let (_folder, log) = log_of([facts::watched("v1.Pod", "1"), Fact::Lost(pod.clone()), apply(WEB, 1)]);
    let open_gap = |from, kind: &str| Gap {
        from: at(from),
        to: at(from),
        kind: Some(kind.parse().unwrap()),
        reason: "forbidden".into(),
    };
    let of = |open_gaps| {
        let query = Query { open_gaps, ..Query::window(at(1), at(9)) };
        let (trace, _) = export(&log, &query, Format::Native);
        let gap = |gap: Gap| (gap.kind.unwrap().kind.to_string(), gap.from, gap.to, gap.reason == "forbidden");
        trace.gaps().unwrap().map(|row| gap(row.unwrap())).collect::<Vec<_>>()
    };
    let lost = ("Pod".to_owned(), at(0), at(9), false);
    assert_eq!(of(vec![]), std::slice::from_ref(&lost));
    assert_eq!(of(vec![open_gap(3, "v1.Node")]), [lost.clone(), ("Node".to_owned(), at(3), at(9), true)]);
    assert_eq!(of(vec![open_gap(20, "v1.Node")]), [lost], "it begins after the window");
    assert_eq!(of(vec![open_gap(0, "v1.Pod")]), [("Pod".to_owned(), at(0), at(9), true)], "it is told once");
}

#[test]
fn an_end_that_is_a_guess_is_told_as_one() {
    let mut seen = pod("web-1", Some(WEB), at(1), Some("n1"));
    seen.attributions.push(attribution(WEB));
    (seen.finished, seen.deleted) = (Some(at(2)), Some(at(3)));
    let mut guessed = sk_store::log::PodFacts { uid: "guessed".into(), started: Some(at(2)), ..seen.clone() };
    guessed.guessed = true;
    let (_folder, log) = log_of([apply(WEB, 1), Fact::Pod(Box::new(seen)), Fact::Pod(Box::new(guessed))]);
    let (trace, _) = export(&log, &Query::window(at(0), at(9)), Format::JsonLines);
    let mut observed: Vec<_> = trace.observations().unwrap().map(|row| row.unwrap().guessed).collect();
    observed.sort_unstable();
    assert_eq!(observed, [false, true]);
    let lives = trace.lives().unwrap().next().unwrap().unwrap().templates.remove(0).lives;
    assert_eq!(
        lives.iter().map(|life| (life.start, life.guessed)).collect::<Vec<_>>(),
        [(at(1), false), (at(2), true)]
    );
}

#[test]
fn labels_that_are_asked_for_are_asked_of_each_object_and_not_of_its_owners() {
    let labelled = |text: &str, owner: Option<&str>, label: bool| {
        let mut applied = applied(text, 1);
        let mut body = facts::body(&applied.object, 1);
        body["metadata"]["labels"] = if label { json!({"team": "a"}) } else { json!({}) };
        applied.body = body.to_string().into();
        applied.owners.extend(owner.map(owned_by));
        Fact::Applied(applied)
    };
    let mut of_job = pod("pay-1-x", Some("batch/v1.Job hr/pay-1"), at(0), Some("n1"));
    of_job.attributions = vec![attribution("batch/v1.Job hr/pay-1"), attribution("batch/v1.CronJob hr/pay")];
    let (_folder, log) = log_of([
        labelled("batch/v1.CronJob hr/pay", None, false),
        labelled("batch/v1.Job hr/pay-1", Some("batch/v1.CronJob hr/pay"), true),
        Fact::Pod(Box::new(of_job)),
    ]);
    let team = LabelSelector::from_match_labels(&json!({"team": "a"})).unwrap();
    let query = Query { included_labels: vec![team.clone()], ..Query::window(at(0), at(9)) };
    let (trace, exported) = export(&log, &query, Format::Native);
    assert_eq!(told(&trace), ["(nothing)", "apply Job hr/pay-1", "(nothing)"]);
    assert_eq!((exported.lives, exported.observations), (1, 1));
    let query = Query { excluded_labels: vec![team], ..Query::window(at(0), at(9)) };
    let (trace, exported) = export(&log, &query, Format::Native);
    assert_eq!(told(&trace), ["(nothing)", "apply CronJob hr/pay", "(nothing)"]);
    assert_eq!(exported.observations, 0, "what is not wanted takes its pods with it");
}

#[test]
fn what_belongs_to_a_pod_of_a_daemon_set_is_left_out_wherever_the_pod_stands_in_the_log() {
    let mut owned = applied("v1.ConfigMap default/of-agent", 1);
    owned.owners.push(sk_core::OwnerReference { uid: facts::uid_of("agent"), ..owned_by("v1.Pod default/agent") });
    let mut by_name = applied("v1.ConfigMap default/of-other", 1);
    by_name.owners.push(owned_by("v1.Pod default/other"));
    let daemon = |name: &str| {
        let pod = pod(name, Some("apps/v1.DaemonSet default/agent"), at(0), Some("n1"));
        Fact::Pod(Box::new(pod))
    };
    let facts = [daemon("agent"), Fact::Applied(owned), Fact::Applied(by_name), apply(WEB, 1), daemon("other")];
    let (_folder, log) = log_of(facts);
    let (trace, _) = export(&log, &Query::window(at(0), at(9)), Format::Native);
    assert_eq!(told(&trace), ["(nothing)", "apply Deployment default/web", "(nothing)"]);
}

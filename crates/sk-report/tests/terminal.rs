//! The terminal summary: to the letter for the founding story, and within its bounds for every other run.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod story;

use sk_core::SimDuration;
use sk_record::{NodeRow, PodRow, SeriesRow, Warning, WarningKind};
use sk_report::figure::ToFigure;
use sk_report::terminal::{COLUMNS, LINES, Occasion, render};
use sk_report::{Analysis, Assertion, Judgement, Scope, Tables, Terms, check};
use unicode_width::UnicodeWidthStr;

const TRIES: [&str; 2] =
    ["skctl why @ default/nginx", "skctl run example:nginx --set autoscaler.scale-down-unneeded-time=2m"];

fn plain(tables: &Tables, assertions: &[&str]) -> String {
    in_columns(tables, assertions, None)
}

fn in_columns(tables: &Tables, assertions: &[&str], columns: Option<usize>) -> String {
    let analysis = Analysis::of(tables).unwrap();
    let assertions: Vec<_> = assertions.iter().map(|text| Assertion { name: None, text: (*text).into() }).collect();
    let verdicts = check(&assertions, &tables.meta.groups, Scope::default()).unwrap().judge(&analysis.summary.figure());
    let judgement = Judgement::of(&analysis, verdicts, &Terms::default());
    let tries = TRIES.map(String::from);
    let report = Some("runs/nginx-3fa91c/report.html");
    let occasion = Occasion { wall_s: Some(0.12), report, tries: &tries, columns };
    let text = render(&analysis, &judgement, &occasion);
    anstream::adapter::strip_str(&text).to_string()
}

fn within_bounds(text: &str) {
    // What goes on below a line that had to be broken is on top of the bound.
    let goes_on = |line: &&str| {
        line.starts_with("                ") && line.trim_start().starts_with(char::is_alphabetic)
            || line.starts_with("         ") && line.trim_start().starts_with("10,")
    };
    let lines = text.lines().filter(|line| !goes_on(line)).count();
    assert!(lines <= LINES, "{lines} lines:\n{text}");
    for line in text.lines() {
        assert!(line.width() <= COLUMNS, "{} columns: {line}", line.width());
        assert!(!line.contains('\x1b') && line.trim_end() == line, "{line:?}");
    }
}

#[test]
fn the_founding_story_reads_as_it_should() {
    let text = plain(&story::nginx(), &["unschedulable.pods == 0", "nodes.max <= 10"]);
    within_bounds(&text);
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/nginx.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(golden, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(golden).unwrap_or_default());
}

#[test]
fn every_failure_is_shown_with_its_values() {
    let one = plain(&story::nginx(), &["nodes.max <= 9", "unschedulable.pods == 0"]);
    within_bounds(&one);
    assert!(one.contains("FAIL   1 of 2 assertions failed"), "{one}");
    assert!(one.contains("nodes.max <= 9   (nodes.max = 10)"), "{one}");
    let many = plain(&story::nginx(), &["nodes.max <= 9"; 40]);
    assert_eq!(many.matches("nodes.max <= 9   (nodes.max = 10)").count(), 40, "{many}");
}

#[test]
fn what_limits_trust_is_part_of_the_answer() {
    let mut tables = story::nginx();
    let warning = |kind, message: &str| Warning { code: "X".into(), kind, message: message.into(), count: 3 };
    tables.meta.partial = true;
    tables.meta.warnings = vec![
        warning(WarningKind::Unmodelled, "volumes of 3 pods are not modelled"),
        warning(WarningKind::Assumed, "node sizes are assumed"),
    ];
    let trust = "TRUST  stopped before its end · node sizes are assumed\n       \
                 volumes of 3 pods are not modelled\n       example trace, nothing recorded to compare with\n";
    for assertions in [&["nodes.max <= 9"][..], &[]] {
        let text = plain(&tables, assertions);
        assert!(text.contains(trust), "{text}");
    }
    let text = plain(&tables, &[]);
    assert!(!text.contains("all of it is modelled"), "{text}");
    assert!(text.contains("PARTIAL: stopped before its end · 12 pods created, 12 ran"), "{text}");
}

#[test]
fn any_run_stays_within_80_columns_and_24_lines() {
    let nginx = story::nginx;
    let mut empty = Tables { pods: vec![], nodes: vec![], series: vec![], decisions: vec![], ..nginx() };
    within_bounds(&plain(&empty, &[]));
    empty.meta.end = empty.meta.start;
    within_bounds(&plain(&empty, &[]));

    let mut one_event = nginx();
    one_event.pods.truncate(1);
    one_event.nodes.truncate(1);
    one_event.series.truncate(1);
    within_bounds(&plain(&one_event, &[]));

    let mut week = nginx();
    week.meta.end = week.meta.start + SimDuration::from_mins(7 * 24 * 60);
    within_bounds(&plain(&week, &[]));
    assert!(plain(&week, &[]).contains("0     1d     2d"), "{}", plain(&week, &[]));

    let mut groups = nginx();
    for (number, node) in groups.nodes.iter_mut().enumerate() {
        node.group = Some(format!("group-{}", number % 5));
    }
    within_bounds(&plain(&groups, &["nodes.max <= 9", "nodes.min > 4"]));
}

#[test]
fn every_warning_is_told_worst_first_however_many_there_are() {
    let mut tables = story::nginx();
    let warning = |number: u64| Warning {
        code: "X".into(),
        kind: WarningKind::Unmodelled,
        message: format!("something number {number} is not modelled"),
        count: number,
    };
    tables.meta.warnings = (1..=30).map(warning).collect();
    for columns in [None, Some(60), Some(40)] {
        let text = in_columns(&tables, &["nodes.max <= 9", "nodes.min > 4"], columns);
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let places: Vec<usize> =
            (1..=30).rev().map(|number| words.find(&format!("number {number} is")).unwrap()).collect();
        assert!(places.is_sorted(), "{text}");
        assert!(!text.contains("more"), "{text}");
        assert!(text.contains("report  runs/") && text.contains("try     skctl why @ default/nginx"), "{text}");
    }
}

#[test]
fn a_narrow_terminal_breaks_lines_between_words_and_cuts_nothing() {
    let assertions = ["unschedulable.pods == 0", "nodes.max <= 9"];
    let wide = plain(&story::nginx(), &assertions);
    for columns in [60, 40] {
        let text = in_columns(&story::nginx(), &assertions, Some(columns));
        for line in text.lines() {
            let is_copied = line.contains("report.html") || line.contains("skctl ");
            assert!(is_copied || line.width() <= columns, "{} columns: {line}\n{text}", line.width());
        }
        assert!(!text.contains('…'), "{text}");
        for word in wide.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric)) {
            // A smaller picture has room for fewer of them.
            let is_tick = word.ends_with('m') || word.starts_with('×') || word == "deleted";
            assert!(is_tick || text.contains(word), "{word} in\n{text}");
        }
        for figure in ["p99 1m12s", "max 10", "4.4 node-hours", "nginx  40m"] {
            assert!(text.contains(figure), "{figure} in\n{text}");
        }
    }
    assert_eq!(in_columns(&story::nginx(), &assertions, Some(200)), wide, "wider than 80 is not needed");
}

#[test]
fn long_and_hostile_names_do_not_break_the_lines() {
    let mut tables = story::nginx();
    let long = "x".repeat(253);
    tables.meta.name = long.clone();
    tables.meta.currency = "a very long currency indeed".into();
    for pod in &mut tables.pods {
        pod.owner = format!("default/Deployment/{long}");
        pod.waited_for = Some(format!("0/9 nodes are available: 9 node(s) had untolerated taint {{{long}: 日本}}."));
    }
    for node in &mut tables.nodes {
        node.group = Some(format!("日本語\n\x1b[31m{long}"));
    }
    tables.series = vec![SeriesRow { key: format!("default/Deployment/{long}"), ..story::replicas(0, Some(1e18)) }];
    let text = plain(
        &tables,
        &[&format!("nodes.max <= 9 || namespaces[\"{long}\"].pods.created == 1").replace(&long, "default")],
    );
    within_bounds(&text);
}

#[test]
fn what_can_be_copied_is_never_cut() {
    let mut tables = story::nginx();
    tables.meta.run_id = format!("{}-3fa91c", "x".repeat(90));
    let analysis = Analysis::of(&tables).unwrap();
    let judgement = Judgement::of(&analysis, Vec::new(), &Terms::default());
    let path = format!("{}/report.html", "some/folder/".repeat(12));
    let command = format!("skctl run {} --set cluster.groups.small.max=9", "some/folder/".repeat(12));
    for columns in [None, Some(60), Some(40), Some(0)] {
        let occasion = Occasion { wall_s: None, report: Some(&path), tries: std::slice::from_ref(&command), columns };
        let text = anstream::adapter::strip_str(&render(&analysis, &judgement, &occasion)).to_string();
        for whole in [&tables.meta.run_id, &path, &command] {
            assert!(text.contains(whole.as_str()), "{whole} in\n{text}");
        }
    }
}

#[test]
fn pods_that_were_never_placed_and_fail_an_assertion_are_named_with_their_cause() {
    let mut tables = story::nginx();
    for pod in &mut tables.pods[2..4] {
        (pod.scheduled, pod.started, pod.node) = (None, None, None);
    }
    // One that is gone by the end, and one that still waits then.
    tables.pods[3].deleted = None;
    tables.pods[3].owner = "default/Deployment/other".into();
    let text = plain(&tables, &["unschedulable.pods == 0"]);
    within_bounds(&text);
    let (_, told) = text.split_once("never placed  ").unwrap();
    let told = told.lines().next().unwrap();
    assert!(told.contains("default/Deployment/other 1 pod: Insufficient cpu"), "{text}");
    assert!(told.ends_with("; +1 more"), "{text}");
    tables.pods[3].owner = story::OWNER.into();
    tables.pods[3].deleted = tables.pods[2].deleted;
    let text = plain(&tables, &["unschedulable.pods == 0"]);
    assert!(text.contains("never placed  default/Deployment/nginx 2 pods: Insufficient cpu\n"), "{text}");
    let fine = plain(&story::nginx(), &["nodes.max <= 9"]);
    assert!(!fine.contains("never placed"), "{fine}");
}

#[test]
fn huge_runs_stay_within_the_lines_too() {
    let mut tables = story::nginx();
    tables.pods =
        (0..3_000).map(|number| PodRow { node: Some("small-1".into()), ..story::pod(number, 0, 60, 2_000) }).collect();
    tables.nodes =
        (0..3_000).map(|number| NodeRow { price_per_hour: Some(1e9), ..story::node(number, 0, 0, None) }).collect();
    tables.series = (0..2_000).map(|number| story::replicas(number, Some(number as f64))).collect();
    within_bounds(&plain(&tables, &[]));
}

//! Verdicts that cannot mislead: terminal, page, Markdown, JSON, JUnit and exit code say the same, and nothing that was
//! not simulated is green in any of them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod story;

use sk_core::SimDuration;
use sk_record::{Basis, Engine, Missing, MissingWhy, Warning, WarningKind};
use sk_report::figure::ToFigure;
use sk_report::terminal::{COLUMNS, Occasion};
use sk_report::{
    Analysis, Assertion, Evaluated, Exit, Judgement, Mark, Scope, Tables, Terms, Verdict, check, html, json, junit,
    markdown, terminal,
};
use unicode_width::UnicodeWidthStr;

fn missing(kind: &str, object: &str, pods: i64, cpu_m: i64) -> Missing {
    Missing {
        why: MissingWhy::NoController,
        kind: kind.into(),
        object: object.into(),
        objects: 1,
        pods: Some(pods),
        cpu_m: Some(cpu_m),
        basis: Basis::Estimated,
        message: None,
    }
}

/// A run whose trace had more than was simulated.
fn incomplete() -> Tables {
    let mut tables = story::nginx();
    tables.meta.missing = vec![
        missing("apps/StatefulSet", "data/StatefulSet/kafka", 3, 12_000),
        missing("apps/StatefulSet", "data/StatefulSet/zoo", 5, 2_500),
        missing("argoproj.io/Rollout", "shop/Rollout/checkout", 27, 16_500),
    ];
    tables
}

fn unknown() -> Missing {
    Missing { pods: None, cpu_m: None, basis: Basis::Unknown, ..missing("batch/CronJob", "batch/CronJob/etl", 0, 0) }
}

/// What one run looks like everywhere.
struct Shown {
    judgement: Judgement,
    terminal: String,
    json: serde_json::Value,
    junit: String,
    html: String,
    markdown: String,
}

fn show(tables: &Tables, assertions: &[&str], terms: &Terms) -> Shown {
    let analysis = Analysis::of(tables).unwrap();
    let assertions: Vec<_> = assertions.iter().map(|text| Assertion { name: None, text: (*text).into() }).collect();
    let verdicts = check(&assertions, &tables.meta.groups, Scope::default()).unwrap().judge(&analysis.summary.figure());
    shown(&analysis, verdicts, terms)
}

fn shown(analysis: &Analysis, verdicts: Vec<Verdict>, terms: &Terms) -> Shown {
    let judgement = Judgement::of(analysis, verdicts, terms);
    let terminal = terminal::render(analysis, &judgement, &Occasion::default());
    Shown {
        terminal: anstream::adapter::strip_str(&terminal).to_string(),
        json: serde_json::from_str(&json::render(analysis, &judgement).unwrap()).unwrap(),
        junit: junit::render(analysis, &judgement),
        html: html::render(analysis, &judgement, None).unwrap(),
        markdown: markdown::render(analysis, &judgement),
        judgement,
    }
}

impl Shown {
    /// All of them say this word, and the exit code says so too.
    fn says(&self, mark: Mark, exit: Exit) {
        let word = mark.word();
        assert_eq!((self.judgement.mark, self.judgement.exit()), (mark, exit), "{}", self.terminal);
        assert!(self.terminal.lines().any(|line| line.starts_with(word)), "{}", self.terminal);
        assert_eq!(self.json["verdict"], word);
        assert!(self.html.contains(&format!("<title>{word} ")));
        assert!(self.markdown.contains(&format!(": {word}\n")), "{}", self.markdown);
    }
}

const HOLDS: &[&str] = &["nodes.max <= 10"];
const FAILS: &[&str] = &["nodes.max <= 9"];

fn terms(accept: &[&str], strict: bool) -> Terms {
    Terms { accept: accept.iter().map(ToString::to_string).collect(), strict }
}

#[test]
fn a_whole_run_passes_fails_or_is_done() {
    let tables = story::nginx();
    show(&tables, HOLDS, &terms(&[], true)).says(Mark::Pass, Exit::Good);
    show(&tables, FAILS, &terms(&[], false)).says(Mark::Fail, Exit::Bad);
    show(&tables, &[], &terms(&[], false)).says(Mark::Done, Exit::Good);
}

#[test]
fn what_holds_on_an_incomplete_run_is_not_judged_and_what_fails_fails() {
    let shown = show(&incomplete(), HOLDS, &terms(&[], false));
    shown.says(Mark::Incomplete, Exit::Unjudged);
    assert_eq!(shown.json["assertions"][0]["result"], "skipped");
    assert_eq!(shown.json["assertions"][0]["passed"], false);
    assert!(shown.junit.contains("failures=\"0\" errors=\"0\" skipped=\"2\""), "{}", shown.junit);
    assert!(!shown.html.contains("class=\"mark pass\""), "nothing is green");
    show(&incomplete(), FAILS, &terms(&[], false)).says(Mark::Fail, Exit::Bad);
}

#[test]
fn without_assertions_an_incomplete_run_is_no_failure_unless_it_is_strict() {
    let calm = show(&incomplete(), &[], &terms(&[], false));
    calm.says(Mark::Incomplete, Exit::Good);
    assert!(calm.junit.contains("tests=\"1\" failures=\"0\" errors=\"0\" skipped=\"1\""), "{}", calm.junit);
    let strict = show(&incomplete(), &[], &terms(&[], true));
    strict.says(Mark::Incomplete, Exit::Bad);
    assert!(strict.junit.contains("failures=\"1\""), "{}", strict.junit);
}

#[test]
fn the_headline_has_the_numbers_and_the_worst_comes_first() {
    let shown = show(&incomplete(), &[], &terms(&[], false));
    assert!(shown.terminal.contains("INCOMPLETE: about 35 pods, 31 CPU not simulated"), "{}", shown.terminal);
    let place = |text: &str| shown.terminal.find(text).unwrap_or_else(|| panic!("{text} in {}", shown.terminal));
    assert!(place("Rollout  about 27 pods, 17 CPU") < place("StatefulSet  about 8 pods, 15 CPU"), "{}", shown.terminal);
    assert!(place("data/kafka 3 pods 12 CPU") < place("data/zoo 5 pods 2.5 CPU"), "{}", shown.terminal);
    assert!(shown.terminal.lines().all(|line| line.width() <= COLUMNS), "{}", shown.terminal);
    let objects: Vec<&str> =
        shown.json["not_simulated"].as_array().unwrap().iter().map(|one| one["object"].as_str().unwrap()).collect();
    assert_eq!(objects, ["shop/Rollout/checkout", "data/StatefulSet/kafka", "data/StatefulSet/zoo"]);
    assert_eq!(shown.json["missing"]["pods"], 35);
}

#[test]
fn every_kind_is_named_however_many_there_are() {
    let mut tables = story::nginx();
    let kinds: Vec<String> = (0..30).map(|number| format!("Kind{number}")).collect();
    tables.meta.missing =
        kinds.iter().map(|kind| missing(&format!("a.io/{kind}"), &format!("a/{kind}/x"), 1, 100)).collect();
    let shown = show(&tables, &[], &terms(&[], false));
    for kind in &kinds {
        assert!(shown.terminal.contains(&format!("{kind}  about 1 pod")), "{kind} in {}", shown.terminal);
    }
    assert!(!shown.terminal.contains("more\n"), "{}", shown.terminal);
}

#[test]
fn a_list_that_has_no_room_for_all_objects_says_where_they_are() {
    let mut tables = story::nginx();
    tables.meta.missing = (0..40).map(|number| missing("a.io/Kind", &format!("a/Kind/x{number}"), 1, 100)).collect();
    let shown = show(&tables, &[], &terms(&[], false));
    assert!(shown.terminal.contains("Kind  about 40 pods, 4 CPU: a/x0 1 pod"), "{}", shown.terminal);
    assert!(shown.terminal.contains("… all 40 are in summary.json"), "{}", shown.terminal);
    assert_eq!(shown.json["not_simulated"].as_array().map(Vec::len), Some(40));
}

#[test]
fn numbers_that_nobody_knows_are_said_to_be_unknown() {
    let mut tables = story::nginx();
    tables.meta.missing = vec![unknown()];
    let alone = show(&tables, &[], &terms(&[], false));
    assert!(alone.terminal.contains("INCOMPLETE: 1 object of unknown size not simulated"), "{}", alone.terminal);
    tables.meta.missing.extend(incomplete().meta.missing);
    let both = show(&tables, &[], &terms(&[], false));
    assert!(both.terminal.contains("about 35 pods, 31 CPU, and 1 object of unknown size"), "{}", both.terminal);
}

#[test]
fn gaps_that_the_scenario_accepts_by_name_are_judged_and_named_and_never_green() {
    let every = ["no-controller", "apps/StatefulSet", "StatefulSet", "data/StatefulSet/kafka"];
    for name in every {
        let mut tables = incomplete();
        tables.meta.missing.truncate(1);
        let shown = show(&tables, HOLDS, &terms(&[name], false));
        shown.says(Mark::Pass, Exit::Good);
        assert!(shown.terminal.contains("accepted: about 3 pods, 12 CPU not simulated"), "{}", shown.terminal);
        assert!(shown.terminal.contains("StatefulSet, accepted"), "{}", shown.terminal);
        assert!(!shown.html.contains("<h1><span class=\"mark pass\""), "{name}");
        assert_eq!(shown.json["not_simulated"][0]["accepted"], true);
    }
    show(&incomplete(), HOLDS, &terms(&["apps/StatefulSet"], false)).says(Mark::Incomplete, Exit::Unjudged);
}

#[test]
fn accepted_warnings_do_not_fail_a_strict_run() {
    let mut tables = story::nginx();
    let message = "volumes are not modelled".to_owned();
    tables.meta.warnings = vec![Warning { code: "volumes".into(), kind: WarningKind::Unmodelled, message, count: 1 }];
    let strict = show(&tables, HOLDS, &terms(&[], true));
    strict.says(Mark::Fail, Exit::Bad);
    assert!(strict.junit.contains("failures=\"1\""), "{}", strict.junit);
    show(&tables, HOLDS, &terms(&["volumes"], true)).says(Mark::Pass, Exit::Good);
    show(&tables, HOLDS, &terms(&[], false)).says(Mark::Pass, Exit::Good);
}

#[test]
fn a_run_without_a_simulated_pod_is_not_judged() {
    let mut tables = Tables { pods: vec![], decisions: vec![], ..story::nginx() };
    let shown = show(&tables, &[], &terms(&[], false));
    shown.says(Mark::Incomplete, Exit::Unjudged);
    assert!(shown.terminal.contains("INCOMPLETE: no pod was simulated"), "{}", shown.terminal);
    assert!(shown.junit.contains("errors=\"1\""), "{}", shown.junit);
    // Pods that no scheduler ever looked at were not simulated either, accepted or not.
    tables.pods = story::nginx().pods;
    for pod in &mut tables.pods {
        (pod.scheduled, pod.started, pod.waited_for, pod.node) = (None, None, None, None);
    }
    show(&tables, &[], &terms(&["other-scheduler"], false)).says(Mark::Incomplete, Exit::Unjudged);
}

#[test]
fn a_partial_run_is_judged_only_where_it_fails() {
    let mut tables = story::nginx();
    tables.meta.partial = true;
    show(&tables, HOLDS, &terms(&[], false)).says(Mark::Partial, Exit::Unjudged);
    show(&tables, FAILS, &terms(&[], false)).says(Mark::Fail, Exit::Bad);
    show(&tables, &[], &terms(&[], false)).says(Mark::Partial, Exit::Good);
    show(&tables, &[], &terms(&[], true)).says(Mark::Partial, Exit::Bad);
}

#[test]
fn an_assertion_about_what_the_run_does_not_have_is_an_error_and_no_pass() {
    let shown = show(&story::nginx(), &["namespaces[\"payments\"].evicted.pods == 0"], &terms(&[], false));
    shown.says(Mark::Incomplete, Exit::Unjudged);
    assert_eq!(shown.json["assertions"][0]["result"], "error");
    assert!(shown.junit.contains("errors=\"1\""), "{}", shown.junit);
    assert!(shown.terminal.contains("nothing under namespaces[\"payments\"]"), "{}", shown.terminal);
}

#[test]
fn an_assertion_whose_evaluation_was_stopped_is_no_pass() {
    let analysis = Analysis::of(&story::nginx()).unwrap();
    let result = Evaluated::Unknown("it takes more than 5 s".into());
    let verdict = Verdict { name: None, text: "nodes.max <= 10".into(), result, values: vec![] };
    shown(&analysis, vec![verdict], &terms(&[], false)).says(Mark::Incomplete, Exit::Unjudged);
}

#[test]
fn what_a_clusters_api_server_refused_is_missing_too() {
    let mut tables = story::nginx();
    tables.meta.engine = Engine::Cluster;
    let message = "refused: Deployment shop/web: spec.replicas must be a number".to_owned();
    tables.meta.warnings = vec![Warning { code: "refused".into(), kind: WarningKind::Gap, message, count: 2 }];
    let shown = show(&tables, HOLDS, &terms(&[], false));
    shown.says(Mark::Incomplete, Exit::Unjudged);
    assert!(shown.terminal.contains("2 objects of unknown size"), "{}", shown.terminal);
    show(&tables, HOLDS, &terms(&["refused"], false)).says(Mark::Pass, Exit::Good);
}

#[test]
fn a_failed_assertion_about_unschedulable_pods_names_them_and_their_cause() {
    let mut tables = story::nginx();
    for pod in tables.pods.iter_mut().filter(|pod| pod.waited_for.is_some()).take(2) {
        (pod.scheduled, pod.started, pod.node, pod.deleted, pod.ended_by) = (None, None, None, None, None);
    }
    let shown = show(&tables, &["unschedulable.pods == 0"], &terms(&[], false));
    shown.says(Mark::Fail, Exit::Bad);
    assert!(shown.terminal.contains("never placed  default/Deployment/nginx"), "{}", shown.terminal);
    assert!(shown.terminal.contains("Insufficient cpu"), "{}", shown.terminal);
    assert!(shown.terminal.lines().count() <= terminal::LINES, "{}", shown.terminal);
}

#[test]
fn names_forge_no_line_and_turn_no_text_around() {
    let forged = "x\nPASS   9 of 9 assertions\u{202e}\u{2028}\u{200f}";
    let mut tables = incomplete();
    tables.meta.missing[0].object = forged.into();
    tables.meta.missing[0].message = Some(forged.into());
    for pod in &mut tables.pods {
        (pod.owner, pod.name, pod.namespace) = (forged.into(), forged.into(), forged.into());
        pod.waited_for = pod.waited_for.take().map(|_| forged.into());
    }
    let shown = show(&tables, HOLDS, &terms(&[], false));
    for text in [&shown.terminal, &shown.markdown, &shown.junit, &shown.html] {
        assert!(!text.contains(['\u{202e}', '\u{2028}', '\u{200f}']), "{text}");
    }
    for text in [&shown.terminal, &shown.markdown, &shown.junit] {
        assert!(!text.lines().any(|line| line.starts_with("PASS   9")), "{text}");
    }
}

#[test]
fn pods_that_came_too_late_to_run_are_counted_in_the_headline() {
    let mut tables = story::nginx();
    assert!(!show(&tables, &[], &Terms::default()).terminal.contains("starting at the end"));
    let mut late = tables.pods[0].clone();
    late.created = tables.meta.end - SimDuration::from_secs(1);
    (late.scheduled, late.started, late.finished, late.deleted) = (None, None, None, None);
    (late.node, late.waited_for, late.ended_by) = (None, None, None);
    tables.pods.push(late);
    let shown = show(&tables, &[], &Terms::default());
    assert!(shown.terminal.contains("ran, 1 starting at the end; "), "{}", shown.terminal);
}

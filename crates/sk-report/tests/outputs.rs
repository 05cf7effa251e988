//! report.html, summary.json, junit.xml, CSV and Markdown: whole, bounded, the same twice, and harmless whatever a trace holds.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod story;

use sk_record::{
    AutoscalerRow, Decided, DecisionRow, Happened, NodeRow, PodRow, SeriesRow, Trigger, Warning, WarningKind,
};
use sk_report::figure::ToFigure;
use sk_report::{Analysis, Assertion, Judgement, Scope, Tables, Terms, check, csv, html, json, junit, markdown};

fn judged(tables: &Tables, assertions: &[&str]) -> (Analysis, Judgement) {
    let analysis = Analysis::of(tables).unwrap();
    let assertions: Vec<_> =
        assertions.iter().map(|text| Assertion { name: Some(format!("<b>{text}")), text: (*text).into() }).collect();
    let verdicts = check(&assertions, &tables.meta.groups, Scope::default()).unwrap().judge(&analysis.summary.figure());
    let judgement = Judgement::of(&analysis, verdicts, &Terms::default());
    (analysis, judgement)
}

fn page(tables: &Tables) -> String {
    let (analysis, judgement) = judged(tables, &["nodes.max <= 9"]);
    html::render(&analysis, &judgement, Some(html::Asked { text: "kind: Scenario\n", differs: &[] })).unwrap()
}

/// A run in which every text that a trace or scenario can bring is hostile.
fn hostile(text: &str) -> Tables {
    let mut tables = story::nginx();
    let meta = &mut tables.meta;
    for field in [&mut meta.run_id, &mut meta.name, &mut meta.currency, &mut meta.kubernetes, &mut meta.trace.name] {
        *field = text.into();
    }
    meta.warnings = vec![Warning { code: text.into(), kind: WarningKind::Unmodelled, message: text.into(), count: 1 }];
    for PodRow { namespace, name, owner, waited_for, .. } in &mut tables.pods {
        (*namespace, *name, *owner) = (text.into(), text.into(), text.into());
        *waited_for = waited_for.take().map(|_| text.into());
    }
    for NodeRow { group, .. } in &mut tables.nodes {
        *group = Some(text.into());
    }
    for SeriesRow { key, .. } in &mut tables.series {
        *key = text.into();
    }
    for DecisionRow { namespace, pod, owner, message, node, .. } in &mut tables.decisions {
        (*namespace, *pod, *owner) = (text.into(), text.into(), text.into());
        *message = message.take().map(|_| text.into());
        *node = node.take().map(|_| text.into());
    }
    tables
}

#[test]
fn a_hostile_name_stays_text() {
    let attack = "</script><script>alert('1')</script><!--\"><img src=x onerror=alert(1)>\u{2028}";
    let calm = page(&story::nginx());
    let attacked = page(&hostile(attack));
    assert!(attacked.contains("&lt;script&gt;alert(&#39;1&#39;)"), "it is shown");
    assert!(attacked.contains("\\u003c/script>"), "it is in the data");
    for tag in ["<script", "</script", "<img", "<!--"] {
        assert_eq!(attacked.matches(tag).count(), calm.matches(tag).count(), "{tag}");
    }
    let (analysis, judgement) = judged(&hostile(attack), &["nodes.max <= 9"]);
    for text in [junit::render(&analysis, &judgement), markdown::render(&analysis, &judgement)] {
        assert!(!text.contains("<script>") && !text.contains("<img") && !text.contains("<b>"), "{text}");
    }
}

#[test]
fn the_page_asks_nobody_for_anything() {
    let page = page(&story::nginx());
    let without_namespace = page.replace("http://www.w3.org/2000/svg", "");
    for outside in ["http://", "https://", "src=", "@import", "url(//", "fetch(", "XMLHttpRequest"] {
        assert!(!without_namespace.contains(outside), "{outside}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn the_same_run_gives_the_same_page() {
    assert_eq!(page(&story::week(50)), page(&story::week(50)));
}

#[test]
fn the_largest_and_most_hostile_run_stays_below_ten_megabytes() {
    for filling in ["w", "<"] {
        // Few pods with long names weigh as much as many: a page is bounded by bytes.
        let mut tables = story::week(450);
        let message = filling.repeat(1_000);
        for (number, decision) in tables.decisions.iter_mut().enumerate() {
            decision.message = Some(format!("{number} {message}"));
            decision.pod.push_str(&message);
        }
        for (number, pod) in tables.pods.iter_mut().enumerate() {
            pod.name.push_str(&message);
            pod.waited_for = pod.waited_for.take().map(|_| format!("{number} {message}"));
            pod.owner = format!("{}{}", pod.owner, filling.repeat(300));
        }
        for (number, node) in tables.nodes.iter_mut().enumerate() {
            node.name = format!("node-{number}-{}", filling.repeat(240));
            node.group = Some(format!("group-{number}-{}", filling.repeat(60)));
        }
        let told = |number: usize| autoscaler(number as i64, &message);
        tables.autoscaler = (0..15_000).map(told).collect();
        tables.meta.timeline = (0..2_000).map(|number| fault(number, &message)).collect();
        let analysis = Analysis::of(&tables).unwrap();
        let scenario = "# <>&\n".repeat(50_000);
        let judgement = Judgement::of(&analysis, Vec::new(), &Terms::default());
        let page = html::render(&analysis, &judgement, Some(html::Asked { text: &scenario, differs: &[] })).unwrap();
        assert!(page.len() < html::BYTES_MAX, "{filling}: {} bytes", page.len());
        assert!(page.contains("showing 200 of 450 owners"));
        assert!(page.contains("the rest is in scenario.yaml"));
    }
}

/// A decision of the autoscaler about a node and an owner of long names.
fn autoscaler(number: i64, message: &str) -> AutoscalerRow {
    AutoscalerRow {
        time: story::at(number),
        loop_number: number,
        trigger: Trigger::Timer,
        decision: Decided::NoScaleUp,
        namespace: Some("default".into()),
        pod: Some(format!("pod-{number}")),
        owner: Some(format!("default/Deployment/web-{number}-{message}")),
        node: None,
        group: None,
        nodes_before: None,
        nodes_after: None,
        pods: Some(1),
        options: None,
        event: Some("NotTriggerScaleUp".into()),
        message: Some(format!("{number} {message}")),
    }
}

fn fault(number: i64, message: &str) -> Happened {
    Happened { at: story::at(number), until: None, entry: 0, what: format!("loseNodes: {message}") }
}

/// The JSON that the page's script draws from.
fn data(page: &str) -> serde_json::Value {
    let (_, rest) = page.split_once("id=\"data\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn faults_and_decisions_of_the_autoscaler_are_in_the_page() {
    let mut tables = story::nginx();
    let until = Some(story::at(900));
    tables.meta.timeline = vec![Happened { until, ..fault(600, "small-3") }];
    let about_node = AutoscalerRow { pod: None, owner: None, node: Some("small-3".into()), ..autoscaler(70, "x") };
    let twice = || AutoscalerRow { message: Some("1 max node group size reached".into()), ..autoscaler(300, "x") };
    tables.autoscaler = vec![about_node, twice(), twice()];
    let data = data(&page(&tables));
    assert_eq!(data["faults"], serde_json::json!([[600_000, 900_000, "loseNodes: small-3"]]));
    let scalings = &data["scalings"];
    assert_eq!(scalings["at"], serde_json::json!([70_000, 300_000]), "two pods of one owner are one row");
    assert_eq!(scalings["pods"], serde_json::json!([0, 2]));
    assert_eq!(scalings["subjects"][0], "small-3");
    assert_eq!(scalings["texts"][1], "1 max node group size reached");
}

#[test]
fn empty_and_momentary_runs_have_a_page_too() {
    let empty = Tables { pods: vec![], nodes: vec![], series: vec![], decisions: vec![], ..story::nginx() };
    let (analysis, judgement) = judged(&empty, &[]);
    let page = html::render(&analysis, &judgement, None).unwrap();
    assert!(page.contains("No pod had to wait for a node."));
    let mut momentary = story::nginx();
    momentary.meta.end = momentary.meta.start;
    let (analysis, judgement) = judged(&momentary, &[]);
    html::render(&analysis, &judgement, None).unwrap();
}

#[test]
fn what_is_assumed_makes_the_trust_band_amber() {
    assert!(!page(&story::nginx()).contains("class=\"trust amber\""));
    let mut tables = story::nginx();
    let message = "prices are assumed".into();
    tables.meta.warnings = vec![Warning { code: "P1".into(), kind: WarningKind::Assumed, message, count: 1 }];
    let page = page(&tables);
    assert!(page.contains("class=\"trust amber\"") && page.contains("prices are assumed"));
}

#[test]
fn summary_json_begins_with_the_run_and_its_assertions() {
    let (analysis, judgement) = judged(&story::nginx(), &["nodes.max <= 9"]);
    let text = json::render(&analysis, &judgement).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&text).unwrap();
    let keys: Vec<&str> = summary.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = ["run_id", "verdict", "headline", "strict", "assertions", "not_simulated", "pods", "pending"];
    assert_eq!(keys[..8], expected);
    assert_eq!(summary["verdict"], "FAIL");
    assert_eq!(summary["assertions"][0]["values"]["nodes.max"], "10");
    assert_eq!(summary["start_latency"]["p99"], 72.0);
    assert_eq!(summary["nodes"]["max"], 10);
}

#[test]
fn junit_counts_and_explains_failures() {
    let (analysis, judgement) = judged(&story::nginx(), &["nodes.max <= 9", "unschedulable.pods == 0"]);
    let xml = junit::render(&analysis, &judgement);
    assert!(xml.contains("<testsuite name=\"nginx\" tests=\"2\" failures=\"1\""), "{xml}");
    assert!(xml.contains("<failure message=\"nodes.max &lt;= 9   (nodes.max = 10)\"/>"), "{xml}");
}

#[test]
fn markdown_shows_verdict_figures_and_trust() {
    let (analysis, judgement) = judged(&story::nginx(), &["nodes.max <= 9"]);
    let text = markdown::render(&analysis, &judgement);
    for part in
        ["### nginx-3fa91c: FAIL", "- **FAIL** nodes.max &lt;= 9", "| cost | $0.22 |", "**Trust:** example trace"]
    {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}

#[test]
fn a_shown_figure_is_in_the_page_in_markdown_and_in_csv_without_another_word() {
    let (analysis, judgement) = judged(&story::nginx(), &[]);
    let page = page(&story::nginx());
    let (markdown, csv) = (markdown::render(&analysis, &judgement), csv::render(&analysis));
    let mut shown = 0;
    for (figure, label, value) in sk_report::columns::rows(&analysis) {
        assert!(page.contains(&format!("<td>{label}</td><td class=\"num\">{value}</td>")), "{label} in the page");
        assert!(csv.lines().any(|line| line.contains(&format!(",,{},", figure.path))), "{} in CSV", figure.path);
        assert!(figure.is_rare || markdown.contains(&format!("| {label} | ")), "{label} in Markdown");
        shown += 1;
    }
    assert!(shown >= 15, "{shown}");
}

#[test]
fn csv_holds_every_figure_once_and_names_that_others_chose_stay_in_their_cell() {
    let (analysis, _) = judged(&hostile("a,\"b\"\n=1"), &[]);
    let text = csv::render(&analysis);
    assert!(text.starts_with("run_id,of,name,figure,value\n"));
    assert!(text.contains("\"a,\"\"b\"\"\n=1\",namespaces,\"a,\"\"b\"\"\n=1\",pods.created,12\n"), "{text}");
    assert!(text.contains(",,start_latency.p99,"));
    assert!(!text.contains("\n=1,"), "no line begins with a formula");
}

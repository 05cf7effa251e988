//! Assertions that hold, fail, or cannot be judged.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod story;

use sk_report::baseline::compared;
use sk_report::figure::ToFigure;
use sk_report::{Analysis, Assertion, AssertionError, Evaluated, Scope, Verdict, check};

fn assertion(text: &str) -> Assertion {
    Assertion { name: None, text: text.into() }
}

fn judge(text: &str) -> Result<Verdict, AssertionError> {
    let tables = story::nginx();
    let checked = check(&[assertion(text)], &tables.meta.groups, Scope::default())?;
    Ok(checked.judge(&Analysis::of(&tables).unwrap().summary.figure()).remove(0))
}

fn refused(text: &str) -> String {
    check(&[assertion(text)], &story::meta().groups, Scope::default()).unwrap_err().to_string()
}

#[test]
fn claims_that_hold_pass() {
    for text in [
        "unschedulable.pods == 0",
        "nodes.max <= 10",
        "nodes.mean < 7.0",
        "start_latency.p99 < duration(\"90s\") && pending.longest < duration(\"5m\")",
        "cost.total <= 0.25",
        "node_hours.empty / node_hours.total < 0.5",
        "double(pending.pods) / double(pods.created) <= 0.75",
        "groups[\"small\"].nodes.max == 10",
        "namespaces[\"default\"].evicted.pods == 0",
        "owners.all(o, owners[o].pending.longest < duration(\"10m\"))",
        "owners[\"default/Deployment/nginx\"].pods.created == 10",
        "warnings.total == 0 || warnings.assumed > 0",
        "has(cost.total)",
        "owners.exists(o, o.matches(\"^default/.*/ngin[x]$\"))",
        "!owners.exists(o, o.matches(\"redis\"))",
    ] {
        let verdict = judge(text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(verdict.result, Evaluated::Held, "{}", verdict.with_values());
    }
}

#[test]
fn a_failed_claim_shows_value_beside_limit() {
    let cases = [
        ("nodes.max <= 9", "nodes.max <= 9   (nodes.max = 10)"),
        (
            "start_latency.p99 < duration(\"30s\")",
            "start_latency.p99 < duration(\"30s\")   (start_latency.p99 = 1m12s)",
        ),
        ("cost.total * 2.0 < 0.1", "cost.total * 2.0 < 0.1   (cost.total = 0.2208)"),
        (
            "owners.all(o, owners[o].pending.longest < duration(\"1m\"))",
            "owners.all(o, owners[o].pending.longest < duration(\"1m\"))   \
             (owners[…].pending.longest = at most 1m10s, default/Deployment/nginx)",
        ),
    ];
    for (text, shown) in cases {
        let verdict = judge(text).unwrap();
        assert!(verdict.is_failed());
        assert_eq!(verdict.with_values(), shown);
    }
}

#[test]
fn misspelt_names_are_refused_before_the_run_with_the_name_that_was_meant() {
    let cases = [
        ("nodes.maxx <= 9", "did you mean nodes.max?"),
        ("node.max <= 9", "did you mean nodes?"),
        ("nodes.max <= 9 || start_latncy.p99 < duration(\"1s\")", "did you mean start_latency?"),
        ("nodes.max < 100 || pending.max.worst < 3", "pending.max is a figure"),
        ("owners.all(o, owners[o].pendin.longest < duration(\"1s\"))", "did you mean owners[…].pending?"),
        ("namespaces.payments.evicted.pods == 0", "write namespaces[\"payments\"]"),
        ("groups[\"smal\"].nodes.max < 3", "no group `smal`; it has small"),
        ("frobnicate(nodes.max) == 1", "frobnicate"),
        ("speed == 1", "there are pods, pending,"),
    ];
    for (text, expected) in cases {
        let error = refused(text);
        assert!(error.contains(expected) && error.contains(text), "{error}");
    }
    let error = check(&[assertion("true && nodes.maxx <= 9")], &[], Scope::default()).unwrap_err();
    assert!(error.column.is_some_and(|column| (9..=14).contains(&column)), "{error:?}");
}

#[test]
fn wrong_types_are_refused_before_the_run() {
    let cases = [
        ("start_latency.p99 < 30", "duration(\"30s\")"),
        ("nodes.max < 100 || start_latency.p99 < 30", "duration(\"30s\")"),
        ("cost.total * 2 < 1.0", "does not go with"),
        ("nodes.max", "not true or false"),
        ("nodes.max <", "invalid CEL"),
        ("", "invalid CEL"),
        ("start_latency.p99 < 30s", "write duration(\"30s\") instead of 30s"),
        ("pending.longest < 5m && nodes.max < 3", "write duration(\"5m\") instead of 5m"),
        ("pending.longest < duration(\"1d\")", "no days: write duration(\"24h\")"),
        ("namespace[\"shop\"].evicted.pods == 0", "write namespaces[\"NAME\"] instead of namespace"),
        ("pending.longest < 2d", "write duration(\"48h\") instead of 2d"),
        ("start_latency.p99 < duration(\"1d\")", "duration"),
    ];
    for (text, expected) in cases {
        let error = refused(text);
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn a_pattern_that_is_none_is_an_error_with_its_cause() {
    let error = judge("owners.exists(o, o.matches(\"ng(inx\"))").map(|verdict| verdict.result);
    let text = match error {
        Err(error) => error.to_string(),
        Ok(result) => format!("{result:?}"),
    };
    assert!(text.contains("is not a pattern") && text.contains("ng(inx"), "{text}");
}

#[test]
fn comparisons_need_a_run_to_compare_with() {
    for text in ["cost.total <= baseline.cost.total", "ratio.start_latency.p99 <= 1.1"] {
        assert!(refused(text).contains("--baseline RUN"), "{}", refused(text));
    }
    assert!(refused("fidelity.start_latency.error < 0.15").contains("needs a recording"));
}

#[test]
fn with_a_run_to_compare_with_its_figures_and_the_ratios_are_known() {
    let groups = story::meta().groups;
    let scope = Scope { compared: true, ..Scope::default() };
    let check = |text: &str| check(&[assertion(text)], &groups, scope);
    let own = Analysis::of(&story::nginx()).unwrap().summary;
    let mut other = own.clone();
    other.nodes.max = 2 * own.nodes.max;
    let figures = compared(own.figure(), &other.figure());
    let result = |text: &str| check(text).unwrap().judge(&figures).remove(0);
    assert_eq!(result("nodes.max < baseline.nodes.max").result, Evaluated::Held);
    assert_eq!(result("ratio.nodes.max == 0.5 && ratio.start_latency.p99 <= 1.10").result, Evaluated::Held);
    assert_eq!(result("start_latency.p99 <= baseline.start_latency.p99 + duration(\"5s\")").result, Evaluated::Held);
    let failed = result("ratio.nodes.max >= 1.0");
    assert_eq!(failed.with_values(), "ratio.nodes.max >= 1.0   (ratio.nodes.max = 0.5)");
    let unknown = result("baseline.namespaces[\"nowhere\"].evicted.pods == 0").result;
    let Evaluated::Unknown(why) = unknown else { panic!("{unknown:?}") };
    assert!(why.contains("nothing under baseline.namespaces[\"nowhere\"]"), "{why}");
    assert!(check("baseline.nodes.maxx < 3").unwrap_err().to_string().contains("did you mean baseline.nodes.max?"));
    assert!(check("baseline.groups[\"theirs\"].nodes.max < 3").is_ok(), "the other run may have other groups");
}

#[test]
fn a_mean_of_counts_is_compared_as_a_number() {
    let scope = Scope { mean: true, ..Scope::default() };
    assert!(check(&[assertion("nodes.max <= 36")], &story::meta().groups, scope).is_ok());
    assert!(check(&[assertion("nodes.max * 2.0 <= 36.0")], &story::meta().groups, scope).is_ok());
}

#[test]
fn cost_without_prices_is_refused_with_advice() {
    let free = sk_record::Group { price_per_hour: None, ..story::group("small") };
    let error = check(&[assertion("cost.total < 1.0")], &[free], Scope::default()).unwrap_err().to_string();
    assert!(error.contains("cluster.groups.NAME.price"), "{error}");
}

#[test]
fn a_namespace_that_the_run_does_not_have_cannot_be_judged() {
    let verdict = judge("namespaces[\"defualt\"].pods.created > 0").unwrap();
    let Evaluated::Unknown(error) = verdict.result else { panic!("{verdict:?}") };
    assert!(error.contains("did you mean `default`?"), "{error}");
}

#[test]
fn hostile_expressions_end_in_an_error_and_not_in_a_panic() {
    let deep = "(".repeat(1_000) + "1" + &")".repeat(1_000);
    let nots = "!".repeat(1_500) + "true";
    let minus = "-".repeat(1_500) + "1 == 1";
    let lists = "[".repeat(900) + &"]".repeat(900) + " == 1";
    let long = "nodes.max == 1 && ".repeat(1_000) + "true";
    let calls = "size(".repeat(300) + "'x'" + &")".repeat(300) + " == 1";
    let odd = [
        "\0",
        "\u{202e}",
        "'",
        "\"",
        "`",
        "1 / 0 == 1",
        "9223372036854775807 + 1 > 0",
        "{1: 2, 1: 3} == {}",
        "a.b.c.d.e",
        "[].all(",
        "nodes.max == 1 ? 2 : 3",
        "nodes[0] == 1",
        "pods == pods",
        "\"\\u{0}\"",
        "b\"\\xff\" == b\"\"",
        "x ? y",
        "🦀 == 1",
    ];
    for text in odd.into_iter().chain([&*deep, &*nots, &*minus, &*lists, &*long, &*calls]) {
        let _ = check(&[assertion(text)], &[], Scope::default());
    }
}

#[test]
fn summary_keys_and_assertion_variables_are_the_same_set() {
    let summary = Analysis::of(&story::nginx()).unwrap().summary;
    let json = serde_json::to_value(summary.figure()).unwrap();
    let figures = summary.figure();
    let keys: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, figures.names());
    // Every leaf of the JSON is a figure that an assertion can name.
    let mut leaves = Vec::new();
    gather(&json, String::new(), &mut leaves);
    assert!(leaves.len() > 60, "{}", leaves.len());
    for leaf in leaves {
        let text = format!("{leaf} == {leaf}");
        let verdict = judge(&text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(verdict.result, Evaluated::Held, "{text}");
    }
}

fn gather(json: &serde_json::Value, path: String, leaves: &mut Vec<String>) {
    let Some(object) = json.as_object() else { return leaves.push(path) };
    for (key, value) in object {
        let path = match path.as_str() {
            "" => key.clone(),
            "groups" | "namespaces" | "owners" => format!("{path}[\"{key}\"]"),
            _ => format!("{path}.{key}"),
        };
        gather(value, path, leaves);
    }
}

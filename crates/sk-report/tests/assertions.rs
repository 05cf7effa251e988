//! Assertions that hold, fail, or cannot be judged.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod story;

use sk_report::figure::{Figure, ToFigure};
use sk_report::{Analysis, Assertion, AssertionError, Evaluated, Verdict, check};

fn assertion(text: &str) -> Assertion {
    Assertion { name: None, text: text.into() }
}

fn judge(text: &str) -> Result<Verdict, AssertionError> {
    let tables = story::nginx();
    let checked = check(&[assertion(text)], &tables.meta.groups)?;
    Ok(checked.judge(&Analysis::of(&tables).unwrap().summary.figure()).remove(0))
}

fn refused(text: &str) -> String {
    check(&[assertion(text)], &story::meta().groups).unwrap_err().to_string()
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
    let error = check(&[assertion("true && nodes.maxx <= 9")], &[]).unwrap_err();
    assert!(error.column.is_some_and(|column| (9..=14).contains(&column)), "{error:?}");
}

#[test]
fn wrong_types_are_refused_before_the_run() {
    let cases = [
        ("start_latency.p99 < 30", "duration(\"30s\")"),
        ("nodes.max < 100 || start_latency.p99 < 30", "duration(\"30s\")"),
        ("cost.total * 2 < 1.0", "does not go with"),
        ("nodes.max", "not true or false"),
        ("nodes.max <", "no valid CEL"),
        ("", "no valid CEL"),
        ("start_latency.p99 < 30s", "no valid CEL"),
        ("start_latency.p99 < duration(\"1d\")", "duration"),
    ];
    for (text, expected) in cases {
        let error = refused(text);
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn comparisons_with_other_runs_are_refused_by_name() {
    for text in
        ["cost.total <= baseline.cost.total", "ratio.start_latency.p99 <= 1.1", "fidelity.start_latency.error < 0.15"]
    {
        assert!(refused(text).contains("judges a run by itself only"), "{}", refused(text));
    }
}

#[test]
fn cost_without_prices_is_refused_with_advice() {
    let free = sk_record::Group { price_per_hour: None, ..story::group("small") };
    let error = check(&[assertion("cost.total < 1.0")], &[free]).unwrap_err().to_string();
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
        let _ = check(&[assertion(text)], &[]);
    }
}

#[test]
fn summary_keys_and_assertion_variables_are_the_same_set() {
    let summary = Analysis::of(&story::nginx()).unwrap().summary;
    let json = serde_json::to_value(summary.figure()).unwrap();
    let Figure::Fields(fields) = summary.figure() else { panic!("a summary has fields") };
    let keys: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, fields.iter().map(|(name, _)| name.as_ref()).collect::<Vec<_>>());
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

//! Files that are no scenarios: nothing panics, nothing takes long or much, everything is refused with words.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use sk_api::Scenario;
use sk_api::scenario::{Assignment, Path};

use crate::schema::Validator;

const HEAD: &str = "apiVersion: simkube.io/v1\nkind: Scenario\n";

/// The slowest of these takes a second without optimisation, and a bomb that went off would take hours; between them is
/// room for a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

fn refused(text: &str) -> String {
    let start = Instant::now();
    let said = Scenario::parse("x.yaml", text).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(start.elapsed() < PATIENCE, "{:?} for {said}", start.elapsed());
    said
}

#[test]
fn what_is_no_yaml_is_refused_with_line_and_column() {
    let cases = [
        ("", "x.yaml:1:1: expected a scenario: a mapping that begins with apiVersion, found nothing"),
        ("- a\n- b", "x.yaml:1:1: expected a scenario: a mapping that begins with apiVersion, found a list"),
        (
            "just words",
            "x.yaml:1:1: expected a scenario: a mapping that begins with apiVersion, found the text \"just words\"",
        ),
        ("a: *b", "x.yaml:1:4: nothing before this has the name (`&name`) that it repeats (`*name`)"),
        ("seed: .nan", "x.yaml:1:7: `.nan` is not a number to simulate with"),
        (
            "a: 1\n---\nb: 2",
            "x.yaml:2:1: a scenario is one YAML document: remove what follows `---`, or make it a file of its own",
        ),
        ("a: 1\na: 2", "x.yaml:2:1: `a` stands here twice: keep one of them"),
        (
            "apiVersion: v1\nkind: Node\nmetadata: {name: a}",
            "x.yaml:2:7: kind: this is a Node, not a scenario; say what nodes there are under `cluster.groups`, such as \
             {small: {min: 1, max: 10, cpu: 4, memory: 16Gi}}",
        ),
        (
            "apiVersion: networking.k8s.io/v1\nkind: Ingress",
            "x.yaml:2:7: kind: this is an Ingress, not a scenario; a manifest is replayed as a trace: `skctl run FILE`, \
             without -f",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(refused(text), expected, "{text}");
    }
    for text in ["{a: [b", "a: 'b", "a:\n\t- b", "a: !wibble x", "a: &a [*a]", "? [a]\n: b", "~: b", "a: \u{7}"] {
        assert!(refused(text).starts_with("x.yaml:"), "{text}: {}", refused(text));
    }
}

#[test]
fn deep_nesting_is_refused() {
    for text in ["[".repeat(100_000), "{a: ".repeat(60_000), "- ".repeat(100_000)] {
        let said = refused(&format!("{HEAD}x: {text}"));
        assert!(said.starts_with("x.yaml:"), "{said}");
        assert!(said.len() < 300, "{said}");
    }
    let steps: String = (0..40).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    assert!(refused(&steps).contains("nested more than 32 levels deep"), "{}", refused(&steps));
}

#[test]
fn alias_bombs_are_refused() {
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let inner = vec![format!("*a{}", level - 1); 10].join(", ");
        laughs.push_str(&format!("a{level}: &a{level} [{inner}]\n"));
    }
    assert!(refused(&laughs).contains("more than a scenario may hold"), "{}", refused(&laughs));

    let merges: String =
        (1..200).map(|n| format!("b{n}: &b{n} {{<<: [*b{}, *b{}], k{n}: 1}}\n", n - 1, n - 1)).collect();
    assert!(refused(&format!("b0: &b0 {{k: 1}}\n{merges}")).starts_with("x.yaml:"));

    let long = "y".repeat(16_000);
    let repeats = "  - *long\n".repeat(200);
    let said = refused(&format!("{HEAD}assert:\n  - &long {long}\n{repeats}"));
    assert!(said.contains("more than a scenario may hold"), "{said}");
}

#[test]
fn what_is_too_much_is_said_in_words_for_people() {
    let named: String = (0..300).map(|n| format!("&a{n} 1, ")).collect();
    let repeated = format!("&a 1, {}", "*a, ".repeat(300));
    let laughs = "a: &a [1, 1, 1, 1, 1, 1, 1, 1]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a]\n\
                  c: &c [*b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c]\ne: [*d, *d]";
    for (text, expected) in [
        (format!("x: [{named}]"), "more than 256 parts have a name (`&name`)"),
        (format!("x: [{repeated}]"), "more than 256 times"),
        (laughs.to_owned(), "repeat more than 4096 values"),
        (format!("x: {}", "[".repeat(100)), "nested more than 32 levels deep"),
    ] {
        let said = refused(&format!("{HEAD}{text}"));
        assert!(said.contains(expected), "{expected}: {said}");
        assert!(!said.contains('{') && !said.contains("budget") && !said.contains('='), "{said}");
        let error = Scenario::parse("x.yaml", &format!("{HEAD}{text}")).unwrap_err();
        assert!(std::error::Error::source(&error).is_none(), "nothing of the reader's own words comes behind it");
    }
}

#[test]
fn what_could_not_be_read_again_is_refused() {
    let groups: String = (0..2_000).map(|n| format!("    g{n}: {{max: 1, cpu: 1, memory: 1Gi}}\n")).collect();
    let said = refused(&format!("{HEAD}cluster:\n  groups:\n{groups}"));
    assert!(said.starts_with("x.yaml: with aliases and defaults written out this has "), "{said}");
}

#[test]
fn what_is_too_large_is_refused() {
    let said = refused(&"# a trace\n".repeat(50_000));
    assert_eq!(
        said,
        "x.yaml: 500000 bytes are too many, a scenario has at most 262144: is this a trace? Scenarios are short YAML \
         files, see docs/scenario.md"
    );
    assert!(refused(&format!("name: {}", "x".repeat(20_000))).contains("longer than 16384 bytes"));
    let wide_list = format!("{HEAD}x: [{}]", "1,".repeat(130_000));
    let wide_map: String = (0..20_000).map(|n| format!("  k{n}: 1\n")).collect();
    for wide in [wide_list, format!("{HEAD}x:\n{wide_map}")] {
        assert!(refused(&wide).starts_with("x.yaml:3:1: x: there is no such field"), "{}", refused(&wide));
    }
}

/// What scenarios are made of: in any order, far more of it is nearly right than of random characters.
const PIECES: [&str; 24] = [
    "apiVersion: simkube.io/v1\n",
    "kind: Scenario\n",
    "cluster: {groups: {small: {max: 1, cpu: 1, memory: 1Gi}}}\n",
    "assert:\n",
    "- nodes.max <= 10\n",
    "timing: {profile: ideal}\n",
    "seed: ",
    "autoscaler:\n",
    "  scan-interval: ",
    "60s\n",
    "-1e400\n",
    "0x10",
    "&a ",
    "*a",
    "<<: ",
    "[",
    "]",
    "{",
    "}",
    ", ",
    "\"",
    "|\n  ",
    "? ",
    "--- !x ",
];

fn pieces() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(&PIECES[..]), 0..30).prop_map(|pieces| pieces.concat())
}

/// A value such as JSON has, with texts of any kind.
fn value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<u64>().prop_map(Into::into),
        prop::num::f64::NORMAL.prop_map(Into::into),
        "\\PC{0,12}".prop_map(Into::into),
        any::<String>().prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            prop::collection::btree_map(any::<String>(), inner, 0..6).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

/// Fields to put anything into.
const FIELDS: [&str; 31] = [
    "name",
    "trace",
    "trace.start",
    "begin",
    "cluster",
    "cluster.nodes",
    "cluster.reserved",
    "cluster.currency",
    "cluster.groups",
    "cluster.groups.small",
    "cluster.groups.small.labels",
    "cluster.groups.small.allocatable",
    "cluster.groups.small.taints[0]",
    "cluster.groups.small.price",
    "cluster.groups.small.ready",
    "autoscaler",
    "autoscaler.scale-down-utilization-threshold",
    "scheduler",
    "scheduler.profiles",
    "timing",
    "timing.profile",
    "timing.profile.qps",
    "timeline[0]",
    "timeline[0].set",
    "variants",
    "variants.big",
    "seed",
    "assert",
    "assert[0]",
    "assert[0].name",
    "assert[0].that",
];

/// A good scenario to put it into.
const GOOD: &str = "
apiVersion: simkube.io/v1
kind: Scenario
cluster: {groups: {small: {max: 1, cpu: 1, memory: 1Gi}}}
timing: {profile: {}}
timeline: [{at: +1h, set: {timing.imagePullDelay: 2s}}]
variants: {big: {}}
assert: [{that: a}]
";

#[test]
fn the_good_scenario_is_good() {
    assert_eq!(refused(GOOD), "");
}

proptest! {
    #[test]
    fn no_text_makes_reading_panic(text in any::<String>()) {
        let _ = Scenario::parse("x.yaml", &text);
    }

    #[test]
    fn no_order_of_pieces_makes_reading_panic(text in pieces(), set in pieces()) {
        if let Ok(scenario) = Scenario::parse("x.yaml", &text) {
            prop_assert_eq!(Scenario::parse("y.yaml", &scenario.to_yaml()).unwrap(), scenario);
        }
        if let Ok(set) = format!("cluster.groups={set}").parse::<Assignment>() {
            let _ = Scenario::parse_with("x.yaml", GOOD, &[set]);
        }
    }

    #[test]
    fn whatever_is_put_into_a_field_is_read_back_or_refused(
        field in prop::sample::select(&FIELDS[..]),
        value in value(),
    ) {
        let set: Assignment = format!("{field}={value}").parse().unwrap();
        prop_assert_eq!(set.path(), &field.parse::<Path>().unwrap());
        if let Ok(scenario) = Scenario::parse_with("x.yaml", GOOD, &[set]) {
            let written = scenario.to_yaml();
            let again = Scenario::parse("y.yaml", &written).map_err(|error| format!("{error}\n{written}"));
            prop_assert_eq!(again, Ok(scenario));
            prop_assert_eq!(Validator::new().judge(&written), None, "{}", written);
        }
    }
}

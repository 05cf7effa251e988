//! Good scenarios of any kind: they are read, and what is written out of them says the same.

use proptest::prelude::*;
use serde_json::{Value, json};
use sk_api::Scenario;

use crate::schema::Validator;

fn duration() -> impl Strategy<Value = String> {
    let unit = prop::sample::select(&["us", "ms", "s", "m", "h", "d"][..]);
    let part = (0_u32..10_000, unit).prop_map(|(number, unit)| format!("{number}{unit}"));
    prop_oneof![
        Just("0".to_owned()),
        Just("1.5h".to_owned()),
        prop::collection::vec(part, 1..4).prop_map(|parts| parts.concat())
    ]
}

fn positive_duration() -> impl Strategy<Value = String> {
    // A bare 0 is a duration by itself and no part of another.
    duration().prop_map(|duration| if duration == "0" { "1s".to_owned() } else { format!("1s{duration}") })
}

fn amount() -> impl Strategy<Value = Value> {
    let suffix = prop::sample::select(&["", "m", "k", "Ki", "M", "Mi", "G", "e3", ".5", ".25Gi"][..]);
    let text = (1_u32..100_000, suffix).prop_map(|(number, suffix)| format!("{number}{suffix}").into());
    prop_oneof![text, (1_u32..500).prop_map(Into::into), (0.001_f64..64.0).prop_map(Into::into)]
}

/// Nobody's machine has a few bytes of memory.
fn memory() -> impl Strategy<Value = Value> {
    let suffix = prop::sample::select(&["Mi", "M00", "Gi", ".25Gi"][..]);
    let text =
        (2_u32..100, suffix).prop_map(|(number, suffix)| format!("{number}{}", suffix.replace("M00", "00M")).into());
    prop_oneof![text, (2_000_000_u64..4_000_000_000).prop_map(Into::into)]
}

fn moment() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("now".to_owned()),
        duration().prop_map(|span| format!("-{span}")),
        duration().prop_map(|span| format!("+{span}")),
        (1970_u16..9999, 1_u8..13, 1_u8..29, 0_u8..24).prop_map(|(y, m, d, h)| format!("{y}-{m:02}-{d:02}T{h:02}:00")),
        (1970_u16..9999, 1_u8..13, 0_u32..1_000_000)
            .prop_map(|(y, m, us)| format!("{y}-{m:02}-01T12:00:00.{us:06}+02:00")),
    ]
}

fn name() -> impl Strategy<Value = String> {
    "[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?"
}

/// Names that YAML would like to take for something else.
fn label_value() -> impl Strategy<Value = String> {
    prop_oneof![
        "[A-Za-z0-9]([A-Za-z0-9._-]{0,8}[A-Za-z0-9])?",
        prop::sample::select(&["", "true", "no", "1", "1.10", "0x1", "1e3", "null"][..]).prop_map(str::to_owned)
    ]
}

fn group() -> impl Strategy<Value = Value> {
    let labels = prop::collection::btree_map("([a-z]{1,5}/)?[A-Za-z0-9]{1,5}", label_value(), 0..4);
    let taints = prop::collection::btree_map(
        "[a-z]{1,5}",
        (label_value(), prop::sample::select(&["NoSchedule", "NoExecute"][..])),
        0..3,
    );
    let sizes = (amount(), memory(), 0_u32..100, 100_u32..50_000);
    (sizes, labels, taints, prop::option::of(0.0_f64..1e6), duration()).prop_map(|((cpu, memory, min, max), labels, taints, price, ready)| {
        let taints: Vec<_> =
            taints.into_iter().map(|(key, (value, effect))| json!({"key": key, "value": value, "effect": effect})).collect();
        let gpus = json!({"nvidia.com/gpu": min});
        json!({"min": min, "max": max, "cpu": cpu, "memory": memory, "allocatable": gpus, "labels": labels, "taints": taints, "price": price, "ready": ready})
    })
}

prop_compose! {
    fn scenario()(
        name in name(),
        (start, length) in (moment(), positive_duration()),
        groups in prop::collection::btree_map(name(), group(), 1..5),
        (scan, unneeded, threshold) in (positive_duration(), duration(), 0.0_f64..=1.0),
        (profile, pull, startup) in (prop::sample::select(&["ideal", "real-like"][..]), duration(), duration()),
        seed in any::<u64>(),
        assertions in prop::collection::btree_set("\\PC{1,20}", 0..4),
        named in any::<bool>(),
    ) -> Value {
        let assertions: Vec<Value> = assertions
            .into_iter()
            .filter(|that| !that.trim().is_empty())
            .map(|that| if named { json!({"name": format!("{that}!"), "that": that, "for": "any"}) } else { that.into() })
            .collect();
        json!({
            "apiVersion": "simkube.io/v1",
            "kind": "Scenario",
            "name": name,
            "trace": {"start": start, "duration": length},
            "cluster": {"groups": groups},
            "autoscaler": {"scan-interval": scan, "scale-down-unneeded-time": unneeded, "scale-down-utilization-threshold": threshold},
            "timing": {"profile": profile, "imagePullDelay": pull, "podStartupDelay": startup},
            "seed": seed,
            "assert": assertions,
        })
    }
}

proptest! {
    #[test]
    fn a_good_scenario_is_read_written_out_and_read_again(scenario in scenario()) {
        let text = scenario.to_string();
        let read = Scenario::parse("good.yaml", &text);
        prop_assert!(read.is_ok(), "{}\n{text}", read.unwrap_err());
        let read = read.unwrap();
        let written = read.to_yaml();
        let again = Scenario::parse("written.yaml", &written);
        prop_assert!(again.is_ok(), "{}\n{written}", again.unwrap_err());
        let again = again.unwrap();
        prop_assert_eq!(again.to_yaml(), written.clone());
        prop_assert_eq!(again, read);
        let validator = Validator::new();
        prop_assert_eq!(validator.judge(&text), None);
        prop_assert_eq!(validator.judge(&written), None);
    }
}

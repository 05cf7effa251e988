//! The scenario file as its users write it: what is read, what is refused, and with which words.

use sk_api::Scenario;
use sk_api::scenario::{Assertion, Expander, Holds, Nodes, Path, Profile, Ready};
use sk_core::{Quantity, SimDuration, Taint, TaintEffect, TimeSpec};

/// Every section of the format.
const EVERYTHING: &str = include_str!("everything.yaml");

const SMALLEST: &str = "
apiVersion: simkube.io/v1
kind: Scenario
cluster:
  groups:
    small: {min: 1, max: 10, cpu: 1, memory: 4Gi, price: 0.05, ready: 60s}
assert:
  - unschedulable.pods == 0
  - nodes.max <= 10
";

fn error(text: &str) -> String {
    Scenario::parse("pack.yaml", text).err().map(|error| error.to_string()).unwrap_or_default()
}

/// The smallest scenario with something changed, and what is said about it.
fn error_with(old: &str, new: &str) -> String {
    assert!(SMALLEST.contains(old), "{old}");
    error(&SMALLEST.replacen(old, new, 1))
}

#[test]
fn the_smallest_scenario_is_read_and_the_rest_is_default() {
    let scenario = Scenario::parse("nginx.yaml", SMALLEST).unwrap();
    let group = &scenario.cluster.groups["small"];
    assert_eq!((group.min, group.max, group.price), (1, 10, Some(0.05)));
    assert_eq!(group.ready, Ready::After(SimDuration::from_secs(60)));
    let memory: Quantity = "4Gi".parse().unwrap();
    let all = [("cpu", Quantity::from_value(1)), ("memory", memory), ("pods", Quantity::from_value(110))];
    assert!(group.allocatable.iter().map(|(name, amount)| (name.as_str(), *amount)).eq(all), "{:?}", group.allocatable);
    assert_eq!(group.capacity(), group.allocatable);
    assert_eq!((scenario.seed, scenario.repetitions, scenario.name.as_deref()), (1, 1, None));
    assert_eq!(scenario.cluster.currency, "USD");
    assert_eq!(scenario.autoscaler.scale_down_unneeded_time, SimDuration::from_mins(10));
    assert_eq!(scenario.autoscaler.expander, Expander::LeastWaste);
    assert_eq!(scenario.timing.profile, Profile::RealLike);
    assert_eq!(scenario.timing.pod_startup_delay, SimDuration::from_secs(2));
    assert_eq!(scenario.assertions[1].that, "nodes.max <= 10");
    assert_eq!(scenario.unsupported(), []);
}

#[test]
fn every_section_is_read() {
    let scenario = Scenario::parse("pack.yaml", EVERYTHING).unwrap();
    assert_eq!(scenario.name.as_deref(), Some("pack"));
    assert_eq!(scenario.trace.start, Some(TimeSpec::parse("2026-11-09T00:00:00Z").unwrap()));
    assert_eq!(scenario.trace.duration, Some(SimDuration::from_mins(7 * 24 * 60)));
    let spot = &scenario.cluster.groups["spot"];
    assert_eq!(spot.allocatable["cpu"], Quantity::from_milli(7910));
    assert_eq!(spot.capacity()["cpu"], Quantity::from_value(8));
    assert_eq!(spot.capacity()["pods"], Quantity::from_value(58));
    assert_eq!(spot.taints, [Taint { value: "true".into(), ..Taint::new("spot", TaintEffect::NoSchedule) }]);
    assert_eq!(scenario.timeline.len(), 4);
    let variants: Vec<_> = scenario.variants.iter().map(|variant| variant.name.as_str()).collect();
    assert_eq!(variants, ["as-is", "packed", "packed-36"]);
    assert_eq!(
        scenario.assertions[9],
        Assertion {
            name: Some("the model is good enough to judge by".to_owned()),
            that: "fidelity.start_latency.error < 0.15".to_owned(),
            holds: Holds::Variants(vec!["as-is".into()]),
        }
    );
}

#[test]
fn what_is_not_carried_out_is_named_with_its_place() {
    let scenario = Scenario::parse("pack.yaml", EVERYTHING).unwrap();
    let named: Vec<_> = scenario.unsupported().iter().map(|asked| (asked.path.to_string(), asked.line())).collect();
    let expected = [
        ("trace.overlay", 9),
        ("trace.transform", 10),
        ("begin.placement", 13),
        ("begin.warmup", 14),
        ("cluster.reserved", 18),
        ("cluster.groups.general.match", 22),
        ("cluster.groups.general.ready", 26),
        ("scheduler", 44),
        ("timeline", 52),
        ("variants", 58),
        ("repetitions", 64),
    ];
    assert_eq!(named, expected.map(|(path, line)| (path.to_owned(), Some(line))));
    assert!(scenario.unsupported()[0].to_string().starts_with("pack.yaml:9:3: trace.overlay: "));

    let scenario = Scenario::parse("x", &SMALLEST.replace("groups:", "nodes: recorded\n  groups:")).unwrap();
    assert_eq!(scenario.cluster.nodes, Nodes::Recorded);
    assert_eq!(scenario.unsupported()[0].path, Path::of(["cluster", "nodes"]));
    let scenario = Scenario::parse("x", &format!("{SMALLEST}timing: {{profile: {{watchLatency: 5ms}}}}")).unwrap();
    assert_eq!(scenario.unsupported()[0].path, Path::of(["timing", "profile"]));
}

#[test]
fn unknown_fields_are_refused_with_the_nearest_and_all_that_are_known() {
    assert_eq!(
        error_with("min: 1", "mim: 1"),
        "pack.yaml:6:13: cluster.groups.small.mim: there is no such field, only `match`, `min`, `max`, `cpu`, `memory`, \
         `allocatable`, `labels`, `taints`, `price` and `ready`; did you mean `min`?"
    );
    let unknown = error_with("assert:", "asert:");
    assert!(unknown.starts_with("pack.yaml:7:1: asert: there is no such field"), "{unknown}");
    assert!(unknown.ends_with("did you mean `assert`?"), "{unknown}");
    // Without a value it is as unknown as with one.
    assert!(error_with("assert:", "wibble:\nassert:").starts_with("pack.yaml:7:1: wibble: there is no such field"));
}

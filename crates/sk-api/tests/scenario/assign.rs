//! `--set PATH=VALUE`: what it changes, and what it says when it cannot.

use sk_api::Scenario;
use sk_api::scenario::{Assignment, Ready};
use sk_core::{Quantity, SimDuration};

use crate::cases::SMALLEST;

fn with(sets: &[&str]) -> Result<Scenario, String> {
    let sets: Result<Vec<Assignment>, _> = sets.iter().map(|set| set.parse()).collect();
    let sets = sets.map_err(|error| error.to_string())?;
    Scenario::parse_with("pack.yaml", SMALLEST, &sets).map_err(|error| error.to_string())
}

#[test]
fn fields_are_changed_added_and_left_to_their_defaults() {
    let scenario = with(&[
        "cluster.groups.small.max=20",
        "cluster.groups.small.ready={p50: 5s, p99: 9s}",
        "cluster.groups.small.ready.p99=8s",
        "cluster.groups.small.labels[\"topology.kubernetes.io/zone\"]=a",
        "cluster.groups.big={max: 3, cpu: 64, memory: 256Gi}",
        "autoscaler.scale-down-unneeded-time=2m",
        "assert[0]=nodes.max <= 20",
        "assert[2]={name: cheap, that: cost.total < 5.0}",
        "trace.start=+30m",
        "seed=7",
        "seed=",
    ])
    .unwrap();
    let small = &scenario.cluster.groups["small"];
    assert_eq!((small.min, small.max), (1, 20));
    assert_eq!(small.ready, Ready::Spread { p50: SimDuration::from_secs(5), p99: SimDuration::from_secs(8) });
    assert_eq!(small.labels["topology.kubernetes.io/zone"], "a");
    assert_eq!(scenario.cluster.groups["big"].cpu, Some(Quantity::from_value(64)));
    assert_eq!(scenario.autoscaler.scale_down_unneeded_time, SimDuration::from_mins(2));
    assert_eq!(scenario.assertions[0].that, "nodes.max <= 20");
    assert_eq!(scenario.assertions[2].name.as_deref(), Some("cheap"));
    assert_eq!(scenario.seed, 1);
}

#[test]
fn what_is_assigned_is_checked_as_if_it_stood_in_the_file() {
    let cases = [
        ("cluster.groups.small.maxx=2", "cluster.groups.small.maxx: there is no such field, only"),
        ("autoscaler.scan-intervall=5s", "autoscaler.scan-intervall: there is no such field, only"),
        ("autoscaler.nodes=4", "autoscaler.nodes: this flag of cluster-autoscaler is not modelled"),
        ("cluster.groups.small.max=ten", "cluster.groups.small.max: expected a whole number"),
        ("cluster.groups.small.min=11", "cluster.groups.small.min: min 11 is more than max 10"),
        (
            "cluster.groups.smal.max=2",
            "cluster.groups.smal.max: there is no `smal`, only `small`; did you mean `small`?",
        ),
        ("cluster.groups.small.max.x=2", "cluster.groups.small.max.x: there are no fields here, so there is no `x`"),
        ("cluster.groups.small[0]=2", "cluster.groups.small[0]: there is no list here, so there is no [0]"),
        ("assert[3]=true", "assert[3]: the list has 2 entries, so the next is [2]"),
        ("seed={a", "seed: this is not valid YAML: "),
        ("seed=1\n---\n2", "seed: a scenario is one YAML document"),
    ];
    for (set, expected) in cases {
        let said = with(&[set]).unwrap_err();
        let expected = format!("--set {}: {expected}", set.replace('\n', "\\n"));
        assert!(said.starts_with(&expected), "{said}\n{expected}");
    }
    assert!(with(&["cluster.groups.small.maxx=2"]).unwrap_err().ends_with("did you mean `max`?"));
}

#[test]
fn what_is_nested_too_deep_to_be_read_again_is_refused() {
    let deepest = format!("scheduler{}=[1]", ".a".repeat(30));
    let scenario = with(&[&deepest]).unwrap();
    assert_eq!(Scenario::parse("written.yaml", &scenario.to_yaml()).unwrap(), scenario);
    let deeper = format!("scheduler{}=[[1]]", ".a".repeat(30));
    assert!(with(&[&deeper]).unwrap_err().ends_with("this is nested more than 32 levels deep, and no scenario is"));
}

#[test]
fn what_is_no_assignment_is_refused() {
    let said = with(&["seed"]).unwrap_err();
    assert_eq!(said, "`seed` has no `=`: write PATH=VALUE, as in cluster.groups.small.max=20");
    assert!(
        with(&["a..b=1"]).unwrap_err().starts_with("`a..b=1` has an invalid path: this is not a path at character 3: ")
    );
    assert!(with(&[&format!("name={}", "x".repeat(20_000))]).unwrap_err().contains("put it into the file"));
    let many = vec!["seed=1"; 1_001];
    assert!(with(&many).unwrap_err().contains("use the file"));
}

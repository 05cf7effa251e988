//! Absurd input is an error or a bound, never a hang or a panic.

use serde_json::{Value, json};
use sk_scheduler::{Configuration, NodeSpec, PodClass};

use crate::support::{World, asks, node, pod};

#[test]
fn a_million_terms_are_refused_and_so_is_what_does_not_parse() {
    let many = vec![json!({"topologyKey": "z", "labelSelector": {}}); 1_001];
    let ports = vec![json!({"hostPort": 1, "containerPort": 1}); 1_001];
    let mut resources = serde_json::Map::new();
    (0..30).for_each(|n| drop(resources.insert(format!("example.com/r{n}"), json!("1"))));
    let cases = [
        (
            json!({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": many}}}),
            "at most 1000",
        ),
        (json!({"containers": [{"name": "m", "ports": ports}]}), "at most 1000"),
        (json!({"containers": [{"name": "m", "resources": {"requests": resources}}]}), "at most 22"),
        (asks("much", "1Gi"), "resources.requests.cpu"),
        (json!({"topologySpreadConstraints": [{"labelSelector": {"matchLabels": {"-": "x"}}}]}), "no label key"),
        (json!({"tolerations": [{"effect": "Sometimes"}]}), "tolerations"),
        (json!({"containers": "none"}), "must be a list"),
    ];
    for (spec, words) in cases {
        let error = PodClass::from_pod(&pod("p", json!({}), spec)).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn absurd_sizes_neither_panic_nor_hang() {
    let huge = |name: &str| {
        node(
            name,
            json!({"status": {"allocatable": {"cpu": "9000000000000000000", "memory": "8Ei", "pods": "9223372036854775807"}}}),
        )
    };
    let nothing = node("nothing", json!({"status": {"allocatable": {"cpu": "0", "memory": "0", "pods": "0"}}}));
    let mut world = World::new([huge("a"), huge("b"), nothing]);
    for n in 0..5 {
        let placed = world.place(&pod(&format!("p{n}"), json!({}), asks("8000000000000000000", "4Ei")));
        assert!(["a", "b"].contains(&placed.as_str()) || placed.starts_with("0/3"), "{placed}");
    }
    let label = "x".repeat(1 << 20);
    world.set_node(&node("c", json!({"metadata": {"labels": {"kubernetes.io/hostname": label}}})));
    assert!(!world.place(&pod("q", json!({"app": label}), json!({}))).is_empty());
}

#[test]
fn any_json_is_a_pod_a_node_or_an_error() {
    for odd in [
        Value::Null,
        json!([]),
        json!("x"),
        json!(1),
        json!({"metadata": [], "spec": 3}),
        json!({"status": {"allocatable": []}}),
    ] {
        let _ = PodClass::from_pod(&odd);
        let _ = NodeSpec::from_json(&odd);
        let _ = Configuration::from_value(&odd);
    }
    let deep = "[".repeat(10_000);
    assert!(Configuration::from_yaml(&deep).is_err());
    assert!(Configuration::from_yaml(&"x".repeat(1 << 20)).is_err());
}

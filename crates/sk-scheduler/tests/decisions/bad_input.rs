//! Absurd input is an error or a bound, never a hang or a panic.

use serde_json::{Value, json};
use sk_scheduler::{Configuration, NodeSpec, PodClass, Profile};

use crate::support::{World, asks, in_zone, node, pod};

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
        (json!({"topologySpreadConstraints": [{"labelSelector": {"matchLabels": {"-": "x"}}}]}), "not a label key"),
        (json!({"tolerations": [{"effect": "Sometimes"}]}), "tolerations"),
        (json!({"containers": "none"}), "must be a list"),
        (json!({"topologySpreadConstraints": [{"maxSkew": i64::MIN}]}), "maxSkew`: must be at least 1"),
        (json!({"topologySpreadConstraints": [{"maxSkew": 1, "minDomains": 0}]}), "minDomains`: must be at least 1"),
    ];
    for (spec, words) in cases {
        let error = PodClass::from_pod(&pod("p", json!({}), spec)).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn too_much_of_anything_that_is_compared_is_refused() {
    const MANY: usize = 1_001;
    let required =
        |half: &str, with: Value| json!({"affinity": {half: {"requiredDuringSchedulingIgnoredDuringExecution": with}}});
    let preferred = |half: &str, with: Value| json!({"affinity": {half: {"preferredDuringSchedulingIgnoredDuringExecution": with}}});
    let exists = json!({"key": "k", "operator": "Exists"});
    let expressions = json!({"matchExpressions": vec![exists.clone(); MANY]});
    let labels: serde_json::Map<String, Value> = (0..MANY).map(|n| (format!("k{n}"), json!("v"))).collect();
    let cases = [
        (1_000_000, required("podAntiAffinity", json!(vec![json!({}); 1_000_000]))),
        (MANY, required("podAffinity", json!([{"topologyKey": "z", "labelSelector": expressions}]))),
        (MANY, required("podAffinity", json!([{"topologyKey": "z", "labelSelector": {"matchLabels": labels}}]))),
        (MANY, required("podAffinity", json!([{"topologyKey": "z", "namespaces": vec!["n"; MANY]}]))),
        (
            MANY,
            required("nodeAffinity", json!({"nodeSelectorTerms": vec![json!({"matchExpressions": [exists]}); MANY]})),
        ),
        (MANY, required("nodeAffinity", json!({"nodeSelectorTerms": [expressions]}))),
        (MANY, preferred("nodeAffinity", json!([{"weight": 1, "preference": expressions}]))),
        (MANY, json!({"nodeSelector": labels})),
        (MANY, json!({"topologySpreadConstraints": [{"topologyKey": "z", "labelSelector": expressions}]})),
        (MANY, json!({"tolerations": vec![json!({"operator": "Exists"}); MANY]})),
    ];
    for (number, (found, spec)) in cases.into_iter().enumerate() {
        let error = PodClass::from_pod(&pod("p", json!({}), spec)).expect_err(&number.to_string()).to_string();
        assert!(error.contains(&format!("has {found} entries; at most 1000")), "{number}: {error}");
    }
}

#[test]
fn absurd_weights_are_refused_or_bounded() {
    let weight = |weight: &str| {
        format!("profiles: [{{plugins: {{score: {{enabled: [{{name: ImageLocality, weight: {weight}}}]}}}}}}]")
    };
    for absurd in ["-1", "1000001", "9223372036854775807", "1e300", "many", "1.5"] {
        let error = Configuration::from_yaml(&weight(absurd)).err().unwrap_or_else(|| panic!("{absurd} is read"));
        assert!(error.to_string().contains("weight"), "{error}");
    }
    // The largest weights that are taken, for every plugin at once, and pods with as many and as large ones as are read.
    let names = [
        "ImageLocality",
        "InterPodAffinity",
        "NodeAffinity",
        "NodeResourcesBalancedAllocation",
        "NodeResourcesFit",
        "PodTopologySpread",
        "TaintToleration",
        "VolumeBinding",
    ];
    let all: Vec<Value> = names.iter().map(|name| json!({"name": name, "weight": 1_000_000})).collect();
    let tree = json!({"profiles": [{"plugins": {"multiPoint": {"enabled": all}}}]});
    let profiles = Configuration::from_value(&tree).unwrap_or_else(|error| panic!("{error}")).profiles;
    let nodes = ["a", "b", "c"].map(|name| in_zone(name, name));
    let mut world = World::with_profiles(nodes, profiles);
    let wish = |weight: i64| {
        let preference =
            json!({"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["b"]}]});
        let term = json!({"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}});
        let many = |one: Value| json!({"preferredDuringSchedulingIgnoredDuringExecution": vec![one; 1_000]});
        let constraint = json!({"maxSkew": i64::MAX, "minDomains": i64::MAX, "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": {"app": "x"}}});
        json!({"affinity": {
            "nodeAffinity": many(json!({"weight": weight, "preference": preference})),
            "podAffinity": many(json!({"weight": weight, "podAffinityTerm": term})),
            "podAntiAffinity": many(json!({"weight": weight, "podAffinityTerm": term})),
        }, "topologySpreadConstraints": [constraint]})
    };
    for weight in [i64::MAX, i64::MIN, -1, 101] {
        let error = PodClass::from_pod(&pod("p", json!({}), wish(weight))).unwrap_err().to_string();
        assert!(error.contains("weight`: must be from 1 to 100"), "{error}");
    }
    for n in 0..5 {
        let placed = world.place(&pod(&format!("p{n}"), json!({"app": "x"}), wish(100)));
        assert!(["a", "b", "c"].contains(&placed.as_str()), "{placed}");
    }
}

#[test]
fn without_profiles_there_is_the_default_one_or_no_scheduler_for_anybody() {
    for text in ["profiles: []", "profiles: null", "profiles: [{}]", "profiles: [{plugins: {}, pluginConfig: []}]"] {
        let read = Configuration::from_yaml(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(read.profiles, [Profile::default()], "{text}");
    }
    for text in ["profiles: {}", "profiles: [null, null]", "profiles: [{schedulerName: ''}]", "profiles: 3"] {
        assert!(Configuration::from_yaml(text).is_err(), "{text}");
    }
    let mut world = World::with_profiles([node("a", json!({}))], Vec::new());
    assert!(!world.scheduler.has_profile("default-scheduler"));
    assert_ne!(world.place(&pod("p", json!({}), json!({}))), "a");
}

#[test]
fn labels_of_a_megabyte_are_compared_and_told_in_bounded_words() {
    let giant = |end: char| format!("{}{end}", "x".repeat(1 << 20));
    let term = |value: &str| {
        json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": [value]}]}}]}}})
    };
    let mut world = World::new([node("a", json!({"metadata": {"labels": {"team": giant('a')}}}))]);
    let wish = json!({"nodeSelector": {"team": giant('b')}});
    assert!(world.place(&pod("p", json!({}), wish)).len() < 1_000);
    assert_eq!(world.place(&pod("q", json!({"app": giant('a')}), json!({"nodeSelector": {"team": giant('a')}}))), "a");
    // Kubernetes takes no selector with such a value, and neither do we.
    assert!(PodClass::from_pod(&pod("r", json!({}), term(&giant('a')))).is_err());
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

#[test]
fn a_configuration_with_very_many_entries_is_refused_by_name() {
    let many = |entry: &dyn Fn(usize) -> Value| -> Value { (0..100_000).map(entry).collect() };
    let strategy = |resources: Value| json!({"scoringStrategy": {"type": "LeastAllocated", "resources": resources}});
    let constraint =
        |at: usize| json!({"maxSkew": 1, "topologyKey": format!("k{at}"), "whenUnsatisfiable": "ScheduleAnyway"});
    let cases = [
        (
            "NodeResourcesFit",
            strategy(many(&|at| json!({"name": format!("example.com/r{at}")}))),
            "scoringStrategy.resources",
        ),
        ("NodeResourcesFit", json!({"ignoredResources": many(&|at| json!(format!("r{at}")))}), "ignoredResources"),
        (
            "PodTopologySpread",
            json!({"defaultingType": "List", "defaultConstraints": many(&constraint)}),
            "defaultConstraints",
        ),
    ];
    for (plugin, args, field) in cases {
        let profile = json!({"schedulerName": "x", "pluginConfig": [{"name": plugin, "args": args}]});
        let error = Configuration::from_value(&json!({"profiles": [profile]})).unwrap_err().to_string();
        let expected = format!("`profiles[0].pluginConfig[0].args.{field}`: has 100000 entries; at most 1000 are read");
        assert_eq!(error, expected);
    }
}

//! Affinity between pods, and spreading.

use serde_json::{Value, json};

use crate::support::{World, all, in_zone, no_victims, node, not_helpful, pod, selector};

const HOST: &str = "kubernetes.io/hostname";
const ZONE: &str = "topology.kubernetes.io/zone";

fn term(app: &str, key: &str) -> Value {
    json!({"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}})
}

fn required(half: &str, term: &Value) -> Value {
    json!({"affinity": {half: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}})
}

fn app(name: &str) -> Value {
    json!({"app": name})
}

fn spread(key: &str, how: &str, more: Value) -> Value {
    let constraint = json!({"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": how,
        "labelSelector": {"matchLabels": {"app": "web"}}});
    json!({"topologySpreadConstraints": [all([constraint, more])]})
}

#[test]
fn pods_that_will_not_share_a_host_do_not_share_one() {
    let mut world = World::new([node("a", json!({})), node("b", json!({}))]);
    let alone = required("podAntiAffinity", &term("web", HOST));
    let mut one = |n: usize| world.place(&pod(&format!("p{n}"), app("web"), alone.clone()));
    let mut hosts = [one(0), one(1)];
    hosts.sort();
    assert_eq!(hosts, ["a", "b"]);
    let words = "2 node(s) didn't match pod anti-affinity rules";
    for n in 2..8 {
        assert_eq!(one(n), format!("0/2 nodes are available: {words}.{}", no_victims(2)));
    }
}

#[test]
fn a_pod_keeps_off_those_that_it_will_not_share_with_though_they_do_not_mind() {
    let mut world = World::new([in_zone("a", "x"), in_zone("b", "x"), in_zone("c", "y")]);
    world.bind("a", &pod("shy", app("shy"), required("podAntiAffinity", &term("web", ZONE))));
    assert_eq!(world.place(&pod("p", app("web"), json!({}))), "c");
    world.cluster().remove_node(sk_scheduler::NodeId(2));
    let words = "2 node(s) didn't satisfy existing pods anti-affinity rules";
    assert_eq!(
        world.place(&pod("q", app("web"), json!({}))),
        format!("0/2 nodes are available: {words}.{}", no_victims(2))
    );
    let shy = world.pods["shy"];
    world.cluster().drop_pod(shy);
    assert_ne!(world.place(&pod("r", app("web"), json!({}))), "c");
}

#[test]
fn the_first_of_a_kind_goes_anywhere_and_the_others_follow() {
    let mut world = World::new([in_zone("a", "x"), in_zone("b", "y"), node("c", json!({}))]);
    let together = required("podAffinity", &term("web", ZONE));
    let said = world.place(&pod("stranger", app("other"), together.clone()));
    let words = "3 node(s) didn't match pod affinity rules";
    assert_eq!(said, format!("0/3 nodes are available: {words}.{}", not_helpful(3)));
    let first = world.place(&pod("p0", app("web"), together.clone()));
    assert_ne!(first, "c", "a node without the label is near nobody");
    assert_eq!(world.place(&pod("p1", app("web"), together.clone())), first);
    assert_eq!(world.place(&pod("stranger-2", app("other"), together)), first);
}

#[test]
fn a_namespace_selector_selects_by_the_labels_of_namespaces() {
    let mut world = World::new([node("a", json!({})), node("b", json!({}))]);
    world.cluster().objects.set_namespace("there", Some([("team".into(), "x".into())].into()));
    let mut old = pod("old", app("web"), json!({}));
    old["metadata"]["namespace"] = json!("there");
    world.bind("a", &old);
    let by_team = |team: &str| all([term("web", HOST), json!({"namespaceSelector": {"matchLabels": {"team": team}}})]);
    let near = |team: &str| required("podAffinity", &by_team(team));
    assert_eq!(world.place(&pod("p", app("p"), near("x"))), "a");
    assert!(world.place(&pod("q", app("q"), near("y"))).contains("didn't match pod affinity rules"));
    world.cluster().objects.set_namespace("there", Some([("team".into(), "y".into())].into()));
    assert_eq!(world.place(&pod("r", app("r"), near("y"))), "a");
}

#[test]
fn match_label_keys_narrow_a_term_to_pods_of_the_same_version() {
    let mut world = World::new([node("a", json!({})), node("b", json!({}))]);
    let labels = |version: &str| json!({"app": "web", "v": version});
    let term = all([term("web", HOST), json!({"matchLabelKeys": ["v"]})]);
    let alone = required("podAntiAffinity", &term);
    world.bind("a", &pod("old", labels("1"), alone.clone()));
    world.bind("b", &pod("old-2", labels("1"), alone.clone()));
    assert!(["a", "b"].contains(&world.place(&pod("new", labels("2"), alone.clone())).as_str()));
    assert!(world.place(&pod("old-3", labels("1"), alone)).starts_with("0/2"));
}

#[test]
fn preferences_count_in_both_directions() {
    let preferred = |half: &str, weight: i64, app: &str| {
        let term = json!({"weight": weight, "podAffinityTerm": term(app, HOST)});
        json!({"affinity": {half: {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}})
    };
    let mut world = World::new([node("a", json!({})), node("b", json!({})), node("c", json!({}))]);
    world.bind("a", &pod("db", app("db"), json!({})));
    world.bind("b", &pod("fan", app("fan"), preferred("podAffinity", 30, "web")));
    world.bind("c", &pod("must", app("must"), required("podAffinity", &term("web", HOST))));
    // Own: -10 on a. Of others: +30 on b; +1, the hard weight, on c. From -10 to 30: 0, 100, 27; times 2.
    let wanted = pod("p", app("web"), preferred("podAntiAffinity", 10, "db"));
    let scores: Vec<i64> = world.scores(&wanted, "InterPodAffinity").into_iter().map(|(_, score)| score).collect();
    assert_eq!(scores, [0, 200, 54]);
}

#[test]
fn a_hard_constraint_lets_no_zone_get_ahead() {
    let mut world = World::new([in_zone("a", "x"), in_zone("b", "x"), in_zone("c", "y"), node("d", json!({}))]);
    let hard = spread(ZONE, "DoNotSchedule", json!({}));
    let zone = |node: &str| if node == "c" { "y" } else { "x" };
    let mut placed: Vec<String> =
        (0..4).map(|n| world.place(&pod(&format!("p{n}"), app("web"), hard.clone()))).collect();
    let zones: Vec<&str> = placed.iter().map(|node| zone(node)).collect();
    assert!(zones == ["x", "y", "x", "y"] || zones == ["x", "y", "y", "x"] || zones[0] == "y", "{placed:?}");
    placed.sort();
    assert_eq!(placed.iter().filter(|node| *node == "c").count(), 2);
    let c = world.node("c");
    world.cluster().remove_node(c);
    // One zone is left, and a node without a zone.
    assert!(["a", "b"].contains(&world.place(&pod("q", app("web"), hard.clone())).as_str()));
    let domains = spread(ZONE, "DoNotSchedule", json!({"minDomains": 2}));
    let words = "1 node(s) didn't match pod topology spread constraints (missing required label), \
                 2 node(s) didn't match pod topology spread constraints";
    let said = world.place(&pod("r", app("web"), domains));
    assert!(said.starts_with(&format!("0/3 nodes are available: {words}.")), "{said}");
}

#[test]
fn nodes_that_a_policy_leaves_out_do_not_count() {
    let tainted = all([in_zone("c", "y"), json!({"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}})]);
    let honor = |policy: &str| spread(ZONE, "DoNotSchedule", json!({"nodeTaintsPolicy": policy}));
    for (policy, expected) in [("Honor", "a"), ("Ignore", "0/2")] {
        let mut world = World::new([in_zone("a", "x"), tainted.clone()]);
        world.bind("a", &pod("old", app("web"), json!({})));
        let said = world.place(&pod("p", app("web"), honor(policy)));
        assert!(said.starts_with(expected), "{policy}: {said}");
    }
}

#[test]
fn pods_of_a_service_spread_by_default() {
    let mut world = World::new([in_zone("a", "x"), in_zone("b", "x"), in_zone("c", "y")]);
    world.bind("a", &pod("old", app("web"), json!({})));
    let new = pod("p", app("web"), json!({}));
    assert!(world.scores(&new, "PodTopologySpread").iter().all(|(_, score)| *score == 0), "nobody selects them yet");
    world.cluster().objects.set_service("default", "web", Some(selector(app("web"))));
    // By host ln 5 = 1.609 and 2 points, by zone ln 4 = 1.386 and 4 points, per pod there. a: 9, b: 7, c: 6 of at most 9:
    // 100·(9+6-9)/9 = 66, 88, 100; times 2.
    let scores: Vec<i64> = world.scores(&new, "PodTopologySpread").into_iter().map(|(_, score)| score).collect();
    assert_eq!(scores, [132, 200, 176], "the search goes round the zones: a, c, b");
    let old = world.pods["old"];
    world.cluster().update_pod(old, |pod| pod.deleting = true);
    let scores: Vec<i64> = world.scores(&new, "PodTopologySpread").into_iter().map(|(_, score)| score).collect();
    assert_eq!(scores, [200, 200, 200], "a pod that is being deleted does not count");
}

#[test]
fn the_owners_selector_spreads_too() {
    let mut world = World::new([node("a", json!({})), node("b", json!({}))]);
    world.bind("a", &pod("old", app("web"), json!({})));
    let mut new = pod("p", app("web"), json!({}));
    new["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "controller": true}]);
    let kind = sk_scheduler::class::OwnerKind::ReplicaSet;
    let even = |scores: Vec<(String, i64)>| scores[0].1 == scores[1].1;
    assert!(even(world.scores(&new, "PodTopologySpread")));
    world.cluster().objects.set_owner(kind, "default", "web", Some(selector(app("web"))));
    assert!(!even(world.scores(&new, "PodTopologySpread")));
    world.cluster().objects.set_owner(kind, "default", "web", None);
    assert!(even(world.scores(&new, "PodTopologySpread")));
}

//! Scores of single plugins, worked out by hand from their sources.

use serde_json::{Value, json};
use sk_scheduler::Profile;
use sk_scheduler::framework::profile::Strategy;

use crate::support::{World, all, asks, node, pod};

fn named(scores: &[(&str, i64)]) -> Vec<(String, i64)> {
    scores.iter().map(|(name, score)| ((*name).to_owned(), *score)).collect()
}

fn sized(name: &str, cpu: &str, memory: &str) -> Value {
    node(name, json!({"status": {"allocatable": {"cpu": cpu, "memory": memory}}}))
}

#[test]
fn least_allocated_is_the_mean_of_the_free_shares() {
    let mut world = World::new([sized("a", "4", "8Gi"), sized("b", "8", "8Gi")]);
    world.bind("a", &pod("old", json!({}), asks("1", "2Gi")));
    // a: (4-2)/4 = 50 and (8-4)/8 = 50; b: (8-1)/8 = 87 and (8-2)/8 = 75, mean 81.
    let scores = world.scores(&pod("p", json!({}), asks("1", "2Gi")), "NodeResourcesFit");
    assert_eq!(scores, named(&[("a", 50), ("b", 81)]));
    // Missing requests count as 100m and 200Mi: a: (4000-1100)/40 = 72, (8192-2248)/81.92 = 72.
    assert_eq!(world.scores(&pod("q", json!({}), json!({})), "NodeResourcesFit")[0], ("a".to_owned(), 72));
}

#[test]
fn other_strategies_and_resources_score_as_configured() {
    let mut most = Profile::default();
    most.fit.strategy = Strategy::MostAllocated;
    most.fit.resources = vec![("cpu".into(), 3), ("memory".into(), 1)];
    let mut world = World::with_profiles([sized("a", "4", "8Gi"), sized("b", "8", "8Gi")], vec![most]);
    // a: (25·3 + 25)/4 = 25; b: (12·3 + 25)/4 = 15.
    assert_eq!(
        world.scores(&pod("p", json!({}), asks("1", "2Gi")), "NodeResourcesFit"),
        named(&[("a", 25), ("b", 15)])
    );

    let mut ratio = Profile::default();
    ratio.fit.strategy = Strategy::RequestedToCapacityRatio(vec![(0, 0), (50, 10), (100, 2)]);
    let mut world = World::with_profiles([sized("a", "4", "8Gi"), sized("b", "8", "8Gi")], vec![ratio]);
    // 25 % is half way to 10 points: 50; b has 12 % of its CPU: 24. (24+50)/2 = 37.
    assert_eq!(
        world.scores(&pod("p", json!({}), asks("1", "2Gi")), "NodeResourcesFit"),
        named(&[("a", 50), ("b", 37)])
    );
}

#[test]
fn balance_is_scored_against_what_it_was() {
    let mut world = World::new([sized("a", "4", "4Gi"), sized("b", "4", "4Gi")]);
    world.bind("a", &pod("old", json!({}), asks("2", "1Mi")));
    let plugin = "NodeResourcesBalancedAllocation";
    // a was 2/4 and nearly 0: 75; with the pod 2/4 and 2/4: 99. 50 + (50+99-75)/2 = 87. b was even: 100; with the pod
    // 0 and 2/4: 75. 50 + (50-25)/2 = 62.
    let scores = world.scores(&pod("p", json!({}), asks("0", "2Gi")), plugin);
    assert_eq!(scores, named(&[("a", 87), ("b", 62)]));
    assert_eq!(world.scores(&pod("best-effort", json!({}), json!({})), plugin), named(&[("a", 0), ("b", 0)]));
}

#[test]
fn soft_taints_and_preferences_are_normalised_over_the_feasible_nodes() {
    let soft = |count: usize| -> Vec<Value> {
        (0..count).map(|n| json!({"key": format!("k{n}"), "effect": "PreferNoSchedule"})).collect()
    };
    let disk = |disk: &str| json!({"metadata": {"labels": {"disk": disk}}});
    let mut world = World::new([
        node("a", all([json!({"spec": {"taints": soft(2)}}), disk("ssd")])),
        node("b", all([json!({"spec": {"taints": soft(1)}}), disk("hdd")])),
        node("c", json!({})),
    ]);
    let plain = pod("p", json!({}), json!({}));
    assert_eq!(world.scores(&plain, "TaintToleration"), named(&[("a", 0), ("b", 150), ("c", 300)]));
    let prefers = |weight: i64, disk: &str| json!({"weight": weight, "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": [disk]}]}});
    let affinity = json!({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [prefers(30, "ssd"), prefers(10, "hdd")]}}});
    assert_eq!(world.scores(&pod("q", json!({}), affinity), "NodeAffinity"), named(&[("a", 200), ("b", 66), ("c", 0)]));
}

#[test]
fn images_count_by_size_and_by_how_many_nodes_have_them() {
    let with =
        |name: &str, size: i64| node(name, json!({"status": {"images": [{"names": ["app:1"], "sizeBytes": size}]}}));
    let mut world =
        World::new([with("a", 500 << 20), with("b", 500 << 20), node("c", json!({})), node("d", json!({}))]);
    // 500 MiB on half of the nodes count as 250 MiB: 100·(250-23)/(1000-23) = 23.
    let scores = world.scores(&pod("p", json!({}), json!({})), "ImageLocality");
    assert_eq!(scores, named(&[("a", 23), ("b", 23), ("c", 0), ("d", 0)]));
}

#[test]
fn a_node_knows_how_common_its_images_were_when_it_was_last_looked_at() {
    let with = |name: &str| node(name, json!({"status": {"images": [{"names": ["app:1"], "sizeBytes": 500 << 20}]}}));
    let mut world = World::new([with("a"), node("b", json!({}))]);
    let image = pod("p", json!({}), json!({}));
    assert_eq!(world.scores(&image, "ImageLocality"), named(&[("a", 23), ("b", 0)]));
    // c comes: it counts two nodes of three, a still one of three until it changes itself.
    world.set_node(&with("c"));
    assert_eq!(world.scores(&image, "ImageLocality"), named(&[("a", 14), ("b", 0), ("c", 31)]));
    world.bind("a", &pod("q", json!({}), json!({})));
    assert_eq!(world.scores(&image, "ImageLocality"), named(&[("a", 31), ("b", 0), ("c", 31)]));
}

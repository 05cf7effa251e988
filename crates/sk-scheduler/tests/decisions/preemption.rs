//! Who goes, where, for whom.

use serde_json::{Value, json};
use sk_scheduler::Decision;
use sk_scheduler::cluster::objects::Budget;
use sk_scheduler::framework::{Criterion, PreemptionExplained};

use crate::support::{World, all, asks, node, pod, selector};

fn worth(priority: i64, cpu: &str) -> Value {
    all([asks(cpu, "1Gi"), json!({"priority": priority})])
}

fn two_nodes() -> World {
    World::new([node("a", json!({})), node("b", json!({}))])
}

#[test]
fn the_node_that_loses_least_is_chosen() {
    // On each node: the pods there, by priority and CPU.
    type Load = &'static [(i64, &'static str)];
    let cases: [(&str, Load, Load, &str); 4] = [
        ("the lowest top priority", &[(100, "2"), (10, "2")], &[(10, "2"), (10, "2")], "-> b: b0 b1"),
        ("the smallest sum", &[(100, "2"), (100, "2")], &[(100, "2"), (10, "2")], "-> b: b0 b1"),
        ("the fewest victims", &[(10, "1"), (10, "1"), (10, "1"), (10, "1")], &[(10, "2"), (10, "2")], "-> b: b0 b1"),
        ("the one that started last", &[(10, "4")], &[(10, "4")], "-> b: b0"),
    ];
    for (why, on_a, on_b, expected) in cases {
        let mut world = two_nodes();
        for (name, load) in [("a", on_a), ("b", on_b)] {
            for (at, (priority, cpu)) in load.iter().enumerate() {
                world.bind(name, &pod(&format!("{name}{at}"), json!({}), worth(*priority, cpu)));
            }
        }
        assert_eq!(world.place(&pod("new", json!({}), worth(1000, "4"))), expected, "{why}");
    }
}

#[test]
fn only_as_many_go_as_must_and_the_least_important_first() {
    let mut world = World::new([node("a", json!({}))]);
    for (name, priority) in [("low", 1), ("mid", 5), ("old-low", 1), ("high", 9)] {
        world.bind("a", &pod(name, json!({}), worth(priority, "1")));
    }
    // Two cores are wanted: of the two of priority 1 both go, since they are the least important.
    assert_eq!(world.place(&pod("new", json!({}), worth(10, "2"))), "-> a: low old-low");
    assert_eq!(world.place(&pod("smaller", json!({}), worth(10, "1"))), "-> a: old-low");
}

#[test]
fn a_budget_protects_its_pods_where_others_can_go() {
    let mut world = two_nodes();
    world.bind("a", &pod("a0", json!({"app": "web"}), worth(1, "4")));
    world.bind("b", &pod("b0", json!({"app": "web2"}), worth(1, "4")));
    let budget = |allowed| Budget { selector: selector(json!({"app": "web2"})), allowed, ..Budget::default() };
    world.cluster().objects.set_budget(("default".into(), "pdb".into()), Some(budget(0)));
    assert_eq!(world.place(&pod("new", json!({}), worth(10, "4"))), "-> a: a0");
    world.cluster().objects.set_budget(("default".into(), "pdb".into()), Some(budget(1)));
    assert_eq!(world.place(&pod("new-2", json!({}), worth(10, "4"))), "-> b: b0", "it started last");
}

#[test]
fn a_polite_pod_waits() {
    let mut world = two_nodes();
    for (name, node) in [("a0", "a"), ("b0", "b")] {
        world.bind(node, &pod(name, json!({}), worth(1, "4")));
    }
    let polite = all([worth(10, "4"), json!({"preemptionPolicy": "Never"})]);
    let words = "no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never.";
    assert_eq!(
        world.place(&pod("new", json!({}), polite)),
        format!("0/2 nodes are available: 2 Insufficient cpu. {words}")
    );
}

#[test]
fn nobody_takes_the_room_that_was_made_for_a_more_important_pod() {
    let mut world = World::new([node("a", json!({}))]);
    world.bind("a", &pod("old", json!({}), worth(1, "4")));
    let chosen = world.create(&pod("chosen", json!({}), worth(100, "4")));
    let Decision::Nominated { node, victims, .. } = world.scheduler.schedule(chosen) else {
        panic!("there is a victim")
    };
    world.cluster().nominate(chosen, node);
    world.cluster().update_pod(chosen, |pod| pod.nominated = Some(node));
    world.cluster().remove_pod(victims[0]);
    let said = world.place(&pod("thief", json!({}), worth(50, "1")));
    assert!(said.starts_with("0/1 nodes are available: 1 Insufficient cpu."), "{said}");
    assert_eq!(world.place(&pod("king", json!({}), worth(1000, "1"))), "a", "a more important one may");
    let king = world.pods["king"];
    world.cluster().drop_pod(king);
    assert_eq!(world.try_again(chosen), "a");
}

#[test]
fn while_its_victim_is_still_going_a_pod_takes_no_other() {
    let mut world = two_nodes();
    world.bind("a", &pod("a0", json!({}), worth(1, "4")));
    world.bind("b", &pod("b0", json!({}), worth(5, "4")));
    let new = world.create(&pod("new", json!({}), worth(100, "4")));
    assert_eq!(world.try_again(new), "-> a: a0");
    let (victim, a) = (world.pods["a0"], world.node("a"));
    world.cluster().nominate(new, a);
    world.cluster().update_pod(new, |pod| pod.nominated = Some(a));
    world.cluster().update_pod(victim, |pod| (pod.deleting, pod.preempted) = (true, true));
    let words = "no new claims to deallocate, preemption: not eligible due to a terminating pod on the nominated node.";
    assert_eq!(world.try_again(new), format!("0/2 nodes are available: 2 Insufficient cpu. {words}"));
}

/// Whoever was tried while a pod was nominated for the node made the port of its victim free: the dry run with the nominated
/// pod, which wants the same port, took it away.
#[test]
fn a_port_stays_taken_while_the_victim_that_has_it_is_going() {
    let mut world = World::new([node("a", json!({}))]);
    let port = || json!({"containers": [{"name": "main", "ports": [{"containerPort": 80, "hostPort": 8080}]}]});
    let wants = |priority: i64| all([json!({"priority": priority}), port()]);
    world.bind("a", &pod("low", json!({}), wants(1)));
    let high = world.create(&pod("high", json!({}), wants(9)));
    assert_eq!(world.try_again(high), "-> a: low");
    let (victim, a) = (world.pods["low"], world.node("a"));
    world.cluster().nominate(high, a);
    world.cluster().update_pod(high, |pod| pod.nominated = Some(a));
    world.cluster().update_pod(victim, |pod| (pod.deleting, pod.preempted) = (true, true));
    assert_eq!(world.place(&pod("passer-by", json!({}), asks("100m", "16Mi"))), "a");
    let said = world.try_again(high);
    assert!(said.contains("1 node(s) didn't have free ports for the requested pod ports"), "{said}");
}

/// The real scheduler adds the plugin that rejects the nominated node to the set of those that named nodes before it speaks of
/// them; ours named NodeAffinity alone.
#[test]
fn a_nominated_pod_that_names_its_node_is_told_who_rejected_that_node_too() {
    let mut world = two_nodes();
    world.bind("a", &pod("a0", json!({}), worth(1, "4")));
    let named = json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}],
    }}}});
    let new = world.create(&pod("new", json!({}), all([worth(100, "4"), named])));
    assert_eq!(world.try_again(new), "-> a: a0");
    let (victim, a) = (world.pods["a0"], world.node("a"));
    world.cluster().nominate(new, a);
    world.cluster().update_pod(new, |pod| pod.nominated = Some(a));
    world.cluster().update_pod(victim, |pod| (pod.deleting, pod.preempted) = (true, true));
    let reasons = "1 Insufficient cpu, 1 node(s) didn't satisfy plugin(s) [NodeAffinity NodeResourcesFit].";
    let said = world.try_again(new);
    assert!(said.starts_with(&format!("0/2 nodes are available: {reasons}")), "{said}");
}

#[test]
fn a_victim_that_only_blocks_by_anti_affinity_is_found() {
    let term = json!({"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}});
    let alone = json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}});
    let mut world = World::new([node("a", json!({}))]);
    world.bind("a", &pod("bystander", json!({}), worth(1, "1")));
    world.bind("a", &pod("shy", json!({"app": "web"}), all([worth(1, "1"), alone.clone()])));
    assert_eq!(world.place(&pod("new", json!({"app": "web"}), all([worth(9, "1"), alone]))), "-> a: shy");
    // Nothing of the dry run is left behind.
    assert_eq!(world.place(&pod("plain", json!({}), worth(1, "2"))), "a");
}

#[test]
fn whoever_makes_room_takes_the_nominations_of_less_important_pods() {
    let mut world = two_nodes();
    let (a, b) = (world.node("a"), world.node("b"));
    let [low, equal, elsewhere, new] = [("low", 1), ("equal", 100), ("elsewhere", 1), ("new", 100)]
        .map(|(name, priority)| world.create(&pod(name, json!({}), worth(priority, "4"))));
    world.cluster().nominate(low, a);
    world.cluster().nominate(equal, a);
    world.cluster().nominate(elsewhere, b);
    assert_eq!(world.cluster().nominations_below(new, a), [low]);
}

/// Decides for a pod that has to make room, and explains it as if it were to be carried out.
fn explained(world: &mut World, new: &Value) -> PreemptionExplained {
    let pod = world.create(new);
    let start = world.scheduler.search_start();
    let Decision::Nominated { node, victims, .. } = world.scheduler.schedule(pod) else { panic!("there is no room") };
    let next = format!("{:?}", world.scheduler.search_start());
    let explained = world.scheduler.explain_preemption(pod, start).expect("there are victims");
    assert_eq!((explained.node, &explained.victims), (node, &victims), "the explanation is of this decision");
    assert_eq!(format!("{:?}", world.scheduler.search_start()), next, "explaining moves no search");
    explained
}

#[test]
fn an_explanation_says_which_rule_chose_the_victims_node() {
    type Load = &'static [(i64, &'static str)];
    let cases: [(Criterion, Load, Load); 6] = [
        (Criterion::LowestHighestPriority, &[(100, "2"), (10, "2")], &[(10, "2"), (10, "2")]),
        (Criterion::LowestSumOfPriorities, &[(100, "2"), (100, "2")], &[(100, "2"), (10, "2")]),
        // Priorities that sum up alike however many they are: each counts as 2^31 more than it is.
        (Criterion::FewestVictims, &[(0, "2"), (-2_147_483_648, "2")], &[(0, "4")]),
        (Criterion::LatestStart, &[(10, "4")], &[(10, "4")]),
        (Criterion::OnlyCandidate, &[(2_000, "4")], &[(10, "4")]),
        (Criterion::FewestBudgetViolations, &[(10, "4")], &[(11, "4")]),
    ];
    for (criterion, on_a, on_b) in cases {
        let mut world = two_nodes();
        for (name, load) in [("a", on_a), ("b", on_b)] {
            for (at, (priority, cpu)) in load.iter().enumerate() {
                world.bind(name, &pod(&format!("{name}{at}"), json!({"on": name}), worth(*priority, cpu)));
            }
        }
        if criterion == Criterion::FewestBudgetViolations {
            let budget = Budget { selector: selector(json!({"on": "a"})), allowed: 0, ..Budget::default() };
            world.cluster().objects.set_budget(("default".into(), "pdb".into()), Some(budget));
        }
        let why = explained(&mut world, &pod("new", json!({}), worth(1000, "4")));
        assert_eq!(why.criterion, criterion);
        assert_eq!(why.candidates, if criterion == Criterion::OnlyCandidate { 1 } else { 2 }, "{criterion:?}");
        assert_eq!((why.budget_violations, why.reprieved.len()), (0, 0), "{criterion:?}");
    }
}

#[test]
fn an_explanation_names_those_who_may_stay_and_the_budgets_that_break() {
    let mut world = World::new([node("a", json!({}))]);
    for (name, priority) in [("low", 1), ("mid", 5), ("lower", 0), ("high", 90)] {
        world.bind("a", &pod(name, json!({"app": "web"}), worth(priority, "1")));
    }
    let budget = Budget { selector: selector(json!({"app": "web"})), allowed: 0, ..Budget::default() };
    world.cluster().objects.set_budget(("default".into(), "pdb".into()), Some(budget));
    let why = explained(&mut world, &pod("new", json!({}), worth(10, "2")));
    let names = |pods: &[sk_scheduler::PodId]| -> Vec<String> {
        pods.iter().map(|pod| world.scheduler.cluster.pod(*pod).name.to_string()).collect()
    };
    assert_eq!(names(&why.victims), ["low", "lower"]);
    assert_eq!(names(&why.reprieved), ["mid"], "`high` was never in question");
    assert_eq!((why.criterion, why.budget_violations), (Criterion::OnlyCandidate, 2));
}

#[test]
fn a_pod_that_preempts_nobody_has_no_victims_to_explain() {
    let mut world = World::new([node("a", json!({}))]);
    let fits = world.create(&pod("fits", json!({}), worth(1, "1")));
    let start = world.scheduler.search_start();
    assert_eq!(world.scheduler.explain_preemption(fits, start), None);
    world.bind("a", &pod("low", json!({}), worth(0, "4")));
    let polite = world.create(&pod("polite", json!({}), all([worth(9, "4"), json!({"preemptionPolicy": "Never"})])));
    assert_eq!(world.scheduler.explain_preemption(polite, start), None);
}

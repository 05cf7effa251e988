//! What no recording shows, because the provider of the rig never fails, knows no prices and has no GPUs: groups without stock,
//! nodes that come late, the price expander and the share of GPUs, as cluster-autoscaler's source has them; and that a
//! quiet cluster has no loops at all.

use std::collections::BTreeMap;

use serde_json::json;
use sk_core::{SimDuration, Taint, TaintEffect};
use sk_engine::api::Object;
use sk_engine::kinds::{NODE, POD};
use sk_engine::{Autoscaler, Decision, Engine, Expander, Limits, NodeGroup, Rule, Verdict};

use crate::small::{after, create, daemon_set, deploy, engine, events, group, sizes};

#[test]
fn nodes_are_balanced_only_among_groups_that_take_the_pods() {
    let grown = |without: Option<Rule>| {
        let mut guarded = group("guarded", 8, 1.0);
        let effect = TaintEffect::NoSchedule;
        guarded.taints = vec![Taint { key: "team".into(), value: "b".into(), effect, time_added: None }];
        let flags = Autoscaler { balance_similar_node_groups: true, without, ..Autoscaler::default() };
        let mut engine = engine(vec![group("open", 8, 1.0), guarded], flags);
        deploy(&mut engine, "web", 4, &json!({"cpu": "5"}));
        engine.advance_to(after(1));
        sizes(&engine)
    };
    assert_eq!(grown(None), BTreeMap::from([("open".to_owned(), 4)]));
    let without = grown(Some(Rule::SimilarGroupsTakeThePods));
    assert!(without.contains_key("guarded"), "left out, the rule is missed: {without:?}");
}

#[test]
fn a_group_without_stock_is_left_alone_and_another_one_helps() {
    let flags = Autoscaler {
        expander: vec![Expander::Priority],
        priorities: BTreeMap::from([("first".into(), 50), ("second".into(), 10)]),
        ..Autoscaler::default()
    };
    let mut engine = engine(vec![group("first", 4, 1.0), group("second", 4, 1.0)], flags);
    engine.set_stock_out("first", after(60));
    engine.set_stock_out("nobody", after(60));
    deploy(&mut engine, "web", 2, &json!({"cpu": "3"}));
    engine.advance_to(after(3));
    assert_eq!(sizes(&engine), BTreeMap::from([("second".to_owned(), 2)]));
    let decisions = engine.take_decisions();
    let told = events(&decisions);
    let failed = told.iter().find(|(_, reason, _)| *reason == "ScaleUpFailed").expect("somebody is told");
    assert!(failed.2.starts_with("Failed adding 2 nodes to group first due to OutOfResource"), "{failed:?}");
    let chosen = |decision: &Decision| {
        let Verdict::ScaleUp { plan, .. } = &decision.verdict else { return None };
        Some(plan[0].group.to_string())
    };
    let chosen: Vec<String> = decisions.iter().filter_map(chosen).collect();
    assert_eq!(chosen, ["first", "second"]);
}

#[test]
fn a_failing_group_is_tried_again_after_ever_longer_times() {
    let mut engine = engine(vec![group("only", 4, 1.0)], Autoscaler::default());
    engine.set_stock_out("only", after(60));
    deploy(&mut engine, "web", 1, &json!({"cpu": "3"}));
    engine.advance_to(after(59));
    let decisions = engine.take_decisions();
    let told = events(&decisions);
    let failures: Vec<i64> =
        told.iter().filter(|(_, reason, _)| *reason == "ScaleUpFailed").map(|(at, ..)| *at).collect();
    assert_eq!(failures, [0, 5, 15, 35], "after 5, 10 and 20 minutes");
    let refused = told.iter().find(|(_, reason, _)| *reason == "NotTriggerScaleUp").expect("the pod is told");
    assert_eq!(refused.2, "pod didn't trigger scale-up: 1 in backoff after failed scale-up");
    assert!(sizes(&engine).is_empty());
    engine.advance_to(after(67));
    assert_eq!(sizes(&engine), BTreeMap::from([("only".to_owned(), 1)]), "there is stock again at the next try");
}

#[test]
fn nodes_that_take_too_long_are_a_failure_of_their_group() {
    let mut slow = group("slow", 4, 1.0);
    slow.ready_delay = SimDuration::from_mins(40);
    let flags = Autoscaler {
        max_node_provision_time: SimDuration::from_mins(10),
        max_node_startup_time: SimDuration::from_mins(60),
        ..Autoscaler::default()
    };
    let mut engine = engine(vec![slow], flags);
    deploy(&mut engine, "web", 1, &json!({"cpu": "3"}));
    engine.advance_to(after(12));
    let decisions = engine.take_decisions();
    let told = events(&decisions);
    let late: Vec<_> = told.iter().filter(|(_, reason, _)| *reason == "ScaleUpTimedOut").collect();
    assert_eq!(late.len(), 1, "{told:?}");
    assert!(late[0].2.starts_with("Nodes added to group slow failed to register within 10m"), "{late:?}");
    deploy(&mut engine, "more", 1, &json!({"cpu": "3"}));
    engine.advance_to(after(14));
    assert_eq!(sizes(&engine), BTreeMap::from([("slow".to_owned(), 1)]), "it is left alone");
    engine.advance_to(after(45));
    assert!(sizes(&engine)["slow"] > 1, "and then asked again");
}

#[test]
fn the_price_expander_takes_the_group_whose_money_is_best_spent() {
    let grown = |dear: f64, flags: Autoscaler| {
        let mut engine = engine(vec![group("cheap", 4, 0.2), group("dear", 4, dear), group("huge", 32, 1.6)], flags);
        deploy(&mut engine, "web", 3, &json!({"cpu": "3", "memory": "12Gi"}));
        engine.advance_to(after(2));
        sizes(&engine)
    };
    let by_price = || Autoscaler { expander: vec![Expander::Price], ..Autoscaler::default() };
    assert_eq!(grown(0.4, by_price()), BTreeMap::from([("cheap".to_owned(), 3)]));
    assert_eq!(grown(0.1, by_price()), BTreeMap::from([("dear".to_owned(), 3)]), "now that one is cheaper");
}

#[test]
fn of_a_node_with_gpus_only_their_share_counts() {
    let removed = |gpus: u32, threshold: i64| {
        let mut accelerated = group("gpu", 8, 1.0);
        for amounts in [&mut accelerated.capacity, &mut accelerated.allocatable] {
            amounts.insert("nvidia.com/gpu".into(), "4".parse().expect("a quantity"));
        }
        accelerated.initial = Some(2);
        let flags = Autoscaler { scale_down_gpu_utilization_threshold_milli: threshold, ..Autoscaler::default() };
        let mut engine = engine(vec![accelerated], flags);
        // Little CPU: by that the nodes could go.
        deploy(&mut engine, "train", 2, &json!({"cpu": "100m", "nvidia.com/gpu": gpus.to_string()}));
        engine.advance_to(after(30));
        2 - sizes(&engine)["gpu"]
    };
    assert_eq!(removed(1, 500), 1, "both fit onto one node");
    assert_eq!(removed(3, 500), 0, "three quarters of the GPUs are used");
    assert_eq!(removed(2, 400), 0, "half is more than the threshold");
    assert_eq!(removed(2, 500), 1, "half is not");
}

#[test]
fn pods_that_ask_for_gpus_are_waited_for_longer_because_more_of_them_may_come() {
    let asked_at = |requests: &serde_json::Value| {
        let mut accelerated = group("gpu", 8, 1.0);
        for amounts in [&mut accelerated.capacity, &mut accelerated.allocatable] {
            amounts.insert("nvidia.com/gpu".into(), "4".parse().expect("a quantity"));
        }
        let mut engine = engine(vec![accelerated], Autoscaler::default());
        deploy(&mut engine, "train", 1, requests);
        engine.advance_to(after(2));
        let grows = |decision: &&Decision| matches!(decision.verdict, Verdict::ScaleUp { .. });
        let decisions = engine.take_decisions();
        let at = decisions.iter().find(grows).expect("a node is asked for").at;
        at.since(after(0)).as_secs_f64().round()
    };
    assert_eq!(asked_at(&json!({"cpu": "1"})), 10.0, "the first loop");
    assert_eq!(asked_at(&json!({"cpu": "1", "nvidia.com/gpu": "1"})), 30.0, "the first after half a minute");
}

#[test]
fn what_a_daemon_set_takes_of_every_node_is_not_there_for_pods() {
    let mut slotted = group("only", 4, 1.0);
    for amounts in [&mut slotted.capacity, &mut slotted.allocatable] {
        amounts.insert("example.com/slot".into(), "1".parse().expect("a quantity"));
    }
    let mut engine = engine(vec![slotted], Autoscaler::default());
    let taken = json!({"example.com/slot": "1"});
    create(&mut engine, daemon_set(&json!({"requests": taken, "limits": taken})));
    deploy(&mut engine, "web", 1, &taken);
    engine.advance_to(after(5));
    assert!(sizes(&engine).is_empty(), "no new node would help");
    let told = events(&engine.take_decisions());
    assert!(told.iter().any(|(_, _, message)| message.ends_with(": 1 Insufficient example.com/slot")), "{told:?}");
}

/// A pod of a Deployment that takes port 80 of its node.
fn on_port_80(name: &str) -> serde_json::Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "app:1", "ports": [{"containerPort": 80, "hostPort": 80}]}]},
            },
        },
    })
}

#[test]
fn ports_of_a_daemon_set_are_taken_on_every_new_node() {
    let grown = |with_daemons: bool| {
        let mut engine = engine(vec![group("only", 4, 1.0)], Autoscaler::default());
        if with_daemons {
            let mut agent = daemon_set(&json!({}));
            let ports = json!([{"containerPort": 80, "hostPort": 80}]);
            agent["spec"]["template"]["spec"]["containers"][0]["ports"] = ports;
            create(&mut engine, agent);
        }
        create(&mut engine, on_port_80("web"));
        engine.advance_to(after(5));
        (sizes(&engine).get("only").copied().unwrap_or(0), events(&engine.take_decisions()))
    };
    assert_eq!(grown(false).0, 2, "two pods with the same port need two nodes");
    let (nodes, told) = grown(true);
    assert_eq!(nodes, 0, "no new node would help");
    let words = "pod didn't trigger scale-up: 1 node(s) didn't have free ports for the requested pod ports";
    assert!(told.iter().any(|(_, _, message)| message == words), "{told:?}");
}

#[test]
fn a_node_in_removal_takes_no_pods_and_a_scale_up_does_not_stop_its_drain() {
    let mut groups = vec![group("only", 4, 1.0)];
    groups[0].initial = Some(2);
    let mut engine = engine(groups, Autoscaler::default());
    let small = json!({"cpu": "1500m"});
    // One on each node; one node would do for both.
    deploy(&mut engine, "one", 1, &small);
    deploy(&mut engine, "other", 1, &small);
    let going = |engine: &Engine| {
        let is_marked = |node: &Object| {
            node.node().is_some_and(|node| node.spec.taints.iter().any(|t| t.key == "ToBeDeletedByClusterAutoscaler"))
        };
        engine.list(&NODE).find(|node| is_marked(node)).map(|node| node.key.name.clone())
    };
    let mut now = after(5);
    while going(&engine).is_none() {
        now += SimDuration::from_secs(1);
        assert!(now < after(30), "a node goes");
        engine.advance_to(now);
    }
    let node = going(&engine).expect("it is marked");
    // It would fit onto the node that goes, and nowhere else.
    deploy(&mut engine, "late", 1, &json!({"cpu": "2"}));
    engine.advance_to(now + SimDuration::from_mins(3));
    let told = events(&engine.take_decisions());
    assert!(told.iter().any(|(_, reason, _)| *reason == "TriggeredScaleUp"), "a new node is asked for: {told:?}");
    assert!(engine.list(&NODE).all(|known| known.key.name != node), "{node} is gone all the same");
    assert_eq!(sizes(&engine)["only"], 2);
}

#[test]
fn absurd_flags_end_in_a_run() {
    let longest = SimDuration::from_micros(i64::MAX);
    let extremes: [fn(&mut Autoscaler, SimDuration); 3] = [
        |flags, span| {
            flags.scan_interval = span;
            flags.scale_down_unneeded_time = span;
            flags.unremovable_node_recheck_timeout = span;
            flags.node_delete_delay_after_taint = span;
        },
        |flags, span| {
            flags.scale_down_delay_after_add = span;
            flags.scale_down_delay_after_delete = span;
            flags.max_node_startup_time = span;
            flags.max_node_provision_time = span;
            flags.initial_node_group_backoff_duration = span;
            flags.max_node_group_backoff_duration = span;
            flags.node_group_backoff_reset_timeout = span;
        },
        |flags, span| {
            flags.new_pod_scale_up_delay = span;
            flags.max_graceful_termination = span;
            flags.scale_down_unready_time = span;
        },
    ];
    for change in extremes {
        for (span, count, limit) in [(SimDuration::ZERO, 0, 0), (longest, usize::MAX, i64::MAX)] {
            let mut flags = Autoscaler {
                max_nodes_total: count,
                max_nodes_per_scaleup: count,
                max_scale_down_parallelism: count.max(1),
                max_drain_parallelism: count.max(1),
                max_bulk_soft_taint_count: count,
                ok_total_unready_count: count,
                max_total_unready_percentage: count.min(100),
                cores_total: Limits { least: limit, most: limit },
                memory_total_gib: Limits { least: limit, most: limit },
                min_replica_count: limit,
                ..Autoscaler::default()
            };
            change(&mut flags, span);
            let standing = NodeGroup { initial: Some(2), ..group("only", 4, 1.0) };
            let mut engine = engine(vec![standing], flags);
            deploy(&mut engine, "web", 5, &json!({"cpu": "3"}));
            engine.advance_to(after(5));
            assert!(sizes(&engine)["only"] <= 20);
        }
    }
}

#[test]
fn none_as_the_most_nodes_per_scale_up_is_no_limit() {
    let mut engine =
        engine(vec![group("only", 4, 1.0)], Autoscaler { max_nodes_per_scaleup: 0, ..Autoscaler::default() });
    deploy(&mut engine, "web", 5, &json!({"cpu": "3"}));
    engine.advance_to(after(3));
    assert_eq!(sizes(&engine), BTreeMap::from([("only".to_owned(), 5)]));
}

#[test]
fn every_pod_of_a_large_decision_is_told_of_it_once() {
    let roomy = NodeGroup { max: 200, ..group("only", 4, 1.0) };
    let mut engine = engine(vec![roomy], Autoscaler::default());
    deploy(&mut engine, "web", 150, &json!({"cpu": "3"}));
    deploy(&mut engine, "giant", 120, &json!({"cpu": "30"}));
    engine.advance_to(after(5));
    let told = events(&engine.take_decisions());
    let count = |reason: &str| told.iter().filter(|(_, known, _)| *known == reason).count();
    assert_eq!(count("NotTriggerScaleUp"), 120);
    let grown = told.iter().find(|(_, reason, _)| *reason == "TriggeredScaleUp").map(|(_, _, plan)| plan.clone());
    let first = told.iter().filter(|(_, _, message)| Some(message) == grown.as_ref()).count();
    let plan = grown.expect("somebody is helped");
    assert!(first > 100 && plan.ends_with(&format!("0->{first} (max: 200)}}]")), "{first} pods are told: {plan}");
}

#[test]
fn a_quiet_cluster_has_no_loops() {
    let mut calm = group("calm", 4, 1.0);
    (calm.min, calm.initial) = (3, Some(3));
    let mut engine = engine(vec![calm], Autoscaler::default());
    deploy(&mut engine, "web", 6, &json!({"cpu": "1"}));
    engine.advance_to(after(60));
    assert_eq!(engine.next_deadline(), None, "nobody wakes up where nothing can happen");
    deploy(&mut engine, "more", 8, &json!({"cpu": "1"}));
    engine.advance_to(after(62));
    assert_eq!(sizes(&engine)["calm"], 4, "a change sets the timer again");
}

#[test]
fn a_cluster_may_begin_with_a_group_of_fifty_thousand() {
    let vast = NodeGroup { min: 50_000, max: 50_000, ..group("vast", 4, 1.0) };
    let mut engine = engine(vec![vast], Autoscaler::default());
    deploy(&mut engine, "web", 3, &json!({"cpu": "3"}));
    engine.advance_to(after(1));
    assert_eq!(sizes(&engine)["vast"], 50_000);
    let placed = engine.list(&POD).filter(|pod| pod.pod().is_some_and(|pod| pod.node_name.is_some()));
    assert_eq!(placed.count(), 3);
    engine.advance_to(after(60));
    assert_eq!(sizes(&engine)["vast"], 50_000, "none goes below the minimum");
}

#[test]
fn a_group_of_fifty_thousand_is_asked_for_no_more_than_it_needs() {
    let mut vast = group("vast", 4, 1.0);
    vast.max = 50_000;
    let mut engine = engine(vec![vast], Autoscaler::default());
    deploy(&mut engine, "web", 40, &json!({"cpu": "3"}));
    engine.advance_to(after(3));
    assert_eq!(sizes(&engine)["vast"], 40);
    let nobodys = NodeGroup { max: 0, ..group("none", 4, 1.0) };
    let mut engine = self::engine(vec![nobodys], Autoscaler::default());
    deploy(&mut engine, "web", 2, &json!({"cpu": "3"}));
    engine.advance_to(after(3));
    assert!(sizes(&engine).is_empty());
    let told = engine.take_decisions();
    assert!(events(&told).iter().any(|(_, _, message)| message.ends_with("1 max node group size reached")));
}

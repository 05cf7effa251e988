//! Every flag by itself: a small cluster in which that flag decides, once with its default and once with another value.
//!
//! What a flag does that recordings show stands in `rules`. Together the two lists are all the flags that there are, so that
//! none can be read and forgotten.

use std::collections::BTreeSet;

use serde_json::json;
use sk_core::SimDuration;
use sk_engine::kinds::NODE;
use sk_engine::{Autoscaler, Engine, Limits, NodeGroup};

use crate::rules::{BY_FLAG, NOT_SHOWN};
use crate::small::{after, create, daemon_set, deploy, deployment, engine, events, group, sizes};

type Change = fn(&mut Autoscaler);

/// A flag, the cluster in which it shows, what comes out by default, another value, and what comes out then.
type Case = (&'static str, fn(Change) -> String, &'static str, Change, &'static str);

const CASES: &[Case] = &[
    ("cores-total", idle, "0 left", |flags| flags.cores_total = Limits { least: 8, most: 100 }, "2 left"),
    ("memory-total", idle, "0 left", |flags| flags.memory_total_gib = Limits { least: 40, most: 100 }, "3 left"),
    ("memory-total", crowded, "4 made", |flags| flags.memory_total_gib = Limits { least: 0, most: 40 }, "2 made"),
    ("scale-down-enabled", idle, "0 left", |flags| flags.scale_down_enabled = false, "3 left"),
    ("max-node-provision-time", late, "late after 15", |flags| flags.max_node_provision_time = mins(4), "late after 4"),
    (
        "initial-node-group-backoff-duration",
        no_stock,
        "failed at 0 5 15 35",
        |flags| {
            flags.initial_node_group_backoff_duration = mins(2);
        },
        "failed at 0 2 6 14 30",
    ),
    (
        "max-node-group-backoff-duration",
        no_stock,
        "failed at 0 5 15 35",
        |flags| {
            flags.max_node_group_backoff_duration = mins(7);
        },
        "failed at 0 5 12 19 26 33 40 47 54",
    ),
    (
        "node-group-backoff-reset-timeout",
        no_stock,
        "failed at 0 5 15 35",
        |flags| {
            flags.node_group_backoff_reset_timeout = mins(8);
        },
        "failed at 0 5 13 18 26 31 39 44 52 57",
    ),
    (
        "scale-down-unready-time",
        never_ready,
        "gone after 35",
        |flags| flags.scale_down_unready_time = mins(5),
        "gone after 20",
    ),
    (
        "scale-down-unready-enabled",
        never_ready,
        "gone after 35",
        |flags| flags.scale_down_unready_enabled = false,
        "stays",
    ),
    (
        "scale-down-gpu-utilization-threshold",
        half_of_the_gpus,
        "1 left",
        |flags| {
            flags.scale_down_gpu_utilization_threshold_milli = 400;
        },
        "2 left",
    ),
    (
        "ignore-mirror-pods-utilization",
        mirrored,
        "1 left",
        |flags| flags.ignore_mirror_pods_utilization = true,
        "0 left",
    ),
    (
        "cordon-node-before-terminating",
        marked,
        "cordoned",
        |flags| flags.cordon_node_before_terminating = false,
        "open",
    ),
    (
        "daemonset-eviction-for-empty-nodes",
        daemon_alone,
        "0 evicted",
        |flags| {
            flags.daemonset_eviction_for_empty_nodes = true;
        },
        "1 evicted",
    ),
    (
        "blocking-system-pod-distruption-timeout",
        of_the_system,
        "one goes after 71",
        |flags| flags.blocking_system_pod_distruption_timeout = mins(20),
        "one goes after 31",
    ),
    ("min-replica-count", lone_replicas, "1 left", |flags| flags.min_replica_count = 2, "2 left"),
];

fn mins(mins: i64) -> SimDuration {
    SimDuration::from_mins(mins)
}

fn flags(change: Change) -> Autoscaler {
    let mut flags = Autoscaler::default();
    change(&mut flags);
    flags
}

fn count(engine: &Engine) -> usize {
    sizes(engine).values().sum()
}

/// Nodes of 4 CPU and 16 GiB that are there from the start.
fn standing(nodes: u32) -> NodeGroup {
    NodeGroup { initial: Some(nodes), ..group("only", 4, 1.0) }
}

fn idle(change: Change) -> String {
    let mut engine = engine(vec![standing(3)], flags(change));
    engine.advance_to(after(30));
    format!("{} left", count(&engine))
}

fn crowded(change: Change) -> String {
    let mut engine = engine(vec![group("only", 4, 1.0)], flags(change));
    deploy(&mut engine, "web", 4, &json!({"cpu": "3"}));
    engine.advance_to(after(3));
    format!("{} made", count(&engine))
}

/// The minutes in which events of this reason came.
fn minutes(engine: &mut Engine, reason: &str) -> String {
    let told = events(&engine.take_decisions());
    let minutes = told.iter().filter(|(_, known, _)| *known == reason).map(|(minute, ..)| minute.to_string());
    minutes.collect::<Vec<_>>().join(" ")
}

fn late(change: Change) -> String {
    let slow = NodeGroup { ready_delay: mins(50), ..group("only", 4, 1.0) };
    let mut flags = Autoscaler { max_node_startup_time: mins(60), ..Autoscaler::default() };
    change(&mut flags);
    let mut engine = engine(vec![slow], flags);
    deploy(&mut engine, "web", 1, &json!({"cpu": "3"}));
    engine.advance_to(after(19));
    format!("late after {}", minutes(&mut engine, "ScaleUpTimedOut"))
}

fn no_stock(change: Change) -> String {
    let mut engine = engine(vec![group("only", 4, 1.0)], flags(change));
    engine.set_stock_out("only", after(60));
    deploy(&mut engine, "web", 1, &json!({"cpu": "3"}));
    engine.advance_to(after(59));
    format!("failed at {}", minutes(&mut engine, "ScaleUpFailed"))
}

fn never_ready(change: Change) -> String {
    let broken = NodeGroup { ready_delay: mins(10_000), ..group("only", 4, 1.0) };
    let mut engine = engine(vec![broken], flags(change));
    deploy(&mut engine, "web", 1, &json!({"cpu": "3"}));
    engine.advance_to(after(1));
    assert_eq!(count(&engine), 1, "a node was asked for");
    deploy(&mut engine, "web", 0, &json!({"cpu": "3"}));
    let gone = (2..60).find(|minute| {
        engine.advance_to(after(*minute));
        count(&engine) == 0
    });
    gone.map_or("stays".to_owned(), |minute| format!("gone after {}", minute - 1))
}

fn half_of_the_gpus(change: Change) -> String {
    let mut accelerated = standing(2);
    for amounts in [&mut accelerated.capacity, &mut accelerated.allocatable] {
        amounts.insert("nvidia.com/gpu".into(), "4".parse().expect("a quantity"));
    }
    let mut engine = engine(vec![accelerated], flags(change));
    deploy(&mut engine, "train", 2, &json!({"cpu": "100m", "nvidia.com/gpu": "2"}));
    engine.advance_to(after(30));
    format!("{} left", count(&engine))
}

fn mirrored(change: Change) -> String {
    let mut engine = engine(vec![standing(1)], flags(change));
    create(
        &mut engine,
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": "proxy", "namespace": "kube-system",
                "annotations": {"kubernetes.io/config.mirror": "abc", "kubernetes.io/config.source": "file"},
            },
            "spec": {
                "nodeName": "only-1",
                "containers": [{"name": "main", "image": "proxy:1", "resources": {"requests": {"cpu": "3"}}}],
            },
        }),
    );
    engine.advance_to(after(30));
    format!("{} left", count(&engine))
}

fn marked(change: Change) -> String {
    let mut engine = engine(vec![standing(1)], flags(change));
    engine.advance_to(after(30));
    let mut versions = engine.watch(0).expect("half an hour's changes stay within the log");
    let is_cordoned = versions.any(|event| event.object.node().is_some_and(|node| node.spec.unschedulable));
    if is_cordoned { "cordoned" } else { "open" }.to_owned()
}

fn daemon_alone(change: Change) -> String {
    let mut engine = engine(vec![standing(1)], flags(change));
    create(&mut engine, daemon_set(&json!({})));
    engine.advance_to(after(30));
    assert_eq!(engine.list(&NODE).count(), 0, "the node goes either way");
    let told = events(&engine.take_decisions());
    format!("{} evicted", told.iter().filter(|(_, _, message)| message == "deleting pod for node scale down").count())
}

fn lone_replicas(change: Change) -> String {
    let mut engine = engine(vec![standing(2)], flags(change));
    // The scheduler puts one on each node; one node would do.
    deploy(&mut engine, "one", 1, &json!({"cpu": "1500m"}));
    deploy(&mut engine, "other", 1, &json!({"cpu": "1500m"}));
    engine.advance_to(after(30));
    format!("{} left", count(&engine))
}

/// A pod of the system on each of two nodes; one node would do.
fn of_the_system(change: Change) -> String {
    let mut engine = engine(vec![standing(2)], flags(change));
    for name in ["dns", "metrics"] {
        let requests = json!({"cpu": "1500m"});
        let mut deployment = deployment(name, 1, &requests);
        deployment["metadata"]["namespace"] = json!("kube-system");
        create(&mut engine, deployment);
    }
    let gone = (1..120).find(|minute| {
        engine.advance_to(after(*minute));
        count(&engine) == 1
    });
    gone.map_or("both stay".to_owned(), |minute| format!("one goes after {minute}"))
}

/// Is there a small cluster for the flag?
pub(crate) fn is_tried(flag: &str) -> bool {
    CASES.iter().any(|(known, ..)| *known == flag)
}

#[test]
fn each_flag_does_what_it_says_and_nothing_does_it_without() {
    for (flag, run, by_default, change, changed) in CASES {
        assert_eq!(run(|_| {}), *by_default, "{flag} with its default");
        assert_eq!(run(*change), *changed, "{flag} with another value");
    }
}

#[test]
fn no_flag_is_left_untried() {
    // What the engine calls a flag is what cluster-autoscaler calls it, but for units.
    let spelled = format!("{:#?}", Autoscaler::default());
    let fields = spelled.lines().filter_map(|line| line.strip_prefix("    ")?.split_once(':')).map(|(name, _)| name);
    let names = fields.filter(|name| !name.starts_with([' ', '}', ']'])).map(|name| name.replace('_', "-"));
    let units = |name: String| match name.as_str() {
        "max-graceful-termination" => "max-graceful-termination-sec".to_owned(),
        _ => name.trim_end_matches("-milli").trim_end_matches("-gib").to_owned(),
    };
    let is_flag = |name: &String| !["first-loop", "informers", "priorities", "without"].contains(&name.as_str());
    let all: BTreeSet<String> = names.filter(is_flag).map(units).collect();
    let by_recording = BY_FLAG.iter().map(|(flag, ..)| *flag);
    let tried: BTreeSet<String> =
        CASES.iter().map(|(flag, ..)| *flag).chain(by_recording).map(ToOwned::to_owned).collect();
    assert!(all.len() > 40, "{all:?}");
    assert_eq!(all, tried);
    assert!(NOT_SHOWN.iter().all(|flag| CASES.iter().any(|(known, ..)| known == flag)), "they are shown here");
}

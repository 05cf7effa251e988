//! Random workloads on random groups: whatever happens, some things never do.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sk_core::rng::Stream;
use sk_core::{ObjectKey, Quantity, SimDuration, SimTime, SmolStr};
use sk_engine::api::{DeleteOptions, Object, Request};
use sk_engine::kinds::{DEPLOYMENT, NODE};
use sk_engine::{Autoscaler, Engine, Expander, NodeGroup, Rule, Settings, Timing};

use crate::referee::{Referee, likeness};

const START: SimTime = SimTime::from_secs(1_767_600_000);
const SECONDS: i64 = 400;
/// Pods with this label are covered by a budget that allows nothing.
pub(crate) const GUARDED: &str = "guarded";
/// Pods with this label are covered by a budget of their Deployment's that allows one to be missing.
pub(crate) const LIMITED: &str = "limited";

fn group(name: &str, cpu: u64, min: u32, max: u32, ready_secs: i64) -> NodeGroup {
    let quantity = |text: String| text.parse::<Quantity>().expect("a quantity");
    let amounts: BTreeMap<SmolStr, Quantity> =
        [("cpu", cpu.to_string()), ("memory", "16Gi".to_owned()), ("pods", "20".to_owned())]
            .map(|(name, amount)| (name.into(), quantity(amount)))
            .into();
    NodeGroup {
        name: name.into(),
        min,
        max,
        capacity: amounts.clone(),
        allocatable: amounts,
        ready_delay: SimDuration::from_secs(ready_secs),
        price_per_hour: Some(cpu as f64 / 20.0),
        ..NodeGroup::default()
    }
}

fn deployment(name: &str, replicas: u64, cpu_milli: u64, kind: u64) -> Value {
    let mut metadata = json!({"labels": {"app": name}});
    match kind {
        0 => metadata["annotations"] = json!({"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}),
        1 => metadata["labels"][GUARDED] = json!("yes"),
        2 | 3 => metadata["labels"][LIMITED] = json!("yes"),
        _ => {}
    }
    let requests = json!({"cpu": format!("{cpu_milli}m"), "memory": "64Mi"});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": metadata,
                "spec": {"containers": [{"name": "main", "image": "app:1", "resources": {"requests": requests}}]},
            },
        },
    })
}

fn flags(draw: &mut Stream) -> Autoscaler {
    let secs = |draw: &mut Stream, most: u64| SimDuration::from_secs(1 + draw.below(most) as i64);
    let expanders = [Expander::Random, Expander::LeastWaste, Expander::MostPods, Expander::LeastNodes, Expander::Price];
    Autoscaler {
        scan_interval: secs(draw, 10),
        frequent_loops_enabled: draw.below(4) > 0,
        expander: vec![expanders[draw.below(5) as usize]],
        initial_node_group_backoff_duration: secs(draw, 60),
        scale_down_unneeded_time: secs(draw, 60),
        scale_down_delay_after_add: secs(draw, 30),
        unremovable_node_recheck_timeout: secs(draw, 30),
        max_scale_down_parallelism: 1 + draw.below(5) as usize,
        max_drain_parallelism: 1 + draw.below(3) as usize,
        balance_similar_node_groups: draw.below(2) == 0,
        salvo_scale_up: draw.below(3) == 0,
        ..Autoscaler::default()
    }
}

/// What a test breaks in the autoscaler; the referee does not know of it.
type Break = fn(&mut Autoscaler);

/// The engine of these settings, with something broken in its autoscaler.
fn broken(settings: &Settings, change: Break) -> Engine {
    let mut settings = settings.clone();
    change(&mut settings.autoscaler);
    Engine::new(&settings, START)
}

fn play(seed: u64, change: Break) -> Referee {
    let mut draw = Stream::new(seed, "swarm");
    let mut groups = Vec::new();
    for name in ["a", "b", "c"].into_iter().take(1 + draw.below(3) as usize) {
        let min = draw.below(3) as u32;
        let max = min + 1 + draw.below(8) as u32;
        groups.push(group(name, 1 + draw.below(8), min, max, 1 + draw.below(20) as i64));
    }
    let autoscaler = flags(&mut draw);
    let timing = if draw.below(2) == 0 { Timing::ideal() } else { Timing::real_like() };
    let settings = Settings { seed, timing, groups, autoscaler, ..Settings::default() };
    let mut engine = broken(&settings, change);
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "none", "namespace": "default"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {GUARDED: "yes"}}},
        "status": {"disruptionsAllowed": 0},
    });
    engine.handle(Request::create(Object::from_json(budget).expect("a budget"))).expect("a budget is taken");
    for app in 0..5 {
        let selector = json!({"matchLabels": {"app": format!("d{app}"), LIMITED: "yes"}});
        let budget = json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": format!("one-of-d{app}"), "namespace": "default"},
            "spec": {"maxUnavailable": 1, "selector": selector},
        });
        engine.handle(Request::create(Object::from_json(budget).expect("a budget"))).expect("a budget is taken");
    }
    let (mut referee, mut read) = (Referee::new(seed), 0);
    for second in 1..=SECONDS {
        engine.advance_to(START + SimDuration::from_secs(second));
        if draw.below(150) == 0 {
            let group = &settings.groups[draw.below(settings.groups.len() as u64) as usize].name;
            let until = engine.now() + SimDuration::from_secs(draw.below(120) as i64);
            engine.set_stock_out(group, until);
            referee.stock_outs.insert(group.clone(), (engine.now(), until));
        }
        if draw.below(12) == 0 {
            let name = format!("d{}", draw.below(5));
            let key = ObjectKey::namespaced("default", name.clone());
            match (engine.get(&DEPLOYMENT, &key).is_some(), draw.below(4)) {
                (true, 0) => {
                    let target = sk_core::ObjectRef::new(DEPLOYMENT.clone(), key);
                    let options = DeleteOptions::default();
                    engine.handle(Request::Delete { target, options }).expect("it is there");
                }
                _ => {
                    let (cpu_milli, kind) = likeness(seed, &name);
                    let wanted = deployment(&name, draw.below(12), cpu_milli, kind);
                    let object = Object::from_json(wanted).expect("a deployment");
                    engine.handle(Request::apply(object)).expect("a deployment is taken");
                }
            }
        }
        for event in engine.watch(read).expect("a second's changes stay within the log") {
            referee.judge(event, &settings);
            read = event.object.resource_version;
        }
    }
    referee
}

#[test]
fn no_random_workload_breaks_a_limit_a_budget_or_a_nodes_time() {
    let (mut evicted, mut removed, mut limited) = (0, 0, 0);
    for seed in 1..=40 {
        let referee = play(seed, |_| {});
        evicted += referee.evicted;
        removed += referee.removed;
        limited += referee.limited;
    }
    assert!(evicted > 20 && removed > 100, "the swarm must do something: {evicted} evictions, {removed} removals");
    assert!(limited > 5, "{limited} evictions hung on a budget");
}

/// Equal pods on an empty cluster; panics if they get more nodes than they need, or fewer.
fn play_equal_pods(seed: u64, change: Break) {
    let mut draw = Stream::new(seed, "equal");
    let (pods, cpu, per_node) = (1 + draw.below(30), 2 + draw.below(6), 1 + draw.below(4));
    let milli = cpu * 1000 / per_node;
    let autoscaler = Autoscaler { scan_interval: SimDuration::from_secs(5), ..Autoscaler::default() };
    let groups = vec![group("a", cpu, 0, 50, 60)];
    let mut engine = broken(&Settings { seed, groups, autoscaler, ..Settings::default() }, change);
    engine.advance_to(START + SimDuration::from_secs(20 + draw.below(10) as i64));
    let object = Object::from_json(deployment("w", pods, milli, 5)).expect("a deployment");
    engine.handle(Request::apply(object)).expect("a deployment is taken");
    engine.advance_to(START + SimDuration::from_secs(300));
    let nodes = engine.list(&NODE).count() as u64;
    assert_eq!(nodes, pods.div_ceil(per_node), "seed {seed}: {pods} pods of {milli}m on nodes of {cpu} CPU");
}

#[test]
fn for_equal_pods_capacity_is_asked_for_once() {
    (1..=40).for_each(|seed| play_equal_pods(seed, |_| {}));
}

/// Does some seed break off, and with these words?
fn is_caught(play: impl Fn(u64) + std::panic::RefUnwindSafe, words: &str) -> bool {
    let says = |seed: u64| -> Option<String> {
        let said = std::panic::catch_unwind(|| play(seed)).err()?;
        Some(said.downcast_ref::<String>().cloned().unwrap_or_default())
    };
    (1..=40).filter_map(says).any(|said| said.contains(words))
}

#[test]
fn the_swarm_notices_an_autoscaler_that_breaks_what_must_never_happen() {
    let broken: [(Break, &str); 6] = [
        (|flags| flags.without = Some(Rule::GroupMaximum), "nodes of at most"),
        (|flags| flags.without = Some(Rule::RemovalsCountForMinimum), "fewer than its minimum"),
        (|flags| flags.without = Some(Rule::DelayAfterAdd), "after a node was added"),
        (|flags| flags.without = Some(Rule::UnsafePodsBlock), "was evicted against its owner's will"),
        (|flags| flags.scale_down_unneeded_time = SimDuration::ZERO, "goes after"),
        (|flags| flags.without = Some(Rule::UnneededTimeRestarts), "was needed"),
    ];
    for (change, words) in broken {
        assert!(is_caught(|seed| drop(play(seed, change)), words), "nobody says that something {words}");
    }
    let asks_twice: Break = |flags| flags.without = Some(Rule::UpcomingNodes);
    assert!(is_caught(|seed| play_equal_pods(seed, asks_twice), "pods of"), "nobody counts the nodes");
}

//! Random workloads on random groups: whatever happens, some things never do.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use sk_core::rng::Stream;
use sk_core::{ObjectKey, Quantity, SimDuration, SimTime, SmolStr};
use sk_engine::api::directives::NODE_GROUP;
use sk_engine::api::{Change, DeleteOptions, Object, Request, WatchEvent};
use sk_engine::kinds::{Condition, DEPLOYMENT, NODE};
use sk_engine::{Autoscaler, Engine, Expander, NodeGroup, Settings, Timing};

const START: SimTime = SimTime::from_secs(1_767_600_000);
const SECONDS: i64 = 400;
/// Pods with this label are covered by a budget that allows nothing.
const GUARDED: &str = "guarded";
/// Pods with this label are covered by a budget of their Deployment's that allows one to be missing.
const LIMITED: &str = "limited";

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

/// Watches what must never happen.
#[derive(Default)]
struct Referee {
    seed: u64,
    nodes: BTreeMap<ObjectKey, SimTime>,
    /// By node: what is asked of it.
    usage: BTreeMap<SmolStr, Usage>,
    evicted: usize,
    removed: usize,
    /// Evictions of pods whose budget allows one to be missing.
    limited: usize,
    apps: Apps,
    /// From when until when the cloud has had no nodes of a group.
    stock_outs: BTreeMap<SmolStr, (SimTime, SimTime)>,
}

/// How many pods of each app are ready, and how many it has wanted since when.
#[derive(Default)]
struct Apps {
    ready: BTreeMap<String, BTreeSet<ObjectKey>>,
    wanted: BTreeMap<String, Vec<(SimTime, i64)>>,
}

impl Apps {
    fn note_size(&mut self, event: &WatchEvent) {
        let json = event.object.to_json();
        let wanted = if event.change == Change::Deleted { 0 } else { json["spec"]["replicas"].as_i64().unwrap_or(1) };
        self.wanted.entry(event.object.key.name.to_string()).or_default().push((event.at, wanted));
    }

    fn note_pod(&mut self, event: &WatchEvent) {
        let object = &event.object;
        let app = object.meta.labels.get("app").expect("every pod is of an app");
        let has_condition = |kind: &str| object.pod().and_then(|pod| pod.status.condition(kind));
        let is_ready = has_condition("Ready").is_some_and(Condition::is_true) && !object.is_deleting();
        let ready = self.ready.entry(app.to_string()).or_default();
        match is_ready && event.change != Change::Deleted && has_condition("DisruptionTarget").is_none() {
            true => drop(ready.insert(object.key.clone())),
            false => drop(ready.remove(&object.key)),
        }
    }

    /// One may be missing, of as many as were wanted at any time of the last seconds: the budget's controller needs a moment.
    fn judge_eviction(&self, event: &WatchEvent) {
        let app = event.object.meta.labels.get("app").expect("every pod is of an app").as_str();
        let sizes = self.wanted.get(app).map_or(&[][..], Vec::as_slice);
        let recent = sizes.iter().filter(|(at, _)| event.at.since(*at) < SimDuration::from_secs(2));
        let before = sizes.iter().rev().find(|(at, _)| event.at.since(*at) >= SimDuration::from_secs(2));
        let wanted = recent.chain(before).map(|(_, wanted)| *wanted).min().unwrap_or(0);
        let ready = self.ready.get(app).map_or(0, BTreeSet::len) as i64;
        assert!(ready >= wanted - 1, "{} was evicted: {ready} of {wanted} are ready", event.object.key);
    }
}

/// What is asked of a node, and when that was too much for it to go.
#[derive(Default)]
struct Usage {
    cpu_milli: BTreeMap<ObjectKey, u64>,
    needed_since: Option<SimTime>,
    /// The last time for which it was needed long enough that a loop has seen it, and until when.
    last_needed: Option<SimTime>,
}

impl Usage {
    fn note(&mut self, capacity_milli: u64, at: SimTime, settings: &Settings) {
        let is_needed = self.cpu_milli.values().sum::<u64>() * 2 > capacity_milli;
        // A loop comes at least once in a scan interval.
        let seen = settings.autoscaler.scan_interval + SimDuration::from_secs(1);
        if let Some(since) = self.needed_since.filter(|since| at.since(*since) > seen) {
            self.last_needed = Some(at.max(since));
        }
        self.needed_since = is_needed.then(|| self.needed_since.unwrap_or(at));
    }
}

/// What one pod of a deployment asks for. What a deployment is like stays, so that its pods are not rolled over.
fn likeness(seed: u64, deployment: &str) -> (u64, u64) {
    let drawn = Stream::new(seed, deployment).below(1 << 20);
    (100 + drawn % 2000, drawn % 6)
}

impl Referee {
    fn judge(&mut self, event: &WatchEvent, settings: &Settings) {
        let object = &event.object;
        if object.node().is_some() {
            self.judge_node(event, settings);
        } else if object.gvk == DEPLOYMENT {
            self.apps.note_size(event);
        } else if let Some(pod) = object.pod() {
            let evicted =
                pod.status.condition("DisruptionTarget").is_some_and(|c| c.reason() == "EvictionByEvictionAPI");
            let unsafe_to_evict = object.meta.annotations.values().any(|value| value == "false");
            let guarded = object.meta.labels.get(GUARDED).is_some();
            assert!(!evicted || !(unsafe_to_evict || guarded), "{} was evicted against its owner's will", object.key);
            self.evicted += usize::from(evicted);
            self.apps.note_pod(event);
            let was =
                event.before.as_ref().and_then(|before| before.pod()?.status.condition("DisruptionTarget")).is_some();
            if evicted && !was && object.meta.labels.get(LIMITED).is_some() {
                self.limited += 1;
                self.apps.judge_eviction(event);
            }
            self.note_usage(event, settings);
        }
    }

    fn note_usage(&mut self, event: &WatchEvent, settings: &Settings) {
        let object = &event.object;
        let Some(node) = object.pod().and_then(|pod| pod.node_name.clone()) else { return };
        let usage = self.usage.entry(node.clone()).or_default();
        if event.change == Change::Deleted {
            usage.cpu_milli.remove(&object.key);
        } else {
            let app = object.meta.labels.get("app").expect("every pod is of an app");
            usage.cpu_milli.insert(object.key.clone(), likeness(self.seed, app).0);
        }
        usage.note(capacity(&node, settings), event.at, settings);
    }

    fn judge_node(&mut self, event: &WatchEvent, settings: &Settings) {
        let object = &event.object;
        let node = object.node().expect("a node");
        match event.change {
            Change::Added => drop(self.nodes.insert(object.key.clone(), event.at)),
            Change::Modified => {}
            Change::Deleted => {
                self.nodes.remove(&object.key);
                self.removed += 1;
            }
        }
        let of_group =
            |name: &SmolStr| self.nodes.keys().filter(|key| key.name.starts_with(&format!("{name}-"))).count();
        let name = object.meta.labels.get(&NODE_GROUP).expect("every node has its group");
        let group = settings.groups.iter().find(|group| group.name == *name).expect("the group is known");
        let size = of_group(name);
        if let Some((from, until)) = self.stock_outs.get(name) {
            // What was asked for just before comes all the same.
            let comes =
                event.change == Change::Added && event.at > *from + SimDuration::from_secs(1) && event.at < *until;
            assert!(!comes, "{name} has no stock and makes {}", object.key);
        }
        assert!(size <= group.max as usize, "{name} has {size} nodes of at most {}", group.max);
        assert!(
            size >= group.min as usize || event.change == Change::Added,
            "{name} has {size} nodes of {}",
            group.min
        );
        let is_marked = |object: &Object| {
            object.node().is_some_and(|node| node.spec.taints.iter().any(|t| t.key == "ToBeDeletedByClusterAutoscaler"))
        };
        let was_marked = event.before.as_ref().is_some_and(|before| is_marked(before));
        if is_marked(object) && !was_marked {
            let ready = node.status.conditions.iter().find(|condition| condition.is("Ready") && condition.is_true());
            let since = ready.and_then(|ready| ready.last_transition_time).expect("only ready nodes go");
            let waited = event.at.since(since);
            let unneeded_time = settings.autoscaler.scale_down_unneeded_time;
            assert!(waited >= unneeded_time, "{} goes after {waited:?}", object.key);
            let usage = self.usage.entry(object.key.name.clone()).or_default();
            usage.note(capacity(&object.key.name, settings), event.at, settings);
            let idle = usage.last_needed.map(|last| event.at.since(last));
            assert!(idle.is_none_or(|idle| idle >= unneeded_time), "{} was needed {idle:?} ago", object.key);
        }
    }
}

/// The CPU of a node, by its name.
fn capacity(node: &str, settings: &Settings) -> u64 {
    let name = node.rsplit_once('-').map_or(node, |(group, _)| group);
    let group = settings.groups.iter().find(|group| group.name == name).expect("every node has its group");
    group.allocatable["cpu"].milli_value().unsigned_abs()
}

fn play(seed: u64) -> Referee {
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
    let mut engine = Engine::new(&settings, START);
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
    let (mut referee, mut read) = (Referee { seed, ..Referee::default() }, 0);
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
        let referee = play(seed);
        evicted += referee.evicted;
        removed += referee.removed;
        limited += referee.limited;
    }
    assert!(evicted > 20 && removed > 100, "the swarm must do something: {evicted} evictions, {removed} removals");
    assert!(limited > 5, "{limited} evictions hung on a budget");
}

#[test]
fn for_equal_pods_capacity_is_asked_for_once() {
    for seed in 1..=40 {
        let mut draw = Stream::new(seed, "equal");
        let (pods, cpu, per_node) = (1 + draw.below(30), 2 + draw.below(6), 1 + draw.below(4));
        let milli = cpu * 1000 / per_node;
        let autoscaler = Autoscaler { scan_interval: SimDuration::from_secs(5), ..Autoscaler::default() };
        let groups = vec![group("a", cpu, 0, 50, 60)];
        let mut engine = Engine::new(&Settings { seed, groups, autoscaler, ..Settings::default() }, START);
        engine.advance_to(START + SimDuration::from_secs(20 + draw.below(10) as i64));
        let object = Object::from_json(deployment("w", pods, milli, 5)).expect("a deployment");
        engine.handle(Request::apply(object)).expect("a deployment is taken");
        engine.advance_to(START + SimDuration::from_secs(300));
        let nodes = engine.list(&NODE).count() as u64;
        assert_eq!(nodes, pods.div_ceil(per_node), "seed {seed}: {pods} pods of {milli}m on nodes of {cpu} CPU");
    }
}

//! Watches a random workload for what must never happen: a group above its maximum or below its minimum, a pod that is evicted
//! against its budget or its owner's will, a node that goes before its time or too soon after others came, a node of a group
//! without stock.

use std::collections::{BTreeMap, BTreeSet};

use sk_core::rng::Stream;
use sk_core::{ObjectKey, SimDuration, SimTime, SmolStr};
use sk_engine::Settings;
use sk_engine::api::directives::NODE_GROUP;
use sk_engine::api::{Change, Object, WatchEvent};
use sk_engine::kinds::{Condition, DEPLOYMENT};

use crate::swarm::{GUARDED, LIMITED};

/// Watches what must never happen.
#[derive(Default)]
pub(crate) struct Referee {
    seed: u64,
    nodes: BTreeSet<ObjectKey>,
    /// When the last node came that was asked for.
    last_added: Option<SimTime>,
    /// By node: what is asked of it.
    usage: BTreeMap<SmolStr, Usage>,
    pub(crate) evicted: usize,
    pub(crate) removed: usize,
    /// Evictions of pods whose budget allows one to be missing.
    pub(crate) limited: usize,
    apps: Apps,
    /// From when until when the cloud has had no nodes of a group.
    pub(crate) stock_outs: BTreeMap<SmolStr, (SimTime, SimTime)>,
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
pub(crate) fn likeness(seed: u64, deployment: &str) -> (u64, u64) {
    let drawn = Stream::new(seed, deployment).below(1 << 20);
    (100 + drawn % 2000, drawn % 6)
}

impl Referee {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    pub(crate) fn judge(&mut self, event: &WatchEvent, settings: &Settings) {
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
            Change::Added => {
                self.nodes.insert(object.key.clone());
                // The first nodes are there, and ready, from the start.
                self.last_added = Some(event.at).filter(|_| !node.is_ready()).or(self.last_added);
            }
            Change::Modified => {}
            Change::Deleted => {
                self.nodes.remove(&object.key);
                self.removed += 1;
            }
        }
        let of_group =
            |name: &SmolStr| self.nodes.iter().filter(|key| key.name.starts_with(&format!("{name}-"))).count();
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
            "{name} has {size} nodes, fewer than its minimum of {}",
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
            // A node comes a moment after the decision, from which the time counts.
            let delay = settings.autoscaler.scale_down_delay_after_add - SimDuration::from_secs(1);
            let calm = self.last_added.map(|last| event.at.since(last));
            assert!(calm.is_none_or(|calm| calm >= delay), "{} goes {calm:?} after a node was added", object.key);
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

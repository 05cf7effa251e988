//! Disruptions: carries out the timeline of a scenario, and what follows from each entry later.
//!
//! A node whose kubelet stops reporting keeps its Node object until the control plane has missed its heartbeats for
//! too long. Then the Node is not ready, its taints keep pods away, and its pods are evicted when their tolerations
//! end. If the machine is gone for good, the cloud controller also finds it missing and deletes the Node. Then its
//! group creates another one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use sk_api::scenario::timeline::{LoseNodes, Reclaim};
use sk_core::rng::Stream;
use sk_core::{ObjectKey, SimDuration, SimTime, SmolStr};
use sk_engine::api::Request;
use sk_engine::api::directives::NODE_GROUP;
use sk_engine::kinds::NODE;
use sk_engine::{Engine, NodeGroup, new_node};
use sk_record::{Happened, Warning, WarningKind};

use super::machines::{self, ZONE, is_silent, listed, set_known, set_silent, successor};
use super::{Action, Change, Moment, Timeline, has_groups};
use crate::setup::Setup;

/// A node that has not reported for this long is not ready (`--node-monitor-grace-period`, Kubernetes 1.36,
/// pkg/controller/nodelifecycle/config/v1alpha1/defaults.go).
const FOUND_OUT_AFTER: SimDuration = SimDuration::from_secs(50);
/// Then the cloud's controller looks whether the machine is there, at its next look (`--node-monitor-period`).
const REMOVED_AFTER: SimDuration = SimDuration::from_secs(55);
/// Retry interval of an eviction that a disruption budget refuses, as in `kubectl drain`.
const EVICTION_RETRY: SimDuration = SimDuration::from_secs(5);
/// How many moments are kept for the record; beyond these a report shows none.
const MAX_MARKS: usize = 10_000;

/// What happens to a running cluster from outside.
#[derive(Clone)]
pub(crate) struct Disruptions {
    moments: VecDeque<Moment>,
    /// What follows from moments that were, in order.
    later: BTreeMap<(SimTime, u64), Step>,
    steps: u64,
    /// Decides which nodes are hit.
    choice: Stream,
    /// How long machines take that replace others.
    readiness: Stream,
    groups: Vec<NodeGroup>,
    makes_nodes: bool,
    /// Groups that the cloud has no nodes of, and until when.
    stocked_out: BTreeMap<SmolStr, SimTime>,
    /// Machines that do not come back.
    gone: BTreeSet<SmolStr>,
    /// How much longer requests take, by the moment that made them.
    slow: BTreeMap<u64, SimDuration>,
    happened: Vec<Happened>,
    outside: Vec<usize>,
    /// Entries about nodes, and whether any was ever hit.
    hit: BTreeMap<usize, bool>,
}

/// What follows later.
#[derive(Clone, Debug)]
enum Step {
    /// The control plane finds out that these are silent.
    FoundOut(Vec<SmolStr>),
    /// The cloud finds out that these are gone.
    Removed(Vec<SmolStr>),
    /// These report again.
    Back(Vec<SmolStr>),
    /// The cloud takes these.
    Taken(Vec<SmolStr>),
    /// What could not be evicted is tried again.
    Drain(Vec<SmolStr>),
    /// A group has this node replaced.
    Replace { group: SmolStr, node: SmolStr },
    /// The API server is as fast as before.
    Fast(u64),
}

impl Disruptions {
    pub(crate) fn new(timeline: &Timeline, setup: &Setup) -> Self {
        let seed = setup.settings.seed;
        Self {
            moments: timeline.moments.iter().cloned().collect(),
            later: BTreeMap::new(),
            steps: 0,
            choice: Stream::new(seed, "timeline"),
            readiness: Stream::new(seed, "timeline/node-ready"),
            groups: setup.groups.clone(),
            makes_nodes: has_groups(setup),
            stocked_out: BTreeMap::new(),
            gone: BTreeSet::new(),
            slow: BTreeMap::new(),
            happened: Vec::new(),
            outside: timeline.outside.clone(),
            hit: BTreeMap::new(),
        }
    }

    /// When something happens next.
    pub(crate) fn next_at(&self) -> Option<SimTime> {
        let moment = self.moments.front().map(|moment| moment.at);
        let later = self.later.keys().next().map(|(at, _)| *at);
        moment.into_iter().chain(later).min()
    }

    /// Lets everything happen that is due by now. What follows from earlier moments comes first.
    pub(crate) fn happen(&mut self, engine: &mut Engine) {
        let now = engine.now();
        loop {
            let is_due = self.later.first_key_value().is_some_and(|((at, _), _)| *at <= now);
            let step = if is_due { self.later.pop_first() } else { None };
            if let Some((_, step)) = step {
                self.follow(step, engine);
            } else if self.moments.front().is_some_and(|moment| moment.at <= now) {
                self.moments.pop_front().into_iter().for_each(|moment| self.begin(moment, engine));
            } else {
                return;
            }
        }
    }

    /// Does a disruption hold this node down? Then nothing that was recorded of it brings it back.
    pub(crate) fn holds(&self, engine: &Engine, node: &SmolStr) -> bool {
        self.gone.contains(node) || is_silent(engine, node)
    }

    /// A node was removed as recorded; another one of its name is another machine.
    pub(crate) fn forget(&mut self, node: &SmolStr) {
        self.gone.remove(node);
    }

    /// A node that is closed for good is drained, until nothing is left on it or it goes.
    pub(crate) fn drain(&mut self, node: SmolStr, engine: &mut Engine) {
        self.follow(Step::Drain(vec![node]), engine);
    }

    /// What a node of each group costs now.
    pub(crate) fn prices(&self) -> BTreeMap<SmolStr, f64> {
        self.groups.iter().filter_map(|group| Some((group.name.clone(), group.price_per_hour?))).collect()
    }

    /// What happened, and what of it there was nothing to do for.
    pub(crate) fn into_record(self) -> (Vec<Happened>, Vec<Warning>) {
        let missed: Vec<usize> = self.hit.iter().filter(|(_, is_hit)| !**is_hit).map(|(entry, _)| *entry).collect();
        let outside = about("timeline-outside", &self.outside, "never happened: not within the part that was replayed");
        let missed = about("timeline-missed", &missed, "hit no node: there was none of that zone, group or name");
        (self.happened, outside.into_iter().chain(missed).collect())
    }

    /// An entry affected this many nodes.
    fn note(&mut self, entry: usize, nodes: usize) {
        *self.hit.entry(entry).or_default() |= nodes > 0;
    }

    fn begin(&mut self, Moment { at, entry, what }: Moment, engine: &mut Engine) {
        let (end, what) = match what {
            Action::Stockout { group, length } => {
                self.stock_out(&group, at + length, engine);
                (Some(at + length), format!("stockout: no new nodes of {group}"))
            }
            Action::LoseZone { zone, length } => {
                let names = machines::of_zone(engine, &zone);
                let there = |group: &&NodeGroup| group.labels.get(&ZONE).is_some_and(|label| *label == zone);
                let groups: Vec<SmolStr> = self.groups.iter().filter(there).map(|group| group.name.clone()).collect();
                groups.iter().for_each(|group| self.stock_out(group, at + length, engine));
                self.note(entry, names.len() + groups.len());
                let what = format!("loseZone: {zone}, {} nodes", names.len());
                self.stop_reporting(names, Some(at + length), engine);
                (Some(at + length), what)
            }
            Action::LoseNodes(lost) => self.lose_nodes(&lost, entry, at, engine),
            Action::SlowApi { more, length } => {
                self.steps += 1;
                self.slow.insert(self.steps, more);
                self.after(at + length, Step::Fast(self.steps));
                self.set_speed(engine);
                (Some(at + length), format!("slowApi: requests take {more} longer"))
            }
            Action::Reclaim(reclaim) => self.reclaim(&reclaim, entry, at, engine),
            Action::Set(change) => (None, self.change(&change, engine)),
        };
        if self.happened.len() < MAX_MARKS {
            self.happened.push(Happened { at, until: end, entry: entry as u64, what });
        }
    }

    fn lose_nodes(
        &mut self,
        lost: &LoseNodes,
        entry: usize,
        at: SimTime,
        engine: &mut Engine,
    ) -> (Option<SimTime>, String) {
        let names = match &lost.group {
            Some(group) => {
                let count = lost.count.unwrap_or(1) as usize;
                self.some(machines::of_group(engine, group), count)
            }
            None => {
                let is_there = |name: &&SmolStr| {
                    engine.get(&NODE, &ObjectKey::cluster((*name).clone())).is_some() && !is_silent(engine, name)
                };
                lost.names.iter().filter(is_there).cloned().collect()
            }
        };
        self.note(entry, names.len());
        let end = lost.length.map(|length| at + length);
        let what = match names.as_slice() {
            [] => "loseNodes: none of them was there".to_owned(),
            names => format!("loseNodes: {}", listed(names)),
        };
        match end {
            Some(_) => self.stop_reporting(names, end, engine),
            None => self.take(names, engine),
        }
        (end, what)
    }

    fn reclaim(
        &mut self,
        reclaim: &Reclaim,
        entry: usize,
        at: SimTime,
        engine: &mut Engine,
    ) -> (Option<SimTime>, String) {
        let there = machines::of_group(engine, &reclaim.group);
        // Chance may spare all that are there; then the entry did what it says.
        self.note(entry, there.len());
        // A share of 0.3 of a node is one node in three out of ten cases.
        let wanted = reclaim.share * there.len() as f64;
        let chance = self.choice.below(1_000_000) as f64 / 1_000_000.0;
        let count = wanted.floor() as usize + usize::from(chance < wanted.fract());
        let names = self.some(there, count);
        let what = match names.as_slice() {
            [] => format!("reclaim: no node of {}", reclaim.group),
            names => format!("reclaim: {}", listed(names)),
        };
        if names.is_empty() || reclaim.notice == SimDuration::ZERO {
            self.take(names, engine);
            return (None, what);
        }
        let end = at + reclaim.notice;
        names.iter().for_each(|name| machines::cordon(engine, name));
        self.after(end, Step::Taken(names.clone()));
        self.follow(Step::Drain(names), engine);
        (Some(end), what)
    }

    fn change(&mut self, change: &Change, engine: &mut Engine) -> String {
        self.groups.clone_from(&change.setup.groups);
        engine.reconfigure(&change.setup.settings, change.is_of_scheduler);
        format!("set: {}", change.fields.join(", "))
    }

    fn follow(&mut self, step: Step, engine: &mut Engine) {
        match step {
            Step::FoundOut(names) => {
                for name in names.iter().filter(|name| is_silent(engine, name)).cloned().collect::<Vec<_>>() {
                    set_known(engine, &name, false);
                }
            }
            Step::Removed(names) => names.iter().for_each(|name| machines::remove(engine, name)),
            Step::Back(names) => {
                for name in &names {
                    set_silent(engine, name, false);
                    set_known(engine, name, true);
                }
            }
            Step::Taken(names) => self.take(names, engine),
            Step::Drain(names) => {
                let left: Vec<SmolStr> = names.into_iter().filter(|name| machines::drain(engine, name)).collect();
                if !left.is_empty() {
                    self.after(engine.now() + EVICTION_RETRY, Step::Drain(left));
                }
            }
            Step::Replace { group, node } => self.replace(&group, &node, engine),
            Step::Fast(number) => {
                self.slow.remove(&number);
                self.set_speed(engine);
            }
        }
    }

    /// The kubelets of these nodes stop reporting, for good or until `end`.
    fn stop_reporting(&mut self, names: Vec<SmolStr>, end: Option<SimTime>, engine: &mut Engine) {
        if names.is_empty() {
            return;
        }
        let now = engine.now();
        names.iter().for_each(|name| set_silent(engine, name, true));
        if end.is_none_or(|end| end > now + FOUND_OUT_AFTER) {
            self.after(now + FOUND_OUT_AFTER, Step::FoundOut(names.clone()));
        }
        if let Some(end) = end {
            self.after(end, Step::Back(names));
        }
    }

    /// These machines are gone for good. Their groups create others.
    fn take(&mut self, names: Vec<SmolStr>, engine: &mut Engine) {
        let now = engine.now();
        for name in &names {
            let node = engine.get(&NODE, &ObjectKey::cluster(name.clone()));
            let group = node.and_then(|node| node.meta.labels.get(&NODE_GROUP)).cloned();
            if let Some(group) = group.filter(|_| self.makes_nodes) {
                let when = self.stocked_out.get(&group).copied().unwrap_or(now).max(now);
                self.after(when, Step::Replace { group, node: name.clone() });
            }
        }
        self.gone.extend(names.iter().cloned());
        self.stop_reporting(names.clone(), None, engine);
        if !names.is_empty() {
            self.after(now + REMOVED_AFTER, Step::Removed(names));
        }
    }

    fn replace(&mut self, group: &SmolStr, node: &SmolStr, engine: &mut Engine) {
        let Some(settings) = self.groups.iter().find(|known| known.name == *group) else { return };
        let delay = settings.draw_ready_delay(&mut self.readiness);
        let node = new_node(settings, &successor(node), engine.now(), delay);
        // Two machines in the place of one do not happen: each is lost once under its name.
        let _ = engine.handle(Request::create(node));
    }

    fn stock_out(&mut self, group: &SmolStr, end: SimTime, engine: &mut Engine) {
        let until = self.stocked_out.entry(group.clone()).or_insert(end);
        *until = end.max(*until);
        engine.set_stock_out(group, *until);
    }

    fn set_speed(&self, engine: &mut Engine) {
        engine.slow_api(self.slow.values().copied().max().unwrap_or_default());
    }

    /// This many of them, chosen by the seed, by name.
    fn some(&mut self, mut names: Vec<SmolStr>, count: usize) -> Vec<SmolStr> {
        let count = count.min(names.len());
        for place in 0..count {
            let other = place + self.choice.below((names.len() - place) as u64) as usize;
            names.swap(place, other);
        }
        names.truncate(count);
        names.sort();
        names
    }

    fn after(&mut self, at: SimTime, step: Step) {
        self.steps += 1;
        self.later.insert((at, self.steps), step);
    }
}

/// What to say of entries that did nothing; nothing if there are none.
fn about(code: &str, entries: &[usize], why: &str) -> Option<Warning> {
    let named: Vec<String> = entries.iter().map(|index| format!("timeline[{index}]")).collect();
    let message = format!("{} {why}", named.join(", "));
    let (code, count) = (code.to_owned(), entries.len() as u64);
    (count > 0).then_some(Warning { code, kind: WarningKind::Note, message, count })
}

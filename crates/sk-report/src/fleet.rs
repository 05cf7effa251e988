//! The nodes of a run: how many existed when, what pods requested of them, when they were idle, what they cost.

use std::collections::BTreeMap;

use sk_core::SimTime;
use sk_core::lookup::{Lookup, hash_of};
use sk_record::{NodeRow, PodRow};

use crate::figures::{Cost, GroupFigures, NodeHours, Nodes, Requested};
use crate::step::{Changes, Step, Window, hours};
use crate::tally::end_of;

/// All nodes with the pods that were bound to them.
#[derive(Debug)]
pub(crate) struct Fleet {
    window: Window,
    nodes: Vec<Node>,
    /// The nodes of each name, one after the other.
    namesakes: Vec<Vec<usize>>,
    /// The index in `namesakes` of the nodes with a name.
    names: Lookup<usize>,
}

/// One node and who stayed there.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) row: NodeRow,
    /// Pods that came and went; in order of time once the fleet is settled.
    changes: Vec<Change>,
    idle: Vec<Idle>,
    /// CPU and memory asked for, times microseconds, while it was ready.
    asked: (i128, i128),
}

/// A pod is bound to a node or leaves it: the change of the node's requests from then on.
#[derive(Clone, Copy, Debug)]
struct Change {
    at: SimTime,
    cpu_m: i64,
    memory_bytes: i64,
    /// Pods that ask for something and are no DaemonSet's: the node is there for them.
    working: i64,
}

/// A stretch in which a ready node had nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Idle {
    pub(crate) window: Window,
    pub(crate) end: IdleEnd,
}

/// What ended such a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum IdleEnd {
    /// The node was removed.
    Removed,
    /// The run ended.
    RunEnd,
    /// A pod was added.
    PodCame,
}

impl Fleet {
    pub(crate) fn new(rows: Vec<NodeRow>, window: Window) -> Self {
        let node = |row| Node { row, changes: Vec::new(), idle: Vec::new(), asked: (0, 0) };
        let nodes = rows.into_iter().map(node).collect();
        let mut fleet = Self { window, nodes, namesakes: Vec::new(), names: Lookup::default() };
        for index in 0..fleet.nodes.len() {
            match fleet.namesakes(&fleet.nodes[index].row.name) {
                Some(place) => fleet.namesakes[place].push(index),
                None => {
                    fleet.namesakes.push(vec![index]);
                    let Self { nodes, namesakes, names, .. } = &mut fleet;
                    let hash = |place: &usize| hash_of(nodes[namesakes[*place][0]].row.name.as_str());
                    let place = namesakes.len() - 1;
                    names.insert(hash(&place), place, hash);
                }
            }
        }
        fleet
    }

    /// The indexes of the nodes with a name.
    fn namesakes(&self, name: &str) -> Option<usize> {
        let is_it = |place: &usize| self.nodes[self.namesakes[*place][0]].row.name == name;
        self.names.find(hash_of(name), is_it).copied()
    }

    /// The node of that name that existed at that time.
    pub(crate) fn node_at(&self, name: &str, time: SimTime) -> Option<&Node> {
        self.index_at(name, time).map(|index| &self.nodes[index])
    }

    /// Notes where a pod stayed. When all are noted, [`Self::settle`] follows.
    pub(crate) fn add<Text: AsRef<str>>(&mut self, pod: &PodRow<Text>) {
        let (Some(name), Some(from)) = (&pod.node, pod.scheduled) else { return };
        let Some(index) = self.index_at(name.as_ref(), from) else { return };
        let daemon = pod.owner.as_ref().split('/').nth(1) == Some("DaemonSet");
        let works = !daemon && (pod.cpu_m > 0 || pod.memory_bytes > 0);
        let (cpu_m, memory_bytes) = (pod.cpu_m, pod.memory_bytes);
        let to = end_of(pod);
        // A stay that ends before it begins is none.
        if to.is_some_and(|to| to <= from) {
            return;
        }
        let changes = &mut self.nodes[index].changes;
        let came = Change { at: from, cpu_m, memory_bytes, working: i64::from(works) };
        changes.push(came);
        changes.extend(to.map(|at| Change {
            at,
            cpu_m: cpu_m.saturating_neg(),
            memory_bytes: memory_bytes.saturating_neg(),
            working: -came.working,
        }));
    }

    /// Every pod is noted: works out what each node did all the time.
    pub(crate) fn settle(&mut self) {
        for node in &mut self.nodes {
            node.changes.sort_unstable_by_key(|change| change.at);
            let Some(ready) = node.ready_window(self.window) else { continue };
            let asked = |amount: fn(&Change) -> i64| node.asked(ready, amount);
            let zeros = asked(|change| change.working).zeros().collect::<Vec<_>>();
            node.asked = (asked(|change| change.cpu_m).integral(), asked(|change| change.memory_bytes).integral());
            let end_of = |idle: Window| match idle.end {
                end if node.row.deleted == Some(end) => IdleEnd::Removed,
                end if end == self.window.end => IdleEnd::RunEnd,
                _ => IdleEnd::PodCame,
            };
            node.idle = zeros.into_iter().map(|window| Idle { window, end: end_of(window) }).collect();
        }
    }

    fn index_at(&self, name: &str, time: SimTime) -> Option<usize> {
        let indexes = &self.namesakes[self.namesakes(name)?];
        let stood = |index: &&usize| {
            let row = &self.nodes[**index].row;
            row.created <= time && row.deleted.is_none_or(|deleted| time <= deleted)
        };
        indexes.iter().rev().find(stood).copied()
    }

    /// Nodes that existed in the window, in the order of the record.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| self.window.clip(node.row.created, node.row.deleted).is_some())
    }

    /// How many nodes existed, of all or of one group.
    pub(crate) fn curve(&self, group: Option<&str>) -> Step {
        let mut changes = Changes::default();
        for node in self.nodes().filter(|node| node.is_of(group)) {
            changes.add(node.row.created, node.row.deleted, 1);
        }
        changes.into_step(self.window)
    }

    /// How many ready nodes had nothing to do.
    pub(crate) fn empty_curve(&self) -> Step {
        let mut changes = Changes::default();
        for idle in self.nodes().flat_map(Node::idle) {
            let end = (idle.end != IdleEnd::RunEnd).then_some(idle.window.end);
            changes.add(idle.window.start, end, 1);
        }
        changes.into_step(self.window)
    }

    /// The figures of all nodes or of one group. `priced`: every group that could have had nodes has a price.
    pub(crate) fn figures(&self, group: Option<&str>, priced: bool) -> GroupFigures {
        let nodes: Vec<&Node> = self.nodes().filter(|node| node.is_of(group)).collect();
        GroupFigures {
            nodes: self.counts(&nodes, &self.curve(group)),
            node_hours: self.hours(&nodes),
            cost: if priced { self.cost(&nodes) } else { None },
            requested: self.requested(&nodes),
        }
    }

    fn counts(&self, nodes: &[&Node], curve: &Step) -> Nodes {
        let inside = |time: SimTime| self.window.start < time && time <= self.window.end;
        let created = nodes.iter().filter(|node| inside(node.row.created)).count() as i64;
        let removed = nodes.iter().filter(|node| node.row.deleted.is_some_and(inside)).count() as i64;
        Nodes { min: curve.min(), mean: curve.mean(), max: curve.max(), end: curve.last(), created, removed }
    }

    fn hours(&self, nodes: &[&Node]) -> NodeHours {
        let total: i128 = nodes.iter().map(|node| self.lifetime_micros(node)).sum();
        let empty: i128 = nodes.iter().map(|node| node.idle_micros()).sum();
        NodeHours { total: hours(total), empty: hours(empty) }
    }

    /// Summed price by price, so that the sum does not depend on the order of nodes.
    fn cost(&self, nodes: &[&Node]) -> Option<Cost> {
        let mut by_price: BTreeMap<u64, (i128, i128)> = BTreeMap::new();
        for node in nodes {
            let sums = by_price.entry(node.row.price_per_hour?.to_bits()).or_default();
            sums.0 += self.lifetime_micros(node);
            sums.1 += node.idle_micros();
        }
        let cost = by_price.iter().map(|(price, (total, empty))| {
            let price = f64::from_bits(*price);
            (hours(*total) * price, hours(*empty) * price)
        });
        Some(
            cost.fold(Cost::default(), |sum, (total, empty)| Cost {
                total: sum.total + total,
                empty: sum.empty + empty,
            }),
        )
    }

    fn requested(&self, nodes: &[&Node]) -> Requested {
        let share = |asked: fn(&Node) -> i128, allocatable: fn(&NodeRow) -> i64| {
            let mut sums = (0_i128, 0_i128);
            for node in nodes {
                let Some(ready) = node.ready_window(self.window) else { continue };
                sums.0 += asked(node);
                let length = i128::from(ready.length().as_micros());
                sums.1 = sums.1.saturating_add(i128::from(allocatable(&node.row)) * length);
            }
            if sums.1 == 0 { 0.0 } else { sums.0 as f64 / sums.1 as f64 }
        };
        Requested {
            cpu: share(|node| node.asked.0, |row| row.cpu_m),
            memory: share(|node| node.asked.1, |row| row.memory_bytes),
        }
    }

    fn lifetime_micros(&self, node: &Node) -> i128 {
        let life = self.window.clip(node.row.created, node.row.deleted);
        life.map_or(0, |life| i128::from(life.length().as_micros()))
    }

    /// How much of a node's CPU was asked for in each of `count` parts of the window: mean share while it was ready,
    /// nothing while it was not.
    pub(crate) fn loads(&self, node: &Node, count: usize) -> Vec<Option<f64>> {
        let all = node.ready_window(self.window).map(|ready| node.asked(ready, |change| change.cpu_m));
        let load = |part: Window| {
            let ready = node.ready_window(part).filter(|ready| ready.length().as_micros() > 0)?;
            let asked = all.as_ref()?.integral_within(ready) as f64 / ready.length().as_micros() as f64;
            Some(if node.row.cpu_m > 0 { asked / node.row.cpu_m as f64 } else { 0.0 })
        };
        self.window.parts(count).map(load).collect()
    }
}

impl Node {
    /// The group's name; `""` for a node of no group.
    pub(crate) fn group(&self) -> &str {
        self.row.group.as_deref().unwrap_or_default()
    }

    fn is_of(&self, group: Option<&str>) -> bool {
        group.is_none_or(|group| group == self.group())
    }

    fn ready_window(&self, window: Window) -> Option<Window> {
        window.clip(self.row.ready?, self.row.deleted)
    }

    /// The stretches in which it was ready and had nothing to do.
    pub(crate) fn idle(&self) -> impl Iterator<Item = Idle> + use<'_> {
        self.idle.iter().copied()
    }

    pub(crate) fn idle_micros(&self) -> i128 {
        self.idle.iter().map(|idle| i128::from(idle.window.length().as_micros())).sum()
    }

    /// What the pods there asked for, added up over time.
    fn asked(&self, window: Window, amount: impl Fn(&Change) -> i64) -> Step {
        Step::of_sorted(self.changes.iter().map(|change| (change.at, amount(change))), window)
    }
}

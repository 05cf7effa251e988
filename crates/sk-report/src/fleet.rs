//! The nodes of a run: how many stood when, what pods asked of them, when they had nothing to do, what they cost.

use std::collections::BTreeMap;

use sk_core::SimTime;
use sk_record::{NodeRow, PodRow};

use crate::figures::{Cost, GroupFigures, NodeHours, Nodes, Requested};
use crate::step::{Changes, Step, Window, hours};
use crate::tally::end_of;

/// All nodes with the pods that were bound to them.
#[derive(Debug)]
pub(crate) struct Fleet {
    window: Window,
    nodes: Vec<Node>,
    /// Which nodes had that name, one after the other.
    by_name: BTreeMap<String, Vec<usize>>,
}

/// One node and who stayed there.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) row: NodeRow,
    stays: Vec<Stay>,
}

/// A pod's time on a node.
#[derive(Clone, Copy, Debug)]
struct Stay {
    from: SimTime,
    to: Option<SimTime>,
    cpu_m: i64,
    memory_bytes: i64,
    /// It asks for something and is no DaemonSet's: the node is there for it.
    works: bool,
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
    /// A pod came.
    PodCame,
}

impl Fleet {
    pub(crate) fn new(rows: Vec<NodeRow>, window: Window) -> Self {
        let mut by_name: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (index, row) in rows.iter().enumerate() {
            by_name.entry(row.name.clone()).or_default().push(index);
        }
        let nodes = rows.into_iter().map(|row| Node { row, stays: Vec::new() }).collect();
        Self { window, nodes, by_name }
    }

    /// The node of that name that stood at that moment.
    pub(crate) fn node_at(&self, name: &str, time: SimTime) -> Option<&Node> {
        self.index_at(name, time).map(|index| &self.nodes[index])
    }

    /// Notes where a pod stayed.
    pub(crate) fn add(&mut self, pod: &PodRow) {
        let (Some(name), Some(from)) = (&pod.node, pod.scheduled) else { return };
        let Some(index) = self.index_at(name, from) else { return };
        let daemon = pod.owner.split('/').nth(1) == Some("DaemonSet");
        let works = !daemon && (pod.cpu_m > 0 || pod.memory_bytes > 0);
        let (cpu_m, memory_bytes) = (pod.cpu_m, pod.memory_bytes);
        self.nodes[index].stays.push(Stay { from, to: end_of(pod), cpu_m, memory_bytes, works });
    }

    fn index_at(&self, name: &str, time: SimTime) -> Option<usize> {
        let indexes = self.by_name.get(name)?;
        let stood = |index: &&usize| {
            let row = &self.nodes[**index].row;
            row.created <= time && row.deleted.is_none_or(|deleted| time <= deleted)
        };
        indexes.iter().rev().find(stood).copied()
    }

    /// Nodes that stood in the window, in the order of the record.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| self.window.clip(node.row.created, node.row.deleted).is_some())
    }

    /// How many nodes stood, of all or of one group.
    pub(crate) fn curve(&self, group: Option<&str>) -> Step {
        let mut changes = Changes::default();
        for node in self.nodes().filter(|node| node.is_of(group)) {
            changes.add(node.row.created, node.row.deleted, 1);
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
        let empty: i128 = nodes.iter().map(|node| self.idle_micros(node)).sum();
        NodeHours { total: hours(total), empty: hours(empty) }
    }

    /// Summed price by price, so that the sum does not depend on the order of nodes.
    fn cost(&self, nodes: &[&Node]) -> Option<Cost> {
        let mut by_price: BTreeMap<u64, (i128, i128)> = BTreeMap::new();
        for node in nodes {
            let sums = by_price.entry(node.row.price_per_hour?.to_bits()).or_default();
            sums.0 += self.lifetime_micros(node);
            sums.1 += self.idle_micros(node);
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
        let share = |asked: fn(&Stay) -> i64, allocatable: fn(&NodeRow) -> i64| {
            let mut sums = (0_i128, 0_i128);
            for node in nodes {
                let Some(ready) = node.ready_window(self.window) else { continue };
                sums.0 += node.asked(ready, asked).integral();
                let length = i128::from(ready.length().as_micros());
                sums.1 = sums.1.saturating_add(i128::from(allocatable(&node.row)) * length);
            }
            if sums.1 == 0 { 0.0 } else { sums.0 as f64 / sums.1 as f64 }
        };
        Requested {
            cpu: share(|stay| stay.cpu_m, |row| row.cpu_m),
            memory: share(|stay| stay.memory_bytes, |row| row.memory_bytes),
        }
    }

    fn lifetime_micros(&self, node: &Node) -> i128 {
        let life = self.window.clip(node.row.created, node.row.deleted);
        life.map_or(0, |life| i128::from(life.length().as_micros()))
    }

    pub(crate) fn idle_micros(&self, node: &Node) -> i128 {
        self.idle(node).map(|idle| i128::from(idle.window.length().as_micros())).sum()
    }

    /// The stretches in which a ready node had nothing to do.
    pub(crate) fn idle(&self, node: &Node) -> impl Iterator<Item = Idle> {
        let ready = node.ready_window(self.window);
        let idle = ready.map(|ready| node.asked(ready, |stay| i64::from(stay.works)).zeros().collect::<Vec<_>>());
        let deleted = node.row.deleted;
        let run_end = self.window.end;
        idle.unwrap_or_default().into_iter().map(move |window| {
            let end = match window.end {
                end if deleted == Some(end) => IdleEnd::Removed,
                end if end == run_end => IdleEnd::RunEnd,
                _ => IdleEnd::PodCame,
            };
            Idle { window, end }
        })
    }

    /// How much of a node's CPU was asked for in each of `count` parts of the window: mean share while it was ready,
    /// nothing while it was not.
    pub(crate) fn loads(&self, node: &Node, count: usize) -> Vec<Option<f64>> {
        let load = |part: Window| {
            let ready = node.ready_window(part).filter(|ready| ready.length().as_micros() > 0)?;
            let asked = node.asked(ready, |stay| stay.cpu_m).mean();
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

    /// What the pods there asked for, added up over time.
    fn asked(&self, window: Window, amount: impl Fn(&Stay) -> i64) -> Step {
        let mut changes = Changes::default();
        for stay in &self.stays {
            changes.add(stay.from, stay.to, amount(stay));
        }
        changes.into_step(window)
    }
}

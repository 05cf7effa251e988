//! NodeResourcesBalancedAllocation: prefers nodes on which the pod evens out the usage of the resources
//! (`noderesources/balanced_allocation.go`).

use super::MAX_NODE_SCORE;
use super::node_resources_fit::of_resource;
use crate::cluster::classes::ShapeEntry;
use crate::cluster::columns::{Columns, Numbers};
use crate::framework::cycle_state::{Caches, Cx, CycleState};
use crate::framework::plugin::Plugin;
use crate::framework::profile::{Compiled, Resource};
use crate::ids::NodeId;

pub(crate) struct BalancedAllocation;

/// Does the pod ask for any of the resources? A best-effort pod is not scored.
pub(crate) fn applies(profile: &Compiled, entry: &ShapeEntry) -> bool {
    let asked = &entry.shape.requests;
    profile.balanced_resources.iter().any(|resource| match resource {
        Resource::Cpu => asked.cpu != 0,
        Resource::Memory => asked.memory != 0,
        Resource::Ephemeral => asked.ephemeral != 0,
        Resource::Scalar(id, _) => entry.scalars.iter().any(|(known, amount)| known == id && *amount != 0),
    })
}

#[inline]
fn fraction(used: i64, total: i64) -> f64 {
    let fraction = used as f64 / total as f64;
    if fraction > 1.0 { 1.0 } else { fraction }
}

#[inline]
fn from_deviation(deviation: f64) -> i64 {
    ((1.0 - deviation) * MAX_NODE_SCORE as f64) as i64
}

#[inline]
fn improvement(with: i64, without: i64) -> i64 {
    MAX_NODE_SCORE / 2 + (MAX_NODE_SCORE / 2 + with - without) / 2
}

/// How evenly CPU and memory of a node are used with so much more of each.
#[inline]
pub(crate) fn balance(numbers: &Numbers, cpu: i64, memory: i64) -> i64 {
    if numbers.cpu == 0 || numbers.memory == 0 {
        // With fewer than two resources there is nothing to balance.
        return MAX_NODE_SCORE;
    }
    let of_cpu = fraction(numbers.used_cpu.saturating_add(cpu), numbers.cpu);
    let of_memory = fraction(numbers.used_memory.saturating_add(memory), numbers.memory);
    from_deviation(((of_cpu - of_memory) / 2.0).abs())
}

/// How much a pod that asks for this improves the balance of CPU and memory.
#[inline]
pub(crate) fn gain(numbers: &Numbers, cpu: i64, memory: i64) -> i64 {
    improvement(balance(numbers, cpu, memory), numbers.balance)
}

/// Over any resources.
pub(crate) fn score(profile: &Compiled, columns: &Columns, entry: &ShapeEntry, node: usize) -> i64 {
    if profile.plain_balanced {
        let (numbers, asked) = (&columns.numbers[node], &entry.shape.requests);
        return gain(numbers, asked.cpu, asked.memory);
    }
    let resources =
        || profile.balanced_resources.iter().filter_map(|one| of_resource(columns, entry, *one, node, true));
    let with = evenness(|| resources().map(|(total, used, wanted)| fraction(used.saturating_add(wanted), total)));
    let without = evenness(|| resources().map(|(total, used, _)| fraction(used, total)));
    improvement(with, without)
}

/// `balancedResourceScore`: with two resources half their distance, with more the standard deviation.
fn evenness<I: Iterator<Item = f64>>(fractions: impl Fn() -> I) -> i64 {
    let count = fractions().count();
    let deviation = match count {
        0 | 1 => 0.0,
        2 => {
            let mut two = fractions();
            let (first, second) = (two.next().unwrap_or(0.0), two.next().unwrap_or(0.0));
            ((first - second) / 2.0).abs()
        }
        _ => {
            let mean = fractions().sum::<f64>() / count as f64;
            let squares: f64 = fractions().fold(0.0, |sum, fraction| sum + (fraction - mean) * (fraction - mean));
            (squares / count as f64).sqrt()
        }
    };
    from_deviation(deviation)
}

impl Plugin for BalancedAllocation {
    fn pre_score(&self, cx: &Cx<'_>, _: &mut Caches, _: &mut CycleState, _: &[NodeId]) -> bool {
        applies(cx.profile, cx.shape)
    }

    fn score(&self, cx: &Cx<'_>, _: &Caches, _: &CycleState, nodes: &[NodeId], scores: &mut [i64]) {
        for (result, node) in scores.iter_mut().zip(nodes) {
            *result = score(cx.profile, &cx.cluster.columns, cx.shape, node.index());
        }
    }
}

//! NodeResourcesFit: does the pod fit, and how full is the node afterwards? (`noderesources/fit.go`,
//! `least_allocated.go`, `most_allocated.go`, `requested_to_capacity_ratio.go`, `resource_allocation.go`)

use super::MAX_NODE_SCORE;
use crate::class::PodClass;
use crate::cluster::classes::ShapeEntry;
use crate::cluster::columns::{Columns, Numbers};
use crate::framework::cycle_state::{Caches, Cx, CycleState};
use crate::framework::plugin::{Plugin, PluginId, Rejection};
use crate::framework::profile::{Compiled, FitArgs, Resource, Strategy};
use crate::ids::NodeId;
use crate::node::NodeSpec;
use crate::queue::{Event, Hint, HintCx, NodeAction, PodAction};

pub(crate) struct NodeResourcesFit;

const PODS: u32 = 1;
const CPU: u32 = 2;
const MEMORY: u32 = 4;
const EPHEMERAL: u32 = 8;
/// The bit of the first extended resource; the others follow in the order of the shape's list.
const FIRST_SCALAR: u32 = 4;

/// `fitsRequest`: everything that the node has too little of.
#[inline]
pub(crate) fn filter(columns: &Columns, entry: &ShapeEntry, args: &FitArgs, node: usize) -> Rejection {
    let asked = &entry.shape.requests;
    let (mut reasons, mut hopeless) = (0, false);
    let numbers = &columns.numbers[node];
    if numbers.pods + 1 > numbers.allowed_pods {
        reasons |= PODS;
    }
    let mut require = |bit: u32, wanted: i64, total: i64, used: i64| {
        if wanted > 0 && wanted > total.saturating_sub(used) {
            reasons |= bit;
            hopeless |= wanted > total;
        }
    };
    require(CPU, asked.cpu, numbers.cpu, numbers.used_cpu);
    require(MEMORY, asked.memory, numbers.memory, numbers.used_memory);
    require(EPHEMERAL, asked.ephemeral, numbers.ephemeral, numbers.used_ephemeral);
    for (index, (resource, wanted)) in entry.scalars.iter().enumerate() {
        if ignores(args, &asked.scalars[index].0) {
            continue;
        }
        let scalar = &columns.scalars[resource.index()];
        require(1 << (FIRST_SCALAR + index as u32), *wanted, scalar.total[node], scalar.used[node]);
    }
    match (reasons, hopeless) {
        (0, _) => Rejection::NONE,
        (reasons, false) => Rejection::resolvable(PluginId::NodeResourcesFit, reasons),
        (reasons, true) => Rejection::unresolvable(PluginId::NodeResourcesFit, reasons),
    }
}

/// Does the profile leave this extended resource out?
fn ignores(args: &FitArgs, name: &str) -> bool {
    if args.ignored.is_empty() && args.ignored_groups.is_empty() {
        return false;
    }
    let extended = name.contains('/') && !name.contains("kubernetes.io/");
    let group = name.split('/').next().unwrap_or_default();
    extended && (args.ignored.iter().any(|one| one == name) || args.ignored_groups.iter().any(|one| one == group))
}

/// The largest capacity for which a division of doubles, cut to an integer, is exact: with a capacity below 2⁴⁵ the
/// dividend is below 2⁵², and a quotient that is not whole differs from the next whole number by more than it is rounded.
const EXACT_CAPACITY: i64 = 1 << 45;

/// `part · 100 / whole` in integers. A division of doubles takes a fraction of the time of one of 64-bit integers.
#[inline]
fn percent(part: i64, whole: i64) -> i64 {
    if whole < EXACT_CAPACITY {
        return ((part * MAX_NODE_SCORE) as f64 / whole as f64) as i64;
    }
    // A memory in bytes times 100 can pass i64 on absurd input, where Go would wrap.
    (i128::from(part) * i128::from(MAX_NODE_SCORE) / i128::from(whole)) as i64
}

#[inline]
fn least(requested: i64, capacity: i64) -> i64 {
    if requested > capacity { 0 } else { percent(capacity - requested, capacity) }
}

/// LeastAllocated over CPU and memory with equal weights, with so much more of each.
#[inline]
pub(crate) fn mean_free_share(numbers: &Numbers, cpu: i64, memory: i64) -> i64 {
    let of_cpu = least(numbers.nonzero_cpu.saturating_add(cpu), numbers.cpu);
    let of_memory = least(numbers.nonzero_memory.saturating_add(memory), numbers.memory);
    match (numbers.cpu == 0, numbers.memory == 0) {
        (false, false) => (of_cpu + of_memory) / 2,
        (false, true) => of_cpu,
        (true, false) => of_memory,
        (true, true) => 0,
    }
}

/// What the node has, what is asked for on it, and what the pod asks for, of one resource; `None`: leave it out
/// (`calculateNodeAllocatableRequest`). `plain` counts requests as they are, otherwise missing ones count too.
pub(crate) fn of_resource(
    columns: &Columns,
    entry: &ShapeEntry,
    resource: Resource,
    node: usize,
    plain: bool,
) -> Option<(i64, i64, i64)> {
    let asked = &entry.shape.requests;
    let numbers = &columns.numbers[node];
    let (total, used, wanted) = match (resource, plain) {
        (Resource::Cpu, true) => (numbers.cpu, numbers.used_cpu, asked.cpu),
        (Resource::Cpu, false) => (numbers.cpu, numbers.nonzero_cpu, asked.scored_cpu),
        (Resource::Memory, true) => (numbers.memory, numbers.used_memory, asked.memory),
        (Resource::Memory, false) => (numbers.memory, numbers.nonzero_memory, asked.scored_memory),
        (Resource::Ephemeral, _) => (numbers.ephemeral, numbers.used_ephemeral, asked.ephemeral),
        (Resource::Scalar(id, only_if_wanted), _) => {
            let wanted = entry.scalars.iter().find(|(known, _)| *known == id).map_or(0, |(_, amount)| *amount);
            if wanted == 0 && only_if_wanted {
                return None;
            }
            let scalar = &columns.scalars[id.index()];
            (scalar.total[node], scalar.used[node], wanted)
        }
    };
    (total != 0).then_some((total, used, wanted))
}

/// The score of any strategy over any resources.
pub(crate) fn score(profile: &Compiled, columns: &Columns, entry: &ShapeEntry, node: usize) -> i64 {
    if profile.plain_fit {
        let asked = &entry.shape.requests;
        return mean_free_share(&columns.numbers[node], asked.scored_cpu, asked.scored_memory);
    }
    let (mut sum, mut weights) = (0_i64, 0_i64);
    for (resource, weight) in &profile.fit_resources {
        let Some((total, used, wanted)) = of_resource(columns, entry, *resource, node, false) else { continue };
        let requested = used.saturating_add(wanted);
        let score = match &profile.profile.fit.strategy {
            Strategy::LeastAllocated => least(requested, total),
            Strategy::MostAllocated => percent(requested.min(total), total),
            Strategy::RequestedToCapacityRatio(shape) => {
                let score = ratio(shape, requested, total);
                if score <= 0 {
                    continue;
                }
                score
            }
        };
        sum += score * weight;
        weights += weight;
    }
    match (weights, &profile.profile.fit.strategy) {
        (0, _) => 0,
        (_, Strategy::RequestedToCapacityRatio(_)) => (sum as f64 / weights as f64).round() as i64,
        _ => sum / weights,
    }
}

/// `BuildBrokenLinearFunction` (`plugins/helper/shape_score.go`) over scores from 0 to 10, scaled to 100.
fn ratio(shape: &[(i64, i64)], requested: i64, capacity: i64) -> i64 {
    let used = if requested > capacity { 100 } else { percent(requested, capacity) };
    let scaled = |point: &(i64, i64)| point.1 * (MAX_NODE_SCORE / 10);
    match shape.iter().position(|point| used <= point.0) {
        None => shape.last().map_or(0, scaled),
        Some(0) => scaled(&shape[0]),
        Some(at) => {
            let (from, to) = (&shape[at - 1], &shape[at]);
            scaled(from) + (scaled(to) - scaled(from)) * (used - from.0) / (to.0 - from.0)
        }
    }
}

/// Would the pod fit onto the node if it were empty? (`isFit`)
fn fits_empty(class: &PodClass, spec: &NodeSpec) -> bool {
    let asked = &class.shape.requests;
    let has = |name: &str| spec.scalars.get(name).copied().unwrap_or(0);
    spec.pods >= 1
        && asked.cpu <= spec.cpu.max(0)
        && asked.memory <= spec.memory.max(0)
        && asked.ephemeral <= spec.ephemeral.max(0)
        && asked.scalars.iter().all(|(name, wanted)| *wanted <= has(name))
}

/// `haveAnyRequestedResourcesIncreased`.
fn increased(class: &PodClass, before: &NodeSpec, after: &NodeSpec) -> bool {
    let asked = &class.shape.requests;
    let has = |spec: &NodeSpec, name: &str| spec.scalars.get(name).copied().unwrap_or(0);
    after.pods > before.pods
        || (asked.cpu > 0 && after.cpu > before.cpu)
        || (asked.memory > 0 && after.memory > before.memory)
        || (asked.ephemeral > 0 && after.ephemeral > before.ephemeral)
        || asked.scalars.iter().any(|(name, wanted)| *wanted != 0 && has(after, name) > has(before, name))
}

/// `isSchedulableAfterPodScaleDown` for another pod: did it give up something that this one asks for?
fn gave_up(class: &PodClass, before: &PodClass, after: &PodClass) -> bool {
    let (asked, old, new) = (&class.shape.requests, &before.shape.requests, &after.shape.requests);
    let has =
        |list: &[(sk_core::SmolStr, i64)], name: &str| list.iter().find(|(n, _)| n == name).map_or(0, |(_, v)| *v);
    (asked.cpu != 0 && old.cpu > new.cpu)
        || (asked.memory != 0 && old.memory > new.memory)
        || (asked.ephemeral != 0 && old.ephemeral > new.ephemeral)
        || asked.scalars.iter().any(|(name, wanted)| *wanted != 0 && has(&old.scalars, name) > has(&new.scalars, name))
}

impl Plugin for NodeResourcesFit {
    fn filter(&self, cx: &Cx<'_>, _: &Caches, _: &CycleState, node: NodeId) -> Rejection {
        filter(&cx.cluster.columns, cx.shape, &cx.profile.profile.fit, node.index())
    }

    fn score(&self, cx: &Cx<'_>, _: &Caches, _: &CycleState, nodes: &[NodeId], scores: &mut [i64]) {
        for (result, node) in scores.iter_mut().zip(nodes) {
            *result = score(cx.profile, &cx.cluster.columns, cx.shape, node.index());
        }
    }

    fn hint(&self, cx: &HintCx<'_>, event: &Event) -> Hint {
        match event {
            Event::PlacedPod { action: PodAction::Delete, .. } => Hint::Queue,
            Event::PlacedPod { action: PodAction::ScaleDown, before: Some(before), after: Some(after) } => {
                Hint::queue_if(gave_up(cx.class, cx.cluster.class(*before), cx.cluster.class(*after)))
            }
            Event::WaitingPod { pod, action: PodAction::ScaleDown, .. } => Hint::queue_if(cx.pod == Some(*pod)),
            Event::Node { change, action: NodeAction::Add | NodeAction::Allocatable } => {
                let fits = change.after.as_ref().is_some_and(|after| fits_empty(cx.class, after));
                let more = match (&change.before, &change.after) {
                    (Some(before), Some(after)) => increased(cx.class, before, after),
                    _ => true,
                };
                Hint::queue_if(fits && more)
            }
            _ => Hint::Skip,
        }
    }

    fn describe(&self, class: &PodClass, reasons: u32, say: &mut dyn FnMut(&str)) {
        let fixed = [(PODS, "Too many pods"), (CPU, "Insufficient cpu"), (MEMORY, "Insufficient memory")];
        let fixed = fixed.into_iter().chain([(EPHEMERAL, "Insufficient ephemeral-storage")]);
        fixed.filter(|(bit, _)| reasons & bit != 0).for_each(|(_, text)| say(text));
        for (index, (name, _)) in class.shape.requests.scalars.iter().enumerate() {
            if reasons & 1 << (FIRST_SCALAR + index as u32) != 0 {
                say(&format!("Insufficient {name}"));
            }
        }
    }
}

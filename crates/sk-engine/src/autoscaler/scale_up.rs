//! Which group to grow, and by how many nodes.

use std::cmp::Reverse;

use sk_core::rng::Stream;
use sk_scheduler::{NodeId, NodeSpec, Scheduler};

use super::groups::Group;
use super::view::{Amount, PodView};
use crate::settings::Expander;

/// Growing one group by some nodes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ExpansionOption {
    /// Index of the group.
    pub(super) group: usize,
    /// How many nodes to add.
    pub(super) nodes: usize,
    /// How many of the pods would then have a place.
    pub(super) pods: usize,
    /// Unused share of CPU plus unused share of memory on the new nodes, in millionths.
    waste: i64,
}

/// What each group could do for the pods, within its maximum; `machines` are those it has, also those that are going.
pub(super) fn options(
    pods: &[PodView],
    groups: &[Group],
    machines: &[usize],
    what_if: &mut Scheduler,
) -> Vec<ExpansionOption> {
    let mut options = Vec::new();
    for (index, group) in groups.iter().enumerate() {
        let most = usize::try_from(group.settings.max).unwrap_or(usize::MAX);
        let room = most.saturating_sub(machines[index]);
        options.extend(estimate(index, &group.template(), pods, room, what_if));
    }
    options
}

/// First-fit, largest pods first, onto as few new nodes as that takes (cluster-autoscaler's binpacking estimator).
fn estimate(
    group: usize,
    template: &NodeSpec,
    pods: &[PodView],
    room: usize,
    what_if: &mut Scheduler,
) -> Option<ExpansionOption> {
    let mut sorted: Vec<&PodView> = pods.iter().collect();
    sorted.sort_by_key(|pod| Reverse(size(pod, template)));
    let before = what_if.cluster.checkpoint();
    // The last one may still be empty: it waits for a pod that fits onto it.
    let mut nodes: Vec<(NodeId, Vec<Amount>)> = Vec::new();
    for pod in sorted {
        let used = nodes.iter().filter(|(_, pods)| !pods.is_empty()).count();
        if nodes.len() == used && used < room {
            let name = format!("{}-{used}", template.name).into();
            nodes.push((what_if.cluster.set_node(NodeSpec { name, ..template.clone() }).node, Vec::new()));
        }
        if let Some(node) = what_if.first_fit(pod.id, nodes.iter().map(|(node, _)| *node)) {
            what_if.cluster.add_pod(pod.id, node);
            let found = nodes.iter_mut().find(|(known, _)| *known == node);
            found.into_iter().for_each(|(_, pods)| pods.push(pod.requests));
        }
    }
    what_if.cluster.rollback(before);
    nodes.iter().for_each(|(node, _)| drop(what_if.cluster.remove_node(*node)));
    nodes.retain(|(_, pods)| !pods.is_empty());
    let placed = nodes.iter().map(|(_, pods)| pods.len()).sum();
    let used = Amount::sum(nodes.iter().flat_map(|(_, pods)| pods.iter().copied()));
    let total = Amount::sum(nodes.iter().map(|_| Amount::of(template)));
    let option = ExpansionOption { group, nodes: nodes.len(), pods: placed, waste: waste(used, total) };
    (placed > 0).then_some(option)
}

/// The pod's share of a node: of CPU plus of memory, in millionths.
fn size(pod: &PodView, template: &NodeSpec) -> i64 {
    let (wanted, total) = (pod.requests, Amount::of(template));
    share(wanted.cpu_milli, total.cpu_milli).saturating_add(share(wanted.memory, total.memory))
}

fn waste(used: Amount, total: Amount) -> i64 {
    let free = |used: i64, total: i64| 1_000_000 - share(used, total);
    free(used.cpu_milli, total.cpu_milli) + free(used.memory, total.memory)
}

fn share(part: i64, whole: i64) -> i64 {
    if whole <= 0 { 0 } else { (i128::from(part) * 1_000_000 / i128::from(whole)).clamp(0, 1_000_000) as i64 }
}

/// The expander's choice.
pub(super) fn choose(
    options: Vec<ExpansionOption>,
    expander: Expander,
    choice: &mut Stream,
) -> Option<ExpansionOption> {
    let best: Vec<ExpansionOption> = match expander {
        Expander::Random => options,
        Expander::LeastWaste => keep_best(options, |option| Reverse(option.waste)),
        Expander::MostPods => keep_best(options, |option| option.pods),
    };
    // cluster-autoscaler, too, draws among equals.
    let index = if best.len() > 1 { choice.below(best.len() as u64) as usize } else { 0 };
    best.into_iter().nth(index)
}

fn keep_best<K: Ord>(options: Vec<ExpansionOption>, worth: impl Fn(&ExpansionOption) -> K) -> Vec<ExpansionOption> {
    let Some(best) = options.iter().map(&worth).max() else { return Vec::new() };
    options.into_iter().filter(|option| worth(option) == best).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn option(group: usize, pods: usize, waste: i64) -> ExpansionOption {
        ExpansionOption { group, nodes: 1, pods, waste }
    }

    #[test]
    fn the_expander_decides_between_groups() {
        let options = vec![option(0, 3, 700_000), option(1, 5, 900_000), option(2, 4, 100_000)];
        let choose = |expander| {
            super::choose(options.clone(), expander, &mut Stream::new(1, "expander")).map(|option| option.group)
        };
        assert_eq!(choose(Expander::MostPods), Some(1));
        assert_eq!(choose(Expander::LeastWaste), Some(2));
        assert_eq!(choose(Expander::Random), choose(Expander::Random), "the same seed draws the same");
        assert_eq!(super::choose(Vec::new(), Expander::Random, &mut Stream::new(1, "expander")), None);
    }
}

//! Which group to grow, and by how many nodes: pure decisions.

use std::cmp::Reverse;

use sk_core::rng::Stream;
use sk_scheduler::{Node, plugins};

use super::groups::Group;
use super::view::PodView;
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
pub(super) fn options(pods: &[PodView], groups: &[Group], machines: &[usize]) -> Vec<ExpansionOption> {
    let options = groups.iter().enumerate().filter_map(|(index, group)| {
        let most = usize::try_from(group.settings.max).unwrap_or(usize::MAX);
        let room = most.saturating_sub(machines[index]);
        estimate(index, &group.template(), pods, room)
    });
    options.collect()
}

/// First-fit, largest pods first, onto as few new nodes as that takes (cluster-autoscaler's binpacking estimator).
fn estimate(group: usize, template: &Node, pods: &[PodView], room: usize) -> Option<ExpansionOption> {
    let mut sorted: Vec<&PodView> = pods.iter().collect();
    sorted.sort_by_key(|pod| Reverse(size(pod, template)));
    let mut nodes: Vec<Node> = Vec::new();
    let mut placed = 0;
    for pod in sorted {
        if plugins::filter(&pod.class, template).is_err() {
            continue;
        }
        let fitting = nodes.iter().position(|node| plugins::filter(&pod.class, node).is_ok());
        let index = match fitting {
            Some(index) => index,
            None if nodes.len() < room => {
                nodes.push(template.clone());
                nodes.len() - 1
            }
            None => continue,
        };
        nodes[index].add_pod(&pod.class);
        placed += 1;
    }
    let option = ExpansionOption { group, nodes: nodes.len(), pods: placed, waste: waste(&nodes) };
    (placed > 0).then_some(option)
}

/// The pod's share of a node: of CPU plus of memory, in millionths.
fn size(pod: &PodView, template: &Node) -> i64 {
    let (wanted, total) = (&pod.class.requests, &template.allocatable);
    share(wanted.cpu_milli, total.cpu_milli).saturating_add(share(wanted.memory, total.memory))
}

fn waste(nodes: &[Node]) -> i64 {
    let sum = |amount: fn(&Node) -> i64| nodes.iter().map(amount).fold(0, i64::saturating_add);
    let free = |used: i64, total: i64| 1_000_000 - share(used, total);
    free(sum(|node| node.requested.cpu_milli), sum(|node| node.allocatable.cpu_milli))
        + free(sum(|node| node.requested.memory), sum(|node| node.allocatable.memory))
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

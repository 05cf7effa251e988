//! How many more nodes of which group would have fitted the waiting pods.
//!
//! Computed from requests of CPU and memory, because that is what a record knows of groups. For taints, affinity and
//! the like it uses the autoscaler's own decisions: a group that the autoscaler rejected for the pods is left out, and
//! if every group was rejected, the output says that instead.

use std::collections::BTreeSet;

use sk_record::{Group, PodRow, RunMeta};

use super::Said;
use super::options::{self, Stance};
use crate::words;

/// Groups that are shown.
const GROUPS_MAX: usize = 5;

/// For each group how many more nodes the pods would have needed, the fewest first; or why none would do.
pub(super) fn of(pods: &[&PodRow], (autoscaler, considered): (&[Said], &[Said]), meta: &RunMeta) -> Vec<String> {
    if meta.groups.is_empty() || pods.is_empty() {
        return Vec::new();
    }
    if let Some(reasons) = autoscaler.iter().find_map(|said| unsuited(&said.message, meta.groups.len())) {
        return vec![format!("no group: {reasons}")];
    }
    let repelling = repelling(considered);
    let suiting = meta.groups.iter().filter(|group| !repelling.contains(group.name.as_str()));
    let mut fitting: Vec<(i64, &Group)> = suiting.filter_map(|group| Some((nodes_for(pods, group)?, group))).collect();
    fitting.sort_by_key(|(nodes, group)| (*nodes, group.cpu_m));
    if fitting.is_empty() {
        let said = considered.first().filter(|_| !repelling.is_empty());
        return vec![said.map_or_else(|| too_large(pods, meta), |said| format!("no group: {}", said.message))];
    }
    let told = fitting
        .iter()
        .take(GROUPS_MAX)
        .map(|(nodes, group)| format!("{} +{} (its max is {})", group.name, words::plural(*nodes, "node"), group.max));
    told.collect()
}

/// The groups that repelled the pods in every decision about them.
fn repelling(considered: &[Said]) -> BTreeSet<&str> {
    let mut repel: BTreeSet<&str> = BTreeSet::new();
    let mut suit: BTreeSet<&str> = BTreeSet::new();
    for (group, stance) in considered.iter().flat_map(|said| options::read(&said.message)) {
        match stance {
            Stance::Repels(_) => repel.insert(group),
            Stance::Suits => suit.insert(group),
        };
    }
    repel.retain(|group| !suit.contains(group));
    repel
}

/// Why no group fits a pod, if that is the autoscaler's message: `2 node(s) didn't match Pod's node
/// affinity/selector` of two groups. A group that is full or is given a rest would suit it.
fn unsuited(message: &str, groups: usize) -> Option<&str> {
    let (_, reasons) = message.split_once("pod didn't trigger scale-up: ")?;
    let suited = |reason: &str| reason.starts_with("max ") || reason.starts_with("in backoff");
    let counted = |reason: &str| {
        let (count, why) = reason.split_once(' ')?;
        let count = count.parse::<usize>().ok()?;
        (!suited(why)).then_some(count)
    };
    (reasons.split(", ").filter_map(counted).sum::<usize>() >= groups).then_some(reasons)
}

/// First fit, largest first: how many empty nodes of the group take all of the pods.
fn nodes_for(pods: &[&PodRow], group: &Group) -> Option<i64> {
    let mut requests: Vec<(i64, i64)> = pods.iter().map(|pod| (pod.cpu_m, pod.memory_bytes)).collect();
    requests.sort_unstable_by(|a, b| b.cmp(a));
    let mut free: Vec<(i64, i64)> = Vec::new();
    for (cpu, memory) in requests {
        if cpu > group.cpu_m || memory > group.memory_bytes {
            return None;
        }
        match free.iter_mut().find(|(free_cpu, free_memory)| cpu <= *free_cpu && memory <= *free_memory) {
            Some(node) => *node = (node.0 - cpu, node.1 - memory),
            None => free.push((group.cpu_m - cpu, group.memory_bytes - memory)),
        }
    }
    Some(free.len() as i64)
}

fn too_large(pods: &[&PodRow], meta: &RunMeta) -> String {
    let most = |of: fn(&PodRow) -> i64| pods.iter().map(|pod| of(pod)).max().unwrap_or(0);
    let largest = meta.groups.iter().max_by_key(|group| (group.cpu_m, group.memory_bytes));
    let largest = largest.map_or_else(String::new, |group| {
        let memory = group.memory_bytes >> 20;
        format!("; the largest node, of {}, has {} and {memory} MiB", group.name, words::cpu(group.cpu_m))
    });
    let (cpu, memory) = (words::cpu(most(|pod| pod.cpu_m)), most(|pod| pod.memory_bytes) >> 20);
    format!("no group: one pod asks for {cpu} and {memory} MiB{largest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_no_group_suits_is_called_so() {
        let said = |reasons: &str| format!("NotTriggerScaleUp: pod didn't trigger scale-up: {reasons}");
        let affinity = "2 node(s) didn't match Pod's node affinity/selector";
        assert_eq!(unsuited(&said(affinity), 2), Some(affinity));
        assert!(unsuited(&said("1 Insufficient cpu, 1 node(s) had untolerated taint(s)"), 2).is_some());
        for reasons in [
            "1 node(s) didn't match Pod's node affinity/selector, 1 max node group size reached",
            "2 max node group size reached",
            "1 Insufficient cpu, 1 in backoff after failed scale-up",
        ] {
            assert_eq!(unsuited(&said(reasons), 2), None, "{reasons}");
        }
        assert_eq!(unsuited("pod triggered scale-up: [{small 1->2 (max: 9)}]", 1), None);
    }
}

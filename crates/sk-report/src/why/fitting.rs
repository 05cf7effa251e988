//! What would have fitted: how many more nodes of which group would have taken the pods that waited.
//!
//! By requests of CPU and memory alone, because that is what a record knows of groups; taints, affinity and volumes can
//! still be in the way, and then the scheduler's words say so.

use sk_record::{Group, PodRow, RunMeta};

use crate::words;

/// Groups that are told.
const GROUPS_MAX: usize = 5;

/// For each group how many more nodes the pods would have needed, the fewest first; or why none would do.
pub(super) fn of(pods: &[&PodRow], meta: &RunMeta) -> Vec<String> {
    if meta.groups.is_empty() || pods.is_empty() {
        return Vec::new();
    }
    let mut fitting: Vec<(i64, &Group)> =
        meta.groups.iter().filter_map(|group| Some((nodes_for(pods, group)?, group))).collect();
    fitting.sort_by_key(|(nodes, group)| (*nodes, group.cpu_m));
    if fitting.is_empty() {
        return vec![too_large(pods, meta)];
    }
    let told = fitting
        .iter()
        .take(GROUPS_MAX)
        .map(|(nodes, group)| format!("{} +{} (its max is {})", group.name, words::plural(*nodes, "node"), group.max));
    told.collect()
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

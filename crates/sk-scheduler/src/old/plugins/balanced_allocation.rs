//! NodeResourcesBalancedAllocation: better where CPU and memory end up used in like shares
//! (`noderesources/balanced_allocation.go`, 1.36).
//!
//! Floating point as in Kubernetes: IEEE doubles, the same operations in the same order, so the same result everywhere.

use super::MAX_NODE_SCORE;
use crate::{Node, PodClass};

/// How much placing the pod improves the balance, around 75. A best-effort pod is not scored: 0 on every node.
pub fn score(pod: &PodClass, node: &Node) -> i64 {
    let (wanted, total, used) = (&pod.requests, &node.allocatable, &node.requested);
    if wanted.cpu_milli == 0 && wanted.memory == 0 {
        return 0;
    }
    let totals = [total.cpu_milli, total.memory];
    let without = balance([used.cpu_milli, used.memory], totals);
    let with =
        balance([used.cpu_milli.saturating_add(wanted.cpu_milli), used.memory.saturating_add(wanted.memory)], totals);
    MAX_NODE_SCORE / 2 + (MAX_NODE_SCORE / 2 + with - without) / 2
}

fn balance(used: [i64; 2], total: [i64; 2]) -> i64 {
    let share = |used: i64, total: i64| (used as f64 / total as f64).min(1.0);
    let deviation = if total.contains(&0) {
        0.0 // With fewer than two resources there is nothing to balance.
    } else {
        ((share(used[0], total[0]) - share(used[1], total[1])) / 2.0).abs()
    };
    ((1.0 - deviation) * MAX_NODE_SCORE as f64) as i64
}

#[cfg(test)]
mod tests {
    use sk_core::Resources;

    use super::*;

    #[test]
    fn a_pod_that_evens_out_the_node_scores_above_one_that_tilts_it() {
        let mut node = Node { allocatable: Resources::new(1000, 1000), ..Node::default() };
        let pod = |cpu, memory| PodClass { requests: Resources::new(cpu, memory), ..PodClass::default() };
        node.add_pod(&pod(500, 0));
        // Before: |0.5-0|/2 → 75. After 0.5/0.5 → 100. After 1.0/0 → 50.
        assert_eq!(score(&pod(0, 500), &node), 87);
        assert_eq!(score(&pod(500, 0), &node), 62);
        assert_eq!(score(&pod(0, 0), &node), 0);
    }
}

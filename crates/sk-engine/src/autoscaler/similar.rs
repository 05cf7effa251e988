//! Similar node groups, which differ only in their zone, and how a scale-up is balanced among them
//! (`processors/nodegroupset/compare_nodegroups.go`, `balancing_processor.go`).

use sk_apiserver::directives::NODE_GROUP;
use sk_core::SmolStr;
use sk_scheduler::NodeSpec;

use super::estimator::share;
use super::template::Template;

/// Labels in which nodes of similar groups may differ.
const IGNORED: [&str; 7] = [
    "kubernetes.io/hostname",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "beta.kubernetes.io/fluentd-ds-ready",
    "kops.k8s.io/instancegroup",
];
/// `memory-difference-ratio`, of the whole node, in millionths.
const MEMORY_DIFFERENCE: i64 = 15_000;
/// `max-free-difference-ratio` and `max-allocatable-difference-ratio`, in millionths.
const FREE_DIFFERENCE: i64 = 50_000;

/// Are the two alike but for their zone?
pub(super) fn are_similar(one: &Template, other: &Template, ignored: &[SmolStr]) -> bool {
    let (first, second) = (one.spec(), other.spec());
    one.total.cpu_milli == other.total.cpu_milli
        && first.scalars == second.scalars
        && is_near(one.total.memory, other.total.memory, MEMORY_DIFFERENCE)
        && is_near(first.cpu, second.cpu, FREE_DIFFERENCE)
        && is_near(first.memory, second.memory, FREE_DIFFERENCE)
        && same_labels(first, second, ignored)
}

fn is_near(one: i64, other: i64, ratio: i64) -> bool {
    let (larger, smaller) = (one.max(other), one.min(other));
    share(larger.saturating_sub(smaller), larger) <= ratio
}

fn same_labels(one: &NodeSpec, other: &NodeSpec, ignored: &[SmolStr]) -> bool {
    let counts = |key: &SmolStr| *key != NODE_GROUP && !IGNORED.contains(&key.as_str()) && !ignored.contains(key);
    let of = |spec: &NodeSpec| -> Vec<(SmolStr, SmolStr)> {
        spec.labels.iter().filter(|(key, _)| counts(key)).map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    of(one) == of(other)
}

/// Spreads `nodes` over groups that have `sizes` nodes and may have `most`: each goes to the smallest, the first of
/// equals. The groups' new sizes.
pub(super) fn spread(nodes: usize, sizes: &[usize], most: &[usize]) -> Vec<usize> {
    let mut after = sizes.to_vec();
    for _ in 0..nodes {
        let open = (0..after.len()).filter(|place| after[*place] < most[*place]);
        let Some(smallest) = open.min_by_key(|place| after[*place]) else { break };
        after[smallest] += 1;
    }
    after
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_group_grows_first_and_none_beyond_its_maximum() {
        assert_eq!(spread(7, &[0, 0, 0], &[10, 10, 10]), [3, 2, 2]);
        assert_eq!(spread(3, &[4, 0, 1], &[10, 10, 10]), [4, 2, 2]);
        assert_eq!(spread(5, &[0, 0], &[1, 2]), [1, 2], "what does not fit is not made");
    }
}

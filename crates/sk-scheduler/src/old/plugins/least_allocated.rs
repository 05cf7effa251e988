//! NodeResourcesFit's default score, LeastAllocated over CPU and memory with equal weights: emptier is better
//! (`noderesources/least_allocated.go`, 1.36).

use super::MAX_NODE_SCORE;
use crate::{Node, PodClass};

/// The mean of the free shares after placing the pod, in integers.
pub fn score(pod: &PodClass, node: &Node) -> i64 {
    let (wanted, total, used) = (&pod.scoring_requests, &node.allocatable, &node.scoring_requested);
    let shares = [
        free_share(wanted.cpu_milli, total.cpu_milli, used.cpu_milli),
        free_share(wanted.memory, total.memory, used.memory),
    ];
    let counted = shares.iter().flatten().count() as i64;
    if counted == 0 { 0 } else { shares.iter().flatten().sum::<i64>() / counted }
}

/// `None` when the node has none of the resource: it is then left out of the mean.
fn free_share(wanted: i64, total: i64, used: i64) -> Option<i64> {
    if total == 0 {
        return None;
    }
    let requested = used.saturating_add(wanted);
    if requested > total {
        return Some(0);
    }
    // i128: a memory size in bytes times 100 can pass i64 on absurd input, where Go would wrap.
    Some((i128::from(total - requested) * i128::from(MAX_NODE_SCORE) / i128::from(total)) as i64)
}

#[cfg(test)]
mod tests {
    use sk_core::Resources;

    use super::*;

    #[test]
    fn the_score_is_the_integer_mean_of_the_free_shares() {
        let node = Node { allocatable: Resources::new(4000, 10_000), ..Node::default() };
        let pod = PodClass { scoring_requests: Resources::new(3000, 5000), ..PodClass::default() };
        // (4000-3000)*100/4000 = 25, (10000-5000)*100/10000 = 50, mean 37.
        assert_eq!(score(&pod, &node), 37);
    }

    #[test]
    fn an_overfull_resource_counts_as_no_room_and_a_missing_one_is_left_out() {
        let node = Node { allocatable: Resources::new(0, 10_000), ..Node::default() };
        let pod = PodClass { scoring_requests: Resources::new(3000, 20_000), ..PodClass::default() };
        assert_eq!(score(&pod, &node), 0);
        let pod = PodClass { scoring_requests: Resources::new(3000, 2_500), ..PodClass::default() };
        assert_eq!(score(&pod, &node), 75);
    }
}

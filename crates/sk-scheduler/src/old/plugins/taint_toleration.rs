//! TaintToleration: taints that repel keep a pod off; taints that merely prefer others lower the score.

use sk_core::{Taint, TaintEffect};

use super::{Filter, MAX_NODE_SCORE, Rejection};
use crate::{Node, PodClass};

pub(super) fn filter(pod: &PodClass, node: &Node) -> Result<(), Rejection> {
    let repels = |taint: &&Taint| taint.effect != TaintEffect::PreferNoSchedule && !tolerated(pod, taint);
    match node.taints.iter().find(repels) {
        None => Ok(()),
        Some(_) => Err(Rejection::unresolvable(Filter::TaintToleration, "node(s) had untolerated taint(s)")),
    }
}

/// Fewer untolerated `PreferNoSchedule` taints score higher; normalised over the feasible nodes, reversed.
pub(super) fn scores(pod: &PodClass, nodes: &[&Node]) -> Vec<i64> {
    let disliked = |node: &&Node| {
        let dislikes = |taint: &&Taint| taint.effect == TaintEffect::PreferNoSchedule && !tolerated(pod, taint);
        node.taints.iter().filter(dislikes).count() as i64
    };
    let counts: Vec<i64> = nodes.iter().map(disliked).collect();
    let most = counts.iter().copied().max().unwrap_or(0);
    if most == 0 {
        return vec![MAX_NODE_SCORE; nodes.len()];
    }
    counts.into_iter().map(|count| MAX_NODE_SCORE - MAX_NODE_SCORE * count / most).collect()
}

/// For the soft effect Kubernetes looks only at tolerations of that effect or of every effect, which is what
/// `tolerates` does by itself.
fn tolerated(pod: &PodClass, taint: &Taint) -> bool {
    pod.tolerations.iter().any(|toleration| toleration.tolerates(taint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_with_more_disliked_taints_score_lower() {
        let node = |count: usize| {
            let taints = (0..count).map(|n| Taint::new(format!("t{n}"), TaintEffect::PreferNoSchedule)).collect();
            Node { taints, ..Node::default() }
        };
        let nodes = [node(0), node(1), node(2)];
        let nodes: Vec<&Node> = nodes.iter().collect();
        assert_eq!(scores(&PodClass::default(), &nodes), [100, 50, 0]);
        assert_eq!(filter(&PodClass::default(), nodes[2]), Ok(()));
    }
}

//! `ScheduleAnyway`: fewer pods of the kind in a node's domains are better (`podtopologyspread/scoring.go`).

use super::filter::{Counts, sum};
use super::go_log::ln;
use super::{Constraints, HOSTNAME};
use crate::cluster::topology::NO_VALUE;
use crate::counters::What;
use crate::framework::cycle_state::{Caches, Cx};
use crate::ids::{KeyId, NodeId};
use crate::plugins::MAX_NODE_SCORE;

/// One soft constraint in one cycle.
#[derive(Clone, Debug)]
struct Part {
    key: KeyId,
    /// Per node rather than per domain.
    per_node: bool,
    counts: Counts,
    weight: f64,
    /// `maxSkew - 1`.
    base: f64,
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub(super) struct SoftState {
    parts: Vec<Part>,
    /// A node without any of these labels is not scored.
    required_keys: Vec<KeyId>,
}

/// `initPreScoreState` and the counting of `PreScore`.
pub(super) fn prepare(cx: &Cx<'_>, caches: &mut Caches, constraints: &Constraints, nodes: &[NodeId]) -> SoftState {
    let topology = &cx.cluster.topology;
    let keys: Vec<KeyId> = constraints.soft.iter().map(|(_, key)| *key).collect();
    let required_keys = if constraints.require_all { keys } else { Vec::new() };
    let mut state = SoftState { parts: Vec::with_capacity(constraints.soft.len()), required_keys };
    let all_scored = state.required_keys.iter().all(|key| topology.domains(*key).without == 0);
    let scored = |node: &&NodeId| all_scored || state.is_scored(cx, **node);
    let scored_count = if all_scored { nodes.len() } else { nodes.iter().filter(scored).count() };
    let mut parts = Vec::with_capacity(constraints.soft.len());
    for (constraint, key) in &constraints.soft {
        let per_node = constraint.key == HOSTNAME;
        let (counts, size) = if per_node {
            let what = What::Selected { namespace: cx.class.namespace.clone(), selector: constraint.selector.clone() };
            (Counts::Kept(caches.counters.ask(cx.cluster, &what, None)), scored_count)
        } else {
            let (counts, _) = sum(cx, caches, constraint, *key, &state.required_keys);
            (counts, distinct(cx, *key, nodes.iter().filter(scored)))
        };
        parts.push(Part {
            key: *key,
            per_node,
            counts,
            weight: ln((size + 2) as f64),
            base: f64::from(constraint.max_skew - 1),
        });
    }
    state.parts = parts;
    state
}

/// In how many domains the nodes are; having no label is one too.
fn distinct<'a>(cx: &Cx<'_>, key: KeyId, nodes: impl Iterator<Item = &'a NodeId>) -> usize {
    let domains = cx.cluster.topology.domains(key);
    let (mut seen, mut count) = (vec![false; domains.len() + 1], 0);
    // There are seldom more than a few zones, so it ends early.
    let most = domains.nodes.iter().filter(|nodes| **nodes > 0).count() + usize::from(domains.without > 0);
    for node in nodes {
        let domain = domains.of[node.index()];
        let slot = if domain == NO_VALUE { domains.len() } else { domain as usize };
        if !std::mem::replace(&mut seen[slot], true) {
            count += 1;
            if count == most {
                break;
            }
        }
    }
    count
}

impl SoftState {
    fn is_scored(&self, cx: &Cx<'_>, node: NodeId) -> bool {
        self.required_keys.iter().all(|key| cx.cluster.topology.domains(*key).of[node.index()] != NO_VALUE)
    }

    /// Raw scores, then `NormalizeScore`.
    pub(super) fn score(&self, cx: &Cx<'_>, caches: &Caches, nodes: &[NodeId], scores: &mut [i64]) {
        const UNSCORED: i64 = -1;
        let all_scored = self.required_keys.iter().all(|key| cx.cluster.topology.domains(*key).without == 0);
        let (mut least, mut most) = (i64::MAX, 0);
        for (score, node) in scores.iter_mut().zip(nodes) {
            if !all_scored && !self.is_scored(cx, *node) {
                *score = UNSCORED;
                continue;
            }
            *score = self.raw(cx, caches, *node);
            least = least.min(*score);
            most = most.max(*score);
        }
        for score in scores {
            *score = match *score {
                UNSCORED => 0,
                _ if most == 0 => MAX_NODE_SCORE,
                // Exact: the dividend is far below 2⁵³ (see `percent` in node_resources_fit).
                raw if most < 1 << 40 => ((MAX_NODE_SCORE * (most + least - raw)) as f64 / most as f64) as i64,
                raw => MAX_NODE_SCORE * (most + least - raw) / most,
            };
        }
    }

    fn raw(&self, cx: &Cx<'_>, caches: &Caches, node: NodeId) -> i64 {
        let mut score = 0.0;
        for part in &self.parts {
            let domain = cx.cluster.topology.domains(part.key).of[node.index()];
            if domain == NO_VALUE {
                continue;
            }
            let count = part.counts.of(caches, if part.per_node { node.0 } else { domain });
            score += count as f64 * part.weight + part.base;
        }
        f64::round(score) as i64
    }
}

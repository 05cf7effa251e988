//! `ScheduleAnyway`: prefers nodes with fewer matching pods in their domains (`podtopologyspread/scoring.go`).

use super::constraints::Keyed;
use super::filter::{Counts, sum};
use super::go_log::ln;
use super::{Constraints, HOSTNAME};
use crate::cluster::topology::NO_VALUE;
use crate::framework::cycle_state::{Caches, Cx};
use crate::ids::{KeyId, NodeId};
use crate::plugins::MAX_NODE_SCORE;

/// One soft constraint in one cycle.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) key: KeyId,
    /// Per node rather than per domain.
    pub(super) per_node: bool,
    pub(super) counts: Counts,
    pub(super) weight: f64,
    /// `maxSkew - 1`.
    base: f64,
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct SoftState {
    pub(super) parts: Vec<Part>,
    /// A node without any of these labels is not scored.
    required_keys: Vec<KeyId>,
}

/// `initPreScoreState` and the counting of `PreScore`.
pub(super) fn prepare(cx: &Cx<'_>, caches: &mut Caches, constraints: &Constraints, nodes: &[NodeId]) -> SoftState {
    let mut state = prepare_parts(cx, caches, constraints, nodes.len());
    let all_scored = state.required_keys.iter().all(|key| cx.cluster.topology.domains(*key).without == 0);
    let mut parts = std::mem::take(&mut state.parts);
    let scored = |node: &&NodeId| all_scored || state.is_scored(cx, **node);
    for part in &mut parts {
        match part.per_node {
            true if all_scored => {}
            true => part.weigh(nodes.iter().filter(scored).count()),
            false => part.weigh(distinct(cx, part.key, nodes.iter().filter(scored))),
        }
    }
    state.parts = parts;
    state
}

/// The same, as if all nodes were scored, and without weights for what is counted per domain.
pub(super) fn prepare_parts(
    cx: &Cx<'_>,
    caches: &mut Caches,
    constraints: &Constraints,
    scored_nodes: usize,
) -> SoftState {
    let keys = || constraints.soft.iter().map(|keyed| keyed.key).collect();
    let required_keys: Vec<KeyId> = if constraints.require_all { keys() } else { Vec::new() };
    let mut parts = Vec::with_capacity(constraints.soft.len());
    for keyed in &constraints.soft {
        let Keyed { constraint, key, what } = keyed;
        let per_node = constraint.key == HOSTNAME;
        let counts = if per_node {
            Counts::Kept(caches.counters.ask(cx.cluster, what, None))
        } else {
            sum(cx, caches, keyed, &required_keys).0
        };
        let base = f64::from(constraint.max_skew - 1);
        let mut part = Part { key: *key, per_node, counts, weight: 0.0, base };
        if per_node {
            part.weigh(scored_nodes);
        }
        parts.push(part);
    }
    SoftState { parts, required_keys }
}

/// The more domains there are, the more each pod counts (`topologyNormalizingWeight`).
pub(super) fn weight(size: usize) -> f64 {
    ln((size + 2) as f64)
}

impl Part {
    fn weigh(&mut self, size: usize) {
        self.weight = weight(size);
    }

    #[inline]
    fn score(&self, count: i64) -> f64 {
        self.weighed(count, self.weight)
    }

    /// `scoreForCount`.
    #[inline]
    pub(super) fn weighed(&self, count: i64, weight: f64) -> f64 {
        count as f64 * weight + self.base
    }
}

/// `NormalizeScore` of one raw score.
#[inline]
pub(super) fn normalised(raw: i64, least: i64, most: i64) -> i64 {
    match most {
        0 => MAX_NODE_SCORE,
        // Exact: the dividend is far below 2⁵³ (see `percent` in node_resources_fit).
        most if most < 1 << 40 => ((MAX_NODE_SCORE * (most + least - raw)) as f64 / most as f64) as i64,
        most => MAX_NODE_SCORE * (most + least - raw) / most,
    }
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
            *score = if *score == UNSCORED { 0 } else { normalised(*score, least, most) };
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
            score += part.score(count);
        }
        f64::round(score) as i64
    }
}

//! The choice where soft topology spread is the only score that looks at other pods.
//!
//! What that score says of a node depends on how many pods of the kind are in its domains, and on nothing else. So the
//! feasible nodes fall into a few groups (so many pods on the host, this zone), each group is scored once, and of each
//! group only the nodes with the best local score can win.

use std::sync::Arc;

use super::pick::precedes;
use super::plugin::PluginId;
use super::scheduler::{Attempt, Scheduler};
use super::search::{Found, Reach};
use crate::ids::ShapeId;
use crate::plugins::pod_topology_spread::{Alike, SoftState};

/// More groups than that are not worth it: 16 KB of best scores. Three zones and 110 pods on a host make 444.
const MAX_GROUPS: usize = 4_096;

/// The groups of a cycle; kept so that a cycle allocates nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grouping {
    /// Of each node of the window its group.
    of_nodes: Vec<u32>,
    /// By group: the best local score of a feasible node in it.
    best: Vec<i32>,
    /// The groups that have a feasible node.
    met: Vec<u32>,
}

/// Nobody feasible is in the group. No local score is as low, and that of a node that is out is as low.
const NOBODY: i32 = -1;
/// A score that no node has.
const NO_SCORE: i32 = i32::MIN;

impl Grouping {
    /// Finds the best of each of so many groups. `scores` are those of the window's two stretches.
    fn meet(&mut self, groups: usize, scores: [&[i32]; 2]) {
        self.best.clear();
        self.best.resize(groups, NOBODY);
        let (first, second) = self.of_nodes.split_at(scores[0].len());
        for (groups, scores) in [(first, scores[0]), (second, scores[1])] {
            for (group, score) in groups.iter().zip(scores) {
                let best = &mut self.best[*group as usize];
                *best = (*best).max(*score);
            }
        }
        self.met.clear();
        let is_met = |(_, best): &(usize, &i32)| **best != NOBODY;
        self.met.extend(self.best.iter().enumerate().filter(is_met).map(|(group, _)| group as u32));
    }

    /// How far into the window the winner is, when each group that is met gets this much more.
    fn winner(&mut self, scores: [&[i32]; 2], more: &[i64]) -> Option<usize> {
        let totals = self.met.iter().zip(more).map(|(group, more)| i64::from(self.best[*group as usize]) + more);
        let most = totals.max()?;
        for (group, more) in self.met.iter().zip(more) {
            let best = &mut self.best[*group as usize];
            if i64::from(*best) + more != most {
                *best = NO_SCORE;
            }
        }
        let mut winner: Option<(usize, usize)> = None;
        // Nodes that are out have no place in the list of feasible ones.
        let (mut offset, mut place) = (0, 0);
        let (first, second) = self.of_nodes.split_at(scores[0].len());
        for (groups, scores) in [(first, scores[0]), (second, scores[1])] {
            for (group, score) in groups.iter().zip(scores) {
                let is_best = self.best[*group as usize] == *score && *score != NOBODY;
                if is_best && winner.is_none_or(|(_, best)| precedes(place, best)) {
                    winner = Some((offset, place));
                }
                offset += 1;
                place += usize::from(*score != NOBODY);
            }
        }
        winner.map(|(offset, _)| offset)
    }
}

impl Scheduler {
    /// The search over a kept column with soft spreading; `None` if that cannot answer.
    pub(super) fn find_alike(&mut self, attempt: &mut Attempt, shape: ShapeId) -> Option<Found> {
        let Reach { window, feasible } = self.reach(attempt, shape)?;
        let Self { cluster, columns, caches, search, .. } = self;
        let column = columns.kept(shape, attempt.profile.number)?;
        let weight = attempt.profile.weight(PluginId::PodTopologySpread);
        let (cx, state) = attempt.parts(cluster);
        let constraints = state.spread.constraints(&cx, caches);
        let soft = SoftState::of_all_nodes(&cx, caches, &constraints, feasible)?;
        let alike = Alike::new(&soft, caches, &cluster.topology, MAX_GROUPS)?;
        let (walk, grouping) = (Arc::clone(cluster.order.walk()), &mut search.grouping);
        grouping.of_nodes.clear();
        window.ranges().into_iter().for_each(|range| alike.tell_apart(&walk[range], &mut grouping.of_nodes));
        let scores = window.ranges().map(|range| &column.scores[range]);
        grouping.meet(alike.count(), scores);
        let mut more = soft.score_groups(caches, &alike, &grouping.met);
        more.iter_mut().for_each(|score| *score *= weight);
        let winner = grouping.winner(scores, &more)?;
        let node = walk[(window.start + winner) % window.ring];
        self.advance(window.length);
        Some(Found::Node { node, feasible, evaluated: window.length })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::pick::winner;
    use super::*;

    proptest! {
        #[test]
        fn the_winner_among_groups_is_the_winner_among_nodes(
            nodes in prop::collection::vec((-1_i32..4, 0_u32..5), 1..200),
            more in prop::collection::vec(0_i64..4, 5),
            cut in 0_usize..200,
        ) {
            let scores: Vec<i32> = nodes.iter().map(|(score, _)| *score).collect();
            let stretches = scores.split_at(cut.min(scores.len()));
            let stretches = [stretches.0, stretches.1];
            let of_nodes = nodes.iter().map(|(_, group)| *group).collect();
            let mut grouping = Grouping { of_nodes, ..Grouping::default() };
            grouping.meet(5, stretches);
            let of_met: Vec<i64> = grouping.met.iter().map(|group| more[*group as usize]).collect();
            let feasible: Vec<usize> = (0..nodes.len()).filter(|at| nodes[*at].0 >= 0).collect();
            let total = |at: &usize| i64::from(nodes[*at].0) + more[nodes[*at].1 as usize];
            let totals: Vec<i64> = feasible.iter().map(total).collect();
            prop_assert_eq!(grouping.winner(stretches, &of_met), winner(&totals).map(|place| feasible[place]));
        }
    }
}

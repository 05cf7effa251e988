//! The choice where soft topology spread is the only score that looks at other pods.
//!
//! What that score says of a node depends on how many pods of the kind are in its domains, and on nothing else. So the
//! feasible nodes fall into a few groups (so many pods on the host, this zone), each group is scored once, and of each
//! group only the nodes with the best local score can win.

use std::sync::Arc;

use super::column::Column;
use super::pick::{Window, feasible_places, precedes};
use super::plugin::PluginId;
use super::scheduler::{Attempt, Scheduler};
use super::search::Found;
use crate::ids::{NodeId, ShapeId};
use crate::plugins::pod_topology_spread::{self as spread, Alike};

/// More groups than that are not worth it: 16 KB of best scores. Three zones and 110 pods on a host make 444.
const MAX_GROUPS: usize = 4_096;

/// The feasible nodes of a cycle, in order; kept so that a cycle allocates nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grouping {
    nodes: Vec<NodeId>,
    /// Their weighted local scores.
    scores: Vec<i32>,
    groups: Alike,
    /// By group: the best local score in it; −1: nobody is in it.
    best: Vec<i32>,
    /// The groups that somebody is in.
    met: Vec<u32>,
}

impl Grouping {
    fn fill(&mut self, column: &Column, walk: &[NodeId], window: Window) {
        self.nodes.clear();
        self.scores.clear();
        feasible_places(&column.feasible, window, |place| {
            self.nodes.push(walk[place]);
            self.scores.push(column.scores[place]);
        });
    }

    /// Which groups there are, and the best of each.
    fn meet(&mut self) {
        self.met.clear();
        self.best.clear();
        self.best.resize(self.groups.count(), -1);
        for (group, score) in self.groups.of_nodes().iter().zip(&self.scores) {
            let best = &mut self.best[*group as usize];
            if *best < 0 {
                self.met.push(*group);
            }
            *best = (*best).max(*score);
        }
    }

    /// The winner's place in the list, when each group that is met gets this much more.
    fn winner(&mut self, more: &[i64]) -> Option<usize> {
        let totals = self.met.iter().zip(more).map(|(group, more)| i64::from(self.best[*group as usize]) + more);
        let most = totals.max()?;
        for (group, more) in self.met.iter().zip(more) {
            let best = &mut self.best[*group as usize];
            if i64::from(*best) + more != most {
                // No node has such a score.
                *best = -1;
            }
        }
        let nodes = self.groups.of_nodes().iter().zip(&self.scores).enumerate();
        let ties = nodes.filter(|(_, (group, score))| self.best[**group as usize] == **score).map(|(at, _)| at);
        ties.reduce(|best, at| if precedes(at, best) { at } else { best })
    }
}

impl Scheduler {
    /// The search over a kept column with soft spreading; `None` if that cannot answer.
    pub(super) fn find_alike(&mut self, attempt: &Attempt, shape: ShapeId) -> Option<Found> {
        let reach = self.reach(attempt, shape)?;
        let Self { cluster, columns, caches, search, .. } = self;
        let column = columns.kept(shape, attempt.profile.number)?;
        let walk = Arc::clone(cluster.order.walk());
        let grouping = &mut search.grouping;
        grouping.fill(column, &walk, reach.window);
        let at = match grouping.nodes.len() {
            1 => 0,
            _ => {
                let cx = attempt.cx(cluster);
                let weight = attempt.profile.weight(PluginId::PodTopologySpread);
                let soft = spread::group(&cx, caches, &grouping.nodes, &mut grouping.groups, MAX_GROUPS)?;
                grouping.meet();
                let mut more = soft.score_groups(caches, &grouping.groups, &grouping.met);
                more.iter_mut().for_each(|score| *score *= weight);
                grouping.winner(&more)?
            }
        };
        let node = grouping.nodes[at];
        self.advance(reach.window.length);
        Some(Found::Node { node, feasible: reach.feasible, evaluated: reach.window.length })
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
            nodes in prop::collection::vec((0_i32..4, 0_u32..5), 1..200),
            more in prop::collection::vec(0_i64..4, 5),
        ) {
            let mut grouping = Grouping {
                scores: nodes.iter().map(|(score, _)| *score).collect(),
                groups: Alike::of(nodes.iter().map(|(_, group)| *group).collect(), 5),
                ..Grouping::default()
            };
            grouping.meet();
            let of_met: Vec<i64> = grouping.met.iter().map(|group| more[*group as usize]).collect();
            let totals: Vec<i64> =
                nodes.iter().map(|(score, group)| i64::from(*score) + more[*group as usize]).collect();
            prop_assert_eq!(grouping.winner(&of_met), winner(&totals));
        }
    }
}

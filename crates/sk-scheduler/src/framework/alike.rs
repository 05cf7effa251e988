//! Chooses a node where soft topology spread is the only score that depends on other pods.
//!
//! That score depends only on the number of matching pods in a node's domains. So the feasible nodes fall into a few
//! groups (so many pods on the host, this zone), each group is scored once, and in each group only the nodes with the
//! best local score can win.

use std::cmp::Ordering;
use std::sync::Arc;

use super::pick::precedes;
use super::plugin::PluginId;
use super::scheduler::{Attempt, Scheduler};
use super::search::{Found, Reach};
use crate::ids::ShapeId;
use crate::plugins::pod_topology_spread::{Alike, SoftState};

/// More groups than that are not worth it: 48 KB of best nodes. Three zones and 110 pods on a host make 444.
const MAX_GROUPS: usize = 4_096;

/// The groups of a cycle; kept so that a cycle allocates nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grouping {
    /// By group: who of it can win.
    best: Vec<Best>,
    /// The groups that have a feasible node.
    met: Vec<u32>,
}

/// The node of a group that goes before all others of it: the highest local score and, among equals, the one that the heap
/// would give first.
#[derive(Clone, Copy, Debug)]
struct Best {
    score: i32,
    /// How far into the window it is, and its place in the list of feasible nodes.
    offset: u32,
    place: u32,
}

/// No feasible node is in the group. The local score of a node that is out is as low.
const NOBODY: i32 = -1;

impl Grouping {
    /// Begins with a window whose nodes fall into so many groups.
    fn begin(&mut self, groups: usize) -> Meeting<'_> {
        self.best.clear();
        self.best.resize(groups, Best { score: NOBODY, offset: 0, place: 0 });
        Meeting { best: &mut self.best, looked_at: 0, feasible: 0 }
    }

    /// The groups that have a feasible node, once all nodes were looked at.
    fn met(&mut self) -> &[u32] {
        self.met.clear();
        let is_met = |(_, best): &(usize, &Best)| best.score != NOBODY;
        self.met.extend(self.best.iter().enumerate().filter(is_met).map(|(group, _)| group as u32));
        &self.met
    }

    /// How far into the window the winner is, when each group that is met gets this much more.
    fn winner(&self, more: &[i64]) -> Option<usize> {
        let total = |(group, more): (&u32, &i64)| {
            let best = self.best[*group as usize];
            (i64::from(best.score) + more, best)
        };
        let goes_first = |one: &Best, other: &Best| match one.place > other.place {
            true => precedes(one.place as usize, other.place as usize),
            false => !precedes(other.place as usize, one.place as usize),
        };
        let winner = self.met.iter().zip(more).map(total).reduce(|known, next| match next.0.cmp(&known.0) {
            Ordering::Greater => next,
            Ordering::Equal if goes_first(&next.1, &known.1) => next,
            Ordering::Equal | Ordering::Less => known,
        });
        winner.map(|(_, best)| best.offset as usize)
    }
}

/// The nodes of a window going by, one after the other.
struct Meeting<'a> {
    best: &'a mut [Best],
    /// How many were looked at, and how many of them are feasible.
    looked_at: u32,
    feasible: u32,
}

impl Meeting<'_> {
    #[inline]
    fn meet(&mut self, group: u32, score: i32) {
        let (offset, place) = (self.looked_at, self.feasible);
        self.looked_at += 1;
        if score == NOBODY {
            return;
        }
        self.feasible += 1;
        let best = &mut self.best[group as usize];
        if score > best.score || (score == best.score && precedes(place as usize, best.place as usize)) {
            *best = Best { score, offset, place };
        }
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
        let mut meeting = grouping.begin(alike.count());
        for range in window.ranges() {
            alike.tell_apart(&walk[range.clone()], &column.scores[range], |group, score| meeting.meet(group, score));
        }
        let mut more = soft.score_groups(caches, &alike, grouping.met());
        more.iter_mut().for_each(|score| *score *= weight);
        let winner = grouping.winner(&more)?;
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
        ) {
            let mut grouping = Grouping::default();
            let mut meeting = grouping.begin(5);
            nodes.iter().for_each(|(score, group)| meeting.meet(*group, *score));
            let of_met: Vec<i64> = grouping.met().iter().map(|group| more[*group as usize]).collect();
            let feasible: Vec<usize> = (0..nodes.len()).filter(|at| nodes[*at].0 >= 0).collect();
            let total = |at: &usize| i64::from(nodes[*at].0) + more[nodes[*at].1 as usize];
            let totals: Vec<i64> = feasible.iter().map(total).collect();
            prop_assert_eq!(grouping.winner(&of_met), winner(&totals).map(|place| feasible[place]));
        }
    }
}

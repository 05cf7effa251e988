//! Nodes that are alike to every soft constraint: as many pods of the kind on the host, the same domains.

use super::HOSTNAME;
use super::score::{self, Part, SoftState};
use crate::class::SpreadConstraint;
use crate::framework::cycle_state::{Caches, Cx};
use crate::ids::NodeId;

/// Of each node the number of its group. A number has a digit for each constraint.
#[derive(Clone, Debug, Default)]
pub(crate) struct Alike {
    of_nodes: Vec<u32>,
    digits: Vec<u32>,
    /// By constraint: how many values its digit has.
    radixes: Vec<usize>,
}

impl Alike {
    /// Groups by number.
    #[cfg(test)]
    pub(crate) fn of(of_nodes: Vec<u32>, count: usize) -> Self {
        Self { of_nodes, digits: Vec::new(), radixes: vec![count] }
    }

    /// How many groups there could be.
    pub(crate) fn count(&self) -> usize {
        self.radixes.iter().product()
    }

    /// Of each node its group.
    pub(crate) fn of_nodes(&self) -> &[u32] {
        &self.of_nodes
    }

    /// The digit of a group for the constraint at this place.
    fn digit(&self, group: u32, place: usize) -> usize {
        let behind: usize = self.radixes[place + 1..].iter().product();
        group as usize / behind % self.radixes[place]
    }

    /// Tells nodes apart by one more constraint. `false`: there would be too many groups.
    fn tell_apart(&mut self, digit: impl Iterator<Item = u32>, radix: Option<usize>, most: usize) -> bool {
        self.digits.clear();
        self.digits.extend(digit);
        let radix = radix.unwrap_or_else(|| self.digits.iter().max().map_or(1, |digit| *digit as usize + 1));
        if self.count().saturating_mul(radix) > most {
            return false;
        }
        self.radixes.push(radix);
        for (group, digit) in self.of_nodes.iter_mut().zip(&self.digits) {
            *group = *group * radix as u32 + digit;
        }
        true
    }
}

/// Puts nodes into groups. `None`: there are too many, or some nodes take no part in a constraint.
pub(crate) fn group(
    cx: &Cx<'_>,
    caches: &mut Caches,
    nodes: &[NodeId],
    into: &mut Alike,
    most: usize,
) -> Option<SoftState> {
    let constraints = caches.spread.constraints(cx);
    let topology = &cx.cluster.topology;
    let needs_label = |constraint: &SpreadConstraint| constraints.require_all || constraint.key == HOSTNAME;
    if constraints.soft.iter().any(|(one, key)| needs_label(one) && topology.domains(*key).without > 0) {
        return None;
    }
    let state = score::prepare_parts(cx, caches, &constraints, nodes.len());
    into.radixes.clear();
    into.of_nodes.clear();
    into.of_nodes.resize(nodes.len(), 0);
    for part in &state.parts {
        let is_told = if part.per_node {
            let counts = part.counts.all(caches);
            let count = |node: &NodeId| counts.get(node.index()).map_or(0, |count| u32::try_from(*count).unwrap_or(0));
            into.tell_apart(nodes.iter().map(count), None, most)
        } else {
            let domains = topology.domains(part.key);
            let none = domains.len() as u32;
            let domain = |node: &NodeId| domains.of[node.index()].min(none);
            into.tell_apart(nodes.iter().map(domain), Some(domains.len() + 1), most)
        };
        if !is_told {
            return None;
        }
    }
    Some(state)
}

impl SoftState {
    /// The normalised score of each of these groups.
    pub(crate) fn score_groups(mut self, caches: &Caches, alike: &Alike, met: &[u32]) -> Vec<i64> {
        for (place, part) in self.parts.iter_mut().enumerate().filter(|(_, part)| !part.per_node) {
            let mut seen = vec![false; alike.radixes[place]];
            met.iter().for_each(|group| seen[alike.digit(*group, place)] = true);
            part.weigh(seen.iter().filter(|seen| **seen).count());
        }
        let raw = |group: &u32| {
            let counted = |(place, part): (usize, &Part)| {
                let digit = alike.digit(*group, place);
                match part.per_node {
                    true => Some(part.score(digit as i64)),
                    false if digit + 1 == alike.radixes[place] => None,
                    false => Some(part.score(part.counts.of(caches, digit as u32))),
                }
            };
            let parts = self.parts.iter().enumerate().filter_map(counted);
            f64::round(parts.fold(0.0, |sum, score| sum + score)) as i64
        };
        let mut scores: Vec<i64> = met.iter().map(raw).collect();
        let (least, most) = scores.iter().fold((i64::MAX, 0), |(least, most), raw| (least.min(*raw), most.max(*raw)));
        scores.iter_mut().for_each(|score| *score = score::normalised(*score, least, most));
        scores
    }
}

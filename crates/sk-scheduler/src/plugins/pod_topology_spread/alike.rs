//! Groups of nodes that are equal to every soft constraint: the same number of matching pods on the host, the same
//! domains.
//!
//! A group's number has a digit for each constraint: the count on the host, or the domain. So the group of a node
//! follows from the node alone, and a search computes it as it visits the node.

use super::constraints::Keyed;
use super::score::{self, Part, SoftState};
use super::{Constraints, HOSTNAME};
use crate::cluster::topology::Topology;
use crate::framework::cycle_state::{Caches, Cx};
use crate::ids::NodeId;

/// How nodes fall into groups.
#[derive(Clone, Debug)]
pub(crate) struct Alike<'a> {
    digits: Vec<Digit<'a>>,
}

/// What one constraint tells nodes apart by.
#[derive(Clone, Copy, Debug)]
struct Digit<'a> {
    values: Values<'a>,
    /// How many values there are.
    radix: usize,
}

#[derive(Clone, Copy, Debug)]
enum Values<'a> {
    /// By node: how many pods of the kind it has.
    Counts(&'a [i64]),
    /// By node: its domain; the last value means none.
    Domains(&'a [u32]),
}

impl Digit<'_> {
    fn of(&self, node: NodeId) -> u32 {
        match self.values {
            Values::Counts(counts) => count_of(counts, node),
            Values::Domains(domains) => domain_of(domains, node, self.radix),
        }
    }
}

/// A counter that was made before the node has no place for it yet.
#[inline]
fn count_of(counts: &[i64], node: NodeId) -> u32 {
    counts.get(node.index()).map_or(0, |count| *count as u32)
}

#[inline]
fn domain_of(domains: &[u32], node: NodeId, radix: usize) -> u32 {
    domains[node.index()].min(radix as u32 - 1)
}

impl<'a> Alike<'a> {
    /// The groups by these parts of a cycle's state. `None`: there are more than `most`.
    pub(crate) fn new(state: &'a SoftState, caches: &'a Caches, topology: &'a Topology, most: usize) -> Option<Self> {
        let digit = |part: &'a Part| match part.per_node {
            true => {
                let (counts, highest) = (part.counts.all(caches), part.counts.highest(caches));
                Digit { values: Values::Counts(counts), radix: usize::try_from(highest).unwrap_or(usize::MAX - 1) + 1 }
            }
            false => {
                let domains = topology.domains(part.key);
                Digit { values: Values::Domains(&domains.of), radix: domains.len() + 1 }
            }
        };
        let alike = Self { digits: state.parts.iter().map(digit).collect() };
        (alike.count() <= most).then_some(alike)
    }

    /// How many groups there could be.
    pub(crate) fn count(&self) -> usize {
        self.digits.iter().fold(1, |count, digit| count.saturating_mul(digit.radix))
    }

    /// Tells of each node its group with its score. Host and zone, as pods are spread that say nothing, have loops of
    /// their own.
    pub(crate) fn tell_apart(&self, nodes: &[NodeId], scores: &[i32], mut tell: impl FnMut(u32, i32)) {
        let nodes = nodes.iter().zip(scores);
        match self.digits.as_slice() {
            // Without zones there is one domain, that of nodes without one.
            [Digit { values: Values::Counts(counts), .. }, Digit { values: Values::Domains(_), radix: 1 }] => {
                nodes.for_each(|(node, score)| tell(count_of(counts, *node), *score));
            }
            [Digit { values: Values::Counts(counts), .. }, Digit { values: Values::Domains(domains), radix }] => {
                let group = |node| count_of(counts, node) * *radix as u32 + domain_of(domains, node, *radix);
                nodes.for_each(|(node, score)| tell(group(*node), *score));
            }
            digits => {
                let group = |node| digits.iter().fold(0, |group, digit| group * digit.radix as u32 + digit.of(node));
                nodes.for_each(|(node, score)| tell(group(*node), *score));
            }
        }
    }

    /// The digit of a group for the constraint at this place.
    fn digit(&self, group: u32, place: usize) -> usize {
        let behind: usize = self.digits[place + 1..].iter().map(|digit| digit.radix).product();
        group as usize / behind % self.digits[place].radix
    }
}

impl SoftState {
    /// What the soft constraints of a pod count, for as many scored nodes. `None`: some nodes take no part in one of them.
    pub(crate) fn of_all_nodes(
        cx: &Cx<'_>,
        caches: &mut Caches,
        constraints: &Constraints,
        nodes: usize,
    ) -> Option<Self> {
        let lacks_label = |keyed: &Keyed| {
            let needs_label = constraints.require_all || keyed.constraint.key == HOSTNAME;
            needs_label && cx.cluster.topology.domains(keyed.key).without > 0
        };
        let some_out = constraints.soft.iter().any(lacks_label);
        (!some_out).then(|| score::prepare_parts(cx, caches, constraints, nodes))
    }

    /// The normalised score of each of these groups.
    pub(crate) fn score_groups(&self, caches: &Caches, alike: &Alike<'_>, met: &[u32]) -> Vec<i64> {
        let weigh = |(place, part): (usize, &Part)| {
            if part.per_node {
                return part.weight;
            }
            let mut seen = vec![false; alike.digits[place].radix];
            met.iter().for_each(|group| seen[alike.digit(*group, place)] = true);
            score::weight(seen.iter().filter(|seen| **seen).count())
        };
        let weights: Vec<f64> = self.parts.iter().enumerate().map(weigh).collect();
        let raw = |group: &u32| {
            let counted = |(place, part): (usize, &Part)| {
                let digit = alike.digit(*group, place);
                match part.per_node {
                    true => Some(part.weighed(digit as i64, weights[place])),
                    false if digit + 1 == alike.digits[place].radix => None,
                    false => Some(part.weighed(part.counts.of(caches, digit as u32), weights[place])),
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

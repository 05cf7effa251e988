//! Which of several groups grows.
//!
//! Each expander of the chain keeps the options that are best by its own measure; among those that are left at the end one
//! is drawn, as cluster-autoscaler does (`expander/factory/chain.go`). A scenario that asks for `grpc` is refused when it is read.

use std::cmp::Reverse;

use sk_core::SmolStr;
use sk_core::rng::Stream;

use super::decisions::Because;
use super::flags::{Autoscaler, Expander};
use super::rules::Rule;

/// Growing one group by some nodes, as expanders see it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Offer {
    pub(super) name: SmolStr,
    pub(super) nodes: usize,
    pub(super) pods: usize,
    /// Unused share of CPU plus unused share of memory on the new nodes, in millionths.
    pub(super) waste: i64,
    /// The score of the price expander; `None`: the group has no price.
    pub(super) price: Option<f64>,
}

/// The place of the chosen offer, and why it is that one.
pub(super) fn choose(offers: &[Offer], flags: &Autoscaler, choice: &mut Stream) -> Option<(usize, Because)> {
    let mut left: Vec<usize> = (0..offers.len()).collect();
    let mut because = if offers.len() == 1 { Some(Because::OnlyOption) } else { None };
    for expander in &flags.expander {
        left = narrow(left, *expander, offers, flags);
        if left.len() == 1 {
            because.get_or_insert(Because::Expander(*expander));
        }
    }
    let is_tie = left.len() > 1 && flags.follows(Rule::TiesAreDrawn);
    let index = if is_tie { choice.below(left.len() as u64) as usize } else { 0 };
    let drawn = || Because::Drawn(left.iter().map(|place| offers[*place].name.clone()).collect());
    left.get(index).map(|place| (*place, because.unwrap_or_else(drawn)))
}

/// What an expander leaves of the places.
fn narrow(left: Vec<usize>, expander: Expander, offers: &[Offer], flags: &Autoscaler) -> Vec<usize> {
    match expander {
        Expander::Random => left,
        Expander::LeastWaste => keep_best(left, |place| Reverse(offers[place].waste)),
        Expander::MostPods => keep_best(left, |place| offers[place].pods),
        Expander::LeastNodes => keep_best(left, |place| Reverse(offers[place].nodes)),
        // A group that the ConfigMap does not name is worth less than any that it does.
        Expander::Priority => keep_best(left, |place| flags.priorities.get(&offers[place].name)),
        Expander::Price => cheapest(left, offers),
    }
}

/// Groups without a price are no option, as in cluster-autoscaler.
fn cheapest(left: Vec<usize>, offers: &[Offer]) -> Vec<usize> {
    let price = |place: &usize| offers[*place].price;
    let Some(best) = left.iter().filter_map(price).min_by(f64::total_cmp) else { return Vec::new() };
    left.into_iter().filter(|place| price(place).is_some_and(|price| price.total_cmp(&best).is_eq())).collect()
}

fn keep_best<K: Ord>(left: Vec<usize>, worth: impl Fn(usize) -> K) -> Vec<usize> {
    let Some(best) = left.iter().map(|place| worth(*place)).max() else { return left };
    left.into_iter().filter(|place| worth(*place) == best).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn offer(name: &'static str, nodes: usize, pods: usize, waste: i64) -> Offer {
        let price = (["a", "d"].contains(&name)).then_some(waste as f64);
        Offer { name: name.into(), nodes, pods, waste, price }
    }

    fn flags(chain: &[Expander]) -> Autoscaler {
        let priorities = BTreeMap::from([("a".into(), 10), ("c".into(), 10)]);
        Autoscaler { expander: chain.to_vec(), priorities, ..Autoscaler::default() }
    }

    fn chosen(chain: &[Expander]) -> &'static str {
        let offers = [
            offer("a", 3, 3, 700_000),
            offer("b", 2, 5, 900_000),
            offer("c", 3, 4, 100_000),
            offer("d", 1, 4, 500_000),
        ];
        let (place, _) = choose(&offers, &flags(chain), &mut Stream::new(1, "expander")).unwrap();
        ["a", "b", "c", "d"][place]
    }

    #[test]
    fn each_expander_has_its_own_measure() {
        assert_eq!(chosen(&[Expander::MostPods]), "b");
        assert_eq!(chosen(&[Expander::LeastWaste]), "c");
        assert_eq!(chosen(&[Expander::LeastNodes]), "d");
        assert_eq!(chosen(&[Expander::Price]), "d", "of those with a price");
    }

    #[test]
    fn it_is_said_why_a_group_was_chosen() {
        let offers = [offer("a", 3, 3, 700_000), offer("b", 3, 5, 700_000), offer("c", 3, 5, 900_000)];
        let why = |offers: &[Offer], chain: &[Expander]| {
            choose(offers, &flags(chain), &mut Stream::new(1, "expander")).map(|(_, because)| because)
        };
        assert_eq!(why(&offers[..1], &[Expander::LeastWaste]), Some(Because::OnlyOption));
        let chain = [Expander::LeastWaste, Expander::MostPods];
        assert_eq!(why(&offers, &chain), Some(Because::Expander(Expander::MostPods)));
        assert_eq!(why(&offers, &chain[..1]), Some(Because::Drawn(vec!["a".into(), "b".into()])));
    }

    #[test]
    fn a_chain_narrows_down_what_the_one_before_left() {
        assert_eq!(chosen(&[Expander::Priority, Expander::LeastWaste]), "c");
        assert_eq!(chosen(&[Expander::Priority, Expander::MostPods]), "c");
        assert!(["a", "c"].contains(&chosen(&[Expander::Priority])));
    }

    #[test]
    fn the_same_seed_draws_the_same_and_nothing_is_drawn_from_nothing() {
        assert_eq!(chosen(&[Expander::Random]), chosen(&[Expander::Random]));
        let priceless = [Offer { price: None, ..offer("a", 1, 1, 1) }];
        assert_eq!(choose(&priceless, &flags(&[Expander::Price]), &mut Stream::new(1, "expander")), None);
        assert_eq!(choose(&[], &flags(&[Expander::Random]), &mut Stream::new(1, "expander")), None);
    }
}

//! The bound on what may happen within one simulated second, and which component exceeded it.
//!
//! A discrete-event simulator hangs when a component asks for a wake-up at the very time it is woken, or when two
//! components undo each other's work for ever. The bound is far above what a cluster of that size has reason to do.
//! When it is exceeded, the engine stops and names the component.

use std::collections::BTreeMap;

use sk_core::SimTime;

use crate::process::Address;

/// What may happen in one second in any cluster. A sync that fails is tried again 5 ms later at first, so that even a hundred
/// workers which fail all the time make 20,000 events in their first second.
const FLOOR: u64 = 1_000_000;
/// And for each object that there is: with no latencies at all, a pod's whole life may fall into one second, which is ten
/// requests, an answer to each, and what a dozen components hear of them.
const PER_OBJECT: u64 = 400;
/// Once the budget is spent, so many events more tell who spends it.
const WITNESSES: u64 = 10_000;

/// A part of the control plane that would go on for ever within one second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spinning {
    /// When.
    pub at: SimTime,
    /// Which part did most of it.
    pub component: String,
    /// How much had happened in that second.
    pub events: u64,
}

/// What happened in the second that it is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Budget {
    second: i64,
    spent: u64,
    suspects: BTreeMap<Address, u64>,
}

impl Budget {
    /// Something happens on behalf of `who` in a cluster of so many objects. `Some`: the budget is spent, mostly by this one.
    pub(crate) fn spend(&mut self, now: SimTime, objects: usize, who: Option<Address>) -> Option<(Address, u64)> {
        if now.as_secs() != self.second {
            *self = Self { second: now.as_secs(), spent: 0, suspects: BTreeMap::new() };
        }
        self.spent += 1;
        if self.spent <= FLOOR {
            return None;
        }
        let limit = FLOOR.saturating_add(PER_OBJECT.saturating_mul(objects as u64));
        if self.spent <= limit {
            return None;
        }
        if let Some(who) = who {
            *self.suspects.entry(who).or_default() += 1;
        }
        let culprit = self.suspects.iter().max_by_key(|(_, count)| **count).map(|(who, _)| *who);
        culprit.filter(|_| self.spent > limit + WITNESSES).map(|who| (who, self.spent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_does_most_beyond_the_budget_is_named_and_a_new_second_is_a_new_budget() {
        let mut budget = Budget::default();
        let mut spend =
            |secs, times: u64, who| (0..times).find_map(|_| budget.spend(SimTime::from_secs(secs), 0, Some(who)));
        assert_eq!(spend(1, FLOOR, (0, 1)), None);
        assert_eq!(spend(2, FLOOR, (0, 1)), None, "another second");
        assert_eq!(spend(2, WITNESSES / 4, (0, 2)), None);
        let named = spend(2, FLOOR, (0, 1)).map(|(who, _)| who);
        assert_eq!(named, Some((0, 1)));
    }
}

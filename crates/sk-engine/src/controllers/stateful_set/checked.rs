//! Which places of a set were looked at and found in order since their pods last changed.
//!
//! A sync goes through the places from below (are the pods there and up?) or from above (are they new?) and stops at the
//! first that is not in order. It starts where the last sync stopped, unless a pod on the way has changed since.

use std::collections::BTreeSet;
use std::ops::Range;

/// The places that were looked at.
#[derive(Clone, Debug)]
pub(super) struct Checked {
    seen: Range<usize>,
    /// Those of them that were not in order, or have changed since.
    again: BTreeSet<usize>,
}

impl Checked {
    /// Nothing was looked at yet; the first place will be `from`, or the one below it.
    pub(super) fn from(from: usize) -> Self {
        Self { seen: from..from, again: BTreeSet::new() }
    }

    /// What is at this place has changed.
    pub(super) fn changed(&mut self, place: usize) {
        if self.seen.contains(&place) {
            self.again.insert(place);
        }
    }

    /// The next place of these to look at, from below.
    pub(super) fn lowest(&self, within: Range<usize>) -> Option<usize> {
        let next = self.again.range(within.start..).next().copied().unwrap_or(self.seen.end.max(within.start));
        Some(next).filter(|place| *place < within.end)
    }

    /// The next place to look at, from above.
    pub(super) fn highest(&self, start: usize) -> Option<usize> {
        let next = self.again.last().copied().or_else(|| self.seen.start.checked_sub(1));
        next.filter(|place| *place >= start)
    }

    /// All places to look at, from below.
    pub(super) fn all(&self, end: usize) -> Vec<usize> {
        self.again.range(..end).copied().chain(self.seen.end..end).collect()
    }

    /// A place was looked at: is it in order?
    pub(super) fn looked_at(&mut self, place: usize, is_in_order: bool) {
        if place == self.seen.end {
            self.seen.end += 1;
        } else if place + 1 == self.seen.start {
            self.seen.start = place;
        }
        if is_in_order {
            self.again.remove(&place);
        } else {
            self.again.insert(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_below_only_what_changed_is_looked_at_again() {
        let mut checked = Checked::from(0);
        for place in 0..1_000 {
            assert_eq!(checked.lowest(0..1_000), Some(place));
            checked.looked_at(place, true);
        }
        assert_eq!((checked.lowest(0..1_000), checked.all(1_000)), (None, vec![]));
        assert_eq!(checked.lowest(0..1_001), Some(1_000), "the set has grown");
        checked.changed(700);
        checked.changed(300);
        checked.changed(2_000);
        assert_eq!((checked.lowest(0..1_000), checked.all(1_000)), (Some(300), vec![300, 700]));
        checked.looked_at(300, false);
        assert_eq!(checked.lowest(0..1_000), Some(300), "not in order yet");
        assert_eq!(checked.lowest(301..1_000), Some(700), "a sync goes on behind it");
        checked.looked_at(300, true);
        assert_eq!(checked.lowest(0..1_000), Some(700));
        assert_eq!(checked.lowest(0..500), None);
    }

    #[test]
    fn from_above_only_what_changed_is_looked_at_again() {
        let mut checked = Checked::from(1_000);
        for place in (400..1_000).rev() {
            assert_eq!(checked.highest(0), Some(place));
            checked.looked_at(place, true);
        }
        assert_eq!((checked.highest(400), checked.highest(399)), (None, Some(399)));
        checked.looked_at(399, false);
        checked.changed(300);
        assert_eq!(checked.highest(0), Some(399), "it waits for this one");
        checked.changed(800);
        assert_eq!(checked.highest(0), Some(800));
    }
}

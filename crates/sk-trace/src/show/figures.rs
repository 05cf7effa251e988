//! Counts the events and objects of a trace.

use std::collections::BTreeMap;

use sk_core::{Gvk, ObjectRef, SimDuration, SmolStr};
use sk_store::TraceError;
use sk_store::trace::{Head, Trace, What};

use super::{Busy, Counts, Gaps, Lives, Span};
use crate::names::{Names, number};

/// How many kinds and how many namespaces are counted by name: 10,000 at about 100 bytes are 1 MB each.
const MAX_NAMED: usize = 10_000;

/// How many gaps are listed.
const MAX_GAPS: usize = 20;

/// The counts so far.
pub(super) struct Figures {
    pub(super) events: u64,
    pub(super) most_objects: u64,
    pub(super) kinds: BTreeMap<Gvk, Counts>,
    pub(super) namespaces: BTreeMap<SmolStr, Counts>,
    pub(super) busy: Busy,
    span: Option<Span>,
    alive: Names,
    unnamed: u64,
}

/// What a record does to its object.
#[derive(Clone, Copy)]
enum Action {
    Initial,
    Create,
    Change,
    Delete,
}

impl Figures {
    pub(super) fn new(span: Option<Span>) -> Self {
        Self {
            events: 0,
            most_objects: 0,
            kinds: BTreeMap::new(),
            namespaces: BTreeMap::new(),
            busy: Busy::new(span),
            span,
            alive: Names::default(),
            unnamed: 0,
        }
    }

    pub(super) fn head(&mut self, head: &Head) {
        let is_first = self.span.is_some_and(|span| head.at <= span.start);
        let (object, action) = match &head.what {
            What::Mark => return,
            What::Apply(object, _) => match (self.alive.insert(number(&**object)), is_first) {
                (true, true) => (object, Action::Initial),
                (true, false) => (object, Action::Create),
                (false, _) => (object, Action::Change),
            },
            What::Delete(object, _) => {
                self.alive.remove(number(&**object));
                (object, Action::Delete)
            }
        };
        self.events += 1;
        self.most_objects = self.most_objects.max(self.alive.len());
        if !matches!(action, Action::Initial) {
            self.busy.add(head.at);
        }
        self.count(object, action);
    }

    fn count(&mut self, object: &ObjectRef, action: Action) {
        let namespace = object.key.namespace.clone().unwrap_or_default();
        let kind = entry(&mut self.kinds, &object.gvk);
        let namespace = entry(&mut self.namespaces, &namespace);
        self.unnamed += u64::from(kind.is_none()) + u64::from(namespace.is_none());
        for counts in [kind, namespace].into_iter().flatten() {
            match action {
                Action::Initial => counts.initial += 1,
                Action::Create => counts.created += 1,
                Action::Change => counts.changed += 1,
                Action::Delete => counts.deleted += 1,
            }
        }
    }

    pub(super) fn overflow(&self) -> u64 {
        self.unnamed + self.alive.overflow()
    }
}

/// The counts under a name, unless there are too many names.
fn entry<'a, K: Ord + Clone>(counts: &'a mut BTreeMap<K, Counts>, name: &K) -> Option<&'a mut Counts> {
    if !counts.contains_key(name) {
        if counts.len() >= MAX_NAMED {
            return None;
        }
        counts.insert(name.clone(), Counts::default());
    }
    counts.get_mut(name)
}

/// The lives of a trace, in figures.
pub(super) fn lives(trace: &Trace) -> Result<Lives, TraceError> {
    let (mut lives, mut spread) = (Lives::default(), Spread::default());
    for row in trace.lives()? {
        lives.owners += 1;
        for life in row?.templates.iter().flat_map(|template| &template.lives) {
            match life.end {
                Some(end) => {
                    let length = end.since(life.start).max(SimDuration::ZERO);
                    lives.finished += 1;
                    lives.longest = lives.longest.max(length);
                    spread.add(length);
                }
                None => lives.unfinished += 1,
            }
        }
    }
    lives.median = spread.at(50).min(lives.longest);
    lives.p95 = spread.at(95).min(lives.longest);
    Ok(lives)
}

/// The gaps of a trace, in figures.
pub(super) fn gaps(trace: &Trace) -> Result<Gaps, TraceError> {
    let mut gaps = Gaps::default();
    for gap in trace.gaps()? {
        let gap = gap?;
        let length = gap.to.since(gap.from);
        gaps.count += 1;
        gaps.total += length;
        if gaps.first.len() < MAX_GAPS {
            gaps.first.push(format!("{} from {}: {}", length, gap.from, gap.reason));
        }
    }
    Ok(gaps)
}

/// Lengths of time by size, eight classes for each doubling: a percentile is right within an eighth, and memory does
/// not grow.
struct Spread {
    classes: [u64; 64 * 8],
    count: u64,
}

impl Default for Spread {
    fn default() -> Self {
        Self { classes: [0; 64 * 8], count: 0 }
    }
}

impl Spread {
    fn add(&mut self, length: SimDuration) {
        self.classes[class(length.as_micros().max(0).unsigned_abs())] += 1;
        self.count += 1;
    }

    /// The upper end of the class that holds this percentile.
    fn at(&self, percent: u64) -> SimDuration {
        let wanted = (self.count * percent).div_ceil(100);
        let mut below = 0;
        for (class, count) in self.classes.iter().enumerate() {
            below += count;
            if below >= wanted && below > 0 {
                return SimDuration::from_micros(i64::try_from(upper_end(class)).unwrap_or(i64::MAX));
            }
        }
        SimDuration::ZERO
    }
}

/// The class of a number: the place of its highest bit, and the three bits below it.
fn class(micros: u64) -> usize {
    match micros.checked_ilog2() {
        None | Some(0..3) => micros as usize,
        Some(doublings) => (doublings as usize) * 8 + ((micros >> (doublings - 3)) & 7) as usize,
    }
}

/// The largest number of a class.
fn upper_end(class: usize) -> u64 {
    match class {
        0..24 => class as u64,
        _ => {
            let (doublings, eighth) = (class as u32 / 8, class as u64 % 8);
            ((u128::from(8 + eighth + 1) << (doublings - 3)) - 1).try_into().unwrap_or(u64::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_class_ends_at_most_an_eighth_above_its_members(micros in 0_u64..=i64::MAX as u64) {
            let end = upper_end(class(micros));
            prop_assert!(end >= micros && end - micros <= micros / 8, "{micros} {end}");
        }
    }

    #[test]
    fn percentiles_are_found() {
        let mut spread = Spread::default();
        (1..=100).for_each(|secs| spread.add(SimDuration::from_secs(secs)));
        assert!((50.0..57.0).contains(&spread.at(50).as_secs_f64()), "{}", spread.at(50));
        assert!((95.0..107.0).contains(&spread.at(95).as_secs_f64()), "{}", spread.at(95));
        assert_eq!(Spread::default().at(50), SimDuration::ZERO);
    }
}

//! Which nodes may be tainted when, so that pods leave them: one of a zone every ten seconds, fewer while many of the zone
//! are sick, none while every node is (`handleDisruption` and `RateLimitedTimedQueue`,
//! `pkg/controller/nodelifecycle`, 1.36).

use std::collections::{BTreeMap, BTreeSet};

use sk_core::{SimDuration, SimTime, SmolStr};

/// From one node of a zone to the next (`--node-eviction-rate`, 0.1 a second).
const PACE: SimDuration = SimDuration::from_secs(10);
/// The same in a large zone many of whose nodes are sick (`--secondary-node-eviction-rate`, 0.01 a second).
const SLOW_PACE: SimDuration = SimDuration::from_secs(100);
/// In a zone of so many nodes or fewer nobody has to leave while many are sick (`--large-cluster-size-threshold`).
const SMALL_ZONE: usize = 50;
/// Many are sick: more than two, and at least so many of a hundred (`--unhealthy-zone-threshold`).
const MANY_PERCENT: usize = 55;

/// How many of a zone's nodes are sick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Nobody has looked yet.
    #[default]
    Initial,
    Normal,
    /// Many.
    Partial,
    /// All.
    Full,
}

/// The moments at which nodes of one zone may be tainted.
#[derive(Clone, Copy, Debug)]
struct Pacer {
    /// `None`: never.
    pace: Option<SimDuration>,
    /// The next one.
    next: SimTime,
}

impl Pacer {
    /// A new pace. Whoever had to wait waits anew (`SwapLimiter`).
    fn swap(&mut self, pace: Option<SimDuration>, now: SimTime) {
        if self.pace == pace {
            return;
        }
        let had_to_wait = self.pace.is_none() || self.next > now;
        let wait = pace.filter(|_| had_to_wait).unwrap_or_default();
        *self = Self { pace, next: now + wait };
    }
}

/// One zone.
#[derive(Clone, Debug)]
struct Zone {
    state: State,
    ready: usize,
    sick: usize,
    pacer: Pacer,
    /// Nodes that are sick and not tainted yet.
    waiting: BTreeSet<SmolStr>,
}

impl Default for Zone {
    fn default() -> Self {
        let pacer = Pacer { pace: Some(PACE), next: SimTime::EPOCH };
        Self { state: State::Initial, ready: 0, sick: 0, pacer, waiting: BTreeSet::new() }
    }
}

impl Zone {
    fn state(&self) -> State {
        let all = self.ready + self.sick;
        match self.sick {
            sick if sick > 0 && self.ready == 0 => State::Full,
            sick if sick > 2 && sick * 100 >= all * MANY_PERCENT => State::Partial,
            _ => State::Normal,
        }
    }

    fn enter(&mut self, state: State, now: SimTime) {
        let pace = match state {
            State::Initial | State::Normal | State::Full => Some(PACE),
            State::Partial if self.ready + self.sick > SMALL_ZONE => Some(SLOW_PACE),
            State::Partial => None,
        };
        self.pacer.swap(pace, now);
        self.state = state;
    }
}

/// What a look at all zones came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outlook {
    /// Sick nodes are tainted at their zone's pace.
    SomeAreWell,
    /// Every node has just turned out to be sick. It is more likely that the control plane cannot see, so nobody has to
    /// leave: nodes lose their taints.
    AllFellSick,
}

/// All zones.
#[derive(Clone, Debug, Default)]
pub(super) struct Zones(BTreeMap<SmolStr, Zone>);

impl Zones {
    /// A node counts from now on, or no longer.
    pub(super) fn count(&mut self, zone: &SmolStr, is_ready: bool, enters: bool) {
        let found = self.0.entry(zone.clone()).or_default();
        let count = if is_ready { &mut found.ready } else { &mut found.sick };
        *count = if enters { *count + 1 } else { count.saturating_sub(1) };
    }

    /// A node is to be tainted when its zone's turn comes.
    pub(super) fn wait(&mut self, zone: &SmolStr, node: SmolStr) {
        self.0.entry(zone.clone()).or_default().waiting.insert(node);
    }

    /// A node is well again, or gone.
    pub(super) fn forget(&mut self, zone: &SmolStr, node: &SmolStr) {
        if let Some(zone) = self.0.get_mut(zone) {
            zone.waiting.remove(node);
        }
    }

    /// Looks how many of each zone are sick, and sets the pace.
    pub(super) fn look(&mut self, now: SimTime) -> Outlook {
        self.0.retain(|_, zone| zone.ready + zone.sick > 0 || !zone.waiting.is_empty());
        // A zone of which no node counts says nothing of the others.
        let counted = || self.0.values().filter(|zone| zone.ready + zone.sick > 0);
        let all_were = counted().all(|zone| zone.state == State::Full);
        let all_are = counted().all(|zone| zone.state() == State::Full);
        match (all_were, all_are) {
            (true, true) => {}
            (false, true) => {
                for zone in self.0.values_mut() {
                    zone.pacer.swap(None, now);
                    zone.state = State::Full;
                }
                return Outlook::AllFellSick;
            }
            (_, false) => {
                let changed = self.0.values_mut().filter(|zone| all_were || zone.state != zone.state());
                changed.for_each(|zone| zone.enter(zone.state(), now));
            }
        }
        Outlook::SomeAreWell
    }

    /// The nodes whose turn it is, by name.
    pub(super) fn take_due(&mut self, now: SimTime) -> Vec<SmolStr> {
        let mut due = Vec::new();
        for zone in self.0.values_mut() {
            let Some(pace) = zone.pacer.pace.filter(|_| zone.pacer.next <= now) else { continue };
            if let Some(node) = zone.waiting.pop_first() {
                zone.pacer.next = now + pace;
                due.push(node);
            }
        }
        due
    }

    /// When it is somebody's turn next.
    pub(super) fn next_due(&self) -> Option<SimTime> {
        let paced = self.0.values().filter(|zone| zone.pacer.pace.is_some() && !zone.waiting.is_empty());
        paced.map(|zone| zone.pacer.next).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zones(counts: &[(&'static str, usize, usize)]) -> Zones {
        let mut zones = Zones::default();
        for (name, ready, sick) in counts {
            let zone = SmolStr::new_static(name);
            (0..*ready).for_each(|_| zones.count(&zone, true, true));
            for number in 0..*sick {
                zones.count(&zone, false, true);
                zones.wait(&zone, format!("{name}-{number:03}").into());
            }
        }
        zones
    }

    /// Seconds at which nodes are tainted if the zones are looked at once, at 0.
    fn moments(zones: &mut Zones, most: usize) -> Vec<(i64, SmolStr)> {
        zones.look(SimTime::EPOCH);
        let mut moments = Vec::new();
        while let Some(at) = zones.next_due().filter(|_| moments.len() < most) {
            let secs = at.as_secs();
            moments.extend(zones.take_due(at).into_iter().map(|node| (secs, node)));
        }
        moments
    }

    #[test]
    fn one_node_of_a_zone_is_tainted_every_ten_seconds() {
        let got = moments(&mut zones(&[("a", 9, 2), ("b", 9, 1)]), 9);
        assert_eq!(got, [(0, "a-000".into()), (0, "b-000".into()), (10, "a-001".into())]);
    }

    #[test]
    fn where_many_are_sick_a_large_zone_is_slower_and_a_small_one_waits() {
        let slow = moments(&mut zones(&[("a", 27, 33)]), 2);
        assert_eq!(slow.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [0, 100], "33 of 60 are 55 percent");
        assert_eq!(moments(&mut zones(&[("a", 28, 32)]), 2)[1].0, 10, "32 of 60 are not");
        assert_eq!(moments(&mut zones(&[("a", 10, 40)]), 2), [], "50 nodes are a small zone");
        assert_eq!(moments(&mut zones(&[("a", 0, 40), ("b", 1, 0)]), 2)[1].0, 10, "a zone that is lost is not");
    }

    #[test]
    fn nobody_leaves_while_every_node_is_sick_and_the_wait_begins_anew_when_one_is_not() {
        let mut all = zones(&[("a", 0, 2), ("b", 0, 1)]);
        assert_eq!(all.look(SimTime::EPOCH), Outlook::AllFellSick);
        assert_eq!((all.next_due(), all.look(SimTime::from_secs(5))), (None, Outlook::SomeAreWell));
        all.count(&"b".into(), false, false);
        all.count(&"b".into(), true, true);
        all.forget(&"b".into(), &"b-000".into());
        all.look(SimTime::from_secs(20));
        assert_eq!(all.next_due(), Some(SimTime::from_secs(30)));
    }
}

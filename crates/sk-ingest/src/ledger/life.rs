//! The lifecycle of one pod. It only moves forward: the first start wins, an end is final.
//!
//! Kubernetes' timestamps are whole seconds. If a timestamp arrives within its own second, the time of arrival is more
//! precise and is used instead.

use sk_core::{PodLifecycle, SimDuration, SimTime, SmolStr};
use sk_store::trace::Wait;

use crate::sighting::PodLook;

/// How many changes of why a pod waits are kept, the newest: 16 of at most 1 KB each.
const MAX_WAITS: usize = 16;

/// A stamp that arrives within this long was made just now: its own second, and one for the way.
const FRESH: SimDuration = SimDuration::from_secs(2);

/// The last moment of a second, counted from its first.
const REST_OF_SECOND: SimDuration = SimDuration::from_micros(999_999);

/// From a pod's creation to its end.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Life {
    pub(super) created: SimTime,
    pub(super) scheduled: Option<SimTime>,
    pub(super) node: Option<SmolStr>,
    pub(super) containers: PodLifecycle,
    /// What they ended with, if they failed.
    pub(super) exit_code: Option<i32>,
    pub(super) waits: Vec<Wait>,
    /// When it is to be gone at the latest, once somebody has deleted it.
    deleting: Option<SimTime>,
}

/// What an observation of a pod changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Advance {
    pub(super) changed: bool,
    /// The event would have moved the lifecycle backward and was ignored.
    pub(super) refused: bool,
    /// The oldest wait had to go.
    pub(super) wait_dropped: bool,
}

impl Life {
    /// Of a pod that was not known before.
    pub(super) fn new(now: SimTime, look: &PodLook) -> Self {
        let created = look.created.map_or(now, |stamp| moment(stamp, now));
        let mut life = Self {
            created,
            scheduled: None,
            node: None,
            containers: PodLifecycle::Empty,
            exit_code: None,
            waits: Vec::new(),
            deleting: None,
        };
        life.advance(now, look);
        life
    }

    /// As the log knows it.
    pub(super) fn restore(facts: &sk_store::log::PodFacts) -> Self {
        let containers = match (facts.started, facts.finished) {
            (Some(start), Some(end)) => PodLifecycle::Finished { start, end },
            (Some(start), None) => PodLifecycle::Running { start },
            (None, _) => PodLifecycle::Empty,
        };
        let (created, scheduled) = (facts.created, facts.scheduled);
        let (node, waits) = (facts.node.clone(), facts.waits.clone());
        Self { created, scheduled, node, containers, exit_code: facts.exit_code, waits, deleting: None }
    }

    /// Applies an observation.
    pub(super) fn advance(&mut self, now: SimTime, look: &PodLook) -> Advance {
        self.deleting = self.deleting.or(look.deleting);
        let mut advance = Advance::default();
        if self.node.is_none() && look.node.is_some() {
            self.node.clone_from(&look.node);
            advance.changed = true;
        }
        if let (None, Some(stamp)) = (self.scheduled, look.scheduled) {
            self.scheduled = Some(not_before(self.created, moment(stamp, now)));
            advance.changed = true;
        }
        if let Some(wait) = look.wait.as_ref().filter(|_| self.scheduled.is_none()) {
            self.note(now, wait, &mut advance);
        }
        advance.refused = contradicts(self.containers, look.life);
        if self.containers.advance(self.precise(now, look.life)) {
            // An end is final, and so is what it ended with.
            self.exit_code = look.exit_code.filter(|_| self.containers.end().is_some());
            advance.changed = true;
        }
        advance
    }

    /// A changed reason is news even if the condition's time, which only follows its status, is not.
    fn note(&mut self, now: SimTime, wait: &Wait, advance: &mut Advance) {
        let last = self.waits.last();
        if last.is_some_and(|last| last.reason == wait.reason && last.message == wait.message) {
            return;
        }
        let stamp = not_before(self.created, moment(wait.at, now));
        let at = last.map_or(stamp, |last| if stamp > last.at { stamp } else { now.max(last.at) });
        self.waits.push(Wait { at, ..wait.clone() });
        advance.changed = true;
        if self.waits.len() > MAX_WAITS {
            self.waits.remove(0);
            advance.wait_dropped = true;
        }
    }

    /// The times of an observation, finer than seconds where known, and in order.
    fn precise(&self, now: SimTime, seen: PodLifecycle) -> PodLifecycle {
        let begun = self.scheduled.unwrap_or(self.created);
        let start = |stamp| not_before(begun, moment(stamp, now));
        match seen {
            PodLifecycle::Empty => PodLifecycle::Empty,
            // Both came at once, and the start is older news than `now`.
            PodLifecycle::Finished { start, end } => {
                let known = self.containers.start().unwrap_or_else(|| not_before(begun, start));
                PodLifecycle::Finished { start: known, end: not_before(known, moment(end, now)) }
            }
            PodLifecycle::Running { start: stamp } => PodLifecycle::Running { start: start(stamp) },
        }
    }

    /// The pod is gone. What its containers said of their end stands; else it ended when it was to be gone at the
    /// latest, or now, whichever came first. Says whether the end is known no better than that it has been.
    pub(super) fn end(&mut self, now: SimTime) -> bool {
        let PodLifecycle::Running { start } = self.containers else {
            return matches!(self.containers, PodLifecycle::Empty);
        };
        let end = self.deleting.map_or(now, |latest| latest.min(now));
        self.containers = PodLifecycle::Finished { start, end: end.max(start) };
        true
    }
}

/// Does an observation contradict what is known? A later start is not a contradiction: a restarted
/// container no longer shows its first.
fn contradicts(known: PodLifecycle, seen: PodLifecycle) -> bool {
    use PodLifecycle::{Empty, Finished, Running};
    match (known, seen) {
        (Empty, _) => false,
        (Finished { end, .. }, Finished { end: other, .. }) => end.as_secs() != other.as_secs(),
        (Finished { .. }, _) | (Running { .. }, Empty) => true,
        (Running { start }, Running { start: other } | Finished { start: other, .. }) => {
            other.as_secs() < start.as_secs()
        }
    }
}

/// When something happened that was stamped with a whole second and is heard of now.
fn moment(stamp: SimTime, now: SimTime) -> SimTime {
    let age = now.since(stamp);
    if age.is_negative() || age >= FRESH { stamp } else { now.min(stamp + REST_OF_SECOND) }
}

/// Of two moments of one second the later cannot come first; of different seconds the stamps are believed.
fn not_before(earlier: SimTime, time: SimTime) -> SimTime {
    if time.as_secs() == earlier.as_secs() { time.max(earlier) } else { time }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;

    fn at(millis: i64) -> SimTime {
        SimTime::from_micros(1_700_000_000_000_000 + millis * 1_000)
    }

    fn look(life: PodLifecycle) -> PodLook {
        PodLook {
            created: Some(at(0)),
            deleting: None,
            node: None,
            scheduled: None,
            wait: None,
            life,
            exit_code: None,
            raw: Bytes::new(),
        }
    }

    fn waiting(message: &str) -> PodLook {
        let wait = Wait { at: at(0), reason: "Unschedulable".into(), message: message.into() };
        PodLook { wait: Some(wait), ..look(PodLifecycle::Empty) }
    }

    #[test]
    fn fresh_stamps_are_made_finer_and_stay_in_order_and_old_ones_are_believed() {
        let mut life = Life::new(at(300), &look(PodLifecycle::Empty));
        assert_eq!(life.created, at(300));
        life.advance(at(1_700), &PodLook { scheduled: Some(at(0)), ..look(PodLifecycle::Empty) });
        assert_eq!(life.scheduled, Some(at(1_000) - SimDuration::from_micros(1)), "not beyond the stamp's second");
        life.advance(at(90_000), &look(PodLifecycle::Running { start: at(0) }));
        assert_eq!(life.containers.start(), life.scheduled, "a late report of the same second");
        assert_eq!(Life::new(at(50_000), &look(PodLifecycle::Empty)).created, at(0));
        assert_eq!(Life::new(at(-5_000), &look(PodLifecycle::Empty)).created, at(0), "a clock that is behind");
    }

    #[test]
    fn a_life_that_would_move_backward_is_refused_and_a_restart_is_not() {
        let mut life = Life::new(at(9_000), &look(PodLifecycle::Running { start: at(1_000) }));
        let restarted = life.advance(at(60_000), &look(PodLifecycle::Running { start: at(50_000) }));
        assert_eq!(restarted, Advance::default(), "the first start wins, quietly");
        assert!(life.advance(at(60_000), &look(PodLifecycle::Empty)).refused);
        let finished = PodLifecycle::Finished { start: at(50_000), end: at(70_000) };
        assert!(life.advance(at(99_000), &look(finished)).changed);
        assert_eq!(life.containers, PodLifecycle::Finished { start: at(1_000), end: at(70_000) });
        for seen in
            [PodLifecycle::Running { start: at(1_000) }, PodLifecycle::Finished { start: at(0), end: at(80_000) }]
        {
            let advance = life.advance(at(99_000), &look(seen));
            assert_eq!((advance.changed, advance.refused), (false, true), "{seen:?}");
        }
    }

    #[test]
    fn the_end_of_a_deleted_pod_is_the_best_that_is_known() {
        let running = || Life::new(at(9_000), &look(PodLifecycle::Running { start: at(1_000) }));
        let mut killed = running();
        killed.advance(
            at(10_000),
            &PodLook { deleting: Some(at(40_000)), ..look(PodLifecycle::Running { start: at(1_000) }) },
        );
        let mut late = killed.clone();
        assert!(killed.end(at(12_000)));
        assert_eq!(killed.containers.end(), Some(at(12_000)), "before its grace was over");
        late.end(at(300_000));
        assert_eq!(late.containers.end(), Some(at(40_000)), "it was gone by then, though nobody saw it");
        let mut told = running();
        told.advance(at(99_000), &look(PodLifecycle::Finished { start: at(1_000), end: at(70_000) }));
        assert!(!told.end(at(300_000)));
        assert_eq!(told.containers.end(), Some(at(70_000)), "its containers know best");
    }

    #[test]
    fn every_new_reason_is_noted_with_its_time_and_the_oldest_are_dropped() {
        let mut life = Life::new(at(100), &waiting("0/1 nodes"));
        assert!(!life.advance(at(5_000), &waiting("0/1 nodes")).changed);
        assert!(life.advance(at(6_000), &waiting("0/2 nodes")).changed);
        assert_eq!(life.waits.iter().map(|wait| wait.at).collect::<Vec<_>>(), [at(100), at(6_000)]);
        let dropped = (0..20).filter(|n| life.advance(at(7_000), &waiting(&format!("{n}"))).wait_dropped).count();
        assert_eq!((life.waits.len(), dropped), (MAX_WAITS, 6));
        let bound = PodLook { scheduled: Some(at(20_000)), ..waiting("stale") };
        life.advance(at(50_000), &bound);
        assert_ne!(life.waits.last().unwrap().message, "stale", "a bound pod does not wait");
    }

    proptest! {
        #[test]
        fn whatever_comes_a_life_moves_forward(steps in prop::collection::vec((0_i64..9, 0_i64..9, 0_i64..9), 1..9)) {
            let mut life: Option<Life> = None;
            for (kind, a, b) in steps {
                let (now, start) = (at(a * 1_000 + 137), at(b * 1_000));
                let seen = match kind % 3 {
                    0 => PodLifecycle::Empty,
                    1 => PodLifecycle::Running { start },
                    _ => PodLifecycle::Finished { start, end: start.max(at(kind * 1_000)) },
                };
                let look = PodLook { scheduled: (kind > 4).then_some(start), ..look(seen) };
                let Some(known) = &mut life else { life = Some(Life::new(now, &look)); continue };
                let before = known.clone();
                let advance = known.advance(now, &look);
                prop_assert_eq!(advance.changed, *known != before);
                prop_assert!(known.containers >= before.containers || known.containers.start() == before.containers.start());
                prop_assert!(before.containers.start().is_none() || known.containers.start() == before.containers.start());
                prop_assert!(before.containers.end().is_none() || known.containers == before.containers);
                prop_assert!(known.containers.end().is_none() || known.containers.end() >= known.containers.start());
            }
        }
    }
}

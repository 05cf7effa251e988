//! When a loop runs (`loop/trigger.go`): when the scan interval since the last loop has passed, when a pod becomes
//! unschedulable, and right after a loop that did something.
//!
//! While nothing can happen, no timer is set; a change sets it to the time at which it would have fired.

use sk_core::{SimDuration, SimTime};

use super::decisions::Trigger;
use super::flags::Autoscaler;
use super::rules::Rule;

/// Loops that pods start come at least this far apart, as they were seen to: a burst of pods starts about ten a second.
const BETWEEN_PODS: SimDuration = SimDuration::from_millis(100);

/// The state of the timer.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    scan_interval: SimDuration,
    first_loop: SimDuration,
    /// How long a loop takes.
    takes: SimDuration,
    restarts: bool,
    /// There has been a loop.
    has_begun: bool,
    /// The number of the loop that is due; older ones are void.
    number: u64,
    due: Option<(SimTime, Trigger)>,
    /// When the last loop ended.
    ended: SimTime,
    /// From when the timer counts.
    counted_from: SimTime,
}

impl Schedule {
    pub(super) fn new(flags: &Autoscaler, takes: SimDuration) -> Self {
        // A timer of nothing would never let time pass.
        let scan_interval = flags.scan_interval.max(SimDuration::from_millis(1));
        Self {
            scan_interval,
            first_loop: flags.first_loop.unwrap_or(scan_interval),
            takes,
            restarts: flags.follows(Rule::TimerRestarts),
            has_begun: false,
            number: 0,
            due: None,
            ended: SimTime::EPOCH,
            counted_from: SimTime::EPOCH,
        }
    }

    /// The timer is set by these flags from its next tick on.
    pub(super) fn set_interval(&mut self, flags: &Autoscaler, takes: SimDuration) {
        self.scan_interval = flags.scan_interval.max(SimDuration::from_millis(1));
        self.takes = takes;
    }

    pub(super) fn first(&mut self, now: SimTime) -> Option<(u64, SimTime)> {
        (self.ended, self.counted_from) = (now, now);
        self.set(now + self.first_loop, Trigger::Timer)
    }

    /// A loop may begin: what started it. `None`: it was put off or brought forward.
    pub(super) fn begin(&mut self, number: u64, now: SimTime) -> Option<Trigger> {
        let (_, trigger) = self.due.take_if(|_| number == self.number)?;
        self.has_begun = true;
        self.ended = now + self.takes;
        if self.restarts || trigger == Trigger::Timer {
            self.counted_from = self.ended;
        }
        Some(trigger)
    }

    /// Right after the loop that is ending.
    pub(super) fn at_once(&mut self, now: SimTime, trigger: Trigger) -> Option<(u64, SimTime)> {
        // Even a loop that takes no time ends before the next begins.
        self.set(self.ended.max(now + SimDuration::from_millis(1)), trigger)
    }

    /// When the timer says so; not before `quiet_until`, and not at all without it.
    pub(super) fn by_timer(&mut self, now: SimTime, quiet_until: Option<SimTime>) -> Option<(u64, SimTime)> {
        let at = self.tick(quiet_until?.max(now + SimDuration::from_micros(1)));
        self.set(at, Trigger::Timer)
    }

    /// A pod was found to be unschedulable: its loop begins so much later at the earliest.
    pub(super) fn pod_appeared(
        &mut self,
        now: SimTime,
        later: SimDuration,
        flags: &Autoscaler,
    ) -> Option<(u64, SimTime)> {
        if !self.has_begun || !flags.frequent_loops_enabled || !flags.follows(Rule::PodsStartLoops) {
            return self.changed(now);
        }
        let at = (now + later).max(self.ended + BETWEEN_PODS);
        let is_sooner = self.due.is_none_or(|(due, _)| at < due);
        if is_sooner { self.set(at, Trigger::Pod) } else { None }
    }

    /// Something changed: if the timer is not set for its next tick, it is now.
    pub(super) fn changed(&mut self, now: SimTime) -> Option<(u64, SimTime)> {
        // No tick is before the first, so a loop that is due by then needs no look at the clock.
        let first = self.counted_from + self.scan_interval;
        if !self.has_begun || self.due.is_some_and(|(due, _)| due <= first) {
            return None;
        }
        let next = self.tick(now);
        if self.due.is_some_and(|(due, _)| due <= next) {
            return None;
        }
        self.set(next, Trigger::Timer)
    }

    /// The first tick of the timer that is not before `at`.
    fn tick(&self, at: SimTime) -> SimTime {
        let period = self.scan_interval + self.takes;
        let first = self.counted_from + self.scan_interval;
        let late = at.since(first).as_micros().max(0);
        let ticks = (late + period.as_micros() - 1) / period.as_micros();
        first + SimDuration::from_micros(ticks.saturating_mul(period.as_micros()))
    }

    fn set(&mut self, at: SimTime, trigger: Trigger) -> Option<(u64, SimTime)> {
        self.number += 1;
        self.due = Some((at, trigger));
        Some((self.number, at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: SimTime = SimTime::from_secs(1_000);

    fn at(secs: i64) -> SimTime {
        START + SimDuration::from_secs(secs)
    }

    fn schedule(takes: SimDuration) -> Schedule {
        let mut schedule = Schedule::new(&Autoscaler::default(), takes);
        assert_eq!(schedule.first(START), Some((1, at(10))));
        schedule
    }

    #[test]
    fn the_timer_counts_from_the_last_loop() {
        let mut schedule = schedule(SimDuration::ZERO);
        assert_eq!(
            schedule.pod_appeared(at(4), SimDuration::ZERO, &Autoscaler::default()),
            None,
            "there has been no loop yet"
        );
        schedule.begin(1, at(10)).unwrap();
        schedule.by_timer(at(10), Some(at(10))).unwrap();
        let (number, soon) = schedule.pod_appeared(at(14), SimDuration::ZERO, &Autoscaler::default()).unwrap();
        assert_eq!(soon, at(14));
        assert_eq!(schedule.begin(2, at(20)), None, "the loop of the timer was brought forward");
        assert_eq!(schedule.begin(number, at(14)), Some(Trigger::Pod));
        assert_eq!(schedule.by_timer(at(14), Some(at(14))).unwrap().1, at(24));
    }

    #[test]
    fn a_quiet_timer_is_found_where_it_would_have_stood() {
        let mut schedule = schedule(SimDuration::ZERO);
        schedule.begin(1, at(10)).unwrap();
        assert_eq!(schedule.by_timer(at(10), None), None, "nothing can happen: no timer");
        assert_eq!(schedule.changed(at(57)).unwrap().1, at(60));
        assert_eq!(schedule.changed(at(58)), None, "it is set already");
    }

    #[test]
    fn a_loop_that_takes_time_puts_off_the_next() {
        let mut schedule = schedule(SimDuration::from_millis(20));
        schedule.begin(1, at(10)).unwrap();
        let next = schedule.by_timer(at(10), Some(at(10))).unwrap().1;
        assert_eq!(next, at(20) + SimDuration::from_millis(20));
    }
}

//! Counting pods: of the whole run, of a namespace, of an owner.

use sk_core::{SimDuration, SimTime};
use sk_record::{EndedBy, PodRow};

use crate::figures::{Counted, Latency, Pending, PodCounts, PodFigures, Pods, Waits};
use crate::step::{Step, Window};

/// When a pod left its node, or the queue.
pub(crate) fn end_of<Text>(pod: &PodRow<Text>) -> Option<SimTime> {
    match (pod.finished, pod.deleted) {
        (Some(finished), Some(deleted)) => Some(finished.min(deleted)),
        (finished, deleted) => finished.or(deleted),
    }
}

/// When a pod stopped waiting for a node: bound, deleted, or not before the run's end.
pub(crate) fn wait_end<Text>(pod: &PodRow<Text>) -> Option<SimTime> {
    pod.scheduled.or_else(|| end_of(pod))
}

/// Is it a pod from before the window that was refused and had no node in all of it?
pub(crate) fn is_left_waiting<Text>(pod: &PodRow<Text>, window: Window) -> bool {
    let is_bound = pod.scheduled.is_some_and(|bound| bound <= window.end);
    let is_gone = end_of(pod).is_some_and(|end| end <= window.start);
    pod.waited_for.is_some() && !is_bound && !is_gone
}

/// Figures of some pods in the making. Sixteen bytes per pod are kept, for the percentiles.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    counts: PodCounts,
    refused: i64,
    unschedulable: i64,
    evicted: i64,
    preempted: i64,
    waits: Vec<SimDuration>,
    latencies: Vec<SimDuration>,
}

impl Tally {
    /// Counts a pod that was created in the window.
    pub(crate) fn add<Text>(&mut self, pod: &PodRow<Text>, window: Window) {
        let inside = |time: &SimTime| *time <= window.end;
        let refused = pod.waited_for.is_some();
        let bound = pod.scheduled.filter(inside);
        let started = pod.started.filter(inside);
        self.counts.created += 1;
        self.counts.ran += i64::from(started.is_some());
        self.refused += i64::from(refused);
        self.unschedulable += i64::from(refused && bound.is_none());
        match pod.ended_by {
            Some(EndedBy::Finished) => self.counts.finished += 1,
            Some(EndedBy::Failed) => self.counts.failed += 1,
            Some(EndedBy::Evicted | EndedBy::Preempted | EndedBy::Deleted | EndedBy::NodeLost) | None => {}
        }
        self.add_driven_out(pod);
        let waited_until = wait_end(pod).map_or(window.end, |end| end.min(window.end));
        self.waits.push(waited_until.since(pod.created).max(SimDuration::ZERO));
        self.latencies.extend(started.map(|started| started.since(pod.created).max(SimDuration::ZERO)));
    }

    /// Counts what happened in the window to a pod that was there before it.
    pub(crate) fn add_earlier<Text>(&mut self, pod: &PodRow<Text>, window: Window) {
        self.unschedulable += i64::from(is_left_waiting(pod, window));
        if end_of(pod).is_some_and(|end| window.contains(end)) {
            self.add_driven_out(pod);
        }
    }

    fn add_driven_out<Text>(&mut self, pod: &PodRow<Text>) {
        self.evicted += i64::from(pod.ended_by == Some(EndedBy::Evicted));
        self.preempted += i64::from(pod.ended_by == Some(EndedBy::Preempted));
    }

    /// The figures of a namespace or owner.
    pub(crate) fn into_figures(mut self) -> PodFigures {
        PodFigures {
            pending: self.waits(),
            unschedulable: Counted { pods: self.unschedulable },
            evicted: Counted { pods: self.evicted },
            preempted: Counted { pods: self.preempted },
            start_latency: self.latency(),
            pods: self.counts,
        }
    }

    /// The counts of the whole run, with the curve of running pods.
    pub(crate) fn pods(&self, running: &Step) -> Pods {
        let PodCounts { created, ran, finished, failed } = self.counts;
        let (running_max, running_mean, running_end) = (running.max(), running.mean(), running.last());
        Pods { created, ran, finished, failed, running_max, running_mean, running_end }
    }

    /// The waits of the whole run, with the curve of waiting pods.
    pub(crate) fn pending(&mut self, pending: &Step) -> Pending {
        let Waits { pods, mean, p99, longest } = self.waits();
        Pending { pods, max: pending.max(), mean, p99, longest }
    }

    /// Every time to start, shortest first.
    pub(crate) fn sorted_latencies(&mut self) -> &[SimDuration] {
        self.latencies.sort_unstable();
        &self.latencies
    }

    fn waits(&mut self) -> Waits {
        self.waits.sort_unstable();
        let waits = &self.waits;
        Waits { pods: self.refused, mean: mean(waits), p99: percentile(waits, 99), longest: percentile(waits, 100) }
    }

    fn latency(&mut self) -> Latency {
        let sorted = self.sorted_latencies();
        let at = |percent| percentile(sorted, percent);
        Latency { p50: at(50), p90: at(90), p99: at(99), max: at(100), mean: mean(sorted) }
    }
}

/// By nearest rank: the smallest value that at least `percent` of them do not exceed. Zero of none.
pub(crate) fn percentile(sorted: &[SimDuration], percent: usize) -> SimDuration {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or(SimDuration::ZERO)
}

fn mean(spans: &[SimDuration]) -> SimDuration {
    let sum: i128 = spans.iter().map(|span| i128::from(span.as_micros())).sum();
    let mean = sum.checked_div(spans.len() as i128).unwrap_or(0);
    SimDuration::from_micros(i64::try_from(mean).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let spans: Vec<_> = (1..=10).map(SimDuration::from_secs).collect();
        let secs = |percent| percentile(&spans, percent).as_micros() / 1_000_000;
        assert_eq!([0, 1, 10, 11, 50, 90, 91, 99, 100].map(secs), [1, 1, 1, 2, 5, 9, 10, 10, 10]);
        assert_eq!(percentile(&[], 99), SimDuration::ZERO);
        assert_eq!(mean(&spans), SimDuration::from_millis(5_500));
        assert_eq!(mean(&[]), SimDuration::ZERO);
    }
}

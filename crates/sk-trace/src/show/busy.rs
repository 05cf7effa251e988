//! A histogram of events over the time span of a trace.

use serde::Serialize;
use sk_core::{SimDuration, SimTime};

use super::Span;
use crate::parse;

/// How many parts the span is divided into: as many as fit a line.
pub const BUCKETS: usize = 60;

/// How many of the busiest parts are named.
const NAMED: usize = 5;

/// Events by time. What is there at the first moment is the state that the trace begins with and does not count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Busy {
    /// How long each part is.
    #[serde(with = "parse::span")]
    pub width: SimDuration,
    /// How many events each part has.
    pub events: Vec<u64>,
    #[serde(skip)]
    start: SimTime,
}

/// A part of the span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// When it begins.
    pub start: SimTime,
    /// How many events it has.
    pub events: u64,
}

impl Busy {
    pub(super) fn new(span: Option<Span>) -> Self {
        let Some(Span { start, end }) = span else { return Self::default() };
        let micros = end.since(start).as_micros() / BUCKETS as i64 + 1;
        Self { width: SimDuration::from_micros(micros), events: vec![0; BUCKETS], start }
    }

    pub(super) fn add(&mut self, at: SimTime) {
        let place = at.since(self.start).as_micros() / self.width.as_micros().max(1);
        if let Some(events) = usize::try_from(place).ok().and_then(|place| self.events.get_mut(place)) {
            *events += 1;
        }
    }

    /// The busiest parts, the busiest first; of equal ones the earlier first.
    pub fn busiest(&self) -> Vec<Moment> {
        let moment = |(place, events): (usize, &u64)| Moment {
            start: self.start + self.width * i64::try_from(place).unwrap_or(0),
            events: *events,
        };
        let mut moments: Vec<Moment> = self.events.iter().enumerate().map(moment).collect();
        moments.sort_by_key(|moment| (std::cmp::Reverse(moment.events), moment.start));
        moments.retain(|moment| moment.events > 0);
        moments.truncate(NAMED);
        moments
    }

    /// One character for each part, the higher the busier; a dot where nothing happened.
    pub fn chart(&self) -> String {
        const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let most = self.events.iter().copied().max().unwrap_or(0).max(1);
        let height = |events: &u64| match events {
            0 => '·',
            events => HEIGHTS[((events * 8).div_ceil(most) - 1) as usize % 8],
        };
        self.events.iter().map(height).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_fall_into_their_part_of_the_span() {
        let (start, end) = (SimTime::from_secs(0), SimTime::from_secs(60));
        let mut busy = Busy::new(Some(Span { start, end }));
        for millis in [0, 500, 600, 59_500, 60_000] {
            busy.add(start + SimDuration::from_millis(millis));
        }
        assert_eq!(busy.events.iter().sum::<u64>(), 5, "the last moment is in the last part");
        assert_eq!((busy.events[59], busy.busiest()[0].events), (2, 3));
        assert!(busy.chart().starts_with('█') && busy.chart().ends_with('▆'), "{}", busy.chart());
    }

    #[test]
    fn an_empty_or_momentary_trace_is_no_problem() {
        let mut nothing = Busy::new(None);
        nothing.add(SimTime::EPOCH);
        assert_eq!((nothing.chart(), nothing.busiest()), (String::new(), Vec::new()));
        let mut moment = Busy::new(Some(Span { start: SimTime::EPOCH, end: SimTime::EPOCH }));
        moment.add(SimTime::EPOCH);
        moment.add(SimTime::MAX);
        assert_eq!(moment.events[0], 1);
    }
}

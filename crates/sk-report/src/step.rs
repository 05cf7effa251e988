//! Step functions of time: how many pods run, how many nodes exist, from one change to the next.
//!
//! Integers throughout: sums are exact in 128 bits and become floating point once, at the end.

use sk_core::{SimDuration, SimTime};

/// The stretch of time that figures are about. Never empty backwards: `end` is at least `start`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// First moment.
    pub start: SimTime,
    /// End.
    pub end: SimTime,
}

impl Window {
    /// From `start` to `end`, or nothing at all if they are the wrong way round.
    pub fn new(start: SimTime, end: SimTime) -> Self {
        Self { start, end: end.max(start) }
    }

    /// How long it is.
    pub fn length(self) -> SimDuration {
        self.end.since(self.start)
    }

    /// Does it hold this moment? Both ends belong to it.
    pub fn contains(self, time: SimTime) -> bool {
        self.start <= time && time <= self.end
    }

    /// The part of `from`–`to` inside the window; no `to` means it lasts. Nothing if they do not meet.
    pub fn clip(self, from: SimTime, to: Option<SimTime>) -> Option<Window> {
        let start = from.max(self.start);
        let end = to.map_or(self.end, |to| to.min(self.end));
        (start <= end && from <= self.end).then_some(Window { start, end })
    }

    /// The window cut into `count` equal parts.
    pub fn parts(self, count: usize) -> impl Iterator<Item = Window> {
        let at = move |part: usize| {
            let share = i128::from(self.length().as_micros()) * part as i128 / count.max(1) as i128;
            self.start + SimDuration::from_micros(i64::try_from(share).unwrap_or(i64::MAX))
        };
        (0..count).map(move |part| Window { start: at(part), end: at(part + 1) })
    }
}

/// Microseconds as hours: the one place where a sum of time becomes floating point.
pub(crate) fn hours(micros: i128) -> f64 {
    micros as f64 / 3_600_000_000.0
}

/// Collects increments and decrements, in any order.
#[derive(Clone, Debug, Default)]
pub struct Changes(Vec<(SimTime, i64)>);

impl Changes {
    /// `amount` more from `from` on, until `to`.
    pub fn add(&mut self, from: SimTime, to: Option<SimTime>, amount: i64) {
        // A thing that ends before it begins is not there at all.
        if to.is_some_and(|to| to <= from) {
            return;
        }
        self.0.push((from, amount));
        if let Some(to) = to {
            self.0.push((to, amount.saturating_neg()));
        }
    }

    /// The function inside the window.
    pub fn into_step(mut self, window: Window) -> Step {
        // In which order changes of one moment come does not matter: only what they add up to is kept.
        self.0.sort_unstable_by_key(|change| change.0);
        Step::of_sorted(self.0, window)
    }
}

/// A function that keeps its value from one change to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    points: Vec<(SimTime, i64)>,
    end: SimTime,
}

impl Step {
    /// Of changes in order of time, inside the window.
    pub(crate) fn of_sorted(changes: impl IntoIterator<Item = (SimTime, i64)>, window: Window) -> Self {
        let mut points = vec![(window.start, 0)];
        let mut value = 0_i64;
        for (time, change) in changes {
            if time > window.end {
                break;
            }
            value = value.saturating_add(change);
            let time = time.max(window.start);
            match points.last_mut() {
                Some(last) if last.0 == time => last.1 = value,
                _ => points.push((time, value)),
            }
        }
        points.dedup_by_key(|point| point.1);
        Self { points, end: window.end }
    }

    /// Several added up.
    pub fn sum<'a>(steps: impl Iterator<Item = &'a Self>, window: Window) -> Self {
        let mut changes = Changes::default();
        for (from, to, value) in steps.flat_map(Self::pieces) {
            changes.add(from, (to < window.end).then_some(to), value);
        }
        changes.into_step(window)
    }

    /// Its changes: from when on, which value. The first is at the window's start.
    pub fn points(&self) -> &[(SimTime, i64)] {
        &self.points
    }

    /// The value at the window's end.
    pub fn last(&self) -> i64 {
        self.points.last().map_or(0, |point| point.1)
    }

    /// The smallest value.
    pub fn min(&self) -> i64 {
        self.points.iter().map(|point| point.1).min().unwrap_or(0)
    }

    /// The largest value.
    pub fn max(&self) -> i64 {
        self.points.iter().map(|point| point.1).max().unwrap_or(0)
    }

    /// Value times microseconds over the whole window.
    pub fn integral(&self) -> i128 {
        self.pieces().map(|(from, to, value)| i128::from(value) * i128::from(to.since(from).as_micros())).sum()
    }

    /// The same over a part of the window.
    pub(crate) fn integral_within(&self, part: Window) -> i128 {
        let begun = self.points.partition_point(|point| point.0 <= part.start).saturating_sub(1);
        let ends = self.points[begun..].iter().skip(1).map(|next| next.0).chain(std::iter::once(self.end));
        let pieces = self.points[begun..].iter().zip(ends).take_while(|(point, _)| point.0 < part.end);
        let inside = pieces.map(|(point, end)| (point.0.max(part.start), end.min(part.end), point.1));
        inside.map(|(from, to, value)| i128::from(value) * i128::from(to.since(from).as_micros())).sum()
    }

    /// The mean over time; over no time, the value there.
    pub fn mean(&self) -> f64 {
        let length = self.points.first().map_or(0, |first| self.end.since(first.0).as_micros());
        if length == 0 { self.last() as f64 } else { self.integral() as f64 / length as f64 }
    }

    /// The largest value in each of `count` equal parts: a short peak stays visible however long the run is.
    pub fn peaks(&self, window: Window, count: usize) -> Vec<i64> {
        let mut peaks = Vec::with_capacity(count);
        let mut at = 0;
        for part in window.parts(count) {
            while self.points.get(at + 1).is_some_and(|next| next.0 <= part.start) {
                at += 1;
            }
            let inside = self.points[at..].iter().take_while(|point| point.0 < part.end || point.0 <= part.start);
            peaks.push(inside.map(|point| point.1).max().unwrap_or(0));
        }
        peaks
    }

    /// About `most` points that tell the same: in each part of the window its largest and its smallest value, each for
    /// as long as keeps the integral. A short peak stays visible, does not look like a plateau, and sums over parts
    /// stay true.
    pub(crate) fn reduced(&self, window: Window, most: usize) -> Vec<(SimTime, i64)> {
        if self.points.len() <= most {
            return self.points.clone();
        }
        let mut reduced: Vec<(SimTime, i64)> = Vec::with_capacity(most);
        let mut at = 0;
        for part in window.parts((most / 2).max(1)) {
            while self.points.get(at + 1).is_some_and(|next| next.0 <= part.start) {
                at += 1;
            }
            let inside = self.points[at..].iter().take_while(|point| point.0 < part.end || point.0 <= part.start);
            let (mut low, mut high, mut last) = (i64::MAX, i64::MIN, 0);
            for (_, value) in inside {
                (low, high, last) = (low.min(*value), high.max(*value), *value);
            }
            // A curve that goes up in this part is low first, so that slopes stay slopes.
            let rises = last > self.points[at].1;
            let long = high_for(self.integral_within(part), low, high, part);
            let (first, second, turn) =
                if rises { (low, high, part.end - long) } else { (high, low, part.start + long) };
            reduced.push((part.start, first));
            reduced.push((turn, second));
        }
        reduced.dedup_by_key(|point| point.1);
        reduced
    }

    /// The stretches where the value is zero.
    pub fn zeros(&self) -> impl Iterator<Item = Window> {
        self.pieces().filter(|piece| piece.2 == 0 && piece.0 < piece.1).map(|(start, end, _)| Window { start, end })
    }

    pub(crate) fn pieces(&self) -> impl Iterator<Item = (SimTime, SimTime, i64)> {
        let ends = self.points.iter().skip(1).map(|next| next.0).chain(std::iter::once(self.end));
        self.points.iter().zip(ends).map(|(point, end)| (point.0, end, point.1))
    }
}

/// How long a part is at its largest value if it is at its smallest otherwise and has this integral; at least a
/// millisecond, which is what a page tells apart.
fn high_for(integral: i128, low: i64, high: i64, part: Window) -> SimDuration {
    let length = i128::from(part.length().as_micros());
    let (low, high) = (i128::from(low), i128::from(high));
    let long = if high > low { (integral - low * length) / (high - low) } else { length };
    SimDuration::from_micros(i64::try_from(long.clamp(1_000.min(length), length)).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> SimTime {
        SimTime::from_secs(secs)
    }

    fn window() -> Window {
        Window::new(at(100), at(200))
    }

    #[test]
    fn what_comes_and_goes_adds_up_in_any_order() {
        let mut changes = Changes::default();
        changes.add(at(150), None, 3);
        changes.add(at(120), Some(at(160)), 2);
        changes.add(at(50), Some(at(130)), 1);
        let step = changes.into_step(window());
        assert_eq!(step.points(), [(at(100), 1), (at(120), 3), (at(130), 2), (at(150), 5), (at(160), 3)]);
        assert_eq!((step.min(), step.max(), step.last()), (1, 5, 3));
        let expected = 20 + 3 * 10 + 2 * 20 + 5 * 10 + 3 * 40;
        assert_eq!(step.integral(), i128::from(expected) * 1_000_000);
        assert_eq!(step.mean(), expected as f64 / 100.0);
    }

    #[test]
    fn the_parts_of_an_integral_add_up_to_it() {
        let mut changes = Changes::default();
        changes.add(at(120), Some(at(160)), 2);
        changes.add(at(150), None, 3);
        let step = changes.into_step(window());
        assert_eq!(step.integral_within(Window::new(at(110), at(130))), 2 * 10_000_000);
        for count in [1, 3, 7, 100] {
            let parts: i128 = window().parts(count).map(|part| step.integral_within(part)).sum();
            assert_eq!(parts, step.integral(), "{count} parts");
        }
    }

    #[test]
    fn what_is_outside_the_window_does_not_count() {
        let mut changes = Changes::default();
        changes.add(at(10), Some(at(90)), 7);
        changes.add(at(210), None, 7);
        changes.add(at(150), Some(at(140)), 7);
        let step = changes.into_step(window());
        assert_eq!(step.points(), [(at(100), 0)]);
        assert_eq!(step.zeros().collect::<Vec<_>>(), [window()]);
    }

    #[test]
    fn a_short_peak_stays_visible() {
        let mut changes = Changes::default();
        changes.add(at(133), Some(at(134)), 9);
        let step = changes.into_step(window());
        assert_eq!(step.peaks(window(), 10), [0, 0, 0, 9, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn fewer_points_keep_peaks_lows_and_the_integral() {
        let mut changes = Changes::default();
        for second in 100..200 {
            // Five come each second and stay for 20 ms; half of the time somebody else is there too.
            let from = at(second);
            changes.add(from, Some(from + SimDuration::from_micros(20_000)), 5);
        }
        changes.add(at(150), None, 2);
        let step = changes.into_step(window());
        let reduced = step.reduced(window(), 20);
        assert!(reduced.len() <= 20, "{}", reduced.len());
        let ends = reduced.iter().skip(1).map(|next| next.0).chain([at(200)]);
        let integral: i128 = reduced
            .iter()
            .zip(ends)
            .map(|((from, value), to)| i128::from(*value) * i128::from(to.since(*from).as_micros()))
            .sum();
        assert!((integral - step.integral()).abs() < 1_000, "{integral} is not {}", step.integral());
        assert_eq!(reduced.iter().map(|point| point.1).max(), Some(7));
        assert_eq!(reduced[..2], [(at(100), 5), (at(100) + SimDuration::from_micros(200_000), 0)]);
        assert_eq!(step.reduced(window(), 1_000), step.points());
    }

    #[test]
    fn a_window_of_no_length_has_the_value_of_its_moment() {
        let moment = Window::new(at(100), at(100));
        let mut changes = Changes::default();
        changes.add(at(100), None, 4);
        let step = changes.into_step(moment);
        assert_eq!((step.mean(), step.integral()), (4.0, 0));
        assert_eq!(step.peaks(moment, 3), [4, 4, 4]);
    }

    #[test]
    fn absurd_times_do_not_panic() {
        let all = Window::new(SimTime::from_micros(i64::MIN), SimTime::MAX);
        let mut changes = Changes::default();
        changes.add(SimTime::from_micros(i64::MIN), None, i64::MAX);
        changes.add(SimTime::EPOCH, None, i64::MAX);
        let step = changes.into_step(all);
        assert!(step.mean() > 0.0);
        assert_eq!(step.peaks(all, 4).len(), 4);
    }
}

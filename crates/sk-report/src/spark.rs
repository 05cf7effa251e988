//! Charts in text: bars, a time axis, marks above it, all on the same columns.

use sk_core::{SimDuration, SimTime};

use crate::step::{Step, Window};
use crate::words;

/// Columns of a picture at most: with a label of 9 before and 23 of text after, a line is 80.
pub(crate) const COLUMNS: usize = 48;

/// Columns between two tick labels at least: `1h30m` and a space.
const TICK_COLUMNS: i64 = 6;

/// A bar per column: `·` for none, then eighths of `full`, rounded up so that one of many is visible.
pub(crate) fn bars(step: &Step, window: Window, full: i64, columns: usize) -> String {
    const EIGHTHS: [char; 9] = ['·', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let bar = |peak: i64| {
        let eighths = (i128::from(peak.max(0)) * 8).div_ceil_by(i128::from(full.max(1)));
        EIGHTHS[usize::try_from(eighths).unwrap_or(0).min(8)]
    };
    step.peaks(window, columns).into_iter().map(bar).collect()
}

trait DivCeil {
    fn div_ceil_by(self, divisor: Self) -> Self;
}

impl DivCeil for i128 {
    /// For non-negative numbers; `i128::div_ceil` is not stable.
    fn div_ceil_by(self, divisor: Self) -> Self {
        (self + divisor - 1) / divisor
    }
}

/// Tick labels under the picture: `0     5m    10m`.
pub(crate) fn axis(window: Window, columns: usize) -> String {
    let step = tick_step(window.length(), columns);
    let mut line = Labels::default();
    line.put(0, "0");
    for count in 1..=ticks(columns) {
        let tick = step * count;
        if tick <= window.length() {
            line.put(column_of(window, window.start + tick, columns), &tick.to_string());
        }
    }
    line.text
}

/// How many ticks there is room for.
fn ticks(columns: usize) -> i64 {
    (columns as i64 / TICK_COLUMNS).max(1)
}

/// The smallest round step whose labels do not touch.
fn tick_step(length: SimDuration, columns: usize) -> SimDuration {
    const SECONDS: [i64; 22] = [
        1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 172_800,
        604_800, 1_209_600, 2_592_000,
    ];
    let least = length.as_micros() / ticks(columns);
    let round = SECONDS.iter().map(|secs| secs * 1_000_000).find(|step| *step >= least);
    // Beyond months: whole multiples of the longest.
    let months = || (least / 2_592_000_000_000 + 1).saturating_mul(2_592_000_000_000);
    SimDuration::from_micros(round.unwrap_or_else(months))
}

/// Changes of replicas where they happened: `×2    ×10         ×5          deleted`. One that would touch the one
/// before it is left out.
pub(crate) fn marks(window: Window, changes: &[(SimTime, Option<f64>)], columns: usize) -> String {
    let mut line = Labels::default();
    for (time, value) in changes {
        let label = value.map_or_else(|| "deleted".to_owned(), |value| format!("×{}", words::figure(value)));
        let latest = columns.saturating_sub(words::width(&label));
        line.put(column_of(window, *time, columns).min(latest), &label);
    }
    line.text
}

fn column_of(window: Window, time: SimTime, columns: usize) -> usize {
    let length = i128::from(window.length().as_micros()).max(1);
    let since = i128::from(time.since(window.start).as_micros());
    usize::try_from(since * columns as i128 / length).unwrap_or(0).min(columns)
}

/// Labels at columns, in one line, with a space between.
#[derive(Default)]
struct Labels {
    text: String,
}

impl Labels {
    fn put(&mut self, column: usize, label: &str) {
        let used = words::width(&self.text);
        if used > 0 && column <= used {
            return;
        }
        self.text.extend(std::iter::repeat_n(' ', column.saturating_sub(used)));
        self.text.push_str(label);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::Changes;

    fn minutes(length: i64) -> Window {
        Window::new(SimTime::EPOCH, SimTime::EPOCH + SimDuration::from_mins(length))
    }

    #[test]
    fn axes_have_round_labels_that_do_not_touch() {
        assert_eq!(axis(minutes(40), COLUMNS), "0     5m    10m   15m   20m   25m   30m   35m   40m");
        assert_eq!(axis(minutes(7 * 24 * 60), COLUMNS), "0     1d     2d     3d     4d     5d     6d     7d");
        for length in [0, 1, 7, 59, 61, 1_440, 10_080, 525_600, 52_560_000] {
            let line = axis(minutes(length), COLUMNS);
            assert!(words::width(&line) <= COLUMNS + 8, "{length}: {line}");
        }
        assert_eq!(axis(minutes(40), 15), "0          30m");
        let all = Window::new(SimTime::from_micros(i64::MIN), SimTime::MAX);
        assert!(words::width(&axis(all, COLUMNS)) <= COLUMNS + 12);
    }

    #[test]
    fn bars_show_one_of_many_and_tell_none_from_few() {
        let mut changes = Changes::default();
        changes.add(SimTime::EPOCH, Some(SimTime::from_secs(600)), 1);
        changes.add(SimTime::from_secs(600), Some(SimTime::from_secs(1_200)), 1_000);
        let line = bars(&changes.into_step(minutes(40)), minutes(40), 1_000, COLUMNS);
        assert_eq!(line, format!("{}{}{}", "▁".repeat(12), "█".repeat(12), "·".repeat(24)));
    }

    #[test]
    fn marks_stand_where_things_happened() {
        let at = |mins| SimTime::EPOCH + SimDuration::from_mins(mins);
        let changes =
            [(at(0), Some(2.0)), (at(5), Some(10.0)), (at(6), Some(11.0)), (at(15), Some(5.0)), (at(25), None)];
        assert_eq!(marks(minutes(40), &changes, COLUMNS), "×2    ×10         ×5          deleted");
        assert_eq!(words::width(&marks(minutes(40), &[(at(40), None)], COLUMNS)), COLUMNS);
    }
}

//! The progress of several simulations: one line for each that is running, and one for all of them.
//!
//! A line shows the simulated time, the speed relative to real time, the estimated time left, and the size of the cluster.

use std::io::{self, IsTerminal};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use sk_core::SimDuration;

use super::{PATIENCE, TICK, interruption, show_later};

/// The bars of several simulations.
pub(crate) struct Lines {
    bars: MultiProgress,
    /// How many are done; only where there are several.
    total: Option<ProgressBar>,
    interrupted: Arc<AtomicBool>,
    since: Instant,
    show: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Lines {
    /// For this many simulations.
    pub(crate) fn new(runs: usize, quiet: bool) -> io::Result<Self> {
        let bars = MultiProgress::with_draw_target(ProgressDrawTarget::hidden());
        let total = (runs > 1).then(|| bars.add(styled(runs as u64, "{pos} of {len} runs  {elapsed}")));
        let is_visible = !quiet && io::stderr().is_terminal();
        let shown = bars.clone();
        let show =
            is_visible.then(|| show_later(move || shown.set_draw_target(ProgressDrawTarget::stderr_with_hz(10))));
        Ok(Self { bars, total, interrupted: interruption()?, since: Instant::now(), show })
    }

    /// A line for a simulation that begins now; it disappears with the returned value.
    pub(crate) fn line(&self, label: &str, length: SimDuration) -> Line<'_> {
        let bar = styled(micros(length), "{prefix}{wide_bar} {percent:>3}%  {msg}");
        bar.set_prefix(if label.is_empty() { String::new() } else { format!("{label}  ") });
        let bar = match &self.total {
            Some(total) => self.bars.insert_before(total, bar),
            None => self.bars.add(bar),
        };
        Line { lines: self, bar, began: Instant::now(), told: Mutex::new(None), length }
    }

    /// Has the user pressed Ctrl-C?
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    fn is_shown(&self) -> bool {
        self.show.is_some() && self.since.elapsed() > PATIENCE
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        if let Some((done, thread)) = self.show.take() {
            drop(done);
            // The thread only draws. If it panicked, there are no bars, and nothing else is lost.
            let _ = thread.join();
        }
        if let Some(total) = &self.total {
            total.finish_and_clear();
        }
    }
}

fn styled(length: u64, template: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::hidden());
    bar.with_style(ProgressStyle::with_template(template).expect("the templates here are well-formed"))
}

fn micros(span: SimDuration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(0)
}

/// The line of one simulation.
pub(crate) struct Line<'a> {
    lines: &'a Lines,
    bar: ProgressBar,
    began: Instant,
    /// When something was last said, because saying it costs something.
    told: Mutex<Option<Instant>>,
    length: SimDuration,
}

impl Line<'_> {
    /// Reports progress; `say` describes the cluster. Breaks on Ctrl-C.
    pub(crate) fn at(&self, done: SimDuration, say: impl FnOnce() -> String) -> ControlFlow<()> {
        if self.lines.is_interrupted() {
            return ControlFlow::Break(());
        }
        if self.lines.is_shown() && self.is_time_to_tell() {
            self.bar.set_position(micros(done));
            self.bar.set_message(format!("{}  {}", pace(done, self.length, self.began.elapsed()), say()));
        }
        ControlFlow::Continue(())
    }

    fn is_time_to_tell(&self) -> bool {
        let Ok(mut told) = self.told.lock() else { return false };
        let is_due = told.is_none_or(|told| told.elapsed() >= TICK);
        if is_due {
            *told = Some(Instant::now());
        }
        is_due
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        if let Some(total) = &self.lines.total {
            total.inc(1);
        }
    }
}

/// `2d3h of 7d, 12,000 times life, 40s left`.
fn pace(done: SimDuration, length: SimDuration, wall: Duration) -> String {
    let (simulated, wall) = (done.as_secs_f64(), wall.as_secs_f64());
    let rounded = |span: SimDuration| SimDuration::from_secs(span.as_micros() / 1_000_000);
    let (done_text, length_text) = (rounded(done), rounded(length));
    if simulated <= 0.0 || wall <= 0.0 {
        return format!("{done_text} of {length_text}");
    }
    let rate = simulated / wall;
    let left = SimDuration::from_secs(((length.as_secs_f64() - simulated).max(0.0) / rate).ceil() as i64);
    let rate = if rate < 10.0 { format!("{rate:.1}") } else { indicatif::HumanCount(rate.round() as u64).to_string() };
    format!("{done_text} of {length_text}, {rate}× real time, {left} left")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_speed_and_the_time_that_is_left() {
        let (day, week) = (SimDuration::from_mins(24 * 60), SimDuration::from_mins(7 * 24 * 60));
        assert_eq!(pace(day, week, Duration::from_secs(10)), "1d of 7d, 8,640× real time, 1m left");
        assert_eq!(pace(SimDuration::ZERO, week, Duration::from_secs(1)), "0s of 7d");
        let slow = pace(SimDuration::from_secs(3), SimDuration::from_secs(6), Duration::from_secs(2));
        assert_eq!(slow, "3s of 6s, 1.5× real time, 2s left");
    }
}

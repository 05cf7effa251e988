//! A progress bar on standard error for work that takes more than a second, and Ctrl-C.

use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sk_core::{SimDuration, SimTime};

/// Work done sooner shows no bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// Shows how far a simulation is; breaks when the user does.
pub(crate) struct Progress {
    bar: ProgressBar,
    start: SimTime,
    since: Instant,
    shown: bool,
    interrupted: Arc<AtomicBool>,
}

impl Progress {
    /// For a simulation from `start` to `end`.
    pub(crate) fn new(start: SimTime, end: SimTime, quiet: bool) -> std::io::Result<Self> {
        let interrupted = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(signal_hook::consts::SIGINT, interrupted.clone())?;
        signal_hook::flag::register(signal_hook::consts::SIGTERM, interrupted.clone())?;
        let target = if quiet || !std::io::stderr().is_terminal() {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr_with_hz(10)
        };
        let length = u64::try_from(end.since(start).as_micros()).unwrap_or(0);
        let bar = ProgressBar::with_draw_target(Some(length), target);
        let style =
            ProgressStyle::with_template("{wide_bar} {percent:>3}%  {msg}").expect("the template is well-formed");
        bar.set_style(style);
        Ok(Self { bar, start, since: Instant::now(), shown: false, interrupted })
    }

    /// The simulation has come this far.
    pub(crate) fn at(&mut self, now: SimTime) -> ControlFlow<()> {
        if self.interrupted.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        self.shown |= self.since.elapsed() > PATIENCE;
        if self.shown {
            let done = now.since(self.start);
            self.bar.set_message(format!("{done} simulated"));
            self.bar.set_position(u64::try_from(done.as_micros()).unwrap_or(0));
        }
        ControlFlow::Continue(())
    }

    /// Takes the bar away; how long it all took.
    pub(crate) fn finish(self) -> SimDuration {
        self.bar.finish_and_clear();
        SimDuration::from_micros(i64::try_from(self.since.elapsed().as_micros()).unwrap_or(i64::MAX))
    }
}

//! A progress bar on standard error for work that takes more than a second, and Ctrl-C.
//!
//! [`Bar`] is for work that reports no progress, [`Progress`] for work that does and can be stopped, [`Lines`] for several
//! simulations at a time. Nothing is drawn if standard error is not a terminal, or with `-q`.

#[cfg(unix)]
mod interruption;
mod lines;

use std::io::{self, IsTerminal};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

pub(crate) use lines::Lines;

/// Work done sooner shows no bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often a bar moves, even if nothing else does.
const TICK: Duration = Duration::from_millis(100);

/// A bar that appears after a second of work, and disappears with it.
pub(crate) struct Bar {
    bar: ProgressBar,
    since: Instant,
    /// Dropping the sender tells the thread that waits to show the bar that the work is done.
    show: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Bar {
    /// For work of unknown length, such as `reading week.sktrace`.
    pub(crate) fn of_unknown_length(what: String, quiet: bool) -> Self {
        let bar = Self::new(None, "{spinner} {msg}  {elapsed}", quiet);
        bar.bar.set_message(what);
        bar
    }

    /// For work of a known length, in whatever unit.
    fn of_length(length: u64, quiet: bool) -> Self {
        Self::new(Some(length), "{wide_bar} {percent:>3}%  {msg}", quiet)
    }

    /// For this many bytes, if known.
    fn of_bytes(length: Option<u64>, what: String, quiet: bool) -> Self {
        let template = match length {
            Some(_) => "{msg}  {wide_bar} {decimal_bytes} of {decimal_total_bytes}",
            None => "{spinner} {msg}  {decimal_bytes}  {elapsed}",
        };
        let bar = Self::new(length, template, quiet);
        bar.bar.set_message(what);
        bar
    }

    fn new(length: Option<u64>, template: &str, quiet: bool) -> Self {
        let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::hidden());
        bar.set_style(ProgressStyle::with_template(template).expect("the templates above are well-formed"));
        let visible = !quiet && io::stderr().is_terminal();
        let shown = bar.clone();
        let show = visible.then(|| {
            show_later(move || {
                shown.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
                shown.enable_steady_tick(TICK);
            })
        });
        Self { bar, since: Instant::now(), show }
    }

    fn is_shown(&self) -> bool {
        self.show.is_some() && self.since.elapsed() > PATIENCE
    }
}

/// Calls `show` after a while, unless the sender is dropped before.
fn show_later(show: impl FnOnce() + Send + 'static) -> (Sender<()>, JoinHandle<()>) {
    let (done, is_done) = mpsc::channel();
    let wait = move || {
        if let Err(RecvTimeoutError::Timeout) = is_done.recv_timeout(PATIENCE) {
            show();
        }
    };
    (done, std::thread::spawn(wait))
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some((done, thread)) = self.show.take() {
            drop(done);
            // The thread only draws. If it panicked, there is no bar, and nothing else is lost.
            let _ = thread.join();
        }
        self.bar.finish_and_clear();
    }
}

/// Set by the first Ctrl-C; the same for all work of this process, so that none of it misses one that came before.
static INTERRUPTION: OnceLock<Arc<AtomicBool>> = OnceLock::new();

fn interruption() -> io::Result<Arc<AtomicBool>> {
    if let Some(interrupted) = INTERRUPTION.get() {
        return Ok(interrupted.clone());
    }
    let interrupted = Arc::new(AtomicBool::new(false));
    watch(&interrupted)?;
    Ok(INTERRUPTION.get_or_init(|| interrupted).clone())
}

#[cfg(unix)]
fn watch(interrupted: &Arc<AtomicBool>) -> io::Result<()> {
    interruption::watch(interrupted)
}

#[cfg(not(unix))]
fn watch(interrupted: &Arc<AtomicBool>) -> io::Result<()> {
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register_conditional_default(signal, interrupted.clone())?;
        signal_hook::flag::register(signal, interrupted.clone())?;
    }
    Ok(())
}

/// The interruption was what somebody meant to do, as the end of a recording is: what follows is ended by another one.
pub(crate) fn heed() {
    if let Some(interrupted) = INTERRUPTION.get() {
        interrupted.store(false, Ordering::Relaxed);
    }
}

/// Has the user pressed Ctrl-C since the first stoppable work began? Before that, Ctrl-C ends the process.
pub(crate) fn is_interrupted() -> bool {
    INTERRUPTION.get().is_some_and(|interrupted| interrupted.load(Ordering::Relaxed))
}

/// Shows how far work is; breaks when the user does. A second Ctrl-C ends the process at once.
pub(crate) struct Progress {
    bar: Bar,
    interrupted: Arc<AtomicBool>,
}

impl Progress {
    /// For work of a known length.
    pub(crate) fn of_length(length: u64, quiet: bool) -> io::Result<Self> {
        Self::new(Bar::of_length(length, quiet))
    }

    /// For work of unknown length.
    pub(crate) fn of_unknown_length(what: String, quiet: bool) -> io::Result<Self> {
        Self::new(Bar::of_unknown_length(what, quiet))
    }

    /// For this many bytes of an upload or download, if known.
    pub(crate) fn of_bytes(length: Option<u64>, what: String, quiet: bool) -> io::Result<Self> {
        Self::new(Bar::of_bytes(length, what, quiet))
    }

    fn new(bar: Bar) -> io::Result<Self> {
        Ok(Self { bar, interrupted: interruption()? })
    }

    /// Reports progress; `say` describes it.
    pub(crate) fn at(&self, done: u64, say: impl FnOnce() -> String) -> ControlFlow<()> {
        if self.interrupted.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        if self.bar.is_shown() {
            self.bar.bar.set_message(say());
            self.bar.bar.set_position(done);
        }
        ControlFlow::Continue(())
    }

    /// This many bytes are done.
    pub(crate) fn bytes(&self, done: u64) {
        self.bar.bar.set_position(done);
    }

    /// The bar itself, for work that is handed to somebody else and knows best how far it is.
    pub(crate) fn meter(&self) -> ProgressBar {
        self.bar.bar.clone()
    }

    /// Has the user pressed Ctrl-C?
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}

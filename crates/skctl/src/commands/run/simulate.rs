//! Simulates several runs at a time, one thread each. The caller evaluates the results.
//!
//! A run sees neither the other runs nor the clock, so its record is the same however many run beside it and in whatever
//! order they end.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use sk_core::{SimDuration, SimTime};
use sk_record::Staged;
use sk_replay::embedded::{self, LONGEST_STEP};
use sk_replay::progress::{Counts, Progress};

use super::planned::{Planned, PlannedRun};
use crate::cli::RunArgs;
use crate::progress::Lines;

/// Speeds that make sense to watch: slower than this a minute takes a day.
const SPEEDS: std::ops::RangeInclusive<f64> = 0.001..=1_000_000.0;
/// The refresh interval of the progress.
const GLANCE: Duration = Duration::from_millis(100);

/// A run that has ended, or could not.
pub(super) struct Ended {
    /// Which of those that were planned.
    pub(super) number: usize,
    pub(super) staged: Result<Staged>,
    /// How long it took.
    pub(super) wall: Duration,
}

/// How many run at the same time.
pub(super) fn jobs(args: &RunArgs, runs: usize) -> Result<usize> {
    if args.jobs == Some(0) {
        bail!("--jobs 0 runs nothing: say 1 or more, or leave it out");
    }
    let cores = || thread::available_parallelism().map_or(1, usize::from);
    Ok(args.jobs.unwrap_or_else(cores).min(runs))
}

/// The speed that was asked for.
pub(super) fn speed(args: &RunArgs) -> Result<Option<f64>> {
    match args.speed {
        Some(speed) if !SPEEDS.contains(&speed) => {
            bail!("--speed {speed}: must be from {} to {}; 1 is as recorded", SPEEDS.start(), SPEEDS.end())
        }
        speed => Ok(speed),
    }
}

/// Simulates all of them, `jobs` at a time and the first ones first, and gives each to `take` when it has ended. After
/// Ctrl-C those that are under way end early, and no other begins.
pub(super) fn all(
    planned: &Planned,
    jobs: usize,
    speed: Option<f64>,
    lines: &Lines,
    mut take: impl FnMut(Ended) -> Result<()>,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let (send, ended) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..jobs {
            let (send, next) = (send.clone(), &next);
            scope.spawn(move || {
                while let Some(ended) = one_more(planned, next, speed, lines) {
                    if send.send(ended).is_err() {
                        break;
                    }
                }
            });
        }
        drop(send);
        ended.iter().try_for_each(&mut take)
    })
}

fn one_more(planned: &Planned, next: &AtomicUsize, speed: Option<f64>, lines: &Lines) -> Option<Ended> {
    let number = next.fetch_add(1, Ordering::Relaxed);
    let run = planned.runs.get(number).filter(|_| !lines.is_interrupted())?;
    let began = Instant::now();
    let staged = one(planned, run, speed, lines).with_context(|| match run.label.as_str() {
        "" => "cannot run".to_owned(),
        label => format!("run {label}"),
    });
    Some(Ended { number, staged, wall: began.elapsed() })
}

fn one(planned: &Planned, run: &PlannedRun, speed: Option<f64>, lines: &Lines) -> Result<Staged> {
    let inputs = planned.inputs.get(run.inputs);
    let mut request = run.request(inputs);
    if let Some(speed) = speed {
        let step = SimDuration::from_micros((GLANCE.as_micros() as f64 * speed) as i64);
        request.longest_step = step.clamp(SimDuration::from_millis(1), LONGEST_STEP);
    }
    let window = run.window;
    let line = lines.line(&run.label, window.end.since(window.start));
    let began = Instant::now();
    let mut watch = |progress: Progress<'_>| -> ControlFlow<()> {
        line.at(progress.at().since(window.start), || in_words(progress))?;
        match speed {
            Some(speed) => wait(began, progress.at(), window.start, speed, lines),
            None => ControlFlow::Continue(()),
        }
    };
    let mut staged = embedded::run(&request, &run.dir, &mut watch)?;
    for (name, content) in &inputs.files {
        staged.add_file(name, content)?;
    }
    Ok(staged)
}

/// The progress text.
fn in_words(progress: Progress<'_>) -> String {
    let Counts { nodes, running, waiting } = progress.counts();
    format!("{nodes} nodes, {running} running, {waiting} waiting")
}

/// Waits until the wall clock has come as far as the simulated one, divided by the speed. Before the clock of the run begins
/// nobody waits.
fn wait(began: Instant, now: SimTime, start: SimTime, speed: f64, lines: &Lines) -> ControlFlow<()> {
    let due = Duration::try_from_secs_f64(now.since(start).as_secs_f64().max(0.0) / speed).unwrap_or(Duration::MAX);
    while let Some(left) = due.checked_sub(began.elapsed()).filter(|left| !left.is_zero()) {
        if lines.is_interrupted() {
            return ControlFlow::Break(());
        }
        thread::sleep(left.min(GLANCE));
    }
    ControlFlow::Continue(())
}

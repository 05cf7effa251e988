//! `skctl sweep run`: makes the runs of a plan whose records are missing, several at a time.
//!
//! A thread stores the record of its run before it starts the next one, so an interrupted sweep keeps what is done. If a run
//! cannot be made, the reason is stored and the others continue.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result, bail};
use sk_report::Exit;

use super::file::{Line, Sweep};
use super::location::RecordLocation;
use super::plan::arguments;
use super::retry::{is_unreachable, with_retries};
use crate::cli::{Global, SweepRunArgs};
use crate::commands::run::single::{self, Wanted};
use crate::failure::{Outcome, each_once};
use crate::output;
use crate::progress::Lines;

/// How many runs that failed are named; `status` names all of them.
const NAMED: usize = 10;

pub(super) fn run(args: &SweepRunArgs, global: &Global) -> Result<Outcome> {
    let sweep = Sweep::open(&args.plan)?;
    refuse_another_version(&sweep)?;
    let place = RecordLocation::new(&sweep.plan.to)?;
    if let Some(index) = args.index {
        let count = sweep.lines.len();
        let line = sweep.lines.get(index);
        let line = line.with_context(|| format!("--index {index}: the plan has {count} runs, counted from 0"))?;
        return one(&sweep, line, &place, global);
    }
    let there = with_retries(|| false, || place.contents())?.done;
    let missing: Vec<&Line> = sweep.lines.iter().filter(|line| !there.contains_key(&line.run_id)).collect();
    let jobs = jobs(args.jobs, missing.len())?;
    output::say(
        global,
        &format!("{} of {} runs already have a record", sweep.lines.len() - missing.len(), sweep.lines.len()),
    );
    let done = make(&sweep, &missing, &place, jobs, global)?;
    conclude(&sweep, &missing, &done)
}

/// What came of the runs that were missing.
#[derive(Debug, Default)]
struct Done {
    made: usize,
    /// Those of them whose assertions fail, and those that could not be judged.
    bad: usize,
    unjudged: usize,
    /// Was one of them not sent because the object store did not answer?
    store_is_away: bool,
    /// Runs that could not be made, by label and reason.
    failed: Vec<(String, String)>,
    interrupted: bool,
}

impl Done {
    fn judged(&mut self, exit: Exit) {
        self.made += 1;
        match exit {
            Exit::Good => {}
            Exit::Bad => self.bad += 1,
            Exit::Unjudged => self.unjudged += 1,
        }
    }
}

fn refuse_another_version(sweep: &Sweep) -> Result<()> {
    let (planned, ours) = (&sweep.plan.version, env!("CARGO_PKG_VERSION"));
    if planned != ours {
        bail!("the plan was made by skctl {planned}, and this is {ours}, which makes other runs; make a new plan");
    }
    Ok(())
}

fn jobs(asked: Option<usize>, missing: usize) -> Result<usize> {
    if asked == Some(0) {
        bail!("--jobs 0 runs nothing: say 1 or more, or leave it out");
    }
    let cores = || thread::available_parallelism().map_or(1, usize::from);
    Ok(asked.unwrap_or_else(cores).min(missing))
}

/// One run of the plan, for the pod of a Job: what matters is that its record is there.
fn one(sweep: &Sweep, line: &Line, place: &RecordLocation, global: &Global) -> Result<Outcome> {
    if with_retries(|| false, || place.holds(&line.run_id))? {
        output::print(&format!("{}: {} already has a record\n", line.label(), line.run_id))?;
        return Ok(Outcome::Good);
    }
    let done = make(sweep, &[line], place, 1, global)?;
    if done.store_is_away {
        // Another code than that of a run that cannot be made: Kubernetes tries this index again.
        let reason = done.failed.first().map_or("", |(_, reason)| reason);
        anstream::eprintln!("run {}: {}", line.label(), output::moved_in(reason));
        return Ok(Outcome::Bad);
    }
    if let Some((label, reason)) = done.failed.first() {
        bail!("run {label}: {reason}");
    }
    if done.interrupted {
        return Ok(Outcome::Interrupted);
    }
    output::print(&format!("{}: {} is done\n", line.label(), line.run_id))?;
    Ok(Outcome::Good)
}

/// Makes these runs, `jobs` at a time and the first ones first. After Ctrl-C no other begins.
fn make(sweep: &Sweep, missing: &[&Line], place: &RecordLocation, jobs: usize, global: &Global) -> Result<Done> {
    let lines = Lines::new(missing.len(), global.quiet)?;
    let scratch = tempfile::tempdir().context("cannot make a temporary folder")?;
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Done::default()));
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some(line) = missing.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let made = make_one(sweep, line, place, scratch.path(), &lines, global);
                    let Ok(mut done) = done.lock() else { return };
                    match made {
                        Ok(Some(exit)) => done.judged(exit),
                        Ok(None) => return,
                        Err(error) => {
                            done.store_is_away |= is_unreachable(&error);
                            done.failed.push((line.label(), each_once(error.chain())));
                        }
                    }
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.interrupted = lines.is_interrupted();
    Ok(done)
}

/// Makes one run and stores its record; nothing after Ctrl-C.
fn make_one(
    sweep: &Sweep,
    line: &Line,
    place: &RecordLocation,
    scratch: &Path,
    lines: &Lines,
    global: &Global,
) -> Result<Option<Exit>> {
    if lines.is_interrupted() {
        return Ok(None);
    }
    let args = arguments(sweep, line, Some(place.folder_of(&line.run_id, scratch)));
    let label = line.label();
    let wanted = Wanted { args: &args, run_id: &line.run_id, label: &label, assumptions: &sweep.plan.assumptions };
    // The trace may be in the store too.
    let made = with_retries(|| lines.is_interrupted(), || single::make(&wanted, lines, global)).and_then(|concluded| {
        let Some(concluded) = concluded else { return Ok(None) };
        with_retries(|| lines.is_interrupted(), || place.take(&concluded.dir, &line.run_id))?;
        Ok(Some(concluded.judgement.exit()))
    });
    if let Some(error) = made.as_ref().err().filter(|error| !is_unreachable(error)) {
        // Where nothing can be written, the reason is told here alone.
        let _ = place.note_failure(&line.run_id, &each_once(error.chain()));
    }
    made
}

/// Says what came of it.
fn conclude(sweep: &Sweep, missing: &[&Line], done: &Done) -> Result<Outcome> {
    let mut text = format!("{}: {} of {} missing runs made", sweep.plan.name, done.made, missing.len());
    for (count, what) in [(done.bad, "FAIL"), (done.unjudged, "INCOMPLETE")] {
        if count > 0 {
            text += &format!(", {count} {what}");
        }
    }
    text.push('\n');
    for (label, reason) in done.failed.iter().take(NAMED) {
        text += &format!("  {}: {}\n", output::line(label), output::line(reason));
    }
    if done.failed.len() > NAMED {
        text += &format!(
            "  and {} others; `skctl sweep status {}` names them\n",
            done.failed.len() - NAMED,
            sweep.dir.display()
        );
    }
    output::print(&text)?;
    Ok(match done {
        Done { interrupted: true, .. } => Outcome::Interrupted,
        Done { failed, .. } if !failed.is_empty() => Outcome::Unjudged,
        Done { bad: 1.., .. } => Outcome::Bad,
        Done { unjudged: 1.., .. } => Outcome::Unjudged,
        Done { .. } => Outcome::Good,
    })
}

//! `skctl why [RUN|TRACE] [OBJECT]`: why pods waited, in the scheduler's own words.

use std::path::Path;

use anyhow::{Result, anyhow};
use sk_record::{Run, RunMeta};
use sk_replay::plan::Window as TraceWindow;
use sk_replay::recorded::Recorded;
use sk_report::step::Window;
use sk_report::why::{Subject, Why, render};
use sk_report::{Source, Tables};

use crate::cli::{Global, NEWEST, WhyArgs, WhyFormat};
use crate::failure::Outcome;
use crate::runs::{self, RUNS};
use crate::times::{Asked, Clock};
use crate::{output, traces};

pub(crate) fn run(args: &WhyArgs, global: &Global) -> Result<Outcome> {
    let (run, object) = words(args);
    match runs::resolve(run) {
        Ok(found) => answer(&Run::open(found.dir())?, object, args, global),
        Err(_) if traces::is_one(run) => {
            let trace = traces::open(run, global)?;
            let (start, end) = trace.span().ok_or_else(|| anyhow!("{run} is empty"))?;
            let window = TraceWindow { start, end, includes_end: true };
            let Recorded { meta, pods, nodes, series, decisions } =
                Recorded::of(&trace, window, env!("CARGO_PKG_VERSION"))?;
            answer(&Tables { meta, pods, nodes, series, decisions, autoscaler: Vec::new() }, object, args, global)
        }
        Err(error) => Err(error),
    }
}

/// Which run and which object: a single word that is not a run but looks like an object is one of the newest run.
fn words(args: &WhyArgs) -> (&str, Option<&str>) {
    let is_run = || sk_record::resolve(&args.run, Path::new(RUNS)).is_ok() || traces::is_one(&args.run);
    match &args.object {
        None if args.run.contains('/') && !is_run() => (NEWEST, Some(&args.run)),
        object => (&args.run, object.as_deref()),
    }
}

fn answer(source: &impl Source, object: Option<&str>, args: &WhyArgs, global: &Global) -> Result<Outcome> {
    let meta = source.meta();
    let subject = object.map_or(Subject::Everything, |object| Subject::find(object, meta));
    let why = Why::of(source, &subject, window(args, meta, global)?)?;
    match args.output {
        WhyFormat::Table => output::print(&render(&why, output::columns()))?,
        WhyFormat::Json => output::print_json(&why)?,
    }
    Ok(Outcome::Good)
}

/// The moment or the part of the run that was asked for.
fn window(args: &WhyArgs, meta: &RunMeta, global: &Global) -> Result<Window> {
    let clock = Clock::of(global);
    let whole = Window::new(meta.start, meta.end);
    if let Some(text) = &args.at {
        let at = clock.moment(text, meta.start)?;
        if !whole.contains(at) {
            let (start, end) = (meta.start.to_rfc3339_secs(), meta.end.to_rfc3339_secs());
            return Err(anyhow!("{text} is not in the run, which is from {start} to {end}"));
        }
        return Ok(Window::new(at, at));
    }
    let (start, end) = Asked::new(&args.part)?.moments(meta.start, &clock)?;
    Ok(Window::new(start.unwrap_or(meta.start).max(meta.start), end.unwrap_or(meta.end).min(meta.end)))
}

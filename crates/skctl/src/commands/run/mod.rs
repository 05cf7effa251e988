//! `skctl run TRACE`: replays a trace, evaluates the assertions, prints the summary and writes the run folder. On the
//! embedded engine, or with `--cluster` on a real cluster.
//!
//! `planned` finds out which runs are asked for, `simulate` makes them on all cores, `results` judges and prints them.

pub(crate) mod baseline;
pub(crate) mod conclude;
pub(crate) mod dry_run;
mod inputs;
mod named;
mod planned;
mod results;
mod simulate;
pub(crate) mod single;
mod suggestions;

use std::io::IsTerminal;
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use sk_api::scenario::{Assertion, Path as ScenarioPath, Scenario};
use sk_core::SimTime;
use sk_report::AssertionError;
use sk_store::trace::{Format, Trace};

use crate::cli::{Global, RunArgs};
use crate::cluster;
use crate::failure::Outcome;
use crate::progress::Lines;
use crate::scenarios;

use baseline::Baseline;
use results::Results;

pub(crate) fn run(args: &RunArgs, global: &Global) -> Result<Outcome> {
    refuse_the_old_form(args)?;
    if args.cluster {
        return cluster::replay(args, global);
    }
    refuse_what_needs_a_cluster(args)?;
    let speed = simulate::speed(args)?;
    check_junit(args)?;
    let resolved = scenarios::resolve(args).map_err(|error| hint_for_the_old_form(args, error))?;
    let baseline = args.baseline.as_deref().map(Baseline::of_run).transpose()?;
    let planned = planned::plan(args, &resolved, baseline.is_some(), global)?;
    let jobs = simulate::jobs(args, planned.runs.len())?;
    if args.dry_run {
        return dry_run::run(args, &planned, global);
    }
    if args.open && planned.runs.len() > 1 {
        bail!("--open is for one run, and this makes {}; `skctl report RUN -o html` shows each", planned.runs.len());
    }
    let lines = Lines::new(planned.runs.len(), global.quiet)?;
    let mut results = Results::new(&planned, baseline);
    simulate::all(&planned, jobs, speed, &lines, |ended| results.take(ended))?;
    drop(lines);
    results.conclude(args, &resolved.trace)
}

/// Refuses flags that only apply to --cluster, by name; none is ignored silently.
fn refuse_what_needs_a_cluster(args: &RunArgs) -> Result<()> {
    let typed = [
        ("--driver-image", args.driver_image.is_some(), "the embedded engine has no driver"),
        ("--driver-port", args.driver_port.is_some(), "the embedded engine has no driver"),
        ("--driver-secret", !args.driver_secrets.is_empty(), "the trace is read with the environment's credentials"),
        ("--record-path", args.record_path.is_some(), "use -O for the folder of the run"),
        ("--ttl", args.ttl.is_some(), "the run is a local folder; delete it yourself"),
        ("--start-paused", args.start_paused, "an embedded run cannot be paused"),
        (
            "--reschedule-interrupted-bare-pods",
            args.reschedule_interrupted_bare_pods,
            "nothing interrupts bare pods on the embedded engine",
        ),
    ];
    if let Some((flag, _, why)) = typed.iter().find(|(_, is_typed, _)| *is_typed) {
        bail!("{flag} is for --cluster: {why}");
    }
    if let Some(flag) = args.old.needs_a_cluster() {
        bail!("{flag} is for --cluster: the embedded engine has no driver, no hooks and no Prometheus");
    }
    Ok(())
}

/// Reports a missing folder now, and not after an hour of simulation.
fn check_junit(args: &RunArgs) -> Result<()> {
    let Some(path) = &args.junit else { return Ok(()) };
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => {
            bail!("--junit {}: there is no folder {}; make it first", path.display(), folder.display())
        }
        _ => Ok(()),
    }
}

/// Somebody who knows SimKube 2 types `run NAME -f TRACE`: then the scenario is a trace.
pub(crate) fn hint_for_the_old_form(args: &RunArgs, error: anyhow::Error) -> anyhow::Error {
    let (Some(name), Some(file)) = (&args.request.trace, &args.request.scenario) else { return error };
    // Manifests open as a trace too, but nobody ran a Node in SimKube 2; and an example or a URL is not a name of a run.
    let is_recording = sk_store::trace::open(file).is_ok_and(|trace| trace.format() != Format::Manifests);
    if !is_recording || Path::new(name).exists() || name.contains(':') {
        return error;
    }
    todays_form(name, &file.display().to_string())
}

/// `run NAME --trace-path TRACE` can only be SimKube 2's.
fn refuse_the_old_form(args: &RunArgs) -> Result<()> {
    match &args.old.trace_path {
        Some(trace) => Err(todays_form(args.request.trace.as_deref().unwrap_or("NAME"), trace)),
        None => Ok(()),
    }
}

fn todays_form(name: &str, trace: &str) -> anyhow::Error {
    anyhow!(
        "{name} is not a trace; in SimKube 2 the first word was the simulation's name. \
         You want: skctl run {trace} --name {name} --cluster"
    )
}

/// An assertion that is wrong is named with the place where it stands, if it stands in the file.
pub(crate) fn in_file(scenario: &Scenario, typed: usize, error: anyhow::Error) -> anyhow::Error {
    let Some(wrong) = error.downcast_ref::<AssertionError>() else { return error };
    match place_of(scenario, typed, &wrong.text) {
        Some(place) => error.context(place),
        None => error,
    }
}

/// Where an assertion stands in the file; `typed` of them were not written there.
fn place_of(scenario: &Scenario, typed: usize, text: &str) -> Option<String> {
    let written = scenario.assertions.len().saturating_sub(typed);
    let index = scenario.assertions[..written].iter().position(|assertion| assertion.that == text)?;
    scenario.place(&ScenarioPath::of(["assert"]).index(index)).map(|place| place.to_string())
}

/// Assertions as those who judge take them.
pub(crate) fn for_report(assertions: &[Assertion]) -> Vec<sk_report::Assertion> {
    let assertion =
        |assertion: &Assertion| sk_report::Assertion { name: assertion.name.clone(), text: assertion.that.clone() };
    assertions.iter().map(assertion).collect()
}

pub(crate) fn span(trace: &Trace) -> (SimTime, SimTime) {
    trace.span().unwrap_or((SimTime::EPOCH, SimTime::EPOCH))
}

/// Is there a terminal and a display?
pub(crate) fn can_open() -> bool {
    let has_display = cfg!(target_os = "macos")
        || cfg!(windows)
        || ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    std::io::stdout().is_terminal() && has_display
}

//! `skctl run TRACE`: replays a trace, evaluates the assertions, prints the summary and writes the run folder. On the
//! embedded engine, or with `--cluster` on a real cluster.

mod cluster;
pub(crate) mod conclude;
mod request;
mod simkube2;

use std::io::IsTerminal;
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use sk_api::scenario::{Path as ScenarioPath, Scenario};
use sk_core::duration::TimeSpec;
use sk_core::{SimDuration, SimTime};
use sk_record::{Warning, WarningKind};
use sk_replay::embedded::{self, RunRequest};
use sk_replay::setup::Setup;
use sk_report::AssertionError;
use sk_store::trace::{Format, Trace};

use crate::cli::{Global, RunArgs};
use crate::confined::assertions::{self, Checked};
use crate::failure::Outcome;
use crate::progress::Progress;
use crate::scenarios::{self, Resolved};
use crate::times::{self, Asked, Clock};
use crate::{runs, traces};

use conclude::Judge;

pub(crate) fn run(args: &RunArgs, global: &Global) -> Result<Outcome> {
    refuse_the_old_form(args)?;
    if args.cluster {
        return cluster::run(args, global);
    }
    refuse_what_needs_a_cluster(args)?;
    let resolved = scenarios::resolve(args).map_err(|error| hint_for_the_old_form(args, error))?;
    let checked = check(&resolved, args)?;
    let Resolved { trace: typed, mut scenario, scheduler, mut assumptions, .. } = resolved;
    let trace = traces::open(&typed, global)?;
    let setup = Setup::new(&scenario).with_scheduler(scheduler);
    let asked = Asked::of_run(&args.part, &scenario.trace)?;
    let (window, length_is_assumed) = times::window(&asked, span(&trace), &Clock::of(global))?;
    if asked.is_anything() {
        // Written out as moments, so that the run's own scenario asks the same again.
        scenario.trace.start = Some(TimeSpec::At(window.start));
        scenario.trace.end = Some(TimeSpec::At(window.end));
        scenario.trace.duration = None;
    }
    if length_is_assumed {
        assumptions.push(assumed_length());
    }
    let name = args.name.clone().or_else(|| scenario.name.as_ref().map(ToString::to_string));
    let name = runs::folder_name(&name.unwrap_or_else(|| traces::default_name(&typed)));
    let text = scenario.to_yaml();
    let terms = conclude::terms(&scenario, args);
    let request = RunRequest {
        trace: &trace,
        window,
        setup: &setup,
        scenario: &text,
        name: &name,
        version: env!("CARGO_PKG_VERSION"),
        assumptions,
    };
    let run_id = request.run_id()?;
    let dir = args.out.clone().unwrap_or_else(|| runs::default_dir(&run_id));

    let length = window.end.since(window.start);
    let progress = Progress::of_length(micros(length), global.quiet)?;
    let staged = embedded::run(&request, &dir, &mut |at| {
        let done = at.since(window.start);
        progress.at(micros(done), || format!("{done} simulated"))
    })?;
    let wall_s = progress.finish().as_secs_f64();
    conclude::conclude(args, &typed, staged, Judge { checked: &checked, terms: &terms }, &text, wall_s)
}

/// What only means something in wall time is refused by name, never passed over in silence.
fn refuse_what_needs_a_cluster(args: &RunArgs) -> Result<()> {
    let typed = [
        ("--speed", args.speed.is_some(), "the embedded engine runs in virtual time"),
        ("--repetitions", args.repetitions.is_some(), "the same seed gives the same run; try other seeds with --seed"),
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

/// The assertions, found to be well-formed before anything runs.
fn check(resolved: &Resolved, args: &RunArgs) -> Result<Checked> {
    let scenario = &resolved.scenario;
    let checked = assertions::check(for_report(scenario), &Setup::new(scenario).groups());
    checked.map_err(|error| in_file(scenario, args.assert.len(), error))
}

/// Somebody who knows SimKube 2 types `run NAME -f TRACE`: then the scenario is a trace.
fn hint_for_the_old_form(args: &RunArgs, error: anyhow::Error) -> anyhow::Error {
    let (Some(name), Some(file)) = (&args.trace, &args.scenario) else { return error };
    // Manifests open as a trace too, but nobody ran a Node in SimKube 2; and an example or a URL is no name of a run.
    let is_recording = sk_store::trace::open(file).is_ok_and(|trace| trace.format() != Format::Manifests);
    if !is_recording || Path::new(name).exists() || name.contains(':') {
        return error;
    }
    todays_form(name, &file.display().to_string())
}

/// `run NAME --trace-path TRACE` can only be SimKube 2's.
fn refuse_the_old_form(args: &RunArgs) -> Result<()> {
    match &args.old.trace_path {
        Some(trace) => Err(todays_form(args.trace.as_deref().unwrap_or("NAME"), trace)),
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
fn in_file(scenario: &Scenario, typed: usize, error: anyhow::Error) -> anyhow::Error {
    let Some(wrong) = error.downcast_ref::<AssertionError>() else { return error };
    let written = scenario.assertions.len().saturating_sub(typed);
    let index = scenario.assertions[..written].iter().position(|assertion| assertion.that == wrong.text);
    let place = index.and_then(|index| scenario.place(&ScenarioPath::of(["assert"]).index(index)));
    match place {
        Some(place) => error.context(place.to_string()),
        None => error,
    }
}

/// A scenario's assertions as those who judge take them.
pub(crate) fn for_report(scenario: &Scenario) -> Vec<sk_report::Assertion> {
    let assertion = |assertion: &sk_api::scenario::Assertion| sk_report::Assertion {
        name: assertion.name.clone(),
        text: assertion.that.clone(),
    };
    scenario.assertions.iter().map(assertion).collect()
}

fn span(trace: &Trace) -> (SimTime, SimTime) {
    trace.span().unwrap_or((SimTime::EPOCH, SimTime::EPOCH))
}

fn micros(span: SimDuration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(0)
}

fn assumed_length() -> Warning {
    Warning {
        code: "assumed-duration".to_owned(),
        kind: WarningKind::Assumed,
        message: format!("assumed duration: {}; set yours with -D", times::ASSUMED_DURATION),
        count: 1,
    }
}

/// Is there somebody to look, and something to look with?
pub(crate) fn can_open() -> bool {
    let has_display = cfg!(target_os = "macos")
        || cfg!(windows)
        || ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    std::io::stdout().is_terminal() && has_display
}

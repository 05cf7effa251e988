//! `skctl run TRACE`: simulate, judge, print, leave a run folder.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use sk_api::scenario::{Path as ScenarioPath, Scenario};
use sk_core::duration::TimeSpec;
use sk_core::{SimDuration, SimTime};
use sk_driver::embedded::{self, Question};
use sk_driver::setup::Setup;
use sk_record::{Staged, Warning, WarningKind};
use sk_report::terminal::Occasion;
use sk_report::{Analysis, AssertionError, Checked, Verdict};
use sk_store::trace::Trace;

use crate::cli::{Global, RunArgs};
use crate::failure::Outcome;
use crate::progress::Progress;
use crate::scenarios::{self, Resolved};
use crate::times::{self, Asked, Clock};
use crate::{runs, traces};

pub(crate) fn run(args: &RunArgs, global: &Global) -> Result<Outcome> {
    let resolved = scenarios::resolve(args).map_err(|error| hint_for_the_old_form(args, error))?;
    let Resolved { file, trace: typed, mut scenario, mut assumptions } = resolved;
    let trace = traces::open(&typed, global)?;
    let setup = Setup::new(&scenario);
    let assertions: Vec<_> = scenario.assertions.iter().map(for_report).collect();
    let checked = sk_report::check(&assertions, &setup.groups())
        .map_err(|error| in_file(&file, &scenario, args.assert.len(), error))?;
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
    let question = Question {
        trace: &trace,
        window,
        setup: &setup,
        scenario: &text,
        name: &name,
        version: env!("CARGO_PKG_VERSION"),
        assumptions,
    };
    let run_id = question.run_id()?;
    let dir = args.out.clone().unwrap_or_else(|| runs::default_dir(&run_id));

    let length = window.end.since(window.start);
    let progress = Progress::of_length(micros(length), global.quiet)?;
    let staged = embedded::run(&question, &dir, &mut |at| {
        let done = at.since(window.start);
        progress.at(micros(done), || format!("{done} simulated"))
    })?;
    let wall_s = progress.finish().as_secs_f64();
    conclude(args, &typed, staged, &checked, &text, wall_s)
}

/// Judges the staged run, publishes it and prints the summary. A run that cannot be judged is published all the same.
fn conclude(
    args: &RunArgs,
    trace: &str,
    mut staged: Staged,
    checked: &Checked,
    scenario: &str,
    wall_s: f64,
) -> Result<Outcome> {
    let analysis = Analysis::of(&staged.run()?)?;
    let judged = checked.judge(&analysis.summary);
    let verdicts = judged.as_deref().unwrap_or_default();
    let page = sk_report::html::render(&analysis, verdicts, Some(scenario))?;
    staged.add_file("summary.json", sk_report::json::render(&analysis, verdicts)?.as_bytes())?;
    staged.add_file("report.html", page.as_bytes())?;
    staged.add_file("junit.xml", sk_report::junit::render(&analysis, verdicts).as_bytes())?;
    let dir = staged.publish()?;

    let report = dir.join("report.html");
    let tries = tries(args, trace);
    let occasion = Occasion { wall_s: Some(wall_s), report: Some(&report.display().to_string()), tries: &tries };
    write!(anstream::stdout(), "{}", sk_report::terminal::render(&analysis, verdicts, &occasion))?;
    if args.open {
        open_report(&report);
    }
    let verdicts = judged?;
    Ok(outcome(args, &analysis, &verdicts))
}

fn outcome(args: &RunArgs, analysis: &Analysis, verdicts: &[Verdict]) -> Outcome {
    let doubts = analysis.meta.warnings.iter().filter(|warning| warning.kind != WarningKind::Note).count();
    if analysis.meta.partial {
        Outcome::Interrupted
    } else if verdicts.iter().any(|verdict| !verdict.passed) {
        Outcome::Bad
    } else if args.strict && doubts > 0 {
        anstream::eprintln!("--strict: {doubts} warnings limit how far this run can be trusted; see TRUST above");
        Outcome::Bad
    } else {
        Outcome::Good
    }
}

/// Commands worth trying next.
fn tries(args: &RunArgs, trace: &str) -> Vec<String> {
    let scenario = args.scenario.as_ref().map(|path| format!(" -f {}", path.display())).unwrap_or_default();
    vec![
        "skctl report @ -o markdown".to_owned(),
        format!("skctl run {trace}{scenario} --set autoscaler.scale-down-unneeded-time=2m"),
    ]
}

/// Somebody who knows SimKube 2 types `run NAME -f TRACE`: then the scenario is a trace.
fn hint_for_the_old_form(args: &RunArgs, error: anyhow::Error) -> anyhow::Error {
    let (Some(name), Some(file)) = (&args.trace, &args.scenario) else { return error };
    if sk_store::trace::open(file).is_err() || Path::new(name).exists() {
        return error;
    }
    let file = file.display();
    anyhow!(
        "{name} is no trace; in SimKube 2 the first word was the simulation's name. \
         You want: skctl run {file} --name {name}"
    )
}

/// An assertion that is wrong is named with the place where it stands, if it stands in the file.
fn in_file(file: &str, scenario: &Scenario, typed: usize, error: AssertionError) -> anyhow::Error {
    let written = scenario.assertions.len().saturating_sub(typed);
    let index = scenario.assertions[..written].iter().position(|assertion| assertion.that == error.text);
    let place = index.and_then(|index| scenario.place(&ScenarioPath::of(["assert"]).index(index)));
    match place {
        Some(place) => anyhow::Error::new(error).context(format!("{file}:{place}")),
        None => error.into(),
    }
}

fn for_report(assertion: &sk_api::scenario::Assertion) -> sk_report::Assertion {
    sk_report::Assertion { name: assertion.name.clone(), text: assertion.that.clone() }
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
        message: format!("assumed duration: {}; say yours with -D", times::ASSUMED_DURATION),
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

fn open_report(report: &PathBuf) {
    if let Err(error) = open::that_detached(report).with_context(|| format!("could not open {}", report.display())) {
        anstream::eprintln!("{error:#}; open it by hand");
    }
}

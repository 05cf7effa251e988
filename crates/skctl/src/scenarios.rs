//! Resolves scenarios from `-f`, `--set`, `--vary`, `--assert` and `--seed`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sk_api::scenario::{
    Assertion, Assignment, Family, Holds, Member, Path as ScenarioPath, Scenario, Scheduler, Variation,
};
use sk_record::{Warning, WarningKind};
use sk_replay::scheduler::{self, Configuration};
use sk_replay::setup::beside_defaults;
use sk_report::compare::differs::{Difference, of_scenarios};

use crate::cli::RunArgs;
use crate::{examples, text_file};

pub(crate) use sk_replay::setup::ASSUMED;

/// A scenario, what is made of it, and what had to be assumed for it.
pub(crate) struct Resolved {
    /// What messages call the scenario's file.
    pub(crate) file: String,
    /// The folder of the scenario's file: what the scenario names by relative paths lies there.
    pub(crate) folder: PathBuf,
    /// The trace to replay, as typed or as the scenario says.
    pub(crate) trace: String,
    /// The scenario as it stands in the file, with what was typed.
    pub(crate) scenario: Scenario,
    /// One scenario for each variant and each combination of varied values; at least one.
    pub(crate) members: Vec<Member>,
    pub(crate) assumptions: Vec<Warning>,
}

/// The scenarios that the arguments ask for.
pub(crate) fn resolve(args: &RunArgs) -> Result<Resolved> {
    let (mut assumptions, file, text) = text(args)?;
    let old = args.old.sets();
    let sets =
        args.request.set.iter().chain(&old).map(|text| text.parse::<Assignment>()).collect::<Result<Vec<_>, _>>()?;
    let varied = args.request.vary.iter().map(|text| text.parse::<Variation>()).collect::<Result<Vec<_>, _>>()?;
    let Family { base: mut scenario, mut members } = Scenario::family(&file, &text, &sets, &varied)?;
    for each in members.iter_mut().map(|member| &mut member.scenario).chain([&mut scenario]) {
        let scheduler = take_scheduler(args.request.scenario.as_deref(), each)?;
        take_later_schedulers(args.request.scenario.as_deref(), each)?;
        for warning in scheduler::warnings(&scheduler).into_iter().chain(ignored_flags(each)) {
            if !assumptions.contains(&warning) {
                assumptions.push(warning);
            }
        }
        add_what_was_typed(each, args);
    }
    let trace = args.request.trace.clone().or_else(|| scenario.trace.from.clone());
    let trace =
        trace.context("no trace given: name one (`skctl run TRACE`), or write `trace: {from: …}` into the scenario")?;
    let folder = args.request.scenario.as_deref().and_then(Path::parent).unwrap_or(Path::new("")).to_owned();
    Ok(Resolved { file, folder, trace, scenario, members, assumptions })
}

/// Reads the scheduler's configuration. A file that the scenario names is looked for beside the scenario, one that `--set`
/// names where the command was typed; its content takes the place of its name, so that the run's own scenario says all.
fn take_scheduler(scenario_file: Option<&Path>, scenario: &mut Scenario) -> Result<Configuration> {
    let Some(Scheduler::File(file)) = &scenario.scheduler else { return Ok(scheduler::of(scenario)?) };
    let is_typed = scenario.place(&ScenarioPath::of(["scheduler"])).is_some_and(|place| place.line().is_none());
    let beside = scenario_file.and_then(Path::parent).filter(|_| !is_typed);
    let path = beside.map_or_else(|| PathBuf::from(file), |folder| folder.join(file));
    let text = text_file::read("scheduler configuration", &path)?;
    let (written, configuration) = scheduler::from_text(&path.display().to_string(), &text)?;
    scenario.scheduler = Some(Scheduler::Inline(written));
    Ok(configuration)
}

/// Configurations that the timeline changes to stand in files beside the scenario, too; the run's own scenario holds them.
fn take_later_schedulers(scenario_file: Option<&Path>, scenario: &mut Scenario) -> Result<()> {
    let folder = scenario_file.and_then(Path::parent).unwrap_or(Path::new(""));
    for value in scenario.timeline.iter_mut().filter_map(|happening| happening.set.get_mut("scheduler")) {
        let Some(file) = value.as_str() else { continue };
        let path = folder.join(file);
        let text = text_file::read("scheduler configuration", &path)?;
        let (written, _) = scheduler::from_text(&path.display().to_string(), &text)?;
        *value = written.into();
    }
    Ok(())
}

/// The scenario's text, what messages call it, and what is assumed by it.
fn text(args: &RunArgs) -> Result<(Vec<Warning>, String, String)> {
    let example = args.request.trace.as_deref().and_then(|trace| trace.strip_prefix(examples::PREFIX));
    Ok(match (&args.request.scenario, example) {
        (Some(path), _) => (Vec::new(), path.display().to_string(), text_file::read("scenario", path)?),
        (None, Some(example)) => {
            let text = examples::find(example)?.scenario.into();
            (Vec::new(), format!("{}{example}.yaml", examples::PREFIX), text)
        }
        (None, None) => (vec![assumed_nodes()], "the assumed scenario".to_owned(), ASSUMED.to_owned()),
    })
}

/// In which fields a resolved scenario differs from one that says nothing.
pub(crate) fn differences(text: &str) -> Result<Vec<Difference>> {
    let (defaults, own) = beside_defaults(&Scenario::parse("scenario.yaml", text)?)?;
    Ok(of_scenarios(&defaults, &own))
}

fn add_what_was_typed(scenario: &mut Scenario, args: &RunArgs) {
    let typed = args.request.assert.iter();
    scenario.assertions.extend(typed.map(|text| Assertion { name: None, that: text.clone(), holds: Holds::default() }));
    if let Some(seed) = args.request.seed {
        scenario.seed = seed;
    }
    if let Some(repetitions) = args.request.repetitions {
        scenario.repetitions = repetitions;
    }
}

/// Flags of the autoscaler that were given and change nothing here, so that nobody believes they were simulated.
fn ignored_flags(scenario: &Scenario) -> Option<Warning> {
    let flags = &scenario.autoscaler.ignored;
    let message = format!("autoscaler: {} cannot matter in a simulation and had no effect", flags.join(", "));
    let (code, count) = ("autoscaler-flag".to_owned(), flags.len() as u64);
    (!flags.is_empty()).then_some(Warning { code, kind: WarningKind::Note, message, count })
}

/// The warning about nodes that nobody named.
pub(crate) const ASSUMED_NODES: &str = "assumed-nodes";

fn assumed_nodes() -> Warning {
    Warning {
        code: ASSUMED_NODES.to_owned(),
        kind: WarningKind::Assumed,
        message: "assumed nodes: 4 CPU, 16Gi, 1 to 100 of them; name yours with -f SCENARIO".to_owned(),
        count: 1,
    }
}

//! Resolves a scenario from `-f`, `--set`, `--assert` and `--seed`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use sk_api::scenario::{Assertion, Assignment, Holds, Path as ScenarioPath, Scenario, Scheduler};
use sk_record::{Warning, WarningKind};
use sk_replay::scheduler::{self, Configuration};

use crate::cli::RunArgs;
use crate::{examples, text_file};

pub(crate) use sk_replay::setup::ASSUMED;

/// A scenario and what had to be assumed for it.
pub(crate) struct Resolved {
    /// What messages call the scenario's file.
    pub(crate) file: String,
    /// The trace to replay, as typed or as the scenario says.
    pub(crate) trace: String,
    pub(crate) scenario: Scenario,
    /// The scheduler that the scenario asks for.
    pub(crate) scheduler: Configuration,
    pub(crate) assumptions: Vec<Warning>,
}

/// The scenario that the arguments ask for.
pub(crate) fn resolve(args: &RunArgs) -> Result<Resolved> {
    let mut assumptions = Vec::new();
    let example = args.trace.as_deref().and_then(|trace| trace.strip_prefix(examples::PREFIX));
    let (name, text) = match (&args.scenario, example) {
        (Some(path), _) => (path.display().to_string(), text_file::read("scenario", path)?),
        (None, Some(example)) => {
            (format!("{}{example}.yaml", examples::PREFIX), examples::find(example)?.scenario.into())
        }
        (None, None) => {
            assumptions.push(assumed_nodes());
            ("the assumed scenario".to_owned(), ASSUMED.to_owned())
        }
    };
    let old = args.old.sets();
    let sets = args.set.iter().chain(&old).map(|text| text.parse::<Assignment>()).collect::<Result<Vec<_>, _>>()?;
    let mut scenario = Scenario::parse_with(&name, &text, &sets)?;
    refuse_unsupported(&name, &scenario)?;
    let scheduler = take_scheduler(args.scenario.as_deref(), &mut scenario)?;
    assumptions.extend(scheduler::warnings(&scheduler));
    scenario.assertions.extend(args.assert.iter().map(|text| Assertion {
        name: None,
        that: text.clone(),
        holds: Holds::default(),
    }));
    if let Some(seed) = args.seed {
        scenario.seed = seed;
    }
    let trace = args.trace.clone().or_else(|| scenario.trace.from.clone());
    let trace =
        trace.context("which trace? name one (`skctl run TRACE`), or write `trace: {from: …}` into the scenario")?;
    Ok(Resolved { file: name, trace, scenario, scheduler, assumptions })
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

/// Never ignored in silence: what this version cannot do is refused by name.
fn refuse_unsupported(name: &str, scenario: &Scenario) -> Result<()> {
    let unsupported: Vec<String> = scenario.unsupported().iter().map(|part| format!("  {part}")).collect();
    if !unsupported.is_empty() {
        bail!(
            "{name} asks for what this version cannot do yet:\n{}\nTake it out to run without it.",
            unsupported.join("\n")
        );
    }
    Ok(())
}

fn assumed_nodes() -> Warning {
    Warning {
        code: "assumed-nodes".to_owned(),
        kind: WarningKind::Assumed,
        message: "assumed nodes: 4 CPU, 16Gi, 1 to 100 of them; name yours with -f SCENARIO".to_owned(),
        count: 1,
    }
}

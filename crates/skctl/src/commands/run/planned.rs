//! Plans the runs of a command: one for each variant, each combination of varied values and each repetition.
//!
//! Everything is checked before anything is simulated, so a mistake in the eighth variant is found at once. The first variant
//! comes first: the others are compared with it, repetition by repetition, and a repetition has the same seed in all
//! variants.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use sk_api::scenario::{Assertion, Holds, Member, Nodes, Scenario};
use sk_api::simulation::names::MAX_REPETITIONS;
use sk_core::duration::TimeSpec;
use sk_record::{Warning, WarningKind};
use sk_replay::embedded::RunRequest;
use sk_replay::fit::fit;
use sk_replay::plan::Window;
use sk_replay::setup::Setup;
use sk_replay::timeline::Timeline;
use sk_report::{Scope, Terms};

use super::conclude;
use super::inputs::{InputCache, InputKey, Inputs, name_files};
use super::{for_report, in_file, named, place_of, span};
use crate::cli::{Global, RunArgs};
use crate::confined::assertions::{self, Checked};
use crate::scenarios::{ASSUMED_NODES, Resolved};
use crate::times::{self, Asked, Clock};
use crate::{runs, traces};

/// The most runs of one command: a figure of each is kept to the end, of a few hundred KB with a thousand owners.
const MAX_RUNS: usize = 10_000;

/// Everything that a command runs.
pub(super) struct Planned {
    pub(super) runs: Vec<PlannedRun>,
    pub(super) variants: Vec<PlannedVariant>,
    pub(super) inputs: InputCache,
}

/// What the repetitions of one variant share.
pub(super) struct PlannedVariant {
    /// What tells it from the others; empty if it is the only one.
    pub(super) label: String,
    /// What every run must hold.
    pub(super) checked: Checked,
    /// What must hold in any of its runs, and for the mean of all of them.
    pub(super) any: Checked,
    pub(super) mean: Checked,
    pub(super) terms: Terms,
}

/// One run.
pub(super) struct PlannedRun {
    pub(super) variant: usize,
    pub(super) repetition: u32,
    /// What tells it from the others; empty if it is the only one.
    pub(super) label: String,
    pub(super) inputs: usize,
    pub(super) window: Window,
    pub(super) setup: Setup,
    /// The resolved scenario.
    pub(super) text: String,
    pub(super) name: String,
    pub(super) run_id: String,
    pub(super) dir: PathBuf,
    pub(super) assumptions: Vec<Warning>,
}

impl PlannedRun {
    /// What the engine is asked.
    pub(super) fn request<'a>(&'a self, inputs: &'a Inputs) -> RunRequest<'a> {
        RunRequest {
            trace: &inputs.trace,
            window: self.window,
            setup: &self.setup,
            scenario: &self.text,
            name: &self.name,
            version: env!("CARGO_PKG_VERSION"),
            assumptions: self.assumptions.clone(),
            overlay: &inputs.overlay,
            nodes: &inputs.nodes,
            longest_step: sk_replay::embedded::LONGEST_STEP,
        }
    }
}

/// Finds out what is to be run. `has_baseline`: there is a run to compare with beside those of the command.
pub(super) fn plan(args: &RunArgs, resolved: &Resolved, has_baseline: bool, global: &Global) -> Result<Planned> {
    let repetitions = resolved.scenario.repetitions;
    if !(1..=MAX_REPETITIONS).contains(&repetitions) {
        bail!("--repetitions {repetitions}: must be from 1 to {MAX_REPETITIONS}");
    }
    let total = resolved.members.len().saturating_mul(repetitions as usize);
    if total > MAX_RUNS {
        bail!(
            "{} variants of {repetitions} repetitions are {total} runs, more than {MAX_RUNS}",
            resolved.members.len()
        );
    }
    let mut planned = Planned { runs: Vec::new(), variants: Vec::new(), inputs: InputCache::default() };
    let compared = has_baseline || resolved.members.len() > 1;
    for member in &resolved.members {
        let key = InputKey::new(args, resolved, &member.scenario)?;
        let typed = key.trace.clone();
        let inputs = planned.inputs.find_or_read(key, global)?;
        let mut scenario = member.scenario.clone();
        fit(&mut scenario, &planned.inputs.get(inputs).trace).with_context(|| resolved.file.clone())?;
        let place = |text: &str| place_of(&resolved.scenario, args.request.assert.len(), text);
        let place = |text: &str| place(text).map(|place| format!("{place}: ")).unwrap_or_default();
        let assertions = scenario.assertions.iter().map(|assertion| assertion.that.as_str());
        named::refuse_unknown(assertions, planned.inputs.get(inputs), place)?;
        let scope = Scope { compared, recorded: planned.inputs.get(inputs).is_recorded()?, mean: false };
        planned.variants.push(variant(args, resolved, &member.label, &scenario, scope)?);
        let run = Variant { args, resolved, member, inputs, typed: &typed, global };
        let window = run.window(&mut scenario, planned.inputs.get(inputs))?;
        for repetition in 0..repetitions {
            let number = planned.variants.len() - 1;
            planned.runs.push(run.run(number, repetition, &scenario, window, &planned.inputs)?);
        }
    }
    give_folders(args, &mut planned.runs);
    Ok(planned)
}

/// Checks the assertions of a variant.
fn variant(
    args: &RunArgs,
    resolved: &Resolved,
    label: &str,
    scenario: &Scenario,
    scope: Scope,
) -> Result<PlannedVariant> {
    let is_repeated = scenario.repetitions > 1;
    let check = |holds: fn(&Holds) -> bool, mean: bool| {
        let some = those(&scenario.assertions, holds, is_repeated);
        let groups = Setup::new(scenario).groups();
        let checked = assertions::check(for_report(&some), &groups, Scope { mean, ..scope });
        checked.map_err(|error| in_file(&resolved.scenario, args.request.assert.len(), error))
    };
    Ok(PlannedVariant {
        label: label.to_owned(),
        checked: check(|holds| matches!(holds, Holds::Every | Holds::Variants(_)), false)?,
        any: check(|holds| *holds == Holds::Any, false)?,
        mean: check(|holds| *holds == Holds::Mean, true)?,
        terms: conclude::terms(scenario, args),
    })
}

/// The assertions that are judged so. Of one run, any and the mean are that run.
fn those(assertions: &[Assertion], holds: fn(&Holds) -> bool, is_repeated: bool) -> Vec<Assertion> {
    let how = |assertion: &Assertion| if is_repeated { assertion.holds.clone() } else { Holds::Every };
    assertions.iter().filter(|assertion| holds(&how(assertion))).cloned().collect()
}

/// What is known of a variant while its runs are planned.
struct Variant<'a> {
    args: &'a RunArgs,
    resolved: &'a Resolved,
    member: &'a Member,
    inputs: usize,
    typed: &'a str,
    global: &'a Global,
}

impl Variant<'_> {
    /// Which part of the trace, and whether its length was assumed; written out as moments, so that the run's own scenario
    /// asks the same again.
    fn window(&self, scenario: &mut Scenario, inputs: &Inputs) -> Result<(Window, bool)> {
        let asked = Asked::of_run(&self.args.request.part, &scenario.trace)?;
        let (window, is_assumed) = times::window(&asked, span(&inputs.trace), &Clock::of(self.global))?;
        let (warmup, length) = (scenario.begin.warmup, window.end.since(window.start));
        if warmup >= length {
            bail!("begin.warmup: {warmup} of {length} would leave nothing to measure; make it shorter");
        }
        if asked.is_anything() {
            scenario.trace.start = Some(TimeSpec::At(window.start));
            scenario.trace.end = Some(TimeSpec::At(window.end));
            scenario.trace.duration = None;
        }
        name_files(scenario, inputs);
        self.settle_moments(scenario, inputs)?;
        Ok((window, is_assumed))
    }

    /// Moments of the timeline are written out as well: `-2h` is another one tomorrow.
    fn settle_moments(&self, scenario: &mut Scenario, inputs: &Inputs) -> Result<()> {
        let (clock, (first, _)) = (Clock::of(self.global), span(&inputs.trace));
        for happening in &mut scenario.timeline {
            let moment = happening.at.map(|at| at.resolve(clock.now, first, &clock.zone)).transpose();
            happening.at = moment.context("timeline")?.map(TimeSpec::At);
        }
        Ok(())
    }

    fn run(
        &self,
        variant: usize,
        repetition: u32,
        scenario: &Scenario,
        (window, length_is_assumed): (Window, bool),
        inputs: &InputCache,
    ) -> Result<PlannedRun> {
        let is_repeated = scenario.repetitions > 1;
        let mut scenario = scenario.clone();
        scenario.seed = scenario.seed.wrapping_add(repetition.into());
        scenario.repetitions = 1;
        scenario.assertions =
            those(&scenario.assertions, |holds| matches!(holds, Holds::Every | Holds::Variants(_)), is_repeated);
        let name = self.name(&scenario);
        if !self.member.label.is_empty() && is_scenario_name(&name) {
            // The run's own scenario has no variants, and is called as this one is.
            scenario.name = Some(name.as_str().into());
        }
        let mut assumptions = self.resolved.assumptions.clone();
        assumptions.extend(length_is_assumed.then(assumed_length));
        // Nodes of a recording or of a file are not the assumed ones.
        assumptions.retain(|assumed| assumed.code != ASSUMED_NODES || scenario.cluster.nodes == Nodes::Groups);
        let mut run = PlannedRun {
            variant,
            repetition,
            label: label(&self.member.label, is_repeated.then_some(repetition)),
            inputs: self.inputs,
            window,
            setup: self.setup(&scenario, window, inputs)?,
            text: scenario.to_yaml(),
            name,
            run_id: String::new(),
            dir: PathBuf::new(),
            assumptions,
        };
        run.run_id = run.request(inputs.get(self.inputs)).run_id()?;
        Ok(run)
    }

    fn setup(&self, scenario: &Scenario, window: Window, inputs: &InputCache) -> Result<Setup> {
        let (first, _) = span(&inputs.get(self.inputs).trace);
        let timeline = Timeline::of(scenario, window, first).with_context(|| self.resolved.file.clone())?;
        Ok(Setup::new(scenario).with_scheduler(sk_replay::scheduler::of(scenario)?).with_timeline(timeline))
    }

    /// `pack`, or `pack-packed-max-36` where there are several.
    fn name(&self, scenario: &Scenario) -> String {
        let name = self.args.request.name.clone().or_else(|| scenario.name.as_ref().map(ToString::to_string));
        let name = name.unwrap_or_else(|| traces::default_name(self.typed));
        let of_variant = if self.member.label.is_empty() { String::new() } else { format!("-{}", self.member.label) };
        runs::folder_name(&format!("{name}{of_variant}"))
    }
}

/// What a scenario takes for a name: a DNS label.
fn is_scenario_name(name: &str) -> bool {
    let is_plain = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '-';
    name.len() <= 63 && name.chars().all(is_plain)
}

/// `packed #2`: people count from 1.
fn label(variant: &str, repetition: Option<u32>) -> String {
    let repetition = repetition.map(|repetition| format!("#{}", repetition + 1));
    [Some(variant.to_owned()), repetition]
        .into_iter()
        .flatten()
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Where each run is to lie; no two in the same place.
fn give_folders(args: &RunArgs, planned: &mut [PlannedRun]) {
    let several = planned.len() > 1;
    let mut taken = BTreeSet::new();
    for run in planned {
        let wanted = match &args.out {
            // `packed #2` lies in packed.2, as repetitions of a Simulation do.
            Some(out) if several => out.join(runs::folder_name(&run.label.replace(" #", "."))),
            Some(out) => out.clone(),
            None => runs::default_dir(&run.run_id),
        };
        run.dir = (1..).map(|number| numbered(&wanted, number)).find(|dir| taken.insert(dir.clone())).unwrap_or(wanted);
    }
}

fn numbered(dir: &Path, number: u32) -> PathBuf {
    let last = dir.file_name().map(|last| last.to_string_lossy().into_owned()).unwrap_or_default();
    if number == 1 { dir.to_owned() } else { dir.with_file_name(format!("{last}.{number}")) }
}

fn assumed_length() -> Warning {
    Warning {
        code: "assumed-duration".to_owned(),
        kind: WarningKind::Assumed,
        message: format!("assumed duration: {}; set yours with -D", times::ASSUMED_DURATION),
        count: 1,
    }
}

//! Makes runs one by one, as a sweep does: on another day, in another process or on another machine.
//!
//! [`list`] plans as `skctl run` does and returns the runs. The resolved scenario of a run contains everything that the run
//! depends on, so [`make`] needs nothing else; the run id shows whether it is still the same run.

use anyhow::{Context, Result, bail};
use sk_record::Warning;

use super::conclude::{self, Concluded, Judge};
use super::{planned, simulate};
use crate::cli::{Global, RunArgs};
use crate::progress::Lines;
use crate::scenarios;

/// A run that can be made on its own.
pub(crate) struct SingleRun {
    /// The variant that it belongs to; empty if there is only one.
    pub(crate) variant: String,
    pub(crate) seed: u64,
    pub(crate) name: String,
    pub(crate) run_id: String,
    /// The resolved scenario.
    pub(crate) scenario: String,
    /// What the scenario names: files that lie beside it, with their content.
    pub(crate) files: Vec<(&'static str, Vec<u8>)>,
}

/// The runs that the arguments ask for, in order: all repetitions of the first variant come first.
pub(crate) fn list(args: &RunArgs, global: &Global) -> Result<Vec<SingleRun>> {
    let resolved = scenarios::resolve(args)?;
    let planned = planned::plan(args, &resolved, false, global)?;
    let variant = |number: usize| planned.variants[number].label.clone();
    let runs = planned.runs.iter().map(|run| SingleRun {
        variant: variant(run.variant),
        seed: run.setup.settings.seed,
        name: run.name.clone(),
        run_id: run.run_id.clone(),
        scenario: run.text.clone(),
        files: planned.inputs.get(run.inputs).files.clone(),
    });
    Ok(runs.collect())
}

/// A planned run of a sweep.
pub(crate) struct Wanted<'a> {
    /// Trace, scenario, seed, name and folder.
    pub(crate) args: &'a RunArgs,
    pub(crate) run_id: &'a str,
    pub(crate) label: &'a str,
    /// What was assumed when the runs were planned, which a resolved scenario does not tell any more.
    pub(crate) assumptions: &'a [Warning],
}

/// The run id that these arguments give today.
pub(crate) fn id(args: &RunArgs, global: &Global) -> Result<String> {
    let planned = planned::plan(args, &scenarios::resolve(args)?, false, global)?;
    planned.runs.first().map(|run| run.run_id.clone()).context("the scenario asks for no run at all")
}

/// Makes one run, judges it and publishes it in its folder; nothing if Ctrl-C came before it was complete.
pub(crate) fn make(wanted: &Wanted<'_>, lines: &Lines, global: &Global) -> Result<Option<Concluded>> {
    let mut resolved = scenarios::resolve(wanted.args)?;
    resolved.assumptions = wanted.assumptions.to_vec();
    let mut planned = planned::plan(wanted.args, &resolved, false, global)?;
    let [run] = planned.runs.as_mut_slice() else { bail!("{} asks for several runs", resolved.file) };
    if run.run_id != wanted.run_id {
        bail!(
            "this is another run than was planned: {} instead of {}; the trace, the scenario or skctl has changed since. \
             Make a new plan",
            run.run_id,
            wanted.run_id
        );
    }
    run.label = wanted.label.to_owned();
    let mut ended = None;
    simulate::all(&planned, 1, None, lines, |run| {
        ended = Some(run);
        Ok(())
    })?;
    let Some(ended) = ended.filter(|_| !lines.is_interrupted()) else { return Ok(None) };
    let (run, variant) = (&planned.runs[ended.number], &planned.variants[0]);
    let judge = Judge { checked: &variant.checked, terms: &variant.terms, baseline: None };
    Ok(Some(conclude::publish(ended.staged?, judge, &run.text)?))
}

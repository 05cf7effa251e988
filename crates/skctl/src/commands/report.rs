//! `skctl report [RUN]`: shows a run in any format; with `--cluster`, fetches the record of a Simulation first.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;
use sk_api::scenario::Scenario;
use sk_api::simulation::names::SCENARIO_ANNOTATION;
use sk_api::simulation::{Simulation, State};
use sk_record::Run;
use sk_report::html::Asked;
use sk_report::terminal::Occasion;
use sk_report::{Analysis, Judgement, Scope, Terms, fidelity};
use sk_store::location::shown;

use super::run::baseline::Baseline;
use super::run::conclude::{self, Judge};
use super::run::for_report;
use crate::cli::{Global, NEWEST, ReportArgs, ReportFormat};
use crate::cluster::simulations::Simulations;
use crate::cluster::{self, Cluster};
use crate::confined::assertions::{self, Checked};
use crate::failure::Outcome;
use crate::runs::{self, Found};
use crate::scenarios::{self, ASSUMED};
use crate::simulation::{name_of, why_it_failed, words};
use crate::{output, records};

pub(crate) fn run(args: &ReportArgs, global: &Global) -> Result<Outcome> {
    let found = if args.cluster { Found::Here(fetched(args, global)?) } else { runs::resolve(&args.run)? };
    let dir = found.dir();
    let run = Run::open(dir)?;
    let mut analysis = Analysis::of(&run)?;
    if let Some(kept) = run.file(fidelity::FILE)? {
        let broken = || format!("the run's {} cannot be read; run it again", fidelity::FILE);
        fidelity::from_json(&mut analysis, &kept).with_context(broken)?;
    }
    let scenario = scenario_text(&run)?;
    let name = dir.join("scenario.yaml").display().to_string();
    let baseline = Baseline::kept(&run)?;
    let (checked, mut terms) = check(&name, &scenario, &analysis, baseline.is_some())?;
    terms.strict = was_strict(&run)?;
    let judge = Judge { checked: &checked, terms: &terms, baseline: baseline.as_ref() };
    let judgement = Judgement::of(&analysis, checked.judge(&judge.figures(&analysis))?, &terms);
    let report = match &found {
        Found::Here(dir) => dir.join("report.html").display().to_string(),
        Found::Fetched(_) => format!("{}/report.html", shown(args.run.trim_end_matches('/'))),
    };
    let text = match args.output {
        ReportFormat::Table => {
            let occasion = Occasion { report: Some(&report), columns: Some(output::columns()), ..Occasion::default() };
            sk_report::terminal::render(&analysis, &judgement, &occasion)
        }
        ReportFormat::Json => sk_report::json::render(&analysis, &judgement)?,
        ReportFormat::Csv => sk_report::csv::render(&analysis),
        ReportFormat::Markdown => sk_report::markdown::render(&analysis, &judgement),
        ReportFormat::Junit => sk_report::junit::render(&analysis, &judgement),
        ReportFormat::Html => {
            let differs = scenarios::differences(&scenario)?;
            sk_report::html::render(&analysis, &judgement, Some(Asked { text: &scenario, differs: &differs }))?
        }
    };
    anstream::stdout().write_all(text.as_bytes())?;
    Ok(judgement.exit().into())
}

/// Was the run judged under `--strict`? Its own summary says so; a report must not be kinder than the run was.
fn was_strict(run: &Run) -> Result<bool> {
    let summary = run.file("summary.json")?;
    let summary: Option<Value> = summary.and_then(|text| serde_json::from_slice(&text).ok());
    Ok(summary.is_some_and(|summary| summary["strict"] == true))
}

fn scenario_text(run: &Run) -> Result<String> {
    let bytes = run.file("scenario.yaml")?.ok_or_else(|| anyhow!("the run has no scenario.yaml; run it again"))?;
    String::from_utf8(bytes).context("the run's scenario.yaml is not text; run it again")
}

/// The run's own assertions and what it accepts, to be judged from its record.
fn check(name: &str, scenario: &str, analysis: &Analysis, compared: bool) -> Result<(Checked, Terms)> {
    let scenario = Scenario::parse(name, scenario)?;
    let scope = Scope { compared, recorded: analysis.recorded.is_some(), mean: false };
    let checked = assertions::check(for_report(&scenario.assertions), &analysis.meta.groups, scope)?;
    Ok((checked, Terms { accept: scenario.accept, strict: false }))
}

/// The folder of a Simulation's record, which is fetched and put there.
fn fetched(args: &ReportArgs, global: &Global) -> Result<PathBuf> {
    if args.run == NEWEST {
        bail!("which Simulation? `{} list --cluster` shows them; then `report NAME --cluster`", global.again());
    }
    let (simulation, mut staged) = cluster::block_on(async {
        let cluster = Cluster::connect(global).await?;
        let simulation = Simulations::of(&cluster).get(&args.run).await?;
        refuse_unfinished(&simulation)?;
        let kept = records::kept(&cluster, &simulation).await?;
        let repetition = choose(args, &simulation, &kept, global)?;
        let fetch = async |repetition| {
            let dir = runs::of_repetition(None, &args.run, simulation.spec.repetitions, repetition);
            records::fetch(&cluster, &simulation, repetition, &dir, global).await
        };
        let staged = match (fetch(repetition).await, another(args, &simulation, repetition)) {
            (Err(error), Some(before)) => {
                output::say(global, &format!("repetition {repetition} has no record: {error:#}; this is {before}"));
                fetch(before).await?
            }
            (fetched, _) => fetched?,
        };
        Ok((simulation, staged))
    })?;
    let annotations = simulation.metadata.annotations.as_ref();
    // A Simulation that was written by hand carries none: then nothing must hold.
    let scenario = annotations.and_then(|all| all.get(SCENARIO_ANNOTATION)).map_or(ASSUMED, String::as_str);
    staged.add_file("scenario.yaml", scenario.as_bytes())?;
    let name = format!("annotation {SCENARIO_ANNOTATION} of Simulation {}", args.run);
    let (checked, terms) = check(&name, scenario, &Analysis::of(&staged.run()?)?, false)?;
    Ok(conclude::publish(staged, Judge { checked: &checked, terms: &terms, baseline: None }, scenario)?.dir)
}

/// One that goes on says how far it is.
fn refuse_unfinished(simulation: &Simulation) -> Result<()> {
    let status = simulation.status.clone().unwrap_or_default();
    if !status.state.is_some_and(State::is_final) {
        let (name, state) = (name_of(simulation), words(&status));
        bail!("Simulation {name} is not over: {state}; it has a report when it is");
    }
    Ok(())
}

/// The repetition to show where this one, which nobody asked for, turns out to have failed before it wrote a record.
fn another(args: &ReportArgs, simulation: &Simulation, repetition: u32) -> Option<u32> {
    let failed = simulation.status.as_ref().is_some_and(|status| status.state == Some(State::Failed));
    let is_open = failed && args.repetition.is_none() && records::is_guessed(simulation, repetition);
    repetition.checked_sub(1).filter(|_| is_open)
}

/// The repetition that was asked for, or the last one that there is.
fn choose(args: &ReportArgs, simulation: &Simulation, kept: &[u32], global: &Global) -> Result<u32> {
    let (name, last) = (&args.run, kept.last().copied());
    let Some(last) = last else {
        let failed = simulation.status.as_ref().is_some_and(|status| status.state == Some(State::Failed));
        let why = if failed { format!(": it failed: {}", why_it_failed(simulation)) } else { String::new() };
        bail!("Simulation {name} has left no record{why}");
    };
    let listed = || kept.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match args.repetition {
        Some(repetition) if kept.contains(&repetition) => Ok(repetition),
        Some(repetition) => bail!("Simulation {name} has no record of repetition {repetition}; it has: {}", listed()),
        None => {
            if kept.len() > 1 {
                output::say(global, &format!("repetition {last} of {}; --repetition N shows another", listed()));
            }
            Ok(last)
        }
    }
}

//! `skctl report [RUN]`: shows a run in any format; with `--cluster`, fetches the record of a Simulation first.

use std::io::Write;

use anyhow::{Context, Result, anyhow};
use serde_json::Value;
use sk_api::scenario::Scenario;
use sk_record::Run;
use sk_report::html::Asked;
use sk_report::terminal::Occasion;
use sk_report::{Analysis, Judgement, Scope, Terms, fidelity};
use sk_store::location::shown;

use super::run::baseline::Baseline;
use super::run::conclude::Judge;
use super::run::for_report;
use crate::cli::{Global, ReportArgs, ReportFormat};
use crate::confined::assertions::{self, Checked};
use crate::failure::Outcome;
use crate::runs::{self, Found};
use crate::{cluster, output, scenarios};

pub(crate) fn run(args: &ReportArgs, global: &Global) -> Result<Outcome> {
    let found =
        if args.cluster { Found::Here(cluster::fetch_record(args, global)?) } else { runs::resolve(&args.run)? };
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
pub(crate) fn check(name: &str, scenario: &str, analysis: &Analysis, compared: bool) -> Result<(Checked, Terms)> {
    let scenario = Scenario::parse(name, scenario)?;
    let scope = Scope { compared, recorded: analysis.recorded.is_some(), mean: false };
    let checked = assertions::check(for_report(&scenario.assertions), &analysis.meta.groups, scope)?;
    Ok((checked, Terms { accept: scenario.accept, strict: false }))
}

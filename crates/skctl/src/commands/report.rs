//! `skctl report [RUN]`: a run again, in any form.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use sk_api::scenario::Scenario;
use sk_record::Run;
use sk_report::terminal::Occasion;
use sk_report::{Analysis, Assertion, Verdict};

use crate::cli::{ReportArgs, ReportFormat};
use crate::failure::Outcome;
use crate::runs::RUNS;

pub(crate) fn run(args: &ReportArgs) -> Result<Outcome> {
    let dir = sk_record::resolve(&args.run, Path::new(RUNS))?;
    let run = Run::open(&dir)?;
    let analysis = Analysis::of(&run)?;
    let scenario = scenario_text(&run)?;
    let verdicts = judge(&dir, &scenario, &analysis)?;
    let report = dir.join("report.html").display().to_string();
    let text = match args.output {
        ReportFormat::Table => {
            let occasion = Occasion { report: Some(&report), ..Occasion::default() };
            sk_report::terminal::render(&analysis, &verdicts, &occasion)
        }
        ReportFormat::Json => sk_report::json::render(&analysis, &verdicts)?,
        ReportFormat::Markdown => sk_report::markdown::render(&analysis, &verdicts),
        ReportFormat::Junit => sk_report::junit::render(&analysis, &verdicts),
        ReportFormat::Html => sk_report::html::render(&analysis, &verdicts, Some(&scenario))?,
    };
    anstream::stdout().write_all(text.as_bytes())?;
    let all_hold = verdicts.iter().all(|verdict| verdict.passed);
    Ok(if all_hold { Outcome::Good } else { Outcome::Bad })
}

fn scenario_text(run: &Run) -> Result<String> {
    let bytes = run.file("scenario.yaml")?.ok_or_else(|| anyhow!("the run has no scenario.yaml; run it again"))?;
    String::from_utf8(bytes).context("the run's scenario.yaml is no text; run it again")
}

/// The run's own assertions, judged again from its record.
fn judge(dir: &Path, scenario: &str, analysis: &Analysis) -> Result<Vec<Verdict>> {
    let name = dir.join("scenario.yaml").display().to_string();
    let scenario = Scenario::parse(&name, scenario)?;
    let assertion = |assertion: &sk_api::scenario::Assertion| Assertion {
        name: assertion.name.clone(),
        text: assertion.that.clone(),
    };
    let assertions: Vec<_> = scenario.assertions.iter().map(assertion).collect();
    Ok(sk_report::check(&assertions, &analysis.meta.groups)?.judge(&analysis.summary)?)
}

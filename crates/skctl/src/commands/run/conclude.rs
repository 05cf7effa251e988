//! The end of every run: evaluate the assertions, write the reports, print the summary.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sk_api::Scenario;
use sk_record::Staged;
use sk_report::baseline::compared;
use sk_report::figure::{Figure, ToFigure};
use sk_report::html::Asked;
use sk_report::terminal::Occasion;
use sk_report::{Analysis, Judgement, Terms};

use super::baseline::{self, Baseline};
use super::suggestions;
use crate::cli::RunArgs;
use crate::confined::assertions::Checked;
use crate::failure::Outcome;
use crate::{output, progress, scenarios};

/// By what a run is judged.
#[derive(Clone, Copy)]
pub(crate) struct Judge<'a> {
    pub(crate) checked: &'a Checked,
    pub(crate) terms: &'a Terms,
    /// The run that it is compared with, if there is one.
    pub(crate) baseline: Option<&'a Baseline>,
}

impl Judge<'_> {
    /// The figures that assertions see.
    pub(crate) fn figures(&self, analysis: &Analysis) -> Figure {
        let figures = analysis.summary.figure();
        match self.baseline {
            Some(baseline) => compared(figures, &baseline.figures),
            None => figures,
        }
    }
}

/// What the scenario accepts, and whether warnings count.
pub(crate) fn terms(scenario: &Scenario, args: &RunArgs) -> Terms {
    Terms { accept: scenario.accept.clone(), strict: args.request.strict }
}

/// A run in its place, and what is to be said of it.
pub(crate) struct Concluded {
    pub(crate) analysis: Analysis,
    pub(crate) judgement: Judgement,
    pub(crate) dir: PathBuf,
}

/// Judges the staged run and publishes it with its reports. A run that cannot be judged is published all the same, and
/// says so.
pub(crate) fn publish(staged: Staged, judge: Judge<'_>, scenario: &str) -> Result<Concluded> {
    let analysis = Analysis::of(&staged.run()?)?;
    publish_analysed(staged, analysis, judge, scenario)
}

/// The same for a run whose figures are known.
pub(super) fn publish_analysed(
    mut staged: Staged,
    analysis: Analysis,
    judge: Judge<'_>,
    scenario: &str,
) -> Result<Concluded> {
    let judgement = Judgement::of(&analysis, judge.checked.judge(&judge.figures(&analysis))?, judge.terms);
    // Whoever reports on the run later judges it by the same figures.
    if let Some(baseline) = judge.baseline.filter(|_| judge.checked.name_baseline()) {
        staged.add_file(baseline::FILE, &baseline.to_json()?)?;
    }
    let differs = scenarios::differences(scenario)?;
    for (name, text) in sk_report::files(&analysis, &judgement, Asked { text: scenario, differs: &differs })? {
        staged.add_file(name, text.as_bytes())?;
    }
    let dir = staged.publish()?;
    Ok(Concluded { analysis, judgement, dir })
}

/// Prints the summary of a run, and opens its page with --open.
pub(crate) fn print(args: &RunArgs, trace: &str, concluded: &Concluded, wall_s: f64) -> Result<()> {
    let Concluded { analysis, judgement, dir } = concluded;
    let report = dir.join("report.html");
    let suggestions = suggestions::after(args, trace, concluded);
    let (path, columns) = (report.display().to_string(), Some(output::columns()));
    let occasion = Occasion { wall_s: Some(wall_s), report: Some(&path), tries: &suggestions, columns };
    write!(anstream::stdout(), "{}", sk_report::terminal::render(analysis, judgement, &occasion))?;
    if args.open {
        open_report(&report);
    }
    if judgement.strict && judgement.doubts > 0 {
        let warnings = if judgement.doubts == 1 { "warning limits" } else { "warnings limit" };
        anstream::eprintln!(
            "--strict: {} {warnings} how far this run can be trusted; see TRUST above",
            judgement.doubts
        );
    }
    Ok(())
}

/// What the caller gets back.
pub(crate) fn outcome(concluded: &Concluded) -> Outcome {
    let is_broken_off = concluded.analysis.meta.partial || progress::is_interrupted();
    if is_broken_off { Outcome::Interrupted } else { concluded.judgement.exit().into() }
}

fn open_report(report: &Path) {
    if let Err(error) = open::that_detached(report).with_context(|| format!("could not open {}", report.display())) {
        anstream::eprintln!("{error:#}; open it by hand");
    }
}

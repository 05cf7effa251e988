//! The end of every run, wherever it ran: judged, published, printed.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sk_record::{Staged, WarningKind};
use sk_report::terminal::Occasion;
use sk_report::{Analysis, AssertionError, Checked, Verdict};

use crate::cli::RunArgs;
use crate::failure::Outcome;

/// A run in its place, and what is to be said of it.
pub(crate) struct Concluded {
    pub(crate) analysis: Analysis,
    /// What of the assertions holds; an error if they could not be judged.
    pub(crate) judged: Result<Vec<Verdict>, AssertionError>,
    pub(crate) dir: PathBuf,
}

/// Judges the staged run and publishes it with its reports. A run that cannot be judged is published all the same.
pub(crate) fn publish(mut staged: Staged, checked: &Checked, scenario: &str) -> Result<Concluded> {
    let analysis = Analysis::of(&staged.run()?)?;
    let judged = checked.judge(&analysis.summary);
    let verdicts = judged.as_deref().unwrap_or_default();
    for (name, text) in sk_report::files(&analysis, verdicts, scenario)? {
        staged.add_file(name, text.as_bytes())?;
    }
    let dir = staged.publish()?;
    Ok(Concluded { analysis, judged, dir })
}

/// Judges the staged run, publishes it and prints the summary.
pub(super) fn conclude(
    args: &RunArgs,
    trace: &str,
    staged: Staged,
    checked: &Checked,
    scenario: &str,
    wall_s: f64,
) -> Result<Outcome> {
    let Concluded { analysis, judged, dir } = publish(staged, checked, scenario)?;
    let report = dir.join("report.html");
    let tries = tries(args, trace);
    let occasion = Occasion { wall_s: Some(wall_s), report: Some(&report.display().to_string()), tries: &tries };
    let verdicts = judged.as_deref().unwrap_or_default();
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

fn open_report(report: &Path) {
    if let Err(error) = open::that_detached(report).with_context(|| format!("could not open {}", report.display())) {
        anstream::eprintln!("{error:#}; open it by hand");
    }
}

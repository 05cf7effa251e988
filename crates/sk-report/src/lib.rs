//! From a run record to what people see: figures, verdict, terminal, JSON, HTML.
//!
//! Pure: rows come in through [`Source`], text goes out. No clock, no file, no network; the same record gives the same
//! bytes. Start with [`Summary`] (the figures), then [`Analysis`] (how they are computed from the rows).
//!
//! | module | what it owns |
//! |---|---|
//! | [`figures`] | the figures and their names, which are a contract |
//! | [`figure`] | the tree that JSON and assertions share |
//! | [`source`] | where rows come from |
//! | [`step`] | step functions of time |
//! | [`analysis`] | rows → figures, curves, causes |
//! | [`assertion`] | CEL over the figures: checked before a run, evaluated after |
//! | [`baseline`] | a run with a baseline, and the mean of several |
//! | [`changes`] | changes to workloads that explain the curves |
//! | [`confined`] | assertions as requests and responses, for a process with limits |
//! | [`causes`] | why pods waited, why nodes were empty |
//! | [`incidents`] | the longest waits, grouped |
//! | [`events`] | everything that happened to pods, small enough for a page |
//! | [`fidelity`] | a run compared with the recording that it replays |
//! | [`gaps`] | what was not simulated, by kind, worst first |
//! | [`verdict`] | the one verdict of terminal, page, JSON, JUnit and exit code, and how far to trust it |
//! | [`compare`] | several runs compared, and what is more than noise |
//! | [`why`] | why a pod waited, a node existed, a group did not grow |
//! | [`terminal`] | the summary that ends a run |
//! | [`columns`] | which figures are shown, under which label, in which unit |
//! | [`side_by_side`] | several runs of one command in a table |
//! | [`html`] | report.html |
//! | [`escape`] | escapes text from others |
//! | [`json`], [`csv`], [`markdown`], [`junit`] | summary.json, spreadsheets, pull requests, CI |

pub mod analysis;
pub mod assertion;
mod assertion_syntax;
pub mod baseline;
pub mod causes;
pub mod changes;
pub mod columns;
pub mod compare;
pub mod confined;
pub mod csv;
pub mod escape;
pub mod events;
pub mod fidelity;
pub mod figure;
pub mod figures;
mod fleet;
pub mod gaps;
pub mod html;
pub mod incidents;
pub mod json;
pub mod junit;
pub mod markdown;
mod path;
mod pods;
pub mod side_by_side;
pub mod source;
mod spark;
pub mod step;
mod tally;
pub mod terminal;
pub mod verdict;
pub mod why;
mod words;

/// The files that lie beside a run's tables, by name, made of nothing but the run and its scenario.
pub fn files(
    analysis: &Analysis,
    judgement: &Judgement,
    asked: html::Asked<'_>,
) -> Result<Vec<(&'static str, String)>, serde_json::Error> {
    let mut files = vec![
        ("summary.json", json::render(analysis, judgement)?),
        ("report.html", html::render(analysis, judgement, Some(asked))?),
        ("junit.xml", junit::render(analysis, judgement)),
    ];
    files.extend(fidelity::to_json(analysis)?.map(|text| (fidelity::FILE, text)));
    Ok(files)
}

pub use analysis::Analysis;
pub use assertion::{Assertion, AssertionError, Checked, Evaluated, Verdict, check};
pub use baseline::Scope;
pub use figures::Summary;
pub use source::{Source, Tables};
pub use verdict::{Exit, Judgement, Mark, Terms};

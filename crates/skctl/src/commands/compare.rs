//! `skctl compare RUN RUN…`: runs side by side, and reality beside them.
//!
//! Figures come from each run's summary.json, which is small; a record of another version, whose summary does not have
//! every figure, is read again from its tables. The tables are also read for the page's curves, and where a trace with
//! observations is among the runs: it reads as the run `recorded`, over the window of the first simulated one.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use serde_json::Value;
use sk_api::Scenario;
use sk_record::Run;
use sk_replay::plan::Window as TraceWindow;
use sk_replay::recorded::{self, Recorded};
use sk_report::compare::fidelity::Lives;
use sk_report::compare::{Comparison, Member, html, json, markdown, table};
use sk_report::figure::ToFigure;
use sk_report::{Analysis, Source, Summary, Tables};

use crate::cli::{CompareArgs, CompareFormat, Global};
use crate::failure::Outcome;
use crate::runs::RUNS;
use crate::traces;

/// How wide a table is where nobody says how wide the terminal is.
const COLUMNS: usize = 80;

/// One of the things that were named.
enum Named {
    Run(PathBuf),
    Trace,
}

pub(crate) fn run(args: &CompareArgs, global: &Global) -> Result<Outcome> {
    let named: Result<Vec<Named>> = args.runs.iter().map(|text| find(text)).collect();
    let named = named?;
    if named.len() < 2 {
        bail!("{} alone cannot be compared; name at least two runs", args.runs[0]);
    }
    let needs = Needs {
        curves: args.output == CompareFormat::Html,
        lives: named.iter().any(|named| matches!(named, Named::Trace)),
    };
    let window = window(&named)?;
    let members = args.runs.iter().zip(&named).map(|(text, named)| match named {
        Named::Run(dir) => of_run(text, dir, needs),
        Named::Trace => of_trace(text, window, needs, global),
    });
    let comparison = Comparison::of(members.collect::<Result<_>>()?);
    let text = match args.output {
        CompareFormat::Table => table::render(&comparison, terminal_columns()),
        CompareFormat::Json => json::render(&comparison)?,
        CompareFormat::Markdown => markdown::render(&comparison),
        CompareFormat::Html => html::render(&comparison)?,
    };
    anstream::stdout().write_all(text.as_bytes())?;
    Ok(Outcome::Good)
}

pub(crate) fn terminal_columns() -> usize {
    console::Term::stdout().size_checked().map_or(COLUMNS, |(_, columns)| usize::from(columns).max(COLUMNS))
}

/// A run; if there is none of that name, a trace.
fn find(text: &str) -> Result<Named> {
    match sk_record::resolve(text, Path::new(RUNS)) {
        Ok(dir) => Ok(Named::Run(dir)),
        Err(_) if traces::is_one(text) => Ok(Named::Trace),
        Err(error) => Err(anyhow!(error)),
    }
}

/// What must be known of each run.
#[derive(Clone, Copy)]
struct Needs {
    curves: bool,
    lives: bool,
}

/// The window of the first simulated run: what was recorded outside of it cannot be compared.
fn window(named: &[Named]) -> Result<Option<TraceWindow>> {
    let first = named.iter().find_map(|named| match named {
        Named::Run(dir) => Some(dir),
        Named::Trace => None,
    });
    let Some(dir) = first else { return Ok(None) };
    let run = Run::open(dir)?;
    Ok(Some(TraceWindow { start: run.meta().start, end: run.meta().end, includes_end: true }))
}

fn of_run(text: &str, dir: &Path, needs: Needs) -> Result<Member> {
    let run = Run::open(dir)?;
    let told: Option<Value> = run.file("summary.json")?.and_then(|text| serde_json::from_slice(&text).ok());
    let known = told.as_ref().and_then(|told| Summary::from_json(Some(told)));
    let verdict = told.as_ref().and_then(|told| told["verdict"].as_str().map(str::to_owned));
    let scenario = scenario(&run, dir)?;
    let member = read(label(text, dir), &run, known, needs)?;
    Ok(Member { scenario, verdict, ..member })
}

/// A recording, read as a run.
fn of_trace(text: &str, window: Option<TraceWindow>, needs: Needs, global: &Global) -> Result<Member> {
    let trace = traces::open(text, global)?;
    let whole = || trace.span().map(|(start, end)| TraceWindow { start, end, includes_end: true });
    let window = window.or_else(whole).ok_or_else(|| anyhow!("{text} holds nothing"))?;
    let Recorded { meta, pods, nodes, series, decisions } = Recorded::of(&trace, window, env!("CARGO_PKG_VERSION"))?;
    let tables = Tables { meta, pods, nodes, series, decisions };
    let member = read(recorded::NAME.to_owned(), &tables, None, needs)?;
    Ok(Member { unknown: &recorded::UNKNOWN, ..member })
}

fn read(label: String, source: &impl Source, known: Option<Summary>, needs: Needs) -> Result<Member> {
    let meta = source.meta().clone();
    let lives =
        needs.lives.then(|| Lives::of(source, sk_report::step::Window::new(meta.start, meta.end))).transpose()?;
    let (summary, curves) = match known {
        Some(summary) if !needs.curves => (summary, None),
        known => {
            let analysis = Analysis::of(source)?;
            (known.unwrap_or(analysis.summary), needs.curves.then_some((analysis.window, analysis.curves)))
        }
    };
    Ok(Member { label, meta, scenario: None, verdict: None, summary, unknown: &[], lives, curves })
}

/// The resolved scenario as a tree; a record of a cluster run that was written by hand has none.
fn scenario(run: &Run, dir: &Path) -> Result<Option<Value>> {
    let Some(bytes) = run.file("scenario.yaml")? else { return Ok(None) };
    let name = dir.join("scenario.yaml").display().to_string();
    let scenario = Scenario::parse(&name, &String::from_utf8_lossy(&bytes))?;
    Ok(Some(serde_json::to_value(scenario)?))
}

/// `@` and paths say little about a run; its folder's name does.
fn label(text: &str, dir: &Path) -> String {
    let folder = dir.file_name().map(|folder| folder.to_string_lossy().into_owned());
    match folder {
        Some(folder) if text.starts_with('@') || text.contains('/') => folder,
        _ => text.to_owned(),
    }
}

//! `skctl compare RUN RUN…`: runs side by side, and reality beside them.
//!
//! Figures come from each run's summary.json, which is small; a record of another version, whose summary does not have
//! every figure, is read again from its tables. The tables are also read for the page's curves, and where a trace with
//! observations is among the runs: it reads as the run `recorded`, over the window of the first simulated one.

use std::io::Write;
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use serde_json::Value;
use sk_api::Scenario;
use sk_record::{Group, Run};
use sk_replay::plan::Window as TraceWindow;
use sk_replay::recorded::{self, Recorded};
use sk_report::compare::{Comparison, Member, html, json, markdown, table};
use sk_report::fidelity::Lives;
use sk_report::figure::ToFigure;
use sk_report::{Analysis, Assertion, Scope, Source, Summary, Tables};

use crate::cli::{CompareArgs, CompareFormat, Global};
use crate::confined::assertions;
use crate::failure::Outcome;
use crate::runs::{self, Found};
use crate::traces;

/// How wide a table is where nobody says how wide the terminal is.
const COLUMNS: usize = 80;

/// One of the things that were named.
enum Named {
    Run(Found),
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
        Named::Run(found) => of_run(text, found.dir(), needs),
        Named::Trace => of_trace(text, window, needs, global),
    });
    let mut comparison = Comparison::of(members.collect::<Result<_>>()?);
    judge(args, &mut comparison)?;
    let text = match args.output {
        CompareFormat::Table => table::render(&comparison, terminal_columns()),
        CompareFormat::Json => json::render(&comparison)?,
        CompareFormat::Markdown => markdown::render(&comparison),
        CompareFormat::Html => html::render(&comparison)?,
    };
    anstream::stdout().write_all(text.as_bytes())?;
    Ok(comparison.exit().into())
}

/// Judges every run but the baseline's by what was asserted.
fn judge(args: &CompareArgs, comparison: &mut Comparison) -> Result<()> {
    let assertions = args.assert.iter().map(|text| Assertion { name: None, text: text.clone() });
    let metas = comparison.columns.iter().flat_map(|column| &column.members).map(|member| &member.meta);
    let mut groups: Vec<Group> = metas.flat_map(|meta| meta.groups.clone()).collect();
    groups.sort_by(|a, b| a.name.cmp(&b.name));
    groups.dedup_by(|a, b| a.name == b.name);
    let scope = Scope { compared: true, recorded: comparison.has_recording(), mean: false };
    let checked = assertions::check(assertions.collect(), &groups, scope)?;
    if checked.is_empty() {
        return Ok(());
    }
    for asked in comparison.asked() {
        let verdicts = checked.judge(&asked.figures)?;
        comparison.assertions.extend(verdicts.into_iter().map(|verdict| asked.asserted(verdict)));
    }
    Ok(())
}

pub(crate) fn terminal_columns() -> usize {
    console::Term::stdout().size_checked().map_or(COLUMNS, |(_, columns)| usize::from(columns).max(COLUMNS))
}

/// A run; if there is none of that name, a trace.
fn find(text: &str) -> Result<Named> {
    match runs::resolve(text) {
        Ok(found) => Ok(Named::Run(found)),
        Err(_) if traces::is_one(text) => Ok(Named::Trace),
        Err(error) => Err(error),
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
        Named::Run(found) => Some(found.dir()),
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
        _ if text.contains("://") => text.trim_end_matches('/').rsplit('/').next().unwrap_or(text).to_owned(),
        Some(folder) if text.starts_with('@') || text.contains('/') => folder,
        _ => text.to_owned(),
    }
}

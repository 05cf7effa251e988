//! `skctl compare RUN RUN…`: compares runs with each other and with the recording.
//!
//! Figures come from each run's small summary.json. A record of another version, whose summary lacks some figures, is read
//! from its tables. The tables are also read for the curves of the HTML page, and if a trace with observations is among the
//! runs: it counts as the run `recorded`, over the window of the first simulated run.

use std::io::Write;
use std::path::{Path, PathBuf};

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
use sk_store::Location;

use super::list::summary_of;
use super::sweep::records::{self, Records, StoredRun};
use crate::cli::{CompareArgs, CompareFormat, Global};
use crate::confined::assertions;
use crate::failure::Outcome;
use crate::runs::{self, Found};
use crate::{output, text_file, traces};

/// One of the things that were named.
enum Named {
    Run(Found),
    /// Several runs of one command.
    Folder(Vec<PathBuf>),
    /// A sweep, or a run at a URL: summaries are enough for most of it.
    Records(Records),
    Trace,
}

pub(crate) fn run(args: &CompareArgs, global: &Global) -> Result<Outcome> {
    let named: Result<Vec<Named>> = args.runs.iter().map(|text| find(text)).collect();
    let named = named?;
    let needs = Needs {
        curves: args.output == CompareFormat::Html,
        lives: named.iter().any(|named| matches!(named, Named::Trace)),
    };
    let window = window(&named)?;
    let mut members = Vec::new();
    for (text, named) in args.runs.iter().zip(&named) {
        match named {
            Named::Run(found) => members.extend(of_name(text, found.dir(), needs)?),
            Named::Folder(dirs) => {
                for dir in dirs {
                    members.push(of_run(&dir.display().to_string(), dir, needs)?);
                }
            }
            Named::Records(records) => of_records(records, needs, &mut members)?,
            Named::Trace => members.push(of_trace(text, window, needs, global)?),
        }
    }
    if members.len() < 2 {
        bail!("{} alone cannot be compared; name at least two runs", args.runs[0]);
    }
    let mut comparison = Comparison::of(members);
    comparison.remarks = args.runs.iter().zip(&named).filter_map(|(text, named)| named.missing(text)).collect();
    judge(args, &mut comparison)?;
    let text = match args.output {
        CompareFormat::Table => table::render(&comparison, output::columns()),
        CompareFormat::Json => json::render(&comparison)?,
        CompareFormat::Csv => sk_report::csv::render_comparison(&comparison),
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

impl Named {
    /// Says that a sweep is not done.
    fn missing(&self, text: &str) -> Option<String> {
        let Self::Records(records) = self else { return None };
        let all = records.missing + records.runs.len();
        (records.missing > 0).then(|| format!("{} of {all} runs of {text} are missing", records.missing))
    }
}

/// A run or a sweep; if there is none of that name, a trace.
fn find(text: &str) -> Result<Named> {
    let is_remote = matches!(text.parse(), Ok(Location::Remote(_)));
    if let Some(found) = is_remote.then(|| records::summary(text).ok()).flatten() {
        return Ok(Named::Records(found));
    }
    if let Some(found) = records::named(text)? {
        return Ok(Named::Records(found));
    }
    let runs_in_folder = runs_in(Path::new(text)).or_else(|| runs_in(&Path::new(runs::RUNS).join(text)));
    if let Some(dirs) = runs_in_folder {
        return Ok(Named::Folder(dirs));
    }
    match runs::resolve(text) {
        Ok(found) => Ok(Named::Run(found)),
        Err(_) if traces::is_one(text) => Ok(Named::Trace),
        Err(error) => Err(error),
    }
}

/// The runs in a folder that is not a run itself, by name: variants, repetitions.
fn runs_in(folder: &Path) -> Option<Vec<PathBuf>> {
    if !folder.is_dir() || folder.join("run.json").exists() {
        return None;
    }
    let mut dirs: Vec<PathBuf> = sk_record::find_runs(folder).ok()?.into_iter().map(|(dir, _)| dir).collect();
    dirs.sort();
    (!dirs.is_empty()).then_some(dirs)
}

/// What must be known of each run.
#[derive(Clone, Copy)]
struct Needs {
    curves: bool,
    lives: bool,
}

/// The window of the first simulated run: what was recorded outside of it cannot be compared.
fn window(named: &[Named]) -> Result<Option<TraceWindow>> {
    for named in named {
        let meta = match named {
            Named::Run(found) => Some(Run::open(found.dir())?.meta().clone()),
            Named::Folder(dirs) => dirs.first().map(|dir| Run::open(dir)).transpose()?.map(|run| run.meta().clone()),
            Named::Records(records) => records.runs.first().map(|run| run.meta.clone()),
            Named::Trace => None,
        };
        if let Some(meta) = meta {
            return Ok(Some(TraceWindow { start: meta.start, end: meta.end, includes_end: true }));
        }
    }
    Ok(None)
}

/// The runs of a sweep. The page draws the first run of each column, as many as it has colours for; the others' tables are
/// not read.
fn of_records(records: &Records, needs: Needs, members: &mut Vec<Member>) -> Result<()> {
    let mut drawn: Vec<&str> = Vec::new();
    for run in &records.runs {
        let curves = needs.curves && drawn.len() < html::DRAWN_MAX && !drawn.contains(&run.meta.name.as_str());
        if curves {
            drawn.push(&run.meta.name);
        }
        members.push(of_recorded(run, Needs { curves, ..needs })?);
    }
    Ok(())
}

/// A run by its summary; where that is not enough, by all of its record.
fn of_recorded(run: &StoredRun, needs: Needs) -> Result<Member> {
    let told: Option<Value> = summary_of(&run.dir).and_then(|text| serde_json::from_slice(&text).ok());
    let known = told.as_ref().and_then(|told| Summary::from_json(Some(told)));
    let Some(summary) = known.filter(|_| !needs.curves && !needs.lives) else {
        let found = runs::resolve(&run.place)?;
        return Ok(Member { label: run.label.clone(), ..of_run(&run.place, found.dir(), needs)? });
    };
    let file = run.dir.join("scenario.yaml");
    let scenario = if file.exists() { Some(text_file::read("scenario", &file)?) } else { None };
    let scenario = scenario.map(|text| as_tree(&file.display().to_string(), &text)).transpose()?;
    let verdict = told.as_ref().and_then(|told| told["verdict"].as_str().map(str::to_owned));
    let (label, meta) = (run.label.clone(), run.meta.clone());
    Ok(Member { label, meta, scenario, verdict, summary, unknown: &[], lives: None, curves: None })
}

/// The run that was named. A name under ./runs means its repetitions too, whatever their seeds, in the order of these.
fn of_name(text: &str, newest: &Path, needs: Needs) -> Result<Vec<Member>> {
    let mut members = vec![of_run(text, newest, needs)?];
    for (dir, meta) in sk_record::runs_of_name(text, Path::new(runs::RUNS))? {
        if dir == newest || !members[0].may_ask(&meta) {
            continue;
        }
        let member = of_run(text, &dir, needs)?;
        if member.repeats(&members) {
            members.push(member);
        }
    }
    members.sort_by_key(|member| member.meta.seed);
    Ok(members)
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
    let window = window.or_else(whole).ok_or_else(|| anyhow!("{text} is empty"))?;
    let Recorded { meta, pods, nodes, series, decisions } = Recorded::of(&trace, window, env!("CARGO_PKG_VERSION"))?;
    let tables = Tables { meta, pods, nodes, series, decisions, autoscaler: Vec::new() };
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
    as_tree(&name, &String::from_utf8_lossy(&bytes)).map(Some)
}

fn as_tree(name: &str, text: &str) -> Result<Value> {
    Ok(serde_json::to_value(Scenario::parse(name, text)?)?)
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

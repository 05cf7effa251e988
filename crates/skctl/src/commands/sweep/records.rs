//! Resolves an argument that refers to many records: a plan, a folder of records, or its URL.
//!
//! From an object store only the summaries are fetched, a few small files per record; `compare` and `list` need no more.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::SystemTime;

use anyhow::{Context, Result};
use sk_record::RunMeta;
use sk_store::Location;
use sk_store::location::shown;
use tempfile::TempDir;

use super::file::{Line, PLAN, RUNS, Sweep};
use super::location::RecordLocation;

/// What is fetched of a record. `run.json` last: what has it is whole.
const SUMMARY: [&str; 3] = ["summary.json", "scenario.yaml", "run.json"];
/// Requests at the same time: they mostly wait.
const AT_ONCE: usize = 8;

/// Many records.
pub(crate) struct Records {
    pub(crate) runs: Vec<StoredRun>,
    /// How many runs the plan has that have no record yet.
    pub(crate) missing: usize,
    /// The temporary folder of fetched summaries.
    _fetched: Option<TempDir>,
}

/// One record, of which the tables may not be here.
pub(crate) struct StoredRun {
    /// The variant of a plan, or the run id.
    pub(crate) label: String,
    /// The folder that holds its summary.
    pub(crate) dir: PathBuf,
    pub(crate) meta: RunMeta,
    /// The whole record: a folder or a URL.
    pub(crate) place: String,
    pub(crate) written: Option<SystemTime>,
}

/// The records of a plan's folder, of a folder that holds records, or of a URL of one; nothing if the word names something else.
pub(crate) fn named(text: &str) -> Result<Option<Records>> {
    let dir = Path::new(text);
    if dir.join(PLAN).is_file() && dir.join(RUNS).is_file() {
        return of_plan(&Sweep::open(dir)?).map(Some);
    }
    match text.parse() {
        Ok(Location::File(folder)) if folder.is_dir() && !folder.join("run.json").exists() => {
            let records = of_place(&RecordLocation::Folder(folder), None)?;
            Ok((!records.runs.is_empty()).then_some(records))
        }
        Ok(Location::Remote(_)) => {
            let place = RecordLocation::new(text)?;
            // A store that cannot list holds single runs and traces, which are read otherwise.
            let Ok(contents) = place.contents() else { return Ok(None) };
            if contents.done.is_empty() { Ok(None) } else { of_place(&place, None).map(Some) }
        }
        Ok(Location::File(_) | Location::StandardInput) | Err(_) => Ok(None),
    }
}

/// The record at a URL, of which only the summary is fetched.
pub(crate) fn summary(url: &str) -> Result<Records> {
    let dir = tempfile::tempdir().context("cannot make a temporary folder for the run")?;
    let url = url.trim_end_matches('/');
    let name = url.rsplit('/').next().unwrap_or(url).to_owned();
    fetch(url, &dir.path().join(&name)).with_context(|| format!("{} is not a run", shown(url)))?;
    read(dir, vec![Wanted { name: name.clone(), label: name, place: url.to_owned(), written: None }], 0)
}

fn of_plan(sweep: &Sweep) -> Result<Records> {
    of_place(&RecordLocation::new(&sweep.plan.to)?, Some(&sweep.lines))
}

/// A record that is there.
struct Wanted {
    name: String,
    label: String,
    place: String,
    written: Option<SystemTime>,
}

/// The records in a place, in the order of the plan; without one, by name.
fn of_place(place: &RecordLocation, lines: Option<&[Line]>) -> Result<Records> {
    let done = place.contents()?.done;
    let wanted = |name: &str, label: &str| {
        let written = done.get(name).copied();
        let place = match place {
            RecordLocation::Folder(folder) => folder.join(name).display().to_string(),
            RecordLocation::Store(place, _) => format!("{place}/{name}"),
        };
        written.map(|written| Wanted { name: name.to_owned(), label: label.to_owned(), place, written: Some(written) })
    };
    let label = |line: &Line| if line.variant.is_empty() { line.run_id.clone() } else { line.variant.clone() };
    let wanted: Vec<Wanted> = match lines {
        Some(lines) => lines.iter().filter_map(|line| wanted(&line.run_id, &label(line))).collect(),
        None => done.keys().filter_map(|name| wanted(name, name)).collect(),
    };
    let missing = lines.map_or(0, |lines| lines.len() - wanted.len());
    match place {
        RecordLocation::Folder(folder) => here(folder, wanted, missing),
        RecordLocation::Store(..) => {
            let dir = tempfile::tempdir().context("cannot make a temporary folder for the summaries")?;
            fetch_all(&wanted, dir.path())?;
            read(dir, wanted, missing)
        }
    }
}

fn here(folder: &Path, wanted: Vec<Wanted>, missing: usize) -> Result<Records> {
    Ok(Records { runs: with_meta(folder, wanted)?, missing, _fetched: None })
}

fn read(dir: TempDir, wanted: Vec<Wanted>, missing: usize) -> Result<Records> {
    Ok(Records { runs: with_meta(dir.path(), wanted)?, missing, _fetched: Some(dir) })
}

/// Reads the `run.json` of each; one that cannot be read is passed over, as `skctl list` does.
fn with_meta(folder: &Path, wanted: Vec<Wanted>) -> Result<Vec<StoredRun>> {
    let mut known: std::collections::BTreeMap<PathBuf, RunMeta> = sk_record::find_runs(folder)?.into_iter().collect();
    let recorded = |Wanted { name, label, place, written }| {
        let dir = folder.join(name);
        let meta = known.remove(&dir)?;
        Some(StoredRun { label, dir, meta, place, written })
    };
    Ok(wanted.into_iter().filter_map(recorded).collect())
}

/// Fetches the summaries of all, several at a time; the first error ends it.
fn fetch_all(wanted: &[Wanted], to: &Path) -> Result<()> {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(wanted.len()) {
            scope.spawn(|| {
                while let Some(one) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let fetched = fetch(&one.place, &to.join(&one.name));
                    if let Err(error) = fetched.with_context(|| format!("cannot read {}", shown(&one.place))) {
                        next.store(wanted.len(), Ordering::Relaxed);
                        if let Ok(mut failed) = failed.lock() {
                            failed.get_or_insert(error);
                        }
                    }
                }
            });
        }
    });
    match failed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// Fetches the summary at `place` into a new folder. Only `run.json` must be there: a run may never have been judged.
fn fetch(place: &str, to: &Path) -> Result<()> {
    fs::create_dir(to).with_context(|| format!("cannot make {}", to.display()))?;
    for name in SUMMARY {
        let Location::Remote(url) = format!("{place}/{name}").parse()? else { continue };
        let path = to.join(name);
        let fetched = url.fetch(&mut File::create(&path)?).inspect_err(|_| drop(fs::remove_file(&path)));
        if name == "run.json" {
            fetched?;
        }
    }
    Ok(())
}

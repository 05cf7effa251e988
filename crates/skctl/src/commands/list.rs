//! `skctl list [PLACE]`: the runs in ./runs, in another folder, of a sweep or at a URL, newest first, with their verdicts.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use sk_core::SimDuration;
use sk_record::RunMeta;
use sk_store::Location;
use sk_store::location::shown;

use crate::cli::{Global, ListArgs, ObjectFormat};
use crate::commands::sweep::records::{self, StoredRun};
use crate::failure::Outcome;
use crate::runs::RUNS;
use crate::{cluster, output};

/// The longest summary.json that is looked into: a hundred thousand owners are about 100 MB.
const MAX_SUMMARY_BYTES: u64 = 256 << 20;

/// One run, as the list shows it.
struct Listed {
    /// Its folder's name; `shop/packed` where a folder holds several runs of one command.
    name: String,
    /// Where it is: a folder or a URL.
    place: String,
    meta: RunMeta,
    written: Option<SystemTime>,
    /// What its summary.json says; nothing if it has none that can be read.
    summary: Option<Value>,
}

pub(crate) fn run(args: &ListArgs, global: &Global) -> Result<Outcome> {
    if args.cluster {
        return cluster::list(args.output, global);
    }
    let runs = find(args.place.as_deref())?;
    match args.output {
        ObjectFormat::Json => output::print_json(&runs.iter().map(Listed::for_programs).collect::<Vec<_>>())?,
        ObjectFormat::Yaml => output::print_yaml(&runs.iter().map(Listed::for_programs).collect::<Vec<_>>())?,
        ObjectFormat::Table if runs.is_empty() => {
            let place = args.place.as_deref().map_or_else(|| format!("./{RUNS}"), shown);
            output::print(&format!("no runs in {place} yet; `skctl demo` makes one\n"))?;
        }
        ObjectFormat::Table => output::print(&table(&runs, SystemTime::now(), output::columns()))?,
    }
    Ok(Outcome::Good)
}

/// The runs of a place, newest first.
fn find(place: Option<&str>) -> Result<Vec<Listed>> {
    let many = place.map(|place| Ok::<_, anyhow::Error>((place, records::named(place)?))).transpose()?;
    let folder = match many {
        None => Path::new(RUNS),
        Some((_, Some(records))) => {
            let mut runs: Vec<Listed> = records.runs.into_iter().map(Listed::from).collect();
            runs.sort_by_key(|run| std::cmp::Reverse(run.written));
            return Ok(runs);
        }
        Some((place, None)) if Path::new(place).is_dir() => Path::new(place),
        Some((place, None)) => {
            // A store that does not answer says why.
            if let Ok(Location::Remote(url)) = place.parse() {
                url.list().with_context(|| format!("cannot list the runs in {}", shown(place)))?;
            }
            bail!("{} is neither a folder of runs nor the plan of a sweep", shown(place))
        }
    };
    Ok(sk_record::find_runs(folder)?.into_iter().map(|run| Listed::new(folder, run)).collect())
}

/// The summary.json of a record, unless it is too long to be one.
pub(super) fn summary_of(dir: &Path) -> Option<Vec<u8>> {
    let path = dir.join("summary.json");
    let is_readable = std::fs::metadata(&path).is_ok_and(|file| file.len() <= MAX_SUMMARY_BYTES);
    is_readable.then(|| std::fs::read(&path).ok()).flatten()
}

impl From<StoredRun> for Listed {
    fn from(run: StoredRun) -> Self {
        let StoredRun { dir, meta, place, written, .. } = run;
        let summary = summary_of(&dir).and_then(|text| serde_json::from_slice(&text).ok());
        Self { name: meta.run_id.clone(), place: shown(&place), meta, written, summary }
    }
}

/// The columns, and which of them are left out first where the terminal is too narrow: `-o json` has them all.
const HEAD: [&str; 8] = ["RUN", "VERDICT", "PODS", "COST", "AGE", "SIMULATED", "SEED", "TRACE"];
/// Run, verdict, pods, cost and age are always shown.
const FEWEST: usize = 5;
const GAP: &str = "  ";

fn table(runs: &[Listed], now: SystemTime, columns: usize) -> String {
    let rows: Vec<[String; 8]> =
        std::iter::once(HEAD.map(str::to_owned)).chain(runs.iter().map(|run| run.row(now))).collect();
    let wide = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 8] = std::array::from_fn(wide);
    let needed =
        |from: usize, to: usize| widths[from..to].iter().map(|wide| wide + GAP.len()).sum::<usize>() - GAP.len();
    let shown = (FEWEST..=HEAD.len()).rev().find(|shown| needed(0, *shown) <= columns).unwrap_or(FEWEST);
    // A name is never cut: where there is no room beside it, the rest stands below it.
    let is_below = needed(0, shown) > columns;
    let mut text = String::new();
    for row in &rows {
        let cells = (1..shown).map(|column| {
            let (cell, wide) = (&row[column], widths[column]);
            if matches!(HEAD[column], "VERDICT" | "TRACE") {
                format!("{cell:<wide$}")
            } else {
                format!("{cell:>wide$}")
            }
        });
        let rest = cells.collect::<Vec<_>>().join(GAP);
        let line = if is_below {
            format!("{}\n{GAP}{rest}", row[0])
        } else {
            format!("{:<wide$}{GAP}{rest}", row[0], wide = widths[0])
        };
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

impl Listed {
    fn new(folder: &Path, (dir, meta): (PathBuf, RunMeta)) -> Self {
        let summary = summary_of(&dir).and_then(|text| serde_json::from_slice(&text).ok());
        let written = std::fs::metadata(dir.join("run.json")).and_then(|file| file.modified()).ok();
        let name = dir.strip_prefix(folder).unwrap_or(&dir).display().to_string();
        Self { name, place: dir.display().to_string(), meta, written, summary }
    }

    /// The word of its headline; runs that were never judged say so.
    fn verdict(&self) -> &str {
        let verdict = self.summary.as_ref().and_then(|summary| summary["verdict"].as_str());
        verdict.unwrap_or(if self.meta.partial { "PARTIAL" } else { "–" })
    }

    fn pods(&self) -> Option<i64> {
        self.summary.as_ref()?["pods"]["created"].as_i64()
    }

    fn cost(&self) -> Option<f64> {
        self.summary.as_ref()?["cost"]["total"].as_f64()
    }

    fn row(&self, now: SystemTime) -> [String; 8] {
        let unknown = || "–".to_owned();
        let partial = if self.meta.partial && self.verdict() != "PARTIAL" { " (partial)" } else { "" };
        [
            output::line(&self.name),
            format!("{}{partial}", output::line(self.verdict())),
            self.pods().map_or_else(unknown, |pods| pods.to_string()),
            self.cost().map_or_else(unknown, |cost| format!("{cost:.2} {}", output::line(&self.meta.currency))),
            self.age(now).map_or_else(unknown, |age| age.to_string()),
            self.meta.end.since(self.meta.start).to_string(),
            self.meta.seed.to_string(),
            output::line(&self.meta.trace.name),
        ]
    }

    /// How long ago its record was written, in whole seconds, minutes, hours or days.
    fn age(&self, now: SystemTime) -> Option<SimDuration> {
        let secs = i64::try_from(now.duration_since(self.written?).unwrap_or_default().as_secs()).ok()?;
        let unit = [86_400, 3_600, 60].into_iter().find(|unit| secs >= 2 * unit).unwrap_or(1);
        Some(SimDuration::from_secs(secs / unit * unit))
    }

    fn for_programs(&self) -> Value {
        let meta = &self.meta;
        let headline = self.summary.as_ref().map_or(&Value::Null, |summary| &summary["headline"]);
        json!({
            "dir": self.place, "name": meta.name, "run_id": meta.run_id, "verdict": self.verdict(), "headline": headline,
            "trace": meta.trace.name, "seed": meta.seed, "simulated_s": meta.end.since(meta.start).as_secs_f64(),
            "partial": meta.partial, "pods": self.pods(), "cost": self.cost(), "currency": meta.currency,
        })
    }
}

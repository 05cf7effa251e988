//! The folder of a plan: `plan.json` has what all runs share, `runs.jsonl` one line per run, and `v0`, `v1`, … the resolved
//! scenario of each variant with the files that it refers to.
//!
//! It contains everything that a run needs except the trace, which it names. The folder can be copied to another machine and
//! is small enough for a ConfigMap.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use sk_record::Warning;

/// Of this layout; a plan of another one is refused.
const FORMAT: u32 = 1;
pub(super) const PLAN: &str = "plan.json";
pub(super) const RUNS: &str = "runs.jsonl";
pub(super) const SCENARIO: &str = "scenario.yaml";

/// The longest file of a plan: 10,000 runs, the most that are planned, have lines of 200 bytes.
const MAX_BYTES: u64 = 16 << 20;

/// What all runs share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Plan {
    /// The layout of the plan.
    pub(super) format: u32,
    pub(super) name: String,
    /// The version of skctl that made it: another one makes other runs.
    pub(super) version: String,
    /// The trace: a URL, an example, or an absolute path.
    pub(super) trace: String,
    /// Where the records go, in a folder by run id each.
    pub(super) to: String,
    /// Do warnings fail a run?
    pub(super) strict: bool,
    /// What was assumed for all runs.
    pub(super) assumptions: Vec<Warning>,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Line {
    /// Its number in the plan, counted from 0; the index of a Job.
    pub(super) index: usize,
    /// Empty if there is only one variant.
    pub(super) variant: String,
    /// The folder in the plan that holds its scenario.
    pub(super) folder: String,
    pub(super) seed: u64,
    /// What the run is called.
    pub(super) name: String,
    pub(super) run_id: String,
}

impl Line {
    /// What people see of it: `max=36 seed 7`.
    pub(super) fn label(&self) -> String {
        format!("{} seed {}", self.variant, self.seed).trim_start().to_owned()
    }
}

/// A plan and its runs, in its folder.
#[derive(Debug)]
pub(super) struct Sweep {
    pub(super) dir: PathBuf,
    pub(super) plan: Plan,
    pub(super) lines: Vec<Line>,
}

impl Sweep {
    /// Reads the plan in a folder.
    pub(super) fn open(dir: &Path) -> Result<Self> {
        let what = || format!("{} contains no plan of a sweep; `skctl sweep plan` makes one", dir.display());
        let plan: Plan = serde_json::from_str(&read(&dir.join(PLAN)).with_context(what)?).with_context(what)?;
        if plan.format != FORMAT {
            bail!("{} is a plan of another version of skctl ({}); make a new one", dir.display(), plan.version);
        }
        let text = read(&dir.join(RUNS)).with_context(what)?;
        let parse = |(number, line): (usize, &str)| -> Result<Line> {
            let line: Line = serde_json::from_str(line).with_context(|| format!("{RUNS}, line {}", number + 1))?;
            if line.index != number || !is_plain(&line.folder) || !is_plain(&line.run_id) {
                bail!("{RUNS}, line {}: not a line that `skctl sweep plan` writes", number + 1);
            }
            Ok(line)
        };
        let lines = text.lines().enumerate().map(parse).collect::<Result<Vec<_>>>().with_context(what)?;
        Ok(Self { dir: dir.to_owned(), plan, lines })
    }

    /// The scenario of a run.
    pub(super) fn scenario(&self, line: &Line) -> PathBuf {
        self.dir.join(&line.folder).join(SCENARIO)
    }

    /// Writes `plan.json` and `runs.jsonl`; the folders of the variants are there already.
    pub(super) fn write(&self) -> Result<()> {
        let lines = self.lines.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
        put(&self.dir.join(RUNS), (lines.join("\n") + "\n").as_bytes())?;
        // Last: without it the folder is not a plan.
        put(&self.dir.join(PLAN), (serde_json::to_string_pretty(&self.plan)? + "\n").as_bytes())
    }
}

impl Plan {
    pub(super) fn new(name: String, trace: String, to: String, strict: bool, assumptions: Vec<Warning>) -> Self {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Self { format: FORMAT, name, version, trace, to, strict, assumptions }
    }
}

/// Is it the name of a file or a folder, and of nothing above or below?
fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0'])
}

pub(super) fn put(path: &Path, content: &[u8]) -> Result<()> {
    fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}

fn read(path: &Path) -> Result<String> {
    let mut text = String::new();
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    file.take(MAX_BYTES + 1).read_to_string(&mut text).with_context(|| format!("cannot read {}", path.display()))?;
    if text.len() as u64 > MAX_BYTES {
        bail!("{} is longer than any plan", path.display());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep(dir: &Path) -> Sweep {
        let line = |index: usize| Line {
            index,
            variant: "max=36".into(),
            folder: "v0".into(),
            seed: 7,
            name: "pack".into(),
            run_id: format!("pack-00000{index}"),
        };
        let plan = Plan::new("pack".into(), "example:nginx".into(), "runs".into(), false, Vec::new());
        Sweep { dir: dir.to_owned(), plan, lines: vec![line(0), line(1)] }
    }

    #[test]
    fn a_plan_reads_back_as_it_was_written() {
        let dir = tempfile::tempdir().unwrap();
        let written = sweep(dir.path());
        written.write().unwrap();
        let read = Sweep::open(dir.path()).unwrap();
        assert_eq!((&read.plan, &read.lines), (&written.plan, &written.lines));
        assert_eq!(read.lines[1].label(), "max=36 seed 7");
    }

    #[test]
    fn what_leads_out_of_the_plan_or_is_none_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert!(format!("{:#}", Sweep::open(dir.path()).unwrap_err()).contains("skctl sweep plan"));
        for broken in [
            Line { run_id: "../../home".into(), ..sweep(dir.path()).lines[1].clone() },
            Line { folder: "..".into(), ..sweep(dir.path()).lines[1].clone() },
            Line { index: 7, ..sweep(dir.path()).lines[1].clone() },
        ] {
            let mut sweep = sweep(dir.path());
            sweep.lines[1] = broken;
            sweep.write().unwrap();
            let refused = format!("{:#}", Sweep::open(dir.path()).unwrap_err());
            assert!(refused.contains("line 2"), "{refused}");
        }
        let mut newer = sweep(dir.path());
        newer.plan.format = 2;
        newer.write().unwrap();
        assert!(format!("{:#}", Sweep::open(dir.path()).unwrap_err()).contains("another version"));
    }
}

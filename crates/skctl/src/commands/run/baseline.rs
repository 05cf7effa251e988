//! The run that another one is compared with: its figures come from its record or from the same command.
//!
//! A run that was compared keeps these figures in its folder, so its report stays the same when the other run is deleted.

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use sk_record::Run;
use sk_report::Analysis;
use sk_report::figure::{Figure, ToFigure, Typed};

use crate::runs;

/// The file in a run folder with the figures of the run that it was compared with.
pub(crate) const FILE: &str = "baseline.json";

/// A run to compare with.
#[derive(Clone, Debug)]
pub(crate) struct Baseline {
    run_id: String,
    pub(crate) figures: Figure,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    run_id: String,
    figures: Typed,
}

impl Baseline {
    /// The run that people name: a folder, a name under ./runs, `@` for the newest.
    pub(crate) fn of_run(typed: &str) -> Result<Self> {
        let found = runs::resolve(typed).context("--baseline")?;
        let run = Run::open(found.dir())?;
        if run.meta().partial {
            bail!(
                "--baseline {typed}: that run was stopped before its end, so nothing can be compared with it; run it again"
            );
        }
        Ok(Self::of(&Analysis::of(&run)?))
    }

    /// A run that has just ended.
    pub(crate) fn of(analysis: &Analysis) -> Self {
        Self { run_id: analysis.meta.run_id.clone(), figures: analysis.summary.figure() }
    }

    /// The run that this one was compared with when it was judged.
    pub(crate) fn kept(run: &Run) -> Result<Option<Self>> {
        let Some(bytes) = run.file(FILE)? else { return Ok(None) };
        let kept: Kept = serde_json::from_slice(&bytes)
            .with_context(|| format!("the run's {FILE} cannot be read; run it again with --baseline"))?;
        Ok(Some(Self { run_id: kept.run_id, figures: kept.figures.into() }))
    }

    /// As it is kept.
    pub(crate) fn to_json(&self) -> Result<Vec<u8>> {
        Ok(serde_json::to_vec(&Kept { run_id: self.run_id.clone(), figures: Typed::from(&self.figures) })?)
    }
}

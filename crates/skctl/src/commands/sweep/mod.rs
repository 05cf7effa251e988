//! `skctl sweep`: many runs, planned once and made one by one.
//!
//! ```text
//!  TRACE, SCENARIO, --vary, -N ──plan──▶ plan folder ──run──▶ records by run id ──▶ compare, report, list
//!                                         runs.jsonl           (a folder, or an object store)
//! ```
//!
//! A plan is a list of runs, each with its resolved scenario, its seed and its run id. A run id is a hash of everything that
//! a run depends on, so whoever makes a run needs nobody else: a sweep is stopped by stopping it and resumed by running it
//! again, on this machine or on many.
//!
//! | module | what it owns |
//! |---|---|
//! | [`plan`] | `sweep plan`: which runs there are |
//! | [`file`] | the plan's folder |
//! | [`manifests`] | a ConfigMap and an Indexed Job that carry a plan out |
//! | [`place`] | where records lie: a folder or an object store |
//! | [`patience`] | waiting for an object store that does not answer |
//! | [`records`] | which records a plan, a folder or a URL stands for |
//! | [`run`] | `sweep run`: the runs that are missing, several at a time |
//! | [`status`] | `sweep status` |
//! | [`fetch`] | `sweep fetch` |

mod fetch;
mod file;
mod manifests;
mod patience;
mod place;
mod plan;
pub(crate) mod records;
mod run;
mod status;

use anyhow::Result;

use crate::cli::{Global, SweepCommand};
use crate::failure::Outcome;

pub(crate) fn run(command: &SweepCommand, global: &Global) -> Result<Outcome> {
    match command {
        SweepCommand::Plan(args) => plan::run(args, global),
        SweepCommand::Run(args) => run::run(args, global),
        SweepCommand::Status(args) => status::run(args),
        SweepCommand::Fetch(args) => fetch::run(args, global),
    }
}

//! `skctl sweep`: many runs, planned once and made one by one.
//!
//! ```text
//!  TRACE, SCENARIO, --vary, -N ──plan──▶ plan folder ──run──▶ records by run id ──▶ compare, report, list
//!                                         runs.jsonl           (a folder, or an object store)
//! ```
//!
//! A plan is a list of runs, each with its resolved scenario, its seed and its run id. The run id is a hash of everything
//! that the run depends on, so runs need no coordination: stop a sweep at any time and run it again to continue, on one
//! machine or on many.
//!
//! | module | what it owns |
//! |---|---|
//! | [`plan`] | `sweep plan`: which runs there are |
//! | [`file`] | the plan's folder |
//! | [`manifests`] | the ConfigMap and the Indexed Job that execute a plan |
//! | [`place`] | the location of records: a folder or an object store |
//! | [`patience`] | retries while an object store is unreachable |
//! | [`records`] | the records that a plan, a folder or a URL refers to |
//! | [`run`] | `sweep run`: the runs that are missing, several at a time |
//! | [`status`] | `sweep status` |
//! | [`fetch`] | `sweep fetch` |

mod fetch;
mod file;
mod location;
mod manifests;
mod plan;
pub(crate) mod records;
mod retry;
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

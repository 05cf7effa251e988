//! Run records: what a simulation did, on disk, the same for both engines.
//!
//! A record is a folder: `run.json` (the inputs and how far to trust the result), six Parquet tables (what happened)
//! and the files that the caller adds. The tables stream: memory does not grow with the length of a run. A record
//! holds no wall time, host or path, so the same inputs give the same bytes. It is written under a temporary name and
//! renamed, so it appears only when it is complete.
//!
//! Nothing here computes a figure or prints a report: sk-report does, from the record alone.
//!
//! | module | what it owns |
//! |---|---|
//! | [`rows`] | one row of each table: start here |
//! | [`meta`] | `run.json` |
//! | [`writer`] | [`Writer`] → [`Staged`] → a published folder |
//! | [`reader`] | [`Run`]: meta and row iterators |
//! | [`archive`] | a record as one stream of bytes, to send it elsewhere |
//! | [`resolve`] | what `@`, `@2`, a name or a folder mean |
//! | [`error`] | what can go wrong, and what to do then |

pub mod archive;
mod column;
pub mod error;
mod folder;
pub mod meta;
pub mod reader;
pub mod resolve;
pub mod rows;
mod stale;
pub mod writer;

pub use column::{Column, Kind, Row, TEXT_MAX_BYTES};
pub use error::Error;
pub use meta::{Autoscaler, Basis, Engine, Group, Happened, Missing, MissingWhy, RunMeta, Trace, Warning, WarningKind};
pub use reader::{Rows, Run};
pub use resolve::{find_runs, resolve, runs_of_name};
pub use rows::{
    AutoscalerRow, Decided, DecisionRow, EndedBy, EventRow, Explained, NodeRow, Outcome, PodRow, SeriesRow, Trigger,
};
pub use writer::{Staged, Writer};

//! A window of the log as a trace: the whole state at its start, then everything that happened until its end.
//!
//! Two passes over the segments. The first ([`survey`]) keeps the heads of what there was in the window: names and owners
//! of objects, and of each pod only where the last that is told of it stands. From the heads [`judge`] decides what is
//! exported, because an owner's event may come after its child's. The second ([`write`]) writes records, one body in
//! memory at a time, and gives each pod, when it comes to its place, to [`rows`], which keeps a few numbers of it and lays
//! the rest aside on disk. Memory grows with the distinct objects and pods of the window, not with its events, and both
//! have a limit ([`survey::Limits`]).

mod judge;
mod query;
mod rows;
mod survey;
mod write;

pub use query::{ExportError, Exported, Query};

use std::io::Write as Output;
use std::path::Path;

use super::catalog::Contents;
use crate::trace::Format;
use crate::trace::spool::SpoolFolder;
use survey::{Limits, Survey};
use write::Material;

/// Exports what `query` asks for of a log with these contents.
pub(super) fn export(
    folder: &Path,
    contents: &Contents,
    query: &Query,
    format: Format,
    out: impl Output,
) -> Result<Exported, ExportError> {
    let (query, before) = query.within(contents)?;
    let segments = contents.since(query.start);
    let (survey, damages) = Survey::of(&query, &segments, Limits::default())?;
    let mut gaps = query.gaps_of(contents, &damages);
    gaps.splice(0..0, before);
    let material = Material {
        survey: &survey,
        verdicts: &survey.judge(&query),
        gaps: &gaps,
        damages: &damages,
        segments,
        folder: SpoolFolder::at(folder),
    };
    write::write(&query, format, out, &material)
}

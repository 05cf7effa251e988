//! Exports a window of the log as a trace: the complete state at its start, then every change until its end.
//!
//! There are two passes over the segments. The first ([`survey`]) collects the heads of everything that existed in the
//! window: names and owners of objects, and for each pod only the position of its last entry. From these, [`judge`] decides
//! what is exported, because an owner's event can come after its child's. The second ([`write`]) writes the records, with
//! one body in memory at a time, and hands each pod at its position to [`rows`], which keeps a few numbers of it and puts
//! the rest into a temporary file. Memory grows with the distinct objects and pods of the window, not with its events, and
//! both have a limit ([`survey::Limits`]).

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

//! A window of the log as a trace: the whole state at its start, then everything that happened until its end.
//!
//! Two passes over the segments. The first ([`survey`]) keeps the heads of what there was in the window: names, owners,
//! pods; from them [`judge`] decides what is exported, because an owner's event may come after its child's. The second
//! ([`write`]) writes records, one body in memory at a time, and [`rows`] what is known of pods and nodes. Memory grows
//! with the distinct objects and pods of the window, not with its events.

mod judge;
mod query;
mod rows;
mod survey;
mod write;

pub use query::{ExportError, Exported, Query};

use std::io::Write as Output;

use super::catalog::Contents;
use super::timeline::Items;
use crate::trace::Format;
use survey::Survey;

/// Exports what `query` asks for of a log with these contents.
pub(super) fn export(
    contents: &Contents,
    query: &Query,
    format: Format,
    out: impl Output,
) -> Result<Exported, ExportError> {
    query.check(contents)?;
    let segments = contents.since(query.start);
    let mut items = Items::new(segments.clone());
    let survey = Survey::of(query, &mut items);
    let verdicts = survey.judge(query);
    write::write(
        query,
        format,
        out,
        &write::Material {
            survey: &survey,
            verdicts: &verdicts,
            gaps: &query.gaps_of(&contents.gaps, items.damages()),
            damages: items.damages(),
            segments,
        },
    )
}

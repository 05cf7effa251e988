//! The reader: reads the log from any thread, while it is being written.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use sk_core::SimTime;

use super::catalog::{Catalog, Contents, Listed};
use super::export::{self, ExportError, Exported, Query};
use super::timeline::Items;
use crate::trace::Format;

/// Reads a log up to its last sync. Cheap to clone and to send.
#[derive(Clone, Debug)]
pub struct Reader {
    catalog: Arc<Catalog>,
    /// Where the log lies: exports keep there what is too much for memory.
    folder: Arc<Path>,
}

impl Reader {
    pub(super) fn new(catalog: Arc<Catalog>, folder: &Path) -> Self {
        Self { catalog, folder: folder.into() }
    }

    /// The first moment that can be exported and the moment of the newest entry; `None` if nothing is recorded yet.
    pub fn kept(&self) -> Option<(SimTime, SimTime)> {
        let contents = self.catalog.lock();
        let from = contents.kept_from()?;
        Some((from, contents.newest.map_or(from, |(_, at)| at)))
    }

    /// Everything in the log as it is now, beginning with the oldest state that is kept.
    pub fn items(&self) -> Items {
        Items::new(self.contents().segments)
    }

    /// The segments that can be read now.
    pub(super) fn contents(&self) -> Contents {
        self.catalog.snapshot()
    }

    /// Writes a part of the history as a trace. Needs room in the log's folder, at most for the state at the start, a
    /// few hundred bytes for each pod of the window, and for v2 for the whole trace.
    pub fn export(&self, query: &Query, format: Format, out: impl Write) -> Result<Exported, ExportError> {
        export::export(&self.folder, &self.contents(), query, format, out)
    }
}

impl Contents {
    /// The segments that tell of the time from `start` on: the last one that begins before it, and all after that.
    pub(super) fn since(&self, start: SimTime) -> Vec<Listed> {
        let after = self.segments.partition_point(|segment| segment.file.header.begins_at < start);
        self.segments[after.saturating_sub(1)..].to_vec()
    }
}

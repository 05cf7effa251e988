//! The segments of a log and how much of each can be read; shared by the writer and its readers.
//!
//! A segment that retention removes is deleted when the last reader that started before is done with it. After a crash
//! it is still on disk, and retention removes it again.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sk_core::{Gvk, SimTime};

use super::segment::SegmentHeader;
use super::state::State;
use crate::trace::Gap;

/// How segments' names end; before it stands their number, so that names sort as segments do.
const EXTENSION: &str = "sklog";

/// How the name of a segment ends that could not be read and was put out of the way.
pub(super) const DAMAGED_EXTENSION: &str = "damaged";

/// How the name of a segment ends whose beginning is being written.
pub(super) const UNFINISHED_EXTENSION: &str = "new";

/// The list of readable segments.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    contents: Mutex<Contents>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Contents {
    /// The segments, oldest first.
    pub(super) segments: Vec<Listed>,
    /// What was missed.
    pub(super) gaps: Vec<Gap>,
    /// The kinds of which nothing is seen even now, and since when.
    pub(super) lost: Vec<(Gvk, SimTime)>,
    /// Since when nothing can be written, if that is so.
    pub(super) stopped: Option<SimTime>,
    /// Number and moment of the newest entry.
    pub(super) newest: Option<(u64, SimTime)>,
}

/// A segment, and how much of it may be read.
#[derive(Clone, Debug)]
pub(super) struct Listed {
    pub(super) file: Arc<SegmentFile>,
    pub(super) len: u64,
}

/// A segment's file.
#[derive(Debug)]
pub(super) struct SegmentFile {
    pub(super) path: PathBuf,
    pub(super) header: SegmentHeader,
    /// Is it to be removed after its last reader?
    given_up: AtomicBool,
}

impl SegmentFile {
    pub(super) fn new(path: PathBuf, header: SegmentHeader) -> Self {
        Self { path, header, given_up: AtomicBool::new(false) }
    }

    pub(super) fn give_up(&self) {
        self.given_up.store(true, Ordering::Release);
    }
}

impl Drop for SegmentFile {
    fn drop(&mut self) {
        if self.given_up.load(Ordering::Acquire) {
            // Should it fail, the next opening finds the segment and retention gives it up again.
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Catalog {
    /// The contents, to look at or to change; held for as long as that takes.
    pub(super) fn lock(&self) -> MutexGuard<'_, Contents> {
        // Nobody panics with it in hand, and it is whole after every statement.
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The contents as they are now.
    pub(super) fn snapshot(&self) -> Contents {
        self.lock().clone()
    }
}

impl Contents {
    /// How many bytes all segments have on disk.
    pub(super) fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.len).sum()
    }

    /// Is everything kept that was ever recorded?
    pub(super) fn is_whole(&self) -> bool {
        self.segments.first().is_some_and(|segment| segment.file.header.previous_seq == 0)
    }

    /// Takes over what `state` says was missed, and is.
    pub(super) fn take_gaps(&mut self, state: &State) {
        if self.gaps != state.gaps() {
            self.gaps = state.gaps().to_vec();
        }
        self.lost = state.lost().map(|(gvk, since)| (gvk.clone(), since)).collect();
    }

    /// The first moment that is kept.
    pub(super) fn kept_from(&self) -> Option<SimTime> {
        self.segments.first().map(|segment| segment.file.header.begins_at)
    }
}

/// The path of the segment with that number.
pub(super) fn segment_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:010}.{EXTENSION}"))
}

/// The number of a segment, if the path is one's.
pub(super) fn segment_number(path: &Path) -> Option<u64> {
    numbered(path, EXTENSION)
}

/// Is it the rest of a segment whose creation was interrupted?
pub(super) fn is_unfinished(path: &Path) -> bool {
    numbered(path, UNFINISHED_EXTENSION).is_some()
}

/// The number before that extension. Other files in the folder are other people's.
fn numbered(path: &Path, extension: &str) -> Option<u64> {
    let stem = path.file_stem().filter(|_| path.extension().is_some_and(|found| found == extension))?;
    stem.to_str()?.parse().ok()
}

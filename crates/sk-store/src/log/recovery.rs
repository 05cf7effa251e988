//! Opens a log: finds the newest readable state, and cuts or puts aside what is damaged.
//!
//! Only the newest segment is read completely, of the others the headers. Damage in an older segment shows when
//! somebody reads it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sk_core::SimTime;

use super::catalog::{self, Listed, SegmentFile};
use super::error::LogError;
use super::segment::{Blocks, SegmentFault, SegmentHeader};
use super::state::State;

/// What opening a log has found and done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Number and moment of the newest entry; `None` if the log is new.
    pub newest: Option<(u64, SimTime)>,
    /// How many bytes were cut off the newest segment, because a block in it is not whole: a crash has torn it, or it is
    /// damaged. Watching goes on from the positions before it, so what was lost is seen again or becomes a gap.
    pub cut_bytes: u64,
    /// Segments that cannot be read and were renamed, each with the reason.
    pub put_aside: Vec<(PathBuf, String)>,
}

/// A log as it lies on disk.
pub(super) struct Found {
    pub(super) state: State,
    pub(super) segments: Vec<Listed>,
    pub(super) newest: Option<(u64, SimTime)>,
    pub(super) next_segment: u64,
    pub(super) recovered: Recovered,
}

/// A segment that was read through.
struct Replayed {
    state: State,
    newest: (u64, SimTime),
    /// How much of it is whole.
    good: u64,
}

/// Reads what lies in `folder`, and puts it in order.
pub(super) fn recover(folder: &Path) -> Result<Found, LogError> {
    let mut recovered = Recovered::default();
    let numbers = list(folder)?;
    let next_segment = numbers.last().map_or(1, |last| last + 1);
    let mut segments = Vec::new();
    for number in numbers {
        let path = catalog::segment_path(folder, number);
        match open_segment(&path) {
            Ok(segment) => segments.push(segment),
            Err(fault) => put_aside(&mut recovered, path, fault)?,
        }
    }
    while let Some(newest) = segments.last_mut() {
        match replay(newest) {
            Ok(replayed) => {
                recovered.cut_bytes = newest.len - replayed.good;
                cut(newest, replayed.good)?;
                recovered.newest = Some(replayed.newest);
                let newest = recovered.newest;
                return Ok(Found { state: replayed.state, segments, newest, next_segment, recovered });
            }
            Err(fault) => {
                let path = newest.file.path.clone();
                segments.pop();
                put_aside(&mut recovered, path, fault)?;
            }
        }
    }
    Ok(Found { state: State::default(), segments, newest: None, next_segment, recovered })
}

/// The numbers of the segments, in order. What is left of a segment that never began is removed.
fn list(folder: &Path) -> Result<Vec<u64>, LogError> {
    let refused = |source| LogError::Folder { path: folder.to_owned(), source };
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder).map_err(refused)? {
        let path = entry.map_err(refused)?.path();
        if catalog::is_unfinished(&path) {
            fs::remove_file(&path).map_err(refused)?;
        }
        numbers.extend(catalog::segment_number(&path));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

fn open_segment(path: &Path) -> Result<Listed, SegmentFault> {
    let len = fs::metadata(path).map_err(SegmentFault::Io)?.len();
    let header: SegmentHeader = *Blocks::open(path, len)?.header();
    Ok(Listed { file: Arc::new(SegmentFile::new(path.to_owned(), header)), len })
}

/// Reads a segment through, as far as it is whole.
fn replay(segment: &Listed) -> Result<Replayed, SegmentFault> {
    let mut blocks = Blocks::open(&segment.file.path, segment.len)?;
    let mut state = State::default();
    let header = segment.file.header;
    let mut newest = (header.first_seq.saturating_sub(1), header.begins_at);
    loop {
        match blocks.next() {
            Ok(Some(block)) => {
                for (at, fact) in block.facts {
                    state.apply(at, fact);
                    if block.are_entries {
                        newest = (newest.0.saturating_add(1), at);
                    }
                }
            }
            Ok(None) if blocks.has_state() => break,
            Err(SegmentFault::Corrupt(_)) if blocks.has_state() => break,
            Ok(None) => return Err(crate::varint::Corrupt("it ends before its state does").into()),
            Err(fault) => return Err(fault),
        }
    }
    Ok(Replayed { state, newest, good: blocks.good() })
}

/// Cuts off what is not whole, so that the segment is whole from now on.
fn cut(segment: &mut Listed, good: u64) -> Result<(), LogError> {
    if segment.len == good {
        return Ok(());
    }
    let path = &segment.file.path;
    let done = File::options().write(true).open(path).and_then(|file| {
        file.set_len(good)?;
        file.sync_all()
    });
    done.map_err(|source| LogError::Write { path: path.clone(), source })?;
    segment.len = good;
    Ok(())
}

/// Renames a segment that cannot be read. One that a newer version or a healthier disk could read is left alone.
fn put_aside(recovered: &mut Recovered, path: PathBuf, fault: SegmentFault) -> Result<(), LogError> {
    match fault {
        SegmentFault::Newer(version) => Err(LogError::Newer { path, version }),
        SegmentFault::Io(source) => Err(LogError::Read { path, source }),
        SegmentFault::Corrupt(reason) => {
            let aside = path.with_extension(catalog::DAMAGED_EXTENSION);
            fs::rename(&path, &aside).map_err(|source| LogError::Write { path, source })?;
            recovered.put_aside.push((aside, reason.to_string()));
            Ok(())
        }
    }
}

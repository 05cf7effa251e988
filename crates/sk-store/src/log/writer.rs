//! The writer: one owner, which appends, syncs and applies retention.

use std::fs::{DirBuilder, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sk_core::SimTime;

use super::catalog::{Catalog, Listed, SegmentFile, segment_path};
use super::codec;
use super::error::LogError;
use super::fact::{Fact, Watched};
use super::options::{ENTRIES_PER_STATE, Options, SEGMENTS_KEPT};
use super::reader::Reader;
use super::recovery::{self, Found, Recovered};
use super::segment::{MAX_ENTRY_BYTES, SegmentHeader, SegmentWriter, VERSION, for_the_owner_alone};
use super::state::State;
use crate::trace::Gap;

/// Held locked for as long as a process writes the log.
const LOCK_FILE: &str = "lock";

/// A log that can be written.
pub struct Log {
    folder: PathBuf,
    options: Options,
    catalog: Arc<Catalog>,
    state: State,
    active: Option<Active>,
    next_segment: u64,
    next_seq: u64,
    /// The number of the last entry that is on disk for certain.
    synced_seq: u64,
    last_at: Option<SimTime>,
    synced_at: Option<SimTime>,
    stopped: bool,
    /// Reused: one encoded fact.
    bytes: Vec<u8>,
    _lock: File,
}

/// The segment that is being written.
struct Active {
    writer: SegmentWriter,
    file: Arc<SegmentFile>,
}

/// How much the log holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Bytes on disk.
    pub bytes: u64,
    /// In how many files.
    pub segments: usize,
    /// The number of the newest entry: how many were ever appended.
    pub entries: u64,
    /// The oldest moment that can be exported.
    pub kept_from: Option<SimTime>,
    /// The moment of the newest entry that is on disk.
    pub kept_to: Option<SimTime>,
}

impl Log {
    /// Opens the log in `folder`, which is made if it is not there. Nobody else may write it meanwhile.
    pub fn open(folder: &Path, options: Options) -> Result<(Self, Recovered), LogError> {
        let refused = |source| LogError::Folder { path: folder.to_owned(), source };
        make_folder(folder).map_err(refused)?;
        let lock = for_the_owner_alone().create(true).truncate(true).write(true).open(folder.join(LOCK_FILE));
        let lock = lock.map_err(refused)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LogError::Locked { path: folder.to_owned() }),
            Err(TryLockError::Error(source)) => return Err(refused(source)),
        }
        let Found { state, segments, newest, next_segment, recovered } = recovery::recover(folder)?;
        let catalog = Arc::new(Catalog::default());
        {
            let mut contents = catalog.lock();
            contents.segments = segments;
            contents.take_gaps(&state);
            contents.newest = newest;
        }
        let (last_seq, last_at) = newest.unzip();
        let last_seq = last_seq.unwrap_or(0);
        let log = Self {
            folder: folder.to_owned(),
            options,
            catalog,
            state,
            active: None,
            next_segment,
            next_seq: last_seq + 1,
            synced_seq: last_seq,
            last_at,
            synced_at: last_at,
            stopped: false,
            bytes: Vec::new(),
            _lock: lock,
        };
        Ok((log, recovered))
    }

    /// The state after all appended facts.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// A reading end, for any thread; it sees what was synced.
    pub fn reader(&self) -> Reader {
        Reader::new(Arc::clone(&self.catalog), &self.folder)
    }

    /// Adds a fact and answers its number. It is safe after the next [`Log::sync`]. A moment before the last entry's
    /// becomes the last entry's: the order of a log is the order of its times.
    ///
    /// [`State`] takes every fact in, also while recording is stopped, so that nothing but history is missing when it
    /// resumes.
    pub fn append(&mut self, at: SimTime, fact: Fact) -> Result<u64, LogError> {
        self.bytes.clear();
        codec::put(&mut self.bytes, &fact);
        if self.bytes.len() > MAX_ENTRY_BYTES {
            let (what, bytes) = (name_of(&fact), self.bytes.len());
            return Err(LogError::TooLarge { what, bytes, limit: MAX_ENTRY_BYTES });
        }
        let at = self.last_at.map_or(at, |last| last.max(at));
        let written = self.write(at);
        self.state.apply(at, fact);
        written?;
        self.last_at = Some(at);
        let seq = self.next_seq;
        self.next_seq += 1;
        Ok(seq)
    }

    /// Writes the encoded fact.
    fn write(&mut self, at: SimTime) -> Result<(), LogError> {
        if self.stopped {
            return Err(LogError::Stopped { since: self.synced_at.unwrap_or_default() });
        }
        if self.active.as_ref().is_none_or(|active| self.is_full(active, at)) {
            self.begin_segment(self.last_at.unwrap_or(at))?;
        }
        let Some(active) = &mut self.active else { return Ok(()) };
        let path = &active.file.path;
        let written =
            active.writer.append(at, &self.bytes).map_err(|source| LogError::Write { path: path.clone(), source });
        written.inspect_err(|_| self.stop())
    }

    /// Is it time for a new segment?
    fn is_full(&self, active: &Active, at: SimTime) -> bool {
        let (entries, state) = active.writer.raw_bytes();
        let enough = self.options.segment_bytes.max(state.saturating_mul(ENTRIES_PER_STATE));
        let large = entries >= enough || active.writer.len() >= self.options.bytes / SEGMENTS_KEPT && entries >= state;
        large || at.since(active.file.header.begins_at) >= self.options.longest_segment()
    }

    /// Ends the active segment and begins the next with the state as it is.
    fn begin_segment(&mut self, begins_at: SimTime) -> Result<(), LogError> {
        self.sync()?;
        self.active = None;
        let path = segment_path(&self.folder, self.next_segment);
        let header =
            SegmentHeader { version: VERSION, first_seq: self.next_seq, previous_seq: self.synced_seq, begins_at };
        let created = SegmentWriter::create(&path, &header, &self.state);
        let writer = match created {
            Ok(writer) => writer,
            Err(source) => {
                self.stop();
                return Err(LogError::Write { path, source });
            }
        };
        self.next_segment += 1;
        let file = Arc::new(SegmentFile::new(path, header));
        self.catalog.lock().segments.push(Listed { file: Arc::clone(&file), len: writer.len() });
        self.active = Some(Active { writer, file });
        Ok(())
    }

    /// Puts everything that was appended on disk, for readers and against crashes.
    pub fn sync(&mut self) -> Result<(), LogError> {
        if self.stopped {
            return Err(LogError::Stopped { since: self.synced_at.unwrap_or_default() });
        }
        let Some(active) = self.active.as_mut().filter(|_| self.synced_seq + 1 < self.next_seq) else { return Ok(()) };
        if let Err(source) = active.writer.sync() {
            let path = active.file.path.clone();
            self.stop();
            return Err(LogError::Write { path, source });
        }
        self.synced_seq = self.next_seq - 1;
        self.synced_at = self.last_at;
        self.publish();
        Ok(())
    }

    /// Shows readers what is on disk.
    fn publish(&self) {
        let mut contents = self.catalog.lock();
        if let (Some(active), Some(listed)) = (&self.active, contents.segments.last_mut()) {
            listed.len = active.writer.len();
        }
        contents.newest = self.last_at.map(|at| (self.synced_seq, at));
        contents.take_gaps(&self.state);
    }

    /// Nothing is written from now on. The segment ends with what was synced.
    fn stop(&mut self) {
        self.stopped = true;
        if let Some(active) = self.active.take() {
            active.writer.cut();
        }
        let mut contents = self.catalog.lock();
        contents.stopped = self.synced_at.or(contents.kept_from());
    }

    /// Is recording stopped because a write failed?
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Tries to record again after a write failed: begins a new segment with the state as it is `now`, and records that
    /// everything since the last synced entry was missed.
    pub fn resume(&mut self, now: SimTime) -> Result<(), LogError> {
        if !self.stopped {
            return Ok(());
        }
        let now = self.last_at.map_or(now, |last| last.max(now));
        let from = self.synced_at.unwrap_or(now);
        let reason = "the log could not be written, perhaps for lack of disk space".to_owned();
        // The gap is part of the state that the segment begins with, so that there is never one without the other.
        self.state.apply(now, Fact::Gap(Gap { from, to: now, kind: None, reason }));
        // A number that was given to a lost entry is not given again, and readers see by the jump that something is lost.
        self.next_seq = self.next_seq.max(self.synced_seq + 2);
        self.stopped = false;
        self.begin_segment(now).inspect_err(|_| self.state.forget_newest_gap())?;
        self.synced_seq = self.next_seq - 1;
        (self.last_at, self.synced_at) = (Some(now), Some(now));
        self.catalog.lock().stopped = None;
        self.publish();
        Ok(())
    }

    /// Gives up the oldest segments: those that ended before what is to be kept, and as many as are too much for the
    /// disk. The one that is being written stays. Answers how many went.
    pub fn retain(&mut self, now: SimTime) -> usize {
        let mut contents = self.catalog.lock();
        let oldest = SimTime::from_micros(now.as_micros().saturating_sub(self.options.age.as_micros()));
        let mut gone = 0;
        while contents.segments.len() > 1 {
            let ended_at = contents.segments[1].file.header.begins_at;
            if ended_at > oldest && contents.bytes() <= self.options.bytes {
                break;
            }
            contents.segments.remove(0).file.give_up();
            gone += 1;
        }
        if let Some(kept_from) = contents.kept_from().filter(|_| gone > 0) {
            self.state.forget_gaps_before(kept_from);
            contents.take_gaps(&self.state);
        }
        gone
    }

    /// How much the log holds.
    pub fn stats(&self) -> Stats {
        let contents = self.catalog.lock();
        Stats {
            bytes: contents.bytes(),
            segments: contents.segments.len(),
            entries: self.next_seq - 1,
            kept_from: contents.kept_from(),
            kept_to: contents.newest.map(|(_, at)| at),
        }
    }
}

impl Drop for Log {
    /// Syncs, so that an orderly end loses nothing. Who wants to hear of a failure syncs before.
    fn drop(&mut self) {
        let _ = self.sync();
    }
}

/// Makes the folder if it is not there, for its owner alone.
fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

/// What a fact is about, for people.
fn name_of(fact: &Fact) -> String {
    match fact {
        Fact::Applied(applied) => applied.object.to_string(),
        Fact::Deleted(deleted) => deleted.object.to_string(),
        Fact::Link(link) => link.object.to_string(),
        Fact::Pod(pod) => format!("Pod {}", pod.pod),
        Fact::Node(node, _) => format!("Node {node}"),
        Fact::Watched(Watched { kind, .. }) | Fact::Lost(kind) => format!("the position in the watch of {kind}"),
        Fact::Unlinked(_) | Fact::Gap(_) => "an entry".to_owned(),
    }
}

//! Writes a segment.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use sk_core::SimTime;
use zstd::stream::raw::CParameter;
use zstd::stream::write::Encoder;

use super::{
    BLOCK_BYTES, BLOCK_FACTS, BlockHeader, BlockKind, HEADER_LEN, LEVEL, MAX_WINDOW_LOG, MIN_WINDOW_LOG, SegmentHeader,
};
use crate::log::catalog::UNFINISHED_EXTENSION;
use crate::log::state::State;
use crate::varint;

/// Appends to a segment. After an error it can only be [`cut`](Self::cut).
pub(in crate::log) struct SegmentWriter {
    file: File,
    path: PathBuf,
    /// How long the file is, in whole blocks.
    len: u64,
    /// How much of that was synced.
    synced_len: u64,
    /// The bytes of the open block collect in its buffer.
    encoder: Encoder<'static, Vec<u8>>,
    /// The raw bytes of the open block.
    open_bytes: usize,
    /// How many facts it has.
    open_facts: usize,
    /// The raw bytes of the state.
    state_bytes: u64,
    /// The raw bytes of all entries.
    entry_bytes: u64,
    /// The moment of the last fact; times are written as differences.
    last_at: SimTime,
    /// Reused: one fact's moment.
    moment: Vec<u8>,
}

impl SegmentWriter {
    /// Begins a segment at `path` with the whole state. Nothing lies there unless all of it does.
    pub(in crate::log) fn create(path: &Path, header: &SegmentHeader, state: &State) -> io::Result<Self> {
        let unfinished = path.with_extension(UNFINISHED_EXTENSION);
        let file = for_the_owner_alone().create(true).truncate(true).write(true).open(&unfinished)?;
        let encoder = encoder(state_size(state))?;
        let mut writer = Self {
            file,
            path: path.to_owned(),
            len: 0,
            synced_len: 0,
            encoder,
            open_bytes: 0,
            open_facts: 0,
            state_bytes: 0,
            entry_bytes: 0,
            last_at: header.begins_at,
            moment: Vec::new(),
        };
        let done = writer.begin(header, state, &unfinished);
        if done.is_err() {
            // What is left of it may hold the room that is missing. A second failure changes nothing.
            let _ = fs::remove_file(&unfinished);
        }
        done.map(|()| writer)
    }

    fn begin(&mut self, header: &SegmentHeader, state: &State, unfinished: &Path) -> io::Result<()> {
        self.file.write_all(&header.encode())?;
        self.len = HEADER_LEN as u64;
        state.encode(header.begins_at, |at, fact| {
            self.push(at, fact)?;
            self.state_bytes += fact.len() as u64;
            if self.is_full() { self.end_block(BlockKind::State) } else { Ok(()) }
        })?;
        self.end_block(BlockKind::StateEnd)?;
        self.synced()?;
        fs::rename(unfinished, &self.path)?;
        sync_folder(&self.path)
    }

    /// Adds an entry.
    pub(in crate::log) fn append(&mut self, at: SimTime, fact: &[u8]) -> io::Result<()> {
        self.push(at, fact)?;
        self.entry_bytes += fact.len() as u64;
        if self.is_full() { self.end_block(BlockKind::Entries) } else { Ok(()) }
    }

    /// Is the open block as large as it should get?
    fn is_full(&self) -> bool {
        self.open_bytes >= BLOCK_BYTES || self.open_facts >= BLOCK_FACTS
    }

    fn push(&mut self, at: SimTime, fact: &[u8]) -> io::Result<()> {
        self.moment.clear();
        varint::put_signed(&mut self.moment, at.since(self.last_at).as_micros());
        let mut length = Vec::with_capacity(10);
        varint::put_len(&mut length, self.moment.len() + fact.len());
        self.encoder.write_all(&length)?;
        self.encoder.write_all(&self.moment)?;
        self.encoder.write_all(fact)?;
        self.open_bytes += length.len() + self.moment.len() + fact.len();
        self.open_facts += 1;
        self.last_at = at;
        Ok(())
    }

    /// Puts everything that was appended on disk.
    pub(in crate::log) fn sync(&mut self) -> io::Result<()> {
        if self.open_bytes > 0 {
            self.end_block(BlockKind::Entries)?;
        }
        self.synced()
    }

    fn synced(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        self.synced_len = self.len;
        Ok(())
    }

    fn end_block(&mut self, kind: BlockKind) -> io::Result<()> {
        self.encoder.flush()?;
        let stored = std::mem::take(self.encoder.get_mut());
        let too_long = |_| io::Error::other("a block is longer than its header can say");
        let header = BlockHeader {
            kind,
            stored_len: u32::try_from(stored.len()).map_err(too_long)?,
            raw_len: u32::try_from(self.open_bytes).map_err(too_long)?,
        };
        self.file.write_all(&header.encode(&stored))?;
        self.file.write_all(&stored)?;
        self.len += (super::BLOCK_HEADER_LEN + stored.len()) as u64;
        self.open_bytes = 0;
        self.open_facts = 0;
        Ok(())
    }

    /// Takes everything away that was not synced: the next segment says that it follows on what was. Should even that
    /// fail, a reader finds a few entries more than that, which do no harm, and the next opening cuts what is torn.
    pub(in crate::log) fn cut(self) {
        let _ = self.file.set_len(self.synced_len);
    }

    /// How long the file is.
    pub(in crate::log) fn len(&self) -> u64 {
        self.len
    }

    /// How many raw bytes of entries it has, and how many of state.
    pub(in crate::log) fn raw_bytes(&self) -> (u64, u64) {
        (self.entry_bytes, self.state_bytes)
    }
}

/// How files of the log are opened: what they tell of a cluster is not for everybody on the machine.
pub(in crate::log) fn for_the_owner_alone() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// How many places with the same hash the compression remembers, as a power of two; 1 is the least.
const REMEMBERED_LOG: u32 = 1;

/// A compression that can find each live object's newest version again, if it may look back that far.
fn encoder(state_bytes: u64) -> io::Result<Encoder<'static, Vec<u8>>> {
    let wanted = state_bytes.saturating_mul(2).max(1).ilog2() + 1;
    let mut encoder = Encoder::new(Vec::new(), LEVEL)?;
    encoder.set_parameter(CParameter::WindowLog(wanted.clamp(MIN_WINDOW_LOG, MAX_WINDOW_LOG)))?;
    encoder.set_parameter(CParameter::EnableLongDistanceMatching(true))?;
    // An object's newest versions are what the next one is like: to compare it with the sixteen that zstd would remember
    // takes half as long again and finds no more.
    encoder.set_parameter(CParameter::LdmBucketSizeLog(REMEMBERED_LOG))?;
    Ok(encoder)
}

fn state_size(state: &State) -> u64 {
    let objects: u64 = state.objects().map(|(_, live)| live.body.len() as u64).sum();
    let nodes: u64 = state.nodes().map(|(_, body)| body.len() as u64).sum();
    objects + nodes
}

/// Makes the renaming of a file as durable as its content.
fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

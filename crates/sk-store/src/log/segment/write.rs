//! Writing a segment.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use sk_core::SimTime;
use zstd::stream::raw::CParameter;
use zstd::stream::write::Encoder;

use super::{
    BLOCK_BYTES, BLOCK_FACTS, BlockHeader, BlockKind, HEADER_LEN, LEVEL, MAX_WINDOW_LOG, MIN_WINDOW_LOG, SegmentHeader,
};
use crate::log::state::State;
use crate::varint;

/// Appends to a segment. After an error it is of no further use; the file then ends with its last whole block.
pub(in crate::log) struct SegmentWriter {
    file: File,
    path: PathBuf,
    /// How long the file is, in whole blocks.
    len: u64,
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
    /// The moment of the last entry; times are written as differences.
    last_at: SimTime,
    /// Reused: one entry's time and length.
    prefix: Vec<u8>,
}

impl SegmentWriter {
    /// Begins a segment at `path` with the whole state. Nothing lies there unless all of it does.
    pub(in crate::log) fn create(path: &Path, header: &SegmentHeader, state: &State) -> io::Result<Self> {
        let unfinished = path.with_extension("new");
        let file = File::create(&unfinished)?;
        let encoder = encoder(state_size(state))?;
        let mut writer = Self {
            file,
            path: path.to_owned(),
            len: 0,
            encoder,
            open_bytes: 0,
            open_facts: 0,
            state_bytes: 0,
            entry_bytes: 0,
            last_at: header.begins_at,
            prefix: Vec::new(),
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
        state.encode(|fact| {
            self.push(&[], fact)?;
            self.state_bytes += fact.len() as u64;
            if self.is_full() { self.end_block(BlockKind::State) } else { Ok(()) }
        })?;
        self.end_block(BlockKind::StateEnd)?;
        self.file.sync_data()?;
        fs::rename(unfinished, &self.path)?;
        sync_folder(&self.path)
    }

    /// Adds an entry.
    pub(in crate::log) fn append(&mut self, at: SimTime, fact: &[u8]) -> io::Result<()> {
        let mut prefix = std::mem::take(&mut self.prefix);
        prefix.clear();
        varint::put_signed(&mut prefix, at.since(self.last_at).as_micros());
        let pushed = self.push(&prefix, fact);
        self.prefix = prefix;
        pushed?;
        self.last_at = at;
        self.entry_bytes += fact.len() as u64;
        if self.is_full() { self.end_block(BlockKind::Entries) } else { Ok(()) }
    }

    /// Is the open block as large as it should get?
    fn is_full(&self) -> bool {
        self.open_bytes >= BLOCK_BYTES || self.open_facts >= BLOCK_FACTS
    }

    fn push(&mut self, prefix: &[u8], fact: &[u8]) -> io::Result<()> {
        let mut length = Vec::with_capacity(10);
        varint::put_len(&mut length, prefix.len() + fact.len());
        self.encoder.write_all(&length)?;
        self.encoder.write_all(prefix)?;
        self.encoder.write_all(fact)?;
        self.open_bytes += length.len() + prefix.len() + fact.len();
        self.open_facts += 1;
        Ok(())
    }

    /// Puts everything that was appended on disk.
    pub(in crate::log) fn sync(&mut self) -> io::Result<()> {
        if self.open_bytes > 0 {
            self.end_block(BlockKind::Entries)?;
        }
        self.file.sync_data()
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
        let written = self
            .file
            .write_all(&header.encode(&stored))
            .and_then(|()| self.file.write_all(&stored))
            .inspect_err(|_| self.cut());
        written?;
        self.len += (super::BLOCK_HEADER_LEN + stored.len()) as u64;
        self.open_bytes = 0;
        self.open_facts = 0;
        Ok(())
    }

    /// Takes a block that could not be written whole away. Should even that fail, the next opening does it.
    fn cut(&self) {
        let _ = self.file.set_len(self.len);
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

/// A compression that can find each live object's newest version again, if it may look back that far.
fn encoder(state_bytes: u64) -> io::Result<Encoder<'static, Vec<u8>>> {
    let wanted = state_bytes.saturating_mul(2).max(1).ilog2() + 1;
    let mut encoder = Encoder::new(Vec::new(), LEVEL)?;
    encoder.set_parameter(CParameter::WindowLog(wanted.clamp(MIN_WINDOW_LOG, MAX_WINDOW_LOG)))?;
    encoder.set_parameter(CParameter::EnableLongDistanceMatching(true))?;
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

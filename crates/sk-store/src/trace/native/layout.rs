//! Checks the layout of a file, so that reading takes time in proportion to its size.
//!
//! A file can come from anybody. Two entries of its directory or of an index must not point to the same block, or it
//! would be read twice: every block starts behind the one before, every chunk lies before its index and behind the last
//! chunk, and sequence numbers rise over all chunks. The number of records and the time span that directory and index
//! claim are compared with their contents, so that nobody plans a replay of a span that the trace only claims.

use sk_core::SimTime;

use super::FILE_HEADER_LEN;
use super::block::BlockHeader;
use super::directory::{BlockEntry, ChunkEntry, Directory};
use crate::varint::Corrupt;

/// What has been passed so far on the way through a directory's blocks and the indexes' chunks.
pub(super) struct Layout {
    /// Where the last listed block ended.
    blocks_end: u64,
    /// Where the last chunk ended.
    chunks_end: u64,
    last_seq: Option<u64>,
    records: u64,
    span: Option<(SimTime, SimTime)>,
}

impl Layout {
    pub(super) fn new() -> Self {
        let start = FILE_HEADER_LEN;
        Self { blocks_end: start, chunks_end: start, last_seq: None, records: 0, span: None }
    }

    /// Passes a block that the directory lists, in a file whose directory is at `directory_at`.
    pub(super) fn block(&mut self, entry: &BlockEntry, header: &BlockHeader, directory_at: u64) -> Result<(), Corrupt> {
        if entry.at < self.blocks_end {
            return Err(Corrupt("the directory lists it twice, or not in the order of the file"));
        }
        let end = entry.at.checked_add(header.block_len()).filter(|end| *end <= directory_at);
        self.blocks_end = end.ok_or(Corrupt("it reaches into the directory"))?;
        if u64::from(header.count) != entry.count {
            return Err(Corrupt("it has not as many entries as the directory says"));
        }
        Ok(())
    }

    /// Passes a chunk of the index at `index_at`.
    pub(super) fn chunk(&mut self, chunk: &ChunkEntry, index_at: u64) -> Result<(), Corrupt> {
        if chunk.at < self.chunks_end {
            return Err(Corrupt("it names a chunk twice, or not in the order of the file"));
        }
        let end = chunk.at.checked_add(chunk.len).filter(|end| *end <= index_at);
        self.chunks_end = end.ok_or(Corrupt("it names a chunk that does not lie before it"))?;
        if self.last_seq.is_some_and(|last| last >= chunk.first_seq) {
            return Err(Corrupt("sequence numbers do not rise from chunk to chunk"));
        }
        // Within a chunk they rise too: so many records need at least so many numbers.
        let numbers = chunk.last_seq.checked_sub(chunk.first_seq).map(|steps| steps.saturating_add(1));
        if chunk.records == 0 || numbers.is_none_or(|numbers| numbers < chunk.records) {
            return Err(Corrupt("it says of a chunk what cannot be: fewer sequence numbers than records"));
        }
        self.last_seq = Some(chunk.last_seq);
        self.records = self.records.saturating_add(chunk.records);
        let (first, last) = self.span.unwrap_or((chunk.earliest, chunk.latest));
        self.span = Some((first.min(chunk.earliest), last.max(chunk.latest)));
        Ok(())
    }

    /// Compares what the directory says of all records with what the indexes say of theirs.
    pub(super) fn finish(self, directory: &Directory) -> Result<(), Corrupt> {
        if self.records != directory.records {
            return Err(Corrupt("it has not as many records as its chunks"));
        }
        if self.span != directory.span {
            return Err(Corrupt("its first and last times are not those of its chunks"));
        }
        Ok(())
    }
}

impl ChunkEntry {
    /// Compares what the index says of a chunk with the chunk's own heads.
    pub(super) fn check(&self, records: u64, bounds: Option<(SimTime, SimTime, u64, u64)>) -> Result<(), Corrupt> {
        if self.records != records {
            return Err(Corrupt("it has not as many records as the index says"));
        }
        if bounds != Some((self.earliest, self.latest, self.first_seq, self.last_seq)) {
            return Err(Corrupt("its times or sequence numbers are not those that the index says"));
        }
        Ok(())
    }
}

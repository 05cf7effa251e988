//! Reads a segment block by block. If a block is damaged, everything before it is still valid.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use sk_core::{SimDuration, SimTime};
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

use super::{
    BLOCK_FACTS, BLOCK_HEADER_LEN, BlockHeader, BlockKind, HEADER_LEN, MAX_WINDOW_LOG, SegmentHeader, VERSION,
    VERSION_1, VERSION_2, VERSION_3, checksum,
};
use crate::log::codec;
use crate::log::fact::Fact;
use crate::varint::{Corrupt, Cursor};

/// Why a segment cannot be read on.
#[derive(Debug, thiserror::Error)]
pub(in crate::log) enum SegmentFault {
    #[error("it cannot be read: {0}")]
    Io(#[source] io::Error),
    #[error(transparent)]
    Corrupt(#[from] Corrupt),
    #[error("it is of version {0}, which only a newer SimKube reads")]
    Newer(u32),
}

/// A segment's blocks, from its beginning on.
pub(in crate::log) struct Blocks<R = BufReader<io::Take<File>>> {
    input: R,
    header: SegmentHeader,
    decoder: Decoder<'static>,
    /// Where the last whole block ends.
    good: u64,
    last_at: SimTime,
    in_state: bool,
    /// Reused: a block as stored, and raw.
    stored: Vec<u8>,
    raw: Vec<u8>,
}

/// One block's facts.
pub(in crate::log) struct Block {
    /// Are they entries, or parts of the state at the segment's beginning?
    pub(in crate::log) are_entries: bool,
    /// Each with its moment.
    pub(in crate::log) facts: Vec<(SimTime, Fact)>,
}

impl Blocks {
    /// Opens a segment, of which `len` bytes are to be read.
    pub(in crate::log) fn open(path: &Path, len: u64) -> Result<Self, SegmentFault> {
        let file = File::open(path).map_err(SegmentFault::Io)?;
        Self::new(BufReader::with_capacity(1 << 17, file.take(len)))
    }
}

impl<R: Read> Blocks<R> {
    pub(in crate::log) fn new(mut input: R) -> Result<Self, SegmentFault> {
        let mut bytes = [0; HEADER_LEN];
        input.read_exact(&mut bytes).map_err(cut_or_io)?;
        let header = SegmentHeader::decode(&bytes)?;
        // A version that is dropped some day is dropped here; until then each has its reader.
        match header.version {
            VERSION_1 | VERSION_2 | VERSION_3 | VERSION => {}
            newer => return Err(SegmentFault::Newer(newer)),
        }
        let mut decoder = Decoder::new().map_err(SegmentFault::Io)?;
        decoder.set_parameter(DParameter::WindowLogMax(MAX_WINDOW_LOG)).map_err(SegmentFault::Io)?;
        Ok(Self {
            input,
            header,
            decoder,
            good: HEADER_LEN as u64,
            last_at: header.begins_at,
            in_state: true,
            stored: Vec::new(),
            raw: Vec::new(),
        })
    }

    /// What the segment says of itself.
    pub(in crate::log) fn header(&self) -> &SegmentHeader {
        &self.header
    }

    /// Where the last whole block ends.
    pub(in crate::log) fn good(&self) -> u64 {
        self.good
    }

    /// Is the whole state read?
    pub(in crate::log) fn has_state(&self) -> bool {
        !self.in_state
    }

    /// The facts of the next block; `None` at the end.
    pub(in crate::log) fn next(&mut self) -> Result<Option<Block>, SegmentFault> {
        let Some(header) = self.next_header()? else { return Ok(None) };
        self.read_stored(&header)?;
        self.decompress(header.raw_len as usize)?;
        let are_entries = header.kind == BlockKind::Entries;
        if are_entries == self.in_state {
            return Err(Corrupt("state and entries are not in order").into());
        }
        let have_moments = are_entries || self.header.version != VERSION_1;
        let facts = decode(&self.raw, have_moments, &mut self.last_at)?;
        self.in_state &= header.kind != BlockKind::StateEnd;
        self.good += (BLOCK_HEADER_LEN + self.stored.len()) as u64;
        Ok(Some(Block { are_entries, facts }))
    }

    fn next_header(&mut self) -> Result<Option<BlockHeader>, SegmentFault> {
        let mut bytes = [0; BLOCK_HEADER_LEN];
        self.stored.clear();
        (&mut self.input).take(BLOCK_HEADER_LEN as u64).read_to_end(&mut self.stored).map_err(SegmentFault::Io)?;
        match self.stored.len() {
            0 => return Ok(None),
            BLOCK_HEADER_LEN => bytes.copy_from_slice(&self.stored),
            _ => return Err(Corrupt("it ends in the middle of a block").into()),
        }
        let header = BlockHeader::decode(&bytes)?;
        // Kept for the checksum, which is of the header too.
        self.raw.clear();
        self.raw.extend_from_slice(&bytes);
        Ok(Some(header))
    }

    fn read_stored(&mut self, header: &BlockHeader) -> Result<(), SegmentFault> {
        self.stored.clear();
        // `take` keeps a lying length from costing more than there is.
        let stored_len = u64::from(header.stored_len);
        (&mut self.input).take(stored_len).read_to_end(&mut self.stored).map_err(SegmentFault::Io)?;
        if (self.stored.len() as u64) < stored_len {
            return Err(Corrupt("it ends in the middle of a block").into());
        }
        let (fields, sum) = self.raw.split_at(12);
        if checksum(fields, &self.stored).to_le_bytes() != sum {
            return Err(Corrupt("its checksum does not match").into());
        }
        Ok(())
    }

    /// Decompresses the stored block. The stream was flushed at its end, so all of it comes out.
    fn decompress(&mut self, raw_len: usize) -> Result<(), SegmentFault> {
        const WRONG: Corrupt = Corrupt("it cannot be decompressed to the length it claims");
        self.raw.clear();
        // One byte more, so that a block that holds more than it claims is noticed. The length is below a limit.
        self.raw.resize(raw_len + 1, 0);
        let mut input = InBuffer::around(&self.stored);
        let mut output = OutBuffer::around(self.raw.as_mut_slice());
        loop {
            let before = (input.pos(), output.pos());
            self.decoder.run(&mut input, &mut output).map_err(|_| WRONG)?;
            if output.pos() > raw_len || (input.pos(), output.pos()) == before {
                break;
            }
        }
        if output.pos() != raw_len || input.pos() != self.stored.len() {
            return Err(WRONG.into());
        }
        self.raw.truncate(raw_len);
        Ok(())
    }
}

/// The facts of a raw block. Each that has a moment begins with how long after the one before that is.
fn decode(raw: &[u8], have_moments: bool, last_at: &mut SimTime) -> Result<Vec<(SimTime, Fact)>, Corrupt> {
    let mut cursor = Cursor::new(raw);
    let mut facts = Vec::new();
    while !cursor.is_empty() {
        if facts.len() >= BLOCK_FACTS {
            return Err(Corrupt("it has more entries than a block may have"));
        }
        let len = cursor.len()?;
        let mut entry = Cursor::new(cursor.bytes(len)?);
        if have_moments {
            *last_at += SimDuration::from_micros(entry.i64()?);
        }
        facts.push((*last_at, codec::read(entry.bytes(entry.len_left())?)?));
    }
    Ok(facts)
}

/// A file that is too short is damaged; anything else is the file system's.
fn cut_or_io(error: io::Error) -> SegmentFault {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Corrupt("it is too short to be one").into(),
        _ => SegmentFault::Io(error),
    }
}

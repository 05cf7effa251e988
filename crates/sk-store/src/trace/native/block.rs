//! One block: its kind, its lengths, the number of things in it, its checksum and its compressed bytes.

use std::io::{self, Read, Write};

use xxhash_rust::xxh3::Xxh3;

use super::{MAX_RAW_BYTES, MAX_STORED_BYTES};
use crate::trace::rows::Section;
use crate::trace::write::WriteError;
use crate::varint::Corrupt;

/// zstd's quickest level: a fifth of level 6's time for files that are 8 to 25 % larger (docs/trace-format.md). Most of what
/// compression could find is gone before: bodies are differences, and heads are columns.
const LEVEL: i32 = 1;

/// Kind, three zero bytes, stored length, raw length, count, checksum.
pub(super) const HEADER_LEN: usize = 24;

/// What a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// What the trace says of itself, as JSON.
    Header,
    /// The heads of a chunk.
    Heads,
    /// The objects of the chunk whose heads come just before.
    Bodies,
    /// Which chunks have which times and objects.
    Index,
    /// Where everything is.
    Directory,
    /// Rows of a section, as JSON Lines.
    Rows(Section),
}

impl Kind {
    pub(super) fn to_byte(self) -> u8 {
        match self {
            Self::Header => 1,
            Self::Heads => 2,
            Self::Bodies => 3,
            Self::Index => 4,
            Self::Directory => 5,
            Self::Rows(Section::Lives) => 16,
            Self::Rows(Section::Observations) => 17,
            Self::Rows(Section::Nodes) => 18,
            Self::Rows(Section::Reserved) => 19,
            Self::Rows(Section::Gaps) => 20,
            Self::Rows(Section::Index) => 21,
        }
    }

    pub(super) fn from_byte(byte: u8) -> Option<Self> {
        let kinds = [Self::Header, Self::Heads, Self::Bodies, Self::Index, Self::Directory];
        kinds.into_iter().chain(Section::ALL.map(Self::Rows)).find(|kind| kind.to_byte() == byte)
    }
}

/// The beginning of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockHeader {
    pub(super) kind: Kind,
    pub(super) stored_len: u32,
    pub(super) raw_len: u32,
    /// How many records or rows are in it.
    pub(super) count: u32,
    checksum: u64,
}

impl BlockHeader {
    fn first_bytes(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[0] = self.kind.to_byte();
        bytes[4..8].copy_from_slice(&self.stored_len.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.raw_len.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.count.to_le_bytes());
        bytes
    }

    /// Reads and checks a header; lengths are within the limits after this.
    pub(super) fn parse(bytes: &[u8; HEADER_LEN]) -> Result<Self, Corrupt> {
        let u32_at = |at: usize| {
            let mut four = [0; 4];
            four.copy_from_slice(&bytes[at..at + 4]);
            u32::from_le_bytes(four)
        };
        let mut checksum = [0; 8];
        checksum.copy_from_slice(&bytes[16..24]);
        let header = Self {
            kind: Kind::from_byte(bytes[0]).ok_or(Corrupt("its kind is unknown"))?,
            stored_len: u32_at(4),
            raw_len: u32_at(8),
            count: u32_at(12),
            checksum: u64::from_le_bytes(checksum),
        };
        if bytes[1..4] != [0; 3] {
            return Err(Corrupt("its header is not as it was written"));
        }
        if header.stored_len as usize > MAX_STORED_BYTES || header.raw_len as usize > MAX_RAW_BYTES {
            return Err(Corrupt("it claims to be larger than a block may be"));
        }
        Ok(header)
    }

    /// The length of the whole block.
    pub(super) fn block_len(&self) -> u64 {
        HEADER_LEN as u64 + u64::from(self.stored_len)
    }

    fn checksum_of(&self, stored: &[u8]) -> u64 {
        let mut hasher = Xxh3::new();
        hasher.update(&self.first_bytes());
        hasher.update(stored);
        hasher.digest()
    }
}

/// A block as it is written.
pub(super) struct Block {
    header: BlockHeader,
    stored: Vec<u8>,
}

impl Block {
    /// Compresses `raw`.
    pub(super) fn new(kind: Kind, count: usize, raw: &[u8]) -> Result<Self, WriteError> {
        let too_large = || WriteError::TooLarge { what: "a block of the trace".into(), limit: MAX_RAW_BYTES };
        if raw.len() > MAX_RAW_BYTES {
            return Err(too_large());
        }
        let stored = zstd::bulk::compress(raw, LEVEL).map_err(WriteError::Output)?;
        let mut header = BlockHeader {
            kind,
            stored_len: u32::try_from(stored.len()).map_err(|_| too_large())?,
            raw_len: u32::try_from(raw.len()).map_err(|_| too_large())?,
            count: u32::try_from(count).map_err(|_| too_large())?,
            checksum: 0,
        };
        header.checksum = header.checksum_of(&stored);
        Ok(Self { header, stored })
    }

    /// Writes the block; answers its length.
    pub(super) fn write(&self, out: &mut impl Write) -> Result<u64, WriteError> {
        out.write_all(&self.header.first_bytes()).map_err(WriteError::Output)?;
        out.write_all(&self.header.checksum.to_le_bytes()).map_err(WriteError::Output)?;
        out.write_all(&self.stored).map_err(WriteError::Output)?;
        Ok(self.header.block_len())
    }
}

/// Why a block could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BlockError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Corrupt(#[from] Corrupt),
}

/// Reads a block's header.
pub(super) fn read_header(input: &mut impl Read) -> Result<BlockHeader, BlockError> {
    let mut bytes = [0; HEADER_LEN];
    input.read_exact(&mut bytes)?;
    Ok(BlockHeader::parse(&bytes)?)
}

/// Reads, checks and decompresses the rest of a block; a block of another kind than `expected` is damage.
pub(super) fn read_body(input: &mut impl Read, header: &BlockHeader, expected: Kind) -> Result<Vec<u8>, BlockError> {
    if header.kind != expected {
        return Err(Corrupt("another kind of block was expected here").into());
    }
    // The limit was checked when the header was parsed; `take` keeps a lying length from costing more than there is.
    let mut stored = Vec::new();
    input.take(u64::from(header.stored_len)).read_to_end(&mut stored)?;
    if stored.len() < header.stored_len as usize {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    if header.checksum_of(&stored) != header.checksum {
        return Err(Corrupt("its checksum does not match").into());
    }
    let raw = zstd::bulk::decompress(&stored, header.raw_len as usize)
        .map_err(|_| Corrupt("it cannot be decompressed to the length it claims"))?;
    if raw.len() != header.raw_len as usize {
        return Err(Corrupt("it is not as long as it claims").into());
    }
    Ok(raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_is_noticed() {
        let mut block = Vec::new();
        let written = Block::new(Kind::Heads, 3, b"some bytes, some bytes, some bytes").unwrap();
        written.write(&mut block).unwrap();
        let read = |bytes: &[u8]| {
            let mut input = bytes;
            let header = read_header(&mut input)?;
            read_body(&mut input, &header, Kind::Heads)
        };
        assert_eq!(read(&block).unwrap(), b"some bytes, some bytes, some bytes");
        for bit in 0..block.len() * 8 {
            let mut flipped = block.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&flipped).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn kinds_come_back_from_their_byte() {
        let kinds: Vec<_> = (0..=255).filter_map(Kind::from_byte).collect();
        assert_eq!(kinds.len(), 5 + Section::ALL.len());
        assert!(kinds.iter().all(|kind| Kind::from_byte(kind.to_byte()) == Some(*kind)));
    }
}

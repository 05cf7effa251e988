//! One segment on disk: a header, the complete state at its start, and the entries from then on.
//!
//! ```text
//! magic version 0 | number of the first entry | number of the last before | begins at | checksum
//! block: kind 0 0 0 | stored length | raw length | checksum | compressed bytes        … and so on
//! ```
//!
//! The compressed bytes of all blocks are one zstd stream, flushed at the end of each block, so the next version of an
//! object costs only what has changed, however many other objects came in between. The price: a damaged block makes the
//! rest of its segment unreadable; the next segment starts a new stream. A block is what one [`super::Log::sync`] wrote
//! (or a part of it, if that was large), so an incomplete segment is truncated after its last complete block. Checksums
//! cover whole blocks and not entries: they are checked before anything reaches the decompressor, and cost 20 bytes per
//! sync.
//!
//! A segment is written once, from start to end. It gets its name only when its complete state is on disk.

mod read;
mod write;

pub(super) use read::{Block, Blocks, SegmentFault};
pub(super) use write::{SegmentWriter, for_the_owner_alone};

use sk_core::SimTime;
use xxhash_rust::xxh3::xxh3_64;

use crate::msgpack::MAX_OBJECT_BYTES;
use crate::varint::Corrupt;

/// How a segment begins.
const MAGIC: [u8; 8] = *b"SKLOG\0\0\0";

/// The version written here.
pub(super) const VERSION: u32 = 4;

/// The third version: each version of an object comes with the hash of its spec.
const VERSION_3: u32 = 3;

/// The second version: positions of watches are as old as the entries that tell of them.
const VERSION_2: u32 = 2;

/// The first version. The facts of its states have no moments of their own, and none tells of a lost watch.
const VERSION_1: u32 = 1;

/// Magic, version, four zero bytes, three numbers, checksum.
pub(super) const HEADER_LEN: usize = 48;

/// Kind, three zero bytes, stored length, raw length, checksum.
const BLOCK_HEADER_LEN: usize = 20;

/// A block is written when its raw bytes reach this, synced or not: what a burst may hold in memory.
const BLOCK_BYTES: usize = 1 << 20;

/// A block is written when it has this many facts, however small they are: read again, 2^16 of them take some 15 MiB.
const BLOCK_FACTS: usize = 1 << 16;

/// The longest entry: an object as large as any may be, and 1 MiB for what stands beside it. A thousand owner
/// references of 1 KiB fit.
pub(super) const MAX_ENTRY_BYTES: usize = MAX_OBJECT_BYTES + (1 << 20);

/// The largest block before compression: an almost full one and one more entry with its length.
const MAX_RAW_BYTES: usize = BLOCK_BYTES + MAX_ENTRY_BYTES + 16;

/// The largest block as stored: zstd adds less than 1/128 to what it cannot compress.
const MAX_STORED_BYTES: usize = MAX_RAW_BYTES + MAX_RAW_BYTES / 128 + 1024;

/// How strongly entries are compressed, with long-distance matching. Measured on 50,000 events of 2.4 KB, bytes for each:
///
/// | objects × versions | level 1, long distance | level 3, without | level 1, without |
/// |---|---|---|---|
/// | 1,000 × 50 | 26 | 47 | 284 |
/// | 10,000 × 5 | 77 | 346 | 290 |
///
/// Ordinary matching forgets where an object's last version was when too many others came between.
const LEVEL: i32 = 1;

/// How far back the compression looks, as a power of two: from 8 MiB, which is 3,400 objects of 2.4 KB, ...
const MIN_WINDOW_LOG: u32 = 23;

/// ... to 64 MiB. Writer and reader each hold one window.
const MAX_WINDOW_LOG: u32 = 26;

/// What a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockKind {
    /// A part of the state at the segment's beginning.
    State,
    /// The last part of it.
    StateEnd,
    /// Entries.
    Entries,
}

impl BlockKind {
    fn to_byte(self) -> u8 {
        match self {
            Self::State => 1,
            Self::StateEnd => 2,
            Self::Entries => 3,
        }
    }

    fn from_byte(byte: u8) -> Option<Self> {
        [Self::State, Self::StateEnd, Self::Entries].into_iter().find(|kind| kind.to_byte() == byte)
    }
}

/// What a segment says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    /// In which version it is written.
    pub(super) version: u32,
    /// The number of its first entry.
    pub(super) first_seq: u64,
    /// The number of the last entry on disk before it. Where it is not one less than `first_seq`, entries were lost
    /// because they could not be written, and the state at the beginning is not where the segment before it ended.
    pub(super) previous_seq: u64,
    /// The moment of the state at the beginning.
    pub(super) begins_at: SimTime,
}

impl SegmentHeader {
    fn encode(&self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&self.version.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.first_seq.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.previous_seq.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.begins_at.as_micros().to_le_bytes());
        let checksum = xxh3_64(&bytes[..40]);
        bytes[40..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads a header of any version: magic, version and checksum stay where they are in all of them.
    fn decode(bytes: &[u8; HEADER_LEN]) -> Result<Self, Corrupt> {
        let number = |at: usize| {
            let mut eight = [0; 8];
            eight.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(eight)
        };
        if bytes[..8] != MAGIC {
            return Err(Corrupt("it is not a segment of a log"));
        }
        if number(40) != xxh3_64(&bytes[..40]) {
            return Err(Corrupt("the checksum of its header does not match"));
        }
        let version = u32::try_from(number(8)).map_err(|_| Corrupt("its header is not as it was written"))?;
        let begins_at = SimTime::from_micros(number(32).cast_signed());
        Ok(Self { version, first_seq: number(16), previous_seq: number(24), begins_at })
    }
}

/// The beginning of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BlockHeader {
    kind: BlockKind,
    stored_len: u32,
    raw_len: u32,
}

impl BlockHeader {
    /// The header with the checksum of itself and of what follows.
    fn encode(&self, stored: &[u8]) -> [u8; BLOCK_HEADER_LEN] {
        let mut bytes = [0; BLOCK_HEADER_LEN];
        bytes[0] = self.kind.to_byte();
        bytes[4..8].copy_from_slice(&self.stored_len.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.raw_len.to_le_bytes());
        let checksum = checksum(&bytes[..12], stored);
        bytes[12..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads a header; its lengths are within the limits after this.
    fn decode(bytes: &[u8; BLOCK_HEADER_LEN]) -> Result<Self, Corrupt> {
        let length = |at: usize| {
            let mut four = [0; 4];
            four.copy_from_slice(&bytes[at..at + 4]);
            u32::from_le_bytes(four)
        };
        let kind = BlockKind::from_byte(bytes[0]).ok_or(Corrupt("its kind is unknown"))?;
        let header = Self { kind, stored_len: length(4), raw_len: length(8) };
        if header.stored_len as usize > MAX_STORED_BYTES || header.raw_len as usize > MAX_RAW_BYTES {
            return Err(Corrupt("it claims to be larger than a block may be"));
        }
        Ok(header)
    }
}

fn checksum(header: &[u8], stored: &[u8]) -> u64 {
    let mut hasher = xxhash_rust::xxh3::Xxh3::new();
    hasher.update(header);
    hasher.update(stored);
    hasher.digest()
}

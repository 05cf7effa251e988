//! The native trace format, specified in docs/trace-format.md.
//!
//! A file is a row of blocks, each compressed and checksummed. Records lie in chunks of two blocks: *heads* (when,
//! what, which object, which labels), in columns, and *bodies* (the objects), so that a pass over heads never reads a
//! body. Other blocks hold rows. Index blocks say which chunk has which times and objects; a directory at the end
//! says where the blocks are. Readers and writers hold one chunk at a time.
//!
//! ```text
//! magic | header | heads bodies | heads bodies | … | index | … | rows | directory | trailer
//! ```

mod block;
mod bodies;
mod directory;
mod heads;
mod layout;
mod read;
mod write;

pub(crate) use block::BlockError;
pub(crate) use read::{Heads, Native, Records, Rows};
pub(crate) use write::Writer;

/// How a file begins.
pub(crate) const MAGIC: [u8; 8] = *b"SKTRACE\0";

/// How a file ends.
const END_MAGIC: [u8; 8] = *b"SKTRACE.";

/// The version written here, the only one there is.
const VERSION: u32 = 1;

/// Magic, version, four zero bytes.
const FILE_HEADER_LEN: u64 = 16;

/// The directory's offset, and [`END_MAGIC`].
const TRAILER_LEN: u64 = 16;

/// A chunk is closed when its objects reach this size. Larger chunks hold more versions of each object and so
/// compress better; smaller ones are quicker to reach into and take less memory.
const CHUNK_BYTES: usize = 16 << 20;

/// A chunk is closed when it has this many records, however small they are. A reader holds some 300 bytes of each beside
/// its object: 5 MB.
const CHUNK_RECORDS: usize = 1 << 14;

/// No chunk that is read may have more; earlier writers closed theirs here.
const MAX_CHUNK_RECORDS: usize = 1 << 16;

/// A chunk is closed when its heads reach this size; one more object may add as much as an object may have.
const HEADS_BYTES: usize = 4 << 20;

/// The largest heads, or index, before compression. Texts are its smallest parts, at least a byte each, and take 16
/// bytes when read: 12 MiB may become 192 MiB at the very worst, and about 5 MiB ordinarily.
const MAX_HEADS_BYTES: usize = HEADS_BYTES + 2 * crate::msgpack::MAX_OBJECT_BYTES;

/// An index covers this many chunks, or fewer if the names of their objects reach [`HEADS_BYTES`].
const INDEX_CHUNKS: usize = 64;

/// Rows are put into one block until their text reaches this size.
const ROWS_BYTES: usize = 1 << 20;

/// The largest block before compression. Bodies are the largest: a full chunk and one more object, each with at most
/// 32 bytes of lengths, which is below 16 + 4 + 2 MiB; rows are at most one line longer than [`ROWS_BYTES`].
const MAX_RAW_BYTES: usize = 32 << 20;

/// The largest block as stored: zstd adds less than 1/128 to what it cannot compress.
const MAX_STORED_BYTES: usize = MAX_RAW_BYTES + MAX_RAW_BYTES / 128 + 1024;

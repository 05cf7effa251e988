//! JSON Lines: a trace as text, one thing per line, for people, `jq` and other programs.
//!
//! The first line is the header. Then each line is a record or a row, in any order of rows and in the order of time
//! for records. Nothing is lost in either direction. By hand, `seq` and the last line may be left out.

mod line;
mod read;
mod write;

pub(crate) use read::{JsonLines, Records, Rows};
pub(crate) use write::Writer;

/// The longest line. An object of at most 4 MiB grows at most six times as JSON text (a control character becomes
/// `\u0000`), and something stands around it.
pub(crate) const MAX_LINE_BYTES: usize = 6 * crate::msgpack::MAX_OBJECT_BYTES + (1 << 20);

/// How a trace begins: enough to tell it from other JSON.
pub(crate) const BEGINNING: &[u8] = b"{\"simkube\":";

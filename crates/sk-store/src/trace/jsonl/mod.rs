//! JSON Lines: a trace as text, one thing per line, for people, `jq` and other programs.
//!
//! The first line is the header. Then each line is a record or a row, in any order of rows and in the order of time
//! for records. Nothing is lost in either direction. By hand, `seq` and the last line may be left out.

mod line;
mod read;
mod write;

use serde_json::Error;

use crate::trace::header::Header;
use crate::trace::rows::Row;

use line::{HeaderLine, Line, LineError, Said};
pub(crate) use read::{JsonLines, Records, Rows};
pub(crate) use write::Writer;

/// The longest line. An object of at most 4 MiB grows at most six times as JSON text (a control character becomes
/// `\u0000`), and something stands around it.
pub(crate) const MAX_LINE_BYTES: usize = 6 * crate::msgpack::MAX_OBJECT_BYTES + (1 << 20);

/// How a trace begins: enough to tell it from other JSON.
pub(crate) const BEGINNING: &[u8] = b"{\"simkube\":";

/// The header as the native format keeps it: the same line, without the promise of an end.
pub(crate) fn header_text(header: &Header) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(&HeaderLine::of(header, false))
}

/// Reads [`header_text`].
pub(crate) fn parse_header(text: &[u8]) -> Result<Header, LineError> {
    serde_json::from_slice::<HeaderLine>(text)?.header()
}

/// Writes a row as a line behind what `out` has.
pub(crate) fn write_row(row: &Row, out: &mut Vec<u8>) -> Result<(), Error> {
    Line::write_row(row, out)?;
    out.push(b'\n');
    Ok(())
}

/// Reads what [`write_row`] has written.
pub(crate) fn parse_row(text: &[u8]) -> Result<Row, LineError> {
    match Line::parse(text)? {
        Said::Row(row) => Ok(row),
        _ => Err(LineError::NotOneThing),
    }
}

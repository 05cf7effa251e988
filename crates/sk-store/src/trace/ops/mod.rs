//! Traces from traces: another form, a part, more or less of it, several as one, another time.
//!
//! Each reads its input as a stream and writes its output as a stream; what they remember is at most the names of the
//! objects. Records are numbered anew, and the index that SimKube 2 keeps is made anew when one is written.

mod convert;
mod merge;
mod scale;
mod shift;
mod slice;

use std::io::Write;

use sk_core::SimTime;

pub use convert::convert;
pub use merge::merge;
pub use scale::{Factor, ParseFactorError, Scale, scale};
pub use shift::shift;
pub use slice::{Slice, slice};

use super::header::Header;
use super::record::{Change, Record};
use super::rows::Row;
use super::write::{Losses, WriteError, Writer};
use super::{Format, Trace};

/// A writer that numbers the records.
struct Output<W: Write> {
    writer: Writer<W>,
    next_seq: u64,
}

impl<W: Write> Output<W> {
    fn new(format: Format, out: W, header: &Header) -> Result<Self, WriteError> {
        Ok(Self { writer: Writer::new(format, out, header)?, next_seq: 0 })
    }

    fn put(&mut self, at: SimTime, change: Change) -> Result<(), WriteError> {
        let seq = self.next_seq;
        self.next_seq += 1;
        self.writer.record(&Record { at, seq, change })
    }

    fn row(&mut self, row: &Row) -> Result<(), WriteError> {
        self.writer.row(row)
    }

    fn finish(self) -> Result<(W, Losses), WriteError> {
        self.writer.finish()
    }
}

/// The header of a trace that is no longer quite what it was made from.
fn changed_header(trace: &Trace) -> Header {
    Header { config: trace.config().clone(), origin: None }
}

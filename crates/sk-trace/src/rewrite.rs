//! Shared code of operations that write a changed trace.
//!
//! Sequence numbers are assigned anew, so records can be left out and added. The index of a v2 trace is dropped: it
//! describes the original, and writing v2 creates a new one.

use std::io::Write;

use sk_core::SimTime;
use sk_store::trace::{Change, Format, Header, Record, Row, Section, Trace, WriteError, Writer};

use crate::{EditError, TraceOutput};

/// Sections that an edited trace has, in the order in which they are written.
pub(crate) const SECTIONS: [Section; 5] =
    [Section::Lives, Section::Observations, Section::Nodes, Section::Reserved, Section::Gaps];

/// Writes the new trace.
pub(crate) struct Sink<W: Write> {
    writer: Writer<W>,
    seq: u64,
}

impl<W: Write> Sink<W> {
    /// A new trace that says of itself what `from` does.
    pub(crate) fn like(from: &Trace, format: Format, out: W) -> Result<Self, WriteError> {
        Self::new(&Header { config: from.config().clone(), origin: None }, format, out)
    }

    pub(crate) fn new(header: &Header, format: Format, out: W) -> Result<Self, WriteError> {
        Ok(Self { writer: Writer::new(format, out, header)?, seq: 0 })
    }

    pub(crate) fn record(&mut self, at: SimTime, change: Change) -> Result<(), WriteError> {
        let record = Record { at, seq: self.seq, change };
        self.seq += 1;
        self.writer.record(&record)
    }

    pub(crate) fn row(&mut self, row: &Row) -> Result<(), WriteError> {
        self.writer.row(row)
    }

    pub(crate) fn finish<S>(self, summary: S) -> Result<TraceOutput<W, S>, EditError> {
        let (out, losses) = self.writer.finish()?;
        Ok(TraceOutput { out, losses, summary })
    }
}

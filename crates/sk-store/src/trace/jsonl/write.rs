//! Writes JSON Lines, in the order of arrival.

use std::io::Write;

use super::line::{Counts, HeaderLine, Line};
use crate::trace::header::Header;
use crate::trace::record::Record;
use crate::trace::rows::Row;
use crate::trace::write::WriteError;

/// Writes a trace as JSON Lines.
pub(crate) struct Writer<W> {
    out: W,
    counts: Counts,
}

impl<W: Write> Writer<W> {
    pub(crate) fn new(mut out: W, header: &Header) -> Result<Self, WriteError> {
        write_line(&mut out, &HeaderLine::of(header, true))?;
        Ok(Self { out, counts: Counts::default() })
    }

    pub(crate) fn record(&mut self, record: &Record) -> Result<(), WriteError> {
        self.counts.records += 1;
        write_line(&mut self.out, &Line::of_record(record))
    }

    pub(crate) fn row(&mut self, row: &Row) -> Result<(), WriteError> {
        self.counts.rows += 1;
        // Longer than most: a Job's lives and a pod's observation are some 300 bytes.
        let mut text = Vec::with_capacity(512);
        super::write_row(row, &mut text).map_err(WriteError::Json)?;
        self.out.write_all(&text).map_err(WriteError::Output)
    }

    pub(crate) fn finish(mut self) -> Result<W, WriteError> {
        write_line(&mut self.out, &Line::of_end(self.counts))?;
        Ok(self.out)
    }
}

fn write_line(out: &mut impl Write, line: &impl serde::Serialize) -> Result<(), WriteError> {
    let mut text = serde_json::to_vec(line).map_err(WriteError::Json)?;
    text.push(b'\n');
    out.write_all(&text).map_err(WriteError::Output)
}

//! Writes a trace in any format, from records and rows in the order in which they arrive.
//!
//! Memory does not grow with the trace. The same input gives the same bytes. What a format cannot hold is counted in
//! [`Losses`] and never dropped silently.

use std::fmt;
use std::io::{self, Write};

use sk_core::SimTime;

use super::error::TraceError;
use super::header::Header;
use super::record::{Change, Record};
use super::rows::Row;
use super::spool::SpoolFolder;
use super::stencil::Encoded;
use super::{Format, jsonl, native, v2};

/// Why a trace could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The place it was written to said no.
    #[error("writing the trace failed: {0}; check that there is disk space and that you may write there")]
    Output(#[source] io::Error),
    /// A temporary file beside it failed.
    #[error("a temporary file failed: {0}; check that there is disk space for temporary files (TMPDIR)")]
    Spool(#[source] io::Error),
    /// Something could not become JSON.
    #[error("something cannot be written as JSON: {0}")]
    Json(#[source] serde_json::Error),
    /// An object or a list is longer than readers accept.
    #[error("{what} is larger than {limit} bytes, which no reader accepts; remove it from the trace")]
    TooLarge {
        /// The record, row or block that is too large.
        what: String,
        /// The limit in bytes.
        limit: usize,
    },
    /// Records came in the wrong order.
    #[error("record {seq} came after record {after}; sequence numbers must rise")]
    Order {
        /// The sequence number that came.
        seq: u64,
        /// The one before it.
        after: u64,
    },
    /// More things than the form can count.
    #[error("the trace has more than {limit} {what}, which the format cannot hold; slice it first")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there may be.
        limit: u64,
    },
    /// The bytes are not an encoded object.
    #[error("{object} was not encoded as an object: {reason}; please report this")]
    NotEncoded {
        /// Its name.
        object: String,
        /// What is wrong.
        reason: String,
    },
    /// This form is only read.
    #[error("traces are not written as {0:?}; choose native, v2 or jsonl")]
    ReadOnly(Format),
    /// Reading the source trace failed.
    #[error(transparent)]
    Read(#[from] TraceError),
}

/// What a form could not hold of what it was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Records whose time was cut to whole seconds.
    pub subsecond_times: u64,
    /// Lives that have no pod hash.
    pub lives: u64,
    /// Rows of sections that the form does not have.
    pub rows: u64,
}

impl Losses {
    /// Was nothing lost?
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for Losses {
    /// `12 times cut to whole seconds, 3 lives without a pod hash`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            (self.subsecond_times, "times cut to whole seconds"),
            (self.lives, "lives without a pod hash"),
            (self.rows, "observations, node events, reservations or gaps"),
        ];
        let said: Vec<_> =
            parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
        f.write_str(if said.is_empty() { "nothing" } else { "" })?;
        f.write_str(&said.join(", "))
    }
}

/// Writes a trace in any form that is written.
pub struct Writer<W: Write> {
    form: Form<W>,
    last_seq: Option<u64>,
}

enum Form<W: Write> {
    V2(Box<v2::Writer<W>>),
    JsonLines(jsonl::Writer<W>),
    Native(Box<native::Writer<W>>),
}

impl<W: Write> Writer<W> {
    /// Begins a trace in `format`. Some forms need temporary files, which are made where the system has them.
    pub fn new(format: Format, out: W, header: &Header) -> Result<Self, WriteError> {
        Self::spooling_in(&SpoolFolder::default(), format, out, header)
    }

    /// Begins a trace whose temporary files are made in that folder.
    pub(crate) fn spooling_in(
        folder: &SpoolFolder,
        format: Format,
        out: W,
        header: &Header,
    ) -> Result<Self, WriteError> {
        let form = match format {
            Format::V2 => Form::V2(Box::new(v2::Writer::new(out, header, folder))),
            Format::JsonLines => Form::JsonLines(jsonl::Writer::new(out, header)?),
            Format::Native => Form::Native(Box::new(native::Writer::new(out, header)?)),
            Format::V3 | Format::Manifests => return Err(WriteError::ReadOnly(format)),
        };
        Ok(Self { form, last_seq: None })
    }

    /// Adds what happened next. Sequence numbers must rise.
    pub fn record(&mut self, record: &Record) -> Result<(), WriteError> {
        if let Some(after) = self.last_seq.filter(|last| record.seq <= *last) {
            return Err(WriteError::Order { seq: record.seq, after });
        }
        self.last_seq = Some(record.seq);
        match &mut self.form {
            Form::V2(writer) => writer.record(record),
            Form::JsonLines(writer) => writer.record(record),
            Form::Native(writer) => writer.record(record),
        }
    }

    /// Adds an object that was created or changed next, and that is already encoded. The same bytes as its record gives.
    pub fn encoded(&mut self, at: SimTime, seq: u64, object: &Encoded) -> Result<(), WriteError> {
        if let Form::Native(writer) = &mut self.form {
            if let Some(after) = self.last_seq.filter(|last| seq <= *last) {
                return Err(WriteError::Order { seq, after });
            }
            self.last_seq = Some(seq);
            return writer.encoded(at, seq, object);
        }
        self.record(&Record { at, seq, change: Change::Apply(object.decode()?) })
    }

    /// Adds a row of any section, in any order.
    pub fn row(&mut self, row: &Row) -> Result<(), WriteError> {
        match &mut self.form {
            Form::V2(writer) => writer.row(row),
            Form::JsonLines(writer) => writer.row(row),
            Form::Native(writer) => writer.row(row),
        }
    }

    /// Ends the trace and gives back what was written to. Without this the trace is cut, and readers say so.
    pub fn finish(self) -> Result<(W, Losses), WriteError> {
        let (mut out, losses) = match self.form {
            Form::V2(writer) => writer.finish()?,
            Form::JsonLines(writer) => (writer.finish()?, Losses::default()),
            Form::Native(writer) => (writer.finish()?, Losses::default()),
        };
        out.flush().map_err(WriteError::Output)?;
        Ok((out, losses))
    }
}

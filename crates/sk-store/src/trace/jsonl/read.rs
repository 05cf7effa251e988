//! Reads JSON Lines, one line of bounded length at a time.

use std::io::{BufRead, BufReader, Read};

use sk_core::SimTime;

use super::MAX_LINE_BYTES;
use super::line::{Counts, HeaderLine, Line, LineError, Said, VERSION};
use crate::msgpack::{Fault, MAX_OBJECT_NODES};
use crate::trace::error::{Flaw, OpenError, Place, TraceError};
use crate::trace::header::Header;
use crate::trace::record::Record;
use crate::trace::rows::{Row, Section};
use crate::trace::source::{Reader, Source};

/// An open trace in JSON Lines.
#[derive(Debug)]
pub(crate) struct JsonLines {
    source: Source,
    pub(crate) header: Header,
    pub(crate) span: Option<(SimTime, SimTime)>,
    has_end: bool,
}

impl JsonLines {
    /// Reads all of it once, so that a broken line is known before anything is done with the trace.
    pub(crate) fn open(source: &Source) -> Result<Self, OpenError> {
        let io = |error| OpenError::Io { name: source.name().clone(), source: error };
        let mut lines = Lines::new(source.open().map_err(io)?, source, false);
        let header = lines.header()?;
        lines.has_end = header.has_end;
        let has_end = header.has_end;
        let header = header.header().map_err(|error| lines.error(Flaw::Line(error.to_string())))?;
        let mut span: Option<(SimTime, SimTime)> = None;
        for said in lines {
            if let Said::Record { at, .. } = said? {
                span = Some(span.map_or((at, at), |(first, last)| (first.min(at), last.max(at))));
            }
        }
        Ok(Self { source: source.clone(), header, span, has_end })
    }

    fn lines(&self) -> Result<Lines<'_>, TraceError> {
        let reader = self.source.open();
        let reader =
            reader.map_err(|error| TraceError::new(self.source.name(), Place::new("the beginning", 0), error))?;
        let mut lines = Lines::new(reader, &self.source, self.has_end);
        lines.read_line()?;
        Ok(lines)
    }
}

/// Streams records.
pub(crate) struct Records<'a> {
    lines: Lines<'a>,
    next_seq: u64,
}

impl<'a> Records<'a> {
    pub(crate) fn new(trace: &'a JsonLines) -> Result<Self, TraceError> {
        Ok(Self { lines: trace.lines()?, next_seq: 0 })
    }
}

impl Iterator for Records<'_> {
    type Item = Result<Record, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.lines.next()? {
                Ok(Said::Record { at, seq, change }) => {
                    let seq = seq.unwrap_or(self.next_seq);
                    self.next_seq = seq.saturating_add(1);
                    return Some(Ok(Record { at, seq, change }));
                }
                Ok(_) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// Streams the rows of one section.
pub(crate) struct Rows<'a> {
    lines: Lines<'a>,
    section: Section,
}

impl<'a> Rows<'a> {
    pub(crate) fn new(trace: &'a JsonLines, section: Section) -> Result<Self, TraceError> {
        Ok(Self { lines: trace.lines()?, section })
    }
}

impl Iterator for Rows<'_> {
    type Item = Result<Row, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.lines.next()? {
                Ok(Said::Row(row)) if row.section() == self.section => return Some(Ok(row)),
                Ok(_) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// The lines of a file after the first, each checked: sequence numbers rise and the end is where it was promised.
struct Lines<'a> {
    reader: BufReader<Reader>,
    source: &'a Source,
    has_end: bool,
    text: Vec<u8>,
    number: u64,
    offset: u64,
    next_seq: u64,
    counts: Counts,
    ended: bool,
}

impl<'a> Lines<'a> {
    fn new(reader: Reader, source: &'a Source, has_end: bool) -> Self {
        let reader = BufReader::with_capacity(64 << 10, reader);
        let counts = Counts::default();
        Self { reader, source, has_end, text: Vec::new(), number: 0, offset: 0, next_seq: 0, counts, ended: false }
    }

    fn error(&self, flaw: impl Into<Flaw>) -> TraceError {
        TraceError::new(self.source.name(), Place::new(format!("line {}", self.number), self.offset), flaw)
    }

    fn content(&self, what: String) -> TraceError {
        self.error(Flaw::Content(what))
    }

    /// Reads the next line into `text`; false at the end of the file.
    fn read_line(&mut self) -> Result<bool, TraceError> {
        self.offset += self.text.len() as u64;
        self.text.clear();
        self.number += 1;
        let mut limited = (&mut self.reader).take(MAX_LINE_BYTES as u64);
        let len = limited.read_until(b'\n', &mut self.text).map_err(|error| {
            TraceError::new(self.source.name(), Place::new(format!("line {}", self.number), self.offset), error)
        })?;
        if len >= MAX_LINE_BYTES && !self.text.ends_with(b"\n") {
            return Err(self.error(Fault::TooLong(MAX_LINE_BYTES)));
        }
        // Text may hold as many commas as it likes and still be one value; that refuses only lines with a million of
        // them, and keeps a line of a few megabytes from becoming gigabytes of values.
        if self.text.iter().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count() > MAX_OBJECT_NODES {
            return Err(self.error(Fault::TooMany));
        }
        Ok(len > 0)
    }

    fn header(&mut self) -> Result<HeaderLine, OpenError> {
        self.read_line()?;
        let header: HeaderLine = serde_json::from_slice(&self.text)
            .map_err(|error| self.error(Flaw::Line(LineError::Json(error).to_string())))?;
        if header.simkube != "trace" || header.version != VERSION {
            return Err(OpenError::Version {
                name: self.source.name().clone(),
                version: format!("{} {} in JSON Lines", header.simkube.escape_debug(), header.version),
                advice: "`trace` 1 is; use a newer skctl",
            });
        }
        Ok(header)
    }

    fn step(&mut self) -> Result<Option<Said>, TraceError> {
        loop {
            if !self.read_line()? {
                if self.has_end && !self.ended {
                    return Err(self.error(Fault::Cut));
                }
                return Ok(None);
            }
            if self.text.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            if self.ended {
                return Err(self.content("more lines follow the `end`".into()));
            }
            let said = Line::parse(&self.text).map_err(|error| match error {
                // What does not even end with its line was cut there.
                LineError::Json(error) if error.is_eof() => self.error(Fault::Cut),
                error => self.error(Flaw::Line(error.to_string())),
            })?;
            self.check(&said)?;
            return Ok(Some(said));
        }
    }

    fn check(&mut self, said: &Said) -> Result<(), TraceError> {
        match said {
            Said::Record { seq, .. } => {
                let seq = seq.unwrap_or(self.next_seq);
                if seq < self.next_seq {
                    let what = format!("`seq` {seq} does not rise: at least {} was expected", self.next_seq);
                    return Err(self.content(what));
                }
                self.next_seq = seq.saturating_add(1);
                self.counts.records += 1;
            }
            Said::Row(_) => self.counts.rows += 1,
            Said::End(counts) if *counts == self.counts => self.ended = true,
            Said::End(counts) => {
                let (said, found) = (counts, self.counts);
                return Err(self.content(format!(
                    "the `end` counts {} records and {} rows, but {} and {} came before it",
                    said.records, said.rows, found.records, found.rows
                )));
            }
        }
        Ok(())
    }
}

impl Iterator for Lines<'_> {
    type Item = Result<Said, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if step.is_err() {
            // An exhausted reader and no promise of an end: the next call gives `None`.
            self.reader = BufReader::new(Reader::nothing());
            self.has_end = false;
        }
        step.transpose()
    }
}

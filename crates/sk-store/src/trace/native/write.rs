//! Writes the native format. One chunk is collected in memory while earlier ones are compressed in threads of their own;
//! then they are appended in order. The bytes do not depend on which thread is faster.

use std::collections::VecDeque;
use std::io::Write;
use std::panic::resume_unwind;
use std::thread::{self, JoinHandle};

use serde_json::Value;
use sk_core::SimTime;

use super::block::{Block, Kind};
use super::bodies::BodiesOut;
use super::directory::{BlockEntry, ChunkEntry, ChunkIndexBuilder, Directory};
use super::heads::{ByPlace, Entry, HeadsOut};
use super::{
    CHUNK_BYTES, CHUNK_RECORDS, END_MAGIC, FILE_HEADER_LEN, HEADS_BYTES, INDEX_CHUNKS, MAGIC, ROWS_BYTES, VERSION,
};
use crate::msgpack::{MAX_OBJECT_BYTES, encode};
use crate::trace::head;
use crate::trace::header::Header;
use crate::trace::jsonl;
use crate::trace::record::{Change, Deletion, Record};
use crate::trace::rows::{Row, Section};
use crate::trace::stencil::Encoded;
use crate::trace::write::WriteError;

/// How many chunks and blocks of rows are compressed while the next is collected: a chunk has 16 MiB, and rows are fewer. Two,
/// because of traces that have both neither then waits for the other.
const MAX_PENDING: usize = 2;

/// Writes a trace in the native format.
pub(crate) struct Writer<W> {
    out: W,
    /// How many bytes have been written.
    at: u64,
    heads: HeadsOut,
    bodies: BodiesOut,
    /// By an object's place in the chunk, the place of its newest body.
    newest: ByPlace,
    /// Reused: one encoded object.
    bytes: Vec<u8>,
    index: ChunkIndexBuilder,
    directory: Directory,
    rows: Vec<RowsOut>,
    /// What is being compressed, in the order in which it is written.
    pending: VecDeque<JoinHandle<Result<Compressed, WriteError>>>,
}

/// What is compressed and waits to be written.
enum Compressed {
    /// A chunk. Its objects and times are for the index.
    Chunk { heads: Box<HeadsOut>, blocks: [Block; 2] },
    /// So many rows.
    Rows { section: Section, count: usize, block: Block },
}

impl Compressed {
    fn chunk(heads: HeadsOut, bodies: &BodiesOut) -> Result<Self, WriteError> {
        let blocks = [
            Block::new(Kind::Heads, heads.len(), &heads.encode())?,
            Block::new(Kind::Bodies, bodies.len(), &bodies.encode())?,
        ];
        Ok(Self::Chunk { heads: Box::new(heads), blocks })
    }

    fn rows(section: Section, count: usize, text: &[u8]) -> Result<Self, WriteError> {
        Ok(Self::Rows { section, count, block: Block::new(Kind::Rows(section), count, text)? })
    }
}

/// The rows of one section that wait for their block to be full.
struct RowsOut {
    section: Section,
    text: Vec<u8>,
    count: usize,
}

impl<W: Write> Writer<W> {
    pub(crate) fn new(mut out: W, header: &Header) -> Result<Self, WriteError> {
        let mut beginning = MAGIC.to_vec();
        beginning.extend_from_slice(&VERSION.to_le_bytes());
        beginning.extend_from_slice(&[0; 4]);
        out.write_all(&beginning).map_err(WriteError::Output)?;
        let rows = Section::ALL.map(|section| RowsOut { section, text: Vec::new(), count: 0 });
        let mut writer = Self {
            out,
            at: FILE_HEADER_LEN,
            heads: HeadsOut::default(),
            bodies: BodiesOut::default(),
            newest: ByPlace::default(),
            bytes: Vec::new(),
            index: ChunkIndexBuilder::default(),
            directory: Directory::default(),
            rows: rows.into(),
            pending: VecDeque::new(),
        };
        let text = jsonl::header_text(header).map_err(WriteError::Json)?;
        writer.block(Kind::Header, 1, &text)?;
        Ok(writer)
    }

    /// Writes a block behind everything that was pushed before it.
    fn block(&mut self, kind: Kind, count: usize, raw: &[u8]) -> Result<(), WriteError> {
        self.at += Block::new(kind, count, raw)?.write(&mut self.out)?;
        Ok(())
    }

    pub(crate) fn record(&mut self, record: &Record) -> Result<(), WriteError> {
        let (at, seq) = (record.at, record.seq);
        match &record.change {
            Change::Apply(object) => {
                let entry = Entry::Apply { object: object.reference(), labels: head::labels(object.value()) };
                self.push_whole(at, seq, &entry, object.value())?;
            }
            Change::Delete(Deletion { object, last: Some(last) }) => {
                let entry = Entry::Delete { object, labels: Some(head::labels(last)) };
                self.push_whole(at, seq, &entry, last)?;
            }
            Change::Delete(Deletion { object, last: None }) => {
                self.heads.push(at, seq, &Entry::Delete { object, labels: None });
            }
            Change::Mark(mark) => {
                self.heads.push(at, seq, &Entry::Mark(mark));
            }
        }
        self.end_full_chunk()
    }

    /// Adds an object that is already encoded.
    pub(crate) fn encoded(&mut self, at: SimTime, seq: u64, object: &Encoded) -> Result<(), WriteError> {
        let entry = Entry::Apply { object: &object.object, labels: object.labels.clone() };
        self.push_body(at, seq, &entry, &object.body)?;
        self.end_full_chunk()
    }

    /// Adds a head and its object.
    fn push_whole(&mut self, at: SimTime, seq: u64, entry: &Entry<'_>, value: &Value) -> Result<(), WriteError> {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        encode::value(&mut bytes, value);
        let pushed = self.push_body(at, seq, entry, &bytes);
        self.bytes = bytes;
        pushed
    }

    fn push_body(&mut self, at: SimTime, seq: u64, entry: &Entry<'_>, body: &[u8]) -> Result<(), WriteError> {
        if body.len() > MAX_OBJECT_BYTES {
            let what = format!("the object of record {seq}");
            return Err(WriteError::TooLarge { what, limit: MAX_OBJECT_BYTES });
        }
        if let Some(place) = self.heads.push(at, seq, entry) {
            let base = self.newest.replace(place, self.bodies.len());
            self.bodies.push(body, base);
        }
        Ok(())
    }

    fn end_full_chunk(&mut self) -> Result<(), WriteError> {
        let full = self.bodies.size() >= CHUNK_BYTES || self.heads.size() >= HEADS_BYTES;
        if full || self.heads.len() >= CHUNK_RECORDS { self.end_chunk() } else { Ok(()) }
    }

    fn end_chunk(&mut self) -> Result<(), WriteError> {
        let (heads, bodies) = (std::mem::take(&mut self.heads), std::mem::take(&mut self.bodies));
        self.newest.clear();
        if heads.len() == 0 {
            return Ok(());
        }
        self.compress(move || Compressed::chunk(heads, &bodies))
    }

    /// Compresses beside what follows.
    fn compress(
        &mut self,
        work: impl FnOnce() -> Result<Compressed, WriteError> + Send + 'static,
    ) -> Result<(), WriteError> {
        while self.pending.len() >= MAX_PENDING {
            self.write_next()?;
        }
        self.pending.push_back(thread::Builder::new().spawn(work).map_err(WriteError::Output)?);
        Ok(())
    }

    /// Writes the first of what is being compressed; is there anything?
    fn write_next(&mut self) -> Result<bool, WriteError> {
        let Some(pending) = self.pending.pop_front() else { return Ok(false) };
        match pending.join().unwrap_or_else(|panic| resume_unwind(panic))? {
            Compressed::Chunk { heads, blocks } => self.write_chunk(&heads, &blocks)?,
            Compressed::Rows { section, count, block } => {
                let (kind, at, count) = (Kind::Rows(section), self.at, count as u64);
                self.directory.blocks.push(BlockEntry { kind, at, count });
                self.at += block.write(&mut self.out)?;
            }
        }
        Ok(true)
    }

    fn write_chunk(&mut self, heads: &HeadsOut, blocks: &[Block]) -> Result<(), WriteError> {
        let Some((earliest, latest, first_seq, last_seq)) = heads.bounds() else { return Ok(()) };
        let at = self.at;
        for block in blocks {
            self.at += block.write(&mut self.out)?;
        }
        let records = heads.len() as u64;
        let len = self.at - at;
        let entry = ChunkEntry { at, len, records, earliest, latest, first_seq, last_seq };
        self.index.push(entry, heads.objects());
        self.directory.records += records;
        let span = self.directory.span.unwrap_or((earliest, latest));
        self.directory.span = Some((span.0.min(earliest), span.1.max(latest)));
        if self.index.len() >= INDEX_CHUNKS || self.index.size() >= HEADS_BYTES {
            self.end_index()?;
        }
        Ok(())
    }

    fn end_index(&mut self) -> Result<(), WriteError> {
        let index = std::mem::take(&mut self.index);
        let count = index.len();
        if count == 0 {
            return Ok(());
        }
        self.directory.blocks.push(BlockEntry { kind: Kind::Index, at: self.at, count: count as u64 });
        self.block(Kind::Index, count, &index.encode())
    }

    pub(crate) fn row(&mut self, row: &Row) -> Result<(), WriteError> {
        let section = row.section();
        let Some(place) = self.rows.iter().position(|rows| rows.section == section) else { return Ok(()) };
        let rows = &mut self.rows[place];
        let start = rows.text.len();
        jsonl::write_row(row, &mut rows.text).map_err(WriteError::Json)?;
        if rows.text.len() - start > jsonl::MAX_LINE_BYTES {
            return Err(WriteError::TooLarge { what: format!("a row of {section:?}"), limit: jsonl::MAX_LINE_BYTES });
        }
        if rows.count > 0 && rows.text.len() > ROWS_BYTES {
            let line = rows.text.split_off(start);
            self.end_rows(place)?;
            self.rows[place].text = line;
        }
        self.rows[place].count += 1;
        Ok(())
    }

    fn end_rows(&mut self, place: usize) -> Result<(), WriteError> {
        let rows = &mut self.rows[place];
        let (section, text, count) = (rows.section, std::mem::take(&mut rows.text), std::mem::take(&mut rows.count));
        if count == 0 {
            return Ok(());
        }
        self.compress(move || Compressed::rows(section, count, &text))
    }

    pub(crate) fn finish(mut self) -> Result<W, WriteError> {
        self.end_chunk()?;
        while self.write_next()? {}
        self.end_index()?;
        for place in 0..self.rows.len() {
            self.end_rows(place)?;
        }
        while self.write_next()? {}
        let mut trailer = self.at.to_le_bytes().to_vec();
        trailer.extend_from_slice(&END_MAGIC);
        let directory = self.directory.encode();
        self.block(Kind::Directory, self.directory.blocks.len(), &directory)?;
        self.out.write_all(&trailer).map_err(WriteError::Output)?;
        Ok(self.out)
    }
}

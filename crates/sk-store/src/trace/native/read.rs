//! Reads the native format. Opening a file reads its end and its header; everything else is read on demand, one block at a
//! time.

use std::collections::VecDeque;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;

use sk_core::SimTime;

use super::block::{self, BlockError, BlockHeader, Kind};
use super::bodies::BodiesIn;
use super::directory::{ChunkEntry, ChunkIndex, Directory};
use super::heads::HeadsIn;
use super::layout::Layout;
use super::{END_MAGIC, FILE_HEADER_LEN, TRAILER_LEN, VERSION};
use crate::trace::error::{Flaw, OpenError, Place, TraceError};
use crate::trace::head::{Head, What};
use crate::trace::header::Header;
use crate::trace::jsonl;
use crate::trace::record::{Change, Deletion, Object, Record};
use crate::trace::rows::{Row, Section};
use crate::trace::selection::Selection;
use crate::trace::shape::{self, Shapes};
use crate::trace::source::{Reader, Source};
use crate::varint::Corrupt;

/// An open trace in the native format.
#[derive(Debug)]
pub(crate) struct Native {
    source: Source,
    pub(crate) header: Header,
    directory: Directory,
}

impl Native {
    /// Reads the header and the directory.
    pub(crate) fn open(source: &Source) -> Result<Self, OpenError> {
        let io = |error| OpenError::Io { name: source.name().clone(), source: error };
        let mut file = File { reader: source.open().map_err(io)?, name: source.name().clone() };
        let len = file.reader.seek(SeekFrom::End(0)).map_err(io)?;
        file.check_beginning(len)?;
        let Some((directory, directory_at)) = file.directory(len)? else { return Err(file.cut(len).into()) };
        file.check_layout(&directory, directory_at)?;
        let text = file.block("the header", FILE_HEADER_LEN, Kind::Header)?.0;
        let header = jsonl::parse_header(&text)
            .map_err(|error| file.error("the header", FILE_HEADER_LEN, Flaw::Line(error.to_string())))?;
        Ok(Self { source: source.clone(), header, directory })
    }

    /// The times of the earliest and the latest record.
    pub(crate) fn span(&self) -> Option<(SimTime, SimTime)> {
        self.directory.span
    }

    /// How many records there are.
    pub(crate) fn record_count(&self) -> u64 {
        self.directory.records
    }

    fn file(&self) -> Result<File, TraceError> {
        let name = self.source.name().clone();
        let reader = self.source.open();
        let reader = reader.map_err(|error| TraceError::new(&name, Place::new("the beginning", 0), error))?;
        Ok(File { reader, name })
    }

    fn blocks(&self, kind: Kind) -> VecDeque<u64> {
        self.directory.blocks.iter().filter(|block| block.kind == kind).map(|block| block.at).collect()
    }
}

/// An open file and its name.
struct File {
    reader: Reader,
    name: Arc<str>,
}

impl File {
    fn error(&self, part: &str, offset: u64, flaw: impl Into<Flaw>) -> TraceError {
        TraceError::new(&self.name, Place::new(part, offset), flaw)
    }

    fn check_beginning(&mut self, len: u64) -> Result<(), OpenError> {
        if len < FILE_HEADER_LEN {
            return Err(self.cut(len).into());
        }
        let mut beginning = [0; FILE_HEADER_LEN as usize];
        let read = self.reader.seek(SeekFrom::Start(0)).and_then(|_| self.reader.read_exact(&mut beginning));
        read.map_err(|error| self.error("the beginning", 0, error))?;
        let mut version = [0; 4];
        version.copy_from_slice(&beginning[8..12]);
        let version = u32::from_le_bytes(version);
        if version != VERSION || beginning[12..] != [0; 4] {
            let advice = "version 1 is; use a newer skctl, or copy the file again if it should be that";
            return Err(OpenError::Version { name: self.name.clone(), version: format!("{version} (native)"), advice });
        }
        Ok(())
    }

    /// The directory and where it is, or `None` if the file does not end as a whole one does.
    fn directory(&mut self, len: u64) -> Result<Option<(Directory, u64)>, TraceError> {
        let Some(trailer_at) = len.checked_sub(TRAILER_LEN).filter(|at| *at >= FILE_HEADER_LEN) else {
            return Ok(None);
        };
        let mut trailer = [0; TRAILER_LEN as usize];
        let read = self.reader.seek(SeekFrom::Start(trailer_at)).and_then(|_| self.reader.read_exact(&mut trailer));
        read.map_err(|error| self.error("the end", trailer_at, error))?;
        if trailer[8..] != END_MAGIC {
            return Ok(None);
        }
        let mut at = [0; 8];
        at.copy_from_slice(&trailer[..8]);
        let at = u64::from_le_bytes(at);
        let (raw, header) = self.block("the directory", at, Kind::Directory)?;
        if at.checked_add(header.block_len()) != Some(trailer_at) {
            return Err(self.error("the directory", at, Corrupt("it does not end where the trailer begins")));
        }
        let directory = Directory::decode(&raw).map_err(|corrupt| self.error("the directory", at, corrupt))?;
        Ok(Some((directory, at)))
    }

    /// Reads the headers of all listed blocks and the chunk lists of the indexes: see [`Layout`].
    fn check_layout(&mut self, directory: &Directory, directory_at: u64) -> Result<(), TraceError> {
        let mut layout = Layout::new();
        for entry in &directory.blocks {
            let part = if entry.kind == Kind::Index { "an index" } else { "rows" };
            let header = self.block_header(entry.at).map_err(|error| self.error(part, entry.at, error))?;
            layout
                .block(entry, &header, directory_at)
                .map_err(|corrupt| self.error("the directory", directory_at, corrupt))?;
            if entry.kind == Kind::Index {
                let raw = self.block(part, entry.at, Kind::Index)?.0;
                let chunks = ChunkIndex::decode_chunks(&raw);
                let chunks = chunks.map_err(|corrupt| self.error(part, entry.at, corrupt))?;
                let passed = chunks.iter().try_for_each(|chunk| layout.chunk(chunk, entry.at));
                passed.map_err(|corrupt| self.error(part, entry.at, corrupt))?;
            }
        }
        layout.finish(directory).map_err(|corrupt| self.error("the directory", directory_at, corrupt))
    }

    fn block_header(&mut self, at: u64) -> Result<BlockHeader, BlockError> {
        self.reader.seek(SeekFrom::Start(at))?;
        block::read_header(&mut self.reader)
    }

    /// Reads one whole block.
    fn block(&mut self, part: &str, at: u64, kind: Kind) -> Result<(Vec<u8>, BlockHeader), TraceError> {
        let mut read = || -> Result<_, BlockError> {
            let header = self.block_header(at)?;
            Ok((block::read_body(&mut self.reader, &header, kind)?, header))
        };
        read().map_err(|error| self.error(part, at, error))
    }

    /// Says how far a file without an end is whole.
    fn cut(&mut self, len: u64) -> TraceError {
        let mut at = FILE_HEADER_LEN;
        let (mut records, mut last) = (0_u64, None);
        while let Ok((header, end)) = self.block_end(at, len) {
            if header.kind == Kind::Bodies {
                let (count, time) = last.take().unwrap_or_default();
                records += u64::from(count);
                last = Some((0, time));
            } else if header.kind == Kind::Heads {
                let latest =
                    self.block("a chunk", at, Kind::Heads).ok().and_then(|(raw, _)| HeadsIn::decode(&raw).ok());
                let latest = latest.and_then(|heads| heads.len().checked_sub(1).map(|index| heads.head(index).at));
                last = Some((header.count, latest));
            }
            at = end;
        }
        let until = last.and_then(|(_, time): (u32, Option<SimTime>)| time);
        self.error("the end", len, Flaw::CutChunks { whole: at, records, until })
    }

    /// The header of the block at `at` and where it ends, if all of it is there.
    fn block_end(&mut self, at: u64, len: u64) -> Result<(BlockHeader, u64), BlockError> {
        let header = self.block_header(at)?;
        let end = at.checked_add(header.block_len()).filter(|end| *end <= len);
        Ok((header, end.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?))
    }
}

/// Streams the chunks that may hold something of a selection.
struct Chunks {
    file: File,
    indexes: VecDeque<u64>,
    chunks: VecDeque<ChunkEntry>,
    selection: Selection,
    /// How many chunks came before, to name one.
    number: u64,
}

/// One chunk's heads, and where its bodies are.
struct Chunk {
    heads: HeadsIn,
    entry: ChunkEntry,
    bodies_at: u64,
    part: String,
}

impl Chunks {
    fn new(trace: &Native, selection: &Selection) -> Result<Self, TraceError> {
        Ok(Self {
            file: trace.file()?,
            indexes: trace.blocks(Kind::Index),
            chunks: VecDeque::new(),
            selection: selection.clone(),
            number: 0,
        })
    }

    fn next(&mut self) -> Result<Option<Chunk>, TraceError> {
        loop {
            if let Some(entry) = self.chunks.pop_front() {
                self.number += 1;
                return self.read(entry).map(Some);
            }
            let Some(at) = self.indexes.pop_front() else { return Ok(None) };
            let raw = self.file.block("an index", at, Kind::Index)?.0;
            // Which objects are where matters only to who asks for one.
            let chunks = match self.selection.object() {
                Some(_) => ChunkIndex::decode(&raw).map(|index| index.select(&self.selection)),
                None => ChunkIndex::decode_chunks(&raw).map(|chunks| in_time(chunks, &self.selection)),
            };
            self.chunks = chunks.map_err(|corrupt| self.file.error("an index", at, corrupt))?;
        }
    }

    fn read(&mut self, entry: ChunkEntry) -> Result<Chunk, TraceError> {
        let part = format!("chunk {} of those read", self.number);
        let (raw, header) = self.file.block(&part, entry.at, Kind::Heads)?;
        let heads = HeadsIn::decode(&raw).map_err(|corrupt| self.file.error(&part, entry.at, corrupt))?;
        let checked = entry.check(heads.len() as u64, heads.bounds());
        checked.map_err(|corrupt| self.file.error(&part, entry.at, corrupt))?;
        let bodies_at = entry.at.saturating_add(header.block_len());
        Ok(Chunk { heads, entry, bodies_at, part })
    }

    fn bodies(&mut self, chunk: &Chunk) -> Result<BodiesIn, TraceError> {
        let (raw, header) = self.file.block(&chunk.part, chunk.bodies_at, Kind::Bodies)?;
        let end = chunk.bodies_at.checked_add(header.block_len());
        if end != chunk.entry.at.checked_add(chunk.entry.len) {
            return Err(self.file.error(&chunk.part, chunk.bodies_at, Corrupt("it is not as long as the index says")));
        }
        BodiesIn::new(raw).map_err(|corrupt| self.file.error(&chunk.part, chunk.bodies_at, corrupt))
    }
}

impl ChunkIndex {
    /// The chunks that may hold something of the selection.
    fn select(self, selection: &Selection) -> VecDeque<ChunkEntry> {
        match selection.object() {
            None => in_time(self.chunks, selection),
            Some(object) => {
                let places = self.objects.get(object).map_or(&[][..], Vec::as_slice);
                in_time(places.iter().map(|place| self.chunks[*place]), selection)
            }
        }
    }
}

/// The chunks that may hold something of the selected time.
fn in_time(chunks: impl IntoIterator<Item = ChunkEntry>, selection: &Selection) -> VecDeque<ChunkEntry> {
    chunks.into_iter().filter(|chunk| selection.overlaps(chunk.earliest, chunk.latest)).collect()
}

/// Streams heads; no object is read.
pub(crate) struct Heads {
    chunks: Chunks,
    current: Option<(Chunk, usize)>,
    done: bool,
}

impl Heads {
    pub(crate) fn new(trace: &Native, selection: &Selection) -> Result<Self, TraceError> {
        Ok(Self { chunks: Chunks::new(trace, selection)?, current: None, done: false })
    }

    fn step(&mut self) -> Result<Option<Head>, TraceError> {
        loop {
            if let Some((chunk, index)) = &mut self.current
                && *index < chunk.heads.len()
            {
                let head = chunk.heads.head(*index);
                *index += 1;
                if self.chunks.selection.takes(&head) {
                    return Ok(Some(head));
                }
                continue;
            }
            let Some(chunk) = self.chunks.next()? else { return Ok(None) };
            self.current = Some((chunk, 0));
        }
    }
}

impl Iterator for Heads {
    type Item = Result<Head, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let step = self.step();
        self.done = !matches!(step, Ok(Some(_)));
        step.transpose()
    }
}

/// Streams whole records.
pub(crate) struct Records {
    chunks: Chunks,
    current: Option<Current>,
    shapes: Shapes,
    done: bool,
}

/// The chunk whose records are being given out.
struct Current {
    chunk: Chunk,
    bodies: BodiesIn,
    next: usize,
}

impl Records {
    pub(crate) fn new(trace: &Native, selection: &Selection) -> Result<Self, TraceError> {
        Ok(Self { chunks: Chunks::new(trace, selection)?, current: None, shapes: Shapes::default(), done: false })
    }

    fn step(&mut self) -> Result<Option<Record>, TraceError> {
        loop {
            if let Some(current) = &mut self.current
                && current.next < current.chunk.heads.len()
            {
                let record = current.step(&self.chunks.selection, &mut self.shapes);
                match record.map_err(|flaw| {
                    let number = current.chunk.entry.first_seq;
                    let part = format!("{}, records from {number} on", current.chunk.part);
                    self.chunks.file.error(&part, current.chunk.bodies_at, flaw)
                })? {
                    Some(record) => return Ok(Some(record)),
                    None => continue,
                }
            }
            let Some(chunk) = self.chunks.next()? else { return Ok(None) };
            let bodies = self.chunks.bodies(&chunk)?;
            self.current = Some(Current { chunk, bodies, next: 0 });
        }
    }
}

impl Current {
    /// The next record, or `None` if it is not selected.
    fn step(&mut self, selection: &Selection, shapes: &mut Shapes) -> Result<Option<Record>, Flaw> {
        let index = self.next;
        self.next += 1;
        let head = self.chunk.heads.head(index);
        let body = if self.chunk.heads.has_body(index) { Some(self.bodies.next()?) } else { None };
        if !selection.takes(&head) {
            return Ok(None);
        }
        let change = match (head.what, body) {
            (What::Apply(object, _), Some(body)) => Change::Apply(shapes.read(&object, body)?),
            (What::Delete(object, _), last) => {
                let last = last.map(|last| shape::decode(&object, last)).transpose()?.map(Object::into_value);
                Change::Delete(Deletion { object: (*object).clone(), last })
            }
            _ => match self.chunk.heads.mark(index) {
                Some(mark) => Change::Mark(mark),
                None => return Err(Corrupt("an object is missing").into()),
            },
        };
        Ok(Some(Record { at: head.at, seq: head.seq, change }))
    }
}

impl Iterator for Records {
    type Item = Result<Record, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let step = self.step();
        self.done = !matches!(step, Ok(Some(_)));
        step.transpose()
    }
}

/// Streams the rows of one section.
pub(crate) struct Rows {
    file: File,
    section: Section,
    blocks: VecDeque<u64>,
    /// The text of the current block, how far it was read, where it is.
    current: (Vec<u8>, usize, u64),
}

impl Rows {
    pub(crate) fn new(trace: &Native, section: Section) -> Result<Self, TraceError> {
        let blocks = trace.blocks(Kind::Rows(section));
        Ok(Self { file: trace.file()?, section, blocks, current: (Vec::new(), 0, 0) })
    }

    fn step(&mut self) -> Result<Option<Row>, TraceError> {
        loop {
            let (text, read, at) = &mut self.current;
            let rest = &text[*read..];
            if !rest.is_empty() {
                let len = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |end| end + 1);
                let row = jsonl::parse_row(&rest[..len]);
                *read += len;
                return match row {
                    Ok(row) if row.section() == self.section => Ok(Some(row)),
                    Ok(_) => Err(self.file.error("rows", *at, Corrupt("it holds rows of another section"))),
                    Err(error) => Err(self.file.error("rows", *at, Flaw::Line(error.to_string()))),
                };
            }
            let Some(at) = self.blocks.pop_front() else { return Ok(None) };
            let text = self.file.block("rows", at, Kind::Rows(self.section))?.0;
            self.current = (text, 0, at);
        }
    }
}

impl Iterator for Rows {
    type Item = Result<Row, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if step.is_err() {
            self.blocks.clear();
            self.current = (Vec::new(), 0, 0);
        }
        step.transpose()
    }
}

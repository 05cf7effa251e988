//! Traces: the recorded history of a cluster, in any supported format.
//!
//! [`open`] detects the format by content, never by the file's name. A [`Trace`] keeps positions, not contents: each call
//! of [`Trace::records`] reads the file again, one object in memory at a time, so a trace can be larger than memory.
//! Whether a trace can be replayed is not checked here; `sk_trace::validate` does that.

mod config;
mod convert;
mod error;
mod head;
mod header;
mod jsonl;
mod lives;
mod manifests;
mod native;
mod peek;
mod record;
mod rows;
mod selection;
mod shape;
mod source;
pub(crate) mod spool;
mod stencil;
mod stream;
mod text;
mod v2;
mod write;

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use sk_core::SimTime;

pub use config::{ConfigError, TracerConfig, Tracked};
pub use convert::convert;
pub use error::{OpenError, TraceError};
pub use head::{Head, Labels, What};
pub use header::Header;
pub use lives::{Life, OwnerLives, TemplateLives};
pub use record::{Change, Deletion, Mark, NotAnObject, Object, Record};
pub use rows::{Gap, IndexPart, NodeEvent, Observation, Reserved, Row, Section, Wait};
pub use selection::Selection;
pub use shape::Shape;
pub use source::Digest;
pub use stencil::{Encoded, Filling, Ink, Stencil};
pub use write::{Losses, WriteError, Writer};

use error::Place;
use jsonl::JsonLines;
use manifests::ManifestFile;
use native::Native;
use source::Source;
use v2::V2;

/// In which form a trace is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// MessagePack, as SimKube 2 writes it.
    V2,
    /// MessagePack, as SimKube 2's coming version writes it.
    V3,
    /// Our own: chunks, compressed, with random access. See docs/trace-format.md.
    Native,
    /// Text, one thing per line.
    JsonLines,
    /// Plain Kubernetes manifests; everything is created at time 0. Only read.
    Manifests,
}

impl Format {
    /// The name of the format on the command line and in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::V2 => "v2",
            Self::V3 => "v3",
            Self::Native => "native",
            Self::JsonLines => "jsonl",
            Self::Manifests => "yaml",
        }
    }
}

/// An open trace.
#[derive(Debug)]
pub struct Trace {
    source: Source,
    content: Content,
    digest: OnceLock<Digest>,
}

#[derive(Debug)]
enum Content {
    V2(V2),
    JsonLines(JsonLines),
    /// Read at once and kept as lines.
    Manifests(JsonLines),
    Native(Native),
}

/// Opens a trace file, whatever its form. A pipe or a device is read once, as standard input is.
pub fn open(path: &Path) -> Result<Trace, OpenError> {
    let source = Source::file(path);
    if path.is_dir() {
        let (files, digest) = manifests::read_folder(path)?;
        let content = Content::Manifests(manifests::open(source.name(), &files)?);
        return Ok(Trace { source, content, digest: OnceLock::from(digest) });
    }
    if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        let file = File::open(path).map_err(|error| OpenError::Io { name: source.name().clone(), source: error })?;
        return from_reader(source.name(), file);
    }
    open_source(source)
}

/// Opens a trace that is in memory: compiled in, or made there. Messages call it `name`.
pub fn from_bytes(name: &str, bytes: impl Into<Bytes>) -> Result<Trace, OpenError> {
    open_source(Source::memory(name, bytes.into()))
}

/// Opens a trace that can be read only once, such as standard input: it is copied into a temporary file first, which
/// goes with the process. Messages call it `name`.
pub fn from_reader(name: &str, reader: impl Read) -> Result<Trace, OpenError> {
    open_source(Source::unnamed(name, stream::copy(name, reader)?))
}

/// Opens a trace in a file that is removed with it. Messages call it `name`.
pub fn open_temporary(name: &str, path: tempfile::TempPath) -> Result<Trace, OpenError> {
    open_source(Source::temporary(name, path))
}

/// Opens a trace in a file that no folder lists. Messages call it `name`.
#[cfg(feature = "remote")]
pub(crate) fn open_unnamed(name: &str, file: File) -> Result<Trace, OpenError> {
    open_source(Source::unnamed(name, file))
}

/// How much of a file tells its form.
const BEGINNING_BYTES: u64 = 512;

/// The form that a file's first bytes tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guess {
    V2,
    Native,
    JsonLines,
    Manifests,
}

impl Guess {
    fn of(name: &Arc<str>, beginning: &[u8]) -> Result<Self, OpenError> {
        let name = || name.clone();
        match beginning.first() {
            None => Err(OpenError::Empty { name: name() }),
            // A picture's first byte could begin a MessagePack map.
            Some(_) if beginning.starts_with(b"\x89PNG") => {
                Err(OpenError::Foreign { name: name(), looks_like: "it is a PNG picture".into() })
            }
            Some(0x80..=0x8f | 0xde | 0xdf) => Ok(Self::V2),
            Some(_) if beginning.starts_with(&native::MAGIC) => Ok(Self::Native),
            Some(b'{') if beginning.starts_with(jsonl::BEGINNING) => Ok(Self::JsonLines),
            Some(0x90..=0x9f | 0xdc | 0xdd) => Err(positional(name())),
            Some(_) if is_text(beginning) => Ok(Self::Manifests),
            Some(_) => Err(OpenError::Foreign { name: name(), looks_like: looks_like(beginning) }),
        }
    }
}

fn open_source(source: Source) -> Result<Trace, OpenError> {
    let io = |error| OpenError::Io { name: source.name().clone(), source: error };
    let content = match Guess::of(source.name(), &source.beginning(BEGINNING_BYTES).map_err(io)?)? {
        Guess::V2 => Content::V2(V2::open(&source)?),
        Guess::Native => Content::Native(Native::open(&source)?),
        Guess::JsonLines => Content::JsonLines(JsonLines::open(&source)?),
        Guess::Manifests => {
            let name = source.name();
            let text = source.all(manifests::MAX_BYTES).map_err(io)?;
            let text = text.ok_or_else(|| manifests::too_long(name))?;
            Content::Manifests(manifests::open(name, &[ManifestFile { name: name.clone(), text }])?)
        }
    };
    Ok(Trace { source, content, digest: OnceLock::new() })
}

/// Versions before 2 were MessagePack arrays.
fn positional(name: Arc<str>) -> OpenError {
    let advice = "export it again with SimKube 2 or newer";
    OpenError::Version { name, version: "1 or older".into(), advice }
}

/// What a file that is not a trace may be, for the person who has it.
fn looks_like(beginning: &[u8]) -> String {
    match beginning {
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "it is compressed with zstd, decompress it first".into(),
        [0x1f, 0x8b, ..] => "it is compressed with gzip, decompress it first".into(),
        [b'P', b'K', ..] => "it is a zip archive, unpack it first".into(),
        [b'P', b'A', b'R', b'1', ..] => "it is a Parquet file, perhaps of a run".into(),
        _ => format!("it begins with the bytes {:02x?}", &beginning[..beginning.len().min(4)]),
    }
}

/// Could this be the beginning of a text? The last character may be cut.
fn is_text(beginning: &[u8]) -> bool {
    let text = match std::str::from_utf8(beginning) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&beginning[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return false,
    };
    !text.is_empty() && !text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t'))
}

impl Trace {
    /// In which form it is written.
    pub fn format(&self) -> Format {
        match &self.content {
            Content::V2(trace) if trace.version == 3 => Format::V3,
            Content::V2(_) => Format::V2,
            Content::JsonLines(_) => Format::JsonLines,
            Content::Manifests(_) => Format::Manifests,
            Content::Native(_) => Format::Native,
        }
    }

    /// What messages call it: its path, or the name it was opened under.
    pub fn name(&self) -> &str {
        self.source.name()
    }

    /// The tracer configuration.
    pub fn config(&self) -> &TracerConfig {
        &self.header().config
    }

    /// What it says of itself before its first record.
    pub fn header(&self) -> &Header {
        match &self.content {
            Content::V2(trace) => &trace.header,
            Content::JsonLines(trace) | Content::Manifests(trace) => &trace.header,
            Content::Native(trace) => &trace.header,
        }
    }

    /// The times of the earliest and the latest record, marks included; `None` if there is none.
    pub fn span(&self) -> Option<(SimTime, SimTime)> {
        match &self.content {
            Content::V2(trace) => trace.span,
            Content::JsonLines(trace) | Content::Manifests(trace) => trace.span,
            Content::Native(trace) => trace.span(),
        }
    }

    /// How many records it has, marks included, where the form says so without being read through.
    pub fn record_count(&self) -> Option<u64> {
        match &self.content {
            Content::Native(trace) => Some(trace.record_count()),
            _ => None,
        }
    }

    /// The SHA-256 of the trace's bytes, read when first asked for. The same trace in another form has another one.
    pub fn digest(&self) -> Result<Digest, TraceError> {
        if let Some(digest) = self.digest.get() {
            return Ok(*digest);
        }
        let digest = self
            .source
            .digest()
            .map_err(|error| TraceError::new(self.source.name(), Place::new("reading all of it", 0), error))?;
        Ok(*self.digest.get_or_init(|| digest))
    }

    /// Streams everything that happened, in order.
    pub fn records(&self) -> Result<Records<'_>, TraceError> {
        self.select(&Selection::all())
    }

    /// Streams the selected part of what happened, in order.
    pub fn select(&self, selection: &Selection) -> Result<Records<'_>, TraceError> {
        let records: Records<'_> = match &self.content {
            Content::Native(trace) => return Ok(Rows::new(native::Records::new(trace, selection)?)),
            Content::V2(trace) => Rows::new(v2::Records::new(trace)?),
            Content::JsonLines(trace) | Content::Manifests(trace) => Rows::new(jsonl::Records::new(trace)?),
        };
        if *selection == Selection::all() {
            return Ok(records);
        }
        let selection = selection.clone();
        Ok(Rows::new(records.filter(move |record| match record {
            Ok(record) => selection.takes(&Head::of(record)),
            Err(_) => true,
        })))
    }

    /// Streams the heads of what happened, in order: in the native format without reading any object.
    pub fn heads(&self) -> Result<Rows<'_, Head>, TraceError> {
        self.select_heads(&Selection::all())
    }

    /// Streams the heads of the selected part.
    pub fn select_heads(&self, selection: &Selection) -> Result<Rows<'_, Head>, TraceError> {
        match &self.content {
            Content::Native(trace) => Ok(Rows::new(native::Heads::new(trace, selection)?)),
            _ => Ok(Rows::new(self.select(selection)?.map(|record| record.map(|record| Head::of(&record))))),
        }
    }

    /// Streams the rows of one section.
    pub fn rows(&self, section: Section) -> Result<Rows<'_, Row>, TraceError> {
        Ok(match (&self.content, section) {
            (Content::V2(trace), Section::Lives) => Rows::new(v2::Lives::new(trace)?.map(|row| row.map(Row::Lives))),
            (Content::V2(trace), Section::Index) => Rows::new(v2::Index::new(trace)?.map(|row| row.map(Row::Index))),
            (Content::V2(_), _) => Rows::new(std::iter::empty()),
            (Content::JsonLines(trace) | Content::Manifests(trace), section) => {
                Rows::new(jsonl::Rows::new(trace, section)?)
            }
            (Content::Native(trace), section) => Rows::new(native::Rows::new(trace, section)?),
        })
    }

    /// How long pods lived, one owner at a time. An owner may come again.
    pub fn lives(&self) -> Result<Rows<'_, OwnerLives>, TraceError> {
        self.rows(Section::Lives)?.only(|row| match row {
            Row::Lives(lives) => Some(lives),
            _ => None,
        })
    }

    /// What happened to each pod while the trace was recorded.
    pub fn observations(&self) -> Result<Rows<'_, Observation>, TraceError> {
        self.rows(Section::Observations)?.only(|row| match row {
            Row::Observation(observation) => Some(observation),
            _ => None,
        })
    }

    /// Which nodes came, changed and went.
    pub fn node_events(&self) -> Result<Rows<'_, NodeEvent>, TraceError> {
        self.rows(Section::Nodes)?.only(|row| match row {
            Row::Node(event) => Some(event),
            _ => None,
        })
    }

    /// What pods outside the trace took from each node.
    pub fn reserved(&self) -> Result<Rows<'_, Reserved>, TraceError> {
        self.rows(Section::Reserved)?.only(|row| match row {
            Row::Reserved(reserved) => Some(reserved),
            _ => None,
        })
    }

    /// Times the recording did not see.
    pub fn gaps(&self) -> Result<Rows<'_, Gap>, TraceError> {
        self.rows(Section::Gaps)?.only(|row| match row {
            Row::Gap(gap) => Some(gap),
            _ => None,
        })
    }
}

/// A trace's records, as a stream. It ends after the first error.
pub type Records<'a> = Rows<'a, Record>;

/// What a trace holds, as a stream. It ends after the first error.
pub struct Rows<'a, T>(Box<dyn Iterator<Item = Result<T, TraceError>> + Send + 'a>);

impl<'a, T> Rows<'a, T> {
    fn new(rows: impl Iterator<Item = Result<T, TraceError>> + Send + 'a) -> Self {
        Self(Box::new(rows))
    }
}

impl<'a> Rows<'a, Row> {
    /// The rows as what all of them are.
    fn only<T>(self, pick: fn(Row) -> Option<T>) -> Result<Rows<'a, T>, TraceError>
    where
        T: 'a,
    {
        Ok(Rows::new(self.filter_map(move |row| row.map(pick).transpose())))
    }
}

impl<T> Iterator for Rows<'_, T> {
    type Item = Result<T, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

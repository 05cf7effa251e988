//! Errors of opening and reading a trace: which file, which position, what is wrong, what to do.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use sk_core::SimTime;

use super::config::ConfigError;
use super::native::BlockError;
use super::record::NotAnObject;
use crate::msgpack::Fault;
use crate::msgpack::input::WalkError;
use crate::varint::Corrupt;

/// Why a file is not opened as a trace.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file system said no.
    #[error("cannot open {name}: {source}; check that the path is right and that you may read it")]
    Io {
        /// The file.
        name: Arc<str>,
        /// What the file system said.
        source: io::Error,
    },
    /// What can be read only once could not be copied.
    #[error(
        "cannot copy {name} into a temporary file in {}: {source}; free disk space there, or set TMPDIR to another folder",
        .folder.display()
    )]
    Copy {
        /// What was to be read.
        name: Arc<str>,
        /// Where temporary files are.
        folder: PathBuf,
        /// What the file system said.
        source: io::Error,
    },
    /// The input is too long for this format.
    #[error("{name} is longer than {}, more than is read at once; {advice}", in_words(*.limit))]
    TooLong {
        /// The file.
        name: Arc<str>,
        /// How many bytes it may have.
        limit: u64,
        /// What to do.
        advice: &'static str,
    },
    /// The input is empty.
    #[error("{name} is empty; record or download it again")]
    Empty {
        /// The file.
        name: Arc<str>,
    },
    /// The input is not a trace.
    #[error("{name} is not a trace: {looks_like}; a trace is a .sktrace file, JSON Lines or Kubernetes manifests")]
    Foreign {
        /// The file.
        name: Arc<str>,
        /// What it seems to be.
        looks_like: String,
    },
    /// The input is a trace of an unsupported version.
    #[error("{name} is a trace of version {version}, which is not read here; {advice}")]
    Version {
        /// The file.
        name: Arc<str>,
        /// What it says of itself.
        version: String,
        /// What to do.
        advice: &'static str,
    },
    /// The input is a damaged trace.
    #[error(transparent)]
    Broken(#[from] TraceError),
}

/// A limit in words. All limits are whole mebibytes.
fn in_words(limit: u64) -> String {
    if limit >= 1 << 30 { format!("{} GiB", limit >> 30) } else { format!("{} MiB", limit >> 20) }
}

/// Why a trace cannot be read on.
#[derive(Debug, thiserror::Error)]
#[error("{name}, {place}: {flaw}; {}", flaw.advice())]
pub struct TraceError {
    /// The file.
    name: Arc<str>,
    /// Where in it.
    place: Place,
    /// What is wrong there.
    #[source]
    flaw: Flaw,
}

/// Where in a trace something is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// Which part: `config`, `event 3`, …
    pub(crate) part: Option<String>,
    /// How many bytes lie before it.
    pub(crate) offset: Option<u64>,
}

/// What can be wrong.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Flaw {
    #[error("reading failed: {0}")]
    Io(#[source] io::Error),
    #[error("{0}")]
    Encoding(#[source] Fault),
    #[error("{0}")]
    Config(#[source] ConfigError),
    #[error("it holds something that is not a Kubernetes object: {0}")]
    Object(#[source] NotAnObject),
    #[error("{0}")]
    Line(String),
    #[error("{0}")]
    Manifest(String),
    #[error("{0}")]
    Block(#[source] Corrupt),
    #[error("{}", say_cut(*.whole, *.records, *.until))]
    CutChunks { whole: u64, records: u64, until: Option<SimTime> },
    #[error("{0}")]
    Content(String),
}

/// How much of a cut native trace is there.
fn say_cut(whole: u64, records: u64, until: Option<SimTime>) -> String {
    let until = until.map(|time| format!(", until {time}")).unwrap_or_default();
    format!("the file has no end; {records} records in its first {whole} bytes are whole{until}")
}

impl TraceError {
    pub(crate) fn new(name: &Arc<str>, place: Place, flaw: impl Into<Flaw>) -> Self {
        Self { name: name.clone(), place, flaw: flaw.into() }
    }

    /// Does the trace end too early, as after a broken download or a full disk?
    pub fn is_cut(&self) -> bool {
        matches!(self.flaw, Flaw::Encoding(Fault::Cut) | Flaw::CutChunks { .. })
    }
}

impl Flaw {
    fn advice(&self) -> &'static str {
        match self {
            Self::Io(_) => "check the disk and try again",
            Self::Encoding(Fault::Cut) | Self::CutChunks { .. } => "the file is cut short: copy or export it again",
            Self::Encoding(_) | Self::Block(_) => "the file is damaged or no trace: copy or export it again",
            Self::Config(_) => "correct the configuration and export again",
            Self::Object(_) => "remove or correct it in the trace's source",
            Self::Line(_) => "correct the line",
            Self::Manifest(_) => "correct the file",
            Self::Content(_) => "the program that wrote it made a mistake: export it again",
        }
    }
}

impl Place {
    /// Part `part`, which begins or goes wrong after `offset` bytes.
    pub(crate) fn new(part: impl Into<String>, offset: u64) -> Self {
        Self { part: Some(part.into()), offset: Some(offset) }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.part, self.offset) {
            (Some(part), Some(offset)) => write!(f, "{part}, byte {offset}"),
            (Some(part), None) => f.write_str(part),
            (None, Some(offset)) => write!(f, "byte {offset}"),
            (None, None) => f.write_str("somewhere"),
        }
    }
}

impl From<WalkError> for Flaw {
    fn from(error: WalkError) -> Self {
        match error {
            WalkError::Io(error) => Self::Io(error),
            WalkError::Fault(fault) => Self::Encoding(fault),
        }
    }
}

impl From<io::Error> for Flaw {
    fn from(error: io::Error) -> Self {
        WalkError::from(error).into()
    }
}

impl From<Fault> for Flaw {
    fn from(fault: Fault) -> Self {
        Self::Encoding(fault)
    }
}

impl From<Corrupt> for Flaw {
    fn from(corrupt: Corrupt) -> Self {
        Self::Block(corrupt)
    }
}

impl From<BlockError> for Flaw {
    fn from(error: BlockError) -> Self {
        match error {
            BlockError::Io(error) => error.into(),
            BlockError::Corrupt(corrupt) => corrupt.into(),
        }
    }
}

impl From<NotAnObject> for Flaw {
    fn from(error: NotAnObject) -> Self {
        Self::Object(error)
    }
}

impl From<ConfigError> for Flaw {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

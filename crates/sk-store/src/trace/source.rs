//! The bytes of a trace: a file, or memory. Cheap to clone; each reader has its own position.

use std::fmt;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use tempfile::TempPath;

/// A trace's bytes and the name that messages call it by.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    name: Arc<str>,
    place: Place,
}

#[derive(Clone, Debug)]
enum Place {
    File(Arc<PathBuf>),
    /// Removed after its last reader.
    Temporary(Arc<TempPath>),
    /// A temporary file that no folder lists: it is gone when the process is, even a killed one.
    Unnamed(Arc<File>),
    Memory(Bytes),
}

/// An open source.
pub(crate) enum Reader {
    File(File),
    /// All readers share the one open file, so each keeps its own position.
    Shared(Arc<File>, u64),
    Memory(Cursor<Bytes>),
}

impl Source {
    pub(crate) fn file(path: &Path) -> Self {
        Self { name: path.display().to_string().into(), place: Place::File(Arc::new(path.to_owned())) }
    }

    pub(crate) fn temporary(name: &str, path: TempPath) -> Self {
        Self { name: name.into(), place: Place::Temporary(Arc::new(path)) }
    }

    pub(crate) fn unnamed(name: &str, file: File) -> Self {
        Self { name: name.into(), place: Place::Unnamed(Arc::new(file)) }
    }

    pub(crate) fn memory(name: &str, bytes: Bytes) -> Self {
        Self { name: name.into(), place: Place::Memory(bytes) }
    }

    /// What messages call it.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// A reader at the start.
    pub(crate) fn open(&self) -> io::Result<Reader> {
        Ok(match &self.place {
            Place::File(path) => Reader::File(File::open(&**path)?),
            Place::Temporary(path) => Reader::File(File::open(&**path)?),
            Place::Unnamed(file) => Reader::Shared(file.clone(), 0),
            Place::Memory(bytes) => Reader::Memory(Cursor::new(bytes.clone())),
        })
    }

    /// All bytes, or `None` if they are more than `limit`.
    pub(crate) fn all(&self, limit: u64) -> io::Result<Option<Bytes>> {
        let all = match &self.place {
            Place::Memory(bytes) => bytes.clone(),
            Place::File(_) | Place::Temporary(_) | Place::Unnamed(_) => self.beginning(limit.saturating_add(1))?.into(),
        };
        Ok((all.len() as u64 <= limit).then_some(all))
    }

    /// The first `len` bytes, or all if there are fewer.
    pub(crate) fn beginning(&self, len: u64) -> io::Result<Vec<u8>> {
        let mut beginning = Vec::new();
        self.open()?.take(len).read_to_end(&mut beginning)?;
        Ok(beginning)
    }

    /// The SHA-256 of all bytes.
    pub(crate) fn digest(&self) -> io::Result<Digest> {
        let mut hasher = Sha256::new();
        let mut reader = self.open()?;
        let mut buffer = vec![0; 64 << 10];
        loop {
            let len = reader.read(&mut buffer)?;
            if len == 0 {
                return Ok(hasher.into());
            }
            hasher.update(&buffer[..len]);
        }
    }
}

impl Reader {
    /// A reader that has nothing.
    pub(crate) fn nothing() -> Self {
        Self::Memory(Cursor::new(Bytes::new()))
    }
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read(buffer),
            Self::Shared(file, at) => {
                let len = read_at(file, buffer, *at)?;
                *at += len as u64;
                Ok(len)
            }
            Self::Memory(cursor) => cursor.read(buffer),
        }
    }
}

impl Seek for Reader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match self {
            Self::File(file) => file.seek(to),
            Self::Shared(file, at) => {
                *at = match to {
                    SeekFrom::Start(to) => Some(to),
                    SeekFrom::End(by) => file.metadata()?.len().checked_add_signed(by),
                    SeekFrom::Current(by) => at.checked_add_signed(by),
                }
                .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
                Ok(*at)
            }
            Self::Memory(cursor) => cursor.seek(to),
        }
    }
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, at)
}

#[cfg(windows)]
fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, at)
}

/// The SHA-256 of a trace's bytes, as `sha256sum` prints it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<Sha256> for Digest {
    fn from(hasher: Sha256) -> Self {
        Self(hasher.finalize().into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

//! Buffers a stream of unknown length: in memory while it is small, then in a temporary file.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use tempfile::SpooledTempFile;

use super::write::WriteError;
use crate::disk_space::{Floor, Gauge};

/// How much of a spool stays in memory.
const MAX_IN_MEMORY: usize = 4 << 20;

/// Where temporary files are made: in a folder that is known to be writable, or where the system has them.
#[derive(Clone, Debug, Default)]
pub(crate) struct SpoolFolder(Option<(Arc<Path>, Floor)>);

impl SpoolFolder {
    /// A folder on a volume that others need too: some of it is left free.
    #[cfg(feature = "log")]
    pub(crate) fn at(folder: &Path) -> Self {
        Self(Some((folder.into(), Floor::of(folder))))
    }
}

/// Bytes that wait to be written.
pub(crate) struct Spool {
    file: SpooledTempFile,
    len: u64,
    folder: SpoolFolder,
    gauge: Gauge,
}

impl Spool {
    pub(crate) fn new(folder: &SpoolFolder) -> Self {
        let file = match &folder.0 {
            Some((folder, _)) => SpooledTempFile::new_in(MAX_IN_MEMORY, folder),
            None => SpooledTempFile::new(MAX_IN_MEMORY),
        };
        let gauge = Gauge::new(folder.0.as_ref().map(|(_, floor)| floor.clone()));
        Self { file, len: 0, folder: folder.clone(), gauge }
    }

    /// An empty one in the same folder.
    pub(crate) fn another(&self) -> Self {
        Self::new(&self.folder)
    }

    /// How many bytes it holds.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Adds bytes at the end.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        self.gauge.writing(bytes.len()).map_err(|full| WriteError::Spool(full.into()))?;
        self.file.write_all(bytes).map_err(WriteError::Spool)?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Copies everything to `out` and becomes empty.
    pub(crate) fn drain(&mut self, out: &mut impl Write) -> Result<(), WriteError> {
        self.copy(0, self.len, out)?;
        *self = Self::new(&self.folder);
        Ok(())
    }

    /// Copies `len` bytes from `offset` on to `out`.
    pub(crate) fn copy(&mut self, offset: u64, len: u64, out: &mut impl Write) -> Result<(), WriteError> {
        self.file.seek(SeekFrom::Start(offset)).map_err(WriteError::Spool)?;
        let copied = io::copy(&mut (&mut self.file).take(len), out).map_err(WriteError::Output)?;
        if copied < len {
            return Err(WriteError::Spool(io::ErrorKind::UnexpectedEof.into()));
        }
        self.file.seek(SeekFrom::End(0)).map_err(WriteError::Spool)?;
        Ok(())
    }

    /// Copies everything to the end of another spool and becomes empty.
    pub(crate) fn drain_into(&mut self, other: &mut Self) -> Result<(), WriteError> {
        self.drain(&mut other.file)?;
        other.len = other.file.stream_position().map_err(WriteError::Spool)?;
        Ok(())
    }
}

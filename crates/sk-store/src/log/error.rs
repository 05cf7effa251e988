//! Errors of the log: which file, which step failed, and what to do.

use std::io;
use std::path::PathBuf;

use sk_core::SimTime;

/// Errors of the log.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The folder cannot be made or listed.
    #[error("cannot use {} as the data folder: {source}; check that it exists and may be written", path.display())]
    Folder {
        /// Which one.
        path: PathBuf,
        /// The error of the file system.
        #[source]
        source: io::Error,
    },
    /// Another process has the folder.
    #[error("another tracer records into {}; stop it, or give each its own data folder", path.display())]
    Locked {
        /// Which one.
        path: PathBuf,
    },
    /// A segment of a newer version.
    #[error("{} is of version {version}, which only a newer SimKube reads; use that one, or another data folder",
        path.display())]
    Newer {
        /// Which segment.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// A segment cannot be read now; nothing shows that it is damaged.
    #[error("reading {} failed: {source}; nothing was changed, try again when the disk works again", path.display())]
    Read {
        /// Which segment.
        path: PathBuf,
        /// The error of the file system.
        #[source]
        source: io::Error,
    },
    /// Writing failed. Nothing is recorded until [`super::Log::resume`] succeeds; what was synced is safe.
    #[error("writing {} failed: {source}; recording stops until there is disk space again", path.display())]
    Write {
        /// Which segment.
        path: PathBuf,
        /// The error of the file system.
        #[source]
        source: io::Error,
    },
    /// An earlier write failed, and [`super::Log::resume`] was not called since.
    #[error("nothing is recorded since {since}, when writing the log failed; free disk space, and recording resumes")]
    Stopped {
        /// The last moment that is in the log.
        since: SimTime,
    },
    /// A fact is longer than any can be. The log goes on without it.
    #[error("{what} takes {bytes} bytes, and at most {limit} are recorded of one thing; it is left out")]
    TooLarge {
        /// The object or pod of the fact.
        what: String,
        /// The length of the fact.
        bytes: usize,
        /// How long it may be.
        limit: usize,
    },
}

impl LogError {
    /// Is the disk full, or the share of it that this process may use?
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Write { source, .. } if matches!(source.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge))
    }

    /// Did it stop the recording?
    pub fn stops_recording(&self) -> bool {
        matches!(self, Self::Write { .. } | Self::Stopped { .. })
    }
}

/// A part of the log that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// In which file.
    pub file: PathBuf,
    /// What is wrong with it.
    pub reason: String,
    /// The last moment that can be read.
    pub from: SimTime,
    /// The first moment that can be read again; `None` if there is none.
    pub to: Option<SimTime>,
}

//! Writes one stream to disk, atomically. Records, logs and traces all use this.
//!
//! Bytes are written to a temporary file beside the destination, counted, hashed if asked, synced and renamed. Nothing
//! is held in memory. The volume is never filled to its last block, because a full file system can often not even
//! delete.

use std::io;
use std::path::Path;

use futures::{Stream, StreamExt};
use sha2::{Digest, Sha256};
use tokio::fs::{self, File};
use tokio::io::AsyncWriteExt;

/// What is being written has this before its name.
pub(super) const INCOMING: &str = ".incoming-";
/// How often the free space is checked, in bytes that one sender has sent.
const ROOM_CHECK_BYTES: u64 = 1 << 20;
/// What stays free on the volume. Between two questions the 64 connections that are served at a time write a megabyte
/// each; four times that is left to whatever else lives there.
const FLOOR_BYTES: u64 = 4 * 64 * ROOM_CHECK_BYTES;
/// What traces leave to records and logs: a quarter of the volume. A quarter of the 20 GiB of an installation is 340
/// records of 15 MB; on a larger volume no more than that is kept for them.
const RECORDS_SHARE: u64 = 4;
const MAX_RECORDS_BYTES: u64 = 5 << 30;

/// Why something is not kept or found.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The name cannot be a Simulation's.
    #[error("`{0}` is not the name of a Simulation")]
    Name(String),
    /// The name cannot be a trace's.
    #[error("`{0}` is not a SHA-256: name a trace by its 64 lower-case hexadecimal digits")]
    Hash(String),
    /// The content does not match its announced hash.
    #[error("what was sent has the SHA-256 {found}, not {wanted}: nothing of it is kept; send it again")]
    OtherBytes {
        /// What was announced.
        wanted: String,
        /// The hash of the content.
        found: String,
    },
    /// The disk does not do it.
    #[error("{step}: {source}")]
    Disk {
        /// What was to be done.
        step: String,
        /// The error.
        #[source]
        source: io::Error,
    },
    /// More than one thing may have.
    #[error("more than {limit} bytes: a {what} of that size is not kept{advice}")]
    TooLarge {
        /// The most.
        limit: u64,
        /// The upload that was refused.
        what: &'static str,
        /// What to do about it.
        advice: &'static str,
    },
    /// The volume is full.
    #[error(
        "the controller's volume has {free} bytes left, and {floor} stay free: delete Simulations whose records nobody \
         needs (`skctl delete NAME`), or resize the claim sk-ctrl-records"
    )]
    Full {
        /// What is left.
        free: u64,
        /// What has to be.
        floor: u64,
    },
    /// The sender stopped in the middle.
    #[error("the sender closed the connection: {0}")]
    BrokenOff(String),
}

/// What bytes have to be to be kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms<'a> {
    /// What they are, for people.
    pub(super) what: &'static str,
    /// The most of them.
    pub(super) limit: u64,
    /// What to do if there are more.
    pub(super) advice: &'static str,
    /// Their SHA-256, if it was announced.
    pub(super) sha256: Option<&'a str>,
    /// What has to stay free on the volume.
    pub(super) floor: Floor,
}

/// What has to stay free on the volume.
#[derive(Clone, Copy, Debug)]
pub(super) enum Floor {
    /// So much.
    Bytes(u64),
    /// Room for records and logs as well: what people send must not keep drivers from sending theirs.
    Records,
}

impl Floor {
    /// So much that the file system works.
    pub(super) const LAST: Self = Self::Bytes(FLOOR_BYTES);

    /// In bytes, on a volume of this size.
    fn bytes(self, volume: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Records => (volume / RECORDS_SHARE).clamp(FLOOR_BYTES, MAX_RECORDS_BYTES),
        }
    }
}

/// Puts a stream into `folder` under the name `file`, in place of what is there. Returns its size.
pub(super) async fn put<B, E>(
    folder: &Path,
    file: &str,
    body: impl Stream<Item = Result<B, E>>,
    terms: Terms<'_>,
) -> Result<u64, StoreError>
where
    B: AsRef<[u8]>,
    E: std::fmt::Display,
{
    fs::create_dir_all(folder).await.map_err(disk("make", folder))?;
    let incoming =
        tempfile::Builder::new().prefix(INCOMING).tempfile_in(folder).map_err(disk("make a file in", folder))?;
    // Dropped on any way out but the last, it is removed.
    let (handle, unfinished) = incoming.into_parts();
    let mut out = File::from_std(handle);
    let size = copy(body, &mut out, &unfinished, terms).await?;
    let place = folder.join(file);
    unfinished.persist(&place).map_err(|error| disk("rename", &place)(error.error))?;
    Ok(size)
}

async fn copy<B, E>(
    body: impl Stream<Item = Result<B, E>>,
    out: &mut File,
    path: &Path,
    terms: Terms<'_>,
) -> Result<u64, StoreError>
where
    B: AsRef<[u8]>,
    E: std::fmt::Display,
{
    let mut hash = terms.sha256.map(|_| Sha256::new());
    let (mut size, mut unasked) = (0, ROOM_CHECK_BYTES);
    let mut body = std::pin::pin!(body);
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(|error| StoreError::BrokenOff(error.to_string()))?;
        let bytes = chunk.as_ref();
        (size, unasked) = (size + bytes.len() as u64, unasked + bytes.len() as u64);
        if size > terms.limit {
            return Err(StoreError::TooLarge { limit: terms.limit, what: terms.what, advice: terms.advice });
        }
        if unasked >= ROOM_CHECK_BYTES {
            check_space(path, terms.floor)?;
            unasked = 0;
        }
        if let Some(hash) = &mut hash {
            hash.update(bytes);
        }
        out.write_all(bytes).await.map_err(disk("write", path))?;
    }
    check_hash(hash, terms.sha256)?;
    out.flush().await.map_err(disk("write", path))?;
    out.sync_all().await.map_err(disk("write", path))?;
    Ok(size)
}

fn check_hash(hash: Option<Sha256>, wanted: Option<&str>) -> Result<(), StoreError> {
    let (Some(hash), Some(wanted)) = (hash, wanted) else { return Ok(()) };
    let found: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    if found == wanted { Ok(()) } else { Err(StoreError::OtherBytes { wanted: wanted.to_owned(), found }) }
}

/// Is there free space above the floor?
fn check_space(path: &Path, floor: Floor) -> Result<(), StoreError> {
    let volume = rustix::fs::statvfs(path).map_err(|error| disk("read the free space at", path)(error.into()))?;
    let free = volume.f_bavail.saturating_mul(volume.f_frsize);
    let floor = floor.bytes(volume.f_blocks.saturating_mul(volume.f_frsize));
    if free < floor { Err(StoreError::Full { free, floor }) } else { Ok(()) }
}

/// Opens a file; `None` if there is none.
pub(super) async fn open(path: &Path) -> Result<Option<File>, StoreError> {
    match File::open(path).await {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(disk("open", path)(error)),
    }
}

/// The names in a folder, in order.
pub(super) async fn list(folder: &Path) -> Result<Vec<String>, StoreError> {
    let mut entries = fs::read_dir(folder).await.map_err(disk("read", folder))?;
    let mut names = Vec::new();
    while let Some(entry) = entries.next_entry().await.map_err(disk("read", folder))? {
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// Removes a file. One that is gone already counts as removed.
pub(super) async fn remove(path: &Path) -> Result<(), StoreError> {
    unless_gone(fs::remove_file(path).await).map_err(disk("remove", path))
}

/// What is gone already counts as removed.
pub(super) fn unless_gone(removed: io::Result<()>) -> io::Result<()> {
    removed.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

/// For `map_err`: what was to be done, and where.
pub(super) fn disk(verb: &str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let step = format!("{verb} {}", path.display());
    move |source| StoreError::Disk { step, source }
}

#[cfg(test)]
mod tests {
    use futures::stream;

    use super::*;

    fn terms() -> Terms<'static> {
        Terms { what: "record", limit: 5, advice: "", sha256: None, floor: Floor::Bytes(0) }
    }

    async fn kept(parts: &[&'static str], terms: Terms<'_>) -> Result<u64, StoreError> {
        let folder = tempfile::tempdir().unwrap();
        let body = stream::iter(parts.iter().map(|part| Ok::<_, String>(*part)).collect::<Vec<_>>());
        let result = put(folder.path(), "f", body, terms).await;
        let there = if result.is_ok() { vec!["f".to_owned()] } else { Vec::new() };
        assert_eq!(list(folder.path()).await.unwrap(), there, "it is whole or not there");
        result
    }

    #[tokio::test]
    async fn what_is_too_large_is_refused_and_not_kept() {
        assert_eq!(kept(&["12345"], terms()).await.unwrap(), 5);
        let refused = kept(&["12345", "6"], terms()).await.unwrap_err();
        assert_eq!(refused.to_string(), "more than 5 bytes: a record of that size is not kept");
    }

    #[tokio::test]
    async fn bytes_with_another_hash_than_announced_are_not_kept() {
        let wanted = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let terms = Terms { sha256: Some(wanted), ..terms() };
        assert_eq!(kept(&["a", "bc"], terms).await.unwrap(), 3);
        let refused = kept(&["a", "bd"], terms).await.unwrap_err();
        assert!(matches!(&refused, StoreError::OtherBytes { .. }), "{refused}");
    }

    #[tokio::test]
    async fn a_volume_is_never_filled_below_its_floor() {
        let refused = kept(&["1"], Terms { floor: Floor::Bytes(u64::MAX), ..terms() }).await.unwrap_err();
        assert!(matches!(refused, StoreError::Full { .. }), "{refused}");
        assert!(refused.to_string().contains("skctl delete NAME"), "{refused}");
    }

    #[test]
    fn traces_leave_a_quarter_of_the_volume_to_records_and_never_less_than_the_last_room() {
        assert_eq!(Floor::Records.bytes(20 << 30), 5 << 30);
        assert_eq!(Floor::Records.bytes(8 << 30), 2 << 30);
        assert_eq!(Floor::Records.bytes(0), FLOOR_BYTES);
        assert_eq!(Floor::Records.bytes(u64::MAX), MAX_RECORDS_BYTES);
        assert_eq!(Floor::LAST.bytes(20 << 30), FLOOR_BYTES);
    }
}

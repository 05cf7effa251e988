//! Keeps space free on a volume where temporary files lie beside the log.
//!
//! An export is written beside the log. If it took the last byte, the recording would stop. So it checks the free space
//! before it starts and while it grows, and fails first; its files have no names, so nothing is left behind.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// What is left to others: a segment of the log, which has at most 256 MiB of entries before they are packed, so that there
/// is room for what is recorded until somebody has made more.
const FLOOR_BYTES: u64 = 256 << 20;
/// On a small volume, a twentieth of it, if that is less.
const FLOOR_SHARE: u64 = 20;
/// How much is written between two looks. Two exports at a time go below the floor by at most twice this.
const LOOK_EVERY_BYTES: u64 = 4 << 20;

/// There is too little room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the volume has {free} bytes left, of which {floor} are for the recording; \
     ask for a shorter window or fewer namespaces, or make the volume larger"
)]
pub struct NoRoom {
    /// What is left.
    pub free: u64,
    /// What must stay.
    pub floor: u64,
}

impl From<NoRoom> for io::Error {
    fn from(problem: NoRoom) -> Self {
        Self::new(io::ErrorKind::StorageFull, problem)
    }
}

/// A volume, as full as it is just now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Volume {
    free: u64,
    total: u64,
}

/// The volume that a folder is on, of which some part is left free.
#[derive(Clone, Debug)]
pub struct Floor {
    folder: Arc<Path>,
    look: fn(&Path) -> Option<Volume>,
}

impl Floor {
    /// Of the volume with this folder.
    pub fn of(folder: &Path) -> Self {
        Self { folder: folder.into(), look }
    }

    /// Is there more than has to be left?
    pub fn check(&self) -> Result<(), NoRoom> {
        // A volume that does not tell is written to until it is full.
        let Some(Volume { free, total }) = (self.look)(&self.folder) else { return Ok(()) };
        let floor = FLOOR_BYTES.min(total / FLOOR_SHARE);
        if free < floor { Err(NoRoom { free, floor }) } else { Ok(()) }
    }

    /// Something on this volume that is written to as long as there is room.
    pub fn guard<W: Write>(&self, out: W) -> Guarded<W> {
        Guarded { out, gauge: Gauge::new(Some(self.clone())) }
    }
}

#[cfg(unix)]
fn look(folder: &Path) -> Option<Volume> {
    let volume = rustix::fs::statvfs(folder).ok()?;
    let bytes = |blocks: u64| blocks.saturating_mul(volume.f_frsize);
    Some(Volume { free: bytes(volume.f_bavail), total: bytes(volume.f_blocks) })
}

#[cfg(not(unix))]
fn look(_: &Path) -> Option<Volume> {
    None
}

/// Checks a volume every so many bytes.
#[derive(Debug)]
pub(crate) struct Gauge {
    floor: Option<Floor>,
    since_look: u64,
}

impl Gauge {
    pub(crate) fn new(floor: Option<Floor>) -> Self {
        Self { floor, since_look: 0 }
    }

    /// So many bytes are about to be written.
    pub(crate) fn writing(&mut self, bytes: usize) -> Result<(), NoRoom> {
        let Some(floor) = &self.floor else { return Ok(()) };
        self.since_look += bytes as u64;
        if self.since_look >= LOOK_EVERY_BYTES {
            self.since_look = 0;
            floor.check()?;
        }
        Ok(())
    }
}

/// Refuses to write when there is no room.
#[derive(Debug)]
pub struct Guarded<W> {
    out: W,
    gauge: Gauge,
}

impl<W> Guarded<W> {
    /// What was written to.
    pub fn into_inner(self) -> W {
        self.out
    }
}

impl<W: Write> Write for Guarded<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.gauge.writing(bytes.len())?;
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floor(look: fn(&Path) -> Option<Volume>) -> Floor {
        Floor { folder: Path::new("/").into(), look }
    }

    #[test]
    fn what_grows_on_a_volume_is_stopped_before_it_is_full_and_says_what_to_do() {
        let full = floor(|_| Some(Volume { free: (256 << 20) - 1, total: 1 << 40 }));
        assert_eq!(full.check(), Err(NoRoom { free: (256 << 20) - 1, floor: 256 << 20 }));
        let mut out = full.guard(Vec::new());
        out.write_all(&[0; 1_000]).expect("it has looked when it began");
        let refused = out.write_all(&vec![0; 4 << 20]).expect_err("it looks again as it grows");
        assert_eq!(refused.kind(), io::ErrorKind::StorageFull);
        assert!(refused.to_string().contains("a shorter window"), "{refused}");
        assert_eq!(out.into_inner().len(), 1_000);
    }

    #[test]
    fn a_small_volume_is_not_all_floor_and_one_that_does_not_tell_is_not_refused() {
        assert_eq!(floor(|_| Some(Volume { free: 51, total: 1_000 })).check(), Ok(()));
        assert!(floor(|_| Some(Volume { free: 49, total: 1_000 })).check().is_err());
        assert_eq!(floor(|_| None).check(), Ok(()));
        let folder = tempfile::tempdir().expect("there is a folder for temporary files");
        assert!(look(folder.path()).is_none_or(|volume| volume.free <= volume.total && volume.total > 0));
    }
}

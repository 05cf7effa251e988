//! Copies input that can be read only once (standard input, a pipe, a device), because readers seek.
//!
//! The copy is an unnamed temporary file, so it disappears with the process. It is bounded: an endless stream is
//! stopped, input that is not a trace is refused after its first bytes, and the temporary volume is never filled
//! completely.

use std::fs::File;
use std::io::{self, Read, Write};

use super::error::OpenError;
use super::{BEGINNING_BYTES, Guess, manifests};
use crate::disk_space::{Floor, Gauge, NoRoom};

/// The most that is copied. A native trace has about 46 bytes per event of a busy cluster, so that this is more than
/// three hundred million of them; a v2 trace has about 1.8 KB per event, so that this is nine million.
const MAX_BYTES: u64 = 16 << 30;

/// How much is copied at once.
const BUFFER_BYTES: usize = 256 << 10;

/// Copies all that `reader` gives into a file without a name.
pub(super) fn copy(name: &str, reader: impl Read) -> Result<File, OpenError> {
    copy_at_most(MAX_BYTES, name, reader)
}

fn copy_at_most(most: u64, name: &str, mut reader: impl Read) -> Result<File, OpenError> {
    let cannot_read = |source| OpenError::Io { name: name.into(), source };
    let cannot_write = |source| OpenError::Copy { name: name.into(), folder: std::env::temp_dir(), source };
    let mut beginning = Vec::new();
    reader.by_ref().take(BEGINNING_BYTES).read_to_end(&mut beginning).map_err(cannot_read)?;
    let guess = Guess::of(&name.into(), &beginning)?;
    let limit = if guess == Guess::Manifests { manifests::MAX_BYTES } else { most };
    let mut copy = Copy::begin().map_err(cannot_write)?;
    copy.append(&beginning).map_err(cannot_write)?;
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let len = match reader.read(&mut buffer) {
            Ok(0) => return Ok(copy.file),
            Ok(len) => len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(cannot_read(error)),
        };
        copy.append(&buffer[..len]).map_err(cannot_write)?;
        if copy.len > limit {
            return Err(match guess {
                Guess::Manifests => manifests::too_long(name),
                Guess::V2 | Guess::Native | Guess::JsonLines => too_long(name, limit),
            });
        }
    }
}

fn too_long(name: &str, limit: u64) -> OpenError {
    OpenError::TooLong { name: name.into(), limit, advice: "save it as a file and name that instead" }
}

/// The copy so far.
struct Copy {
    file: File,
    len: u64,
    gauge: Gauge,
}

impl Copy {
    fn begin() -> io::Result<Self> {
        let floor = Floor::of(&std::env::temp_dir());
        floor.check().map_err(full)?;
        Ok(Self { file: tempfile::tempfile()?, len: 0, gauge: Gauge::new(Some(floor)) })
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.gauge.writing(bytes.len()).map_err(full)?;
        self.len += bytes.len() as u64;
        self.file.write_all(bytes)
    }
}

/// The message of [`NoRoom`] is for exports from a tracer; this one is for readers of a trace.
fn full(problem: NoRoom) -> io::Error {
    let NoRoom { free, floor } = problem;
    io::Error::new(io::ErrorKind::StorageFull, format!("{free} bytes are left there, of which {floor} stay free"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts what is taken from it.
    struct Counted<R>(R, u64);

    impl<R: Read> Read for Counted<R> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let len = self.0.read(buffer)?;
            self.1 += len as u64;
            Ok(len)
        }
    }

    #[test]
    fn whoever_sends_without_end_is_stopped_at_the_limit() {
        let mut endless = Counted(b"\x85\xa7version".chain(io::repeat(0)), 0);
        let error = copy_at_most(1 << 20, "standard input", &mut endless).unwrap_err().to_string();
        assert!(error.contains("longer than 1 MiB") && error.contains("save it as a file"), "{error}");
        assert!(endless.1 <= (1 << 20) + BUFFER_BYTES as u64 + BEGINNING_BYTES, "{} bytes were read", endless.1);
    }

    #[test]
    fn what_is_no_trace_is_refused_by_its_first_bytes() {
        let mut zeros = Counted(io::repeat(0), 0);
        let error = copy("standard input", &mut zeros).unwrap_err().to_string();
        assert!(error.contains("is not a trace"), "{error}");
        assert_eq!(zeros.1, BEGINNING_BYTES);
    }

    #[test]
    fn a_full_volume_is_named_with_what_to_do() {
        let source = full(NoRoom { free: 10, floor: 20 });
        let error = OpenError::Copy { name: "standard input".into(), folder: "/scratch".into(), source }.to_string();
        assert!(error.contains("/scratch") && error.contains("TMPDIR"), "{error}");
    }
}

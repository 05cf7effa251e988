//! The driver's log: lines on standard error, and the last of them kept, so that they can be read when its pod is gone.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// What is kept of the log: about two thousand lines.
const KEPT_BYTES: usize = 256 << 10;

/// The end of the log.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastLines(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    bytes: VecDeque<u8>,
    /// All that was ever written, so that a reader sees whether there is something new.
    written: u64,
}

impl LastLines {
    /// Starts logging. `level` is an error, warn, info, debug or trace, or a filter of `tracing`.
    pub(crate) fn start(level: &str) -> Result<Self, String> {
        // What its client says of connections, the driver says itself, where it matters.
        let filter = if level.contains(['=', ',']) {
            level.to_owned()
        } else {
            format!("warn,kube_client=off,sk_driver={level}")
        };
        let filter = EnvFilter::try_new(&filter).map_err(|error| format!("`{level}` is not a log level: {error}"))?;
        let lines = Self::default();
        let log = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(lines.clone());
        log.try_init().map_err(|error| error.to_string())?;
        Ok(lines)
    }

    /// What was kept, from the beginning of a line.
    pub(crate) fn text(&self) -> String {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(kept.bytes.make_contiguous()).into_owned();
        if text.len() < KEPT_BYTES {
            return text;
        }
        text.split_once('\n').map(|(_, rest)| rest.to_owned()).unwrap_or(text)
    }
}

impl LastLines {
    /// How much was ever written.
    pub(crate) fn written(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).written
    }

    fn keep(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.bytes.extend(bytes);
        kept.written += bytes.len() as u64;
        let excess = kept.bytes.len().saturating_sub(KEPT_BYTES);
        kept.bytes.drain(..excess);
    }
}

impl Write for LastLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.keep(bytes);
        // Nobody may be reading; that must not end a run.
        let _ = io::stderr().write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'w> MakeWriter<'w> for LastLines {
    type Writer = Self;

    fn make_writer(&'w self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept_from_the_beginning_of_a_line() {
        let mut lines = LastLines::default();
        lines.write_all(b"first\n").unwrap();
        assert_eq!((lines.text().as_str(), lines.written()), ("first\n", 6));
        for number in 0..30_000 {
            lines.keep(format!("line {number}\n").as_bytes());
        }
        lines.write_all(b"last\n").unwrap();
        let text = lines.text();
        assert!(text.len() <= KEPT_BYTES && text.starts_with("line ") && text.ends_with("line 29999\nlast\n"));
    }
}

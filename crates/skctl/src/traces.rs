//! From what people type for TRACE to an open trace.

use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail};
use sk_store::trace::{self, Trace};

use crate::examples;

/// A trace from standard input is read whole, so it is bounded: 1 GiB is a thousand times what `helm template` prints.
const MAX_STDIN_BYTES: u64 = 1 << 30;

/// Opens the trace that `text` names.
pub(crate) fn open(text: &str) -> Result<Trace> {
    if let Some(name) = text.strip_prefix(examples::PREFIX) {
        let example = examples::find(name)?;
        return trace::from_bytes(text, example.trace).context("a bundled example does not open; please report this");
    }
    if text == "-" {
        return Ok(trace::from_bytes("standard input", read_stdin()?)?);
    }
    Ok(trace::open(Path::new(text))?)
}

fn read_stdin() -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut input = std::io::stdin().lock().take(MAX_STDIN_BYTES + 1);
    input.read_to_end(&mut bytes).context("could not read standard input")?;
    if bytes.len() as u64 > MAX_STDIN_BYTES {
        bail!("standard input is longer than 1 GiB; write it to a file and name that");
    }
    Ok(bytes)
}

/// How a run of this trace is called when nobody says: the file's name without folders and ending.
pub(crate) fn default_name(text: &str) -> String {
    let name = text.strip_prefix(examples::PREFIX).unwrap_or(text);
    if name == "-" {
        return "stdin".to_owned();
    }
    Path::new(name).file_stem().map_or_else(|| "run".to_owned(), |stem| stem.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_called_after_its_trace() {
        assert_eq!(default_name("example:nginx"), "nginx");
        assert_eq!(default_name("/data/week.sktrace"), "week");
        assert_eq!(default_name("-"), "stdin");
    }
}

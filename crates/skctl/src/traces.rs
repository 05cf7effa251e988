//! Opens the TRACE of a command.

use std::path::Path;

use anyhow::{Context, Result};
use sk_store::Location;
use sk_store::trace::{self, Trace};

use crate::cli::Global;
use crate::examples;
use crate::progress::Bar;

/// Opens the trace that `text` names. What is remote is fetched first.
pub(crate) fn open(text: &str, global: &Global) -> Result<Trace> {
    if let Some(name) = text.strip_prefix(examples::PREFIX) {
        let example = examples::find(name)?;
        return trace::from_bytes(text, example.trace).context("a bundled example does not open; please report this");
    }
    let location: Location = text.parse()?;
    let _bar = Bar::of_unknown_length(format!("opening {location}"), global.quiet);
    Ok(location.open()?)
}

/// Does `text` name a trace: a bundled one, a file that is there, or a URL?
pub(crate) fn is_one(text: &str) -> bool {
    text.starts_with(examples::PREFIX)
        || match text.parse() {
            Ok(Location::File(path)) => path.is_file(),
            Ok(_) => true,
            Err(_) => false,
        }
}

/// The size of the file that `text` names, if it is one.
pub(crate) fn bytes_of(text: &str) -> Option<u64> {
    let Ok(Location::File(path)) = text.parse() else { return None };
    std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file).map(|metadata| metadata.len())
}

/// The default name of a run of this trace: the file's name without folders and extension.
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
        assert_eq!(default_name("s3://traces/2026/week.sktrace"), "week");
        assert_eq!(default_name("-"), "stdin");
    }
}

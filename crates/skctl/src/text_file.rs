//! Reads short text files that people write, such as scenarios and jq programs.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// What a person writes by hand: a mebibyte is twenty thousand lines.
const MAX_BYTES: u64 = 1 << 20;

/// The text of a file; `what` it is, for messages.
pub(crate) fn read(what: &str, path: &Path) -> Result<String> {
    let name = path.display();
    let file =
        File::open(path).with_context(|| format!("cannot open the {what} {name}; check that the path is right"))?;
    let mut bytes = Vec::new();
    let read = file.take(MAX_BYTES + 1).read_to_end(&mut bytes);
    read.with_context(|| format!("cannot read the {what} {name}"))?;
    if bytes.len() as u64 > MAX_BYTES {
        bail!("{name} is longer than 1 MiB, which no {what} is; check that it is the right file");
    }
    String::from_utf8(bytes).with_context(|| format!("{name} is not text; check that it is the {what}"))
}

//! What the tests of the command line share.

use std::path::Path;

use assert_cmd::Command;
use tempfile::TempDir;

/// `skctl` in a folder of its own.
pub(crate) fn skctl(dir: &TempDir) -> Command {
    let mut command = Command::cargo_bin("skctl").expect("the binary of this crate is built");
    command.current_dir(dir.path()).env("NO_COLOR", "1");
    command
}

pub(crate) fn folder() -> TempDir {
    TempDir::new().expect("there is room for a temporary folder")
}

#[allow(dead_code, reason = "not every test program writes a file")]
pub(crate) fn write(dir: &TempDir, name: &str, text: impl AsRef<[u8]>) {
    std::fs::write(dir.path().join(name), text).expect("a temporary folder can be written to");
}

/// The names in a folder, sorted.
#[allow(dead_code, reason = "not every test program lists a folder")]
pub(crate) fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("the folder is there");
    let mut names: Vec<_> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

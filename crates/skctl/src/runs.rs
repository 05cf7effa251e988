//! The folders of runs, and how `@`, names and URLs refer to them.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sk_store::Location;
use tempfile::TempDir;

/// The folder that holds runs.
pub(crate) const RUNS: &str = "runs";

/// Files that a run may have beside its tables, and that commands read.
const BESIDE: [&str; 4] =
    ["summary.json", "scenario.yaml", super::commands::run::baseline::FILE, sk_report::fidelity::FILE];

/// A run that the user named.
pub(crate) enum Found {
    /// In a folder of this machine.
    Here(PathBuf),
    /// A temporary copy from a URL.
    Fetched(TempDir),
}

impl Found {
    /// Where it lies.
    pub(crate) fn dir(&self) -> &Path {
        match self {
            Self::Here(dir) => dir,
            Self::Fetched(dir) => dir.path(),
        }
    }
}

/// The run that `text` means: a folder, a name under ./runs, `@`, `@2`, or the URL of a folder in an object store.
pub(crate) fn resolve(text: &str) -> Result<Found> {
    match text.parse() {
        Ok(Location::Remote(_)) => fetched(text),
        _ => Ok(Found::Here(sk_record::resolve(text, Path::new(RUNS))?)),
    }
}

/// Copies the files of a run: those that it must have, and those that it may have.
fn fetched(url: &str) -> Result<Found> {
    let dir = tempfile::tempdir().context("cannot make a temporary folder for the run")?;
    let fetch = |name: &str| -> Result<()> {
        let place: Location = format!("{}/{name}", url.trim_end_matches('/')).parse()?;
        let Location::Remote(remote) = &place else { return Ok(()) };
        let path = dir.path().join(name);
        remote.fetch(&mut File::create(&path)?).inspect_err(|_| drop(std::fs::remove_file(&path)))?;
        Ok(())
    };
    fetch("run.json").with_context(|| format!("{} is not a run", sk_store::location::shown(url)))?;
    for name in sk_record::archive::tables(dir.path())? {
        fetch(&name).with_context(|| format!("the run at {} is incomplete: {name}", sk_store::location::shown(url)))?;
    }
    for name in BESIDE {
        // A run that was never judged has none of them; what a command cannot do without, it asks for.
        let _ = fetch(name);
    }
    Ok(Found::Fetched(dir))
}

/// The default folder of a run.
pub(crate) fn default_dir(run_id: &str) -> PathBuf {
    Path::new(RUNS).join(run_id)
}

/// The folder of one repetition of a Simulation; several lie side by side.
pub(crate) fn of_repetition(out: Option<&Path>, name: &str, repetitions: u32, repetition: u32) -> PathBuf {
    let dir = out.map_or_else(|| default_dir(name), Path::to_owned);
    if repetitions == 1 {
        return dir;
    }
    let last = dir.file_name().map(|last| last.to_string_lossy().into_owned()).unwrap_or_default();
    dir.with_file_name(format!("{last}.{repetition}"))
}

/// A name fit for a folder: letters, digits, `.`, `_` and `-`.
pub(crate) fn folder_name(name: &str) -> String {
    let safe = |char: char| if char.is_ascii_alphanumeric() || "._-".contains(char) { char } else { '-' };
    let name: String = name.chars().take(80).map(safe).collect();
    let name = name.trim_matches(['.', '-']);
    if name.is_empty() { "run".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_lie_side_by_side() {
        assert_eq!(of_repetition(None, "week-1", 1, 0), Path::new("runs/week-1"));
        assert_eq!(of_repetition(None, "week-1", 3, 2), Path::new("runs/week-1.2"));
        assert_eq!(of_repetition(Some(Path::new("out/here")), "week-1", 3, 0), Path::new("out/here.0"));
    }

    #[test]
    fn names_cannot_leave_the_folder_of_runs() {
        assert_eq!(folder_name("../../etc/passwd"), "etc-passwd");
        assert_eq!(folder_name("nginx"), "nginx");
        assert_eq!(folder_name("…"), "run");
    }
}

//! The folders of runs, and how `@` and names refer to them.

use std::path::{Path, PathBuf};

/// The folder that holds runs.
pub(crate) const RUNS: &str = "runs";

/// The folder of a run when nobody names another.
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

//! Where runs lie.

use std::path::{Path, PathBuf};

/// The folder that holds runs.
pub(crate) const RUNS: &str = "runs";

/// The folder of a run when nobody names another.
pub(crate) fn default_dir(run_id: &str) -> PathBuf {
    Path::new(RUNS).join(run_id)
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
    fn names_cannot_leave_the_folder_of_runs() {
        assert_eq!(folder_name("../../etc/passwd"), "etc-passwd");
        assert_eq!(folder_name("nginx"), "nginx");
        assert_eq!(folder_name("…"), "run");
    }
}

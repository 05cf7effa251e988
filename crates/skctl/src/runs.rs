//! Where runs lie.

use std::path::{Path, PathBuf};

/// The folder that holds runs.
pub(crate) const RUNS: &str = "runs";

/// The folder of the run called `name` with the id that begins `short`.
pub(crate) fn default_dir(name: &str, short: &str) -> PathBuf {
    Path::new(RUNS).join(format!("{name}-{short}"))
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

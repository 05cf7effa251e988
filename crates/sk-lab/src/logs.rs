//! The last lines of a log file, for error messages: they nearly always say why a component failed.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Lines that are shown of one log.
const TAIL_LINES: usize = 15;
/// Bytes that are read of one log: 15 lines of Kubernetes' longest, which are about 2 KiB.
const TAIL_BYTES: u64 = 32 << 10;

/// The last lines of a log, indented; a sentence instead if it has none.
pub fn tail(path: &Path) -> String {
    match read_end(path) {
        Ok(text) if text.trim().is_empty() => "  (it said nothing)".to_owned(),
        Ok(text) => {
            let lines: Vec<_> = text.lines().collect();
            let from = lines.len().saturating_sub(TAIL_LINES);
            lines[from..].iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
        }
        Err(error) => format!("  (its log cannot be read: {error})"),
    }
}

fn read_end(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_a_long_log_is_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let text: String = (1..=100_000).map(|n| format!("line {n}\n")).collect();
        std::fs::write(&path, text).unwrap();
        let shown = tail(&path);
        assert_eq!(shown.lines().count(), TAIL_LINES);
        assert!(shown.ends_with("  line 100000"), "{shown}");
    }

    #[test]
    fn a_silent_or_missing_log_is_said_to_be_so() {
        let folder = tempfile::tempdir().unwrap();
        assert!(tail(&folder.path().join("none")).contains("cannot be read"));
        std::fs::write(folder.path().join("empty"), "").unwrap();
        assert!(tail(&folder.path().join("empty")).contains("said nothing"));
    }
}

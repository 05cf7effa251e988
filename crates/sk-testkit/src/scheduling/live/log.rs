//! Follows kube-scheduler's log and parses its lines.
//!
//! The log is the only place where the real scheduler shows its scores, its retries and when an event has reached it.
//! Lines are klog's text format: `I1116 12:00:00.000000 7 file.go:1] "Message" key="value" other=3`.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;

/// A log file that is followed from a place on.
pub(super) struct Follower {
    path: PathBuf,
    offset: u64,
    /// The file, once it is there: it is looked at thousands of times a second.
    file: Option<File>,
    partial: Vec<u8>,
}

impl Follower {
    /// Follows a file from its present end, or from its start if it is not there yet.
    pub(super) fn from_end(path: PathBuf) -> Self {
        let offset = path.metadata().map_or(0, |metadata| metadata.len());
        Self { path, offset, file: None, partial: Vec::new() }
    }

    /// The whole lines that were added since the last call, as one text.
    pub(super) fn added(&mut self) -> io::Result<String> {
        let file = match self.file.take() {
            Some(file) => file,
            None => match File::open(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
                opened => {
                    let mut file = opened?;
                    file.seek(SeekFrom::Start(self.offset))?;
                    file
                }
            },
        };
        self.file.insert(file).read_to_end(&mut self.partial)?;
        let Some(end) = self.partial.iter().rposition(|byte| *byte == b'\n') else { return Ok(String::new()) };
        let rest = self.partial.split_off(end + 1);
        let whole = std::mem::replace(&mut self.partial, rest);
        Ok(String::from_utf8_lossy(&whole).into_owned())
    }
}

/// One structured line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Line<'a> {
    /// What happened.
    pub(super) message: &'a str,
    head: &'a str,
    fields: &'a str,
}

impl<'a> Line<'a> {
    /// Takes a line apart; one that is not structured is not for us.
    pub(super) fn parse(line: &'a str) -> Option<Self> {
        let (head, rest) = line.split_once("] \"")?;
        let (message, fields) = rest.split_once('"')?;
        Some(Self { message, head, fields })
    }

    /// When it was written, in microseconds of the day.
    pub(super) fn at(&self) -> Option<i64> {
        let clock: jiff::civil::Time = self.head.split_whitespace().nth(1)?.parse().ok()?;
        let nanoseconds = clock.duration_since(jiff::civil::Time::midnight()).as_nanos();
        i64::try_from(nanoseconds / 1_000).ok()
    }

    /// The value of a field, without its quotes.
    pub(super) fn field(&self, wanted: &str) -> Option<String> {
        let mut rest = self.fields;
        while let Some((key, after)) = rest.split_once('=') {
            let (value, after) = value(after)?;
            if key.trim() == wanted {
                return Some(value.into_owned());
            }
            rest = after;
        }
        None
    }

    /// The value of a field that is a number.
    pub(super) fn number(&self, wanted: &str) -> Option<i64> {
        self.field(wanted)?.parse().ok()
    }
}

/// A value at the start of a text, and what follows it.
fn value(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let (value, rest) = text.split_once(' ').unwrap_or((text, ""));
        return Some((value.into(), rest));
    };
    let end = quoted.find(['"', '\\'])?;
    if quoted.as_bytes()[end] == b'"' {
        return Some((quoted[..end].into(), &quoted[end + 1..]));
    }
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((index, character)) = characters.next() {
        match character {
            '"' => return Some((value.into(), &quoted[index + 1..])),
            // Go quotes a quote, a backslash, a newline and a tab; the scheduler's words hold nothing rarer.
            '\\' => value.push(match characters.next()?.1 {
                'n' => '\n',
                't' => '\t',
                other => other,
            }),
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_line_tells_its_message_and_its_fields() {
        let text = r#"I1116 12:00:00.1 7 schedule_one.go:1239] "Unable to schedule pod; no fit; waiting" pod="default/a" err="0/1 nodes are available: persistentvolumeclaim \"x\" not found." n=3"#;
        let line = Line::parse(text).unwrap();
        assert_eq!(line.message, "Unable to schedule pod; no fit; waiting");
        assert_eq!(line.field("pod").unwrap(), "default/a");
        assert_eq!(line.field("err").unwrap(), r#"0/1 nodes are available: persistentvolumeclaim "x" not found."#);
        assert_eq!(line.number("n"), Some(3));
        assert_eq!(line.at(), Some(12 * 3_600 * 1_000_000 + 100_000));
        assert_eq!(line.field("node"), None);
    }

    #[test]
    fn a_key_with_a_space_does_not_hide_the_next() {
        let line = Line::parse(r#"I1 7 q.go:9] "Moved" hint="x y" unschedulable plugins={"A":{}} pod="d/a""#).unwrap();
        assert_eq!(line.field("pod").unwrap(), "d/a");
        assert_eq!(line.field("unschedulable plugins").unwrap(), r#"{"A":{}}"#);
    }

    #[test]
    fn half_a_line_waits_for_its_other_half() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut follower = Follower::from_end(path.clone());
        assert!(follower.added().unwrap().is_empty());
        let mut file = File::create(&path).unwrap();
        file.write_all(b"one\ntw").unwrap();
        assert_eq!(follower.added().unwrap(), "one\n");
        assert_eq!(follower.added().unwrap(), "");
        file.write_all(b"o\n").unwrap();
        assert_eq!(follower.added().unwrap(), "two\n");
    }
}

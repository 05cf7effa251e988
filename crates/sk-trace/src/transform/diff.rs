//! The difference between two versions of an object, one line per field.

use std::fmt;

use serde::Serialize;
use serde_json::Value;
use sk_core::{ObjectRef, Pointer, SimTime};

use crate::parse;

/// The most lines of one object; the rest are counted.
const MAX_LINES: usize = 100;

/// The most text of a value that is shown.
const MAX_SHOWN: usize = 200;

/// What happened to one version of one object.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectDiff {
    /// When the version was applied.
    #[serde(with = "parse::moment")]
    pub at: SimTime,
    /// The object, as it was called.
    pub object: ObjectRef,
    /// Is it dropped, for its whole life?
    pub dropped: bool,
    /// What differs.
    pub lines: Vec<DiffLine>,
    /// How many differences are not in `lines`.
    pub more: u64,
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DiffLine {
    /// Where.
    pub pointer: Pointer,
    /// What was there; `None` if it was added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// What is there now; `None` if it was removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

impl ObjectDiff {
    pub(super) fn dropped(at: SimTime, object: &ObjectRef) -> Self {
        Self { at, object: object.clone(), dropped: true, lines: Vec::new(), more: 0 }
    }

    pub(super) fn between(at: SimTime, object: &ObjectRef, before: &Value, after: &Value) -> Self {
        let mut diff = Self { at, object: object.clone(), dropped: false, lines: Vec::new(), more: 0 };
        diff.compare(&Pointer::default(), before, after);
        diff
    }

    fn compare(&mut self, at: &Pointer, before: &Value, after: &Value) {
        match (before, after) {
            (before, after) if before == after => {}
            (Value::Object(old), Value::Object(new)) => {
                for (key, value) in old {
                    match new.get(key) {
                        Some(after) => self.compare(&at.child(key), value, after),
                        None => self.add(at.child(key), Some(value), None),
                    }
                }
                for (key, value) in new.iter().filter(|(key, _)| !old.contains_key(*key)) {
                    self.add(at.child(key), None, Some(value));
                }
            }
            (Value::Array(old), Value::Array(new)) => {
                for index in 0..old.len().max(new.len()) {
                    let at = at.child(&index.to_string());
                    match (old.get(index), new.get(index)) {
                        (Some(before), Some(after)) => self.compare(&at, before, after),
                        (before, after) => self.add(at, before, after),
                    }
                }
            }
            _ => self.add(at.clone(), Some(before), Some(after)),
        }
    }

    fn add(&mut self, pointer: Pointer, before: Option<&Value>, after: Option<&Value>) {
        if self.lines.len() < MAX_LINES {
            self.lines.push(DiffLine { pointer, before: before.cloned(), after: after.cloned() });
        } else {
            self.more += 1;
        }
    }
}

impl fmt::Display for ObjectDiff {
    /// The object, then `-` and `+` lines.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.dropped { " is dropped" } else { "" };
        writeln!(f, "{} {}{what}", self.at, in_line(&self.object.to_string()))?;
        for line in &self.lines {
            for (sign, value) in [('-', &line.before), ('+', &line.after)] {
                if let Some(value) = value {
                    writeln!(f, "{sign} {}: {}", in_line(&line.pointer.to_string()), shown(value))?;
                }
            }
        }
        match self.more {
            0 => Ok(()),
            more => writeln!(f, "  and {more} more"),
        }
    }
}

/// A name as a part of a line: what begins a new one is written out.
fn in_line(text: &str) -> String {
    text.replace('\n', "\\n").replace('\r', "\\r")
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MAX_SHOWN) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn differences_are_shown_where_they_are() {
        let object = ObjectRef::new("v1.Pod".parse().unwrap(), "a/b".parse().unwrap());
        let before = json!({"a": 1, "b": {"x/y": [1, 2]}, "gone": true});
        let after = json!({"a": "1", "b": {"x/y": [1, 3, 4]}, "new": null});
        let diff = ObjectDiff::between(SimTime::EPOCH, &object, &before, &after).to_string();
        let expected = "1970-01-01T00:00:00Z Pod a/b\n- /a: 1\n+ /a: \"1\"\n- /b/x~1y/1: 2\n+ /b/x~1y/1: 3\n\
            + /b/x~1y/2: 4\n- /gone: true\n+ /new: null\n";
        assert_eq!(diff, expected);
    }

    #[test]
    fn a_long_difference_is_cut_and_counted() {
        let object = ObjectRef::new("v1.Pod".parse().unwrap(), "a/b".parse().unwrap());
        let diff = ObjectDiff::between(SimTime::EPOCH, &object, &json!([]), &json!(vec![0; 150]));
        assert_eq!((diff.lines.len(), diff.more), (100, 50));
        assert!(diff.to_string().ends_with("and 50 more\n"));
    }
}

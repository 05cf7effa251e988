//! Lists every string in a trace, for a security review.
//!
//! The list is complete: what does not fit into memory goes to temporary files. Each string comes with its location, a
//! JSON pointer in which list indexes are `*`; keys of maps are part of the pointer. Numbers and booleans are left out.

use std::io;

use serde::Serialize;
use serde_json::Value;
use sk_store::TraceError;
use sk_store::trace::{Change, Row, Section, Trace};

use super::spill::Counter;

/// One text and how often it stands there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ValueRow<'a> {
    /// The object's kind, or which other part of the trace: `config`, `lives`, `observations`, …
    pub part: &'a str,
    /// Where in it.
    pub pointer: &'a str,
    /// The text.
    pub value: &'a str,
    /// How often, over all versions of all objects.
    pub count: u64,
}

/// How many texts there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ValuesSummary {
    /// Different texts, by place.
    pub distinct: u64,
    /// Different places.
    pub places: u64,
}

/// Why texts could not be listed.
#[derive(Debug, thiserror::Error)]
pub enum ValuesError {
    /// Reading the trace failed.
    #[error(transparent)]
    Read(#[from] TraceError),
    /// Something could not become JSON.
    #[error("a part of the trace cannot be shown as JSON: {0}; report this as a bug")]
    Json(#[from] serde_json::Error),
    /// A temporary file, or the receiver of the strings, failed.
    #[error(
        "listing the texts failed: {0}; check that there is disk space for temporary files (TMPDIR) and for the output"
    )]
    Io(#[from] io::Error),
}

/// Tells every text of a trace, sorted by part, place and text.
pub fn values(
    trace: &Trace,
    mut each: impl FnMut(ValueRow<'_>) -> io::Result<()>,
) -> Result<ValuesSummary, ValuesError> {
    let mut walk = Walk { counter: Counter::new(), key: Vec::new() };
    walk.part("config", trace.config().as_written())?;
    for record in trace.records()? {
        match record?.change {
            Change::Apply(object) => walk.part(&object.reference().gvk.to_string(), object.value())?,
            Change::Delete(deletion) => walk.part(&deletion.object.gvk.to_string(), &deletion.to_value())?,
            Change::Mark(_) => {}
        }
    }
    for section in Section::ALL {
        for row in trace.rows(section)? {
            let (part, value) = to_value(&row?)?;
            walk.part(part, &value)?;
        }
    }
    let mut summary = ValuesSummary::default();
    let mut last_place = Vec::new();
    walk.counter.drain(|key, count| -> Result<(), ValuesError> {
        let Some(row) = read_key(key, count) else { return Ok(()) };
        let place = &key[..key.len() - row.value.len()];
        if last_place != place {
            last_place = place.to_vec();
            summary.places += 1;
        }
        summary.distinct += 1;
        Ok(each(row)?)
    })?;
    Ok(summary)
}

fn to_value(row: &Row) -> Result<(&'static str, Value), serde_json::Error> {
    Ok(match row {
        Row::Lives(row) => ("lives", serde_json::to_value(row)?),
        Row::Observation(row) => ("observations", serde_json::to_value(row)?),
        Row::Node(row) => ("nodes", serde_json::to_value(row)?),
        Row::Reserved(row) => ("reserved", serde_json::to_value(row)?),
        Row::Gap(row) => ("gaps", serde_json::to_value(row)?),
        Row::Index(row) => ("index", serde_json::to_value(row)?),
    })
}

/// Walks through values; the key is part, pointer and text, with a zero byte between them.
struct Walk {
    counter: Counter,
    key: Vec<u8>,
}

impl Walk {
    fn part(&mut self, part: &str, value: &Value) -> io::Result<()> {
        self.key.clear();
        self.key.extend(part.as_bytes());
        self.key.push(0);
        self.value(value)
    }

    fn value(&mut self, value: &Value) -> io::Result<()> {
        let len = self.key.len();
        match value {
            Value::String(text) => {
                self.key.push(0);
                self.key.extend(text.as_bytes());
                self.counter.add(&self.key)?;
            }
            Value::Array(elements) => {
                self.key.extend(b"/*");
                elements.iter().try_for_each(|element| self.value(element))?;
            }
            Value::Object(fields) => {
                for (name, value) in fields {
                    self.key.push(b'/');
                    self.escape(name);
                    self.value(value)?;
                    self.key.truncate(len);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        self.key.truncate(len);
        Ok(())
    }

    /// As JSON pointers escape; a zero byte, which ends the pointer here, is shown as its picture.
    fn escape(&mut self, name: &str) {
        for character in name.chars() {
            match character {
                '~' => self.key.extend(b"~0"),
                '/' => self.key.extend(b"~1"),
                '\0' => self.key.extend("␀".as_bytes()),
                other => self.key.extend(other.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
    }
}

/// The parts of a key; all keys are made by [`Walk`], so all of them have these parts.
fn read_key(key: &[u8], count: u64) -> Option<ValueRow<'_>> {
    let mut parts = key.splitn(3, |byte| *byte == 0).map(std::str::from_utf8);
    let mut part = || parts.next()?.ok();
    Some(ValueRow { part: part()?, pointer: part()?, value: part()?, count })
}

//! Applies the timeline's `set` to a scenario: the same file with some fields changed, read and checked like any other.
//!
//! Each `set` is applied before the run, alone, to the unchanged file, so that a mistake in it is reported at its own
//! position. [`Scenario::changed`] applies several of them together.

use serde_json::Value as Json;

use super::Scenario;
use super::assign::find_or_make;
use super::error::{Fault, ScenarioError};
use super::path::Path;
use super::timeline::Changes;
use super::yaml::{Document, Entry, Node, Value};

/// The name of a scenario that was not read from a file.
const RESOLVED: &str = "the scenario during the run";

/// Reads the file once for each `set` of its timeline, changed by it.
pub(crate) fn try_each(document: &Document) -> Result<(), ScenarioError> {
    let Some(Value::List(happenings)) = document.root.get("timeline").map(|timeline| &timeline.value) else {
        return Ok(());
    };
    for (index, happening) in happenings.iter().enumerate() {
        let Some(set) = happening.get("set") else { continue };
        let at = Path::of(["timeline"]).index(index).field("set");
        drop(Scenario::from_document(made(document, set.entries(), &at)?)?);
    }
    Ok(())
}

/// The document without its timeline, and with these entries in their places.
fn made(document: &Document, entries: &[Entry], at: &Path) -> Result<Document, ScenarioError> {
    let mut changed = document.clone();
    changed.root.retain_entries(|key| !["timeline", "variants", "assert"].contains(&key));
    for Entry { key, mark, node } in entries {
        let put = key.parse::<Path>().map_err(|error| error.to_string()).and_then(|path| {
            *find_or_make(&mut changed.root, &path, *mark)? = node.clone();
            Ok(())
        });
        put.map_err(|problem| {
            let (place, path) = (document.place(*mark), at.field(key));
            ScenarioError::Set(Fault { place, path, problem })
        })?;
    }
    Ok(changed)
}

impl Scenario {
    /// This scenario with these fields changed, and without a timeline: what holds from a moment of the timeline on.
    pub fn changed(&self, changes: &Changes) -> Result<Self, ScenarioError> {
        let plain = Self { timeline: Vec::new(), variants: Vec::new(), assertions: Vec::new(), ..self.clone() };
        let document = Document::parse(RESOLVED, &plain.to_yaml())?;
        let entry = |(key, value): (&String, &Json)| {
            let mark = document.root.mark;
            Entry { key: key.clone(), mark, node: Node::of(value, mark) }
        };
        let entries: Vec<Entry> = changes.iter().map(entry).collect();
        Self::from_document(made(&document, &entries, &Path::of(["timeline"]))?)
    }
}

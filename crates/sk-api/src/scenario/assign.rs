//! `--set PATH=VALUE`, and each value of `--vary`: one field of a scenario, changed from the command line.
//!
//! The tree is changed before it is decoded, so an assignment is checked exactly like a field of the file.

use std::str::FromStr;
use std::sync::Arc;

use super::error::{Fault, Place, ScenarioError, listed, shown};
use super::path::{ParsePathError, Path, Step};
use super::suggest::did_you_mean;
use super::yaml::{self, Document, Entry, MAX_DEPTH, MAX_SCALAR_BYTES, Mark, Node, Value};

/// The most assignments to one scenario: with `MAX_SCALAR_BYTES` each that is 16 MB of text.
const MAX_ASSIGNMENTS: usize = 1_000;

/// Mappings whose keys people choose. A path may not make a new entry there on its way, because it is far more likely
/// that a name was mistyped than that a group of one field was wanted.
const NAMED_BY_PEOPLE: [&[&str]; 2] = [&["cluster", "groups"], &["variants"]];

/// One field and its new value, from `PATH=VALUE`. The value is YAML; nothing after the `=` means the default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// As it was typed, with its flag.
    text: Arc<str>,
    path: Path,
    value: String,
}

/// Why an assignment is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseAssignmentError {
    /// There is no `=` in it.
    #[error("`{0}` has no `=`: write PATH=VALUE, as in cluster.groups.small.max=20")]
    NoValue(String),
    /// The part before the `=` is not a path.
    #[error("`{text}` has an invalid path: {problem}")]
    Path {
        /// The whole text.
        text: String,
        /// What is wrong with the path. Part of the message and not a source, because whoever reads command lines
        /// prints the message alone.
        problem: ParsePathError,
    },
    /// The value is too long.
    #[error("the value of {0} has more than {MAX_SCALAR_BYTES} bytes: put it into the file")]
    TooLong(Path),
}

impl Assignment {
    /// What it changes.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// One of the values that `--vary` gives to a field.
    pub(crate) fn varied(text: &str) -> Result<Self, ParseAssignmentError> {
        Self::typed("--vary", text)
    }

    fn typed(flag: &str, text: &str) -> Result<Self, ParseAssignmentError> {
        let (path, value) = text.split_once('=').ok_or_else(|| ParseAssignmentError::NoValue(shown(text)))?;
        let path: Path = path.parse().map_err(|problem| ParseAssignmentError::Path { text: shown(text), problem })?;
        if value.len() > MAX_SCALAR_BYTES {
            return Err(ParseAssignmentError::TooLong(path));
        }
        Ok(Self { text: format!("{flag} {text}").into(), path, value: value.to_owned() })
    }
}

impl FromStr for Assignment {
    type Err = ParseAssignmentError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::typed("--set", text)
    }
}

/// Changes the tree, one assignment after the other; a later one sees what an earlier one did.
pub(crate) fn apply<'a>(
    document: &mut Document,
    assignments: impl IntoIterator<Item = &'a Assignment>,
) -> Result<(), ScenarioError> {
    for assignment in assignments {
        let index = document.sets.len();
        let fault = |problem: String| {
            let place = Place::Set { text: assignment.text.clone() };
            ScenarioError::Set(Fault { place, path: assignment.path.clone(), problem })
        };
        if index >= MAX_ASSIGNMENTS {
            return Err(fault(format!("this is one more than the {MAX_ASSIGNMENTS} that are read: use the file")));
        }
        let mark = Mark::Set { index };
        let mut value = yaml::read(&assignment.value).map_err(|error| fault(yaml::in_plain_words(&error)))?;
        if assignment.path.steps().len() + value.depth() > MAX_DEPTH {
            return Err(fault(format!("this is nested more than {MAX_DEPTH} levels deep, and no scenario is")));
        }
        value.remark(mark);
        *find_or_make(&mut document.root, &assignment.path, mark).map_err(fault)? = value;
        document.sets.push(assignment.text.clone());
    }
    Ok(())
}

/// The node that `path` leads to, made on the way where there is none.
pub(crate) fn find_or_make<'a>(root: &'a mut Node, path: &Path, mark: Mark) -> Result<&'a mut Node, String> {
    let mut node = root;
    for (depth, step) in path.steps().iter().enumerate() {
        let is_last = depth + 1 == path.steps().len();
        node = match step {
            Step::Field(name) => {
                let by_people = NAMED_BY_PEOPLE
                    .iter()
                    .any(|named| Path::of(named.iter().copied()).steps() == &path.steps()[..depth]);
                field(node, name, mark, is_last || !by_people)?
            }
            Step::Index(index) => position(node, *index, mark)?,
        };
    }
    Ok(node)
}

fn field<'a>(node: &'a mut Node, name: &str, mark: Mark, may_make: bool) -> Result<&'a mut Node, String> {
    if matches!(node.value, Value::Null) {
        *node = Node { value: Value::Map(Vec::new()), mark };
    }
    let Value::Map(entries) = &mut node.value else {
        return Err(format!("there are no fields here, so there is no `{}`", shown(name)));
    };
    let found = entries.iter().position(|entry| entry.key == name);
    if found.is_none() && !may_make {
        let known = || entries.iter().map(|entry| entry.key.as_str());
        let advice = did_you_mean(name, known());
        return Err(format!("there is no `{}`, only {}{advice}", shown(name), listed(known())));
    }
    let index = found.unwrap_or_else(|| {
        entries.push(Entry { key: name.to_owned(), mark, node: Node { value: Value::Null, mark } });
        entries.len() - 1
    });
    Ok(&mut entries[index].node)
}

fn position(node: &mut Node, index: usize, mark: Mark) -> Result<&mut Node, String> {
    if matches!(node.value, Value::Null) {
        *node = Node { value: Value::List(Vec::new()), mark };
    }
    let Value::List(nodes) = &mut node.value else {
        return Err(format!("there is no list here, so there is no [{index}]"));
    };
    if index > nodes.len() {
        return Err(format!("the list has {} entries, so the next is [{}]", nodes.len(), nodes.len()));
    }
    if index == nodes.len() {
        nodes.push(Node { value: Value::Null, mark });
    }
    Ok(&mut nodes[index])
}

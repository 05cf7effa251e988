//! Errors of a scenario, with their positions in the file or on the command line.

use std::fmt;
use std::sync::Arc;

use super::family::MAX_MEMBERS;
use super::path::Path;
use super::yaml::MAX_FILE_BYTES;

/// The most faults that are kept of one scenario. Nobody reads more at once.
pub(crate) const MAX_FAULTS: usize = 50;

/// The most characters of somebody's text that a message repeats.
const MAX_SHOWN_CHARS: usize = 60;

/// A place in what a person wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a file; prints as `pack.yaml:7:12`, which editors and terminals open.
    File {
        /// The file's name as the caller gave it.
        name: Arc<str>,
        /// The line, from 1.
        line: u64,
        /// The character in the line, from 1.
        column: u64,
    },
    /// In an assignment on the command line.
    Set {
        /// The whole assignment, with its flag.
        text: Arc<str>,
    },
}

impl Place {
    /// The line in the file, if it stands in the file.
    pub fn line(&self) -> Option<u64> {
        match self {
            Self::File { line, .. } => Some(*line),
            Self::Set { .. } => None,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { name, line, column } => write!(f, "{name}:{line}:{column}"),
            Self::Set { text } => f.write_str(&shown(text)),
        }
    }
}

/// One thing that is wrong: where, with what, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where it stands.
    pub place: Place,
    /// What it is about.
    pub path: Path,
    /// What is wrong and what to do.
    pub problem: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.steps().is_empty() {
            return write!(f, "{}: {}", self.place, self.problem);
        }
        write!(f, "{}: {}: {}", self.place, self.path, self.problem)
    }
}

/// Why a scenario cannot be used, by the step that failed.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// Too large to be read.
    #[error(
        "{file}: {bytes} bytes are too many, a scenario has at most {MAX_FILE_BYTES}: is this a trace? \
         Scenarios are short YAML files, see docs/scenario.md"
    )]
    TooLarge {
        /// The file's name.
        file: String,
        /// Its size.
        bytes: usize,
    },
    /// What was read repeats itself so often that it could not be read again from its written form.
    #[error(
        "{file}: with aliases and defaults written out this has {bytes} bytes, more than the {MAX_FILE_BYTES} that a \
         scenario may have: say less, or repeat less with `*`"
    )]
    TooLargeWritten {
        /// The file's name.
        file: String,
        /// The size of [`Scenario::to_yaml`](super::Scenario::to_yaml).
        bytes: usize,
    },
    /// Not YAML, or too large.
    #[error("{place}: {problem}")]
    Yaml {
        /// Where it went wrong.
        place: Place,
        /// What is wrong and what to do. What the YAML reader says is in it, as far as it is meant for people.
        problem: String,
    },
    /// An assignment on the command line, or a change that a variant makes, could not be carried out.
    #[error("{0}")]
    Set(Fault),
    /// Variants and varied fields multiply.
    #[error(
        "{file}: variants times the values of each --vary are more than {MAX_MEMBERS} runs: ask for fewer at a time"
    )]
    TooManyMembers {
        /// The file's name.
        file: String,
    },
    /// The second `--vary` of a field would undo the first.
    #[error("--vary {0} is given twice; write all values in one, as in --vary {0}=A,B")]
    VariedTwice(Path),
    /// It is YAML, but an unknown field, a missing one or a value of another kind stands in it.
    #[error("{0}")]
    Shape(Fault),
    /// The fields contradict each other, or exceed a limit.
    #[error("{}", lines(.0))]
    Meaning(Vec<Fault>),
}

impl ScenarioError {
    /// What is wrong, thing by thing, with places; empty if it could not be read that far.
    pub fn faults(&self) -> &[Fault] {
        match self {
            Self::TooLarge { .. }
            | Self::TooLargeWritten { .. }
            | Self::Yaml { .. }
            | Self::TooManyMembers { .. }
            | Self::VariedTwice(_) => &[],
            Self::Set(fault) | Self::Shape(fault) => std::slice::from_ref(fault),
            Self::Meaning(faults) => faults,
        }
    }
}

fn lines(faults: &[Fault]) -> String {
    faults.iter().map(Fault::to_string).collect::<Vec<_>>().join("\n")
}

/// Text of the user, shortened to one line of a message.
pub(crate) fn shown(text: &str) -> String {
    let mut shown = String::new();
    for c in text.chars().take(MAX_SHOWN_CHARS) {
        if c.is_control() { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    if text.chars().nth(MAX_SHOWN_CHARS).is_some() {
        shown.push('…');
    }
    shown
}

/// Several names for a message: `` `a`, `b` and `c` ``.
pub(crate) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<_> = names.into_iter().map(|name| format!("`{}`", shown(name))).collect();
    match quoted.split_last() {
        None => "none".to_owned(),
        Some((only, [])) => only.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
    }
}

//! YAML text as a tree that remembers where each thing stands.
//!
//! The tree is what `--set` changes and what typed data is decoded from, so that every error and every refusal can
//! name line and column. Reading is bounded in bytes, nodes, depth and aliases before anything is kept; documents after
//! the first, unknown tags, and numbers that are none (`.nan`, `.inf`) are refused.

use std::fmt;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{Error as YamlError, Location, MessageFormatter, Spanned, UserMessageFormatter};

use super::error::{Place, ScenarioError, shown};
use super::path::{Path, Step};

/// The largest scenario that is read, and that is written. The longest sample in the documentation has 4 KB; a group with
/// all its defaults written out takes about 220 bytes, so this is room for a thousand.
pub(crate) const MAX_FILE_BYTES: usize = 256 << 10;

/// The most values that one scenario holds: each takes at least two bytes, as in `[1,1,1]`. At some 100 bytes a node
/// that is 13 MB.
const MAX_NODES: usize = MAX_FILE_BYTES / 2;

/// The deepest nesting. A scenario's own is 6, an inline scheduler configuration's about 12.
pub(crate) const MAX_DEPTH: usize = 32;

/// The longest single text: an assertion of 4,096 characters of four bytes.
pub(crate) const MAX_SCALAR_BYTES: usize = 16 << 10;

/// How many anchors, and how many aliases and merges of them, a scenario may have.
const MAX_ANCHORS: usize = 256;

/// The most values that aliases may repeat, all together. Their text counts towards [`MAX_FILE_BYTES`] each time.
const MAX_REPEATED: usize = 4_096;

/// A scenario's text as a tree, with the names that its places are told by.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    pub(crate) file: Arc<str>,
    /// The assignments that changed it, as they were written.
    pub(crate) sets: Vec<Arc<str>>,
    pub(crate) root: Node,
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) mark: Mark,
}

/// What YAML can say.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Integer(i64),
    /// Beyond the largest `i64`.
    Unsigned(u64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// One entry of a mapping, in the order written.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) mark: Mark,
    pub(crate) node: Node,
}

/// Where something stands: in the file or in one of the assignments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    File { line: u64, column: u64 },
    Set { index: usize },
}

impl Document {
    pub(crate) fn parse(file: &str, text: &str) -> Result<Self, ScenarioError> {
        if text.len() > MAX_FILE_BYTES {
            return Err(ScenarioError::TooLarge { file: file.to_owned(), bytes: text.len() });
        }
        let file: Arc<str> = file.into();
        let root = read(text).map_err(|source| {
            let (line, column) = source.location().map_or((1, 1), |at| (at.line(), at.column()));
            let place = Place::File { name: file.clone(), line, column };
            ScenarioError::Yaml { place, problem: in_plain_words(&source) }
        })?;
        Ok(Self { file, sets: Vec::new(), root })
    }

    pub(crate) fn place(&self, mark: Mark) -> Place {
        match mark {
            Mark::File { line, column } => Place::File { name: self.file.clone(), line, column },
            Mark::Set { index } => Place::Set { text: self.sets[index].clone() },
        }
    }

    /// Where this stands; for what was left to its default, the nearest thing around it that was written.
    pub(crate) fn place_of(&self, path: &Path) -> Place {
        let mut node = &self.root;
        for step in path.steps() {
            match node.step(step) {
                Some(inner) => node = inner,
                None => break,
            }
        }
        self.place(node.mark)
    }
}

impl Node {
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        match &self.value {
            Value::Map(entries) => entries.iter().find(|entry| entry.key == key).map(|entry| &entry.node),
            _ => None,
        }
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Self> {
        match &mut self.value {
            Value::Map(entries) => entries.iter_mut().find(|entry| entry.key == key).map(|entry| &mut entry.node),
            _ => None,
        }
    }

    /// Leaves only the entries of a mapping whose keys are wanted.
    pub(crate) fn retain_entries(&mut self, mut wanted: impl FnMut(&str) -> bool) {
        if let Value::Map(entries) = &mut self.value {
            entries.retain(|entry| wanted(&entry.key));
        }
    }

    /// A JSON value as a tree that stands in one place.
    pub(crate) fn of(value: &serde_json::Value, mark: Mark) -> Self {
        use serde_json::Value as Json;
        let value = match value {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(value), _) => Value::Integer(value),
                (None, Some(value)) => Value::Unsigned(value),
                (None, None) => Value::Float(number.as_f64().unwrap_or_default()),
            },
            Json::String(text) => Value::Text(text.clone()),
            Json::Array(values) => Value::List(values.iter().map(|value| Self::of(value, mark)).collect()),
            Json::Object(fields) => {
                let entry =
                    |(key, value): (&String, &Json)| Entry { key: key.clone(), mark, node: Self::of(value, mark) };
                Value::Map(fields.iter().map(entry).collect())
            }
        };
        Self { value, mark }
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Map(entries) => entries,
            _ => &[],
        }
    }

    /// How many lists and mappings stand in each other here.
    pub(crate) fn depth(&self) -> usize {
        match &self.value {
            Value::List(nodes) => 1 + nodes.iter().map(Self::depth).max().unwrap_or_default(),
            Value::Map(entries) => 1 + entries.iter().map(|entry| entry.node.depth()).max().unwrap_or_default(),
            _ => 0,
        }
    }

    /// Gives this and everything in it another place.
    pub(crate) fn remark(&mut self, mark: Mark) {
        self.mark = mark;
        match &mut self.value {
            Value::List(nodes) => nodes.iter_mut().for_each(|node| node.remark(mark)),
            Value::Map(entries) => entries.iter_mut().for_each(|entry| {
                entry.mark = mark;
                entry.node.remark(mark);
            }),
            _ => {}
        }
    }

    fn step(&self, step: &Step) -> Option<&Self> {
        match (step, &self.value) {
            (Step::Field(name), _) => self.get(name),
            (Step::Index(index), Value::List(nodes)) => nodes.get(*index),
            (Step::Index(_), _) => None,
        }
    }
}

/// Reads one YAML document.
pub(crate) fn read(text: &str) -> Result<Node, YamlError> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: 4 * MAX_NODES,
            max_nodes: MAX_NODES,
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
            max_documents: 1,
            max_anchors: MAX_ANCHORS,
            max_aliases: MAX_ANCHORS,
            max_merge_keys: MAX_ANCHORS,
            max_recorded_anchor_events: MAX_NODES,
            max_recorded_anchor_bytes: MAX_FILE_BYTES,
            max_total_scalar_bytes: MAX_FILE_BYTES,
            max_total_comment_bytes: MAX_FILE_BYTES,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MAX_REPEATED,
            max_replay_stack_depth: MAX_DEPTH,
            max_alias_expansions_per_anchor: MAX_ANCHORS,
        },
        strict_booleans: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options)
}

/// What the reader found, said to somebody who has a file open and not our code.
pub(crate) fn in_plain_words(error: &YamlError) -> String {
    match error {
        YamlError::AliasError { error, .. } => in_plain_words(error),
        YamlError::DuplicateMappingKey { key: Some(key), .. } => {
            format!("`{}` stands here twice: keep one of them", shown(key))
        }
        YamlError::Budget { breach, .. } => over_budget(breach),
        // The reader's own limit of brackets has no variant of its own.
        YamlError::ExternalMessage { msg, .. } if msg.contains("recursion limit") => too_deep(),
        YamlError::AliasReplayLimitExceeded { .. } | YamlError::AliasReplayStackDepthExceeded { .. } => {
            format!(
                "this is more than a scenario may hold: aliases (`*name`) repeat more than {MAX_REPEATED} values; repeat less"
            )
        }
        YamlError::AliasExpansionLimitExceeded { .. } => {
            format!(
                "this is more than a scenario may hold: one part is repeated (`*name`) more than {MAX_ANCHORS} times; repeat less"
            )
        }
        YamlError::UnknownAnchor { .. } => {
            "nothing before this has the name (`&name`) that it repeats (`*name`)".to_owned()
        }
        YamlError::NonFiniteFloat { value, .. } => format!("`{}` is not a number to simulate with", shown(value)),
        YamlError::Message { msg, .. } => shown(msg),
        _ => format!("this is not valid YAML: {}", reader_message(error)),
    }
}

/// Which limit of [`read`] was passed, and what to do.
fn over_budget(breach: &BudgetBreach) -> String {
    let (what, advice) = match breach {
        BudgetBreach::Documents { .. } => {
            return "a scenario is one YAML document: remove what follows `---`, or make it a file of its own"
                .to_owned();
        }
        BudgetBreach::Depth { .. } => return too_deep(),
        BudgetBreach::Events { .. } | BudgetBreach::Nodes { .. } => {
            (format!("it has more than {MAX_NODES} values"), "say less")
        }
        BudgetBreach::Anchors { .. } => {
            (format!("more than {MAX_ANCHORS} parts have a name (`&name`)"), "name fewer of them")
        }
        BudgetBreach::Aliases { .. } | BudgetBreach::MergeKeys { .. } | BudgetBreach::AliasAnchorRatio { .. } => {
            (format!("parts are repeated (`*name`, `<<`) more than {MAX_ANCHORS} times"), "repeat less")
        }
        BudgetBreach::RecordedAnchorEvents { .. } | BudgetBreach::RecordedAnchorBytes { .. } => {
            ("the parts that have a name (`&name`) are too large".to_owned(), "repeat less")
        }
        _ => (format!("with what is repeated it has more than {} KiB of text", MAX_FILE_BYTES >> 10), "say less"),
    };
    format!("this is more than a scenario may hold: {what}; {advice}")
}

fn too_deep() -> String {
    format!("this is nested more than {MAX_DEPTH} levels deep, and no scenario is")
}

fn reader_message(error: &YamlError) -> String {
    let message = UserMessageFormatter.format_message(error);
    message.chars().map(|char| if char.is_control() { ' ' } else { char }).collect()
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Value>::deserialize(deserializer)?;
        // Of something repeated with `*name`, the place where it was written is where it can be mended.
        Ok(Self { value: spanned.value, mark: Mark::at(spanned.defined) })
    }
}

impl Mark {
    fn at(location: Location) -> Self {
        Self::File { line: location.line(), column: location.column() }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Integer(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(i64::try_from(value).map_or(Value::Unsigned(value), Value::Integer))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Value, E> {
        checked_length(text)?;
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = list.next_element()? {
            nodes.push(node);
        }
        Ok(Value::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, mut node)) = map.next_entry::<Spanned<String>, Node>()? {
            checked_length(&key.value)?;
            let mark = Mark::at(key.defined);
            // A whole section is shown where its name stands, not where the first thing in it does.
            if matches!(node.value, Value::List(_) | Value::Map(_)) {
                node.mark = mark;
            }
            entries.push(Entry { key: key.value, mark, node });
        }
        Ok(Value::Map(entries))
    }
}

fn checked_length<E: serde::de::Error>(text: &str) -> Result<(), E> {
    if text.len() <= MAX_SCALAR_BYTES {
        return Ok(());
    }
    Err(E::custom(format_args!("this text is longer than {MAX_SCALAR_BYTES} bytes: shorten it")))
}

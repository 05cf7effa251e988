//! YAML text as a tree, and the line and column of a path.
//!
//! Only an error needs positions, so the text is parsed first as a plain tree, and a second time with positions if
//! there is an error.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_saphyr::{MessageFormatter as _, Spanned, UserMessageFormatter};

use super::ConfigError;
use super::reader::{Path, Step};

/// The largest configuration that is read. With every default written out one has about 10 KB.
const MAX_BYTES: usize = 256 << 10;

fn refused(problem: String, place: Option<(u64, u64)>) -> ConfigError {
    ConfigError { path: Path::default(), problem, place }
}

pub(super) fn read(text: &str) -> Result<Value, ConfigError> {
    if text.len() > MAX_BYTES {
        let problem = format!("{} bytes are too many: at most {MAX_BYTES} are read", text.len());
        return Err(refused(problem, None));
    }
    serde_saphyr::from_str(text).map_err(|error| {
        let place = error.location().map(|at| (at.line(), at.column()));
        let message = UserMessageFormatter.format_message(error.without_snippet());
        refused(format!("is not valid YAML: {}", message.lines().next().unwrap_or_default()), place)
    })
}

/// Line and column of a path, or of its nearest parent.
pub(super) fn place(text: &str, path: &Path) -> Option<(u64, u64)> {
    let root: Spanned<Tree> = serde_saphyr::from_str(text).ok()?;
    let mut at = &root;
    for step in &path.0 {
        let next = match (step, &at.value) {
            (Step::Field(name), Tree::Map(entries)) => {
                entries.iter().find(|(key, _)| key == name).map(|(_, tree)| tree)
            }
            (Step::Index(index), Tree::List(entries)) => entries.get(*index),
            _ => None,
        };
        match next {
            Some(next) => at = next,
            None => break,
        }
    }
    Some((at.referenced.line(), at.referenced.column()))
}

/// A tree with places.
enum Tree {
    Leaf,
    List(Vec<Spanned<Tree>>),
    Map(Vec<(String, Spanned<Tree>)>),
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

macro_rules! leaf {
    ($($visit:ident: $type:ty),*) => {
        $(fn $visit<E>(self, _: $type) -> Result<Tree, E> { Ok(Tree::Leaf) })*
    };
}

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("YAML")
    }

    leaf!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_i128: i128, visit_u128: u128, visit_f64: f64, visit_str: &str);

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Leaf)
    }

    fn visit_none<E>(self) -> Result<Tree, E> {
        Ok(Tree::Leaf)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Tree, A::Error> {
        let mut list = Vec::new();
        while let Some(entry) = entries.next_element()? {
            list.push(entry);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Tree, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Tree::Map(map))
    }
}

//! From the tree to typed data: a serde `Deserializer` whose errors know where they stand and what would have been
//! right.
//!
//! The types themselves stay plain serde types. What this adds: the path and the mark of the innermost value that is
//! wrong, "did you mean", words instead of Rust's type names, and `field:` without a value means as much as no field.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, Expected, IntoDeserializer, MapAccess, SeqAccess};
use serde::de::{Unexpected, Visitor};
use serde::forward_to_deserialize_any;

use super::error::{listed, shown};
use super::path::{Path, Step};
use super::suggest::did_you_mean;
use super::yaml::{Entry, Mark, Node, Value};

/// Something in the tree is not what the types ask for.
#[derive(Debug)]
pub(crate) struct DecodeError {
    pub(crate) problem: String,
    /// `None` until the error has left the value that it is about.
    pub(crate) mark: Option<Mark>,
    /// From the inside out.
    steps: Vec<Step>,
}

impl DecodeError {
    fn new(problem: String) -> Self {
        Self { problem, mark: None, steps: Vec::new() }
    }

    /// The innermost mark stays.
    fn at(mut self, mark: Mark) -> Self {
        self.mark.get_or_insert(mark);
        self
    }

    fn inside(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    pub(crate) fn path(&self) -> Path {
        self.steps.iter().rev().cloned().collect()
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)
    }
}

impl std::error::Error for DecodeError {}

impl Error for DecodeError {
    fn custom<T: fmt::Display>(problem: T) -> Self {
        Self::new(problem.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let expected = expected.to_string();
        let scalar = matches!(
            found,
            Unexpected::Bool(_) | Unexpected::Signed(_) | Unexpected::Unsigned(_) | Unexpected::Float(_)
        );
        let advice = if scalar && expected == "a string" { "; put it in quotes" } else { "" };
        Self::new(format!("expected {}, found {}{advice}", in_words(&expected), found_in_words(found)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn unknown_variant(variant: &str, known: &'static [&'static str]) -> Self {
        if let [only] = known {
            return Self::new(format!("expected `{only}`, found `{}`", shown(variant)));
        }
        let advice = did_you_mean(variant, known.iter().copied());
        Self::new(format!("`{}` is none of {}{advice}", shown(variant), listed(known.iter().copied())))
    }

    fn unknown_field(field: &str, known: &'static [&'static str]) -> Self {
        let advice = did_you_mean(field, known.iter().copied());
        Self::new(format!("there is no such field, only {}{advice}", listed(known.iter().copied())))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(format!("`{field}` is missing: add it"))
    }
}

/// What Rust calls a `u32` is a whole number to everybody else.
fn in_words(expected: &str) -> &str {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, not below 0",
        "i64" => "a whole number",
        "f64" => "a number",
        "a boolean" => "true or false",
        "a string" => "text",
        "a sequence" => "a list",
        "a map" => "a mapping",
        other => other,
    }
}

fn found_in_words(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(value) => format!("`{value}`"),
        Unexpected::Unsigned(value) => format!("the number {value}"),
        Unexpected::Signed(value) => format!("the number {value}"),
        Unexpected::Float(value) => format!("the number {value}"),
        Unexpected::Str(text) => format!("the text \"{}\"", shown(text)),
        Unexpected::Unit | Unexpected::Option => "nothing".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a mapping".to_owned(),
        other => other.to_string(),
    }
}

impl Node {
    fn unexpected(&self) -> Unexpected<'_> {
        match &self.value {
            Value::Null => Unexpected::Unit,
            Value::Bool(value) => Unexpected::Bool(*value),
            Value::Integer(value) => Unexpected::Signed(*value),
            Value::Unsigned(value) => Unexpected::Unsigned(*value),
            Value::Float(value) => Unexpected::Float(*value),
            Value::Text(text) => Unexpected::Str(text),
            Value::List(_) => Unexpected::Seq,
            Value::Map(_) => Unexpected::Map,
        }
    }
}

impl<'de> Deserializer<'de> for &'de Node {
    type Error = DecodeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        let visited = match &self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Integer(value) => visitor.visit_i64(*value),
            Value::Unsigned(value) => visitor.visit_u64(*value),
            Value::Float(value) => visitor.visit_f64(*value),
            Value::Text(text) => visitor.visit_borrowed_str(text),
            Value::List(nodes) => visitor.visit_seq(List { nodes, next: 0 }),
            Value::Map(entries) => visitor.visit_map(Map { entries, fields: &[], current: None }),
        };
        visited.map_err(|error| error.at(self.mark))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        match &self.value {
            Value::Map(entries) => visitor.visit_map(Map { entries, fields, current: None }),
            _ => Err(DecodeError::invalid_type(self.unexpected(), &visitor)),
        }
        .map_err(|error| error.at(self.mark))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
        .map_err(|error| error.at(self.mark))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        visitor.visit_newtype_struct(self).map_err(|error| error.at(self.mark))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        match &self.value {
            Value::Text(text) => visitor.visit_enum(text.as_str().into_deserializer()),
            _ => Err(DecodeError::new(format!(
                "expected one of {}, found {}",
                listed(variants.iter().copied()),
                found_in_words(self.unexpected())
            ))),
        }
        .map_err(|error| error.at(self.mark))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

struct List<'de> {
    nodes: &'de [Node],
    next: usize,
}

impl<'de> SeqAccess<'de> for List<'de> {
    type Error = DecodeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, DecodeError> {
        let Some(node) = self.nodes.get(self.next) else { return Ok(None) };
        let index = self.next;
        self.next += 1;
        seed.deserialize(node).map(Some).map_err(|error| error.at(node.mark).inside(Step::Index(index)))
    }
}

struct Map<'de> {
    entries: &'de [Entry],
    /// The fields that are known here; of these, one without a value counts as absent.
    fields: &'static [&'static str],
    current: Option<&'de Entry>,
}

impl Map<'_> {
    fn is_absent(&self, entry: &Entry) -> bool {
        matches!(entry.node.value, Value::Null) && self.fields.contains(&entry.key.as_str())
    }
}

impl<'de> MapAccess<'de> for Map<'de> {
    type Error = DecodeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, DecodeError> {
        let Some(position) = self.entries.iter().position(|entry| !self.is_absent(entry)) else { return Ok(None) };
        let entry = &self.entries[position];
        self.entries = &self.entries[position + 1..];
        self.current = Some(entry);
        let inside = |error: DecodeError| error.at(entry.mark).inside(Step::Field(entry.key.as_str().into()));
        seed.deserialize(entry.key.as_str().into_deserializer()).map(Some).map_err(inside)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, DecodeError> {
        let entry = self.current.take().ok_or_else(|| DecodeError::custom("a value was read before its key"))?;
        let inside = |error: DecodeError| error.at(entry.node.mark).inside(Step::Field(entry.key.as_str().into()));
        seed.deserialize(&entry.node).map_err(inside)
    }
}

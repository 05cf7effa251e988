//! Encodes objects that differ in a few values: one template with holes, filled for each object.
//!
//! Building an object as a tree, encoding and hashing it costs tens of microseconds, nearly all of it for bytes that
//! are the same in the next one. A caller that creates very many similar objects (`trace generate`) builds one tree
//! with [`Ink::Marks`], makes [`Stencil`]s of it, and fills those. The result is byte for byte what the tree with
//! [`Ink::Real`] gives.
//!
//! Values that begin or end with the control characters of a mark cannot be used in holes.

use bytes::Bytes;
use serde_json::Value;
use sk_core::{ObjectRef, StableHash, StableHasher};

use super::head::Labels;
use super::record::Object;
use super::write::WriteError;
use crate::msgpack::decode::Slice;
use crate::msgpack::encode;

/// What stands before a hole for text, before a hole for a number, and behind both.
const TEXT: char = '\u{1}';
const NUMBER: char = '\u{2}';
const END: char = '\u{3}';

/// An object that is already encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// Its kind and name.
    pub object: ObjectRef,
    /// Its labels.
    pub labels: Labels,
    /// All of it as MessagePack. Many bodies may share one piece of memory.
    pub body: Bytes,
}

impl Encoded {
    /// The object as a tree.
    pub fn decode(&self) -> Result<Object, WriteError> {
        let wrong = |reason: String| WriteError::NotEncoded { object: self.object.to_string(), reason };
        let value = Slice::new(&self.body).value().map_err(|fault| wrong(fault.to_string()))?;
        Object::known(&self.object, value).map_err(|error| wrong(error.to_string()))
    }
}

/// What fills the holes of one object. Kept and used again, so that filling takes no memory.
#[derive(Clone, Debug, Default)]
pub struct Filling {
    texts: String,
    /// Where each text ends.
    ends: Vec<usize>,
    numbers: Vec<u64>,
}

impl Filling {
    /// Forgets everything.
    pub fn clear(&mut self) {
        self.texts.clear();
        self.ends.clear();
        self.numbers.clear();
    }

    /// The next text; the first is for hole 0.
    pub fn text(&mut self, text: &str) {
        self.texts.push_str(text);
        self.ends.push(self.texts.len());
    }

    /// The next number; the first is for hole 0 of the numbers.
    pub fn number(&mut self, number: u64) {
        self.numbers.push(number);
    }

    /// Changes the number of a hole that has one.
    pub fn set_number(&mut self, hole: usize, number: u64) {
        if let Some(known) = self.numbers.get_mut(hole) {
            *known = number;
        }
    }

    /// The text for a hole; the empty one if there is none, which only a mistake in the caller's code makes.
    fn get(&self, hole: usize) -> &str {
        let start = hole.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.ends.get(hole).and_then(|end| self.texts.get(start..*end)).unwrap_or_default()
    }

    fn get_number(&self, hole: usize) -> u64 {
        self.numbers.get(hole).copied().unwrap_or_default()
    }
}

/// What an object is drawn with, as a tree.
#[derive(Clone, Copy, Debug)]
pub enum Ink<'a> {
    /// Marks, of which a stencil makes holes.
    Marks,
    /// What really stands there.
    Real(&'a Filling),
}

impl Ink<'_> {
    /// The text of a hole, to stand alone or in a longer text.
    pub fn text(self, hole: usize) -> String {
        match self {
            Self::Marks => format!("{TEXT}{hole}{END}"),
            Self::Real(filling) => filling.get(hole).to_owned(),
        }
    }

    /// The number of a hole.
    pub fn number(self, hole: usize) -> Value {
        match self {
            Self::Marks => Value::String(format!("{NUMBER}{hole}{END}")),
            Self::Real(filling) => filling.get_number(hole).into(),
        }
    }
}

/// Bytes with holes.
#[derive(Clone, Debug, Default)]
pub struct Stencil(Vec<Part>);

#[derive(Clone, Debug)]
enum Part {
    Bytes(Vec<u8>),
    /// One text with holes in it.
    Text(Vec<Piece>),
    Number(usize),
}

#[derive(Clone, Debug)]
enum Piece {
    Literal(String),
    Hole(usize),
}

impl Stencil {
    /// Of an object's encoding.
    pub fn of_encoding(marked: &Value) -> Self {
        let mut stencil = Self::default();
        stencil.add_encoding(marked);
        stencil
    }

    /// Of what is hashed of a value.
    pub fn of_hash(marked: &Value) -> Self {
        let mut stencil = Self::default();
        stencil.add_hashed(marked);
        stencil
    }

    /// The encoding with its holes filled, behind what `out` has.
    pub fn encode(&self, filling: &Filling, out: &mut Vec<u8>) {
        for part in &self.0 {
            match part {
                Part::Bytes(bytes) => out.extend_from_slice(bytes),
                Part::Number(hole) => encode::unsigned(out, filling.get_number(*hole)),
                Part::Text(pieces) => {
                    encode::text_len(out, pieces.iter().map(|piece| piece.fill(filling).len()).sum());
                    pieces.iter().for_each(|piece| out.extend_from_slice(piece.fill(filling).as_bytes()));
                }
            }
        }
    }

    /// The hash with the holes filled. `walked` is memory to be used again.
    pub fn hash(&self, filling: &Filling, walked: &mut Vec<u8>) -> StableHash {
        walked.clear();
        for part in &self.0 {
            match part {
                Part::Bytes(bytes) => walked.extend_from_slice(bytes),
                Part::Number(hole) => walked.extend_from_slice(&filling.get_number(*hole).to_le_bytes()),
                Part::Text(pieces) => {
                    pieces.iter().for_each(|piece| walked.extend_from_slice(piece.fill(filling).as_bytes()));
                    walked.push(0xff);
                }
            }
        }
        StableHasher::of_walk(walked)
    }

    fn bytes(&mut self) -> &mut Vec<u8> {
        if !matches!(self.0.last(), Some(Part::Bytes(_))) {
            self.0.push(Part::Bytes(Vec::new()));
        }
        match self.0.last_mut() {
            Some(Part::Bytes(bytes)) => bytes,
            _ => unreachable!("it was pushed just above"),
        }
    }

    /// Adds a hole, or a text with holes; answers whether it was one.
    fn add_holes(&mut self, text: &str) -> bool {
        if let Some(hole) = text.strip_prefix(NUMBER).and_then(|rest| rest.strip_suffix(END)) {
            self.0.push(Part::Number(hole.parse().unwrap_or_default()));
            return true;
        }
        if !text.contains(TEXT) {
            return false;
        }
        let mut pieces = Vec::new();
        for (number, part) in text.split(TEXT).enumerate() {
            let literal = match part.split_once(END).filter(|_| number > 0) {
                Some((hole, literal)) => {
                    pieces.push(Piece::Hole(hole.parse().unwrap_or_default()));
                    literal
                }
                None => part,
            };
            if !literal.is_empty() {
                pieces.push(Piece::Literal(literal.to_owned()));
            }
        }
        self.0.push(Part::Text(pieces));
        true
    }

    fn add_encoding(&mut self, value: &Value) {
        match value {
            Value::String(text) => {
                if !self.add_holes(text) {
                    encode::text(self.bytes(), text);
                }
            }
            Value::Array(elements) => {
                encode::array_len(self.bytes(), elements.len());
                elements.iter().for_each(|element| self.add_encoding(element));
            }
            Value::Object(fields) => {
                encode::map_len(self.bytes(), fields.len());
                for (key, value) in fields {
                    encode::text(self.bytes(), key);
                    self.add_encoding(value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => encode::value(self.bytes(), value),
        }
    }

    fn add_hashed(&mut self, value: &Value) {
        match value {
            Value::Null => self.bytes().extend_from_slice(&[0; 8]),
            Value::Bool(flag) => self.bytes().push(u8::from(*flag)),
            Value::Number(number) => {
                let unsigned = number.as_u64().map(u64::to_le_bytes);
                let bytes = unsigned.or(number.as_i64().map(i64::to_le_bytes));
                let float = || number.as_f64().unwrap_or_default().to_bits().to_le_bytes();
                self.bytes().extend_from_slice(&bytes.unwrap_or_else(float));
            }
            Value::String(text) => {
                if !self.add_holes(text) {
                    self.add_key(text);
                }
            }
            Value::Array(elements) => elements.iter().for_each(|element| self.add_hashed(element)),
            Value::Object(fields) => {
                let mut fields: Vec<_> = fields.iter().collect();
                fields.sort_unstable_by_key(|(name, _)| *name);
                for (name, value) in fields {
                    self.add_key(name);
                    self.add_hashed(value);
                }
            }
        }
    }

    fn add_key(&mut self, text: &str) {
        self.bytes().extend_from_slice(text.as_bytes());
        self.bytes().push(0xff);
    }
}

impl Piece {
    fn fill<'a>(&'a self, filling: &'a Filling) -> &'a str {
        match self {
            Self::Literal(text) => text,
            Self::Hole(hole) => filling.get(*hole),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn drawn(ink: Ink<'_>) -> Value {
        json!({"name": ink.text(0), "image": format!("r/{}:{}-x", ink.text(0), ink.text(1)), "count": ink.number(0),
            "rest": [true, null, -5, 1.5, 300, "plain", {"b": ink.text(1), "a": ink.text(2)}]})
    }

    #[test]
    fn a_filled_stencil_is_what_the_tree_gives() {
        let (encoding, hash) = (drawn(Ink::Marks), drawn(Ink::Marks));
        let (encoding, hash) = (Stencil::of_encoding(&encoding), Stencil::of_hash(&hash));
        let mut filling = Filling::default();
        for (texts, number) in [(["a", "", "ü"], 0), (["long", "x", "y"], 70_000), (["n", "v", "w"], u64::MAX)] {
            filling.clear();
            let long = texts[0].repeat(200);
            [if texts[0] == "long" { &long } else { texts[0] }, texts[1], texts[2]]
                .iter()
                .for_each(|text| filling.text(text));
            filling.number(number);
            let tree = drawn(Ink::Real(&filling));
            let (mut expected, mut body) = (Vec::new(), Vec::new());
            encode::value(&mut expected, &tree);
            encoding.encode(&filling, &mut body);
            assert_eq!(body, expected, "{tree}");
            assert_eq!(hash.hash(&filling, &mut Vec::new()), StableHash::of(&tree), "{tree}");
        }
    }
}

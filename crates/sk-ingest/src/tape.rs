//! One JSON object as a flat list of tokens that borrow from its bytes: parsed once, walked several times (for its name,
//! for what is kept, for its hash), then dropped.
//!
//! A tree of `serde_json::Value` costs an allocation per field and several times the size of the text, and most objects
//! from a watch turn out to be unchanged. Nothing here knows Kubernetes. Size, number of tokens and nesting are bounded, and
//! no input makes it panic.
//!
//! JSON as an API server writes it has a faster parser (`compact`). Everything else goes to `serde_json`, which also
//! produces the error messages.

mod compact;
mod walk;

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// The largest object that is read. An API server takes requests of at most 3 MiB, and JSON can be more than twice as
/// long as what was stored.
pub(crate) const MAX_BYTES: usize = 8 << 20;

/// The most tokens an object may have: 3 MiB at an ordinary dozen bytes per token is a quarter of that. A token takes 24
/// bytes, so this bounds a tape at 24 MiB.
const MAX_TOKENS: usize = 1 << 20;

/// How deep an object may be nested. Kubernetes' own kinds stay below 30; serde_json itself gives up at 128.
const MAX_DEPTH: usize = 100;

/// A value in its order. A list or map stands before its contents and knows where they end, and where it stood in the text; a
/// map's contents are alternately a key, which is text, and a value.
#[derive(Debug)]
pub(crate) enum Token<'a> {
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(Cow<'a, str>),
    List { end: u32, from: u32, to: u32 },
    Map { end: u32, from: u32, to: u32 },
}

/// The tokens of one JSON value.
#[derive(Debug)]
pub(crate) struct Tape<'a> {
    tokens: Vec<Token<'a>>,
    /// The text, if it has no blanks, and so each part of it is written as anybody would write it.
    source: Option<&'a str>,
}

/// One value on a tape.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node<'t, 'a> {
    tape: &'t Tape<'a>,
    at: usize,
}

impl<'a> Tape<'a> {
    /// Reads one JSON value and nothing after it.
    pub(crate) fn parse(json: &'a [u8]) -> Result<Self, serde_json::Error> {
        if json.len() > MAX_BYTES {
            let size = json.len();
            return Err(Error::custom(format_args!("{size} bytes are refused: at most {MAX_BYTES} are read")));
        }
        if let Some((text, tokens)) = compact::read(json) {
            return Ok(Self { tokens, source: Some(text) });
        }
        let mut tokens = Vec::new();
        let mut deserializer = serde_json::Deserializer::from_slice(json);
        Fill { tokens: &mut tokens, depth: 0 }.deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(Self { tokens, source: None })
    }

    /// The whole value.
    pub(crate) fn root(&self) -> Node<'_, 'a> {
        Node { tape: self, at: 0 }
    }
}

/// Appends the tokens of one value.
struct Fill<'t, 'a> {
    tokens: &'t mut Vec<Token<'a>>,
    depth: usize,
}

impl<'a> Fill<'_, 'a> {
    fn push<E: Error>(&mut self, token: Token<'a>) -> Result<usize, E> {
        if self.tokens.len() >= MAX_TOKENS {
            return Err(E::custom(format_args!("more than {MAX_TOKENS} values are refused")));
        }
        self.tokens.push(token);
        Ok(self.tokens.len() - 1)
    }

    fn inside<E: Error>(&mut self) -> Result<Fill<'_, 'a>, E> {
        if self.depth >= MAX_DEPTH {
            return Err(E::custom(format_args!("nesting deeper than {MAX_DEPTH} levels is refused")));
        }
        Ok(Fill { tokens: &mut *self.tokens, depth: self.depth + 1 })
    }

    /// Where the tokens end so far, which [`MAX_TOKENS`] keeps far below the largest `u32`.
    fn end(&self) -> u32 {
        self.tokens.len() as u32
    }
}

impl<'a> DeserializeSeed<'a> for Fill<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for Fill<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E: Error>(mut self) -> Result<(), E> {
        self.push(Token::Null).map(drop)
    }

    fn visit_bool<E: Error>(mut self, flag: bool) -> Result<(), E> {
        self.push(Token::Bool(flag)).map(drop)
    }

    fn visit_u64<E: Error>(mut self, number: u64) -> Result<(), E> {
        self.push(Token::Unsigned(number)).map(drop)
    }

    fn visit_i64<E: Error>(mut self, number: i64) -> Result<(), E> {
        self.push(Token::Signed(number)).map(drop)
    }

    fn visit_f64<E: Error>(mut self, number: f64) -> Result<(), E> {
        self.push(Token::Float(number)).map(drop)
    }

    fn visit_borrowed_str<E: Error>(mut self, text: &'a str) -> Result<(), E> {
        self.push(Token::Text(Cow::Borrowed(text))).map(drop)
    }

    /// A text with escapes in it, which cannot be borrowed.
    fn visit_str<E: Error>(mut self, text: &str) -> Result<(), E> {
        self.push(Token::Text(Cow::Owned(text.to_owned()))).map(drop)
    }

    fn visit_seq<A: SeqAccess<'a>>(mut self, mut elements: A) -> Result<(), A::Error> {
        let at = self.push(Token::List { end: 0, from: 0, to: 0 })?;
        while elements.next_element_seed(self.inside()?)?.is_some() {}
        self.tokens[at] = Token::List { end: self.end(), from: 0, to: 0 };
        Ok(())
    }

    fn visit_map<A: MapAccess<'a>>(mut self, mut fields: A) -> Result<(), A::Error> {
        let at = self.push(Token::Map { end: 0, from: 0, to: 0 })?;
        while fields.next_key_seed(self.inside()?)?.is_some() {
            fields.next_value_seed(self.inside()?)?;
        }
        self.tokens[at] = Token::Map { end: self.end(), from: 0, to: 0 };
        Ok(())
    }
}

impl<'t, 'a> Node<'t, 'a> {
    /// What stands here.
    pub(crate) fn token(self) -> &'t Token<'a> {
        &self.tape.tokens[self.at]
    }

    fn end(self) -> usize {
        match self.token() {
            Token::List { end, .. } | Token::Map { end, .. } => *end as usize,
            _ => self.at + 1,
        }
    }

    /// The list or map here as it was written, if nobody would write it otherwise: without blanks and escapes.
    pub(crate) fn source(self) -> Option<&'a str> {
        let (Token::List { from, to, .. } | Token::Map { from, to, .. }) = self.token() else { return None };
        let part = self.tape.source?.get(*from as usize..*to as usize)?;
        memchr::memchr(b'\\', part.as_bytes()).is_none().then_some(part)
    }

    /// The text that stands here, if it is one.
    pub(crate) fn text(self) -> Option<&'t str> {
        match self.token() {
            Token::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The elements of the list here; none if it is not a list.
    pub(crate) fn elements(self) -> impl Iterator<Item = Self> {
        let end = if matches!(self.token(), Token::List { .. }) { self.end() } else { self.at };
        let mut next = self.at + 1;
        std::iter::from_fn(move || {
            let node = Self { tape: self.tape, at: next };
            (next < end).then(|| {
                next = node.end();
                node
            })
        })
    }

    /// Keys and values of the map here; none if it is not a map.
    pub(crate) fn fields(self) -> impl Iterator<Item = (&'t str, Self)> {
        self.entries().map(|(key, value)| (key.as_ref(), value))
    }

    /// The same, with keys as they were read: one that is borrowed stands in the text as it is.
    pub(crate) fn entries(self) -> impl Iterator<Item = (&'t Cow<'a, str>, Self)> {
        let end = if matches!(self.token(), Token::Map { .. }) { self.end() } else { self.at };
        let mut next = self.at + 1;
        std::iter::from_fn(move || {
            if next >= end {
                return None;
            }
            let Token::Text(key) = &self.tape.tokens[next] else { return None };
            let value = Self { tape: self.tape, at: next + 1 };
            next = value.end();
            Some((key, value))
        })
    }

    /// The value under a key of the map here.
    pub(crate) fn get(self, key: &str) -> Option<Self> {
        self.fields().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    /// The text under a key of the map here; an empty one counts as none.
    pub(crate) fn text_at(self, key: &str) -> Option<&'t str> {
        self.get(key)?.text().filter(|text| !text.is_empty())
    }

    /// The truth of a flag under a key of the map here; an absent one is false.
    pub(crate) fn flag_at(self, key: &str) -> bool {
        self.get(key).is_some_and(|node| matches!(node.token(), Token::Bool(true)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tape_is_walked_by_key_and_by_element() {
        let json = br#"{"a": [1, -2, 2.5, null, true], "b": {"c": "x\ny", "d": ""}, "e": "plain"}"#;
        let tape = Tape::parse(json).unwrap();
        let root = tape.root();
        assert_eq!(root.fields().map(|(key, _)| key).collect::<Vec<_>>(), ["a", "b", "e"]);
        assert_eq!(root.get("a").unwrap().elements().count(), 5);
        let inner = root.get("b").unwrap();
        assert_eq!((inner.text_at("c"), inner.text_at("d"), inner.text_at("z")), (Some("x\ny"), None, None));
        assert!(matches!(root.get("e").unwrap().token(), Token::Text(Cow::Borrowed("plain"))));
        assert_eq!(root.get("e").unwrap().elements().count() + root.get("a").unwrap().fields().count(), 0);
    }

    #[test]
    fn a_token_is_as_small_as_the_bound_says() {
        assert_eq!(size_of::<Token<'_>>(), 24);
    }

    #[test]
    fn what_is_too_deep_too_many_or_too_long_is_refused_with_the_limit() {
        let refuse = |json: &[u8]| Tape::parse(json).unwrap_err().to_string();
        let deep = format!("{}{}", "[".repeat(MAX_DEPTH + 1), "]".repeat(MAX_DEPTH + 1));
        assert!(refuse(deep.as_bytes()).contains("deeper than 100"), "{}", refuse(deep.as_bytes()));
        let many = format!("[{}0]", "0,".repeat(MAX_TOKENS));
        assert!(refuse(many.as_bytes()).contains("1048576 values"));
        assert!(refuse(&vec![b' '; MAX_BYTES + 1]).contains("at most 8388608"));
        assert!(Tape::parse(b"{} {}").is_err(), "one value only");
    }
}

//! Decodes one MessagePack value in memory into JSON, or looks into it without decoding.
//!
//! Memory is allocated only for what is really there: a length is compared with the remaining bytes before anything is
//! allocated, and values are counted against [`MAX_OBJECT_NODES`].

use rmp::Marker;
use serde_json::{Map, Number, Value};

use super::{Fault, MAX_DEPTH, MAX_OBJECT_NODES};

/// A position in the bytes of one value.
#[derive(Clone)]
pub(crate) struct Slice<'a> {
    rest: &'a [u8],
    nodes_left: usize,
}

/// The head of one value: a scalar whole, a container with how many elements follow.
pub(crate) enum Token<'a> {
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(&'a str),
    Array(usize),
    Map(usize),
}

impl<'a> Slice<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self::with_budget(bytes, MAX_OBJECT_NODES)
    }

    /// Where something other than an object is read: at most `nodes` values.
    pub(crate) fn with_budget(bytes: &'a [u8], nodes: usize) -> Self {
        Self { rest: bytes, nodes_left: nodes }
    }

    /// Has everything been read?
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(Fault::Cut)?;
        self.rest = rest;
        Ok(taken)
    }

    fn take_array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(Fault::Cut)?;
        self.rest = rest;
        Ok(*taken)
    }

    fn text(&mut self, len: usize) -> Result<Token<'a>, Fault> {
        std::str::from_utf8(self.take(len)?).map(Token::Text).map_err(|_| Fault::NotUtf8)
    }

    fn len16(&mut self) -> Result<usize, Fault> {
        Ok(usize::from(u16::from_be_bytes(self.take_array()?)))
    }

    fn len32(&mut self) -> Result<usize, Fault> {
        // A file read on a 32-bit machine may claim more than usize holds; no such value fits its bytes either.
        usize::try_from(u32::from_be_bytes(self.take_array()?)).map_err(|_| Fault::Cut)
    }

    /// Reads the next head. Containers are not entered; their elements follow as further tokens.
    pub(crate) fn token(&mut self) -> Result<Token<'a>, Fault> {
        self.nodes_left = self.nodes_left.checked_sub(1).ok_or(Fault::TooMany)?;
        let [byte] = self.take_array()?;
        Ok(match Marker::from_u8(byte) {
            Marker::Null => Token::Null,
            Marker::True => Token::Bool(true),
            Marker::False => Token::Bool(false),
            Marker::FixPos(n) => Token::Unsigned(u64::from(n)),
            Marker::FixNeg(n) => Token::Signed(i64::from(n)),
            Marker::U8 => Token::Unsigned(u64::from(u8::from_be_bytes(self.take_array()?))),
            Marker::U16 => Token::Unsigned(u64::from(u16::from_be_bytes(self.take_array()?))),
            Marker::U32 => Token::Unsigned(u64::from(u32::from_be_bytes(self.take_array()?))),
            Marker::U64 => Token::Unsigned(u64::from_be_bytes(self.take_array()?)),
            Marker::I8 => Token::Signed(i64::from(i8::from_be_bytes(self.take_array()?))),
            Marker::I16 => Token::Signed(i64::from(i16::from_be_bytes(self.take_array()?))),
            Marker::I32 => Token::Signed(i64::from(i32::from_be_bytes(self.take_array()?))),
            Marker::I64 => Token::Signed(i64::from_be_bytes(self.take_array()?)),
            Marker::F32 => Token::Float(f64::from(f32::from_be_bytes(self.take_array()?))),
            Marker::F64 => Token::Float(f64::from_be_bytes(self.take_array()?)),
            Marker::FixStr(len) => self.text(usize::from(len))?,
            Marker::Str8 => {
                let [len] = self.take_array()?;
                self.text(usize::from(len))?
            }
            Marker::Str16 => {
                let len = self.len16()?;
                self.text(len)?
            }
            Marker::Str32 => {
                let len = self.len32()?;
                self.text(len)?
            }
            Marker::FixArray(len) => Token::Array(usize::from(len)),
            Marker::Array16 => Token::Array(self.len16()?),
            Marker::Array32 => Token::Array(self.len32()?),
            Marker::FixMap(len) => Token::Map(usize::from(len)),
            Marker::Map16 => Token::Map(self.len16()?),
            Marker::Map32 => Token::Map(self.len32()?),
            _ => return Err(Fault::Foreign(byte)),
        })
    }

    /// A map's next key.
    pub(crate) fn key(&mut self) -> Result<&'a str, Fault> {
        match self.token()? {
            Token::Text(text) => Ok(text),
            _ => Err(Fault::KeyNotText),
        }
    }

    /// Passes over one whole value.
    pub(crate) fn skip(&mut self) -> Result<(), Fault> {
        let mut left = 1_usize;
        while left > 0 {
            left -= 1;
            // Saturating: a claim that large runs out of bytes long before it runs out of count.
            match self.token()? {
                Token::Array(len) => left = left.saturating_add(len),
                Token::Map(len) => left = left.saturating_add(len.saturating_mul(2)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Decodes one whole value.
    pub(crate) fn value(&mut self) -> Result<Value, Fault> {
        self.value_at(0)
    }

    fn value_at(&mut self, depth: usize) -> Result<Value, Fault> {
        if depth >= MAX_DEPTH {
            return Err(Fault::TooDeep);
        }
        Ok(match self.token()? {
            Token::Null => Value::Null,
            Token::Bool(bool) => Value::Bool(bool),
            Token::Unsigned(n) => Value::from(n),
            Token::Signed(n) => Value::from(n),
            Token::Float(n) => Value::Number(Number::from_f64(n).ok_or(Fault::NotFinite)?),
            Token::Text(text) => Value::from(text),
            Token::Array(len) => {
                let mut array = Vec::with_capacity(self.believe(len, 1)?);
                for _ in 0..len {
                    array.push(self.value_at(depth + 1)?);
                }
                Value::Array(array)
            }
            Token::Map(len) => {
                let mut map = Map::with_capacity(self.believe(len, 2)?);
                for _ in 0..len {
                    let key = self.key()?;
                    let value = self.value_at(depth + 1)?;
                    if map.insert(key.to_owned(), value).is_some() {
                        return Err(Fault::KeyTwice(key.chars().take(100).collect()));
                    }
                }
                Value::Object(map)
            }
        })
    }

    /// How many elements to make room for: the claim, once it is known that the bytes (at least `each` per element)
    /// and the budget of values could hold it.
    fn believe(&self, len: usize, each: usize) -> Result<usize, Fault> {
        let needed = len.checked_mul(each).ok_or(Fault::Cut)?;
        if needed > self.rest.len() {
            return Err(Fault::Cut);
        }
        if needed > self.nodes_left {
            return Err(Fault::TooMany);
        }
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn decode(bytes: &[u8]) -> Result<Value, Fault> {
        Slice::new(bytes).value()
    }

    #[test]
    fn what_rmp_serde_writes_is_read() {
        let value = json!({"a": [1, -1, 300, -70000, 1.5, u64::MAX, i64::MIN], "b": {"c": null, "d": true}, "e": "ü".repeat(70)});
        let bytes = rmp_serde::to_vec_named(&value).unwrap();
        assert_eq!(decode(&bytes).unwrap(), value);
        let mut slice = Slice::new(&bytes);
        slice.skip().unwrap();
        assert!(slice.is_empty());
    }

    #[test]
    fn a_huge_claimed_length_takes_no_memory() {
        assert_eq!(decode(&[0xdd, 0xff, 0xff, 0xff, 0xff]), Err(Fault::Cut));
        assert_eq!(decode(&[0xdf, 0xff, 0xff, 0xff, 0xff]), Err(Fault::Cut));
        assert_eq!(decode(&[0xdb, 0xff, 0xff, 0xff, 0xff, b'x']), Err(Fault::Cut));
    }

    #[test]
    fn nesting_has_a_limit() {
        let deep = |levels: usize| [vec![0x91; levels], vec![0xc0]].concat();
        assert!(decode(&deep(MAX_DEPTH - 1)).is_ok());
        assert_eq!(decode(&deep(MAX_DEPTH)), Err(Fault::TooDeep));
        assert_eq!(decode(&deep(1_000_000)), Err(Fault::TooDeep));
    }

    #[test]
    fn values_are_counted() {
        let len = u32::try_from(MAX_OBJECT_NODES).unwrap();
        let bytes = [&[0xdd][..], &len.to_be_bytes(), &vec![0xc0; MAX_OBJECT_NODES]].concat();
        assert_eq!(decode(&bytes), Err(Fault::TooMany));
    }

    #[test]
    fn what_json_lacks_is_refused() {
        assert_eq!(decode(&[0xc4, 0x00]), Err(Fault::Foreign(0xc4)));
        assert_eq!(decode(&[0xc1]), Err(Fault::Foreign(0xc1)));
        assert_eq!(decode(&[0x81, 0x01, 0x01]), Err(Fault::KeyNotText));
        assert_eq!(decode(&[0x82, 0xa1, b'a', 0x01, 0xa1, b'a', 0x01]), Err(Fault::KeyTwice("a".into())));
        assert_eq!(decode(&rmp_serde::to_vec(&f64::NAN).unwrap()), Err(Fault::NotFinite));
        assert_eq!(decode(&[0xa1, 0xff]), Err(Fault::NotUtf8));
    }
}

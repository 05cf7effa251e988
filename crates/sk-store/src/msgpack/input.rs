//! Walks a MessagePack file from start to end without keeping it.
//!
//! The caller requests the token that it expects, skips what it does not need, or captures the bytes of one bounded value.
//! The offset is counted, so that an error can name the position.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use rmp::Marker;

use super::{Fault, MAX_DEPTH};

/// Why walking on was impossible.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WalkError {
    #[error(transparent)]
    Io(io::Error),
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl From<io::Error> for WalkError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Fault(Fault::Cut),
            _ => Self::Io(error),
        }
    }
}

/// A file or bytes, with the position in it.
pub(crate) struct Input<R> {
    reader: BufReader<R>,
    offset: u64,
    capture: Option<Capture>,
}

/// Bytes kept while walking over a value, and how many there may be.
struct Capture {
    bytes: Vec<u8>,
    limit: usize,
}

impl<R: Read + Seek> Input<R> {
    /// Begins at the start of `reader`.
    pub(crate) fn new(reader: R) -> Self {
        Self { reader: BufReader::with_capacity(64 << 10, reader), offset: 0, capture: None }
    }

    /// How many bytes lie before the current position.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Goes to `offset`; cheap when it is nearby.
    pub(crate) fn seek(&mut self, offset: u64) -> io::Result<()> {
        match i64::try_from(i128::from(offset) - i128::from(self.offset)) {
            Ok(distance) => self.reader.seek_relative(distance)?,
            Err(_) => {
                self.reader.seek(SeekFrom::Start(offset))?;
            }
        }
        self.offset = offset;
        Ok(())
    }

    /// Is this the end?
    pub(crate) fn at_end(&mut self) -> io::Result<bool> {
        Ok(self.reader.fill_buf()?.is_empty())
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], WalkError> {
        let mut bytes = [0; N];
        self.reader.read_exact(&mut bytes)?;
        self.offset += N as u64;
        self.keep(&bytes)?;
        Ok(bytes)
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        if let Some(capture) = &mut self.capture {
            if bytes.len() > capture.limit - capture.bytes.len() {
                return Err(Fault::TooLong(capture.limit));
            }
            capture.bytes.extend_from_slice(bytes);
        }
        Ok(())
    }

    /// Passes over `len` bytes, however many they claim to be, a buffer at a time.
    fn pass(&mut self, len: u64) -> Result<(), WalkError> {
        let mut left = len;
        while left > 0 {
            let buffer = self.reader.fill_buf()?;
            let step = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
            if step == 0 {
                return Err(Fault::Cut.into());
            }
            if let Some(capture) = &mut self.capture {
                if step > capture.limit - capture.bytes.len() {
                    return Err(Fault::TooLong(capture.limit).into());
                }
                capture.bytes.extend_from_slice(&buffer[..step]);
            }
            self.reader.consume(step);
            self.offset += step as u64;
            left -= step as u64;
        }
        Ok(())
    }

    fn number(&mut self, width: usize) -> Result<u64, WalkError> {
        Ok(match width {
            1 => u64::from(u8::from_be_bytes(self.bytes()?)),
            2 => u64::from(u16::from_be_bytes(self.bytes()?)),
            4 => u64::from(u32::from_be_bytes(self.bytes()?)),
            _ => u64::from_be_bytes(self.bytes()?),
        })
    }

    /// The next value must be an array; how many elements follow.
    pub(crate) fn array(&mut self, expected: &'static str) -> Result<u64, WalkError> {
        let [byte] = self.bytes()?;
        match Marker::from_u8(byte) {
            Marker::FixArray(len) => Ok(u64::from(len)),
            Marker::Array16 => self.number(2),
            Marker::Array32 => self.number(4),
            _ => Err(Fault::Unexpected { expected, found: byte }.into()),
        }
    }

    /// The next value must be a map; how many pairs follow.
    pub(crate) fn map(&mut self, expected: &'static str) -> Result<u64, WalkError> {
        let [byte] = self.bytes()?;
        match Marker::from_u8(byte) {
            Marker::FixMap(len) => Ok(u64::from(len)),
            Marker::Map16 => self.number(2),
            Marker::Map32 => self.number(4),
            _ => Err(Fault::Unexpected { expected, found: byte }.into()),
        }
    }

    /// Passes over one whole value. Not recursive: open containers are counted on a stack of bounded height.
    pub(crate) fn skip(&mut self) -> Result<(), WalkError> {
        let mut open = [0_u64; MAX_DEPTH];
        let mut depth = 0;
        loop {
            let inside = self.scalar_or_len()?;
            if inside > 0 {
                if depth >= MAX_DEPTH - 1 {
                    return Err(Fault::TooDeep.into());
                }
                depth += 1;
                open[depth] = inside;
                continue;
            }
            while depth > 0 && open[depth] == 1 {
                depth -= 1;
            }
            if depth == 0 {
                return Ok(());
            }
            open[depth] -= 1;
        }
    }

    /// Passes over a scalar and answers 0, or over a container's head and answers how many values are in it.
    fn scalar_or_len(&mut self) -> Result<u64, WalkError> {
        let [byte] = self.bytes()?;
        let scalar = match Marker::from_u8(byte) {
            Marker::FixArray(len) => return Ok(u64::from(len)),
            Marker::Array16 => return self.number(2),
            Marker::Array32 => return self.number(4),
            Marker::FixMap(len) => return Ok(2 * u64::from(len)),
            Marker::Map16 => return Ok(2 * self.number(2)?),
            Marker::Map32 => return Ok(2 * self.number(4)?),
            Marker::Null | Marker::True | Marker::False | Marker::FixPos(_) | Marker::FixNeg(_) => 0,
            Marker::U8 | Marker::I8 => 1,
            Marker::U16 | Marker::I16 => 2,
            Marker::U32 | Marker::I32 | Marker::F32 => 4,
            Marker::U64 | Marker::I64 | Marker::F64 => 8,
            Marker::FixStr(len) => u64::from(len),
            Marker::Str8 => self.number(1)?,
            Marker::Str16 => self.number(2)?,
            Marker::Str32 => self.number(4)?,
            _ => return Err(Fault::Foreign(byte).into()),
        };
        self.pass(scalar)?;
        Ok(0)
    }

    /// Reads the bytes of one whole value into `into` (cleared first), at most `limit` of them.
    pub(crate) fn capture(&mut self, into: &mut Vec<u8>, limit: usize) -> Result<(), WalkError> {
        let mut bytes = std::mem::take(into);
        bytes.clear();
        self.capture = Some(Capture { bytes, limit });
        let result = self.skip();
        if let Some(capture) = self.capture.take() {
            *into = capture.bytes;
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use serde_json::json;

    use super::*;

    #[test]
    fn skipping_ends_where_the_value_ends() {
        let value = json!([{"a": {}, "b": [[], [[]], 1.5, -7, "text", null]}, [], {"c": "x".repeat(100_000)}]);
        let mut bytes = rmp_serde::to_vec_named(&value).unwrap();
        let end = bytes.len() as u64;
        bytes.extend([1, 2, 3]);
        let mut input = Input::new(Cursor::new(bytes));
        input.skip().unwrap();
        assert_eq!(input.offset(), end);
        input.seek(0).unwrap();
        let mut captured = Vec::new();
        input.capture(&mut captured, 1 << 20).unwrap();
        assert_eq!(captured, rmp_serde::to_vec_named(&value).unwrap());
    }

    #[test]
    fn every_cut_is_noticed() {
        let bytes = rmp_serde::to_vec_named(&json!({"a": [1, 300, "text", {"b": null}]})).unwrap();
        for end in 0..bytes.len() {
            let result = Input::new(Cursor::new(&bytes[..end])).skip();
            assert!(matches!(result, Err(WalkError::Fault(Fault::Cut))), "cut at {end}");
        }
    }

    #[test]
    fn nesting_and_captured_bytes_have_limits() {
        let deep = vec![0x91; 1_000_000];
        assert!(matches!(Input::new(Cursor::new(deep)).skip(), Err(WalkError::Fault(Fault::TooDeep))));
        let long = rmp_serde::to_vec(&"x".repeat(1000)).unwrap();
        let result = Input::new(Cursor::new(long)).capture(&mut Vec::new(), 100);
        assert!(matches!(result, Err(WalkError::Fault(Fault::TooLong(100)))));
    }
}

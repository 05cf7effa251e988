//! Variable-length integers: seven bits per byte, lowest first; the top bit says that another byte follows.

/// What is wrong inside a block whose checksum was right, or with the checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a block is damaged: {0}")]
pub(crate) struct Corrupt(pub(crate) &'static str);

/// Appends `n`.
pub(crate) fn put(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        // The cast keeps the lowest seven bits, which is the point.
        out.push((n & 0x7f) as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// Appends a length.
pub(crate) fn put_len(out: &mut Vec<u8>, n: usize) {
    put(out, n as u64);
}

/// Appends a number that may be negative, small ones of either sign in few bytes.
pub(crate) fn put_signed(out: &mut Vec<u8>, n: i64) {
    put(out, ((n << 1) ^ (n >> 63)).cast_unsigned());
}

/// Appends a text with its length.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    put_len(out, text.len());
    out.extend_from_slice(text.as_bytes());
}

/// A position in the bytes of a block.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// How many bytes are left.
    pub(crate) fn len_left(&self) -> usize {
        self.rest.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Result<&'a [u8], Corrupt> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(Corrupt("it ends too early"))?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Corrupt> {
        let mut n = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first().ok_or(Corrupt("it ends too early"))?;
            self.rest = rest;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            n |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(n);
            }
        }
        Err(Corrupt("a number is too long"))
    }

    pub(crate) fn i64(&mut self) -> Result<i64, Corrupt> {
        let n = self.u64()?;
        Ok((n >> 1).cast_signed() ^ -(n & 1).cast_signed())
    }

    /// A number that counts things of which each takes at least one of the bytes that are left, so that it can be
    /// trusted with memory.
    pub(crate) fn count(&mut self) -> Result<usize, Corrupt> {
        let count = self.len()?;
        if count > self.rest.len() {
            return Err(Corrupt("it claims more than it holds"));
        }
        Ok(count)
    }

    /// A number as a length or an index.
    pub(crate) fn len(&mut self) -> Result<usize, Corrupt> {
        usize::try_from(self.u64()?).map_err(|_| Corrupt("a length is too large"))
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, Corrupt> {
        let len = self.len()?;
        std::str::from_utf8(self.bytes(len)?).map_err(|_| Corrupt("a text is not UTF-8"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        let mut bytes = Vec::new();
        let unsigned = [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX];
        let signed = [0, -1, 1, 63, -64, 64, i64::MAX, i64::MIN];
        unsigned.iter().for_each(|n| put(&mut bytes, *n));
        signed.iter().for_each(|n| put_signed(&mut bytes, *n));
        let mut cursor = Cursor::new(&bytes);
        assert!(unsigned.iter().all(|n| cursor.u64().unwrap() == *n));
        assert!(signed.iter().all(|n| cursor.i64().unwrap() == *n));
        assert!(cursor.is_empty());
    }

    #[test]
    fn too_long_and_cut_numbers_are_refused() {
        assert!(Cursor::new(&[0xff; 11]).u64().is_err());
        assert!(Cursor::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02]).u64().is_err());
        assert!(Cursor::new(&[0x80]).u64().is_err());
        assert!(Cursor::new(&[5, 1]).count().is_err(), "five things do not fit into one byte");
    }
}

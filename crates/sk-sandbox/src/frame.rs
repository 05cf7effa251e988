//! Length-prefixed messages on a pipe.

use std::io::{self, Read, Write};

/// The longest request or response: figures of a million owners are about 1 GiB, objects of a trace a few MiB.
pub(crate) const MAX_BYTES: u32 = 1 << 30;

/// Reads one; nothing at the end of the pipe.
pub(crate) fn read(from: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    match from.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let length = u32::from_le_bytes(length);
    if length > MAX_BYTES {
        return Err(io::Error::other(format!("an answer of {length} bytes is more than {MAX_BYTES}")));
    }
    // Taken as it comes: a length that lies costs nothing.
    let mut bytes = Vec::new();
    from.take(u64::from(length)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == u64::from(length) { Ok(Some(bytes)) } else { Ok(None) }
}

/// Writes one.
pub(crate) fn write(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).ok().filter(|length| *length <= MAX_BYTES);
    let length = length.ok_or_else(|| io::Error::other(format!("{} bytes are too many to evaluate", bytes.len())))?;
    to.write_all(&length.to_le_bytes())?;
    to.write_all(bytes)?;
    to.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_what_is_cut_off_is_not() {
        let mut pipe = Vec::new();
        write(&mut pipe, b"one").unwrap();
        write(&mut pipe, b"").unwrap();
        let mut from = pipe.as_slice();
        assert_eq!(read(&mut from).unwrap().as_deref(), Some(&b"one"[..]));
        assert_eq!(read(&mut from).unwrap().as_deref(), Some(&b""[..]));
        assert_eq!(read(&mut from).unwrap(), None);
        assert_eq!(read(&mut &pipe[..5]).unwrap(), None);
        assert!(read(&mut &u32::MAX.to_le_bytes()[..]).is_err());
    }
}

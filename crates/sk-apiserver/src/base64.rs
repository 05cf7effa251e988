//! Base64 as Go decodes and encodes it, for the data of Secrets and for continue tokens.
//!
//! An error names the byte at which Go's decoder stops, because the API server's message names it.

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const PADDING: u8 = b'=';

/// With padding, as JSON encodes bytes.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = written(bytes, STANDARD);
    while !text.len().is_multiple_of(4) {
        text.push(char::from(PADDING));
    }
    text
}

/// Without padding and with the letters that a URL takes.
pub(crate) fn encode_url(bytes: &[u8]) -> String {
    written(bytes, URL)
}

fn written(bytes: &[u8], letters: &[u8; 64]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let bits = three.iter().enumerate().fold(0u32, |bits, (at, byte)| bits | u32::from(*byte) << (16 - 8 * at));
        for place in 0..=three.len() {
            text.push(char::from(letters[(bits >> (18 - 6 * place)) as usize & 0x3f]));
        }
    }
    text
}

/// The bytes, or at which byte of the text they end.
pub(crate) fn decode(text: &str) -> Result<Vec<u8>, usize> {
    read(text.as_bytes(), STANDARD, true)
}

/// The same of text without padding.
pub(crate) fn decode_url(text: &str) -> Result<Vec<u8>, usize> {
    read(text.as_bytes(), URL, false)
}

fn read(text: &[u8], letters: &[u8; 64], is_padded: bool) -> Result<Vec<u8>, usize> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0u32, 0usize);
    for (at, letter) in text.iter().enumerate().filter(|(_, letter)| !matches!(letter, b'\r' | b'\n')) {
        if *letter == PADDING && is_padded {
            padding(text, at, count)?;
            finish(&mut bytes, bits, count);
            return Ok(bytes);
        }
        let value = letters.iter().position(|known| known == letter).ok_or(at)?;
        bits = bits << 6 | u32::try_from(value).unwrap_or(0);
        count += 1;
        if count == 4 {
            finish(&mut bytes, bits, count);
            (bits, count) = (0, 0);
        }
    }
    let is_cut = if is_padded { count > 0 } else { count == 1 };
    if is_cut {
        return Err(text.len() - count);
    }
    finish(&mut bytes, bits, count);
    Ok(bytes)
}

/// Padding fills a group of four, and nothing comes after it.
fn padding(text: &[u8], at: usize, count: usize) -> Result<(), usize> {
    let mut rest = text.iter().enumerate().skip(at + 1).filter(|(_, letter)| !matches!(letter, b'\r' | b'\n'));
    match count {
        0 | 1 => return Err(at),
        2 => match rest.next() {
            Some((_, letter)) if *letter == PADDING => {}
            Some((next, _)) => return Err(next),
            None => return Err(text.len()),
        },
        _ => {}
    }
    rest.next().map_or(Ok(()), |(next, _)| Err(next))
}

/// The whole bytes of a group of letters.
fn finish(bytes: &mut Vec<u8>, bits: u32, count: usize) {
    let whole = bits << (6 * (4 - count.min(4)));
    let all = [(whole >> 16) as u8, (whole >> 8) as u8, whole as u8];
    bytes.extend(&all[..count.saturating_sub(1)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_again() {
        for bytes in [&b""[..], b"f", b"fo", b"foo", b"foob", &[0, 255, 128, 62, 63]] {
            assert_eq!(decode(&encode(bytes)).as_deref(), Ok(bytes));
            assert_eq!(decode_url(&encode_url(bytes)).as_deref(), Ok(bytes));
        }
        assert_eq!(encode(b"foob"), "Zm9vYg==");
        assert_eq!(decode("Zm9v\nYg==").as_deref(), Ok(&b"foob"[..]));
    }

    #[test]
    fn what_is_no_base64_is_refused_at_the_byte_where_it_ends() {
        // As Go's `base64.StdEncoding` answers.
        for (text, at) in [("b", 0), ("Zm9vY", 4), ("Zm9vYg", 4), ("a b=", 1), ("====", 0), ("Zg=a", 3), ("Zg==x", 4)] {
            assert_eq!(decode(text), Err(at), "{text}");
        }
    }
}

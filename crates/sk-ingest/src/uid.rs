//! Uids in 16 bytes: an API server's uids are UUIDs of 36 characters.

use std::fmt;

use sk_core::SmolStr;

/// How long a UUID is as text.
const UUID_LETTERS: usize = 36;

/// One object among all that ever had its name. Ordered and comparable; prints as it was read.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Uid {
    /// A UUID in its usual spelling.
    Uuid([u8; 16]),
    /// Anything else.
    Other(SmolStr),
}

impl Uid {
    /// Of a text.
    pub(crate) fn new(text: &str) -> Self {
        uuid(text).map_or_else(|| Self::Other(text.into()), Self::Uuid)
    }

    /// As it was read.
    pub(crate) fn to_smol_str(&self) -> SmolStr {
        match self {
            Self::Other(text) => text.clone(),
            Self::Uuid(bytes) => spell(bytes).as_str().into(),
        }
    }
}

/// The bytes of a UUID in lower case with its dashes.
fn uuid(text: &str) -> Option<[u8; 16]> {
    if text.len() != UUID_LETTERS {
        return None;
    }
    let (mut bytes, mut digits) = ([0; 16], 0);
    for (at, letter) in text.bytes().enumerate() {
        let digit = match letter {
            b'-' if is_dash(at) => continue,
            b'0'..=b'9' if !is_dash(at) => letter - b'0',
            b'a'..=b'f' if !is_dash(at) => letter - b'a' + 10,
            _ => return None,
        };
        bytes[digits / 2] = bytes[digits / 2] << 4 | digit;
        digits += 1;
    }
    Some(bytes)
}

fn is_dash(at: usize) -> bool {
    matches!(at, 8 | 13 | 18 | 23)
}

fn spell(bytes: &[u8; 16]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    let mut text = String::with_capacity(UUID_LETTERS);
    for digit in digits {
        if is_dash(text.len()) {
            text.push('-');
        }
        text.push(char::from_digit(u32::from(digit), 16).expect("half a byte is a digit"));
    }
    text
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_smol_str())
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uids_print_as_they_were_read() {
        for text in ["0b1c2d3e-0000-4abc-8def-ffffffffffff", "uid-1", "", "0B1c2d3e-0000-4abc-8def-ffffffffffff"] {
            assert_eq!(Uid::new(text).to_string(), text);
        }
        assert!(matches!(Uid::new("0b1c2d3e-0000-4abc-8def-ffffffffffff"), Uid::Uuid(_)));
        assert!(matches!(Uid::new("0b1c2d3e0-000-4abc-8def-ffffffffffff"), Uid::Other(_)), "a misplaced dash");
    }
}

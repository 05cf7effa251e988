//! The fast tape reader, for JSON as an API server writes it: no whitespace between tokens, no control characters.
//!
//! It reads what it understands and returns `None` otherwise; the caller then uses `serde_json`, which also reports
//! errors. So this reader has no errors of its own. It must never accept invalid JSON or read valid JSON differently;
//! tests compare it with `serde_json` on both.

use std::borrow::Cow;

use super::{MAX_DEPTH, MAX_TOKENS, Token};

/// Integers of so many digits fit into 64 bits.
const PLAIN_DIGITS: usize = 18;

/// Reads one JSON value and nothing after it: the text that it is, and its tokens.
pub(super) fn read(json: &[u8]) -> Option<(&str, Vec<Token<'_>>)> {
    let text = std::str::from_utf8(json).ok()?;
    // An ordinary object has a token per dozen bytes; one more allocation does no harm if this one has more.
    let tokens = Vec::with_capacity(json.len() / 12 + 16);
    let mut reader = Reader { text, at: 0, tokens, open: Vec::with_capacity(16) };
    reader.document()?;
    Some((text, reader.tokens))
}

/// Where the first quote, backslash or control character is. Eight bytes at a time: texts in Kubernetes are a dozen bytes
/// long, for which calling a search of longer steps takes more time than searching.
fn special(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGH: u64 = u64::from_le_bytes([0x80; 8]);
    // The highest bit of each byte that is 0; a byte above one that is may be marked too, so the first counts alone.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    let (words, last) = bytes.as_chunks::<8>();
    for (number, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let controls = word.wrapping_sub(ONES * u64::from(b' ')) & !word & HIGH;
        let found = zeros(word ^ (ONES * u64::from(b'"'))) | zeros(word ^ (ONES * u64::from(b'\\'))) | controls;
        if found != 0 {
            return Some(number * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..b' ');
    last.iter().position(is_special).map(|place| words.len() * 8 + place)
}

struct Reader<'a> {
    text: &'a str,
    /// The next byte.
    at: usize,
    tokens: Vec<Token<'a>>,
    /// The lists and maps that have not ended, by their tokens.
    open: Vec<Open>,
}

#[derive(Clone, Copy)]
struct Open {
    token: usize,
    is_map: bool,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn push(&mut self, token: Token<'a>) -> Option<()> {
        if self.tokens.len() >= MAX_TOKENS {
            return None;
        }
        self.tokens.push(token);
        Some(())
    }

    fn document(&mut self) -> Option<()> {
        self.value()?;
        while let Some(open) = self.open.last().copied() {
            match (self.peek()?, open.is_map) {
                (b',', true) => {
                    self.at += 1;
                    self.key()?;
                    self.value()?;
                }
                (b',', false) => {
                    self.at += 1;
                    self.value()?;
                }
                (b'}', true) | (b']', false) => self.close(open),
                _ => return None,
            }
        }
        (self.at == self.text.len()).then_some(())
    }

    /// Reads a value, or as much of a list or map as its beginning: up to its first value, if it has one.
    fn value(&mut self) -> Option<()> {
        loop {
            match self.peek()? {
                b'{' => {
                    self.open(true)?;
                    if self.peek()? == b'}' {
                        return Some(());
                    }
                    self.key()?;
                }
                b'[' => {
                    self.open(false)?;
                    if self.peek()? == b']' {
                        return Some(());
                    }
                }
                b'"' => {
                    let text = self.string()?;
                    return self.push(Token::Text(text));
                }
                b't' => return self.word("true", Token::Bool(true)),
                b'f' => return self.word("false", Token::Bool(false)),
                b'n' => return self.word("null", Token::Null),
                b'-' | b'0'..=b'9' => return self.number(),
                _ => return None,
            }
        }
    }

    fn open(&mut self, is_map: bool) -> Option<()> {
        if self.open.len() >= MAX_DEPTH {
            return None;
        }
        self.open.push(Open { token: self.tokens.len(), is_map });
        let from = u32::try_from(self.at).ok()?;
        self.at += 1;
        // Its ends are known when it is closed.
        self.push(if is_map { Token::Map { end: 0, from, to: 0 } } else { Token::List { end: 0, from, to: 0 } })
    }

    fn close(&mut self, open: Open) {
        self.at += 1;
        self.open.pop();
        // Both are bounded far below the largest `u32`.
        let (tokens, bytes) = (self.tokens.len() as u32, self.at as u32);
        if let Token::Map { end, to, .. } | Token::List { end, to, .. } = &mut self.tokens[open.token] {
            (*end, *to) = (tokens, bytes);
        }
    }

    fn key(&mut self) -> Option<()> {
        if self.peek()? != b'"' {
            return None;
        }
        let key = self.string()?;
        self.push(Token::Text(key))?;
        if self.peek()? != b':' {
            return None;
        }
        self.at += 1;
        Some(())
    }

    /// Reads a text from its opening quote to its closing one.
    fn string(&mut self) -> Option<Cow<'a, str>> {
        let begin = self.at + 1;
        let rest = &self.text.as_bytes()[begin..];
        let mut next = special(rest)?;
        if rest[next] == b'"' {
            self.at = begin + next + 1;
            return Some(Cow::Borrowed(&self.text[begin..begin + next]));
        }
        while *rest.get(next)? != b'"' {
            // An escaped character, whichever it is, ends nothing; a control character is no part of a text.
            if rest[next] < b' ' {
                return None;
            }
            next += 2;
            next += special(rest.get(next..)?)?;
        }
        self.at = begin + next + 1;
        serde_json::from_str(&self.text[begin - 1..self.at]).ok().map(Cow::Owned)
    }

    fn word(&mut self, word: &str, token: Token<'a>) -> Option<()> {
        if !self.text[self.at..].starts_with(word) {
            return None;
        }
        self.at += word.len();
        self.push(token)
    }

    fn number(&mut self) -> Option<()> {
        let rest = &self.text[self.at..];
        let is_part = |byte: u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let length = rest.bytes().position(|byte| !is_part(byte)).unwrap_or(rest.len());
        let number = &rest[..length];
        self.at += length;
        let plain = number.len() <= PLAIN_DIGITS && number.bytes().all(|byte| byte.is_ascii_digit());
        if plain && (number.len() == 1 || !number.starts_with('0')) {
            return self.push(Token::Unsigned(number.parse().ok()?));
        }
        let number: serde_json::Number = serde_json::from_str(number).ok()?;
        self.push(match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => Token::Unsigned(number),
            (None, Some(number)) => Token::Signed(number),
            (None, None) => Token::Float(number.as_f64()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::super::Tape;
    use super::*;

    /// What the fast way makes of it, as a tree.
    fn fast(json: &[u8]) -> Option<Value> {
        let (text, tokens) = read(json)?;
        Some(Tape { tokens, source: Some(text) }.root().to_value())
    }

    #[test]
    fn what_an_api_server_writes_is_read_the_fast_way_and_as_serde_json_reads_it() {
        for json in [
            "{}",
            "[]",
            "null",
            "\"\"",
            "0",
            "-1",
            "18446744073709551615",
            "-9223372036854775808",
            "18446744073709551616",
            "1.5",
            "-0",
            "1e3",
            r#"{"a":[],"b":{},"c":[[1,{"d":null}],true,false],"e":"","f":"\u003ca\u003e \"x\" \\"}"#,
            r#"{"größe":"天","a":"\ud83d\ude00"}"#,
            r#"["\\","\\\"","\"",{"\"":"\\\\"}]"#,
        ] {
            let read: Value = serde_json::from_str(json).unwrap();
            assert_eq!(fast(json.as_bytes()), Some(read), "{json}");
        }
    }

    #[test]
    fn blanks_are_left_to_the_ordinary_way_and_what_is_no_json_to_its_errors() {
        for json in ["{ }", " 1", "1 ", "[1, 2]", "{\"a\": 1}", "\n{}", "{}\n"] {
            assert_eq!(fast(json.as_bytes()), None, "{json}");
            assert!(Tape::parse(json.as_bytes()).is_ok(), "{json}");
        }
        for json in [
            "",
            "{",
            "[",
            "\"",
            "\"\\",
            "\"\\\"",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "[1,]",
            "[,1]",
            "{,}",
            "01",
            "-",
            "1.",
            ".5",
            "+1",
            "1e",
            "tru",
            "truely",
            "nul",
            "{}{}",
            "[]]",
            "[}",
            "{]",
            "{1:2}",
            "\"\\x\"",
            "\"\\ud800\"",
            "\"\u{1}\"",
            "--1",
            "1-1",
        ] {
            assert_eq!(fast(json.as_bytes()), None, "{json}");
            assert!(Tape::parse(json.as_bytes()).is_err(), "{json}");
        }
        assert_eq!(fast(b"\"\xff\""), None);
    }

    #[test]
    fn what_ends_a_text_or_does_not_belong_in_one_is_found_wherever_it_stands() {
        for length in 0..40 {
            let text = "aÄ\u{7f}z天 !#[]~".bytes().cycle().take(length).collect::<Vec<_>>();
            assert_eq!(special(&text), None);
            for at in 0..length {
                for byte in [b'"', b'\\', 0, 1, b'\n', 0x1f] {
                    let mut text = text.clone();
                    text[at] = byte;
                    if at + 1 < length {
                        text[at + 1] = b'"';
                    }
                    assert_eq!(special(&text), Some(at), "{byte} at {at} of {length}");
                }
            }
        }
        for json in ["\"\n\"", "[\"a\u{1}\"]", "{\"a\\\"\t\":1}", "\"longer than eight\u{0} bytes\""] {
            assert_eq!(fast(json.as_bytes()), None, "{json:?}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_taken_is_json_and_read_as_serde_json_reads_it(
            bytes in prop::collection::vec(prop::sample::select(&b"{}[]\":,\\0123456789-+.eEtrufalsn \xc3\xa4"[..]), 0..24),
        ) {
            if let Some(value) = fast(&bytes) {
                let read: Value = serde_json::from_slice(&bytes).expect("it was taken, and so is JSON");
                prop_assert_eq!(value, read);
            }
        }

        #[test]
        fn one_byte_changed_anywhere_is_read_alike_or_left_alone(at in 0_usize..200, byte in any::<u8>()) {
            let mut json = br#"{"kind":"Deployment","spec":{"replicas":3,"paused":false,"args":["--x=\"1\"","\u00e4"],"ratio":0.5,"none":null,"map":{"a":"b"}}}"#.to_vec();
            let length = json.len();
            json[at % length] = byte;
            if let Some(value) = fast(&json) {
                let read: Value = serde_json::from_slice(&json).expect("it was taken, and so is JSON");
                prop_assert_eq!(value, read);
            }
        }
    }
}

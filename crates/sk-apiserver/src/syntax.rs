//! The syntax errors of Go's JSON parser: which character is wrong, and what the parser was reading
//! (`encoding/json/scanner.go`, from which the API server's parser is derived).
//!
//! Called only for text that failed to parse.

/// The parser's message; `None` if the text is valid JSON.
pub(crate) fn syntax_error(text: &[u8]) -> Option<String> {
    let mut scanner = Scanner { text, at: 0, open: Vec::new() };
    scanner.document().err().map(|found| match found {
        Found::End => "unexpected end of JSON input".to_owned(),
        Found::Byte(byte, context) => format!("invalid character {} {context}", quoted(byte)),
    })
}

/// Where reading stopped.
enum Found {
    End,
    Byte(u8, String),
}

type Scanned = Result<(), Found>;

struct Scanner<'t> {
    text: &'t [u8],
    at: usize,
    /// What is open: `{` or `[`. A stack of our own, so that depth costs memory and no calls.
    open: Vec<u8>,
}

impl Scanner<'_> {
    fn document(&mut self) -> Scanned {
        self.value()?;
        while let Some(open) = self.open.last().copied() {
            self.space();
            let byte = self.peek()?;
            match (open, byte) {
                (b'{', b'}') | (b'[', b']') => {
                    self.at += 1;
                    self.open.pop();
                }
                (b'{', b',') => {
                    self.at += 1;
                    self.key()?;
                    self.value()?;
                }
                (b'[', b',') => {
                    self.at += 1;
                    self.value()?;
                }
                (b'{', byte) => return stop(byte, "after object key:value pair"),
                (_, byte) => return stop(byte, "after array element"),
            }
        }
        self.space();
        match self.text.get(self.at) {
            None => Ok(()),
            Some(byte) => stop(*byte, "after top-level value"),
        }
    }

    /// A whole value, or the beginning of an object or a list: the caller reads its content.
    fn value(&mut self) -> Scanned {
        loop {
            self.space();
            let byte = self.peek()?;
            self.at += 1;
            match byte {
                b'{' => {
                    self.open.push(b'{');
                    self.space();
                    if self.peek()? == b'}' {
                        return Ok(());
                    }
                    self.key()?;
                }
                b'[' => {
                    self.open.push(b'[');
                    self.space();
                    if self.peek()? == b']' {
                        return Ok(());
                    }
                }
                b'"' => return self.string(),
                b'-' => return self.number(false),
                b'0'..=b'9' => {
                    self.at -= 1;
                    return self.number(true);
                }
                b't' => return self.word("true"),
                b'f' => return self.word("false"),
                b'n' => return self.word("null"),
                other => return stop(other, "looking for beginning of value"),
            }
        }
    }

    fn key(&mut self) -> Scanned {
        self.space();
        match self.peek()? {
            b'"' => self.at += 1,
            other => return stop(other, "looking for beginning of object key string"),
        }
        self.string()?;
        self.space();
        match self.peek()? {
            b':' => self.at += 1,
            other => return stop(other, "after object key"),
        }
        Ok(())
    }

    /// The rest of a string.
    fn string(&mut self) -> Scanned {
        loop {
            let byte = self.peek()?;
            self.at += 1;
            match byte {
                b'"' => return Ok(()),
                b'\\' => self.escape()?,
                0..0x20 => return stop(byte, "in string literal"),
                _ => {}
            }
        }
    }

    fn escape(&mut self) -> Scanned {
        let byte = self.peek()?;
        self.at += 1;
        match byte {
            b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => Ok(()),
            b'u' => {
                for _ in 0..4 {
                    let digit = self.peek()?;
                    if !digit.is_ascii_hexdigit() {
                        return stop(digit, "in \\u hexadecimal character escape");
                    }
                    self.at += 1;
                }
                Ok(())
            }
            other => stop(other, "in string escape code"),
        }
    }

    /// The rest of a number, from its first digit on.
    fn number(&mut self, is_positive: bool) -> Scanned {
        match self.peek()? {
            b'0' => self.at += 1,
            b'1'..=b'9' => self.digits(),
            other if is_positive => return stop(other, "looking for beginning of value"),
            other => return stop(other, "in numeric literal"),
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.needs_digit("after decimal point in numeric literal")?;
            self.digits();
        }
        if matches!(self.text.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.text.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.needs_digit("in exponent of numeric literal")?;
            self.digits();
        }
        Ok(())
    }

    fn needs_digit(&self, context: &str) -> Scanned {
        match self.peek()? {
            b'0'..=b'9' => Ok(()),
            other => stop(other, context),
        }
    }

    fn digits(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
    }

    /// The rest of a word whose first letter was read.
    fn word(&mut self, word: &str) -> Scanned {
        for expected in word.bytes().skip(1) {
            let byte = self.peek()?;
            if byte != expected {
                return stop(byte, &format!("in literal {word} (expecting {})", quoted(expected)));
            }
            self.at += 1;
        }
        Ok(())
    }

    fn space(&mut self) {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Result<u8, Found> {
        self.text.get(self.at).copied().ok_or(Found::End)
    }
}

fn stop(byte: u8, context: &str) -> Scanned {
    Err(Found::Byte(byte, context.to_owned()))
}

/// A byte as Go quotes it.
fn quoted(byte: u8) -> String {
    match byte {
        b'\'' => "'\\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        b'\\' => "'\\\\'".to_owned(),
        b'\n' => "'\\n'".to_owned(),
        b'\r' => "'\\r'".to_owned(),
        b'\t' => "'\\t'".to_owned(),
        0x07 => "'\\a'".to_owned(),
        0x08 => "'\\b'".to_owned(),
        0x0b => "'\\v'".to_owned(),
        0x0c => "'\\f'".to_owned(),
        0x20..0x7f => format!("'{}'", char::from(byte)),
        0..0x20 | 0x7f => format!("'\\x{byte:02x}'"),
        // A byte stands for the letter of its number: those from 0xa1 on can be printed, but for the soft hyphen.
        0xa1..=0xac | 0xae.. => format!("'{}'", char::from(byte)),
        0x80..=0xa0 | 0xad => format!("'\\u{byte:04x}'"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_is_no_json_is_refused_in_the_words_of_gos_parser() {
        for (text, expected) in [
            ("", "unexpected end of JSON input"),
            ("{\"a\": [1, 2", "unexpected end of JSON input"),
            ("nonsense", "invalid character 'o' in literal null (expecting 'u')"),
            ("}", "invalid character '}' looking for beginning of value"),
            ("{a: 1}", "invalid character 'a' looking for beginning of object key string"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("{\"a\": 1 \"b\"}", "invalid character '\"' after object key:value pair"),
            ("[1 2]", "invalid character '2' after array element"),
            ("[1,]", "invalid character ']' looking for beginning of value"),
            ("{} {}", "invalid character '{' after top-level value"),
            ("\"a\nb\"", "invalid character '\\n' in string literal"),
            ("\"\\x\"", "invalid character 'x' in string escape code"),
            ("\"\\u00g0\"", "invalid character 'g' in \\u hexadecimal character escape"),
            ("-a", "invalid character 'a' in numeric literal"),
            ("1.x", "invalid character 'x' after decimal point in numeric literal"),
            ("1e!", "invalid character '!' in exponent of numeric literal"),
            ("01", "invalid character '1' after top-level value"),
            ("'", "invalid character '\\'' looking for beginning of value"),
        ] {
            assert_eq!(syntax_error(text.as_bytes()).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(
            syntax_error(b"\x9e\x89").as_deref(),
            Some("invalid character '\\u009e' looking for beginning of value")
        );
        for text in ["{}", " [1, {\"a\": null}, -0.5e+3, \"\\u00e9\"] ", "{\"a\": {\"b\": []}, \"c\": true}"] {
            assert_eq!(syntax_error(text.as_bytes()), None, "{text}");
        }
    }
}

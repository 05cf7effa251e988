//! The text form of label selectors: `app=web,tier in (front,back),!legacy,cores>4`.
//!
//! The grammar's corner cases are Kubernetes' own: `in` and `notin` are also names, `key=` matches the empty value,
//! `(a,,b)` and `()` contain the empty value, and white space is allowed between any two tokens.

use std::str::FromStr;

use smol_str::SmolStr;

use super::{LabelSelector, Operator, Requirement, SelectorError, shortened};

/// The longest text that is read: 64 KiB, the order of what a URL could carry.
pub(super) const MAX_SELECTOR_BYTES: usize = 64 << 10;

/// Longer symbols come first, so that `==` is not read as two `=`.
const SYMBOLS: [&str; 9] = ["==", "!=", "=", "!", "(", ")", ",", ">", "<"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Symbol(&'static str),
    End,
}

/// The rest of a selector that has not been read yet.
struct Reader<'a> {
    selector: &'a str,
    rest: &'a str,
}

impl FromStr for LabelSelector {
    type Err = SelectorError;

    fn from_str(selector: &str) -> Result<Self, Self::Err> {
        if selector.len() > MAX_SELECTOR_BYTES {
            return Err(SelectorError::TooLong(selector.len()));
        }
        let mut reader = Reader { selector, rest: selector };
        let mut requirements = Vec::new();
        if reader.peek() == Token::End {
            return Ok(Self::everything());
        }
        loop {
            requirements.push(reader.requirement()?);
            match reader.next() {
                Token::End => return Ok(Self::all(requirements)),
                Token::Symbol(",") => {}
                other => return Err(reader.unexpected(other, "`,` or the end")),
            }
        }
    }
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Token<'a> {
        Reader { selector: self.selector, rest: self.rest }.next()
    }

    fn next(&mut self) -> Token<'a> {
        let rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let symbol = SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol));
        let (token, length) = match symbol {
            Some(symbol) => (Token::Symbol(symbol), symbol.len()),
            None if rest.is_empty() => (Token::End, 0),
            None => {
                let ends = |c: char| matches!(c, ' ' | '\t' | '\r' | '\n' | '=' | '!' | '(' | ')' | ',' | '>' | '<');
                let length = rest.find(ends).unwrap_or(rest.len());
                (Token::Word(&rest[..length]), length)
            }
        };
        self.rest = &rest[length..];
        token
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        let (negated, key) = match self.next() {
            Token::Symbol("!") => (true, self.next()),
            token => (false, token),
        };
        let Token::Word(key) = key else { return Err(self.unexpected(key, "a label or `!`")) };
        if negated {
            return Requirement::new(key, Operator::DoesNotExist, [""; 0]);
        }
        if matches!(self.peek(), Token::End | Token::Symbol(",")) {
            return Requirement::new(key, Operator::Exists, [""; 0]);
        }
        let (operator, values) = match self.next() {
            Token::Symbol("=" | "==") => (Operator::In, self.one_value()?),
            Token::Symbol("!=") => (Operator::NotIn, self.one_value()?),
            Token::Symbol(">") => (Operator::GreaterThan, self.one_value()?),
            Token::Symbol("<") => (Operator::LessThan, self.one_value()?),
            Token::Word("in") => (Operator::In, self.value_list()?),
            Token::Word("notin") => (Operator::NotIn, self.value_list()?),
            other => return Err(self.unexpected(other, "one of = == != > < in notin")),
        };
        Requirement::new(key, operator, values)
    }

    fn one_value(&mut self) -> Result<Vec<SmolStr>, SelectorError> {
        if matches!(self.peek(), Token::End | Token::Symbol(",")) {
            return Ok(vec![SmolStr::default()]);
        }
        match self.next() {
            Token::Word(value) => Ok(vec![value.into()]),
            other => Err(self.unexpected(other, "a value")),
        }
    }

    /// `(a,b)`: between parentheses and commas stands one word or none, and none is the empty value.
    fn value_list(&mut self) -> Result<Vec<SmolStr>, SelectorError> {
        let open = self.next();
        if open != Token::Symbol("(") {
            return Err(self.unexpected(open, "`(`"));
        }
        let mut values = Vec::new();
        loop {
            let mut token = self.next();
            if let Token::Word(value) = token {
                values.push(value.into());
                token = self.next();
            } else {
                values.push(SmolStr::default());
            }
            match token {
                Token::Symbol(")") => return Ok(values),
                Token::Symbol(",") => {}
                other => return Err(self.unexpected(other, "a value, `,` or `)`")),
            }
        }
    }

    fn unexpected(&self, found: Token<'_>, expected: &'static str) -> SelectorError {
        let found = match found {
            Token::Word(text) => shortened(text),
            Token::Symbol(text) => text.to_owned(),
            Token::End => "the end".to_owned(),
        };
        SelectorError::Syntax { selector: shortened(self.selector), found, expected }
    }
}

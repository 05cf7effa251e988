//! Field selectors: `metadata.name=x,status.phase!=Running`.
//!
//! The caller looks fields up, because it knows what a kind supports; a missing field is the empty string, as in
//! Kubernetes. In a value `\`, `,` and `=` are escaped with a backslash.

use std::fmt;
use std::str::FromStr;

use smol_str::SmolStr;

use super::shortened;

/// The longest text that is read: 64 KiB, the order of what a URL could carry.
const MAX_SELECTOR_BYTES: usize = 64 << 10;

/// Longer operators come first, so that `==` leaves no `=` behind.
const OPERATORS: [&str; 3] = ["!=", "==", "="];

/// One comparison of one field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldTerm {
    /// The field as written, e.g. `spec.nodeName`.
    pub field: SmolStr,
    /// What it is compared with.
    pub value: SmolStr,
    /// Must it be equal, or must it differ?
    pub equal: bool,
}

/// All terms must hold; no terms select everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldSelector {
    terms: Vec<FieldTerm>,
}

/// Why a text is not a field selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseFieldSelectorError {
    /// A term without an operator.
    #[error("field selector: `{0}` compares nothing; write it like `metadata.name=x` or `status.phase!=Running`")]
    NoOperator(String),
    /// A backslash before something that needs none.
    #[error("field selector: in `{0}` a backslash stands before something other than `\\`, `,` or `=`")]
    Escape(String),
    /// A bare `=` in a value.
    #[error("field selector: in `{0}` the value holds a bare `=`; write it as `\\=`")]
    Unescaped(String),
    /// Too long a text.
    #[error("a field selector of {0} bytes is refused: at most {MAX_SELECTOR_BYTES} are read")]
    TooLong(usize),
}

impl FieldSelector {
    /// Do all terms hold? `lookup` gives a field's value; a field it does not know is the empty text.
    pub fn matches<'a>(&self, lookup: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.terms.iter().all(|term| (lookup(&term.field).unwrap_or("") == term.value) == term.equal)
    }

    /// Does it select everything?
    pub fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    /// Its terms, in the order of their texts.
    pub fn terms(&self) -> &[FieldTerm] {
        &self.terms
    }

    /// The value that a field must have to be selected, if the selector says so; for index lookups.
    pub fn exact_value(&self, field: &str) -> Option<&str> {
        self.terms.iter().find(|term| term.equal && term.field == field).map(|term| term.value.as_str())
    }
}

impl FromStr for FieldSelector {
    type Err = ParseFieldSelectorError;

    fn from_str(selector: &str) -> Result<Self, Self::Err> {
        if selector.len() > MAX_SELECTOR_BYTES {
            return Err(ParseFieldSelectorError::TooLong(selector.len()));
        }
        let mut terms = split_terms(selector);
        terms.sort_unstable();
        let terms = terms.into_iter().filter(|term| !term.is_empty()).map(read_term);
        let mut terms: Vec<FieldTerm> = terms.collect::<Result<_, _>>()?;
        // `=` and `!=` alone compare nothing with nothing, and Kubernetes drops them.
        terms.retain(|term| !term.field.is_empty() || !term.value.is_empty());
        Ok(Self { terms })
    }
}

/// At every comma that has no backslash before it.
fn split_terms(selector: &str) -> Vec<&str> {
    let mut escaped = false;
    selector
        .split(|c| {
            let splits = c == ',' && !escaped;
            escaped = c == '\\' && !escaped;
            splits
        })
        .collect()
}

fn read_term(term: &str) -> Result<FieldTerm, ParseFieldSelectorError> {
    let starts = |at: usize| OPERATORS.into_iter().find(|operator| term[at..].starts_with(operator));
    let (at, operator) = term
        .char_indices()
        .find_map(|(at, _)| starts(at).map(|operator| (at, operator)))
        .ok_or_else(|| ParseFieldSelectorError::NoOperator(shortened(term)))?;
    let value = unescape(&term[at + operator.len()..], term)?;
    Ok(FieldTerm { field: term[..at].into(), value, equal: operator != "!=" })
}

fn unescape(value: &str, term: &str) -> Result<SmolStr, ParseFieldSelectorError> {
    let mut plain = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(special @ ('\\' | ',' | '=')) => plain.push(special),
                _ => return Err(ParseFieldSelectorError::Escape(shortened(term))),
            },
            // A comma cannot be here: it would have ended the term.
            '=' => return Err(ParseFieldSelectorError::Unescaped(shortened(term))),
            plain_char => plain.push(plain_char),
        }
    }
    Ok(plain.into())
}

impl fmt::Display for FieldTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.field, if self.equal { "=" } else { "!=" })?;
        for c in self.value.chars() {
            let escape = if matches!(c, '\\' | ',' | '=') { "\\" } else { "" };
            write!(f, "{escape}{c}")?;
        }
        Ok(())
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, term) in self.terms.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            write!(f, "{comma}{term}")?;
        }
        Ok(())
    }
}

//! Label and field selectors, parsed and evaluated exactly as Kubernetes does (apimachinery v0.36.4, pkg/labels and
//! pkg/fields).
//!
//! A label selector is text (`app=web,tier notin (a,b),!legacy`) or the JSON of a `LabelSelector`; both become a
//! [`LabelSelector`] of [`Requirement`]s, which all must hold. Field selectors are in [`FieldSelector`]. The API
//! server knows which fields of a kind can be selected; this file does not.

mod fields;
mod text;

use std::fmt;

use serde_json::Value;
use smol_str::SmolStr;

use crate::label::{Labels, is_label_key, is_label_value};

pub use fields::{FieldSelector, FieldTerm, ParseFieldSelectorError};

/// How a requirement compares a label with its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operator {
    /// `key in (a,b)`, `key=a`: set, and one of the values.
    In,
    /// `key notin (a,b)`, `key!=a`: not set, or none of the values.
    NotIn,
    /// `key`: set.
    Exists,
    /// `!key`: not set.
    DoesNotExist,
    /// `key>5`: set to an integer above the value.
    GreaterThan,
    /// `key<5`: set to an integer below the value.
    LessThan,
}

/// One condition on one label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirement {
    key: SmolStr,
    operator: Operator,
    /// Sorted and each once.
    values: Vec<SmolStr>,
}

/// Which labels are wanted: all requirements hold. The default selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabelSelector {
    nothing: bool,
    requirements: Vec<Requirement>,
}

/// Why something is not a label selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// The text does not follow the grammar.
    #[error("label selector `{selector}`: found `{found}`, expected {expected}; write it like `app=web,tier in (a,b)`")]
    Syntax {
        /// The whole text.
        selector: String,
        /// Where reading stopped.
        found: String,
        /// What could have followed.
        expected: &'static str,
    },
    /// A key that no label can have.
    #[error(
        "`{0}` is not a label key: use up to 63 letters, digits, `-`, `_` or `.`, perhaps after a DNS name and a slash"
    )]
    Key(String),
    /// A value that no label can have.
    #[error("`{value}` is not a valid value for label `{key}`: use up to 63 letters, digits, `-`, `_` or `.`")]
    Value {
        /// The label.
        key: SmolStr,
        /// What it cannot be.
        value: String,
    },
    /// More or fewer values than the operator takes.
    #[error("label `{key}`: {expected}")]
    Values {
        /// The label.
        key: SmolStr,
        /// What the operator takes.
        expected: &'static str,
    },
    /// An operator that label selectors do not have.
    #[error("`{0}` is not a label selector operator: use In, NotIn, Exists or DoesNotExist")]
    Operator(String),
    /// JSON of another shape.
    #[error("a label selector's `{field}` must be {expected}")]
    Json {
        /// The field.
        field: &'static str,
        /// What belongs there.
        expected: &'static str,
    },
    /// Too long a text.
    #[error("a label selector of {0} bytes is refused: at most {max} are read", max = text::MAX_SELECTOR_BYTES)]
    TooLong(usize),
}

impl Requirement {
    /// A condition, checked as Kubernetes checks it.
    pub fn new<V: Into<SmolStr>>(
        key: &str,
        operator: Operator,
        values: impl IntoIterator<Item = V>,
    ) -> Result<Self, SelectorError> {
        if !is_label_key(key) {
            return Err(SelectorError::Key(shortened(key)));
        }
        let key = SmolStr::from(key);
        let mut values: Vec<SmolStr> = values.into_iter().map(Into::into).collect();
        check_values(&key, operator, &values)?;
        values.sort_unstable();
        values.dedup();
        Ok(Self { key, operator, values })
    }

    /// The label key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// How it compares.
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// What it compares with, sorted.
    pub fn values(&self) -> &[SmolStr] {
        &self.values
    }

    /// Does it hold for these labels?
    pub fn matches(&self, labels: &(impl Labels + ?Sized)) -> bool {
        let label = labels.label(&self.key);
        match self.operator {
            Operator::In => label.is_some_and(|value| self.has(value)),
            Operator::NotIn => !label.is_some_and(|value| self.has(value)),
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::GreaterThan => self.compare(label, |label, limit| label > limit),
            Operator::LessThan => self.compare(label, |label, limit| label < limit),
        }
    }

    fn has(&self, value: &str) -> bool {
        self.values.iter().any(|wanted| wanted == value)
    }

    fn compare(&self, label: Option<&str>, holds: impl Fn(i64, i64) -> bool) -> bool {
        let number = |text: &str| text.parse::<i64>().ok();
        match (label.and_then(number), self.values.first().and_then(|limit| number(limit))) {
            (Some(label), Some(limit)) => holds(label, limit),
            _ => false,
        }
    }
}

fn check_values(key: &SmolStr, operator: Operator, values: &[SmolStr]) -> Result<(), SelectorError> {
    let refuse = |expected| Err(SelectorError::Values { key: key.clone(), expected });
    match operator {
        Operator::In | Operator::NotIn if values.is_empty() => return refuse("in and notin need at least one value"),
        Operator::Exists | Operator::DoesNotExist if !values.is_empty() => return refuse("exists takes no values"),
        Operator::GreaterThan | Operator::LessThan if values.len() != 1 || values[0].parse::<i64>().is_err() => {
            return refuse("`<` and `>` compare with one integer");
        }
        _ => {}
    }
    match values.iter().find(|value| !is_label_value(value)) {
        Some(value) => Err(SelectorError::Value { key: key.clone(), value: shortened(value) }),
        None => Ok(()),
    }
}

/// Enough of a text to recognise it in a message.
fn shortened(text: &str) -> String {
    text.chars().take(200).collect()
}

impl LabelSelector {
    /// Selects everything.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Selects nothing, as an absent `LabelSelector` does in most places.
    pub fn nothing() -> Self {
        Self { nothing: true, requirements: Vec::new() }
    }

    /// All of these must hold.
    pub fn all(requirements: impl IntoIterator<Item = Requirement>) -> Self {
        let mut requirements: Vec<_> = requirements.into_iter().collect();
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Self { nothing: false, requirements }
    }

    /// From the JSON of a `LabelSelector`: null selects nothing, an empty one everything.
    pub fn from_json(selector: &Value) -> Result<Self, SelectorError> {
        if selector.is_null() {
            return Ok(Self::nothing());
        }
        let Some(fields) = selector.as_object() else {
            return Err(SelectorError::Json { field: "selector", expected: "an object" });
        };
        let mut requirements = Vec::new();
        if let Some(labels) = fields.get("matchLabels").filter(|labels| !labels.is_null()) {
            add_match_labels(&mut requirements, labels)?;
        }
        if let Some(expressions) = fields.get("matchExpressions").filter(|expressions| !expressions.is_null()) {
            let expected = SelectorError::Json { field: "matchExpressions", expected: "a list" };
            for expression in expressions.as_array().ok_or(expected)? {
                requirements.push(read_expression(expression)?);
            }
        }
        Ok(Self::all(requirements))
    }

    /// From a plain map of labels that must be equal, such as a Service's or a ReplicationController's selector.
    pub fn from_match_labels(labels: &Value) -> Result<Self, SelectorError> {
        let mut requirements = Vec::new();
        add_match_labels(&mut requirements, labels)?;
        Ok(Self::all(requirements))
    }

    /// Are these labels selected?
    pub fn matches(&self, labels: &(impl Labels + ?Sized)) -> bool {
        !self.nothing && self.requirements.iter().all(|requirement| requirement.matches(labels))
    }

    /// Does it select everything?
    pub fn is_everything(&self) -> bool {
        !self.nothing && self.requirements.is_empty()
    }

    /// Does it select nothing, whatever the labels?
    pub fn is_nothing(&self) -> bool {
        self.nothing
    }

    /// Its requirements, sorted by key.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// The one value that a label must have to be selected, if the selector says so; for index lookups.
    pub fn exact_value(&self, key: &str) -> Option<&str> {
        let requirement = self.requirements.iter().find(|requirement| requirement.key == key)?;
        match (requirement.operator, requirement.values.as_slice()) {
            (Operator::In, [value]) => Some(value),
            _ => None,
        }
    }
}

fn add_match_labels(requirements: &mut Vec<Requirement>, labels: &Value) -> Result<(), SelectorError> {
    let expected = || SelectorError::Json { field: "matchLabels", expected: "a map of texts" };
    for (key, value) in labels.as_object().ok_or_else(expected)? {
        let value = value.as_str().ok_or_else(expected)?;
        requirements.push(Requirement::new(key, Operator::In, [value])?);
    }
    Ok(())
}

fn read_expression(expression: &Value) -> Result<Requirement, SelectorError> {
    let text =
        |field: &'static str| expression[field].as_str().ok_or(SelectorError::Json { field, expected: "a text" });
    let operator = match text("operator")? {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        other => return Err(SelectorError::Operator(shortened(other))),
    };
    let expected = SelectorError::Json { field: "values", expected: "a list of texts" };
    let values: Option<Vec<&str>> = match &expression["values"] {
        Value::Null => Some(Vec::new()),
        Value::Array(values) => values.iter().map(Value::as_str).collect(),
        _ => None,
    };
    Requirement::new(text("key")?, operator, values.ok_or(expected)?)
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, values) = (&self.key, self.values.join(","));
        match (self.operator, self.values.as_slice()) {
            (Operator::In, [value]) => write!(f, "{key}={value}"),
            (Operator::In, _) => write!(f, "{key} in ({values})"),
            (Operator::NotIn, [value]) => write!(f, "{key}!={value}"),
            (Operator::NotIn, _) => write!(f, "{key} notin ({values})"),
            (Operator::Exists, _) => write!(f, "{key}"),
            (Operator::DoesNotExist, _) => write!(f, "!{key}"),
            (Operator::GreaterThan, _) => write!(f, "{key}>{values}"),
            (Operator::LessThan, _) => write!(f, "{key}<{values}"),
        }
    }
}

impl fmt::Display for LabelSelector {
    /// Text that reads back as the same selector; one that selects nothing has no such text and prints empty.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, requirement) in self.requirements.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            write!(f, "{comma}{requirement}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

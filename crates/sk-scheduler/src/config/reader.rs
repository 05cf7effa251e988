//! A value with its path, so that every error names its position.

use std::fmt;

use serde_json::{Map, Value};

use super::ConfigError;

/// The longest list that is read. The longest that means anything, plugins at an extension point, has twenty entries; some
/// are compared with each other, so a million would take hours.
const MAX_ENTRIES: usize = 1_000;

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Into a mapping.
    Field(String),
    /// Into a list.
    Index(usize),
}

/// The path of a value in a configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(pub Vec<Step>);

impl fmt::Display for Path {
    /// As Kubernetes writes it: `profiles[0].plugins.score`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("the configuration");
        }
        for (at, step) in self.0.iter().enumerate() {
            match step {
                Step::Field(name) if at == 0 => f.write_str(name)?,
                Step::Field(name) => write!(f, ".{name}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// A value and its path.
#[derive(Clone, Debug)]
pub(super) struct At<'a> {
    pub(super) value: &'a Value,
    pub(super) path: Path,
}

pub(super) type Read<T> = Result<T, ConfigError>;

impl<'a> At<'a> {
    pub(super) fn root(value: &'a Value) -> Self {
        Self { value, path: Path::default() }
    }

    pub(super) fn wrong<T>(&self, problem: impl Into<String>) -> Read<T> {
        Err(ConfigError { path: self.path.clone(), problem: problem.into(), place: None })
    }

    fn map(&self) -> Read<Option<&'a Map<String, Value>>> {
        match self.value {
            Value::Null => Ok(None),
            Value::Object(fields) => Ok(Some(fields)),
            _ => self.wrong("must be a mapping"),
        }
    }

    fn inside(&self, step: Step, value: &'a Value) -> Self {
        let mut path = self.path.clone();
        path.0.push(step);
        Self { value, path }
    }

    /// A field, if it is there and not null.
    pub(super) fn get(&self, name: &str) -> Read<Option<Self>> {
        let found = self.map()?.and_then(|fields| fields.get(name)).filter(|value| !value.is_null());
        Ok(found.map(|value| self.inside(Step::Field(name.to_owned()), value)))
    }

    /// Refuses every field that is not one of these.
    pub(super) fn only(&self, known: &[&str]) -> Read<()> {
        for (name, value) in self.map()?.into_iter().flatten() {
            if !known.contains(&name.as_str()) {
                let at = self.inside(Step::Field(name.clone()), value);
                return at.wrong(format!("is no field that is known here: use one of {}", known.join(", ")));
            }
        }
        Ok(())
    }

    /// The entries of a list; none when it is absent.
    pub(super) fn list(&self, name: &str) -> Read<Vec<Self>> {
        let Some(list) = self.get(name)? else { return Ok(Vec::new()) };
        match list.value {
            Value::Array(entries) if entries.len() > MAX_ENTRIES => {
                list.wrong(format!("has {} entries; at most {MAX_ENTRIES} are read", entries.len()))
            }
            Value::Array(entries) => {
                Ok(entries.iter().enumerate().map(|(at, value)| list.inside(Step::Index(at), value)).collect())
            }
            _ => list.wrong("must be a list"),
        }
    }

    pub(super) fn text(&self) -> Read<&'a str> {
        self.value.as_str().map_or_else(|| self.wrong("must be a text"), Ok)
    }

    pub(super) fn text_of(&self, name: &str) -> Read<Option<&'a str>> {
        self.get(name)?.map(|at| at.text()).transpose()
    }

    /// A whole number in a range; absent: the default.
    pub(super) fn number(&self, name: &str, default: i64, range: std::ops::RangeInclusive<i64>) -> Read<i64> {
        let Some(at) = self.get(name)? else { return Ok(default) };
        match at.value.as_i64() {
            Some(number) if range.contains(&number) => Ok(number),
            Some(number) => at.wrong(format!("{number} is not from {} to {}", range.start(), range.end())),
            None => at.wrong("must be a whole number"),
        }
    }

    pub(super) fn flag(&self, name: &str) -> Read<bool> {
        let Some(at) = self.get(name)? else { return Ok(false) };
        at.value.as_bool().map_or_else(|| at.wrong("must be true or false"), Ok)
    }
}

//! More or less of a trace: other numbers of replicas, more or fewer arriving objects.

use std::collections::HashSet;
use std::fmt;
use std::io::Write;
use std::str::FromStr;

use serde_json::Value;
use sk_core::{ObjectKey, ObjectRef, StableHash};

use super::{Output, changed_header};
use crate::trace::error::TraceError;
use crate::trace::head::What;
use crate::trace::lives::OwnerLives;
use crate::trace::record::{Change, Deletion, NotAnObject, Object};
use crate::trace::rows::{Row, Section};
use crate::trace::selection::Selection;
use crate::trace::write::{Losses, WriteError};
use crate::trace::{Format, Trace};

/// How many millionths one is.
const ONE: u64 = 1_000_000;

/// The largest factor. Ten thousand times a small trace is already a large one.
const MAX: u64 = 10_000 * ONE;

/// By how much: a decimal number from 0 to 10,000 with up to six decimals, kept exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Factor(u64);

/// Why a text is no factor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no factor: write a number from 0 to 10000, like 2 or 0.5")]
pub struct ParseFactorError(String);

impl Factor {
    /// As it was.
    pub const UNCHANGED: Self = Self(ONE);

    /// `n` times the factor, to the nearest whole number, halves up.
    fn times(self, n: u64) -> u64 {
        let product = u128::from(n) * u128::from(self.0);
        u64::try_from((product + u128::from(ONE / 2)) / u128::from(ONE)).unwrap_or(u64::MAX)
    }
}

impl Default for Factor {
    fn default() -> Self {
        Self::UNCHANGED
    }
}

impl FromStr for Factor {
    type Err = ParseFactorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = || ParseFactorError(text.chars().take(60).collect());
        let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
        let is_number = |part: &str| !part.is_empty() && part.len() <= 6 && part.bytes().all(|b| b.is_ascii_digit());
        if !is_number(whole) || !is_number(decimals) {
            return Err(refuse());
        }
        let number = |part: &str| part.parse::<u64>().map_err(|_| refuse());
        let millionths = number(whole)? * ONE + number(&format!("{decimals:0<6}"))?;
        if millionths > MAX { Err(refuse()) } else { Ok(Self(millionths)) }
    }
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = format!("{:06}", self.0 % ONE);
        let decimals = decimals.trim_end_matches('0');
        write!(f, "{}", self.0 / ONE)?;
        if decimals.is_empty() { Ok(()) } else { write!(f, ".{decimals}") }
    }
}

/// What to scale, by how much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scale {
    /// `spec.replicas` of every object that has it, to the nearest whole number; what had one keeps at least one.
    pub replicas: Factor,
    /// How many objects arrive after the start of the trace. Above 1 an arriving object comes several times, at the
    /// same times, under the names `NAME-x2`, `NAME-x3`, …, with its lives; below 1 some do not come. Which ones
    /// depends on their names alone, so the same trace always scales to the same one. What is there at the start,
    /// and what owns it, stays as it is.
    pub arrivals: Factor,
}

/// Writes `trace` scaled. Observations are of the trace as it was and are left out unless nothing changes their truth.
pub fn scale<W: Write>(trace: &Trace, by: &Scale, format: Format, out: W) -> Result<(W, Losses), WriteError> {
    let scaling = Scaling { by: *by, at_start: at_start(trace)? };
    let mut output = Output::new(format, out, &changed_header(trace))?;
    for record in trace.records()? {
        let record = record?;
        match record.change {
            Change::Mark(mark) => output.put(record.at, Change::Mark(mark))?,
            change => {
                for copy in scaling.changes(change) {
                    output.put(record.at, copy)?;
                }
            }
        }
    }
    let unchanged = *by == Scale::default();
    for section in Section::ALL {
        if section == Section::Index || (section == Section::Observations && !unchanged) {
            continue;
        }
        for row in trace.rows(section)? {
            match row? {
                Row::Lives(lives) => scaling.lives(&lives).try_for_each(|copy| output.row(&Row::Lives(copy)))?,
                row => output.row(&row)?,
            }
        }
    }
    output.finish()
}

/// The objects that exist at the first moment of the trace.
fn at_start(trace: &Trace) -> Result<HashSet<ObjectRef>, TraceError> {
    let Some((start, _)) = trace.span() else { return Ok(HashSet::new()) };
    let moment = Selection::all().until(start + sk_core::SimDuration::from_micros(1));
    let mut objects = HashSet::new();
    for head in trace.select_heads(&moment)? {
        if let What::Apply(object, _) = head?.what {
            objects.insert((*object).clone());
        }
    }
    Ok(objects)
}

struct Scaling {
    by: Scale,
    at_start: HashSet<ObjectRef>,
}

impl Scaling {
    /// How often an object comes.
    fn copies(&self, object: &ObjectRef) -> u64 {
        if self.at_start.contains(object) {
            return 1;
        }
        let (whole, rest) = (self.by.arrivals.0 / ONE, self.by.arrivals.0 % ONE);
        // The hash spreads evenly, so that a share of `rest` millionths of all names lies below it.
        let place = StableHash::of(&Value::from(format!("{} {}", object.gvk, object.key))).get() % ONE;
        whole + u64::from(place < rest)
    }

    fn changes(&self, change: Change) -> impl Iterator<Item = Change> + '_ {
        let copies = change.object().map_or(0, |object| self.copies(object));
        (1..=copies).filter_map(move |number| match &change {
            Change::Apply(object) => self.object(object, number).ok().map(Change::Apply),
            Change::Delete(deletion) => Some(Change::Delete(copy_of_deletion(deletion, number))),
            Change::Mark(_) => None,
        })
    }

    fn object(&self, object: &Object, number: u64) -> Result<Object, NotAnObject> {
        let mut value = object.value().clone();
        if number > 1 {
            value["metadata"]["name"] = copy_of(&object.reference().key, number).name.as_str().into();
        }
        if let Some(replicas) = value.pointer_mut("/spec/replicas")
            && let Some(before) = replicas.as_u64()
        {
            *replicas = self.by.replicas.times(before).max(before.min(1)).into();
        }
        Object::new(value)
    }

    fn lives<'a>(&self, lives: &'a OwnerLives) -> impl Iterator<Item = OwnerLives> + use<'a> {
        (1..=self.copies(&lives.owner)).map(|number| {
            let owner = ObjectRef::new(lives.owner.gvk.clone(), copy_of(&lives.owner.key, number));
            OwnerLives { owner, templates: lives.templates.clone() }
        })
    }
}

fn copy_of(key: &ObjectKey, number: u64) -> ObjectKey {
    match number {
        1 => key.clone(),
        _ => ObjectKey { namespace: key.namespace.clone(), name: format!("{}-x{number}", key.name).into() },
    }
}

fn copy_of_deletion(deletion: &Deletion, number: u64) -> Deletion {
    let object = ObjectRef::new(deletion.object.gvk.clone(), copy_of(&deletion.object.key, number));
    let mut last = deletion.last.clone();
    if let Some(last) = &mut last {
        last["metadata"]["name"] = object.key.name.as_str().into();
    }
    Deletion { object, last }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_exact_and_print_as_they_are_read() {
        for text in ["0", "1", "2.5", "0.000001", "10000"] {
            assert_eq!(text.parse::<Factor>().unwrap().to_string(), text);
        }
        for text in ["", "-1", ".5", "1.", "1e3", "10000.1", "0.0000001", "1234567"] {
            assert!(text.parse::<Factor>().is_err(), "{text}");
        }
        let factor: Factor = "0.3".parse().unwrap();
        assert_eq!([0, 1, 5, 10].map(|n| factor.times(n)), [0, 0, 2, 3]);
    }
}

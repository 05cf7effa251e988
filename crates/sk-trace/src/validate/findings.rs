//! The findings of a validation: which rule, where, and how often. Bounded; what is left out is counted.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use sk_core::{ObjectRef, Pointer, SimTime};

use super::codes::{Rule, Severity};
use crate::names::{Names, number};
use crate::parse;

/// How many findings of each rule are kept; the rest are counted. 28 rules at about 400 bytes are 1 MB.
pub const MAX_KEPT_PER_RULE: usize = 100;

/// The most text of a value that a finding repeats.
const MAX_SHOWN: usize = 200;

/// Where in a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// How many events lie before it. An event is one change of one object, as `trace show` counts them.
    pub event: u64,
    /// In a v2 trace, the place of the entry of its `events` that it stands in. Such an entry holds all changes of a
    /// second, so it is not what is called an event everywhere else.
    #[serde(rename = "v2Event", skip_serializing_if = "Option::is_none")]
    pub v2_event: Option<u64>,
    /// When it happens.
    #[serde(with = "parse::moment")]
    pub at: SimTime,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Which rule.
    pub code: Rule,
    /// Where in the trace it was first seen; `None` for what is not in its events.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// The object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectRef>,
    /// Where in the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<Pointer>,
    /// What is wrong there.
    pub detail: String,
}

impl fmt::Display for Finding {
    /// `E0108 event 3, 2026-01-05T00:00:00Z, Deployment default/web /spec/…/cpu: …`, and for a v2 trace
    /// `event 3 (in v2 event 1)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code.code().code)?;
        if let Some(place) = &self.place {
            write!(f, " event {}", place.event)?;
            if let Some(v2_event) = place.v2_event {
                write!(f, " (in v2 event {v2_event})")?;
            }
            write!(f, ", {},", place.at)?;
        }
        if let Some(object) = &self.object {
            write!(f, " {object}")?;
        }
        if let Some(pointer) = &self.pointer {
            write!(f, " {pointer}")?;
        }
        write!(f, ": {}", self.detail)
    }
}

/// What validation found in a trace.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// What was found, in the trace's order; of each rule the first ones.
    pub findings: Vec<Finding>,
    /// How often each rule was broken. The same place of the same object counts once, however often it was applied.
    pub counts: BTreeMap<Rule, u64>,
    /// Events that were checked: changes of single objects, as `trace show` counts them.
    pub events: u64,
    /// Names that did not fit into memory: what depends on them was not judged.
    pub unjudged: u64,
    #[serde(skip)]
    seen: Names,
}

impl Report {
    /// Has it no errors? Warnings are allowed.
    pub fn is_valid(&self) -> bool {
        self.counts.keys().all(|rule| rule.code().severity != Severity::Error)
    }

    /// Was anything found at all?
    pub fn is_clean(&self) -> bool {
        self.counts.is_empty()
    }

    /// How many findings of this severity there are.
    pub fn count(&self, severity: Severity) -> u64 {
        self.counts.iter().filter(|(rule, _)| rule.code().severity == severity).map(|(_, count)| count).sum()
    }

    /// Notes a finding, unless this place of this object is known for it.
    pub(super) fn add(&mut self, finding: Finding) {
        let identity = number(&(finding.code, &finding.object, &finding.pointer));
        let named = finding.object.is_some();
        if named && !self.seen.insert(identity) {
            return;
        }
        let count = self.counts.entry(finding.code).or_default();
        *count += 1;
        if *count <= MAX_KEPT_PER_RULE as u64 {
            self.findings.push(finding);
        }
    }

    /// Puts the findings into the trace's order, once all are there.
    pub(super) fn finish(&mut self) {
        self.findings.sort_by_key(|finding| finding.place.as_ref().map_or(u64::MAX, |place| place.event));
        self.unjudged += self.seen.overflow();
        self.seen = Names::default();
    }
}

/// Enough of a value to recognise it.
pub(super) fn shown(value: &impl fmt::Display) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MAX_SHOWN) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

//! Summarises a trace in one pass over the heads of its records, and lists every string in it for review.
//!
//! Start with [`show`] for the summary and with [`values`] for the strings. The summary decodes no object if the format
//! allows it. Whether a trace is valid is decided by `validate`.

mod busy;
mod figures;
mod spill;
mod text;
mod values;

use std::collections::BTreeMap;

use serde::Serialize;
use sk_core::{Gvk, SimDuration, SimTime, SmolStr};
use sk_store::TraceError;
use sk_store::trace::Trace;

use crate::parse;

pub use busy::{BUCKETS, Busy, Moment};
pub use values::{ValueRow, ValuesError, ValuesSummary, values};

/// What is in a trace.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// The trace's path or name.
    pub name: String,
    /// `native`, `v2`, `v3` or `jsonl`.
    pub format: &'static str,
    /// Bytes of the file, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// From its first to its last moment; `None` if it holds none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span: Option<Span>,
    /// The tracer configuration.
    pub tracked: Vec<Gvk>,
    /// Everything that happened, marks not counted.
    pub events: u64,
    /// The most objects that exist at one time.
    pub most_objects: u64,
    /// By kind.
    pub kinds: BTreeMap<Gvk, Counts>,
    /// By namespace; cluster-scoped objects under the empty name.
    pub namespaces: BTreeMap<SmolStr, Counts>,
    /// When how much happened, after the first moment.
    pub busy: Busy,
    /// Recorded lives of pods.
    pub lives: Lives,
    /// Times the recording did not see.
    pub gaps: Gaps,
    /// Pods whose real fate is recorded.
    pub observed_pods: u64,
    /// Recorded changes of nodes.
    pub node_events: u64,
    /// What did not fit into memory and is counted under no name.
    pub overflow: u64,
}

/// From when to when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Span {
    /// The first moment.
    #[serde(with = "parse::moment")]
    pub start: SimTime,
    /// The last moment.
    #[serde(with = "parse::moment")]
    pub end: SimTime,
}

/// What happened to the objects of a kind or a namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Objects that were there at the first moment.
    pub initial: u64,
    /// Objects that came later.
    pub created: u64,
    /// Changes of objects that were there.
    pub changed: u64,
    /// Objects that went.
    pub deleted: u64,
}

/// Recorded lives of pods, in figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Lives {
    /// Owners that have any.
    pub owners: u64,
    /// Pods that ended.
    pub finished: u64,
    /// Pods that ran until they were deleted or the recording ended.
    pub unfinished: u64,
    /// Half of those that ended were shorter, within an eighth.
    #[serde(with = "parse::span")]
    pub median: SimDuration,
    /// One in twenty was longer, within an eighth.
    #[serde(with = "parse::span")]
    pub p95: SimDuration,
    /// The longest one.
    #[serde(with = "parse::span")]
    pub longest: SimDuration,
}

/// Times the recording did not see, in figures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Gaps {
    /// How many.
    pub count: u64,
    /// How long together.
    #[serde(with = "parse::span")]
    pub total: SimDuration,
    /// The first ones, in words.
    pub first: Vec<String>,
}

/// Looks through a trace. `bytes` is the size of its file, if it has one.
pub fn show(trace: &Trace, bytes: Option<u64>) -> Result<Summary, TraceError> {
    let span = trace.span().map(|(start, end)| Span { start, end });
    let mut figures = figures::Figures::new(span);
    for head in trace.heads()? {
        figures.head(&head?);
    }
    let mut summary = Summary {
        name: trace.name().to_owned(),
        format: trace.format().name(),
        bytes,
        span,
        tracked: trace.config().tracked().keys().cloned().collect(),
        events: figures.events,
        most_objects: figures.most_objects,
        overflow: figures.overflow(),
        kinds: figures.kinds,
        namespaces: figures.namespaces,
        busy: figures.busy,
        lives: figures::lives(trace)?,
        gaps: figures::gaps(trace)?,
        observed_pods: 0,
        node_events: 0,
    };
    for observation in trace.observations()? {
        observation?;
        summary.observed_pods += 1;
    }
    for event in trace.node_events()? {
        event?;
        summary.node_events += 1;
    }
    Ok(summary)
}

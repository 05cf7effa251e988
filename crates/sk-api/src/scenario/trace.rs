//! Which trace is replayed, which part of it, where the run begins, and what is changed on the way.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sk_core::{SimDuration, TimeSpec};

use super::{schema, spelling};

/// Which trace, which part of it, and what is changed on the way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a mapping such as {start: +1h, duration: 7d}")]
pub struct Trace {
    /// The path or URL of the trace, unless the command line names one. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Where the replay starts: RFC 3339, `2026-11-10T14:00`, `+30m` after the trace's start, or `-2h` before now.
    /// Default: the trace's start.
    #[serde(with = "spelling::some_moment", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::moment")]
    pub start: Option<TimeSpec>,
    /// How much of the trace is replayed. Default: all of it. Not together with `end`.
    #[serde(with = "spelling::some_duration", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub duration: Option<SimDuration>,
    /// Where the replay ends, as `start` is written. Default: the trace's end.
    #[serde(with = "spelling::some_moment", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::moment")]
    pub end: Option<TimeSpec>,
    /// Manifests whose objects replace those of the same kind, namespace and name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub overlay: Vec<String>,
    /// A jq program that changes each object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transform: Option<String>,
}

impl Trace {
    /// Is it the whole of the trace that the command line names, unchanged?
    pub fn is_whole(&self) -> bool {
        *self == Self::default()
    }
}

/// The state in which a run begins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a mapping such as {placement: recorded, warmup: 15m}")]
pub struct Begin {
    /// The placement of pods that exist at the start. Default: `recorded` where that is known, else `schedule`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// How long is simulated before figures count. Default: `0s`.
    #[serde(with = "spelling::duration")]
    #[schemars(schema_with = "schema::duration")]
    pub warmup: SimDuration,
}

/// The placement of pods that ran before the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Placement {
    /// On the node that they had.
    Recorded,
    /// The scheduler places them again.
    Schedule,
}

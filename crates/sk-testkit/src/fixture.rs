//! Recorded results of the real control plane in `fixtures/`: hermetic tests read them, the recorder writes them.
//!
//! There are four sorts. A [`Fixture`] is what the real control plane did with a scenario. An [`OracleFixture`] is a
//! table of questions with the answers of Kubernetes' own Go libraries. [`Discovery`] lists the kinds that it serves,
//! [`OpenApi`] their types. All name the version and the date; a test fails when the version is not the one pinned in
//! `tools/control-plane/go.mod`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sk_core::Gvk;

use crate::canonical::{EventLine, History, Moment};
use crate::compare::Comparable;
use crate::merge;
use crate::scenario::Incomparable;

/// The largest fixture that is read. The longest scenario leaves about half a megabyte; ten of those are a mistake.
const MAX_FIXTURE_BYTES: u64 = 5 << 20;

/// What the real control plane did with a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fixture {
    /// The scenario, whole, as it was when it was recorded.
    pub scenario: Value,
    /// The API server's version, such as `v1.36.4`.
    pub kubernetes: String,
    /// The day, in UTC.
    pub recorded: String,
    /// What the API server refused, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<Refusal>,
    /// When each step began, in milliseconds since the watch began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<u64>,
    /// One history per object, sorted by canonical name.
    #[serde(with = "on_disk")]
    pub objects: Vec<History>,
}

/// A refused request, with the server's message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    /// Which step it was, counted from 1.
    pub step: usize,
    /// The HTTP status.
    pub code: u16,
    /// The machine's word, such as `Invalid`.
    pub reason: String,
    /// The sentence.
    pub message: String,
}

/// A table of questions and of what Kubernetes' libraries answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OracleFixture<Case> {
    /// Which oracle: `quantity`, `cron`, `smp` or `victims`.
    pub oracle: String,
    /// The version of the libraries, such as `v1.36.4`.
    pub kubernetes: String,
    /// The day, in UTC.
    pub recorded: String,
    /// Question and answer together, as `tools/control-plane/cmd/oracle` prints them.
    pub cases: Vec<Case>,
}

/// What a real API server says it serves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Discovery {
    /// The API server's version, such as `v1.36.4`.
    pub kubernetes: String,
    /// The day, in UTC.
    pub recorded: String,
    /// Every kind, by group and name.
    pub kinds: Vec<ServedKind>,
}

/// One kind that is served.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ServedKind {
    /// Its group, empty for the core group.
    pub group: String,
    /// Its versions, preferred first.
    pub versions: Vec<String>,
    /// Its name.
    pub kind: String,
    /// The name in URLs.
    pub plural: String,
    /// What people type instead.
    pub short_names: Vec<String>,
    /// `Namespaced` or `Cluster`.
    pub scope: String,
    /// What is served below an object, by name.
    pub subresources: Vec<String>,
}

impl Discovery {
    /// The recorded answer.
    pub fn recorded() -> Result<Self, FixtureError> {
        read(&path_of("discovery"))
    }
}

/// The types of a real API server, as far as a type table says them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenApi {
    /// The API server's version, such as `v1.36.4`.
    pub kubernetes: String,
    /// The day, in UTC.
    pub recorded: String,
    /// The type of each kind, by `group/version/kind`.
    pub kinds: BTreeMap<String, String>,
    /// Fields by type: of each its type, how its list or map merges, and how a strategic merge patch treats it.
    pub types: BTreeMap<String, Value>,
}

impl OpenApi {
    /// The recorded answer.
    pub fn recorded() -> Result<Self, FixtureError> {
        read(&path_of("openapi"))
    }
}

/// Why a fixture cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FixtureError {
    /// The file cannot be read.
    #[error("read the fixture {}: {source}; `make record-fixtures` makes it", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The file is far larger than any scenario's.
    #[error("the fixture {} has {bytes} bytes, more than {MAX_FIXTURE_BYTES}: make its scenario smaller", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// The text is no fixture.
    #[error("{} is no fixture of this version: {source}; `make record-fixtures` renews it", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: serde_json::Error,
    },
}

impl Fixture {
    /// The recording of the scenario with this name.
    pub fn named(name: &str) -> Result<Self, FixtureError> {
        read(&path_of(name))
    }

    /// What a comparison with another recording, or with the engine, goes by.
    pub fn comparable(&self, incomparable: &[Incomparable]) -> Comparable {
        Comparable::of(&self.objects, incomparable)
    }

    /// The object with this canonical name.
    pub fn object(&self, name: &str) -> Option<&History> {
        self.objects.iter().find(|history| history.name == name)
    }
}

impl<Case: DeserializeOwned> OracleFixture<Case> {
    /// The answers of the oracle with this name.
    pub fn named(oracle: &str) -> Result<Self, FixtureError> {
        read(&path_of(&format!("oracle-{oracle}")))
    }
}

/// Where the fixture with this name lies.
pub fn path_of(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(format!("{name}.json"))
}

pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<T, FixtureError> {
    let unreadable = |source| FixtureError::Read { path: path.to_owned(), source };
    let bytes = fs::metadata(path).map_err(unreadable)?.len();
    if bytes > MAX_FIXTURE_BYTES {
        return Err(FixtureError::TooLarge { path: path.to_owned(), bytes });
    }
    let text = fs::read_to_string(path).map_err(unreadable)?;
    serde_json::from_str(&text).map_err(|source| FixtureError::Parse { path: path.to_owned(), source })
}

/// A history on disk: the first state whole, each later one as the merge patch that leads to it.
mod on_disk {
    use serde::{Deserializer, Serializer};

    use super::{Deserialize, EventLine, Gvk, History, Moment, Serialize, Value, merge};

    #[derive(Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Line {
        name: String,
        kind: Gvk,
        deleted: bool,
        first: Value,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changes: Vec<Value>,
        /// Of the first state and of each change.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        moments: Vec<Moment>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        end: Option<Moment>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        events: Vec<EventLine>,
    }

    pub(super) fn serialize<S: Serializer>(histories: &[History], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(histories.iter().map(|history| Line {
            name: history.name.clone(),
            kind: history.kind.clone(),
            deleted: history.deleted,
            first: history.states.first().cloned().unwrap_or_default(),
            changes: history.states.windows(2).map(|pair| merge::diff(&pair[0], &pair[1])).collect(),
            moments: history.moments.clone(),
            end: history.end,
            events: history.events.clone(),
        }))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<History>, D::Error> {
        let lines = Vec::<Line>::deserialize(deserializer)?;
        Ok(lines.into_iter().map(history).collect())
    }

    fn history(line: Line) -> History {
        let mut states = vec![line.first];
        for change in &line.changes {
            let mut next = states[states.len() - 1].clone();
            merge::apply(&mut next, change);
            states.push(next);
        }
        let Line { name, kind, deleted, moments, end, events, .. } = line;
        History { name, kind, states, moments, deleted, end, events }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_fixture_reads_back_as_it_was_written() {
        let states = vec![json!({"a": 1, "b": {"c": 2}}), json!({"b": {"c": 3}}), json!({"b": {"c": 3}, "d": [1]})];
        let history = History {
            name: "default/Pod/a".into(),
            kind: "v1.Pod".parse().unwrap(),
            moments: (0..3).map(|n| Moment { at_ms: n * 70, number: 4 }).collect(),
            states,
            deleted: true,
            end: Some(Moment { at_ms: 300, number: 9 }),
            events: Vec::new(),
        };
        let fixture = Fixture {
            scenario: json!({"name": "x"}),
            kubernetes: "v1.36.4".into(),
            recorded: "2026-11-15".into(),
            refusals: Vec::new(),
            steps: vec![0, 2_000],
            objects: vec![history],
        };
        let text = serde_json::to_string(&fixture).unwrap();
        assert_eq!(serde_json::from_str::<Fixture>(&text).unwrap(), fixture);
    }

    #[test]
    fn a_missing_fixture_says_how_to_make_it() {
        let error = Fixture::named("no-such-scenario").unwrap_err().to_string();
        assert!(error.contains("no-such-scenario.json") && error.contains("make record-fixtures"), "{error}");
    }
}

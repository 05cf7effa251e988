//! Recordings on disk: `fixtures/scheduler/NAME.json` holds a family and what the real scheduler did with it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::attempt::Attempt;
use super::scenario::Family;
use crate::fixture::{self, FixtureError};

/// What the real scheduler did with one scenario: the attempts of each step.
pub type Answers = Vec<Vec<Attempt>>;

/// A family and the real scheduler's answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// The API server's version, such as `v1.36.4`.
    pub kubernetes: String,
    /// The day, in UTC.
    pub recorded: String,
    /// The family, whole, as it was when it was recorded.
    pub family: Value,
    /// The answers, by scenario.
    pub answers: BTreeMap<String, Answers>,
}

impl Recorded {
    /// The recording of the family with this name.
    pub fn named(name: &str) -> Result<Self, FixtureError> {
        fixture::read(&path_of(name))
    }

    /// All recordings of the testkit: each family with its answers.
    pub fn all() -> Result<Vec<(Family, Self)>, Box<dyn std::error::Error>> {
        let families = Family::all()?;
        families.into_iter().map(|family| Ok((family.clone(), Self::named(&family.name)?))).collect()
    }
}

/// Where the recording of a family lies.
pub fn path_of(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/scheduler").join(format!("{name}.json"))
}

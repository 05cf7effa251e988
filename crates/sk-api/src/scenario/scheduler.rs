//! Which scheduler configuration a run uses: a `KubeSchedulerConfiguration`, in a file of its own or in place.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::schema::either;
use super::text_or::TextOr;

/// A `KubeSchedulerConfiguration`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "TextOr<Map<String, Value>>", into = "TextOr<Map<String, Value>>")]
pub enum Scheduler {
    /// The name of a file that holds it.
    File(String),
    /// The configuration itself.
    Inline(Map<String, Value>),
}

impl From<TextOr<Map<String, Value>>> for Scheduler {
    fn from(written: TextOr<Map<String, Value>>) -> Self {
        match written {
            TextOr::Text(file) => Self::File(file),
            TextOr::Long(configuration) => Self::Inline(configuration),
        }
    }
}

impl From<Scheduler> for TextOr<Map<String, Value>> {
    fn from(scheduler: Scheduler) -> Self {
        match scheduler {
            Scheduler::File(file) => Self::Text(file),
            Scheduler::Inline(configuration) => Self::Long(configuration),
        }
    }
}

pub(crate) fn schema(_: &mut SchemaGenerator) -> Schema {
    either(&json_schema!({ "type": "string" }), &json_schema!({ "type": "object" }))
}

//! Kinds the engine stores, serves and collects, but does not act on.

use std::sync::Arc;

use serde_json::{Map, Value};

/// Everything but `apiVersion`, `kind` and `metadata`, as it came.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Other {
    /// All fields but the status.
    pub fields: Arc<Map<String, Value>>,
    /// The status, if there is one.
    pub status: Option<Arc<Value>>,
}

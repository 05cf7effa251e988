//! Kinds that the engine stores, serves and garbage-collects, and that no controller acts on.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::Kind;
use crate::error::Invalid;

/// The longest name there is.
const MAX_NAME_BYTES: usize = 253;

/// Everything but `apiVersion`, `kind` and `metadata`, as it came.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Other {
    /// All fields but the status.
    pub fields: Arc<Map<String, Value>>,
    /// The status, if there is one.
    pub status: Option<Arc<Value>>,
}

impl Kind for Other {
    fn read(fields: &mut Map<String, Value>) -> Result<Self, serde_json::Error> {
        let status = fields.remove("status").map(Arc::new);
        Ok(Self { fields: Arc::new(std::mem::take(fields)), status })
    }

    fn write(&self, fields: &mut Map<String, Value>) {
        fields.extend((*self.fields).clone());
        if let Some(status) = &self.status {
            fields.insert("status".into(), (**status).clone());
        }
    }

    /// Of these kinds we do not know whether a server takes a status.
    fn prepare_for_create(&mut self) {}

    fn set_status(&mut self, other: &Self) {
        self.status.clone_from(&other.status);
    }

    fn prepare_for_update(&mut self, stored: &Self) {
        self.set_status(stored);
    }

    fn same_desire(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.fields, &other.fields) || self.fields == other.fields
    }

    fn validate(&self) -> Result<(), Invalid> {
        Ok(())
    }

    fn validate_update(&self, _stored: &Self) -> Result<(), Invalid> {
        Ok(())
    }

    /// A name is one segment of a path.
    fn is_name(name: &str) -> bool {
        name.len() <= MAX_NAME_BYTES && !name.contains(['/', '%']) && !["", ".", ".."].contains(&name)
    }
}

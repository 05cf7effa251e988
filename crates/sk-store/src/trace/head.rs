//! The head of a record: time, kind of change, object and labels, without the object's body.
//!
//! That is enough to count, filter and search; the native format stores heads apart from bodies.

use std::sync::Arc;

use serde_json::Value;
use sk_core::{ObjectRef, SimTime, SmolStr};

use super::record::{Change, Record, labels_of};

/// An object's labels, in the order they are written. Shared by all records that have the same ones.
pub type Labels = Arc<[(SmolStr, SmolStr)]>;

/// A record without its object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// When it happened.
    pub at: SimTime,
    /// Its place in the order.
    pub seq: u64,
    /// What happened, and to which object.
    pub what: What,
}

/// What happened, without the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The object was created or changed.
    Apply(Arc<ObjectRef>, Labels),
    /// The object went away. Its labels are known only if the trace holds the object as it was.
    Delete(Arc<ObjectRef>, Labels),
    /// Nothing happened.
    Mark,
}

impl Head {
    /// The head of a whole record.
    pub fn of(record: &Record) -> Self {
        let what = match &record.change {
            Change::Apply(object) => What::Apply(Arc::new(object.reference().clone()), labels(object.value())),
            Change::Delete(deletion) => {
                What::Delete(Arc::new(deletion.object.clone()), deletion.last.as_ref().map(labels).unwrap_or_default())
            }
            Change::Mark(_) => What::Mark,
        };
        Self { at: record.at, seq: record.seq, what }
    }

    /// The object it happened to; a mark has none.
    pub fn object(&self) -> Option<&ObjectRef> {
        match &self.what {
            What::Apply(object, _) | What::Delete(object, _) => Some(object),
            What::Mark => None,
        }
    }
}

/// The labels of an object as JSON.
pub(crate) fn labels(value: &Value) -> Labels {
    labels_of(value).map(|(key, value)| (key.into(), value.into())).collect()
}

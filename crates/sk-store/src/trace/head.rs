//! The head of a record: when, what, which object with which labels, without the object itself.
//!
//! Enough for counting, filtering and finding; in the native format it is read without touching any object.

use std::sync::Arc;

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
            Change::Apply(object) => What::Apply(Arc::new(object.reference().clone()), labels(Some(object.value()))),
            Change::Delete(deletion) => What::Delete(Arc::new(deletion.object.clone()), labels(deletion.last.as_ref())),
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

fn labels(value: Option<&serde_json::Value>) -> Labels {
    value.into_iter().flat_map(labels_of).map(|(key, value)| (key.into(), value.into())).collect()
}

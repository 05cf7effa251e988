//! Selects records by time or by object. The native format then reads only chunks that can contain them; other formats are
//! read completely.

use sk_core::{ObjectRef, SimTime};

use super::head::Head;

/// A part of a trace. The default is all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    from: Option<SimTime>,
    until: Option<SimTime>,
    object: Option<ObjectRef>,
}

impl Selection {
    /// Everything.
    pub fn all() -> Self {
        Self::default()
    }

    /// Only what happened at `start` or later.
    #[must_use]
    pub fn from(self, start: SimTime) -> Self {
        Self { from: Some(start), ..self }
    }

    /// Only what happened before `end`.
    #[must_use]
    pub fn until(self, end: SimTime) -> Self {
        Self { until: Some(end), ..self }
    }

    /// Only what happened to this object; marks are then left out.
    #[must_use]
    pub fn of(self, object: ObjectRef) -> Self {
        Self { object: Some(object), ..self }
    }

    pub(crate) fn object(&self) -> Option<&ObjectRef> {
        self.object.as_ref()
    }

    /// May something between these times be wanted?
    pub(crate) fn overlaps(&self, earliest: SimTime, latest: SimTime) -> bool {
        self.from.is_none_or(|start| latest >= start) && self.until.is_none_or(|end| earliest < end)
    }

    /// Is this record wanted?
    pub(crate) fn takes(&self, head: &Head) -> bool {
        self.overlaps(head.at, head.at) && self.object.as_ref().is_none_or(|object| head.object() == Some(object))
    }
}

//! What changed on which node, in order.
//!
//! Everything that is derived from the cluster (a score per node, a count per zone) remembers how far it has read and
//! goes on from there, so a change costs nothing until somebody needs what depends on it. Entries older than
//! [`Log::keep`] are dropped; a reader that far behind starts anew from the columns, which then is cheaper anyway.

use crate::ids::{ClassId, NodeId};

/// One change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// So many pods of a class more, and so many that are not being deleted.
    Pod { node: NodeId, class: ClassId, by: i8, live: i8 },
    /// The node's object.
    Node { node: NodeId },
}

impl Change {
    pub(crate) fn node(self) -> NodeId {
        match self {
            Self::Pod { node, .. } | Self::Node { node } => node,
        }
    }

    /// Did it change what is counted on the node?
    pub(crate) fn counts(self) -> bool {
        match self {
            Self::Pod { by, .. } => by != 0,
            Self::Node { .. } => true,
        }
    }
}

/// The changes since [`Self::start`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    entries: Vec<Change>,
    start: u64,
}

/// The least number of entries kept: 1 MB at 16 bytes each.
const MIN_KEPT: usize = 65_536;

impl Log {
    pub(crate) fn push(&mut self, change: Change, nodes: usize) {
        let keep = MIN_KEPT.max(4 * nodes);
        if self.entries.len() >= 2 * keep {
            self.entries.drain(..keep);
            self.start += keep as u64;
        }
        self.entries.push(change);
    }

    /// Where a reader that has read everything stands.
    pub(crate) fn end(&self) -> u64 {
        self.start + self.entries.len() as u64
    }

    /// What a reader at `cursor` has not seen; `None` when it is too far behind.
    pub(crate) fn since(&self, cursor: u64) -> Option<&[Change]> {
        let from = cursor.checked_sub(self.start)?;
        self.entries.get(usize::try_from(from).ok()?..)
    }
}

//! The log of changes to nodes, in order.
//!
//! Everything that is derived from the cluster (a score per node, a count per zone) remembers how far it has read and
//! continues from there, so a change costs nothing until something that depends on it is needed. Each change of a pod
//! also links to the previous change of the same class, so a reader that needs a few classes reads only theirs. The
//! log drops entries older than [`MIN_KEPT`]; a reader that is further behind starts again from the columns, which is
//! cheaper by then.

use super::classes::Freed;
use crate::ids::{ClassId, NodeId};

/// One change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// So many pods of a class more, and so many that are not being deleted.
    Pod { node: NodeId, class: ClassId, by: i8, live: i8 },
    /// The node's object; or pods of a class that has been freed since, which is read as if the object had changed.
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
    /// By entry: so many entries before it stands the last one of its class; 0: there is none within reach.
    back: Vec<u32>,
    start: u64,
    /// By class: one more than where its last entry stands.
    last: Vec<u64>,
}

/// The least number of entries kept: 1 MB at 16 bytes each.
const MIN_KEPT: usize = 65_536;

impl Log {
    pub(crate) fn push(&mut self, change: Change, nodes: usize) {
        let keep = MIN_KEPT.max(4 * nodes);
        if self.entries.len() >= 2 * keep {
            self.entries.drain(..keep);
            self.back.drain(..keep);
            self.start += keep as u64;
        }
        let back = match change {
            Change::Pod { class, .. } => self.follow(class),
            Change::Node { .. } => 0,
        };
        self.back.push(back);
        self.entries.push(change);
    }

    /// How far back the class's last entry stands from the one that comes now.
    fn follow(&mut self, class: ClassId) -> u32 {
        let here = self.end() + 1;
        if self.last.len() <= class.index() {
            self.last.resize(class.index() + 1, 0);
        }
        match std::mem::replace(&mut self.last[class.index()], here) {
            0 => 0,
            before => u32::try_from(here - before).unwrap_or(0),
        }
    }

    /// Classes were freed: nobody can ask any more what their pods were like, only where they were.
    pub(crate) fn forget(&mut self, freed: &Freed) {
        for entry in &mut self.entries {
            if let Change::Pod { node, class, .. } = *entry
                && freed.contains(class)
            {
                *entry = Change::Node { node };
            }
        }
        self.last
            .iter_mut()
            .enumerate()
            .filter(|(class, _)| freed.contains(ClassId::from_index(*class)))
            .for_each(|(_, last)| *last = 0);
    }

    /// The position of a reader that has read everything.
    pub(crate) fn end(&self) -> u64 {
        self.start + self.entries.len() as u64
    }

    /// What a reader at `cursor` has not seen; `None` when it is too far behind.
    pub(crate) fn since(&self, cursor: u64) -> Option<&[Change]> {
        let from = cursor.checked_sub(self.start)?;
        self.entries.get(usize::try_from(from).ok()?..)
    }

    /// What a reader at `cursor`, which is not too far behind, has not seen of one class; the newest comes first.
    pub(crate) fn of_class(&self, class: ClassId, cursor: u64) -> impl Iterator<Item = Change> {
        let mut next = self.last.get(class.index()).copied().unwrap_or(0);
        std::iter::from_fn(move || {
            let at = next.checked_sub(1).filter(|at| *at >= cursor.max(self.start))?;
            let place = usize::try_from(at - self.start).ok()?;
            next = match self.back[place] {
                0 => 0,
                back => next - u64::from(back),
            };
            Some(self.entries[place])
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_class_has_the_changes_that_the_whole_log_has_of_it(
            classes in prop::collection::vec(0_u32..6, 1..400),
            cursor in 0_u64..400,
        ) {
            let mut log = Log::default();
            for (node, class) in classes.iter().enumerate() {
                log.push(
                    match class {
                        0 => Change::Node { node: NodeId(node as u32) },
                        class => Change::Pod { node: NodeId(node as u32), class: ClassId(*class), by: 1, live: 1 },
                    },
                    1,
                );
            }
            let all = log.since(cursor).unwrap_or_default();
            for wanted in 1..7 {
                let is_wanted = |change: &Change| matches!(change, Change::Pod { class, .. } if class.0 == wanted);
                let expected: Vec<Change> = all.iter().rev().copied().filter(is_wanted).collect();
                prop_assert_eq!(log.of_class(ClassId(wanted), cursor).collect::<Vec<_>>(), expected);
            }
        }
    }

    #[test]
    fn what_was_dropped_is_out_of_reach() {
        let mut log = Log::default();
        let class = ClassId(0);
        for node in 0..3 * MIN_KEPT as u32 {
            log.push(Change::Pod { node: NodeId(node), class, by: 1, live: 1 }, 1);
        }
        assert!(log.since(0).is_none(), "too far behind");
        let kept = log.end() - log.start;
        assert_eq!(log.of_class(class, 0).count() as u64, kept);
    }
}

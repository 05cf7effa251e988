//! Frees the classes that nothing uses any more, and everything that was derived from them.
//!
//! A run lasts for weeks and sees millions of pods, but at any time only some thousands of classes. The caller chooses the
//! moment: one at which it holds no [`ClassId`] but those that pods have and those it names. What is freed makes no
//! difference to any decision: no pod has the class, so nothing counts it, and if the class comes back it is derived
//! again.

use super::scheduler::Scheduler;
use crate::cluster::Freed;
use crate::ids::ClassId;

/// How much a scheduler keeps, each in entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Classes of pods.
    pub classes: usize,
    /// Shapes of classes.
    pub shapes: usize,
    /// Columns of shapes.
    pub columns: usize,
    /// Counters of pods per domain.
    pub counters: usize,
    /// Failures of classes.
    pub failures: usize,
    /// Constraints and keys of classes.
    pub of_plugins: usize,
}

impl Scheduler {
    /// Are so many classes held that it pays to free those that nothing uses?
    pub fn has_many_classes(&self) -> bool {
        self.cluster.classes.are_many()
    }

    /// Frees every class that neither a pod nor any of `others` has. The caller forgets the ids that were freed: each will
    /// mean another class.
    pub fn free_classes(&mut self, others: impl IntoIterator<Item = ClassId>) -> Freed {
        let freed = self.cluster.unused_classes(others.into_iter());
        // Counters look at the classes once more, so they go first.
        self.caches.counters.forget(&self.cluster, &freed);
        self.caches.spread.forget(&freed);
        self.caches.affinity.forget();
        self.columns.forget(&freed);
        self.failures.forget_freed(&freed);
        let keyed = self.keyed.iter_mut().enumerate();
        keyed.filter(|(class, _)| freed.contains(ClassId::from_index(*class))).for_each(|(_, keyed)| *keyed = false);
        self.cluster.free_classes(&freed);
        freed
    }

    /// How much is kept.
    pub fn kept(&self) -> Kept {
        let (classes, shapes) = self.cluster.held();
        Kept {
            classes,
            shapes,
            columns: self.columns.len(),
            counters: self.caches.counters.len(),
            failures: self.failures.len(),
            of_plugins: self.caches.spread.len() + self.caches.affinity.len(),
        }
    }
}

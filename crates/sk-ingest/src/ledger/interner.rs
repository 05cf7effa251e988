//! Stores equal values once: a thousand pods of one ReplicaSet share one list of owners.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

/// Below this many values nobody looks for those that are no longer used.
const FIRST_SWEEP: usize = 1_024;

/// Shared values by their hash. It holds at most twice what is in use elsewhere, and [`FIRST_SWEEP`].
#[derive(Debug)]
pub(super) struct Interner<T> {
    values: BTreeMap<u64, Arc<T>>,
    sweep_at: usize,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self { values: BTreeMap::new(), sweep_at: FIRST_SWEEP }
    }
}

impl<T: PartialEq> Interner<T> {
    /// The value, shared with everybody who has an equal one. `by` is what is hashed of it.
    pub(super) fn share(&mut self, by: impl Hash, value: T) -> Arc<T> {
        let mut hasher = Xxh3::new();
        by.hash(&mut hasher);
        let hash = Hasher::finish(&hasher);
        if let Some(known) = self.values.get(&hash).filter(|known| ***known == value) {
            return known.clone();
        }
        if self.values.len() >= self.sweep_at {
            self.values.retain(|_, value| Arc::strong_count(value) > 1);
            self.sweep_at = FIRST_SWEEP.max(2 * self.values.len());
        }
        let value = Arc::new(value);
        // Of two different values with one hash only the newer is shared from now on.
        self.values.insert(hash, value.clone());
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_one_and_unused_ones_are_swept() {
        let mut interner = Interner::default();
        let first = interner.share("a", "a".to_owned());
        assert!(Arc::ptr_eq(&first, &interner.share("a", "a".to_owned())));
        assert_eq!(*interner.share("a", "b".to_owned()), "b", "a collision shares nothing wrong");
        for number in 0..10 * FIRST_SWEEP {
            interner.share(number, number.to_string());
        }
        assert!(interner.values.len() <= FIRST_SWEEP);
        assert_eq!(*first, "a");
    }
}

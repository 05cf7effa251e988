//! Sets of names that stay small: 64-bit hashes, as many as a limit allows, the rest counted.
//!
//! Two of four million names share a hash with a chance of one in two million, which is accepted for a tenth of the
//! memory. Hashes are never shown and never ordered by, so their values do not matter.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// How many names a set keeps: 2^22 at 9 to 18 bytes each are at most 75 MiB.
const MAX_NAMES: usize = 1 << 22;

/// A number for anything that can be hashed, the same in every run.
pub(crate) fn number(thing: &(impl Hash + ?Sized)) -> u64 {
    // `DefaultHasher::new` has fixed keys, unlike the hasher of a `HashMap`.
    let mut hasher = DefaultHasher::new();
    thing.hash(&mut hasher);
    hasher.finish()
}

/// A bounded set of names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    numbers: HashSet<u64>,
    overflow: u64,
}

impl Names {
    /// Adds a name; says whether it is new. A full set says so of every name that it does not hold.
    pub(crate) fn insert(&mut self, name: u64) -> bool {
        if self.numbers.len() >= MAX_NAMES && !self.numbers.contains(&name) {
            self.overflow += 1;
            return true;
        }
        self.numbers.insert(name)
    }

    pub(crate) fn remove(&mut self, name: u64) -> bool {
        self.numbers.remove(&name)
    }

    pub(crate) fn contains(&self, name: u64) -> bool {
        self.numbers.contains(&name)
    }

    pub(crate) fn clear(&mut self) {
        self.numbers.clear();
    }

    pub(crate) fn len(&self) -> u64 {
        self.numbers.len() as u64
    }

    /// How often a name did not fit. What is asked about afterwards is a guess.
    pub(crate) fn overflow(&self) -> u64 {
        self.overflow
    }
}

//! A hash table that nobody can iterate, so that no order ever depends on a hash.
//!
//! It holds small values (ids) and finds them by a hash that the caller makes of what they stand for; the caller also says
//! which of several values of one hash is meant. So a name is stored once, where its object is, and not again as a key.

use std::hash::{BuildHasher, Hash};

use foldhash::fast::FixedState;
use hashbrown::HashTable;

/// Values by hash.
#[derive(Clone, Debug)]
pub struct Lookup<V> {
    table: HashTable<V>,
}

impl<V> Default for Lookup<V> {
    fn default() -> Self {
        Self { table: HashTable::new() }
    }
}

impl<V> Lookup<V> {
    /// The value of this hash that `is_it`.
    pub fn find(&self, hash: u64, is_it: impl FnMut(&V) -> bool) -> Option<&V> {
        self.table.find(hash, is_it)
    }

    /// Adds a value; one that is there already is not replaced. `rehash` tells the hash of any value when the table grows.
    pub fn insert(&mut self, hash: u64, value: V, rehash: impl Fn(&V) -> u64) {
        self.table.insert_unique(hash, value, rehash);
    }

    /// Removes the value of this hash that `is_it`.
    pub fn remove(&mut self, hash: u64, is_it: impl FnMut(&V) -> bool) -> Option<V> {
        self.table.find_entry(hash, is_it).ok().map(|entry| entry.remove().0)
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Forgets all values.
    pub fn clear(&mut self) {
        self.table.clear();
    }
}

/// The hash of a value: the same in every process, because nothing in it is drawn.
pub fn hash_of(value: &(impl Hash + ?Sized)) -> u64 {
    FixedState::with_seed(0).hash_one(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_one_hash_are_told_apart_by_the_caller() {
        let mut lookup = Lookup::default();
        for value in [1, 2, 3] {
            lookup.insert(7, value, |_| 7);
        }
        assert_eq!(lookup.find(7, |value| *value == 2), Some(&2));
        assert_eq!(lookup.remove(7, |value| *value == 2), Some(2));
        assert_eq!((lookup.find(7, |value| *value == 2), lookup.len()), (None, 2));
    }
}

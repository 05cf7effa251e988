//! Hash tables that cannot be iterated, so that no order ever depends on a hash.
//!
//! [`Lookup`] holds small values (ids). The caller supplies the hash and, among several values with one hash, the
//! comparison. So a name is stored once, with its object, and not again as a key. [`Keyed`] holds values with their
//! keys.

use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash, Hasher};

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

    /// Adds a value; one that is there already is not replaced. `rehash` tells the hash of any value when the table
    /// grows.
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

/// Values by key. Listing them all sorts by key.
#[derive(Clone, Debug)]
pub struct Keyed<K, V> {
    table: HashTable<(K, V)>,
}

impl<K, V> Default for Keyed<K, V> {
    fn default() -> Self {
        Self { table: HashTable::new() }
    }
}

impl<K: Hash + Eq, V> Keyed<K, V> {
    /// The value of a key.
    pub fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.table.find(hash_of(key), |(known, _)| known.borrow() == key).map(|(_, value)| value)
    }

    /// The value of a key, to change.
    pub fn get_mut<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.table.find_mut(hash_of(key), |(known, _)| known.borrow() == key).map(|(_, value)| value)
    }

    /// Is there a value of the key?
    pub fn contains<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.get(key).is_some()
    }

    /// The value of a key, made now if there is none.
    pub fn or_insert_with(&mut self, key: &K, make: impl FnOnce() -> V) -> &mut V
    where
        K: Clone,
    {
        let entry = self.table.entry(hash_of(key), |(known, _)| known == key, |(known, _)| hash_of(known));
        &mut entry.or_insert_with(|| (key.clone(), make())).into_mut().1
    }

    /// Stores the value of a key; the one that it had.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let hash = hash_of(&key);
        match self.table.find_mut(hash, |(known, _)| *known == key) {
            Some((_, known)) => Some(std::mem::replace(known, value)),
            None => {
                self.table.insert_unique(hash, (key, value), |(known, _)| hash_of(known));
                None
            }
        }
    }

    /// Takes the value of a key out.
    pub fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let entry = self.table.find_entry(hash_of(key), |(known, _)| known.borrow() == key);
        entry.ok().map(|entry| entry.remove().0.1)
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

    /// All values, in the order of their keys.
    pub fn into_sorted(self) -> impl Iterator<Item = (K, V)>
    where
        K: Ord,
    {
        let mut all: Vec<(K, V)> = self.table.into_iter().collect();
        all.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        all.into_iter()
    }
}

/// The hash of a few texts together, without regard to where one ends and the next begins: cheaper than [`hash_of`] them.
pub fn hash_of_texts<const N: usize>(texts: [&str; N]) -> u64 {
    let mut hasher = FixedState::with_seed(0).build_hasher();
    texts.iter().for_each(|text| hasher.write(text.as_bytes()));
    hasher.finish()
}

/// The hash of a value: the same in every process, because nothing in it is drawn.
pub fn hash_of(value: &(impl Hash + ?Sized)) -> u64 {
    FixedState::with_seed(0).hash_one(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_value_and_all_come_in_the_order_of_keys() {
        let mut numbers: Keyed<String, u32> = Keyed::default();
        for (number, key) in ["c", "a", "b", "a"].into_iter().enumerate() {
            *numbers.or_insert_with(&key.to_owned(), || 0) += u32::try_from(number).unwrap();
        }
        assert_eq!((numbers.get("a"), numbers.get("d"), numbers.contains("b")), (Some(&4), None, true));
        assert_eq!(
            (numbers.insert("b".to_owned(), 9), numbers.remove("c"), numbers.remove("c")),
            (Some(2), Some(0), None)
        );
        numbers.get_mut("b").into_iter().for_each(|number| *number += 1);
        assert_eq!(numbers.into_sorted().collect::<Vec<_>>(), [("a".to_owned(), 4), ("b".to_owned(), 10)]);
    }

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

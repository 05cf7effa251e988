//! Caches what was derived from shared values, so that a thousand pods of one template cost one derivation.

use std::sync::Arc;

use crate::lookup::Keyed;

/// Derived values by the address of their source. The source is kept alive, so its address cannot come to mean another
/// value; addresses are only compared for equality and never order anything, so a run stays the same from time to time.
#[derive(Clone, Debug)]
pub struct Memo<K, V> {
    entries: Keyed<usize, (Arc<K>, V)>,
    capacity: usize,
}

impl<K, V: Clone> Memo<K, V> {
    /// Remembers at most `capacity` values.
    pub fn new(capacity: usize) -> Self {
        Self { entries: Keyed::default(), capacity }
    }

    /// The value derived from `source`, derived now if it is not remembered.
    pub fn get_or_insert_with(&mut self, source: &Arc<K>, derive: impl FnOnce(&K) -> V) -> V {
        let address = Arc::as_ptr(source).addr();
        if let Some((_, value)) = self.entries.get(&address) {
            return value.clone();
        }
        let value = derive(source);
        if self.entries.len() >= self.capacity {
            // Dropping all is rare and cheap: each source still in use is derived from once more.
            self.entries.clear();
        }
        self.entries.insert(address, (source.clone(), value.clone()));
        value
    }

    /// Forgets everything, because what values are derived by has changed.
    pub fn clear(&mut self) {
        self.entries.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_derived_once_per_source_until_forgotten() {
        let mut memo = Memo::new(2);
        let sources: Vec<_> = (0..3).map(Arc::new).collect();
        let mut derived = 0;
        let mut get = |memo: &mut Memo<i32, i32>, source| {
            memo.get_or_insert_with(source, |number| {
                derived += 1;
                number * 10
            })
        };
        assert_eq!((get(&mut memo, &sources[1]), get(&mut memo, &sources[1])), (10, 10));
        get(&mut memo, &sources[0]);
        get(&mut memo, &sources[2]);
        get(&mut memo, &sources[2]);
        memo.clear();
        get(&mut memo, &sources[2]);
        assert_eq!(derived, 4);
    }
}

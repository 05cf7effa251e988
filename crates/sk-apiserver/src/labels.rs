//! Labels and annotations: a sorted map that takes no memory when empty and one word when shared.
//!
//! A thousand pods of one template share one map. A write to a shared map copies it first.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sk_core::SmolStr;

type Map = BTreeMap<SmolStr, SmolStr>;

static EMPTY: Map = Map::new();

/// Labels or annotations.
#[derive(Clone, Debug, Default)]
pub struct Labels(Option<Arc<Map>>);

impl Labels {
    /// For writing: copied first if it is shared.
    pub fn make_mut(&mut self) -> &mut Map {
        Arc::make_mut(self.0.get_or_insert_default())
    }

    /// Where the map is: tells whether two are the same, and nothing else.
    pub fn address(&self) -> usize {
        self.0.as_ref().map_or(0, |map| Arc::as_ptr(map).addr())
    }

    /// Are both the same shared map? Then they are equal without a comparison.
    pub fn is_same(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        }
    }
}

impl Deref for Labels {
    type Target = Map;

    fn deref(&self) -> &Map {
        self.0.as_deref().unwrap_or(&EMPTY)
    }
}

impl PartialEq for Labels {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other) || **self == **other
    }
}

impl Eq for Labels {}

impl From<Map> for Labels {
    fn from(map: Map) -> Self {
        Self((!map.is_empty()).then(|| Arc::new(map)))
    }
}

impl FromIterator<(SmolStr, SmolStr)> for Labels {
    fn from_iter<I: IntoIterator<Item = (SmolStr, SmolStr)>>(pairs: I) -> Self {
        pairs.into_iter().collect::<Map>().into()
    }
}

impl Serialize for Labels {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Labels {
    /// `null` is no label, as in Kubernetes.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::<Map>::deserialize(deserializer).map(|map| map.unwrap_or_default().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_map_is_copied_before_it_is_changed() {
        let one: Labels = [("a".into(), "1".into())].into_iter().collect();
        let mut other = one.clone();
        assert!(one.is_same(&other));
        other.make_mut().insert("b".into(), "2".into());
        assert_eq!((one.len(), other.len()), (1, 2));
        assert_eq!(Labels::default(), Labels::from(Map::new()));
    }
}

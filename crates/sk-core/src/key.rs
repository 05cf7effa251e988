//! The name of an object: namespace and name, and both with the kind.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smol_str::SmolStr;

use crate::Gvk;

/// Namespace and name; cluster-scoped objects have no namespace. Written `namespace/name` or `name`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// `None` for cluster-scoped objects.
    pub namespace: Option<SmolStr>,
    /// The object's name.
    pub name: SmolStr,
}

/// Why a text is not an object key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an object: write it like `namespace/name`, or `name` for a cluster-scoped object")]
pub struct ParseKeyError(String);

impl ObjectKey {
    /// A namespaced object.
    pub fn namespaced(namespace: impl Into<SmolStr>, name: impl Into<SmolStr>) -> Self {
        Self { namespace: Some(namespace.into()), name: name.into() }
    }

    /// A cluster-scoped object.
    pub fn cluster(name: impl Into<SmolStr>) -> Self {
        Self { namespace: None, name: name.into() }
    }

    /// The namespace, or `""` for a cluster-scoped object, as Kubernetes' own keys have it.
    pub fn namespace_or_empty(&self) -> &str {
        self.namespace.as_deref().unwrap_or("")
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.name)
    }
}

impl FromStr for ObjectKey {
    type Err = ParseKeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = || ParseKeyError(text.chars().take(200).collect());
        let (namespace, name) = match text.split_once('/') {
            // SimKube 2 writes a cluster-scoped object as "/name".
            Some(("", name)) => (None, name),
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, text),
        };
        if name.is_empty() || name.contains('/') {
            return Err(refuse());
        }
        Ok(Self { namespace: namespace.map(SmolStr::from), name: name.into() })
    }
}

impl Serialize for ObjectKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ObjectKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// One object of one kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectRef {
    /// What type of object.
    pub gvk: Gvk,
    /// Which one.
    pub key: ObjectKey,
}

impl ObjectRef {
    /// `gvk` and `key` together.
    pub fn new(gvk: Gvk, key: ObjectKey) -> Self {
        Self { gvk, key }
    }
}

impl fmt::Display for ObjectRef {
    /// `Deployment default/nginx`: how messages name an object to a person.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.gvk.kind, self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_print_as_they_are_read() {
        for text in ["default/nginx", "node-1"] {
            assert_eq!(text.parse::<ObjectKey>().unwrap().to_string(), text);
        }
        assert_eq!("/node-1".parse::<ObjectKey>().unwrap(), ObjectKey::cluster("node-1"));
    }

    #[test]
    fn a_key_without_a_name_is_refused() {
        for text in ["", "/", "default/", "a/b/c"] {
            assert!(text.parse::<ObjectKey>().is_err(), "{text}");
        }
    }
}

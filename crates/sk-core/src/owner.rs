//! Owner references. An object may have several owners, of which at most one is its controller.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use smol_str::SmolStr;

use crate::gvk::ParseGvkError;
use crate::{Gvk, ObjectKey, ObjectRef};

/// One entry of `metadata.ownerReferences`. The owner lives in the object's own namespace or in none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Wire", into = "Wire")]
pub struct OwnerReference {
    /// The owner's kind.
    pub gvk: Gvk,
    /// The owner's name.
    pub name: SmolStr,
    /// The owner's uid; one that was recreated under its name is another owner.
    pub uid: SmolStr,
    /// Does this owner manage the object?
    pub controller: bool,
    /// Does the object hold up its owner's foreground deletion?
    pub block_owner_deletion: bool,
}

/// Why an object's owners could not be read.
#[derive(Debug, thiserror::Error)]
pub enum OwnerError {
    /// The field is there but holds no list.
    #[error("metadata.ownerReferences is not a list")]
    NoList,
    /// One entry lacks a field or has a wrong one.
    #[error("metadata.ownerReferences[{index}] needs apiVersion, kind, name and uid")]
    Entry {
        /// Which one.
        index: usize,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
}

impl OwnerReference {
    /// All owners of an object, in its own order.
    pub fn all_of(object: &Value) -> Result<Vec<Self>, OwnerError> {
        let entries = match &object["metadata"]["ownerReferences"] {
            Value::Null => return Ok(Vec::new()),
            Value::Array(entries) => entries,
            _ => return Err(OwnerError::NoList),
        };
        let read = |(index, entry)| Self::deserialize(entry).map_err(|source| OwnerError::Entry { index, source });
        entries.iter().enumerate().map(read).collect()
    }

    /// The owner that manages the object, if it has one.
    pub fn controller_of(object: &Value) -> Result<Option<Self>, OwnerError> {
        Ok(Self::all_of(object)?.into_iter().find(|owner| owner.controller))
    }

    /// The owner as an object. A namespaced object's owner is taken to live beside it; nothing in the reference tells
    /// whether its kind is cluster-scoped.
    pub fn object_ref(&self, namespace: Option<&str>) -> ObjectRef {
        let key = ObjectKey { namespace: namespace.map(SmolStr::from), name: self.name.clone() };
        ObjectRef::new(self.gvk.clone(), key)
    }
}

/// The reference as Kubernetes writes it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire {
    api_version: String,
    kind: String,
    name: SmolStr,
    uid: SmolStr,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    controller: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    block_owner_deletion: Option<bool>,
}

impl TryFrom<Wire> for OwnerReference {
    type Error = ParseGvkError;

    fn try_from(wire: Wire) -> Result<Self, Self::Error> {
        Ok(Self {
            gvk: Gvk::from_api_version(&wire.api_version, &wire.kind)?,
            name: wire.name,
            uid: wire.uid,
            controller: wire.controller.unwrap_or_default(),
            block_owner_deletion: wire.block_owner_deletion.unwrap_or_default(),
        })
    }
}

impl From<OwnerReference> for Wire {
    fn from(owner: OwnerReference) -> Self {
        Self {
            api_version: owner.gvk.api_version(),
            kind: owner.gvk.kind.to_string(),
            name: owner.name,
            uid: owner.uid,
            controller: owner.controller.then_some(true),
            block_owner_deletion: owner.block_owner_deletion.then_some(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn owned() -> Value {
        json!({"metadata": {"ownerReferences": [
            {"apiVersion": "simkube.io/v1", "kind": "SimulationRoot", "name": "root", "uid": "u1", "controller": false},
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "u2", "controller": true,
                "blockOwnerDeletion": true},
        ]}})
    }

    #[test]
    fn all_owners_are_read_and_the_controller_is_found_among_them() {
        let owners = OwnerReference::all_of(&owned()).unwrap();
        assert_eq!(owners.iter().map(|owner| owner.name.as_str()).collect::<Vec<_>>(), ["root", "web-1"]);
        let controller = OwnerReference::controller_of(&owned()).unwrap().unwrap();
        assert_eq!(controller, owners[1]);
        assert_eq!(controller.object_ref(Some("default")).to_string(), "ReplicaSet default/web-1");
    }

    #[test]
    fn an_object_without_owners_has_none() {
        for object in [json!({}), json!({"metadata": {"ownerReferences": null}}), json!(null)] {
            assert_eq!(OwnerReference::all_of(&object).unwrap(), []);
            assert_eq!(OwnerReference::controller_of(&object).unwrap(), None);
        }
    }

    #[test]
    fn a_reference_that_is_none_is_named_by_its_place() {
        let mut object = owned();
        object["metadata"]["ownerReferences"][1]["uid"] = json!(7);
        let error = OwnerReference::all_of(&object).unwrap_err();
        assert!(error.to_string().contains("ownerReferences[1]"), "{error}");
        assert!(OwnerReference::all_of(&json!({"metadata": {"ownerReferences": "web"}})).is_err());
    }

    #[test]
    fn references_are_written_as_kubernetes_writes_them() {
        let owners = OwnerReference::all_of(&owned()).unwrap();
        let mut written = serde_json::to_value(&owners).unwrap();
        assert_eq!(written[0].get("controller"), None, "false is left out");
        written[0]["controller"] = json!(false);
        assert_eq!(written, owned()["metadata"]["ownerReferences"]);
    }
}

//! Leaves out objects that the engine's controllers create themselves: if they were replayed too, they would exist
//! twice.
//!
//! A trace may hold the ReplicaSets of a Deployment or the Jobs of a CronJob beside their owners. As long as the owner
//! is replayed and the engine acts on its kind, the plan leaves its dependents to it, and their dependents too. A
//! dependent whose owner is not in the trace is replayed by itself.

use std::collections::BTreeSet;

use serde_json::Value;
use sk_core::registry::{self, Modelled};
use sk_core::{Gvk, ObjectKey, ObjectRef};

/// Who is there to make others, and who was left to them.
#[derive(Clone, Debug, Default)]
pub(super) struct Children {
    /// Replayed objects of kinds that are acted on, and what they make.
    makers: BTreeSet<ObjectRef>,
    left_out: BTreeSet<ObjectRef>,
}

impl Children {
    /// Is this object made by another one that is replayed?
    pub(super) fn is_made(&mut self, object: &ObjectRef, value: &Value) -> bool {
        let is_made = controller(object, value).is_some_and(|maker| self.makers.contains(&maker));
        if is_made {
            self.left_out.insert(object.clone());
        } else {
            self.left_out.remove(object);
        }
        // A pod that owns others, as a Spark driver does, makes them by what runs in it, and nothing runs here.
        let is_pod = object.gvk.kind == "Pod" && object.gvk.group.is_empty();
        let acts = || registry::find(&object.gvk).is_some_and(|kind| kind.modelled == Modelled::Acted);
        if !is_pod && (is_made || acts()) {
            self.makers.insert(object.clone());
        }
        is_made
    }

    /// An object is gone. Was it one that was left to its maker?
    pub(super) fn forget(&mut self, object: &ObjectRef) -> bool {
        self.makers.remove(object);
        self.left_out.remove(object)
    }
}

/// The object's controller, by its owner references.
pub(super) fn controller(object: &ObjectRef, value: &Value) -> Option<ObjectRef> {
    let owners = value.get("metadata")?.get("ownerReferences")?.as_array()?;
    let owner = owners.iter().find(|owner| owner["controller"].as_bool() == Some(true))?;
    let gvk = Gvk::from_api_version(owner["apiVersion"].as_str()?, owner["kind"].as_str()?).ok()?;
    let key = ObjectKey { namespace: object.key.namespace.clone(), name: owner["name"].as_str()?.into() };
    Some(ObjectRef::new(gvk, key))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(kind: &str, name: &str, owner: Option<(&str, &str)>) -> (ObjectRef, Value) {
        let (version, short) = kind.rsplit_once('.').unwrap_or(("v1", kind));
        let gvk = Gvk::from_api_version(version, short).unwrap();
        let owners: Vec<_> = owner
            .into_iter()
            .map(|(kind, name)| {
                let (version, short) = kind.rsplit_once('.').unwrap_or(("v1", kind));
                json!({"apiVersion": version, "kind": short, "name": name, "controller": true})
            })
            .collect();
        let reference = ObjectRef::new(gvk, ObjectKey::namespaced("a", name));
        (reference, json!({"metadata": {"name": name, "ownerReferences": owners}}))
    }

    #[test]
    fn what_a_replayed_owner_makes_is_left_to_it_and_so_is_what_that_makes() {
        let mut children = Children::default();
        let mut is_made = |kind: &str, name: &str, owner: Option<(&str, &str)>| {
            let (reference, value) = object(kind, name, owner);
            children.is_made(&reference, &value)
        };
        assert!(!is_made("batch/v1.Job", "early", Some(("batch/v1.CronJob", "etl"))), "its owner is not there yet");
        assert!(!is_made("batch/v1.CronJob", "etl", None));
        assert!(is_made("batch/v1.Job", "etl-1", Some(("batch/v1.CronJob", "etl"))));
        assert!(is_made("Pod", "etl-1-x", Some(("batch/v1.Job", "etl-1"))));
        assert!(!is_made("example.com/v1.Fleet", "f", None));
        assert!(!is_made("Pod", "f-1", Some(("example.com/v1.Fleet", "f"))), "nobody here acts on a Fleet");
        assert!(!is_made("batch/v1.Job", "alone", Some(("batch/v1.CronJob", "gone"))));
        assert!(!is_made("Pod", "driver", None));
        assert!(!is_made("Pod", "executor", Some(("Pod", "driver"))), "no container runs here that could make it");
        let (job, _) = object("batch/v1.Job", "etl-1", None);
        assert!(children.forget(&job), "its deletion is its maker's affair, too");
        assert!(!children.forget(&job));
    }
}

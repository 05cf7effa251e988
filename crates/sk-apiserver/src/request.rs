//! What can be asked of the API server.

use sk_core::{ObjectKey, ObjectRef, SmolStr};

use crate::{Object, Uid};

/// One request.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// A new object; without a name, one is made from `generateName`.
    Create(Object),
    /// Server-side apply by the only manager of the object: creates it, or makes labels, annotations and spec what is sent.
    Apply(Object),
    /// Replaces metadata and spec; the resource version must be the stored one, 0 means any.
    Update(Object),
    /// Replaces the status and nothing else; the resource version as in an update.
    UpdateStatus(Object),
    /// Puts a pod onto a node.
    Bind {
        /// Which pod.
        pod: ObjectKey,
        /// The pod that was meant; not a later one of the same name.
        uid: Uid,
        /// Which node.
        node: SmolStr,
    },
    /// Deletes a pod as a disruption, through the eviction API.
    Evict {
        /// Which pod.
        pod: ObjectKey,
    },
    /// Deletes an object, at once or with grace.
    Delete {
        /// Which object.
        target: ObjectRef,
        /// How.
        options: DeleteOptions,
    },
    /// Says that a terminating namespace is empty.
    FinalizeNamespace {
        /// Which namespace.
        name: SmolStr,
    },
}

/// How to delete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// Only if this is still the object's uid.
    pub uid: Option<Uid>,
    /// Seconds of grace instead of the object's own; 0 deletes at once.
    pub grace_secs: Option<i64>,
    /// What becomes of its dependents.
    pub propagation: Propagation,
}

/// What becomes of a deleted object's dependents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Propagation {
    /// They are collected afterwards.
    #[default]
    Background,
    /// They go first.
    Foreground,
    /// They stay.
    Orphan,
}

impl Request {
    /// The object it is about.
    pub fn target(&self) -> ObjectRef {
        use crate::kinds::{NAMESPACE, POD};
        match self {
            Self::Create(object) | Self::Apply(object) | Self::Update(object) | Self::UpdateStatus(object) => {
                object.reference()
            }
            Self::Bind { pod, .. } | Self::Evict { pod } => ObjectRef::new(POD, pod.clone()),
            Self::Delete { target, .. } => target.clone(),
            Self::FinalizeNamespace { name } => ObjectRef::new(NAMESPACE, ObjectKey::cluster(name.clone())),
        }
    }
}

//! Requests to the API server and their responses.

use std::sync::Arc;

use serde_json::Value;
use sk_core::{ObjectKey, ObjectRef, SmolStr};

use crate::kinds::{Condition, NAMESPACE, POD};
use crate::{ApiError, Object, Patch, Uid};

/// The object as committed (for a removal, as it last was), or why not.
pub type Answer = Result<Arc<Object>, ApiError>;

/// One request that changes something. Reading needs no request: [`crate::ApiServer::get`], [`crate::ApiServer::list`]
/// and [`crate::ApiServer::watch`] read, and [`crate::ApiServer::delete_collection`] deletes what a list would show.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// A new object; without a name, one is made from `generateName`.
    Create(Box<Object>),
    /// Server-side apply by the only manager of the object: creates it, or makes labels, annotations and spec what is
    /// sent.
    Apply(Box<Object>),
    /// Replaces metadata and spec; the resource version must be the stored one, 0 means any.
    Update(Box<Object>),
    /// Replaces the status and nothing else; the resource version as in an update.
    UpdateStatus(Box<Object>),
    /// Sets some conditions of a pod and its nominated node, regardless of other changes: the
    /// scheduler's patch of a pod's status.
    PatchPodStatus {
        /// Which pod.
        pod: ObjectKey,
        /// The pod that was meant; not a later one of the same name.
        uid: Uid,
        /// The conditions, each in place of the one of its type.
        conditions: Vec<Condition>,
        /// The node it is nominated for; an empty name takes the nomination back.
        nominated_node_name: Option<SmolStr>,
    },
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
    /// Changes an object, or a part of it that has a path of its own.
    Patch {
        /// Which object.
        target: ObjectRef,
        /// The part.
        below: Option<Subresource>,
        /// The change.
        patch: Box<Patch>,
    },
    /// Makes a workload as large as an `autoscaling/v1.Scale` says.
    Scale {
        /// Which workload.
        target: ObjectRef,
        /// Its size.
        scale: Box<Value>,
    },
    /// Removes one finalizer, regardless of other changes: a patch.
    RemoveFinalizer {
        /// Which object.
        target: ObjectRef,
        /// The object that was meant; not a later one of the same name.
        uid: Uid,
        /// Which finalizer.
        finalizer: SmolStr,
    },
    /// Says that a terminating namespace is empty.
    FinalizeNamespace {
        /// Which namespace.
        name: SmolStr,
    },
}

/// A part of an object that has a path of its own and is changed apart from the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subresource {
    /// What is.
    Status,
    /// How many.
    Scale,
}

/// What a request wants, without what it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// [`Request::Create`]
    Create,
    /// [`Request::Apply`]
    Apply,
    /// [`Request::Update`]
    Update,
    /// [`Request::UpdateStatus`]
    UpdateStatus,
    /// [`Request::PatchPodStatus`]
    PatchPodStatus,
    /// [`Request::Bind`]
    Bind,
    /// [`Request::Evict`]
    Evict,
    /// [`Request::Delete`]
    Delete,
    /// [`Request::Patch`]
    Patch,
    /// [`Request::Scale`]
    Scale,
    /// [`Request::RemoveFinalizer`]
    RemoveFinalizer,
    /// [`Request::FinalizeNamespace`]
    FinalizeNamespace,
}

/// How to delete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// Only if this is still the object's uid.
    pub uid: Option<Uid>,
    /// Only if this is still the object's version.
    pub resource_version: Option<u64>,
    /// Seconds of grace instead of the object's own; 0 deletes at once.
    pub grace_secs: Option<i64>,
    /// What becomes of its dependents.
    pub propagation: Propagation,
    /// Does it replace an earlier propagation policy? Otherwise background applies only if there was none.
    pub is_settled: bool,
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
    /// What it wants.
    pub fn verb(&self) -> Verb {
        match self {
            Self::Create(_) => Verb::Create,
            Self::Apply(_) => Verb::Apply,
            Self::Update(_) => Verb::Update,
            Self::UpdateStatus(_) => Verb::UpdateStatus,
            Self::PatchPodStatus { .. } => Verb::PatchPodStatus,
            Self::Bind { .. } => Verb::Bind,
            Self::Evict { .. } => Verb::Evict,
            Self::Delete { .. } => Verb::Delete,
            Self::Patch { .. } => Verb::Patch,
            Self::Scale { .. } => Verb::Scale,
            Self::RemoveFinalizer { .. } => Verb::RemoveFinalizer,
            Self::FinalizeNamespace { .. } => Verb::FinalizeNamespace,
        }
    }

    /// The object it is about.
    pub fn target(&self) -> ObjectRef {
        match self {
            Self::Create(object) | Self::Apply(object) | Self::Update(object) | Self::UpdateStatus(object) => {
                object.reference()
            }
            Self::PatchPodStatus { pod, .. } | Self::Bind { pod, .. } | Self::Evict { pod } => {
                ObjectRef::new(POD.clone(), pod.clone())
            }
            Self::Delete { target, .. }
            | Self::Patch { target, .. }
            | Self::Scale { target, .. }
            | Self::RemoveFinalizer { target, .. } => target.clone(),
            Self::FinalizeNamespace { name } => ObjectRef::new(NAMESPACE.clone(), ObjectKey::cluster(name.clone())),
        }
    }

    /// A new object.
    pub fn create(object: Object) -> Self {
        Self::Create(Box::new(object))
    }

    /// Server-side apply.
    pub fn apply(object: Object) -> Self {
        Self::Apply(Box::new(object))
    }

    /// An update of metadata and spec.
    pub fn update(object: Object) -> Self {
        Self::Update(Box::new(object))
    }

    /// An update of the status.
    pub fn update_status(object: Object) -> Self {
        Self::UpdateStatus(Box::new(object))
    }
}

//! The result of reading one object.

use bytes::Bytes;
use sk_core::{ObjectRef, OwnerReference, PodLifecycle, SimTime, SmolStr};
use sk_store::trace::Wait;

use crate::sanitise::TemplatePlace;

/// One observation of one object: its name, its owners, and what is kept of it, with private values hashed.
#[derive(Clone, Debug)]
pub struct Sighting {
    /// Kind, namespace and name.
    pub object: ObjectRef,
    /// Its uid.
    pub uid: SmolStr,
    /// The version of the object that was seen; a watch continues after it.
    pub resource_version: SmolStr,
    /// Everybody it belongs to.
    pub owners: Vec<OwnerReference>,
    /// What is kept of it, if its kind is recorded.
    pub(crate) tracked: Option<Tracked>,
    /// How it is doing, if it is a pod.
    pub(crate) pod: Option<Box<PodLook>>,
    /// What is kept of it for the record of nodes, if it is a node.
    pub(crate) node: Option<Bytes>,
}

/// What is kept of an object whose kind is recorded.
#[derive(Clone, Debug)]
pub(crate) struct Tracked {
    /// The sanitised object as compact JSON.
    pub(crate) body: Bytes,
    /// Tells one body from another.
    pub(crate) body_hash: u128,
    /// Where its pod templates stand in the body.
    pub(crate) templates: Vec<TemplatePlace>,
}

/// How a pod is doing.
#[derive(Clone, Debug)]
pub(crate) struct PodLook {
    pub(crate) created: Option<SimTime>,
    /// When it is to be gone at the latest.
    pub(crate) deleting: Option<SimTime>,
    pub(crate) node: Option<SmolStr>,
    /// When the scheduler had bound it.
    pub(crate) scheduled: Option<SimTime>,
    /// Why it is not bound.
    pub(crate) wait: Option<Wait>,
    pub(crate) life: PodLifecycle,
    /// What its containers failed with.
    pub(crate) exit_code: Option<i32>,
    /// The pod as it came. A pod that is new is read once more, for its hash, its requests and its template; one that is
    /// known is not, so that an ordinary change of status costs no tree.
    pub(crate) raw: Bytes,
}

//! One stored version of an object.
//!
//! Versions share their sections. An object's identity never changes and sits behind one pointer; labels, annotations,
//! owners and spec sit behind others. So a status write copies a few words, and a thousand pods of one template hold
//! one spec. JSON is made on request and not kept. `rest` keeps the fields that the engine does not read, so what
//! comes out is what went in.

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;
use std::sync::Arc;

use serde_json::{Map, Value};
use sk_core::{Gvk, ObjectKey, ObjectRef, SimTime, SmolStr};

use crate::Labels;
use crate::kinds::{
    Body, CronJob, DaemonSet, Deployment, Job, Namespace, Node, Pod, ReplicaSet, ReplicationController, StatefulSet,
};
use crate::managed::MANAGED_FIELDS;

/// Fields that the engine does not read, as they came.
pub type Rest = Option<Arc<Map<String, Value>>>;

/// An object as the API server holds it. Who it is can be read on it directly ([`Identity`]).
#[derive(Clone, Debug)]
pub struct Object {
    identity: Arc<Identity>,
    /// When it last changed, in the order of the run; 0 before it is stored.
    pub resource_version: u64,
    /// The part of its metadata that may change.
    pub meta: Meta,
    /// What is in it.
    pub body: Body,
    /// Fields beside `metadata` and what its kind is known to have.
    pub rest: Rest,
}

/// Who an object is, from its creation to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its kind.
    pub gvk: GvkRef,
    /// Its namespace and name.
    pub key: ObjectKey,
    /// Distinguishes it from earlier ones of the same name.
    pub uid: Uid,
    /// When it was created.
    pub created: SimTime,
    /// Prefix from which the server made the name.
    pub generate_name: Option<SmolStr>,
}

/// A kind in a word: one of ours, or shared.
#[derive(Clone, Debug)]
pub enum GvkRef {
    /// A kind whose insides are understood.
    Known(&'static Gvk),
    /// Any other.
    Shared(Arc<Gvk>),
}

/// Metadata that may change while an object lives.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meta {
    /// Counts changes of what is desired, not of status.
    pub generation: i64,
    /// Set once a client has asked for its deletion.
    pub deletion: Option<Deletion>,
    /// Labels.
    pub labels: Labels,
    /// Annotations.
    pub annotations: Labels,
    /// Its owners; when all of them are deleted, so is the object.
    pub owners: Arc<[OwnerRef]>,
    /// Its finalizers.
    pub finalizers: Arc<[SmolStr]>,
    /// Managed fields and all other metadata.
    pub rest: Rest,
}

/// A deletion under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// The `deletionTimestamp`: time of the request plus grace period.
    pub at: SimTime,
    /// Seconds it was given.
    pub grace_secs: i64,
}

/// Points from an object to its owner.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OwnerRef {
    /// The owner's kind.
    pub gvk: GvkRef,
    /// The owner's name, in the same namespace or cluster-scoped.
    pub name: SmolStr,
    /// The owner's uid: a later object of the same name is not the owner.
    pub uid: Uid,
    /// Is it the managing controller? `None`: the field was not there.
    pub controller: Option<bool>,
    /// Must a foreground deletion of the owner wait for this object?
    pub block_owner_deletion: Option<bool>,
}

/// What makes an object unique in all time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid(pub u128);

impl Object {
    /// An object that no server has seen: no uid, no version.
    pub fn new(gvk: impl Into<GvkRef>, key: ObjectKey, meta: Meta, body: Body) -> Self {
        let identity =
            Identity { gvk: gvk.into(), key, uid: Uid::default(), created: SimTime::EPOCH, generate_name: None };
        Self { identity: Arc::new(identity), resource_version: 0, meta, body, rest: None }
    }

    /// The same, whose name the server is to make from `prefix`.
    pub fn with_generate_name(mut self, prefix: impl Into<SmolStr>) -> Self {
        self.identity_mut().generate_name = Some(prefix.into());
        self
    }

    /// The same object under another name or in another namespace.
    pub fn with_key(mut self, key: ObjectKey) -> Self {
        self.identity_mut().key = key;
        self
    }

    /// The same object with another body.
    pub(crate) fn with_body(&self, body: Body) -> Self {
        Self {
            identity: self.identity.clone(),
            resource_version: self.resource_version,
            meta: self.meta.clone(),
            body,
            rest: self.rest.clone(),
        }
    }

    /// Who it is, to change: only before it is stored.
    pub(crate) fn identity_mut(&mut self) -> &mut Identity {
        Arc::make_mut(&mut self.identity)
    }

    /// Who it is, shared with its other versions.
    pub fn identity(&self) -> &Arc<Identity> {
        &self.identity
    }

    /// Takes over the identity of another object: becomes a new version of it.
    pub(crate) fn set_identity(&mut self, identity: Arc<Identity>) {
        self.identity = identity;
    }

    /// The managed fields; `null` or an empty list for none.
    pub(crate) fn set_managers(&mut self, managers: Value) {
        let mut rest = self.meta.rest.as_deref().cloned().unwrap_or_default();
        rest.remove(MANAGED_FIELDS);
        if managers.as_array().is_some_and(|managers| !managers.is_empty()) {
            rest.insert(MANAGED_FIELDS.to_owned(), managers);
        }
        self.meta.rest = (!rest.is_empty()).then(|| Arc::new(rest));
    }

    /// Kind and key together.
    pub fn reference(&self) -> ObjectRef {
        ObjectRef::new(Gvk::clone(&self.gvk), self.key.clone())
    }

    /// The owner that manages this object, if any.
    pub fn controller(&self) -> Option<&OwnerRef> {
        self.meta.owners.iter().find(|owner| owner.controller == Some(true))
    }

    /// Are its owners those of `other`? Versions of one object mostly share them, which is seen at a glance.
    pub fn has_owners_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.meta.owners, &other.meta.owners) || self.meta.owners == other.meta.owners
    }

    /// A reference by which a dependent names this object as its managing controller.
    pub fn as_controller(&self) -> OwnerRef {
        OwnerRef {
            gvk: self.gvk.clone(),
            name: self.key.name.clone(),
            uid: self.uid,
            controller: Some(true),
            block_owner_deletion: Some(true),
        }
    }

    /// Does it have a `deletionTimestamp`?
    pub fn is_deleting(&self) -> bool {
        self.meta.deletion.is_some()
    }

    /// The pod in it.
    pub fn pod(&self) -> Option<&Pod> {
        if let Body::Pod(pod) = &self.body { Some(pod) } else { None }
    }

    /// The pod in it, to change.
    pub fn pod_mut(&mut self) -> Option<&mut Pod> {
        if let Body::Pod(pod) = &mut self.body { Some(pod) } else { None }
    }

    /// The node in it.
    pub fn node(&self) -> Option<&Node> {
        if let Body::Node(node) = &self.body { Some(node) } else { None }
    }

    /// The node in it, to change.
    pub fn node_mut(&mut self) -> Option<&mut Node> {
        if let Body::Node(node) = &mut self.body { Some(node) } else { None }
    }

    /// The deployment in it.
    pub fn deployment(&self) -> Option<&Deployment> {
        if let Body::Deployment(deployment) = &self.body { Some(deployment) } else { None }
    }

    /// The replica set in it, or the one that a replication controller amounts to.
    pub fn replica_set(&self) -> Option<&ReplicaSet> {
        match &self.body {
            Body::ReplicaSet(set) | Body::ReplicationController(ReplicationController(set)) => Some(set),
            Body::Pod(_)
            | Body::Node(_)
            | Body::Namespace(_)
            | Body::Deployment(_)
            | Body::StatefulSet(_)
            | Body::DaemonSet(_)
            | Body::Job(_)
            | Body::CronJob(_)
            | Body::Other(_) => None,
        }
    }

    /// The Job in it.
    pub fn job(&self) -> Option<&Job> {
        if let Body::Job(job) = &self.body { Some(job) } else { None }
    }

    /// The CronJob in it.
    pub fn cron_job(&self) -> Option<&CronJob> {
        if let Body::CronJob(cron) = &self.body { Some(cron) } else { None }
    }

    /// The stateful set in it.
    pub fn stateful_set(&self) -> Option<&StatefulSet> {
        if let Body::StatefulSet(set) = &self.body { Some(set) } else { None }
    }

    /// The daemon set in it.
    pub fn daemon_set(&self) -> Option<&DaemonSet> {
        if let Body::DaemonSet(set) = &self.body { Some(set) } else { None }
    }

    /// The namespace in it.
    pub fn namespace(&self) -> Option<&Namespace> {
        if let Body::Namespace(namespace) = &self.body { Some(namespace) } else { None }
    }
}

impl fmt::Display for Identity {
    /// As [`ObjectRef`] names an object to a person.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.gvk.kind, self.key)
    }
}

impl Deref for Object {
    type Target = Identity;

    fn deref(&self) -> &Identity {
        &self.identity
    }
}

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        (Arc::ptr_eq(&self.identity, &other.identity) || self.identity == other.identity)
            && self.resource_version == other.resource_version
            && self.meta == other.meta
            && self.body == other.body
            && self.rest == other.rest
    }
}

impl GvkRef {
    /// Which body objects of this kind have.
    pub fn tag(&self) -> crate::KindTag {
        match self {
            Self::Known(gvk) => crate::kinds::tag_of(gvk),
            Self::Shared(_) => crate::KindTag::Other,
        }
    }
}

impl Deref for GvkRef {
    type Target = Gvk;

    fn deref(&self) -> &Gvk {
        match self {
            Self::Known(gvk) => gvk,
            Self::Shared(gvk) => gvk,
        }
    }
}

impl PartialEq for GvkRef {
    fn eq(&self, other: &Self) -> bool {
        *self == **other
    }
}

impl Eq for GvkRef {}

impl PartialOrd for GvkRef {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for GvkRef {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        Gvk::cmp(self, other)
    }
}

impl PartialEq<Gvk> for GvkRef {
    /// Kinds that differ mostly differ in length, so they go first.
    #[inline]
    fn eq(&self, other: &Gvk) -> bool {
        std::ptr::eq(&**self, other) || (self.kind == other.kind && **self == *other)
    }
}

impl From<&'static Gvk> for GvkRef {
    fn from(gvk: &'static Gvk) -> Self {
        Self::Known(gvk)
    }
}

impl From<Gvk> for GvkRef {
    fn from(gvk: Gvk) -> Self {
        match crate::kinds::known(&gvk) {
            Some(known) => Self::Known(known),
            None => Self::Shared(Arc::new(gvk)),
        }
    }
}

impl fmt::Display for Uid {
    /// As a random (version 4) UUID.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text().as_str())
    }
}

/// A uid as it is written, without an allocation.
#[derive(Clone, Copy, Debug)]
pub struct UidText([u8; 36]);

impl UidText {
    /// The text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("digits and hyphens are UTF-8")
    }
}

impl Uid {
    /// From random bits: version and variant are put in, so that it reads as the UUIDs Kubernetes makes.
    pub fn from_random_bits(bits: u128) -> Self {
        const VERSION: u128 = 0xf << 76;
        const VARIANT: u128 = 0x3 << 62;
        Self(bits & !(VERSION | VARIANT) | (0x4 << 76) | (0x2 << 62))
    }

    /// As a UUID is written: 8, 4, 4, 4 and 12 hexadecimal digits.
    pub fn text(self) -> UidText {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        /// The positions of each byte's two digits.
        const PLACES: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
        let mut text = [b'-'; 36];
        for (byte, place) in self.0.to_be_bytes().into_iter().zip(PLACES) {
            text[place] = DIGITS[usize::from(byte >> 4)];
            text[place + 1] = DIGITS[usize::from(byte & 0xf)];
        }
        UidText(text)
    }
}

/// The text is no UUID.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no uid: expected 32 hexadecimal digits in the form of a UUID")]
pub struct ParseUidError(String);

impl FromStr for Uid {
    type Err = ParseUidError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = || ParseUidError(text.chars().take(80).collect());
        let digits: String = text.chars().filter(|&char| char != '-').collect();
        if digits.len() != 32 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(refuse());
        }
        u128::from_str_radix(&digits, 16).map(Self).map_err(|_| refuse())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uids_read_as_random_uuids_and_come_back() {
        let uid = Uid::from_random_bits(u128::MAX);
        assert_eq!(uid.to_string(), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(uid.to_string().parse::<Uid>().unwrap(), uid);
        for text in ["", "x", "+fffffff-ffff-4fff-bfff-ffffffffffff"] {
            assert!(text.parse::<Uid>().is_err(), "{text}");
        }
    }
}

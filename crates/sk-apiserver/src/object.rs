//! One stored version of an object.
//!
//! Kept in sections that a change can share: labels, annotations and pod specs sit behind `Arc`, so a status write
//! copies a few words and a thousand pods of one template hold one spec. JSON is made when somebody asks and not kept.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use sk_core::{Gvk, ObjectKey, ObjectRef, SimTime, SmolStr};

use crate::kinds::{Deployment, Namespace, Node, Other, Pod, ReplicaSet};

/// Labels or annotations.
pub type Labels = Arc<BTreeMap<SmolStr, SmolStr>>;

/// An object as the API server holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// Its kind.
    pub gvk: Gvk,
    /// Its namespace and name.
    pub key: ObjectKey,
    /// When it last changed, in the order of the run; 0 before it is stored.
    pub resource_version: u64,
    /// Its metadata.
    pub meta: Meta,
    /// What is in it.
    pub body: Body,
}

/// Metadata beside kind, name and resource version.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meta {
    /// Distinguishes this object from earlier ones of the same name.
    pub uid: Uid,
    /// Counts changes of what is desired, not of status.
    pub generation: i64,
    /// When it was created.
    pub created: SimTime,
    /// Set once somebody asked for its deletion.
    pub deletion: Option<Deletion>,
    /// Labels.
    pub labels: Labels,
    /// Annotations.
    pub annotations: Labels,
    /// Who owns it; when all owners are gone it is garbage.
    pub owners: Vec<OwnerRef>,
    /// Who must agree before it goes.
    pub finalizers: Vec<SmolStr>,
    /// Prefix from which the server makes the name.
    pub generate_name: Option<SmolStr>,
}

/// A deletion under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// When it is to be gone (Kubernetes' deletionTimestamp: request plus grace).
    pub at: SimTime,
    /// Seconds it was given.
    pub grace_secs: i64,
}

/// Points from an object to its owner.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OwnerRef {
    /// The owner's kind.
    pub gvk: Gvk,
    /// The owner's name, in the same namespace or cluster-scoped.
    pub name: SmolStr,
    /// The owner's uid: a later object of the same name is not the owner.
    pub uid: Uid,
    /// Is it the managing controller?
    pub controller: bool,
    /// Must a foreground deletion of the owner wait for this object?
    pub block_owner_deletion: bool,
}

/// What makes an object unique in all time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid(pub u128);

/// The part of an object that depends on its kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// `v1.Pod`
    Pod(Pod),
    /// `v1.Node`
    Node(Node),
    /// `v1.Namespace`
    Namespace(Namespace),
    /// `apps/v1.Deployment`
    Deployment(Deployment),
    /// `apps/v1.ReplicaSet`
    ReplicaSet(ReplicaSet),
    /// Any other kind, kept as it came.
    Other(Other),
}

impl Object {
    /// Kind and key together.
    pub fn reference(&self) -> ObjectRef {
        ObjectRef::new(self.gvk.clone(), self.key.clone())
    }

    /// The owner that manages this object, if any.
    pub fn controller(&self) -> Option<&OwnerRef> {
        self.meta.owners.iter().find(|owner| owner.controller)
    }

    /// A reference by which a dependent names this object as its managing controller.
    pub fn as_controller(&self) -> OwnerRef {
        OwnerRef {
            gvk: self.gvk.clone(),
            name: self.key.name.clone(),
            uid: self.meta.uid,
            controller: true,
            block_owner_deletion: true,
        }
    }

    /// Has somebody asked for its deletion?
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

    /// The replica set in it.
    pub fn replica_set(&self) -> Option<&ReplicaSet> {
        if let Body::ReplicaSet(replica_set) = &self.body { Some(replica_set) } else { None }
    }

    /// The namespace in it.
    pub fn namespace(&self) -> Option<&Namespace> {
        if let Body::Namespace(namespace) = &self.body { Some(namespace) } else { None }
    }
}

impl fmt::Display for Uid {
    /// As a random (version 4) UUID.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = format!("{:032x}", self.0);
        write!(f, "{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }
}

impl Uid {
    /// From random bits: version and variant are put in, so that it reads as the UUIDs Kubernetes makes.
    pub fn from_random_bits(bits: u128) -> Self {
        const VERSION: u128 = 0xf << 76;
        const VARIANT: u128 = 0x3 << 62;
        Self(bits & !(VERSION | VARIANT) | (0x4 << 76) | (0x2 << 62))
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

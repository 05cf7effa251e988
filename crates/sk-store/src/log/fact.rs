//! Facts: the entries of the event log, each with the time at which the tracer received it.
//!
//! Facts are sanitised and private values are hashed before they arrive here. Which of them an export contains is
//! decided at export time, because events of several watches arrive in any order.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sk_core::{Gvk, ObjectKey, ObjectRef, OwnerReference, SimTime, SmolStr, StableHash, TemplateId};

use crate::trace::{Gap, Wait};

/// A fact in its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// When the tracer received it.
    pub at: SimTime,
    /// Strictly increasing within a log, also over restarts.
    pub seq: u64,
    /// What was seen.
    pub fact: Fact,
}

/// What the tracer saw.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// An object of a tracked kind was created or changed.
    Applied(Applied),
    /// An object of a tracked kind is gone.
    Deleted(Deleted),
    /// An object that is not recorded itself stands between a pod and its recorded owner: a ReplicaSet, a Job.
    Link(Link),
    /// Such an object is gone.
    Unlinked(SmolStr),
    /// What is known of a pod from now on. Once [`PodFacts::deleted`] is set, it is the last that is heard of it.
    Pod(Box<PodFacts>),
    /// A node came or changed to this (its Node object as compact JSON), or is gone (`None`).
    Node(SmolStr, Option<Bytes>),
    /// A time that a watch did not see. One of a kind ends what [`Fact::Lost`] began for it.
    Gap(Gap),
    /// A watch has seen everything up to this resource version.
    Watched(Watched),
    /// The watch of a kind cannot go on from where it was. What happens since its last position is missed until the kind
    /// is listed again and a [`Fact::Gap`] says until when; if the tracer is killed before it writes that, this entry replaces it.
    Lost(Gvk),
}

/// An object of a tracked kind, as it is from now on.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// Kind, namespace and name.
    pub object: ObjectRef,
    /// Its uid: an object recreated under its name is another one.
    pub uid: SmolStr,
    /// Everybody it belongs to.
    pub owners: Vec<OwnerReference>,
    /// The sanitised object as compact JSON.
    pub body: Bytes,
}

/// How far a watch has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    /// Of which kind.
    pub kind: Gvk,
    /// The resource version up to which it has seen everything.
    pub version: SmolStr,
    /// Until when nothing can have happened that it has not seen. That is before this is recorded, and how long before
    /// nobody else can tell; if absent, as in logs of older versions, it is when this is recorded.
    pub seen: Option<SimTime>,
}

/// An object of a tracked kind that is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deleted {
    /// Kind, namespace and name.
    pub object: ObjectRef,
    /// Which of those that had the name.
    pub uid: SmolStr,
}

/// An object whose owners matter though it is not recorded itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Kind, namespace and name.
    pub object: ObjectRef,
    /// Its uid.
    pub uid: SmolStr,
    /// Everybody it belongs to.
    pub owners: Vec<OwnerReference>,
}

/// All that is known of one pod.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PodFacts {
    /// Its uid, which distinguishes lives.
    pub uid: SmolStr,
    /// Its namespace and name.
    pub pod: ObjectKey,
    /// Everybody it belongs to, itself.
    pub owners: Vec<OwnerReference>,
    /// Its tracked ancestors, nearest first, with the template of each that it was made from. A pod of a tracked kind
    /// is its own ancestor and comes first.
    pub attributions: Vec<Attribution>,
    /// The stable hash of the admitted pod, taken before anything was made private; v2 needs it. Only of pods whose lives
    /// are recorded, because whoever guesses what a pod said can check the guess against it.
    pub pod_hash: Option<StableHash>,
    /// When the API server created it.
    pub created: SimTime,
    /// When the scheduler bound it.
    pub scheduled: Option<SimTime>,
    /// When its first container started.
    pub started: Option<SimTime>,
    /// When its last container ended.
    pub finished: Option<SimTime>,
    /// When it was gone.
    pub deleted: Option<SimTime>,
    /// Is its end a guess, because it disappeared within a gap?
    pub guessed: bool,
    /// What its containers ended with, if they failed.
    #[serde(default)]
    pub exit_code: Option<i32>,
    /// Where it ran.
    pub node: Option<SmolStr>,
    /// Every change of why it was not scheduled, the oldest dropped beyond a bound.
    pub waits: Vec<Wait>,
    /// What it asked for, as the scheduler counts it and Kubernetes writes quantities.
    pub requests: BTreeMap<SmolStr, String>,
}

/// One tracked ancestor of a pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attribution {
    /// The ancestor.
    pub owner: ObjectRef,
    /// Its uid.
    pub uid: SmolStr,
    /// The template in it that the pod was created from, if known.
    pub template: Option<TemplateId>,
    /// Are lives wanted of this kind?
    pub track_lifecycle: bool,
}

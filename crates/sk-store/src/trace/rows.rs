//! Everything in a trace besides its records: lifecycles, observations, nodes, reservations, gaps, and the index of v2.
//!
//! Each row is independent of the others, so all of them can be streamed. Their JSON is the same in JSON Lines and in the
//! native format.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sk_core::{Gvk, ObjectKey, ObjectRef, SimTime, SmolStr, StableHash, TemplateId};

use super::lives::OwnerLives;
use super::text;

/// One row of any section.
#[derive(Clone, Debug, PartialEq)]
pub enum Row {
    /// How long pods lived.
    Lives(OwnerLives),
    /// What happened to one pod.
    Observation(Observation),
    /// What happened to one node.
    Node(NodeEvent),
    /// What pods outside the trace took from a node.
    Reserved(Reserved),
    /// A time the recording did not see.
    Gap(Gap),
    /// v2's bookkeeping, carried.
    Index(IndexPart),
}

/// Which kind of row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Section {
    /// [`Row::Lives`].
    Lives,
    /// [`Row::Observation`].
    Observations,
    /// [`Row::Node`].
    Nodes,
    /// [`Row::Reserved`].
    Reserved,
    /// [`Row::Gap`].
    Gaps,
    /// [`Row::Index`].
    Index,
}

impl Section {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Lives, Self::Observations, Self::Nodes, Self::Reserved, Self::Gaps, Self::Index];
}

impl Row {
    /// Where it belongs.
    pub fn section(&self) -> Section {
        match self {
            Self::Lives(_) => Section::Lives,
            Self::Observation(_) => Section::Observations,
            Self::Node(_) => Section::Nodes,
            Self::Reserved(_) => Section::Reserved,
            Self::Gap(_) => Section::Gaps,
            Self::Index(_) => Section::Index,
        }
    }
}

/// What really happened to one pod while the trace was recorded: the truth that a replay is compared with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Observation {
    /// Its namespace and name.
    pub pod: ObjectKey,
    /// Who it belonged to in the end; `None` for a bare pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<ObjectRef>,
    /// The template of its owner that it was created from, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<TemplateId>,
    /// When the API server created it.
    #[serde(with = "text::time")]
    pub created: SimTime,
    /// When the scheduler bound it.
    #[serde(default, with = "text::maybe_time", skip_serializing_if = "Option::is_none")]
    pub scheduled: Option<SimTime>,
    /// When its first container started.
    #[serde(default, with = "text::maybe_time", skip_serializing_if = "Option::is_none")]
    pub started: Option<SimTime>,
    /// When its last container ended.
    #[serde(default, with = "text::maybe_time", skip_serializing_if = "Option::is_none")]
    pub finished: Option<SimTime>,
    /// When it was gone; a pod may go without ever having run.
    #[serde(default, with = "text::maybe_time", skip_serializing_if = "Option::is_none")]
    pub deleted: Option<SimTime>,
    /// Is its end a guess, because it disappeared within a gap?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub guessed: bool,
    /// Where it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<SmolStr>,
    /// Every change of why it was not scheduled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<Wait>,
}

/// From then on a pod waited for this reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wait {
    /// When the `PodScheduled` condition began to say so.
    #[serde(with = "text::time")]
    pub at: SimTime,
    /// The condition's reason, e.g. `Unschedulable`.
    pub reason: SmolStr,
    /// The condition's message, e.g. `0/3 nodes are available: 3 Insufficient cpu.`
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A node came, changed or went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeEvent {
    /// When.
    #[serde(with = "text::time")]
    pub at: SimTime,
    /// Its name.
    pub node: SmolStr,
    /// The Node object from then on; `None` when it was gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<Value>,
}

/// What pods that are not in the trace (DaemonSets, static pods, untracked ones) took from a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reserved {
    /// From when on.
    #[serde(with = "text::time")]
    pub at: SimTime,
    /// Which node.
    pub node: SmolStr,
    /// How many pods they were.
    pub pods: u32,
    /// The sum of their requests, as Kubernetes writes quantities.
    pub requests: BTreeMap<SmolStr, String>,
}

/// A time the recording did not see: the tracer was down, or a watch had to start anew.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gap {
    /// The last moment that was seen.
    #[serde(with = "text::time")]
    pub from: SimTime,
    /// The first moment that was seen again.
    #[serde(with = "text::time")]
    pub to: SimTime,
    /// Of which kind nothing was seen; `None` if it was nothing at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Gvk>,
    /// Why, for people.
    pub reason: String,
}

/// A part of the `index` of a v2 trace (or the `tracked_objects` of version 3, which has no hashes). It says nothing
/// that the objects do not say; it is carried so that the trace comes back unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IndexPart {
    /// A kind, as the trace spells it.
    pub kind: String,
    /// Its objects, as the trace spells them, with the hash of their spec.
    #[serde(with = "text::hashes")]
    pub objects: Vec<(String, Option<StableHash>)>,
}

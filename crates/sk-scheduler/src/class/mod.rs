//! Everything that scheduling reads in a pod, parsed once.
//!
//! Pods of one template are equal to every plugin, so a pod is a [`ClassId`](super::ClassId) and a name. A class has
//! two halves. The *shape* is what those plugins need that compare one pod with one node (requests, node affinity,
//! tolerations, ports, images): its results are kept per node. The rest (namespace, labels, pod affinity, topology
//! spread, claims, priority) is compared with other pods and objects.
//!
//! [`PodClass::from_json`] reads a pod as an API server returns it. It applies those defaults of the API server that
//! change placement, so it reads a pod from a plain manifest in the same way.

mod affinity;
mod json;
mod passed_through;
mod requests;

use std::collections::BTreeMap;

use sk_core::{LabelSelector, SmolStr, Toleration};

pub use affinity::{NodeSelectorTerm, PodAffinityTerm};
pub use json::{ClassError, MAX_EXTENDED_RESOURCES, MAX_TERMS};
pub(crate) use json::{amounts, node_selector_term, spread_constraint, texts};
pub use passed_through::PassedThrough;
pub use requests::Requests;
pub(crate) use requests::is_scalar;

/// The scheduler that a pod without `schedulerName` is for.
pub const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// Everything in a pod that decides where it may run, and what it means to other pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodClass {
    /// Its namespace.
    pub namespace: SmolStr,
    /// Its labels.
    pub labels: BTreeMap<SmolStr, SmolStr>,
    /// Which profile places it.
    pub scheduler_name: SmolStr,
    /// Higher goes first and may preempt lower.
    pub priority: i32,
    /// `preemptionPolicy: Never`.
    pub never_preempts: bool,
    /// Names of `schedulingGates`; with any the pod does not enter the queue.
    pub gates: Vec<SmolStr>,
    /// Its own `topologySpreadConstraints`.
    pub spread: Vec<SpreadConstraint>,
    /// Affinity to other pods.
    pub affinity: PodAffinity,
    /// The controller that owns it, where that decides about default spreading.
    pub owner: Option<Owner>,
    /// Claims its volumes name.
    pub claims: Vec<Claim>,
    /// What it needs that plugins which are passed through would look at.
    pub passed_through: Vec<PassedThrough>,
    /// What is compared with one node alone.
    pub shape: Shape,
}

/// What plugins look at that compare one pod with one node.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shape {
    /// What it asks for.
    pub requests: Requests,
    /// `spec.nodeName`, for a pod that is created with one.
    pub node_name: Option<SmolStr>,
    /// Labels that a node must have.
    pub node_selector: BTreeMap<SmolStr, SmolStr>,
    /// Required node affinity: one of these must match. `None`: no such rule.
    pub required_affinity: Option<Vec<NodeSelectorTerm>>,
    /// Preferred node affinity with its weights.
    pub preferred_affinity: Vec<(i32, NodeSelectorTerm)>,
    /// Taints it puts up with.
    pub tolerations: Vec<Toleration>,
    /// Ports it takes on the node itself.
    pub ports: Vec<HostPort>,
    /// Images of init containers, containers and image volumes, in that order, each with a tag.
    pub images: Vec<SmolStr>,
    /// Containers and init containers.
    pub containers: u32,
}

/// A port on the node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort {
    /// `0.0.0.0` means every address.
    pub ip: SmolStr,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: SmolStr,
    /// From 1 on.
    pub port: i32,
}

impl HostPort {
    /// Can the two not be open on one node? (`HostPortInfo.CheckConflict`, kube-scheduler/framework/types.go)
    pub fn conflicts(&self, other: &Self) -> bool {
        const ANY: &str = "0.0.0.0";
        self.port == other.port
            && self.protocol == other.protocol
            && (self.ip == ANY || other.ip == ANY || self.ip == other.ip)
    }
}

/// One of a pod's `topologySpreadConstraints`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpreadConstraint {
    /// By how many pods a domain may be ahead.
    pub max_skew: i32,
    /// The label that names a node's domain.
    pub key: SmolStr,
    /// `DoNotSchedule` rather than `ScheduleAnyway`.
    pub hard: bool,
    /// Which pods count, `matchLabelKeys` merged in.
    pub selector: LabelSelector,
    /// With fewer domains the least count is 0.
    pub min_domains: i32,
    /// Only nodes that the pod's node affinity allows count.
    pub honor_affinity: bool,
    /// Only nodes whose taints the pod tolerates count.
    pub honor_taints: bool,
}

/// Affinity to other pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodAffinity {
    /// `podAffinity` or `podAntiAffinity` is there, even if empty.
    pub present: bool,
    /// Required: near pods that match all of these.
    pub required: Vec<PodAffinityTerm>,
    /// Required: not near pods that match any of these.
    pub required_anti: Vec<PodAffinityTerm>,
    /// Preferred: near these.
    pub preferred: Vec<(i32, PodAffinityTerm)>,
    /// Preferred: not near these.
    pub preferred_anti: Vec<(i32, PodAffinityTerm)>,
}

/// The kinds of controller whose selector spreads their pods by default (`helper/spread.go`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OwnerKind {
    /// `v1`.
    ReplicationController,
    /// `apps/v1`.
    ReplicaSet,
    /// `apps/v1`.
    StatefulSet,
}

/// A controlling owner reference.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    /// Which kind.
    pub kind: OwnerKind,
    /// Its name, in the pod's namespace.
    pub name: SmolStr,
}

/// A claim that a volume names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Claim {
    /// The claim, in the pod's namespace. An ephemeral volume's claim is `<pod>-<volume>`, so here it is `-<volume>`.
    pub name: SmolStr,
    /// Made for the pod by the ephemeral volume controller.
    pub ephemeral: bool,
}

impl Claim {
    /// The claim's name for the pod called `pod`.
    pub fn of(&self, pod: &str) -> SmolStr {
        if self.ephemeral { [pod, self.name.as_str()].concat().into() } else { self.name.clone() }
    }
}

impl PodAffinity {
    /// Does any of its terms matter to other pods' placement or its own?
    pub fn has_terms(&self) -> bool {
        !(self.required.is_empty()
            && self.required_anti.is_empty()
            && self.preferred.is_empty()
            && self.preferred_anti.is_empty())
    }
}

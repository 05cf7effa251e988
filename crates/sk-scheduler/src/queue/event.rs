//! Cluster events that may make a waiting pod schedulable, and whether they do.
//!
//! One event has one action, as Kubernetes splits an update by what changed (`framework/events.go`).

use sk_core::SmolStr;

use crate::Cluster;
use crate::class::PodClass;
use crate::cluster::NodeChange;
use crate::cluster::objects::{StorageClass, Volume};
use crate::framework::plugin::{PluginId, PluginSet};
use crate::framework::profile::Compiled;
use crate::ids::{ClassId, PodId};
use crate::node::NodeSpec;

/// What happened to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeAction {
    /// It came.
    Add,
    /// It went.
    Delete,
    /// It has other resources.
    Allocatable,
    /// It has other labels.
    Label,
    /// It has other taints, or is cordoned no more.
    Taint,
}

/// What happened to a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodAction {
    /// It came, or was bound.
    Add,
    /// It went.
    Delete,
    /// It has other labels.
    Label,
    /// It asks for less of something.
    ScaleDown,
    /// Its last scheduling gate was removed.
    GatesEliminated,
    /// It has another number of tolerations.
    Toleration,
    /// Something else.
    Other,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// To a node.
    Node {
        /// Before and after.
        change: NodeChange,
        /// What.
        action: NodeAction,
    },
    /// To a pod that has a node, or to one that went and was nominated for a node.
    PlacedPod {
        /// What.
        action: PodAction,
        /// What it was like.
        before: Option<ClassId>,
        /// What it is like.
        after: Option<ClassId>,
    },
    /// To a pod that waits.
    WaitingPod {
        /// Which.
        pod: PodId,
        /// What.
        action: PodAction,
        /// What it was like.
        before: ClassId,
        /// What it is like.
        after: ClassId,
    },
    /// To a PersistentVolumeClaim.
    Claim {
        /// Its namespace.
        namespace: SmolStr,
        /// Its name.
        name: SmolStr,
    },
    /// To a PersistentVolume.
    Volume {
        /// What it was; `None`: it is new.
        before: Option<Box<Volume>>,
        /// What it is.
        after: Box<Volume>,
    },
    /// To a StorageClass.
    StorageClass {
        /// What it was; `None`: it is new.
        before: Option<Box<StorageClass>>,
        /// What it is.
        after: Box<StorageClass>,
    },
    /// Nothing: pods that have waited long enough are tried whatever happens.
    Timeout,
}

/// What an event is worth to a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// Nothing.
    Skip,
    /// It may fit now.
    Queue,
}

impl Hint {
    pub(crate) fn queue_if(helps: bool) -> Self {
        if helps { Self::Queue } else { Self::Skip }
    }
}

/// The pod that a hint is about.
pub(crate) struct HintCx<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) profile: &'a Compiled,
    pub(crate) class: &'a PodClass,
    /// Which pod, where that matters: otherwise one answer is good for all pods of the class.
    pub(crate) pod: Option<PodId>,
}

impl HintCx<'_> {
    /// Does a volume of the pod name this claim?
    pub(crate) fn names_claim(&self, namespace: &str, name: &str) -> bool {
        let pod = self.pod.map(|pod| self.cluster.pod(pod).name.as_str()).unwrap_or_default();
        self.class.namespace == namespace && self.class.claims.iter().any(|claim| claim.of(pod) == name)
    }
}

impl Event {
    /// The events of a node's coming, change or going (`NodeSchedulingPropertiesChange`).
    pub fn of_node(change: &NodeChange) -> Vec<Self> {
        let actions = match (&change.before, &change.after) {
            (None, None) => Vec::new(),
            (None, Some(_)) => vec![NodeAction::Add],
            (Some(_), None) => vec![NodeAction::Delete],
            (Some(before), Some(after)) => node_actions(before, after),
        };
        actions.into_iter().map(|action| Self::Node { change: change.clone(), action }).collect()
    }

    /// The actions of a pod's change (`PodSchedulingPropertiesChange`).
    pub fn pod_actions(before: &PodClass, after: &PodClass) -> Vec<PodAction> {
        let mut actions = Vec::new();
        if before.labels != after.labels {
            actions.push(PodAction::Label);
        }
        if asks_less(before, after) {
            actions.push(PodAction::ScaleDown);
        }
        if !before.gates.is_empty() && after.gates.is_empty() {
            actions.push(PodAction::GatesEliminated);
        }
        if before.shape.tolerations.len() != after.shape.tolerations.len() {
            actions.push(PodAction::Toleration);
        }
        if actions.is_empty() {
            actions.push(PodAction::Other);
        }
        actions
    }

    /// The plugins that ask to be told of it (`EventsToRegister`); the others' hints are not asked for.
    pub(super) const fn registered(&self) -> PluginSet {
        use PluginId::{
            InterPodAffinity, NodeAffinity, NodeName, NodePorts, NodeResourcesFit, NodeUnschedulable,
            PodTopologySpread, SchedulingGates, TaintToleration, VolumeBinding, VolumeRestrictions, VolumeZone,
        };
        PluginSet::of(match self {
            // Whoever asks for new nodes is told of changed taints too (`scheduler.go`, `buildQueueingHintMap`).
            Self::Node { action: NodeAction::Add, .. } | Self::Node { action: NodeAction::Taint, .. } => &[
                NodeUnschedulable,
                NodeName,
                TaintToleration,
                NodeAffinity,
                NodePorts,
                NodeResourcesFit,
                VolumeRestrictions,
                VolumeBinding,
                VolumeZone,
                PodTopologySpread,
                InterPodAffinity,
            ],
            Self::Node { action: NodeAction::Delete, .. } => &[PodTopologySpread],
            Self::Node { action: NodeAction::Allocatable, .. } => &[NodeResourcesFit],
            Self::Node { action: NodeAction::Label, .. } => {
                &[NodeAffinity, VolumeBinding, VolumeZone, PodTopologySpread, InterPodAffinity]
            }
            Self::PlacedPod { action: PodAction::Add | PodAction::Label, .. }
            | Self::WaitingPod { action: PodAction::Label, .. } => &[PodTopologySpread, InterPodAffinity],
            Self::PlacedPod { action: PodAction::Delete, .. } => {
                &[NodePorts, NodeResourcesFit, PodTopologySpread, InterPodAffinity]
            }
            Self::PlacedPod { action: PodAction::ScaleDown, .. }
            | Self::WaitingPod { action: PodAction::ScaleDown, .. } => &[NodeResourcesFit],
            Self::WaitingPod { action: PodAction::GatesEliminated, .. } => &[SchedulingGates],
            Self::WaitingPod { action: PodAction::Toleration, .. } => {
                &[NodeUnschedulable, TaintToleration, PodTopologySpread]
            }
            Self::PlacedPod {
                action: PodAction::GatesEliminated | PodAction::Toleration | PodAction::Other, ..
            }
            | Self::WaitingPod { action: PodAction::Add | PodAction::Delete | PodAction::Other, .. } => &[],
            Self::Claim { .. } => &[VolumeRestrictions, VolumeBinding, VolumeZone],
            Self::Volume { .. } | Self::StorageClass { .. } => &[VolumeBinding, VolumeZone],
            Self::Timeout => PluginId::ALL,
        })
    }

    /// Does it matter which pod of a class is asked about?
    /// The classes that it names.
    pub(super) fn classes(&self) -> impl Iterator<Item = ClassId> + use<> {
        let classes = match self {
            Self::PlacedPod { before, after, .. } => [*before, *after],
            Self::WaitingPod { before, after, .. } => [Some(*before), Some(*after)],
            Self::Node { .. }
            | Self::Claim { .. }
            | Self::Volume { .. }
            | Self::StorageClass { .. }
            | Self::Timeout => [None, None],
        };
        classes.into_iter().flatten()
    }

    pub(super) fn is_about_one_pod(&self) -> bool {
        matches!(self, Self::WaitingPod { .. } | Self::Claim { .. })
    }
}

fn node_actions(before: &NodeSpec, after: &NodeSpec) -> Vec<NodeAction> {
    let resources = |spec: &NodeSpec| (spec.cpu, spec.memory, spec.ephemeral, spec.pods, spec.scalars.clone());
    let mut actions = Vec::new();
    if before.unschedulable && !after.unschedulable {
        actions.push(NodeAction::Taint);
    }
    if resources(before) != resources(after) {
        actions.push(NodeAction::Allocatable);
    }
    if before.labels != after.labels {
        actions.push(NodeAction::Label);
    }
    if before.taints != after.taints {
        actions.push(NodeAction::Taint);
    }
    actions
}

fn asks_less(before: &PodClass, after: &PodClass) -> bool {
    let (old, new) = (&before.shape.requests, &after.shape.requests);
    let now = |name: &SmolStr| new.scalars.iter().find(|(known, _)| known == name).map_or(-1, |(_, amount)| *amount);
    old.cpu > new.cpu
        || old.memory > new.memory
        || old.ephemeral > new.ephemeral
        || old.scalars.iter().any(|(name, amount)| *amount > now(name))
}

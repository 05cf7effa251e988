//! The state of one scheduling cycle, and the parts of it that are kept between cycles because they are expensive.

use super::profile::Compiled;
use crate::Cluster;
use crate::class::PodClass;
use crate::cluster::classes::ShapeEntry;
use crate::counters::Counters;
use crate::framework::plugin::PluginSet;
use crate::ids::{ClassId, PodId};
use crate::plugins::{inter_pod_affinity, pod_topology_spread, volume_binding, volume_zone};

/// The pod that a cycle is about, and what it is compared with.
pub(crate) struct Cx<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) profile: &'a Compiled,
    pub(crate) pod: PodId,
    pub(crate) class_id: ClassId,
    pub(crate) class: &'a PodClass,
    pub(crate) shape: &'a ShapeEntry,
}

/// What the plugins found out about the pod in this cycle.
#[derive(Clone, Debug, Default)]
pub(crate) struct CycleState {
    /// Plugins whose filter has nothing to say.
    pub(crate) skipped: PluginSet,
    pub(crate) spread: pod_topology_spread::State,
    pub(crate) affinity: inter_pod_affinity::State,
    pub(crate) volumes: volume_binding::State,
    pub(crate) zones: volume_zone::State,
}

/// What is kept between cycles.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caches {
    pub(crate) counters: Counters,
    pub(crate) spread: pod_topology_spread::Memory,
    pub(crate) affinity: inter_pod_affinity::Memory,
}

//! The plugins of the default profile, one file each, with Kubernetes' names.
//!
//! The arithmetic of plugins that compare one pod with one node is in plain functions. The columns of
//! [`super::framework`] call them for node after node; the [`Plugin`] trait calls the same functions for one node in a
//! dry run. Integers as in Go; floats in Go's order of operations.

pub(crate) mod default_preemption;
pub(crate) mod image_locality;
pub(crate) mod inter_pod_affinity;
pub(crate) mod node_affinity;
pub(crate) mod node_name;
pub(crate) mod node_ports;
pub(crate) mod node_resources_balanced_allocation;
pub(crate) mod node_resources_fit;
pub(crate) mod node_unschedulable;
pub(crate) mod pod_topology_spread;
pub(crate) mod scheduling_gates;
pub(crate) mod taint_toleration;
pub(crate) mod volume_binding;
pub(crate) mod volume_restrictions;
pub(crate) mod volume_zone;

use super::framework::plugin::{Plugin, PluginId};

/// The best score a plugin can give.
pub const MAX_NODE_SCORE: i64 = 100;

/// A plugin that says nothing: its pods are counted as [`super::class::PassedThrough`], or it works elsewhere (the queue's
/// order, binding).
struct Passed;

impl Plugin for Passed {}

pub(crate) fn get(id: PluginId) -> &'static dyn Plugin {
    match id {
        PluginId::SchedulingGates => &scheduling_gates::SchedulingGates,
        PluginId::NodeUnschedulable => &node_unschedulable::NodeUnschedulable,
        PluginId::NodeName => &node_name::NodeName,
        PluginId::TaintToleration => &taint_toleration::TaintToleration,
        PluginId::NodeAffinity => &node_affinity::NodeAffinity,
        PluginId::NodePorts => &node_ports::NodePorts,
        PluginId::NodeResourcesFit => &node_resources_fit::NodeResourcesFit,
        PluginId::VolumeRestrictions => &volume_restrictions::VolumeRestrictions,
        PluginId::VolumeBinding => &volume_binding::VolumeBinding,
        PluginId::VolumeZone => &volume_zone::VolumeZone,
        PluginId::PodTopologySpread => &pod_topology_spread::PodTopologySpread,
        PluginId::InterPodAffinity => &inter_pod_affinity::InterPodAffinity,
        PluginId::DefaultPreemption => &default_preemption::DefaultPreemption,
        PluginId::NodeResourcesBalancedAllocation => &node_resources_balanced_allocation::BalancedAllocation,
        PluginId::ImageLocality => &image_locality::ImageLocality,
        PluginId::PrioritySort
        | PluginId::NodeVolumeLimits
        | PluginId::DynamicResources
        | PluginId::DefaultBinder
        | PluginId::NodeDeclaredFeatures => &Passed,
    }
}

/// `DefaultNormalizeScore` (`plugins/helper/normalize_score.go`).
pub(crate) fn normalize(scores: &mut [i64], reverse: bool) {
    let most = scores.iter().copied().max().unwrap_or(0).max(0);
    if most == 0 {
        if reverse {
            scores.fill(MAX_NODE_SCORE);
        }
        return;
    }
    for score in scores {
        let share = MAX_NODE_SCORE * *score / most;
        *score = if reverse { MAX_NODE_SCORE - share } else { share };
    }
}

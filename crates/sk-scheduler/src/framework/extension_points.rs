//! The plugins of each extension point, in kube-scheduler's order: the one table that the default profile and a user's
//! configuration are made from (`apis/config/v1/default_plugins.go`, 1.36).

use super::plugin::PluginId;

/// A plugin that is on, with the weight that was written; 0: none was.
pub(crate) type Enabled = (PluginId, i64);

use PluginId::{
    DefaultBinder, DefaultPreemption, DynamicResources, ImageLocality, InterPodAffinity, NodeAffinity,
    NodeDeclaredFeatures, NodeName, NodePorts, NodeResourcesBalancedAllocation, NodeResourcesFit, NodeUnschedulable,
    NodeVolumeLimits, PodTopologySpread, PrioritySort, SchedulingGates, TaintToleration, VolumeBinding,
    VolumeRestrictions, VolumeZone,
};

/// The default `multiPoint`, with weights where there are any.
pub(crate) const DEFAULTS: [Enabled; 20] = [
    (SchedulingGates, 0),
    (PrioritySort, 0),
    (NodeUnschedulable, 0),
    (NodeName, 0),
    (TaintToleration, 3),
    (NodeAffinity, 2),
    (NodePorts, 0),
    (NodeResourcesFit, 1),
    (VolumeRestrictions, 0),
    (NodeVolumeLimits, 0),
    (VolumeBinding, 0),
    (VolumeZone, 0),
    (PodTopologySpread, 2),
    (InterPodAffinity, 2),
    (DynamicResources, 2),
    (DefaultPreemption, 0),
    (NodeResourcesBalancedAllocation, 1),
    (ImageLocality, 1),
    (DefaultBinder, 0),
    (NodeDeclaredFeatures, 0),
];

/// Extension points by their names, with the plugins that implement them.
pub(crate) const POINTS: [(&str, &[PluginId]); 12] = [
    ("preEnqueue", &[SchedulingGates, DefaultPreemption, DynamicResources]),
    ("queueSort", &[PrioritySort]),
    (
        "preFilter",
        &[
            NodeAffinity,
            NodePorts,
            NodeResourcesFit,
            VolumeRestrictions,
            NodeVolumeLimits,
            VolumeBinding,
            VolumeZone,
            PodTopologySpread,
            InterPodAffinity,
            DynamicResources,
            NodeDeclaredFeatures,
        ],
    ),
    (
        "filter",
        &[
            NodeUnschedulable,
            NodeName,
            TaintToleration,
            NodeAffinity,
            NodePorts,
            NodeResourcesFit,
            VolumeRestrictions,
            NodeVolumeLimits,
            VolumeBinding,
            VolumeZone,
            PodTopologySpread,
            InterPodAffinity,
            DynamicResources,
            NodeDeclaredFeatures,
        ],
    ),
    ("postFilter", &[DynamicResources, DefaultPreemption]),
    (
        "preScore",
        &[
            TaintToleration,
            NodeAffinity,
            NodeResourcesFit,
            VolumeBinding,
            PodTopologySpread,
            InterPodAffinity,
            NodeResourcesBalancedAllocation,
        ],
    ),
    (
        "score",
        &[
            TaintToleration,
            NodeAffinity,
            NodeResourcesFit,
            VolumeBinding,
            PodTopologySpread,
            InterPodAffinity,
            DynamicResources,
            NodeResourcesBalancedAllocation,
            ImageLocality,
        ],
    ),
    ("reserve", &[VolumeBinding, DynamicResources]),
    ("permit", &[]),
    ("preBind", &[VolumeBinding, DynamicResources]),
    ("bind", &[DefaultBinder]),
    ("postBind", &[]),
];

/// The plugins of the default profile at an extension point, in the order of `multiPoint`.
pub(crate) fn default_plugins(point: &str) -> Vec<PluginId> {
    default_weights(point).into_iter().map(|(plugin, _)| plugin).collect()
}

/// The same with their weights, which are 1 where none is written.
pub(crate) fn default_weights(point: &str) -> Vec<Enabled> {
    let implementing = POINTS.iter().find(|(name, _)| *name == point).map_or(&[][..], |(_, plugins)| *plugins);
    let here = DEFAULTS.iter().filter(|(plugin, _)| implementing.contains(plugin));
    here.map(|(plugin, weight)| (*plugin, (*weight).max(1))).collect()
}

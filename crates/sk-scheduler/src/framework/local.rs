//! The plugins that compare one pod with one node, as one loop over columns.
//!
//! Built once per cycle for a shape. It leaves out filters that cannot reject this pod on this cluster, so a plain pod
//! on a cluster without taints costs four comparisons per node.

use super::plugin::{PluginId, Rejection};
use super::profile::Compiled;
use crate::Cluster;
use crate::cluster::classes::ShapeEntry;
use crate::cluster::columns::Numbers;
use crate::ids::NodeId;
use crate::plugins::{
    image_locality, node_affinity, node_name, node_ports, node_resources_balanced_allocation as balanced,
    node_resources_fit as fit, node_unschedulable, taint_toleration,
};

/// A shape ready to be compared with nodes.
pub(crate) struct Local<'a> {
    cluster: &'a Cluster,
    profile: &'a Compiled,
    entry: &'a ShapeEntry,
    filters: [Option<PluginId>; 6],
    fit_weight: i64,
    balanced_weight: i64,
    image_weight: i64,
    /// Taints may lower a node's score.
    pub(crate) scores_taints: bool,
    /// Preferred node affinity may raise it.
    pub(crate) scores_affinity: bool,
}

/// A plain pod: seven numbers that stay in registers while the nodes go by.
#[derive(Clone, Copy)]
pub(crate) struct Plain {
    cpu: i64,
    memory: i64,
    ephemeral: i64,
    scored_cpu: i64,
    scored_memory: i64,
    fit_weight: i64,
    balanced_weight: i64,
}

impl Plain {
    /// The weighted score of a node; `None`: there is no room.
    #[inline]
    pub(crate) fn score(self, node: &Numbers) -> Option<i64> {
        let lacks = |wanted: i64, total: i64, used: i64| wanted > 0 && wanted > total.saturating_sub(used);
        if node.pods >= node.allowed_pods
            || lacks(self.cpu, node.cpu, node.used_cpu)
            || lacks(self.memory, node.memory, node.used_memory)
            || lacks(self.ephemeral, node.ephemeral, node.used_ephemeral)
        {
            return None;
        }
        let fit = self.fit_weight * fit::mean_free_share(node, self.scored_cpu, self.scored_memory);
        if self.balanced_weight == 0 {
            return Some(fit);
        }
        Some(fit + self.balanced_weight * balanced::gain(node, self.cpu, self.memory))
    }
}

impl<'a> Local<'a> {
    pub(crate) fn new(cluster: &'a Cluster, profile: &'a Compiled, entry: &'a ShapeEntry) -> Self {
        let shape = &entry.shape;
        let can_object = |plugin: &PluginId| match plugin {
            PluginId::NodeUnschedulable => cluster.cordoned > 0,
            PluginId::NodeName => shape.node_name.is_some(),
            PluginId::TaintToleration => cluster.hard_taints > 0,
            PluginId::NodeAffinity => node_affinity::applies(profile, shape),
            PluginId::NodePorts => !shape.ports.is_empty(),
            _ => true,
        };
        let mut filters = [None; 6];
        let active = profile.local_filters.iter().copied().filter(can_object);
        filters.iter_mut().zip(active).for_each(|(slot, plugin)| *slot = Some(plugin));
        let if_useful = |useful: bool, plugin| if useful { profile.weight(plugin) } else { 0 };
        Self {
            cluster,
            profile,
            entry,
            filters,
            fit_weight: profile.weight(PluginId::NodeResourcesFit),
            balanced_weight: if_useful(balanced::applies(profile, entry), PluginId::NodeResourcesBalancedAllocation),
            image_weight: if_useful(!cluster.images.is_empty() && !entry.images.is_empty(), PluginId::ImageLocality),
            scores_taints: profile.weight(PluginId::TaintToleration) != 0 && cluster.soft_taints > 0,
            scores_affinity: profile.weight(PluginId::NodeAffinity) != 0 && node_affinity::prefers(profile, shape),
        }
    }

    /// The same for a pod that only asks for CPU, memory and disk, on a cluster where nothing else matters.
    pub(crate) fn plain(&self) -> Option<Plain> {
        let only_fit = self.filters[0] == Some(PluginId::NodeResourcesFit) && self.filters[1].is_none();
        let plain_scores = self.profile.plain_fit && self.profile.plain_balanced && self.image_weight == 0;
        let even = !self.scores_taints && !self.scores_affinity;
        let asked = &self.entry.shape.requests;
        (only_fit && plain_scores && even && asked.scalars.is_empty()).then_some(Plain {
            cpu: asked.cpu,
            memory: asked.memory,
            ephemeral: asked.ephemeral,
            scored_cpu: asked.scored_cpu,
            scored_memory: asked.scored_memory,
            fit_weight: self.fit_weight,
            balanced_weight: self.balanced_weight,
        })
    }

    /// The numbers of a node.
    #[inline]
    pub(crate) fn numbers(&self, node: NodeId) -> &Numbers {
        &self.cluster.columns.numbers[node.index()]
    }

    /// Do scores depend on how many nodes there are?
    pub(crate) fn scores_images(&self) -> bool {
        self.image_weight != 0
    }

    /// The first objection to the node.
    #[inline]
    pub(crate) fn filter(&self, node: usize) -> Rejection {
        let (columns, shape) = (&self.cluster.columns, &*self.entry.shape);
        for plugin in self.filters.iter().map_while(|plugin| *plugin) {
            let rejection = match plugin {
                PluginId::NodeResourcesFit => fit::filter(columns, self.entry, &self.profile.profile.fit, node),
                PluginId::TaintToleration => taint_toleration::filter(columns, shape, node),
                PluginId::NodeUnschedulable => node_unschedulable::filter(columns, shape, node),
                PluginId::NodeName => node_name::filter(columns, shape, node),
                PluginId::NodeAffinity => node_affinity::filter(self.profile, shape, &columns.specs[node]),
                PluginId::NodePorts => node_ports::filter(columns, shape, node),
                _ => Rejection::NONE,
            };
            if !rejection.passes() {
                return rejection;
            }
        }
        Rejection::NONE
    }

    /// The weighted sum of the scores that need no other node to be known.
    #[inline]
    pub(crate) fn score(&self, node: usize) -> i64 {
        let columns = &self.cluster.columns;
        let mut sum = 0;
        if self.fit_weight != 0 {
            sum += self.fit_weight * fit::score(self.profile, columns, self.entry, node);
        }
        if self.balanced_weight != 0 {
            sum += self.balanced_weight * balanced::score(self.profile, columns, self.entry, node);
        }
        if self.image_weight != 0 {
            sum += self.image_weight * image_locality::score(self.cluster, self.entry, node);
        }
        sum
    }

    /// Soft taints that the pod does not tolerate.
    pub(crate) fn disliked(&self, node: usize) -> u16 {
        taint_toleration::disliked(&self.cluster.columns, &self.entry.shape, node)
    }

    /// The weights of preferred node affinity.
    pub(crate) fn preference(&self, node: usize) -> i64 {
        node_affinity::preference(self.profile, &self.entry.shape, &self.cluster.columns.specs[node])
    }
}

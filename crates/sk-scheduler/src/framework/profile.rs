//! A profile: the plugins of each extension point, their weights and arguments. It is data, made by hand, by
//! [`Profile::default`] or from a user's configuration.

use sk_core::SmolStr;

use super::extension_points::{default_plugins, default_weights};
use super::plugin::PluginId;
use crate::Cluster;
use crate::class::{DEFAULT_SCHEDULER, NodeSelectorTerm, SpreadConstraint};
use crate::ids::{KeyId, ResourceId};

/// How NodeResourcesFit scores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Emptier is better.
    LeastAllocated,
    /// Fuller is better.
    MostAllocated,
    /// By a broken line of (utilization in percent, score from 0 to 10).
    RequestedToCapacityRatio(Vec<(i64, i64)>),
}

/// Arguments of NodeResourcesFit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FitArgs {
    /// How it scores.
    pub strategy: Strategy,
    /// Over which resources, with which weights.
    pub resources: Vec<(SmolStr, i64)>,
    /// Extended resources that the filter leaves out.
    pub ignored: Vec<SmolStr>,
    /// Groups (before the slash) of extended resources that the filter leaves out.
    pub ignored_groups: Vec<SmolStr>,
}

/// Arguments of PodTopologySpread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpreadArgs {
    /// For pods without constraints of their own; their selector comes from Services and controllers.
    pub default_constraints: Vec<SpreadConstraint>,
    /// The constraints are Kubernetes' own, and nodes may lack their labels.
    pub system_defaulted: bool,
}

/// One profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Pods name it by `schedulerName`.
    pub scheduler_name: SmolStr,
    /// How many of the nodes are looked for, in percent; 0: by the size of the cluster.
    pub percentage_of_nodes_to_score: i32,
    /// PreFilter plugins in their order.
    pub pre_filters: Vec<PluginId>,
    /// Filters in their order.
    pub filters: Vec<PluginId>,
    /// Scores with their weights.
    pub scores: Vec<(PluginId, i64)>,
    /// PostFilter plugins in their order.
    pub post_filters: Vec<PluginId>,
    /// Plugins that hold pods back before the queue.
    pub pre_enqueue: Vec<PluginId>,
    /// Arguments of NodeResourcesFit.
    pub fit: FitArgs,
    /// Resources of NodeResourcesBalancedAllocation.
    pub balanced: Vec<SmolStr>,
    /// InterPodAffinity's `hardPodAffinityWeight`.
    pub hard_pod_affinity_weight: i32,
    /// InterPodAffinity's `ignorePreferredTermsOfExistingPods`.
    pub ignore_preferred_terms_of_existing_pods: bool,
    /// Arguments of PodTopologySpread.
    pub spread: SpreadArgs,
    /// NodeAffinity's `addedAffinity`: required terms, if there are any.
    pub added_required: Option<Vec<NodeSelectorTerm>>,
    /// NodeAffinity's `addedAffinity`: preferred terms.
    pub added_preferred: Vec<(i32, NodeSelectorTerm)>,
    /// DefaultPreemption's `minCandidateNodesPercentage`.
    pub min_candidate_nodes_percentage: i32,
    /// DefaultPreemption's `minCandidateNodesAbsolute`.
    pub min_candidate_nodes_absolute: i32,
}

impl Default for Profile {
    /// `apis/config/v1/default_plugins.go` and `defaults.go`, 1.36, with its feature gates at their defaults.
    fn default() -> Self {
        let soft = |key: &str, max_skew| SpreadConstraint {
            max_skew,
            key: key.into(),
            hard: false,
            selector: sk_core::LabelSelector::nothing(),
            min_domains: 1,
            honor_affinity: true,
            honor_taints: false,
        };
        Self {
            scheduler_name: DEFAULT_SCHEDULER.into(),
            percentage_of_nodes_to_score: 0,
            pre_filters: default_plugins("preFilter"),
            filters: default_plugins("filter"),
            scores: default_weights("score"),
            post_filters: default_plugins("postFilter"),
            pre_enqueue: default_plugins("preEnqueue"),
            fit: FitArgs {
                strategy: Strategy::LeastAllocated,
                resources: vec![("cpu".into(), 1), ("memory".into(), 1)],
                ignored: Vec::new(),
                ignored_groups: Vec::new(),
            },
            balanced: vec!["cpu".into(), "memory".into()],
            hard_pod_affinity_weight: 1,
            ignore_preferred_terms_of_existing_pods: false,
            spread: SpreadArgs {
                // `podtopologyspread/plugin.go`, `systemDefaultConstraints`.
                default_constraints: vec![soft("kubernetes.io/hostname", 3), soft("topology.kubernetes.io/zone", 5)],
                system_defaulted: true,
            },
            added_required: None,
            added_preferred: Vec::new(),
            min_candidate_nodes_percentage: 10,
            min_candidate_nodes_absolute: 100,
        }
    }
}

/// A resource that a score looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    Cpu,
    Memory,
    Ephemeral,
    /// With `true` for one that `IsScalarResourceName` knows: it is left out where the pod does not ask for it.
    Scalar(ResourceId, bool),
}

/// A profile with its names resolved.
#[derive(Clone, Debug)]
pub(crate) struct Compiled {
    pub(crate) profile: Profile,
    /// PreFilter plugins that are not passed through.
    pub(crate) pre_filters: Vec<PluginId>,
    /// Filters that compare one pod with one node and come before any other.
    pub(crate) local_filters: Vec<PluginId>,
    /// The other filters, in order.
    pub(crate) other_filters: Vec<PluginId>,
    pub(crate) fit_resources: Vec<(Resource, i64)>,
    pub(crate) balanced_resources: Vec<Resource>,
    /// LeastAllocated over CPU and memory with equal weights: what nearly everybody runs.
    pub(crate) plain_fit: bool,
    /// Balanced over CPU and memory.
    pub(crate) plain_balanced: bool,
    weights: [i64; 32],
    /// Keys of the default spreading constraints.
    pub(crate) default_keys: Vec<KeyId>,
    /// Where it stands among the profiles.
    pub(crate) number: usize,
}

/// Filters whose answer depends on the pod's shape and the node alone.
const LOCAL: [PluginId; 6] = [
    PluginId::NodeUnschedulable,
    PluginId::NodeName,
    PluginId::TaintToleration,
    PluginId::NodeAffinity,
    PluginId::NodePorts,
    PluginId::NodeResourcesFit,
];
/// PreFilter plugins that are passed through.
const PASSED_AT_PRE_FILTER: [PluginId; 3] =
    [PluginId::NodeVolumeLimits, PluginId::DynamicResources, PluginId::NodeDeclaredFeatures];
/// Filters that are passed through.
const PASSED: [PluginId; 4] = [
    PluginId::VolumeRestrictions,
    PluginId::NodeVolumeLimits,
    PluginId::DynamicResources,
    PluginId::NodeDeclaredFeatures,
];

impl Compiled {
    pub(crate) fn new(profile: Profile, number: usize, cluster: &mut Cluster) -> Self {
        let filters: Vec<PluginId> = profile.filters.iter().copied().filter(|id| !PASSED.contains(id)).collect();
        let first_other = filters.iter().position(|id| !LOCAL.contains(id)).unwrap_or(filters.len());
        let mut resource = |name: &SmolStr| match name.as_str() {
            "cpu" => Resource::Cpu,
            "memory" => Resource::Memory,
            "ephemeral-storage" => Resource::Ephemeral,
            other => Resource::Scalar(cluster.resource(other), crate::class::is_scalar(other)),
        };
        let fit_resources: Vec<_> =
            profile.fit.resources.iter().map(|(name, weight)| (resource(name), *weight)).collect();
        let balanced_resources: Vec<_> = profile.balanced.iter().map(&mut resource).collect();
        let mut weights = [0; 32];
        profile.scores.iter().for_each(|(plugin, weight)| weights[*plugin as usize] = *weight);
        let constraints = profile.spread.default_constraints.iter();
        let default_keys = constraints.map(|constraint| cluster.key(&constraint.key)).collect();
        Self {
            plain_fit: profile.fit.strategy == Strategy::LeastAllocated
                && fit_resources == [(Resource::Cpu, 1), (Resource::Memory, 1)],
            plain_balanced: balanced_resources == [Resource::Cpu, Resource::Memory],
            pre_filters: profile.pre_filters.iter().copied().filter(|id| !PASSED_AT_PRE_FILTER.contains(id)).collect(),
            local_filters: filters[..first_other].to_vec(),
            other_filters: filters[first_other..].to_vec(),
            fit_resources,
            balanced_resources,
            weights,
            default_keys,
            number,
            profile,
        }
    }

    /// The plugin's weight; 0: it does not score.
    pub(crate) fn weight(&self, plugin: PluginId) -> i64 {
        self.weights[plugin as usize]
    }
}

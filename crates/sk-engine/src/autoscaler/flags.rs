//! cluster-autoscaler's flags, as far as the model knows them: the names are its own, the defaults are those that
//! cluster-autoscaler 1.36.1 prints with `--help`.
//!
//! Left out: flags for logging, leader election, credentials and the autoscaler's own speed, because they change no
//! decision.

use std::collections::BTreeMap;

use sk_core::{SimDuration, SmolStr};

/// How the cluster grows and shrinks.
#[derive(Clone, Debug, PartialEq)]
pub struct Autoscaler {
    /// `scan-interval`: from the end of one loop to the next that nothing else starts.
    pub scan_interval: SimDuration,
    /// `frequent-loops-enabled`: unschedulable pods and successful loops start the next loop at once.
    pub frequent_loops_enabled: bool,
    /// From the start of the simulation to the first loop; `None`: one scan interval.
    pub first_loop: Option<SimDuration>,
    /// `new-pod-scale-up-delay`
    pub new_pod_scale_up_delay: SimDuration,
    /// `expendable-pods-priority-cutoff`: pods of lower priority neither call for nodes nor keep them.
    pub expendable_pods_priority_cutoff: i32,
    /// `expander`: each narrows down what the one before it left; what is left then is drawn from.
    pub expander: Vec<Expander>,
    /// What the ConfigMap of the priority expander says of each group that it matches: the highest number wins.
    pub priorities: BTreeMap<SmolStr, i64>,
    /// `max-nodes-total`; 0: no limit.
    pub max_nodes_total: usize,
    /// `cores-total`: the most cores of the cluster's groups, and the least that scale-down leaves.
    pub cores_total: Limits,
    /// `memory-total`, in GiB.
    pub memory_total_gib: Limits,
    /// `max-nodes-per-scaleup`; 0: no limit (`estimator/threshold_based_limiter.go`).
    pub max_nodes_per_scaleup: usize,
    /// `salvo-scale-up`: several groups may grow in one loop.
    pub salvo_scale_up: bool,
    /// `balance-similar-node-groups`
    pub balance_similar_node_groups: bool,
    /// `balancing-ignore-label`, once per label.
    pub balancing_ignore_label: Vec<SmolStr>,
    /// `enforce-node-group-min-size`
    pub enforce_node_group_min_size: bool,
    /// `max-node-startup-time`: a node that is not ready by then no longer counts as coming.
    pub max_node_startup_time: SimDuration,
    /// `max-node-provision-time`: nodes that are awaited for longer are a failure of their group.
    pub max_node_provision_time: SimDuration,
    /// `initial-node-group-backoff-duration`: how long a group is left alone after its first failure.
    pub initial_node_group_backoff_duration: SimDuration,
    /// `max-node-group-backoff-duration`
    pub max_node_group_backoff_duration: SimDuration,
    /// `node-group-backoff-reset-timeout`: a failure that is older is forgotten.
    pub node_group_backoff_reset_timeout: SimDuration,
    /// `ok-total-unready-count`
    pub ok_total_unready_count: usize,
    /// `max-total-unready-percentage`
    pub max_total_unready_percentage: usize,
    /// `scale-down-enabled`
    pub scale_down_enabled: bool,
    /// `scale-down-unneeded-time`
    pub scale_down_unneeded_time: SimDuration,
    /// `scale-down-unready-enabled`
    pub scale_down_unready_enabled: bool,
    /// `scale-down-unready-time`
    pub scale_down_unready_time: SimDuration,
    /// `scale-down-delay-after-add`
    pub scale_down_delay_after_add: SimDuration,
    /// `scale-down-delay-after-delete`
    pub scale_down_delay_after_delete: SimDuration,
    /// `scale-down-delay-type-local`: the delays hold for the group that caused them alone.
    pub scale_down_delay_type_local: bool,
    /// `scale-down-utilization-threshold`, in thousandths.
    pub scale_down_utilization_threshold_milli: i64,
    /// `scale-down-gpu-utilization-threshold`, in thousandths: of nodes with GPUs that alone counts.
    pub scale_down_gpu_utilization_threshold_milli: i64,
    /// `ignore-daemonsets-utilization`
    pub ignore_daemonsets_utilization: bool,
    /// `ignore-mirror-pods-utilization`
    pub ignore_mirror_pods_utilization: bool,
    /// `unremovable-node-recheck-timeout`
    pub unremovable_node_recheck_timeout: SimDuration,
    /// `max-scale-down-parallelism`
    pub max_scale_down_parallelism: usize,
    /// `max-drain-parallelism`
    pub max_drain_parallelism: usize,
    /// `max-bulk-soft-taint-count`: how many nodes get or lose the soft taint in one loop.
    pub max_bulk_soft_taint_count: usize,
    /// `node-delete-delay-after-taint`
    pub node_delete_delay_after_taint: SimDuration,
    /// `max-graceful-termination-sec`
    pub max_graceful_termination: SimDuration,
    /// `cordon-node-before-terminating`
    pub cordon_node_before_terminating: bool,
    /// `daemonset-eviction-for-occupied-nodes`
    pub daemonset_eviction_for_occupied_nodes: bool,
    /// `daemonset-eviction-for-empty-nodes`
    pub daemonset_eviction_for_empty_nodes: bool,
    /// `skip-nodes-with-system-pods`
    pub skip_nodes_with_system_pods: bool,
    /// `blocking-system-pod-distruption-timeout`: older pods of the system keep no node.
    pub blocking_system_pod_distruption_timeout: SimDuration,
    /// `skip-nodes-with-local-storage`
    pub skip_nodes_with_local_storage: bool,
    /// `skip-nodes-with-custom-controller-pods`
    pub skip_nodes_with_custom_controller_pods: bool,
    /// `min-replica-count`: pods of smaller ReplicaSets and the like keep their node.
    pub min_replica_count: i64,
    /// The rule that a test leaves out.
    #[cfg(feature = "rule-switches")]
    pub without: Option<super::Rule>,
    /// What the informers of a busy machine do in a test.
    #[cfg(feature = "rule-switches")]
    pub informers: Informers,
}

/// How far informers are apart. In a simulation they never are; the rig of the recordings was a busy machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Informers {
    /// The watch that starts loops and the list that loops read are two informers (`loop/trigger.go`): the list that a loop reads
    /// ends up to so long before or after the pod that started it, by the seed.
    pub pod_race: SimDuration,
    /// The loop after the first scale-up does not see so many of the nodes that it asked for, and a provider whose target size
    /// is the number of nodes that it sees does not await them.
    pub unseen_nodes: usize,
}

/// A least and a most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Scale-down leaves at least this much.
    pub least: i64,
    /// Scale-up makes at most this much.
    pub most: i64,
}

impl Default for Autoscaler {
    fn default() -> Self {
        Self {
            scan_interval: SimDuration::from_secs(10),
            frequent_loops_enabled: true,
            first_loop: None,
            new_pod_scale_up_delay: SimDuration::ZERO,
            expendable_pods_priority_cutoff: -10,
            expander: vec![Expander::LeastWaste],
            priorities: BTreeMap::new(),
            max_nodes_total: 0,
            cores_total: Limits { least: 0, most: 320_000 },
            memory_total_gib: Limits { least: 0, most: 6_400_000 },
            max_nodes_per_scaleup: 1000,
            salvo_scale_up: false,
            balance_similar_node_groups: false,
            balancing_ignore_label: Vec::new(),
            enforce_node_group_min_size: false,
            max_node_startup_time: SimDuration::from_mins(15),
            max_node_provision_time: SimDuration::from_mins(15),
            initial_node_group_backoff_duration: SimDuration::from_mins(5),
            max_node_group_backoff_duration: SimDuration::from_mins(30),
            node_group_backoff_reset_timeout: SimDuration::from_mins(180),
            ok_total_unready_count: 3,
            max_total_unready_percentage: 45,
            scale_down_enabled: true,
            scale_down_unneeded_time: SimDuration::from_mins(10),
            scale_down_unready_enabled: true,
            scale_down_unready_time: SimDuration::from_mins(20),
            scale_down_delay_after_add: SimDuration::from_mins(10),
            scale_down_delay_after_delete: SimDuration::ZERO,
            scale_down_delay_type_local: false,
            scale_down_utilization_threshold_milli: 500,
            scale_down_gpu_utilization_threshold_milli: 500,
            ignore_daemonsets_utilization: false,
            ignore_mirror_pods_utilization: false,
            unremovable_node_recheck_timeout: SimDuration::from_mins(5),
            max_scale_down_parallelism: 10,
            max_drain_parallelism: 1,
            max_bulk_soft_taint_count: 10,
            node_delete_delay_after_taint: SimDuration::from_secs(5),
            max_graceful_termination: SimDuration::from_secs(600),
            cordon_node_before_terminating: true,
            daemonset_eviction_for_occupied_nodes: true,
            daemonset_eviction_for_empty_nodes: false,
            skip_nodes_with_system_pods: true,
            blocking_system_pod_distruption_timeout: SimDuration::from_mins(60),
            skip_nodes_with_local_storage: true,
            skip_nodes_with_custom_controller_pods: true,
            min_replica_count: 0,
            #[cfg(feature = "rule-switches")]
            without: None,
            #[cfg(feature = "rule-switches")]
            informers: Informers::default(),
        }
    }
}

/// How a group is chosen when several would help.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expander {
    /// Any of them.
    Random,
    /// The one that is left with the least unused: cluster-autoscaler's own default.
    #[default]
    LeastWaste,
    /// The one that takes the most pods.
    MostPods,
    /// The one that needs the fewest nodes.
    LeastNodes,
    /// The one with the highest of [`Autoscaler::priorities`].
    Priority,
    /// The one whose price buys most; a group without a price is no option.
    Price,
}

impl Expander {
    /// Its name among the values of `expander`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::LeastWaste => "least-waste",
            Self::MostPods => "most-pods",
            Self::LeastNodes => "least-nodes",
            Self::Priority => "priority",
            Self::Price => "price",
        }
    }
}

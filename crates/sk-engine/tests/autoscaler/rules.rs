//! The rules that were observed, each with a recording in which it shows.
//!
//! Most are switches of the model ([`Rule`]); what a flag decides is left out by giving the flag another value.

use sk_core::SimDuration;
use sk_engine::{Autoscaler, Expander, Limits, Rule};

/// The recording in which a rule shows; `None`: it shows in none that is known.
pub(crate) fn shows_in(rule: Rule) -> Option<&'static str> {
    let scenario = match rule {
        // A PreferNoSchedule taint filters nothing, so no recording could come out otherwise.
        Rule::TemplateLosesSoftTaint => return None,
        // The recordings balance among groups that take the same pods; a small cluster in `unrecorded` has others.
        Rule::SimilarGroupsTakeThePods => return None,
        Rule::YoungPodsWait => "a1-nginx-story",
        Rule::OldPodsBringYoung => "k1-daemonset-in-template",
        Rule::ReadyNodesFillTheCluster => "c3-max-nodes-total",
        Rule::TaintsFilter => "g1-taints-labels",
        Rule::NodeAffinityFilters => "g1-taints-labels",
        Rule::PreferencesDoNotCount => "g1-taints-labels",
        Rule::PodAffinityFilters => "g4-anti-affinity",
        Rule::SpreadFilters => "g6-spread-zones-one-each-balance-ignore-label",
        Rule::PodSlotsFilter => "k2-pod-count-limit",
        Rule::BothWastesCount => "b-least-waste-small-big",
        Rule::ResidentsAreWaste => "b-least-waste-small-big",
        Rule::TiesAreDrawn => "g3-nospread-balance-false",
        Rule::ChosenGroupGetsTheRest => "g3-nospread-balance-ignore-label",
        Rule::ToldOnce => "c4-no-fit",
        Rule::RefusedAfterScaleUp => "c2-max-size",
        Rule::StartingNodesStay => "k3-deleted-while-starting",
        Rule::OwnedPodsMove => "e5-more-pods",
        Rule::FinishedPodsAreGone => "e5-more-pods",
        Rule::DelayFromDecision => "f1-delay-after-add",
        Rule::DelayFromTaint => "f2-delay-after-delete",
        Rule::AllPodsAtOnce => "i1-drain-order",
        Rule::FailedDrainStartsAnew => "f3-delay-after-failure",
        Rule::FailureHoldsNothingBack => "f3-delay-after-failure",
        Rule::TimerRestarts => "f5-scan-20s",
        Rule::PodsStartLoops => "c10-one-size-slow-nodes",
        Rule::LoopFollowsScaleUp => "c5-two-groups-needed",
        Rule::LoopFollowsScaleDown => "d6-empty-bulk-3",
        Rule::GroupMaximum => "c2-max-size",
        Rule::TemplateAfterAMinute => "a3-template-age",
        Rule::PodsAreFiltered => "c4-no-fit",
        Rule::NewPodsTakeRoom => "h1-new-pod-delay",
        Rule::LargerShareCounts => "d1-threshold",
        Rule::MemoryVolumesMove => "e1-blockers",
        Rule::SafeVolumesMove => "e1-blockers",
        Rule::GuardedSystemPodsMove => "e1-blockers",
        Rule::MirrorPodsGo => "e5-more-pods",
        Rule::BudgetMovesWholeNodes => "i2-drain-grace",
        Rule::CandidatesInAnyOrder => "d4-drain3",
        Rule::RemovedInAnyOrder => "d3-order-drain1",
        Rule::TimeRunsDuringRemovals => "d1-threshold",
        Rule::LargestPodsFirst => "c9-binpack-old-node",
        Rule::TemplateFromNode => "a3-template-age",
        Rule::UpcomingNodes => "c7-max-nodes-per-scaleup",
        Rule::PackedInAnyOrder => "c11-mixed-from-zero-1",
        Rule::DaemonsInTemplate => "k1-daemonset-in-template",
        Rule::NominatedPodsWait => "h3-preemption",
        Rule::ExpendablePods => "h5-priority-cutoff",
        Rule::UsedNodesEveryLoop => "f4-unneeded-reset",
        Rule::MinimumStays => "e3-min-size",
        Rule::MarkedNodesStay => "e1-blockers",
        Rule::BarePodsBlock => "e1-blockers",
        Rule::UnsafePodsBlock => "e1-blockers",
        Rule::SafePodsMove => "e1-blockers",
        Rule::BudgetsBlock => "e1-blockers",
        Rule::RecheckTimeout => "g4-anti-affinity",
        Rule::CumulativeSimulation => "d3-order-drain1",
        Rule::EmptyNodesFirst => "g4-anti-affinity",
        Rule::BudgetsUsedUp => "e1-blockers",
        Rule::NoDestination => "e4-full-elsewhere",
        Rule::SoftTaintsInBulk => "d5-empty-bulk",
        Rule::SoftTaintsTakenBack => "f4-unneeded-reset",
        Rule::UnneededLimit => "f2-delay-after-delete",
        Rule::RemovalsCountForMinimum => "e3-min-size",
        Rule::RemovalsCountForParallelism => "d6-empty-bulk-3",
        Rule::EmptyBesideDrain => "d1-threshold",
        Rule::UnneededTimeRestarts => "f4-unneeded-reset",
        Rule::TimeRunsInCooldown => "f1-delay-after-add",
        Rule::DelayAfterAdd => "f1-delay-after-add",
        Rule::DelayAfterTaint => "d6-empty-bulk-3",
        Rule::DrainPolls => "d1-threshold",
        Rule::DrainFails => "f3-delay-after-failure",
        Rule::StartupTime => "j1-never-ready",
        Rule::ClusterHealth => "j1-never-ready",
    };
    Some(scenario)
}

type Change = fn(&mut Autoscaler);

/// Flags whose rules show, where, and the change that leaves the rule out.
pub(crate) const BY_FLAG: &[(&str, &str, Change)] = &[
    ("scan-interval", "f5-scan-20s", |flags| flags.scan_interval = SimDuration::from_secs(5)),
    ("frequent-loops-enabled", "f6-scan-20s-no-frequent", |flags| flags.frequent_loops_enabled = true),
    ("new-pod-scale-up-delay", "h1-new-pod-delay", |flags| flags.new_pod_scale_up_delay = SimDuration::ZERO),
    ("expander", "b-least-nodes-small-big", |flags| flags.expander = vec![Expander::LeastWaste]),
    ("expander", "b-least-waste-small-big", |flags| flags.expander = vec![Expander::LeastNodes]),
    ("expander", "b-most-pods-small-capped", |flags| flags.expander = vec![Expander::LeastWaste]),
    ("expander", "b-priority", |flags| flags.expander = vec![Expander::LeastWaste]),
    ("expander", "b-random-small-big", |flags| flags.expander = vec![Expander::LeastWaste]),
    // It does not care how many pods are helped.
    ("expander", "b-least-waste-small-capped", |flags| flags.expander = vec![Expander::MostPods]),
    ("expendable-pods-priority-cutoff", "h5-priority-cutoff", |flags| {
        flags.expendable_pods_priority_cutoff = -1_000_000;
    }),
    ("ok-total-unready-count", "j1-never-ready", |flags| flags.ok_total_unready_count = 100),
    ("max-total-unready-percentage", "j1-never-ready", |flags| flags.max_total_unready_percentage = 100),
    ("max-nodes-total", "c3-max-nodes-total", |flags| flags.max_nodes_total = 0),
    ("cores-total", "c6-cores-limit", |flags| flags.cores_total = Limits { least: 0, most: 320_000 }),
    ("max-nodes-per-scaleup", "c7-max-nodes-per-scaleup", |flags| flags.max_nodes_per_scaleup = 1000),
    // One group grows in a loop; with salvo several do.
    ("salvo-scale-up", "c5-two-groups-needed", |flags| flags.salvo_scale_up = true),
    ("salvo-scale-up", "c8-salvo", |flags| flags.salvo_scale_up = false),
    ("balance-similar-node-groups", "g3-nospread-balance-ignore-label", |flags| {
        flags.balance_similar_node_groups = false;
    }),
    ("balancing-ignore-label", "g3-nospread-balance-ignore-label", |flags| flags.balancing_ignore_label.clear()),
    ("balancing-ignore-label", "g3-nospread-balance-true", |flags| {
        flags.balancing_ignore_label.push("obs/group".into());
    }),
    ("enforce-node-group-min-size", "k4-enforce-min-true", |flags| flags.enforce_node_group_min_size = false),
    ("enforce-node-group-min-size", "k4-enforce-min-false", |flags| flags.enforce_node_group_min_size = true),
    ("max-node-startup-time", "j1-never-ready", |flags| flags.max_node_startup_time = SimDuration::from_mins(15)),
    ("scale-down-unneeded-time", "z1-defaults", |flags| flags.scale_down_unneeded_time = SimDuration::from_mins(5)),
    ("scale-down-delay-after-add", "f1-delay-after-add", |flags| {
        flags.scale_down_delay_after_add = SimDuration::from_secs(10);
    }),
    // It holds for all groups.
    ("scale-down-delay-type-local", "f1-delay-after-add", |flags| flags.scale_down_delay_type_local = true),
    ("scale-down-delay-after-delete", "f2-delay-after-delete", |flags| {
        flags.scale_down_delay_after_delete = SimDuration::ZERO;
    }),
    // Half is not above the threshold.
    ("scale-down-utilization-threshold", "d1-threshold", |flags| flags.scale_down_utilization_threshold_milli = 499),
    ("ignore-daemonsets-utilization", "d2-daemonsets-ignore-true", |flags| flags.ignore_daemonsets_utilization = false),
    ("ignore-daemonsets-utilization", "d2-daemonsets-ignore-false", |flags| flags.ignore_daemonsets_utilization = true),
    ("unremovable-node-recheck-timeout", "z1-defaults", |flags| {
        flags.unremovable_node_recheck_timeout = SimDuration::from_secs(20);
    }),
    ("max-scale-down-parallelism", "d6-empty-bulk-3", |flags| flags.max_scale_down_parallelism = 10),
    ("max-drain-parallelism", "d4-drain3", |flags| flags.max_drain_parallelism = 1),
    ("max-bulk-soft-taint-count", "d5-empty-bulk", |flags| flags.max_bulk_soft_taint_count = 100),
    ("max-bulk-soft-taint-count", "d1-threshold", |flags| flags.max_bulk_soft_taint_count = 0),
    ("cordon-node-before-terminating", "d1-threshold", |flags| flags.cordon_node_before_terminating = false),
    ("node-delete-delay-after-taint", "d1-threshold", |flags| {
        flags.node_delete_delay_after_taint = SimDuration::ZERO;
    }),
    ("max-graceful-termination-sec", "f3-delay-after-failure", |flags| {
        flags.max_graceful_termination = SimDuration::from_secs(600);
    }),
    ("daemonset-eviction-for-occupied-nodes", "i1-drain-order", |flags| {
        flags.daemonset_eviction_for_occupied_nodes = false;
    }),
    ("skip-nodes-with-system-pods", "e2-blockers-skip-off", |flags| flags.skip_nodes_with_system_pods = true),
    ("skip-nodes-with-local-storage", "e2-blockers-skip-off", |flags| flags.skip_nodes_with_local_storage = true),
    ("skip-nodes-with-custom-controller-pods", "e2-blockers-skip-off", |flags| {
        flags.skip_nodes_with_custom_controller_pods = true;
    }),
];

/// Flags that a recording has and that made no difference there: j1's nodes count as there, though not as ready, before its
/// `max-node-provision-time` is over, so its group never fails.
pub(crate) const NOT_SHOWN: [&str; 2] = ["initial-node-group-backoff-duration", "max-node-provision-time"];

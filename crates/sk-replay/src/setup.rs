//! Turns a user's scenario into the engine's settings.

use std::collections::BTreeMap;

use sk_api::scenario::autoscaler::Range;
use sk_api::scenario::{Expander, Group, Latencies, Limit, Nodes, Placement, Profile, Ready, Reserved, Scenario};
use sk_core::{Quantity, Resources, SimDuration, SmolStr};
use sk_engine::scheduler_config::Configuration;
use sk_engine::{ASSUMED_JOB_DURATION, Autoscaler, Explain, Limits, NodeGroup, RateLimit, Settings, Timing};
use sk_record::{Autoscaler as AutoscalerMeta, Group as GroupMeta};

use crate::mutate::StartDelays;
use crate::nodes::Matches;
use crate::timeline::Timeline;

/// The scenario of a run without node groups and assertions.
pub const ASSUMED: &str = include_str!("assumed.yaml");

/// A scenario and the default one, both as trees: where they differ, the user has decided something.
pub fn beside_defaults(scenario: &Scenario) -> Result<(serde_json::Value, serde_json::Value), serde_json::Error> {
    let assumed = Scenario::parse("the assumed scenario", ASSUMED).expect("the assumed scenario is one");
    let mut defaults = serde_json::to_value(assumed)?;
    // Nobody's own groups are a default.
    defaults["cluster"]["groups"] = serde_json::json!({});
    Ok((defaults, serde_json::to_value(scenario)?))
}

/// How a simulated cluster is set up.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The engine's settings.
    pub settings: Settings,
    /// How long pods take to start.
    pub delays: StartDelays,
    /// What prices are in.
    pub currency: String,
    /// Where nodes come from.
    pub nodes: Nodes,
    /// The scenario's groups, also where others decide about nodes.
    pub groups: Vec<NodeGroup>,
    /// Which recorded nodes belong to which group.
    pub matches: Matches,
    /// What is taken from every node before any pod of the trace.
    pub reserved: BTreeMap<SmolStr, Quantity>,
    /// Is it taken from each node what was recorded of it?
    pub reserved_is_recorded: bool,
    /// Where pods are that there are at the start, if the scenario says so.
    pub placement: Option<Placement>,
    /// How long is simulated before figures count.
    pub warmup: SimDuration,
    /// What else happens.
    pub timeline: Timeline,
}

impl Setup {
    /// As the scenario says.
    pub fn new(scenario: &Scenario) -> Self {
        let (timing, cluster) = (&scenario.timing, &scenario.cluster);
        let reserved = match &cluster.reserved {
            Some(Reserved::Fixed(amounts)) => amounts.clone(),
            Some(Reserved::Recorded) | None => BTreeMap::new(),
        };
        let groups: Vec<NodeGroup> =
            cluster.groups.iter().map(|(name, group)| node_group(name, group, &reserved)).collect();
        let settings = Settings {
            seed: scenario.seed,
            timing: Timing { job_duration: timing.job_duration, ..profile(&timing.profile) },
            // Where nodes come from elsewhere, no group makes any.
            groups: if cluster.nodes == Nodes::Groups { groups.clone() } else { Vec::new() },
            autoscaler: autoscaler(scenario),
            scheduler: Configuration::default(),
            explain: Some(Explain::default()),
            events: true,
            // Which they are depends on the trace.
            rules: sk_engine::api::Rules::default(),
        };
        let delays = StartDelays {
            image_pull: timing.image_pull_delay,
            image_pull_jitter: timing.image_pull_jitter,
            startup: timing.pod_startup_delay,
            startup_jitter: timing.pod_startup_jitter,
        };
        Self {
            settings,
            delays,
            currency: cluster.currency.to_string(),
            nodes: cluster.nodes.clone(),
            groups,
            matches: cluster.groups.iter().map(|(name, group)| (name.clone(), group.matches.clone())).collect(),
            reserved,
            reserved_is_recorded: cluster.reserved == Some(Reserved::Recorded),
            placement: scenario.begin.placement,
            warmup: scenario.begin.warmup,
            timeline: Timeline::default(),
        }
    }

    /// With this scheduler; reading what the scenario says of it may fail, and a real cluster has its own
    /// ([`crate::scheduler`]).
    #[must_use]
    pub fn with_scheduler(mut self, scheduler: Configuration) -> Self {
        self.settings.scheduler = scheduler;
        self
    }

    /// With what else happens; finding that out may fail, and only the embedded engine can carry it out.
    #[must_use]
    pub fn with_timeline(mut self, timeline: Timeline) -> Self {
        self.timeline = timeline;
        self
    }

    /// The groups as a run record keeps them.
    pub fn groups(&self) -> Vec<GroupMeta> {
        let meta = |group: &NodeGroup| {
            let size = Resources::from_quantities(&group.allocatable);
            GroupMeta {
                name: group.name.to_string(),
                min: group.min.into(),
                max: group.max.into(),
                cpu_m: size.cpu_milli,
                memory_bytes: size.memory,
                price_per_hour: group.price_per_hour,
            }
        };
        self.groups.iter().map(meta).collect()
    }

    /// The autoscaler's settings as a run record keeps them.
    pub fn autoscaler(&self) -> AutoscalerMeta {
        let autoscaler = &self.settings.autoscaler;
        AutoscalerMeta {
            scan_interval_s: autoscaler.scan_interval.as_secs_f64(),
            scale_down_unneeded_time_s: autoscaler.scale_down_unneeded_time.as_secs_f64(),
            scale_down_utilization_threshold: autoscaler.scale_down_utilization_threshold_milli as f64 / 1000.0,
        }
    }
}

fn profile(profile: &Profile) -> Timing {
    match profile {
        Profile::Ideal => Timing::ideal(),
        Profile::RealLike => Timing::real_like(),
        Profile::Custom(latencies) => custom(latencies),
    }
}

fn custom(latencies: &Latencies) -> Timing {
    let limit = |limit: Limit| Some(RateLimit { qps: limit.qps.into(), burst: limit.burst.into() });
    Timing {
        watch_latency: latencies.watch_latency,
        request_latency: latencies.request_latency,
        controller_limit: limit(latencies.controller_limit),
        garbage_limit: limit(latencies.garbage_limit),
        namespace_limit: limit(latencies.namespace_limit),
        scheduler_limit: limit(latencies.scheduler_limit),
        scheduling_cycle: latencies.scheduling_cycle,
        pod_termination: latencies.pod_termination,
        job_duration: ASSUMED_JOB_DURATION,
        autoscaler_loop: latencies.autoscaler_loop,
    }
}

fn node_group(name: &SmolStr, group: &Group, reserved: &BTreeMap<SmolStr, Quantity>) -> NodeGroup {
    let mut allocatable = group.allocatable.clone();
    for (resource, taken) in reserved {
        if let Some(has) = allocatable.get_mut(resource) {
            *has = if *has < *taken { Quantity::ZERO } else { *has - *taken };
        }
    }
    NodeGroup {
        name: name.clone(),
        min: group.min,
        max: group.max,
        initial: None,
        capacity: group.capacity(),
        allocatable,
        labels: group.labels.clone(),
        taints: group.taints.clone(),
        ready_delay: match group.ready {
            Ready::After(delay) => delay,
            Ready::Spread { p50, .. } => p50,
        },
        ready_p99: match group.ready {
            Ready::After(_) => None,
            Ready::Spread { p99, .. } => Some(p99),
        },
        template_overhead: std::collections::BTreeMap::new(),
        price_per_hour: group.price,
    }
}

fn autoscaler(scenario: &Scenario) -> Autoscaler {
    let written = &scenario.autoscaler;
    let limits = |range: Range| Limits { least: range.least.into(), most: range.most.into() };
    let milli = |share: f64| (share * 1000.0).round() as i64;
    let expander = |expander: &Expander| match expander {
        Expander::Random => sk_engine::Expander::Random,
        Expander::LeastWaste => sk_engine::Expander::LeastWaste,
        Expander::MostPods => sk_engine::Expander::MostPods,
        Expander::LeastNodes => sk_engine::Expander::LeastNodes,
        Expander::Priority => sk_engine::Expander::Priority,
        Expander::Price => sk_engine::Expander::Price,
    };
    Autoscaler {
        expander: written.expander.0.iter().map(expander).collect(),
        priorities: written.priorities_of(scenario.cluster.groups.keys()),
        cores_total: limits(written.cores_total),
        memory_total_gib: limits(written.memory_total),
        balancing_ignore_label: written.balancing_ignore_label.0.clone(),
        scale_down_utilization_threshold_milli: milli(written.scale_down_utilization_threshold),
        scale_down_gpu_utilization_threshold_milli: milli(written.scale_down_gpu_utilization_threshold),
        max_graceful_termination: SimDuration::from_secs(written.max_graceful_termination_sec.into()),
        min_replica_count: written.min_replica_count.into(),
        max_nodes_total: written.max_nodes_total as usize,
        max_nodes_per_scaleup: written.max_nodes_per_scaleup as usize,
        ok_total_unready_count: written.ok_total_unready_count as usize,
        max_total_unready_percentage: written.max_total_unready_percentage as usize,
        max_scale_down_parallelism: written.max_scale_down_parallelism as usize,
        max_drain_parallelism: written.max_drain_parallelism as usize,
        max_bulk_soft_taint_count: written.max_bulk_soft_taint_count as usize,
        scan_interval: written.scan_interval,
        frequent_loops_enabled: written.frequent_loops_enabled,
        new_pod_scale_up_delay: written.new_pod_scale_up_delay,
        expendable_pods_priority_cutoff: written.expendable_pods_priority_cutoff,
        salvo_scale_up: written.salvo_scale_up,
        balance_similar_node_groups: written.balance_similar_node_groups,
        enforce_node_group_min_size: written.enforce_node_group_min_size,
        max_node_startup_time: written.max_node_startup_time,
        max_node_provision_time: written.max_node_provision_time,
        initial_node_group_backoff_duration: written.initial_node_group_backoff_duration,
        max_node_group_backoff_duration: written.max_node_group_backoff_duration,
        node_group_backoff_reset_timeout: written.node_group_backoff_reset_timeout,
        scale_down_enabled: written.scale_down_enabled,
        scale_down_unneeded_time: written.scale_down_unneeded_time,
        scale_down_unready_enabled: written.scale_down_unready_enabled,
        scale_down_unready_time: written.scale_down_unready_time,
        scale_down_delay_after_add: written.scale_down_delay_after_add,
        scale_down_delay_after_delete: written.scale_down_delay_after_delete,
        scale_down_delay_type_local: written.scale_down_delay_type_local,
        ignore_daemonsets_utilization: written.ignore_daemonsets_utilization,
        ignore_mirror_pods_utilization: written.ignore_mirror_pods_utilization,
        unremovable_node_recheck_timeout: written.unremovable_node_recheck_timeout,
        node_delete_delay_after_taint: written.node_delete_delay_after_taint,
        cordon_node_before_terminating: written.cordon_node_before_terminating,
        daemonset_eviction_for_occupied_nodes: written.daemonset_eviction_for_occupied_nodes,
        daemonset_eviction_for_empty_nodes: written.daemonset_eviction_for_empty_nodes,
        skip_nodes_with_system_pods: written.skip_nodes_with_system_pods,
        blocking_system_pod_distruption_timeout: written.blocking_system_pod_distruption_timeout,
        skip_nodes_with_local_storage: written.skip_nodes_with_local_storage,
        skip_nodes_with_custom_controller_pods: written.skip_nodes_with_custom_controller_pods,
        ..Autoscaler::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_of_ones_own_is_real_like_where_it_says_nothing() {
        assert_eq!(format!("{:?}", custom(&Latencies::default())), format!("{:?}", Timing::real_like()));
    }

    #[test]
    fn what_a_scenario_does_not_say_of_the_autoscaler_is_the_engines_default() {
        let scenario = Scenario::parse("test.yaml", ASSUMED).unwrap();
        assert_eq!(autoscaler(&scenario), Autoscaler::default());
        assert_eq!(Autoscaler::default().expander, [sk_engine::Expander::LeastWaste]);
    }

    /// Another value than the default.
    fn another(flag: &str, default: &serde_json::Value) -> String {
        let text = default.as_str().map_or_else(|| default.to_string(), str::to_owned);
        match (flag, text.as_str()) {
            ("expander", _) => "random".to_owned(),
            ("balancing-ignore-label", _) => "rack".to_owned(),
            (_, "true") => "false".to_owned(),
            (_, "false") => "true".to_owned(),
            (_, "0.5") => "0.6".to_owned(),
            (_, range) if range.contains(':') => "1:2".to_owned(),
            (_, text) => text.parse::<i64>().map_or_else(
                |_| (text.parse::<SimDuration>().unwrap() + SimDuration::from_mins(1)).to_string(),
                |count| (count + 1).to_string(),
            ),
        }
    }

    #[test]
    fn every_flag_of_the_scenario_reaches_the_engine_by_itself() {
        let flags = serde_json::to_value(sk_api::scenario::Autoscaler::default()).unwrap();
        let mut seen = Vec::new();
        for (flag, default) in flags.as_object().unwrap() {
            let text = format!("{ASSUMED}autoscaler: {{{flag}: \"{}\"}}\n", another(flag, default));
            let settings = autoscaler(&Scenario::parse("test.yaml", &text).unwrap_or_else(|error| panic!("{error}")));
            assert_ne!(settings, Autoscaler::default(), "{flag} changes nothing");
            assert!(!seen.contains(&settings), "{flag} does what another flag does");
            seen.push(settings);
        }
        assert!(seen.len() >= 40, "{}", seen.len());
    }
}

//! The flags of a recording as the model's.

use std::collections::BTreeMap;

use sk_core::SimDuration;
use sk_engine::{Autoscaler, Expander, Limits};

/// Flags of the rig, and one that has nothing to act on.
pub(crate) const IGNORED: [&str; 3] = [
    "cloud-provider",
    "namespace",
    // A failed drain does not start it (f3); nothing else fails.
    "scale-down-delay-after-failure",
];

pub(crate) fn parse(flags: &BTreeMap<String, String>) -> Autoscaler {
    let mut parsed = Autoscaler::default();
    for (name, value) in flags.iter().filter(|(name, _)| !IGNORED.contains(&name.as_str())) {
        set(&mut parsed, name, value);
    }
    parsed
}

fn set(flags: &mut Autoscaler, name: &str, value: &str) {
    let span = || value.parse::<SimDuration>().unwrap_or_else(|error| panic!("--{name}: {error}"));
    let switch = || value.parse::<bool>().unwrap_or_else(|error| panic!("--{name}: {error}"));
    let count = || value.parse::<usize>().unwrap_or_else(|error| panic!("--{name}: {error}"));
    match name {
        "scan-interval" => flags.scan_interval = span(),
        "scale-down-delay-after-add" => flags.scale_down_delay_after_add = span(),
        "scale-down-delay-after-delete" => flags.scale_down_delay_after_delete = span(),
        "scale-down-unneeded-time" => flags.scale_down_unneeded_time = span(),
        "unremovable-node-recheck-timeout" => flags.unremovable_node_recheck_timeout = span(),
        "new-pod-scale-up-delay" => flags.new_pod_scale_up_delay = span(),
        "max-node-provision-time" => flags.max_node_provision_time = span(),
        "initial-node-group-backoff-duration" => flags.initial_node_group_backoff_duration = span(),
        "max-node-startup-time" => flags.max_node_startup_time = span(),
        "expander" => flags.expander = value.split(',').map(expander).collect(),
        "max-nodes-total" => flags.max_nodes_total = count(),
        "max-nodes-per-scaleup" => flags.max_nodes_per_scaleup = count(),
        "max-scale-down-parallelism" => flags.max_scale_down_parallelism = count(),
        "max-drain-parallelism" => flags.max_drain_parallelism = count(),
        "max-graceful-termination-sec" => flags.max_graceful_termination = SimDuration::from_secs(count() as i64),
        "salvo-scale-up" => flags.salvo_scale_up = switch(),
        "balance-similar-node-groups" => flags.balance_similar_node_groups = switch(),
        "balancing-ignore-label" => flags.balancing_ignore_label.push(value.into()),
        "enforce-node-group-min-size" => flags.enforce_node_group_min_size = switch(),
        "ignore-daemonsets-utilization" => flags.ignore_daemonsets_utilization = switch(),
        "frequent-loops-enabled" => flags.frequent_loops_enabled = switch(),
        "skip-nodes-with-local-storage" => flags.skip_nodes_with_local_storage = switch(),
        "skip-nodes-with-system-pods" => flags.skip_nodes_with_system_pods = switch(),
        "skip-nodes-with-custom-controller-pods" => flags.skip_nodes_with_custom_controller_pods = switch(),
        "cores-total" => {
            let (least, most) = value.split_once(':').expect("MIN:MAX");
            let number = |text: &str| text.parse().expect("a number of cores");
            flags.cores_total = Limits { least: number(least), most: number(most) };
        }
        _ => panic!("the recordings use --{name}, which the model does not know"),
    }
}

fn expander(name: &str) -> Expander {
    match name {
        "random" => Expander::Random,
        "least-waste" => Expander::LeastWaste,
        "most-pods" => Expander::MostPods,
        "least-nodes" => Expander::LeastNodes,
        "priority" => Expander::Priority,
        _ => panic!("the recordings use the expander {name}, which the model does not know"),
    }
}

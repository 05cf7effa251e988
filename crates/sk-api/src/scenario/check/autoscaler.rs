//! Validates the autoscaler's flags, each and together with the groups.

use sk_core::SimDuration;

use super::super::error::shown;
use super::super::path::Path;
use super::super::{Autoscaler, Expander, Scenario};
use super::Faults;

/// The shortest interval of the autoscaler's loop: a week then has 604,800 loops.
const MIN_SCAN_INTERVAL: SimDuration = SimDuration::from_secs(1);

pub(super) fn check_autoscaler(scenario: &Scenario, faults: &mut Faults<'_>) {
    let at = Path::of(["autoscaler"]);
    let autoscaler = &scenario.autoscaler;
    faults.unless(autoscaler.scan_interval >= MIN_SCAN_INTERVAL, at.field("scan-interval"), || {
        format!("scans come at least {MIN_SCAN_INTERVAL} apart: write that or more")
    });
    check_numbers(autoscaler, &at, faults);
    let (first, most) = (autoscaler.initial_node_group_backoff_duration, autoscaler.max_node_group_backoff_duration);
    faults.unless(first <= most, at.field("max-node-group-backoff-duration"), || {
        format!("{most} is less than initial-node-group-backoff-duration, which is {first}: raise it, or lower that")
    });
    check_priorities(autoscaler, &at, faults);
    if autoscaler.expander.0.contains(&Expander::Price) {
        for (name, _) in scenario.cluster.groups.iter().filter(|(_, group)| group.price.is_none()) {
            let problem =
                "the expander `price` needs the price of every group: add `price`, or choose another expander";
            faults.add(Path::of(["cluster", "groups", name]), problem);
        }
    }
}

fn check_numbers(autoscaler: &Autoscaler, at: &Path, faults: &mut Faults<'_>) {
    let shares = [
        ("scale-down-utilization-threshold", autoscaler.scale_down_utilization_threshold),
        ("scale-down-gpu-utilization-threshold", autoscaler.scale_down_gpu_utilization_threshold),
    ];
    for (flag, share) in shares {
        faults.unless((0.0..=1.0).contains(&share), at.field(flag), || {
            format!("{share} is not a share: write one from 0 to 1, such as 0.5")
        });
    }
    let counts = [
        ("max-scale-down-parallelism", autoscaler.max_scale_down_parallelism),
        ("max-drain-parallelism", autoscaler.max_drain_parallelism),
    ];
    for (flag, count) in counts {
        faults.unless(count > 0, at.field(flag), || {
            "0 would never remove a node: write at least 1, or scale-down-enabled: false".to_owned()
        });
    }
    let percentage = autoscaler.max_total_unready_percentage;
    faults.unless(percentage <= 100, at.field("max-total-unready-percentage"), || {
        format!("{percentage} is not a percentage: write one from 0 to 100")
    });
}

/// The priority expander needs priorities, and they need to be numbers with patterns that compile.
fn check_priorities(autoscaler: &Autoscaler, at: &Path, faults: &mut Faults<'_>) {
    let is_asked = autoscaler.expander.0.contains(&Expander::Priority);
    faults.unless(!is_asked || !autoscaler.priorities.is_empty(), at.field("expander"), || {
        "the expander `priority` needs `priorities`: what its ConfigMap says, such as {10: [.*spot.*]}".to_owned()
    });
    for (priority, patterns) in &autoscaler.priorities {
        let at = at.field("priorities").field(priority);
        faults.unless(priority.parse::<i64>().is_ok(), at.clone(), || {
            format!("`{}` is not a priority: write a whole number", shown(priority))
        });
        for (index, pattern) in patterns.iter().enumerate() {
            faults.unless(regex_lite::Regex::new(pattern).is_ok(), at.index(index), || {
                format!("`{}` is not a regular expression", shown(pattern))
            });
        }
    }
}

//! Validates `cluster`: node groups, and the names, labels and taints that Kubernetes accepts.

use std::collections::{BTreeMap, BTreeSet};

use sk_core::label::{is_label_key, is_label_value};
use sk_core::{Quantity, SmolStr};

use super::{Faults, is_dns_label, not_a_name};
use crate::scenario::cluster::{Nodes, Reserved};
use crate::scenario::error::shown;
use crate::scenario::group::{Group, Ready};
use crate::scenario::{Path, Scenario};

/// The most nodes that one group may have, and that all groups together may start with: ten times what Kubernetes says
/// a whole cluster may have (5,000).
const MAX_NODES: u32 = 50_000;

/// Less memory than this was meant in other units: no machine has so little.
const MIN_MEMORY: Quantity = Quantity::from_value(1 << 20);

/// The largest amount of anything: a thousand times the memory of the largest machines there are, in bytes. In
/// thousandths it still fits an `i64`, so nothing that is counted in them later saturates.
const MAX_AMOUNT: Quantity = Quantity::from_value(1_000_000_000_000_000);

pub(super) fn check_cluster(scenario: &Scenario, faults: &mut Faults<'_>) {
    let at = Path::of(["cluster"]);
    let cluster = &scenario.cluster;
    let letters = &cluster.currency;
    faults.unless(
        letters.len() == 3 && letters.bytes().all(|byte| byte.is_ascii_uppercase()),
        at.field("currency"),
        || format!("`{}` is not a currency: use its three letters, such as USD or EUR", shown(letters)),
    );
    if cluster.nodes == Nodes::Groups && cluster.groups.is_empty() {
        let problem = "there is no node group, so no pod could ever run: add one, such as \
                       {small: {min: 1, max: 10, cpu: 4, memory: 16Gi}}";
        faults.add(at.field("groups"), problem);
    }
    if let Some(Reserved::Fixed(amounts)) = &cluster.reserved {
        check_amounts(amounts, &at.field("reserved"), faults);
    }
    let start: u64 = cluster.groups.values().map(|group| u64::from(group.min)).sum();
    faults.unless(start <= u64::from(MAX_NODES), at.field("groups"), || {
        format!("all groups together start with {start} nodes, and at most {MAX_NODES} are simulated: lower some min")
    });
    for (name, group) in &cluster.groups {
        let at = at.field("groups").field(name);
        faults.unless(is_dns_label(name), at.clone(), || not_a_name(name));
        check_group(group, &at, faults);
    }
}

fn check_group(group: &Group, at: &Path, faults: &mut Faults<'_>) {
    let Group { min, max, .. } = *group;
    faults.unless(max > 0, at.field("max"), || {
        "a group of at most 0 nodes has none: remove the group or raise it".to_owned()
    });
    faults.unless(max <= MAX_NODES, at.field("max"), || format!("at most {MAX_NODES} nodes are simulated"));
    faults.unless(min <= max, at.field("min"), || format!("min {min} is more than max {max}: lower it, or raise max"));
    for (resource, amount) in [("cpu", group.cpu), ("memory", group.memory)] {
        match amount {
            Some(amount) => {
                check_size(amount, &at.field(resource), faults);
                check_unit(resource, amount, &at.field(resource), faults);
            }
            None if group.matches.is_empty() => {
                faults.add(at.clone(), format!("`{resource}` is missing: say what a node of this group has"));
            }
            None => {}
        }
    }
    check_allocatable(group, at, faults);
    check_labels(&group.matches, &at.field("match"), faults);
    check_labels(&group.labels, &at.field("labels"), faults);
    check_taints(group, &at.field("taints"), faults);
    faults.unless(group.price.is_none_or(|price| price >= 0.0), at.field("price"), || {
        "a price is not negative; leave it out if it is not known".to_owned()
    });
    if let Ready::Spread { p50, p99 } = group.ready {
        faults.unless(p50 <= p99, at.field("ready"), || "p50 is more than p99: swap them".to_owned());
    }
}

fn check_size(amount: Quantity, at: &Path, faults: &mut Faults<'_>) {
    let possible = Quantity::ZERO < amount && amount <= MAX_AMOUNT;
    faults.unless(possible, at.clone(), || {
        format!("{amount} is not the size of a machine: write more than 0, and at most {MAX_AMOUNT}")
    });
}

/// `memory: 16` is 16 bytes to Kubernetes, and 16 Gi to whoever writes it.
fn check_unit(resource: &str, amount: Quantity, at: &Path, faults: &mut Faults<'_>) {
    let is_tiny = resource == "memory" && Quantity::ZERO < amount && amount < MIN_MEMORY;
    faults.unless(!is_tiny, at.clone(), || format!("{amount} bytes? write the unit, such as {amount}Gi"));
}

fn check_amounts(amounts: &BTreeMap<SmolStr, Quantity>, at: &Path, faults: &mut Faults<'_>) {
    for (resource, amount) in amounts {
        faults.unless(is_label_key(resource), at.field(resource), || {
            format!("`{}` is not a resource: use cpu, memory, pods or a name such as nvidia.com/gpu", shown(resource))
        });
        let possible = !amount.is_negative() && *amount <= MAX_AMOUNT;
        faults.unless(possible, at.field(resource), || format!("{amount} is not an amount: write 0 to {MAX_AMOUNT}"));
        check_unit(resource, *amount, &at.field(resource), faults);
    }
}

fn check_allocatable(group: &Group, at: &Path, faults: &mut Faults<'_>) {
    let at = at.field("allocatable");
    check_amounts(&group.allocatable, &at, faults);
    for (resource, whole) in [("cpu", group.cpu), ("memory", group.memory)] {
        let Some((left, whole)) = group.allocatable.get(resource).zip(whole) else { continue };
        faults.unless(*left <= whole, at.field(resource), || {
            format!("{left} is more than the machine's {whole}: what is left for pods cannot be")
        });
    }
    for resource in ["cpu", "memory", "pods"] {
        let none = group.allocatable.get(resource).is_some_and(|amount| amount.is_zero());
        faults
            .unless(!none, at.field(resource), || "nothing is left, so no pod could run: write more than 0".to_owned());
    }
}

fn check_labels(labels: &BTreeMap<SmolStr, SmolStr>, at: &Path, faults: &mut Faults<'_>) {
    for (key, value) in labels {
        faults.unless(is_label_key(key), at.field(key), || format!("`{}` is not a valid label key", shown(key)));
        faults.unless(is_label_value(value), at.field(key), || {
            format!("`{}` is not a valid label value: at most 63 letters, digits, `-`, `_` and `.`", shown(value))
        });
    }
}

fn check_taints(group: &Group, at: &Path, faults: &mut Faults<'_>) {
    let mut seen = BTreeSet::new();
    for (index, taint) in group.taints.iter().enumerate() {
        let at = at.index(index);
        faults.unless(is_label_key(&taint.key), at.field("key"), || {
            format!("`{}` is not a valid taint key", shown(&taint.key))
        });
        faults.unless(is_label_value(&taint.value), at.field("value"), || {
            format!(
                "`{}` is not a valid taint value: at most 63 letters, digits, `-`, `_` and `.`",
                shown(&taint.value)
            )
        });
        // As the API server has it: core/validation, `validateNodeTaints`.
        faults.unless(seen.insert((&taint.key, taint.effect)), at.clone(), || {
            format!("`{}` has this effect twice: keep one of them", shown(&taint.key))
        });
    }
}

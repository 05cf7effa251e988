//! What no single field can know: names, sizes and bounds that must fit together.
//!
//! All faults are found at once, because people mend files and not lines.

use std::collections::{BTreeMap, BTreeSet};

use sk_core::label::{is_dns_subdomain, is_label_key, is_label_value};
use sk_core::{Quantity, SimDuration, SmolStr, TimeSpec};

use super::cluster::{Nodes, Reserved};
use super::error::{Fault, MAX_FAULTS, ScenarioError, listed, shown};
use super::group::{Group, Ready};
use super::path::Path;
use super::suggest::did_you_mean;
use super::timeline::Happening;
use super::yaml::Document;
use super::{Assertion, Holds, Scenario};

/// A name that becomes part of node names and folders is at most this long (RFC 1123).
const MAX_NAME_BYTES: usize = 63;

/// The most nodes one group may have: ten times what Kubernetes says a whole cluster may have (5,000).
const MAX_GROUP_NODES: u32 = 50_000;

/// The largest amount of anything: a thousand times the memory of the largest machines there are, in bytes. In
/// thousandths it still fits an `i64`, so nothing that is counted in them later saturates.
const MAX_AMOUNT: Quantity = Quantity::from_value(1_000_000_000_000_000);

/// The shortest time between two looks at the cluster: a week then has 604,800 of them.
const MIN_SCAN_INTERVAL: SimDuration = SimDuration::from_secs(1);

pub(crate) fn check(scenario: &Scenario, document: &Document) -> Result<(), ScenarioError> {
    let mut faults = Faults { document, found: Vec::new() };
    if let Some(name) = &scenario.name {
        faults.unless(is_dns_label(name), Path::of(["name"]), || not_a_name(name));
    }
    check_trace(scenario, &mut faults);
    check_cluster(scenario, &mut faults);
    check_autoscaler(scenario, &mut faults);
    check_timeline(scenario, &mut faults);
    faults.unless(scenario.repetitions > 0, Path::of(["repetitions"]), || "a run happens at least once".to_owned());
    check_variants(scenario, &mut faults);
    check_assertions(scenario, &mut faults);
    if faults.found.is_empty() { Ok(()) } else { Err(ScenarioError::Meaning(faults.found)) }
}

struct Faults<'a> {
    document: &'a Document,
    found: Vec<Fault>,
}

impl Faults<'_> {
    fn add(&mut self, path: Path, problem: impl Into<String>) {
        if self.found.len() < MAX_FAULTS {
            self.found.push(Fault { place: self.document.place_of(&path), path, problem: problem.into() });
        }
    }

    fn unless(&mut self, good: bool, path: Path, problem: impl FnOnce() -> String) {
        if !good {
            self.add(path, problem());
        }
    }
}

fn is_dns_label(name: &str) -> bool {
    name.len() <= MAX_NAME_BYTES && !name.contains('.') && is_dns_subdomain(name)
}

fn not_a_name(name: &str) -> String {
    format!(
        "`{}` is no name: use at most {MAX_NAME_BYTES} lower-case letters, digits and `-`, as in `small-1`",
        shown(name)
    )
}

/// What is said about a name that stands for nothing.
fn no_such<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    if known.clone().next().is_none() {
        return format!("there is no {what} `{}`, because there are none", shown(name));
    }
    let advice = did_you_mean(name, known.clone());
    format!("there is no {what} `{}`, only {}{advice}", shown(name), listed(known))
}

fn check_trace(scenario: &Scenario, faults: &mut Faults<'_>) {
    let at = Path::of(["trace"]);
    let trace = &scenario.trace;
    if trace.duration.is_some() && trace.end.is_some() {
        faults.add(at.field("end"), "`end` and `duration` both say where the replay ends: keep one of them");
    }
    faults.unless(trace.duration != Some(SimDuration::ZERO), at.field("duration"), || {
        "0s is nothing to replay".to_owned()
    });
    let ordered = match (trace.start, trace.end) {
        (Some(TimeSpec::At(start)), Some(TimeSpec::At(end))) => start < end,
        (Some(TimeSpec::AfterStart(start)), Some(TimeSpec::AfterStart(end))) => start < end,
        (Some(TimeSpec::OnClocks(start)), Some(TimeSpec::OnClocks(end))) => start < end,
        (Some(TimeSpec::BeforeNow(start)), Some(TimeSpec::BeforeNow(end))) => start > end,
        // Which of two different forms is earlier depends on the trace and on when it is asked.
        _ => true,
    };
    faults.unless(ordered, at.field("end"), || "the end must come after the start".to_owned());
}

fn check_cluster(scenario: &Scenario, faults: &mut Faults<'_>) {
    let at = Path::of(["cluster"]);
    let cluster = &scenario.cluster;
    let letters = &cluster.currency;
    faults.unless(
        letters.len() == 3 && letters.bytes().all(|byte| byte.is_ascii_uppercase()),
        at.field("currency"),
        || format!("`{}` is no currency: use its three letters, such as USD or EUR", shown(letters)),
    );
    if cluster.nodes == Nodes::Groups && cluster.groups.is_empty() {
        let problem = "there is no node group, so no pod could ever run: add one, such as \
                       {small: {min: 1, max: 10, cpu: 4, memory: 16Gi}}";
        faults.add(at.field("groups"), problem);
    }
    if let Some(Reserved::Fixed(amounts)) = &cluster.reserved {
        check_amounts(amounts, &at.field("reserved"), faults);
    }
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
    faults.unless(max <= MAX_GROUP_NODES, at.field("max"), || format!("at most {MAX_GROUP_NODES} nodes are simulated"));
    faults.unless(min <= max, at.field("min"), || format!("min {min} is more than max {max}: lower it, or raise max"));
    for (resource, amount) in [("cpu", group.cpu), ("memory", group.memory)] {
        match amount {
            Some(amount) => check_size(amount, &at.field(resource), faults),
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
        format!("{amount} is no size of a machine: write more than 0, and at most {MAX_AMOUNT}")
    });
}

fn check_amounts(amounts: &BTreeMap<SmolStr, Quantity>, at: &Path, faults: &mut Faults<'_>) {
    for (resource, amount) in amounts {
        faults.unless(is_label_key(resource), at.field(resource), || {
            format!("`{}` is no resource: use cpu, memory, pods or a name such as nvidia.com/gpu", shown(resource))
        });
        let possible = !amount.is_negative() && *amount <= MAX_AMOUNT;
        faults.unless(possible, at.field(resource), || format!("{amount} is no amount: write 0 to {MAX_AMOUNT}"));
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
        faults
            .unless(is_label_key(key), at.field(key), || format!("`{}` is no label's name in Kubernetes", shown(key)));
        faults.unless(is_label_value(value), at.field(key), || {
            format!("`{}` is no label's value: at most 63 letters, digits, `-`, `_` and `.`", shown(value))
        });
    }
}

fn check_taints(group: &Group, at: &Path, faults: &mut Faults<'_>) {
    let mut seen = BTreeSet::new();
    for (index, taint) in group.taints.iter().enumerate() {
        let at = at.index(index);
        faults.unless(is_label_key(&taint.key), at.field("key"), || {
            format!("`{}` is no taint's key in Kubernetes", shown(&taint.key))
        });
        faults.unless(is_label_value(&taint.value), at.field("value"), || {
            format!("`{}` is no taint's value: at most 63 letters, digits, `-`, `_` and `.`", shown(&taint.value))
        });
        // As the API server has it: core/validation, `validateNodeTaints`.
        faults.unless(seen.insert((&taint.key, taint.effect)), at.clone(), || {
            format!("`{}` has this effect twice: keep one of them", shown(&taint.key))
        });
    }
}

fn check_autoscaler(scenario: &Scenario, faults: &mut Faults<'_>) {
    let at = Path::of(["autoscaler"]);
    let autoscaler = &scenario.autoscaler;
    faults.unless(autoscaler.scan_interval >= MIN_SCAN_INTERVAL, at.field("scan-interval"), || {
        format!("scans come at least {MIN_SCAN_INTERVAL} apart: write that or more")
    });
    let threshold = autoscaler.scale_down_utilization_threshold;
    faults.unless((0.0..=1.0).contains(&threshold), at.field("scale-down-utilization-threshold"), || {
        format!("{threshold} is no share: write one from 0 to 1, such as 0.5")
    });
    let counts = [
        ("max-scale-down-parallelism", autoscaler.max_scale_down_parallelism),
        ("max-drain-parallelism", autoscaler.max_drain_parallelism),
    ];
    for (flag, count) in counts {
        faults.unless(count > 0, at.field(flag), || {
            "0 would never remove a node: write at least 1, or scale-down-enabled: false".to_owned()
        });
    }
}

fn check_timeline(scenario: &Scenario, faults: &mut Faults<'_>) {
    for (index, happening) in scenario.timeline.iter().enumerate() {
        check_happening(happening, scenario, &Path::of(["timeline"]).index(index), faults);
    }
}

fn check_happening(happening: &Happening, scenario: &Scenario, at: &Path, faults: &mut Faults<'_>) {
    faults.unless(happening.at.is_some() != happening.every.is_some(), at.clone(), || {
        "say either `at` or `every`: when it happens".to_owned()
    });
    faults.unless(happening.every != Some(SimDuration::ZERO), at.field("every"), || "0s is no interval".to_owned());
    let said = [
        happening.stockout.is_some(),
        happening.lose_zone.is_some(),
        happening.reclaim.is_some(),
        !happening.set.is_empty(),
    ];
    faults.unless(said.iter().filter(|said| **said).count() == 1, at.clone(), || {
        "say one of `stockout`, `loseZone`, `reclaim` and `set`: what happens".to_owned()
    });
    let groups = [
        ("stockout", happening.stockout.as_ref().map(|stockout| &stockout.group)),
        ("reclaim", happening.reclaim.as_ref().map(|reclaim| &reclaim.group)),
    ];
    for (what, group) in groups {
        let Some(group) = group.filter(|group| !scenario.cluster.groups.contains_key(*group)) else { continue };
        let known = scenario.cluster.groups.keys().map(SmolStr::as_str);
        faults.add(at.field(what).field("group"), no_such("group", group, known));
    }
    let share = happening.reclaim.as_ref().map_or(0.0, |reclaim| reclaim.share);
    faults.unless((0.0..=1.0).contains(&share), at.field("reclaim").field("share"), || {
        format!("{share} is no share: write one from 0 to 1, such as 0.1")
    });
    check_changes(happening.set.keys(), &at.field("set"), faults);
}

fn check_changes<'a>(paths: impl Iterator<Item = &'a String>, at: &Path, faults: &mut Faults<'_>) {
    for path in paths {
        if let Err(error) = path.parse::<Path>() {
            faults.add(at.field(path), error.to_string());
        }
    }
}

fn check_variants(scenario: &Scenario, faults: &mut Faults<'_>) {
    for variant in &scenario.variants {
        let at = Path::of(["variants", &variant.name]);
        faults.unless(is_dns_label(&variant.name), at.clone(), || not_a_name(&variant.name));
        check_changes(variant.changes.keys(), &at, faults);
    }
}

fn check_assertions(scenario: &Scenario, faults: &mut Faults<'_>) {
    let mut names = BTreeSet::new();
    for (index, Assertion { name, that, holds }) in scenario.assertions.iter().enumerate() {
        let at = Path::of(["assert"]).index(index);
        faults.unless(!that.trim().is_empty(), at.clone(), || {
            "an assertion says something, such as nodes.max <= 10".to_owned()
        });
        let name = name.as_deref().unwrap_or(that);
        faults.unless(names.insert(name), at.clone(), || {
            format!("`{}` stands here twice: keep one of them", shown(name))
        });
        let Holds::Variants(variants) = holds else { continue };
        for variant in variants {
            let known = || scenario.variants.iter().map(|variant| variant.name.as_str());
            faults
                .unless(known().any(|name| name == variant), at.field("for"), || no_such("variant", variant, known()));
        }
    }
}

//! Plugin arguments (`apis/config/v1/defaults.go`, `apis/config/validation/validation_pluginargs.go`).

use std::collections::BTreeMap;

use sk_core::SmolStr;
use sk_core::label::is_label_key;

use super::reader::{At, Read};
use super::small;
use crate::class::{NodeSelectorTerm, SpreadConstraint, node_selector_term, spread_constraint};
use crate::framework::Profile;
use crate::framework::plugin::PluginId;
use crate::framework::profile::Strategy;

/// Fields that every plugin's arguments may have.
const TYPE: [&str; 2] = ["apiVersion", "kind"];

/// Takes `pluginConfig` over.
pub(super) fn read(entries: &[At<'_>], profile: &mut Profile, ignored: &mut Vec<String>) -> Read<()> {
    let mut seen = Vec::new();
    for entry in entries {
        entry.only(&["name", "args"])?;
        let name = entry.text_of("name")?.unwrap_or_default();
        if seen.contains(&name) {
            return entry.wrong(format!("{name} is configured twice: keep one of them"));
        }
        seen.push(name);
        let Some(plugin) = PluginId::parse(name) else {
            return entry.wrong(format!("the plugin `{name}` is not built in: remove its configuration"));
        };
        let Some(args) = entry.get("args")? else { continue };
        match plugin {
            PluginId::NodeResourcesFit => fit(&args, profile)?,
            PluginId::NodeResourcesBalancedAllocation => balanced(&args, profile)?,
            PluginId::InterPodAffinity => inter_pod_affinity(&args, profile)?,
            PluginId::PodTopologySpread => spread(&args, profile)?,
            PluginId::NodeAffinity => node_affinity(&args, profile)?,
            PluginId::DefaultPreemption => preemption(&args, profile)?,
            PluginId::VolumeBinding => {
                fields(&args, &["bindTimeoutSeconds"])?;
                args.number("bindTimeoutSeconds", 600, 0..=i64::MAX)?;
                ignored.push(format!("{}: volumes are bound at once", args.path));
            }
            PluginId::DynamicResources => ignored.push(format!("{}: DynamicResources is passed through", args.path)),
            _ => return args.wrong(format!("{name} takes no arguments: remove them")),
        }
    }
    Ok(())
}

fn fields(args: &At<'_>, own: &[&str]) -> Read<()> {
    let known: Vec<&str> = TYPE.iter().chain(own).copied().collect();
    args.only(&known)
}

/// A list of resources with weights from 1 to `most`; absent or empty: CPU and memory.
fn resources(at: &At<'_>, name: &str, most: i64) -> Read<Vec<(SmolStr, i64)>> {
    let mut read: Vec<(SmolStr, i64)> = Vec::new();
    for one in at.list(name)? {
        one.only(&["name", "weight"])?;
        let resource = one.text_of("name")?.unwrap_or_default();
        if resource.is_empty() {
            return one.wrong("`name` is missing: name a resource, such as cpu");
        }
        if read.iter().any(|(known, _)| known == resource) {
            return one.wrong(format!("{resource} stands here twice: keep one of them"));
        }
        let weight = match one.number("weight", 1, 0..=most)? {
            0 => 1,
            weight => weight,
        };
        read.push((resource.into(), weight));
    }
    if read.is_empty() {
        read = vec![("cpu".into(), 1), ("memory".into(), 1)];
    }
    Ok(read)
}

fn texts(at: &At<'_>, name: &str) -> Read<Vec<SmolStr>> {
    let mut read = Vec::new();
    for one in at.list(name)? {
        let text = one.text()?;
        if !is_label_key(text) {
            return one.wrong(format!("`{text}` is no name of a resource or a group of them"));
        }
        read.push(text.into());
    }
    Ok(read)
}

fn fit(args: &At<'_>, profile: &mut Profile) -> Read<()> {
    fields(args, &["ignoredResources", "ignoredResourceGroups", "scoringStrategy"])?;
    profile.fit.ignored = texts(args, "ignoredResources")?;
    profile.fit.ignored_groups = texts(args, "ignoredResourceGroups")?;
    if let Some(group) =
        args.list("ignoredResourceGroups")?.iter().find(|one| one.text().is_ok_and(|t| t.contains('/')))
    {
        return group.wrong("a group is what stands before the slash: leave the slash out");
    }
    let Some(strategy) = args.get("scoringStrategy")? else { return Ok(()) };
    strategy.only(&["type", "resources", "requestedToCapacityRatio"])?;
    profile.fit.resources = resources(&strategy, "resources", 100)?;
    let ratio = strategy.get("requestedToCapacityRatio")?;
    profile.fit.strategy = match (strategy.text_of("type")?.unwrap_or("LeastAllocated"), ratio) {
        ("LeastAllocated", None) => Strategy::LeastAllocated,
        ("MostAllocated", None) => Strategy::MostAllocated,
        ("RequestedToCapacityRatio", Some(ratio)) => Strategy::RequestedToCapacityRatio(shape(&ratio)?),
        ("RequestedToCapacityRatio", None) => {
            return strategy.wrong("`requestedToCapacityRatio` is missing: give it a `shape`");
        }
        ("LeastAllocated" | "MostAllocated", Some(ratio)) => {
            return ratio.wrong("belongs to the strategy RequestedToCapacityRatio only: remove it or change `type`");
        }
        (other, _) => {
            let known = "LeastAllocated, MostAllocated or RequestedToCapacityRatio";
            return strategy.wrong(format!("`{other}` is no strategy: use {known}"));
        }
    };
    Ok(())
}

fn shape(ratio: &At<'_>) -> Read<Vec<(i64, i64)>> {
    ratio.only(&["shape"])?;
    let mut points: Vec<(i64, i64)> = Vec::new();
    for one in ratio.list("shape")? {
        one.only(&["utilization", "score"])?;
        let point = (one.number("utilization", 0, 0..=100)?, one.number("score", 0, 0..=10)?);
        if points.last().is_some_and(|last| last.0 >= point.0) {
            return one.wrong("utilizations must go up from point to point");
        }
        points.push(point);
    }
    if points.is_empty() { ratio.wrong("`shape` needs at least one point") } else { Ok(points) }
}

fn balanced(args: &At<'_>, profile: &mut Profile) -> Read<()> {
    fields(args, &["resources"])?;
    let read = resources(args, "resources", 1)?;
    profile.balanced = read.into_iter().map(|(name, _)| name).collect();
    Ok(())
}

fn inter_pod_affinity(args: &At<'_>, profile: &mut Profile) -> Read<()> {
    fields(args, &["hardPodAffinityWeight", "ignorePreferredTermsOfExistingPods"])?;
    profile.hard_pod_affinity_weight = small(args.number("hardPodAffinityWeight", 1, 0..=100)?);
    profile.ignore_preferred_terms_of_existing_pods = args.flag("ignorePreferredTermsOfExistingPods")?;
    Ok(())
}

fn preemption(args: &At<'_>, profile: &mut Profile) -> Read<()> {
    fields(args, &["minCandidateNodesPercentage", "minCandidateNodesAbsolute"])?;
    profile.min_candidate_nodes_percentage = small(args.number("minCandidateNodesPercentage", 10, 0..=100)?);
    profile.min_candidate_nodes_absolute =
        small(args.number("minCandidateNodesAbsolute", 100, 0..=i64::from(i32::MAX))?);
    if profile.min_candidate_nodes_percentage == 0 && profile.min_candidate_nodes_absolute == 0 {
        return args.wrong("the two cannot both be 0: then no node would ever be looked at");
    }
    Ok(())
}

fn spread(args: &At<'_>, profile: &mut Profile) -> Read<()> {
    fields(args, &["defaultConstraints", "defaultingType"])?;
    let constraints = args.list("defaultConstraints")?;
    match args.text_of("defaultingType")?.unwrap_or("System") {
        "System" if constraints.is_empty() => return Ok(()),
        "System" => return args.wrong("`defaultConstraints` need `defaultingType: List`"),
        "List" => {}
        other => return args.wrong(format!("`{other}` is no defaultingType: use System or List")),
    }
    profile.spread.system_defaulted = false;
    profile.spread.default_constraints = constraints.iter().map(default_constraint).collect::<Read<_>>()?;
    let keys: Vec<(&SmolStr, bool)> =
        profile.spread.default_constraints.iter().map(|one| (&one.key, one.hard)).collect();
    match (1..keys.len()).find(|at| keys[..*at].contains(&keys[*at])) {
        Some(at) => constraints[at].wrong("another constraint has this topologyKey and whenUnsatisfiable: keep one"),
        None => Ok(()),
    }
}

fn default_constraint(at: &At<'_>) -> Read<SpreadConstraint> {
    at.only(&[
        "maxSkew",
        "topologyKey",
        "whenUnsatisfiable",
        "labelSelector",
        "minDomains",
        "nodeAffinityPolicy",
        "nodeTaintsPolicy",
        "matchLabelKeys",
    ])?;
    at.number("maxSkew", 0, 1..=i64::from(i32::MAX))?;
    if at.get("maxSkew")?.is_none() {
        return at.wrong("`maxSkew` is missing: it is at least 1");
    }
    if !at.text_of("topologyKey")?.is_some_and(is_label_key) {
        return at.wrong("`topologyKey` must be a label's key, such as topology.kubernetes.io/zone");
    }
    if !matches!(at.text_of("whenUnsatisfiable")?, Some("DoNotSchedule" | "ScheduleAnyway")) {
        return at.wrong("`whenUnsatisfiable` must be DoNotSchedule or ScheduleAnyway");
    }
    if let Some(selector) = at.get("labelSelector")? {
        return selector
            .wrong("a default constraint has no selector: it is taken from each pod's Services and controller");
    }
    spread_constraint(at.value, &BTreeMap::new()).or_else(|error| at.wrong(error.to_string()))
}

fn node_affinity(args: &At<'_>, profile: &mut Profile) -> Read<()> {
    fields(args, &["addedAffinity"])?;
    let Some(added) = args.get("addedAffinity")? else { return Ok(()) };
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
    added.only(&[REQUIRED, PREFERRED])?;
    if let Some(required) = added.get(REQUIRED)? {
        required.only(&["nodeSelectorTerms"])?;
        let terms = required.list("nodeSelectorTerms")?;
        profile.added_required = Some(terms.iter().map(term).collect::<Read<Vec<_>>>()?);
    }
    for one in added.list(PREFERRED)? {
        one.only(&["weight", "preference"])?;
        let Some(preference) = one.get("preference")? else { return one.wrong("`preference` is missing") };
        let weight = small(one.number("weight", 0, 1..=100)?);
        profile.added_preferred.push((weight, term(&preference)?));
    }
    Ok(())
}

fn term(at: &At<'_>) -> Read<NodeSelectorTerm> {
    at.only(&["matchExpressions", "matchFields"])?;
    match node_selector_term(at.value) {
        read if read.matches_nothing => at.wrong("no node can match this term: check its operators and values"),
        read => Ok(read),
    }
}

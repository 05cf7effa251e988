//! `skctl scenario init`: writes a commented scenario for a trace or a cluster.
//!
//! For a trace with recorded nodes, or for a cluster, every node pool becomes a node group; nodes without a pool label become
//! one group per size. Properties that the trace does not record are written out, so the groups of a cluster can be used
//! with any trace. For a trace without nodes, one group is made from its largest pod and the sum of all pods. Prices are
//! never invented: they are comments to be filled in.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::{Result, bail};
use serde_json::Value;
use sk_core::{Quantity, SmolStr};
use sk_replay::fit::{Demand, demand, nodes_over_time, recorded_nodes};
use sk_store::Trace;

use crate::cli::{Global, ScenarioInitArgs};
use crate::{cluster, output, runs, traces};

/// Labels by which clouds and tools tell pools of nodes apart, the most telling first.
const POOLS: [&str; 9] = [
    "eks.amazonaws.com/nodegroup",
    "karpenter.sh/nodepool",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
    "agentpool",
    "alpha.eksctl.io/nodegroup-name",
    "kops.k8s.io/instancegroup",
    "doks.digitalocean.com/node-pool",
    "node.kubernetes.io/instance-type",
];
const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
const HOSTNAME: &str = "kubernetes.io/hostname";

/// Machines that many know: cores, GiB, and what three clouds call them.
const MACHINES: [(i64, i64, &str); 6] = [
    (2, 8, "m7i.large, n2-standard-2, Standard_D2s_v5"),
    (4, 16, "m7i.xlarge, n2-standard-4, Standard_D4s_v5"),
    (8, 32, "m7i.2xlarge, n2-standard-8, Standard_D8s_v5"),
    (16, 64, "m7i.4xlarge, n2-standard-16, Standard_D16s_v5"),
    (32, 128, "m7i.8xlarge, n2-standard-32, Standard_D32s_v5"),
    (64, 256, "m7i.16xlarge, n2-standard-64, Standard_D64s_v5"),
];
/// A node takes about so many of the largest pods.
const LARGEST_PODS_PER_NODE: i64 = 4;

pub(super) fn run(args: &ScenarioInitArgs, global: &Global) -> Result<()> {
    let text = match &args.trace {
        Some(typed) => of_trace(typed, &traces::open(typed, global)?)?,
        None if global.context.is_some() || global.kubeconfig.is_some() => of_cluster(global)?,
        None => bail!("name a trace (`skctl scenario init TRACE`) or a cluster (`skctl --context NAME scenario init`)"),
    };
    output::print(&text)
}

fn of_trace(typed: &str, trace: &Trace) -> Result<String> {
    let name = runs::folder_name(&traces::default_name(typed)).to_lowercase();
    let nodes = recorded_nodes(trace)?;
    if nodes.is_empty() {
        return Ok(of_demand(&name, &demand(trace)?));
    }
    let counts = nodes_over_time(trace, |node| pool_of(node).map(|(_, value)| value.into()))?;
    let has_reserved = trace.reserved()?.next().is_some();
    Ok(of_nodes(&name, &nodes, &counts, &Seen::Recorded { has_reserved }))
}

fn of_cluster(global: &Global) -> Result<String> {
    let nodes = cluster::nodes(global)?;
    if nodes.is_empty() {
        bail!(
            "the cluster has no nodes to make groups of; `skctl scenario init TRACE` asks the pods of a trace instead"
        );
    }
    let mut counts: BTreeMap<SmolStr, (u32, u32)> = BTreeMap::new();
    for (_, value) in nodes.values().filter_map(pool_of) {
        let (least, most) = counts.entry(value.into()).or_default();
        (*least, *most) = (*least + 1, *most + 1);
    }
    Ok(of_nodes("cluster", &nodes, &counts, &Seen::Now))
}

/// The label that tells the node's pool, and its value.
fn pool_of(node: &Value) -> Option<(&'static str, &str)> {
    POOLS.iter().find_map(|label| Some((*label, node.pointer("/metadata/labels")?.get(*label)?.as_str()?)))
}

const HEAD: &str = "# yaml-language-server: $schema=./scenario.v1.json      (skctl scenario schema > scenario.v1.json)
apiVersion: simkube.io/v1
kind: Scenario
";

const TAIL: &str = "
autoscaler:                      # cluster-autoscaler's flags under their own names; these are its defaults
  expander: least-waste
  scale-down-unneeded-time: 10m

assert:
  - unschedulable.pods == 0
  # - pending.longest < duration(\"5m\")
  # - cost.total <= 1000.0       # needs the prices
";

/// Prices differ by contract, and so does how long a machine takes to come.
fn own_figures(text: &mut String) {
    text.push_str("      # price: 0.00              # of a node for an hour; without it there is no cost\n");
    text.push_str(
        "      # ready: 60s               # from asking for a node until it is ready; this is an assumption\n",
    );
}

/// Where nodes were seen.
enum Seen {
    /// In a recording; does it also say what other pods took from them?
    Recorded { has_reserved: bool },
    /// In a cluster, now.
    Now,
}

fn of_nodes(
    name: &str,
    nodes: &BTreeMap<SmolStr, Value>,
    counts: &BTreeMap<SmolStr, (u32, u32)>,
    seen: &Seen,
) -> String {
    let mut pools: BTreeMap<(&str, &str), Vec<&Value>> = BTreeMap::new();
    let mut others: BTreeMap<(String, String), Vec<&Value>> = BTreeMap::new();
    for node in nodes.values() {
        match pool_of(node) {
            Some(pool) => pools.entry(pool).or_default().push(node),
            None => others.entry((size_of(node, "cpu"), size_of(node, "memory"))).or_default().push(node),
        }
    }
    let mut text = head(name, pools.len(), nodes.len(), seen);
    let mut names = BTreeSet::new();
    for ((label, value), members) in pools {
        let (least, most) = counts.get(value).copied().unwrap_or((0, 1));
        let _ = writeln!(text, "    {}:{}", new_name(value, &mut names), described(members[0]));
        let _ = writeln!(text, "      match: {{{label}: {}}}", quoted(value));
        let when = match seen {
            Seen::Recorded { .. } => "fewest and most that were recorded at one moment",
            Seen::Now => "as many as there are now",
        };
        let _ = writeln!(text, "      min: {least}                     # {when}\n      max: {}", most.max(1));
        if matches!(seen, Seen::Now) {
            write_out(&mut text, &members);
        }
        own_figures(&mut text);
    }
    for members in others.into_values() {
        let _ = writeln!(text, "    {}:{}", new_name("other", &mut names), described(members[0]));
        let count = members.len();
        let _ =
            writeln!(text, "      # no label tells the pool of these {count} nodes: a group of those that are alike");
        let _ = writeln!(text, "      min: {count}\n      max: {count}");
        write_out(&mut text, &members);
        own_figures(&mut text);
    }
    text + TAIL
}

fn head(name: &str, pools: usize, nodes: usize, seen: &Seen) -> String {
    let (nodes_are, other_nodes) = match seen {
        Seen::Recorded { .. } => ("recorded nodes", "  # or recorded: they come and go as they did"),
        Seen::Now => ("nodes of the cluster", ""),
    };
    let mut text = format!("# {pools} pools of {nodes} {nodes_are}. Look over min and max.\n{HEAD}name: {name}\n\n");
    let _ = writeln!(text, "{}", format!("cluster:\n  nodes: groups                {other_nodes}").trim_end());
    if matches!(seen, Seen::Recorded { has_reserved: true }) {
        text.push_str("  reserved: recorded             # what pods outside of the trace took from each node\n");
    }
    text.push_str("  groups:\n");
    text
}

/// How much of a resource a node has for all, or at least for pods.
fn size_of(node: &Value, resource: &str) -> String {
    let of = |part: &str| node.pointer(part).and_then(|all| all.get(resource)).map(plain);
    of("/status/capacity").or_else(|| of("/status/allocatable")).unwrap_or_else(|| "1".to_owned())
}

/// Writes out what nodes are like. JSON is YAML, whatever is in a name.
fn write_out(text: &mut String, members: &[&Value]) {
    let node = members[0];
    for resource in ["cpu", "memory"] {
        let _ = writeln!(text, "      {resource}: {}", quoted(&size_of(node, resource)));
    }
    let for_pods = node.pointer("/status/allocatable").and_then(Value::as_object);
    let allocatable: BTreeMap<&str, String> = for_pods
        .into_iter()
        .flatten()
        .filter(|(resource, _)| ["cpu", "memory", "pods"].contains(&resource.as_str()))
        .map(|(resource, amount)| (resource.as_str(), plain(amount)))
        .collect();
    if !allocatable.is_empty() {
        let _ = writeln!(text, "      allocatable: {}", Value::from_iter(allocatable));
    }
    let labels_of = |node: &Value| node.pointer("/metadata/labels").and_then(Value::as_object).cloned();
    let in_common = |(label, value): &(String, Value)| {
        members.iter().all(|member| labels_of(member).is_some_and(|labels| labels.get(label) == Some(value)))
    };
    let labels = labels_of(node).unwrap_or_default().into_iter().filter(|(label, _)| label != HOSTNAME);
    let labels: serde_json::Map<String, Value> = labels.filter(in_common).collect();
    if !labels.is_empty() {
        let _ = writeln!(text, "      labels: {}", Value::from(labels));
    }
    // Taints of conditions say how a node is now, not what it is.
    let is_lasting = |taint: &&Value| taint["key"].as_str().is_some_and(|key| !key.starts_with("node.kubernetes.io/"));
    let taints = node.pointer("/spec/taints").and_then(Value::as_array).into_iter().flatten().filter(is_lasting);
    let only = |taint: &Value| -> Value {
        let fields = ["key", "value", "effect"].into_iter();
        fields.filter_map(|field| Some((field, taint.get(field)?.clone()))).collect()
    };
    let taints: Vec<Value> = taints.map(only).collect();
    if !taints.is_empty() {
        let _ = writeln!(text, "      taints: {}", Value::from(taints));
    }
}

/// A name of a group that no other has.
fn new_name(value: &str, names: &mut BTreeSet<String>) -> String {
    let name = group_name(value);
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let new = [name.clone()].into_iter().chain(numbered).find(|name| !names.contains(name)).unwrap_or(name);
    names.insert(new.clone());
    new
}

fn described(node: &Value) -> String {
    let of = |resource: &str| node.pointer("/status/allocatable").and_then(|all| all.get(resource)).map(plain);
    let kind = node.pointer("/metadata/labels").and_then(|labels| labels.get(INSTANCE_TYPE)).map(plain);
    let (cpu, memory) = (of("cpu").unwrap_or_default(), of("memory").unwrap_or_default());
    let kind = kind.map(|kind| format!(" {kind},")).unwrap_or_default();
    format!("  #{kind} {cpu} CPU and {memory} for pods")
}

/// From other people's clusters: on one line, without quotes.
fn plain(value: &Value) -> String {
    output::line(value.as_str().map_or_else(|| value.to_string(), str::to_owned).as_str())
}

/// A value that YAML takes for text whatever is in it.
fn quoted(value: &str) -> String {
    Value::from(value).to_string()
}

/// A name that a scenario takes.
fn group_name(value: &str) -> String {
    let plain = |char: char| if char.is_ascii_alphanumeric() { char.to_ascii_lowercase() } else { '-' };
    let name: String = value.chars().take(60).map(plain).collect();
    let name = name.trim_matches('-');
    if name.is_empty() { "group".to_owned() } else { name.to_owned() }
}

fn of_demand(name: &str, demand: &Demand) -> String {
    let cores = |amount: Quantity| (amount.milli_value() + 999) / 1_000;
    let gib = |amount: Quantity| (amount.value() + (1 << 30) - 1) >> 30;
    let wanted =
        (cores(demand.largest_cpu) * LARGEST_PODS_PER_NODE, gib(demand.largest_memory) * LARGEST_PODS_PER_NODE);
    let fits = MACHINES.iter().find(|(cpu, memory, _)| *cpu >= wanted.0.max(4) && *memory >= wanted.1);
    let (cpu, memory, like) = fits.copied().unwrap_or(MACHINES[MACHINES.len() - 1]);
    let needed = (cores(demand.total_cpu) / cpu).max(gib(demand.total_memory) / memory) + 1;
    let mut text =
        format!("# Nothing is recorded of nodes: one group for what the pods ask for. Write what you have.\n{HEAD}");
    let _ = writeln!(text, "name: {name}\n\ncluster:\n  groups:\n    general:                     # such as {like}");
    let _ = writeln!(
        text,
        "      min: 1\n      max: {}                    # all pods at their most ask for about {needed}",
        needed * 2
    );
    let _ = writeln!(text, "      cpu: {cpu}\n      memory: {memory}Gi");
    own_figures(&mut text);
    text + TAIL
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sk_api::Scenario;

    use super::*;

    #[test]
    fn pools_of_nodes_become_groups_that_match_them() {
        let node = |pool: &str| {
            json!({"metadata": {"labels": {"karpenter.sh/nodepool": pool, INSTANCE_TYPE: "m7i.xlarge"}},
                   "status": {"allocatable": {"cpu": "3920m", "memory": "15Gi"}}})
        };
        let bare = json!({"status": {"capacity": {"cpu": "8", "memory": "32Gi"}}});
        let nodes = [("a", node("General_1")), ("b", node("spot")), ("c", bare), ("d", node("general-1"))];
        let nodes = nodes.into_iter().map(|(name, node)| (name.into(), node)).collect();
        let counts = [("General_1".into(), (3, 12)), ("spot".into(), (0, 5))].into();
        let text = of_nodes("week", &nodes, &counts, &Seen::Recorded { has_reserved: true });
        let scenario = Scenario::parse("init", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let general = &scenario.cluster.groups["general-1"];
        assert_eq!((general.min, general.max), (3, 12));
        assert_eq!(general.matches["karpenter.sh/nodepool"], "General_1");
        assert_eq!(scenario.cluster.groups["general-1-2"].matches["karpenter.sh/nodepool"], "general-1");
        assert!(text.contains("# m7i.xlarge, 3920m CPU and 15Gi for pods"), "{text}");
        let other = &scenario.cluster.groups["other"];
        assert_eq!((other.cpu.map(Quantity::value), other.min, other.max), (Some(8), 1, 1));
    }

    #[test]
    fn groups_of_a_cluster_say_themselves_what_their_nodes_are_like() {
        let node = |zone: &str| {
            json!({
                "metadata": {"labels": {
                    "agentpool": "spot", "topology.kubernetes.io/zone": zone, HOSTNAME: zone, "disk": "ssd",
                }},
                "spec": {"taints": [
                    {"key": "spot", "value": "true", "effect": "NoSchedule", "timeAdded": "2026-11-10T14:00:00Z"},
                    {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
                ]},
                "status": {
                    "capacity": {"cpu": "4", "memory": "16Gi", "pods": "110"},
                    "allocatable": {"cpu": "3920m", "memory": "15Gi", "pods": "58", "hugepages-1Gi": "0"},
                },
            })
        };
        let nodes = [("a", node("west")), ("b", node("east"))];
        let nodes = nodes.into_iter().map(|(name, node)| (name.into(), node)).collect();
        let text = of_nodes("cluster", &nodes, &[("spot".into(), (2, 2))].into(), &Seen::Now);
        let scenario = Scenario::parse("init", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let spot = &scenario.cluster.groups["spot"];
        assert_eq!((spot.cpu.map(Quantity::value), spot.min, spot.max), (Some(4), 2, 2));
        let labels: Vec<&str> = spot.labels.keys().map(SmolStr::as_str).collect();
        assert_eq!(labels, ["agentpool", "disk"], "not where they differ");
        assert_eq!(spot.taints.len(), 1, "not what passes");
    }

    #[test]
    fn without_nodes_the_pods_decide_about_one_group() {
        let quantity = |text: &str| text.parse::<Quantity>().expect("a quantity");
        let demand = Demand {
            largest_cpu: quantity("2"),
            largest_memory: quantity("3Gi"),
            total_cpu: quantity("100"),
            total_memory: quantity("50Gi"),
        };
        let scenario = Scenario::parse("init", &of_demand("shop", &demand)).expect("it is a scenario");
        let general = &scenario.cluster.groups["general"];
        assert_eq!((general.cpu.map(Quantity::value), general.max), (Some(8), 26));
    }
}

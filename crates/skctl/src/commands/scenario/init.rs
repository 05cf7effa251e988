//! `skctl scenario init`: a commented scenario that fits what there is to see.
//!
//! Of a trace with recorded nodes, or of a cluster, every pool of nodes becomes a group that matches it. Of a trace without
//! nodes the largest pod and the sum of all decide about one group. Prices are never made up: they stand as a comment to
//! be filled in.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Result, bail};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::ListParams;
use serde_json::Value;
use sk_core::{Quantity, SmolStr};
use sk_replay::fit::{Demand, demand, nodes_over_time, recorded_nodes};
use sk_store::Trace;

use crate::cli::{Global, ScenarioInitArgs};
use crate::cluster::{self, Cluster};
use crate::{output, runs, traces};

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
        None => bail!("of what? `skctl scenario init TRACE`, or `skctl --context NAME scenario init` for a cluster"),
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
    Ok(of_nodes(&name, &nodes, &counts, has_reserved))
}

fn of_cluster(global: &Global) -> Result<String> {
    let nodes = cluster::block_on(async {
        let cluster = Cluster::connect(global).await?;
        let nodes: Api<Node> = Api::all(cluster.client.clone());
        nodes.list(&ListParams::default()).await.map_err(|error| anyhow::anyhow!("{}", cluster::words(&error)))
    })?;
    let mut values = BTreeMap::new();
    for node in nodes.items {
        let name: SmolStr = node.metadata.name.clone().unwrap_or_default().into();
        values.insert(name, serde_json::to_value(node)?);
    }
    let mut counts: BTreeMap<SmolStr, (u32, u32)> = BTreeMap::new();
    for (_, value) in values.values().filter_map(pool_of) {
        let (least, most) = counts.entry(value.into()).or_default();
        (*least, *most) = (*least + 1, *most + 1);
    }
    Ok(of_nodes("cluster", &values, &counts, false))
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

fn of_nodes(
    name: &str,
    nodes: &BTreeMap<SmolStr, Value>,
    counts: &BTreeMap<SmolStr, (u32, u32)>,
    has_reserved: bool,
) -> String {
    let mut pools: BTreeMap<(&str, &str), Vec<&Value>> = BTreeMap::new();
    let mut others = 0;
    for node in nodes.values() {
        match pool_of(node) {
            Some(pool) => pools.entry(pool).or_default().push(node),
            None => others += 1,
        }
    }
    let mut text = format!("# {} pools of {} recorded nodes. Look over min and max.\n{HEAD}", pools.len(), nodes.len());
    let _ = writeln!(
        text,
        "name: {name}\n\ncluster:\n  nodes: groups                  # or recorded: they come and go as they did"
    );
    if has_reserved {
        text.push_str("  reserved: recorded             # what pods outside of the trace took from each node\n");
    }
    text.push_str("  groups:\n");
    if others > 0 {
        let _ = writeln!(text, "    # {others} nodes have no label that tells their pool; add groups for them by hand");
    }
    for ((label, value), members) in pools {
        let (least, most) = counts.get(value).copied().unwrap_or((0, 1));
        let _ = writeln!(text, "    {}:{}", group_name(value), described(members[0]));
        let _ = writeln!(text, "      match: {{{label}: {}}}", quoted(value));
        let _ =
            writeln!(text, "      min: {least}                     # fewest and most that were recorded at one moment");
        let _ = writeln!(text, "      max: {}", most.max(1));
        own_figures(&mut text);
    }
    text + TAIL
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
        let nodes = [("a", node("General_1")), ("b", node("spot")), ("c", json!({}))];
        let nodes = nodes.into_iter().map(|(name, node)| (name.into(), node)).collect();
        let counts = [("General_1".into(), (3, 12)), ("spot".into(), (0, 5))].into();
        let text = of_nodes("week", &nodes, &counts, true);
        let scenario = Scenario::parse("init", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let general = &scenario.cluster.groups["general-1"];
        assert_eq!((general.min, general.max), (3, 12));
        assert_eq!(general.matches["karpenter.sh/nodepool"], "General_1");
        assert!(text.contains("# m7i.xlarge, 3920m CPU and 15Gi for pods") && text.contains("# 1 nodes have no label"));
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

//! `skctl nodes apply`: nodes that KWOK plays, as a scenario or a trace has them.
//!
//! Only nodes with SimKube's label of a group are ever changed or removed. A node of the same name without it is
//! somebody's own and is a refusal, before anything is done.

use anyhow::{Result, anyhow, bail};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use serde_json::Value;
use sk_api::scenario::Scenario;
use sk_api::simulation::names;
use sk_core::SimTime;
use sk_driver::nodes::{from_scenario, from_trace};

use crate::cli::{Global, NodesApplyArgs};
use crate::cluster::apply::{Applier, Change, FIELD_MANAGER, Manner};
use crate::cluster::simulations::Simulations;
use crate::cluster::{self, Cluster, words};
use crate::failure::Outcome;
use crate::progress::Progress;
use crate::{output, text_file, traces};

/// The label by which SimKube's nodes are known, with their group as its value.
const GROUP_LABEL: &str = "simkube.io/node-group";
/// As many nodes as Kubernetes itself is made for.
const MAX_NODES: usize = 5_000;

pub(crate) fn apply(args: &NodesApplyArgs, global: &Global) -> Result<Outcome> {
    let nodes = nodes(args, global)?;
    if nodes.is_empty() {
        bail!(
            "there are no nodes in it: a scenario's groups with `min: 0` begin with none, and not every trace has nodes"
        );
    }
    if nodes.len() > MAX_NODES {
        bail!("{} nodes are more than the {MAX_NODES} that Kubernetes is made for", nodes.len());
    }
    cluster::block_on(async {
        let cluster = Cluster::connect(global).await?;
        let progress = Progress::of_unknown_length(format!("{} nodes in {cluster}", nodes.len()), global.quiet)?;
        if !args.delete {
            // Where they are to go, the cluster may have lost its mark already.
            progress.waiting(Simulations::of(&cluster).check_mark()).await??;
        }
        progress.waiting(refuse_foreign(&cluster, &nodes)).await??;
        let done = if args.delete {
            progress.waiting(remove(&cluster, &nodes)).await??
        } else {
            progress.waiting(make(&cluster, &nodes)).await??
        };
        output::print(&format!("{done} in {cluster}\n"))?;
        Ok(Outcome::Good)
    })
}

fn nodes(args: &NodesApplyArgs, global: &Global) -> Result<Vec<Value>> {
    if let Some(path) = &args.scenario {
        let text = text_file::read("scenario", path)?;
        return Ok(from_scenario(&Scenario::parse(&path.display().to_string(), &text)?));
    }
    let typed = args.trace.as_deref().unwrap_or_default();
    let trace = traces::open(typed, global)?;
    let first = trace.span().map_or(SimTime::EPOCH, |(first, _)| first);
    Ok(from_trace(&trace, first)?)
}

fn name(node: &Value) -> &str {
    node["metadata"]["name"].as_str().unwrap_or_default()
}

/// Somebody's own node is not ours to change, even if it has the name.
async fn refuse_foreign(cluster: &Cluster, nodes: &[Value]) -> Result<()> {
    let api: Api<Node> = Api::all(cluster.client.clone());
    let not_ours = format!("!{GROUP_LABEL}");
    let listed = api.list_metadata(&ListParams::default().labels(&not_ours)).await;
    let listed = listed.map_err(|error| refused(cluster, "list", &error))?;
    let foreign: Vec<&str> = listed.items.iter().filter_map(|node| node.metadata.name.as_deref()).collect();
    match nodes.iter().map(name).find(|name| foreign.contains(name)) {
        Some(name) => bail!("{cluster} has a node {name} that is not SimKube's; nothing was done"),
        None => Ok(()),
    }
}

/// Makes and changes nodes; their size is status, which needs a request of its own.
async fn make(cluster: &Cluster, nodes: &[Value]) -> Result<String> {
    let mut applier = Applier::new(cluster, Manner { manager: FIELD_MANAGER, dry_run: false, force: true });
    let api: Api<Node> = Api::all(cluster.client.clone());
    let mut created = 0;
    for node in nodes {
        if applier.apply(node).await? == Change::Created {
            created += 1;
        }
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let status = serde_json::json!({"status": node["status"]});
        let patched = api.patch_status(name(node), &params, &Patch::Merge(status)).await;
        patched.map_err(|error| refused(cluster, "patch the status of", &error))?;
    }
    let (key, value) = names::NODE_SELECTOR;
    Ok(format!("{created} of {} nodes created, label {key}={value}", nodes.len()))
}

async fn remove(cluster: &Cluster, nodes: &[Value]) -> Result<String> {
    let api: Api<Node> = Api::all(cluster.client.clone());
    let mut removed = 0;
    for node in nodes {
        match api.delete(name(node), &DeleteParams::default()).await {
            Ok(_) => removed += 1,
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(refused(cluster, "delete", &error)),
        }
    }
    Ok(format!("{removed} of {} nodes removed", nodes.len()))
}

/// Nodes are nobody's but an administrator's; the role for people who run simulations has no right to them.
fn refused(cluster: &Cluster, verb: &str, error: &kube::Error) -> anyhow::Error {
    let why = words(error);
    anyhow!("cannot {verb} nodes in {cluster}: {why}; whoever may change nodes can make them, once for all runs")
}

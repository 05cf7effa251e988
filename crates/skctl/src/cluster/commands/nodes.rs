//! `skctl nodes apply`: creates KWOK nodes from a scenario or a trace.
//!
//! Only nodes with SimKube's group label are ever changed or deleted. If a node of the same name exists without it, the
//! command refuses before it changes anything.
//!
//! A run starts with these nodes, so the command waits until they are ready and says so. If KWOK or SimKube's stages
//! are missing, the user learns it here and not from pods that stay pending.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use serde_json::Value;
use sk_api::scenario::{Assignment, Scenario};
use sk_api::simulation::names;
use sk_core::SimTime;
use sk_driver::nodes::{from_scenario, from_trace};

use crate::cli::{Global, NodesApplyArgs};
use crate::cluster::apply::{Applier, Change, FIELD_MANAGER, Manner};
use crate::cluster::simulations::Simulations;
use crate::cluster::{self, Cluster, words};
use crate::failure::Outcome;
use crate::progress::Progress;
use crate::{examples, output, text_file, traces};

/// The label by which SimKube's nodes are known, with their group as its value.
const GROUP_LABEL: &str = "simkube.io/node-group";
/// How long KWOK may take to make nodes ready: it does hundreds a second, so that 5,000 take less than half of this.
const READY_PATIENCE: Duration = Duration::from_secs(60);
/// How often it is looked meanwhile.
const READY_LOOK: Duration = Duration::from_millis(500);
/// As many nodes as Kubernetes itself is made for.
const MAX_NODES: usize = 5_000;

pub(crate) fn apply(args: &NodesApplyArgs, global: &Global) -> Result<Outcome> {
    let nodes = nodes(args, global)?;
    if nodes.is_empty() {
        bail!(
            "there are no nodes to create: groups with `min: 0` start with none, and not every trace has recorded nodes"
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
        if args.delete {
            let done = progress.waiting(remove(&cluster, &nodes)).await??;
            output::print(&format!("{done} in {cluster}\n"))?;
            return Ok(Outcome::Good);
        }
        let made = progress.waiting(make(&cluster, &nodes)).await??;
        if args.no_wait {
            output::print(&format!("{made} in {cluster}; KWOK marks them Ready\n"))?;
            return Ok(Outcome::Good);
        }
        let began = Instant::now();
        let missing = progress.waiting(wait_until_ready(&cluster, &nodes)).await??;
        let (words, outcome) = readiness(&missing, began.elapsed());
        output::print(&format!("{made} in {cluster}; {words}\n"))?;
        Ok(outcome)
    })
}

/// Waits until all nodes are ready, or for the time limit. Returns those that are not.
async fn wait_until_ready(cluster: &Cluster, nodes: &[Value]) -> Result<BTreeSet<String>> {
    let api: Api<Node> = Api::all(cluster.client.clone());
    let began = Instant::now();
    loop {
        let listed = api.list(&ListParams::default().labels(GROUP_LABEL)).await;
        let listed = listed.map_err(|error| refused(cluster, "list", &error))?;
        let ready: BTreeSet<&str> = listed
            .items
            .iter()
            .filter(|node| is_ready(node))
            .filter_map(|node| node.metadata.name.as_deref())
            .collect();
        let missing: BTreeSet<String> =
            nodes.iter().map(name).filter(|name| !ready.contains(name)).map(str::to_owned).collect();
        if missing.is_empty() || began.elapsed() >= READY_PATIENCE {
            return Ok(missing);
        }
        tokio::time::sleep(READY_LOOK).await;
    }
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// The message about nodes that the command waited for, and the outcome.
fn readiness(missing: &BTreeSet<String>, waited: Duration) -> (String, Outcome) {
    let Some(first) = missing.first() else {
        return (format!("all of them are ready after {:.1} s", waited.as_secs_f64()), Outcome::Good);
    };
    let words = format!(
        "{} of them, such as {first}, are not ready after {:.0} s; KWOK makes nodes ready, and `skctl doctor sim` shows what it lacks",
        missing.len(),
        waited.as_secs_f64()
    );
    (words, Outcome::Bad)
}

fn nodes(args: &NodesApplyArgs, global: &Global) -> Result<Vec<Value>> {
    if let Some(path) = &args.scenario {
        return Ok(from_scenario(&scenario(path, &args.set)?));
    }
    let typed = args.trace.as_deref().unwrap_or_default();
    let trace = traces::open(typed, global)?;
    let first = trace.span().map_or(SimTime::EPOCH, |(first, _)| first);
    Ok(from_trace(&trace, first)?)
}

/// A scenario of a file or of an example, with some fields changed.
fn scenario(path: &Path, set: &[String]) -> Result<Scenario> {
    let name = path.display().to_string();
    let text = match name.strip_prefix(examples::PREFIX) {
        Some(example) => examples::find(example)?.scenario.to_owned(),
        None => text_file::read("scenario", path)?,
    };
    let set = set.iter().map(|text| text.parse()).collect::<Result<Vec<Assignment>, _>>()?;
    Ok(Scenario::parse_with(&name, &text, &set)?)
}

fn name(node: &Value) -> &str {
    node["metadata"]["name"].as_str().unwrap_or_default()
}

/// Refuses to change a node that is not SimKube's.
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

/// Only administrators may create nodes; the role for users grants nothing on them.
fn refused(cluster: &Cluster, verb: &str, error: &kube::Error) -> anyhow::Error {
    let why = words(error);
    anyhow!("cannot {verb} nodes in {cluster}: {why}; ask somebody who may create nodes to run this once, for all runs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundled_scenario_can_be_made_with_more_nodes() {
        let set = ["cluster.groups.small.min=3".to_owned()];
        let nodes = from_scenario(&scenario(Path::new("example:nginx"), &set).unwrap());
        assert_eq!(nodes.iter().map(name).collect::<Vec<_>>(), ["small-1", "small-2", "small-3"]);
        assert!(scenario(Path::new("example:none"), &[]).is_err());
    }

    #[test]
    fn nodes_that_do_not_get_ready_are_named_with_what_to_do_next() {
        let (words, outcome) = readiness(&BTreeSet::new(), Duration::from_millis(1234));
        assert_eq!((words.as_str(), outcome), ("all of them are ready after 1.2 s", Outcome::Good));
        let missing = BTreeSet::from(["small-1".to_owned(), "small-2".to_owned()]);
        let (words, outcome) = readiness(&missing, READY_PATIENCE);
        assert!(words.contains("2 of them, such as small-1") && words.contains("skctl doctor sim"), "{words}");
        assert_eq!(outcome, Outcome::Bad);
    }
}

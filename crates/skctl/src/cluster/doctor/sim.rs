//! Checks whether simulations can run on this cluster.

use anyhow::Result;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ListParams};
use sk_api::simulation::names;
use sk_ctrl::install::policy::is_policy;

use super::{Finding, State, objects, rights, roles, stages};
use crate::cli::SimArgs;
use crate::cluster::installation::{self, CONTROLLER, is_stage};
use crate::cluster::rights::Right;
use crate::cluster::simulations::{SimulationError, Simulations};
use crate::cluster::{Cluster, words};

/// What running a simulation takes.
const RIGHTS: [Right; 7] = [
    Right::everywhere("create", names::GROUP, "simulations"),
    Right::everywhere("watch", names::GROUP, "simulations"),
    Right::everywhere("delete", names::GROUP, "simulations"),
    Right::everywhere("list", "", "namespaces"),
    Right::in_namespace("get", "pods", "portforward"),
    Right::in_namespace("create", "pods", "portforward"),
    Right::in_namespace("create", "serviceaccounts", "token").of(CONTROLLER.account),
];

/// What to do about policies that are missing.
const POLICY_ADVICE: &str =
    "skctl install sim, on Kubernetes 1.30 or newer; without them, keep simulations to a cluster of their own";

/// KWOK's Stage CRD.
const STAGES: &str = "stages.kwok.x-k8s.io";
/// How KWOK's own installation labels its pods.
const KWOK_PODS: &str = "app=kwok-controller";
/// Nodes that are examined; more are only counted.
const MAX_NODES: u32 = 500;
/// Longer answers than this are no readiness.
const MAX_ANSWER_BYTES: usize = 64 << 10;

pub(super) async fn examine(cluster: &Cluster) -> Result<Vec<Finding>> {
    let mut findings = vec![rights(cluster, &RIGHTS, "ask somebody who may bind roles for these").await];
    let manifests = installation::sim_in(&SimArgs::default(), &cluster.namespace);
    let (our_stages, ours): (Vec<_>, Vec<_>) = manifests.into_iter().partition(is_stage);
    let (policies, ours): (Vec<_>, Vec<_>) = ours.into_iter().partition(is_policy);
    findings.push(objects::presence(cluster, &ours, "skctl install sim").await);
    findings.push(lenient(objects::presence(cluster, &policies, POLICY_ADVICE).await));
    findings.push(roles::examine(cluster, &ours, "skctl install sim").await);
    findings.push(mark(cluster).await);
    let pod = objects::pod(cluster, &CONTROLLER).await;
    let is_ready = pod.state == State::Ok;
    findings.push(pod);
    if is_ready {
        findings.push(controller(cluster).await);
    }
    findings.push(kwok(cluster).await);
    match has_stages(cluster).await {
        Ok(true) => {
            let found = objects::presence(cluster, &our_stages, "skctl install sim").await;
            findings.push(Finding { subject: "stages".to_owned(), ..found });
            findings.extend(stages::examine(cluster, &our_stages).await);
        }
        Ok(false) => {
            let what = "KWOK's Stage CRD is missing, so no Stage starts or completes pods";
            findings.push(Finding::fail("stages", what, "install KWOK with its kinds, then: skctl install sim"));
        }
        Err(error) => {
            let what = format!("cannot look for them: {}", words(&error));
            findings.push(Finding::warn("stages", what, "ask somebody with more permissions"));
        }
    }
    findings.push(nodes(cluster).await);
    Ok(findings)
}

/// Simulations run without policies, which Kubernetes has since 1.30, but whoever takes a driver over can then do more.
fn lenient(found: Finding) -> Finding {
    let state = if found.state == State::Fail { State::Warn } else { found.state };
    Finding { subject: "policies".to_owned(), state, ..found }
}

/// Is this cluster marked for simulations?
async fn mark(cluster: &Cluster) -> Finding {
    match Simulations::of(cluster).check_mark().await {
        Ok(()) => Finding::ok("mark", format!("{cluster} is marked for simulations")),
        Err(error @ SimulationError::NotMarked { .. }) => Finding::fail("mark", error.to_string(), "skctl install sim"),
        Err(error) => Finding::warn("mark", error.to_string(), "it takes `list` on namespaces"),
    }
}

/// Asks the controller itself, the way a record is fetched.
async fn controller(cluster: &Cluster) -> Finding {
    let advice = format!("kubectl -n {} logs deploy/{}", cluster.namespace, names::CONTROLLER_NAME);
    let asked = async {
        let mut controller = CONTROLLER.open(cluster).await?;
        Ok::<_, anyhow::Error>(controller.text("/healthz", MAX_ANSWER_BYTES).await?)
    };
    match asked.await {
        Ok(_) => Finding::ok("records", "the controller answers; token and certificate are valid"),
        Err(error) => Finding::fail("records", error.to_string(), advice),
    }
}

async fn has_stages(cluster: &Cluster) -> Result<bool, kube::Error> {
    let api: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
    Ok(api.get_metadata_opt(STAGES).await?.is_some())
}

/// KWOK may run in the cluster or beside it; only the first can be seen from here.
async fn kwok(cluster: &Cluster) -> Finding {
    let api: Api<Pod> = Api::all(cluster.client.clone());
    match api.list(&ListParams::default().labels(KWOK_PODS).limit(1)).await {
        Ok(found) if !found.items.is_empty() => Finding::ok("KWOK", "its controller is there"),
        Ok(_) => {
            let advice = "install it, unless it runs outside of the cluster; nodes that are ready show that it does";
            Finding::warn("KWOK", "no pod of its controller found", advice)
        }
        Err(error) => {
            Finding::warn("KWOK", format!("cannot look for them: {}", words(&error)), "it takes `list` on pods")
        }
    }
}

async fn nodes(cluster: &Cluster) -> Finding {
    let api: Api<Node> = Api::all(cluster.client.clone());
    let (label, value) = names::NODE_SELECTOR;
    let label = format!("{label}={value}");
    let advice = "skctl nodes apply -f SCENARIO, or a provider of virtual nodes";
    match api.list(&ListParams::default().labels(&label).limit(MAX_NODES)).await {
        Ok(found) if found.items.is_empty() => {
            Finding::warn("nodes", format!("none has the label {label}; replayed pods would stay pending"), advice)
        }
        Ok(found) => {
            let ready = found.items.iter().filter(|node| is_ready(node)).count();
            let what = format!("{ready} of {} virtual nodes are ready", found.items.len());
            if ready == 0 { Finding::fail("nodes", what, "is KWOK running?") } else { Finding::ok("nodes", what) }
        }
        Err(error) => {
            Finding::warn("nodes", format!("cannot be listed: {}", words(&error)), "it takes `list` on nodes")
        }
    }
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.iter().filter_map(|status| status.conditions.as_ref()).flatten();
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

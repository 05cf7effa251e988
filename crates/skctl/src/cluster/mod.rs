//! Everything that `skctl` does with a real cluster: the feature `cluster`.
//!
//! The functions below are all that the rest of `skctl` calls. A build without the feature has `without_cluster` in this
//! place, and neither a client nor a runtime. Each step that can fail has an error of its own that names the step, the
//! cluster and what to do next. Nothing but [`commands`] prints, and nothing ever writes a token anywhere.
//!
//! | module | what it owns |
//! |---|---|
//! | [`commands`] | one file per command |
//! | [`run`](mod@run) | `skctl run --cluster` |
//! | [`record`] | `skctl report --cluster` |
//! | [`doctor`] | the checks of `skctl doctor` |
//! | [`installation`] | the manifests of tracer and simulator |
//! | [`lab`] | a cluster of local processes |
//! | [`recording`] | a tracer inside this process |
//! | [`upload`] | uploads a local trace to the controller |
//! | [`simulation`] | one Simulation, from its start to its end |
//! | [`connect`] | a client from `--context` and `--kubeconfig`, with the name of its cluster |
//! | [`token`] | short-lived tokens of a ServiceAccount, for one audience |
//! | [`trust`] | verifies the certificates of tracer and controller |
//! | [`channel`] | HTTPS to a pod through the API server, or to an address |
//! | [`service`] | finds the tracer and the controller and connects to them |
//! | [`simulations`] | the Simulations of a cluster |
//! | [`kinds`] | the API resource of a kind, by discovery |
//! | [`apply`](mod@apply) | server-side apply, and what it changed |
//! | [`rights`] | the user's permissions |
//! | [`waiting`] | waits that Ctrl-C interrupts |
//! | [`logging`] | log output of libraries |

pub(crate) mod apply;
pub(crate) mod channel;
mod commands;
pub(crate) mod connect;
pub(crate) mod doctor;
pub(crate) mod installation;
pub(crate) mod kinds;
pub(crate) mod lab;
mod logging;
mod record;
pub(crate) mod recording;
pub(crate) mod rights;
mod run;
pub(crate) mod service;
pub(crate) mod simulation;
pub(crate) mod simulations;
pub(crate) mod token;
pub(crate) mod trust;
pub(crate) mod upload;
mod waiting;

use std::collections::BTreeMap;
use std::future::Future;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ListParams};
use serde_json::Value;
use sk_core::SmolStr;

use crate::cli::{Cli, ClusterCommand, Command, Global, LabCommand};
use crate::failure;

use self::apply::{Applier, FIELD_MANAGER, Manner};

pub(crate) use commands::run;
pub(crate) use commands::simulations::list;
pub(crate) use connect::Cluster;
pub(crate) use record::fetch_record;
pub(crate) use run::run as replay;

/// What comes before every command: logging. A lab's controller and drivers are programs of their own, with their own
/// flags, logs and exit codes; if this process is to be one of them, it has done its work when this returns.
pub(crate) fn begin(cli: &Cli) -> Option<ExitCode> {
    match &cli.command {
        // A lab's supervisor asks components that are not up yet; that they are not is no news.
        Command::Cluster(ClusterCommand::Lab(LabCommand::Serve(_))) => None,
        Command::Cluster(ClusterCommand::Lab(command)) => commands::lab::program(command).or_else(|| {
            logging::begin(cli.global.verbosity);
            None
        }),
        _ => {
            logging::begin(cli.global.verbosity);
            None
        }
    }
}

/// The nodes of the cluster, by name.
pub(crate) fn nodes(global: &Global) -> Result<BTreeMap<SmolStr, Value>> {
    let nodes = block_on(async {
        let cluster = Cluster::connect(global).await?;
        let nodes: Api<Node> = Api::all(cluster.client.clone());
        nodes.list(&ListParams::default()).await.map_err(|error| anyhow!("{}", words(&error)))
    })?;
    let named = |node: Node| {
        let name: SmolStr = node.metadata.name.clone().unwrap_or_default().into();
        Ok((name, serde_json::to_value(node)?))
    };
    nodes.items.into_iter().map(named).collect()
}

/// Applies objects; what to call the cluster that has them now.
pub(crate) fn apply(objects: &[Value], global: &Global) -> Result<String> {
    block_on(async {
        let cluster = Cluster::connect(global).await?;
        let mut applier = Applier::new(&cluster, Manner { manager: FIELD_MANAGER, dry_run: false, force: false });
        for object in objects {
            applier.apply(object).await?;
        }
        Ok(cluster.to_string())
    })
}

/// Runs work that talks to a cluster to its end.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.context("cannot start the threads that talk to the cluster")?.block_on(work)
}

/// What a server said, without the envelope that it came in, and what to do where it said nothing of use.
pub(crate) fn words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if status.code == 401 => format!(
            "it does not know who you are ({}): the credentials of this context have expired or were never good; log in \
             again, or choose another --context or --kubeconfig",
            if status.message.is_empty() { "Unauthorized" } else { &status.message },
        ),
        kube::Error::Api(status) => status.message.clone(),
        kube::Error::Auth(error) => {
            format!("cannot get the kubeconfig's credentials: {error}; log in again, or choose another --context")
        }
        kube::Error::HyperError(_) | kube::Error::Service(_) => {
            format!("{}; is the server up, and the right one? --context chooses another", causes(error))
        }
        error => causes(error),
    }
}

fn causes(error: &kube::Error) -> String {
    let first: &(dyn std::error::Error + 'static) = error;
    failure::each_once(std::iter::successors(Some(first), |error| error.source()))
}

//! The flags.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use sk_api::simulation::names;
use sk_core::Gvk;

/// In the driver's environment: `true` if the installation lets Simulations run hooks.
const ALLOW_HOOKS: &str = "SIMKUBE_ALLOW_HOOKS";
/// How many seconds it may take until the API server reaches the webhook: a new Service and its endpoints take a few.
const WEBHOOK_WITHIN: u64 = 60;
/// Replays a trace on a real cluster with virtual nodes.
#[derive(Debug, Parser)]
#[command(name = "sk-driver", version, about)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Replay the trace of a Simulation and write a run record
    ///
    /// In a cluster with SimKube installed, the controller runs this. Without one:
    /// sk-driver run -f simulation.yaml --kubeconfig ~/.kube/config --scenario ci.yaml --out runs/mine
    /// Then `skctl report runs/mine` shows the run. Exit codes: 0 success; 1 an assertion failed, or the run was stopped;
    /// 2 the run failed or cannot be judged; 130 interrupted.
    Run(Box<RunArgs>),
}

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// The Simulation in the cluster to run
    #[arg(long, value_name = "NAME", env = names::ENV_SIMULATION, conflicts_with = "file")]
    pub(super) simulation: Option<String>,
    /// A file with the Simulation to run. The cluster needs KWOK with SimKube's stages, and no controller
    #[arg(short, long, value_name = "FILE", required_unless_present = "simulation")]
    pub(super) file: Option<PathBuf>,
    /// With -f: the scenario with the assertions [default: the one in the Simulation's annotation, if there is one]
    #[arg(long, value_name = "FILE", requires = "file")]
    pub(super) scenario: Option<PathBuf>,
    /// The kubeconfig of the cluster to run on
    #[arg(long, value_name = "FILE")]
    pub(super) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    pub(super) context: Option<String>,
    /// The trace, instead of the Simulation's tracePath
    #[arg(long, value_name = "PATH|URL")]
    pub(super) trace: Option<String>,
    /// Write the record to this folder, instead of spec.record.path
    #[arg(short = 'O', long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Start at this time: +30m after the trace's start, or RFC 3339. The state at that time is created first
    #[arg(short, long, value_name = "TIME")]
    pub(super) start: Option<String>,
    /// End before this time
    #[arg(short = 't', long, value_name = "TIME")]
    pub(super) end: Option<String>,
    /// Run only this repetition, counted from 0
    #[arg(long, value_name = "N", env = "JOB_COMPLETION_INDEX")]
    pub(super) repetition: Option<u32>,
    /// The random seed
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    /// Stop at the first object that the API server refuses
    #[arg(long)]
    pub(super) stop_on_refusal: bool,
    /// Also replay this kind, although it changes the cluster itself: rbac.authorization.k8s.io/v1.Role
    #[arg(long, value_name = "GROUP/VERSION.KIND")]
    pub(super) also: Vec<Gvk>,
    /// The address at which the API server reaches the webhook, if no controller has made a Service [default: this host's]
    #[arg(long, value_name = "https://HOST[:PORT]")]
    pub(super) webhook_url: Option<String>,
    /// Listen for the API server on this address [default: all addresses; the Simulation's port, or a free one with -f]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(super) bind: Option<SocketAddr>,
    /// Fail if the API server has not reached the webhook after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = WEBHOOK_WITHIN, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) webhook_within: u64,
    /// Run the preRun and postRun hooks of a Simulation in the cluster. With -f, hooks are yours and always run
    #[arg(long, env = ALLOW_HOOKS)]
    pub(super) allow_hooks: bool,
    /// When asked to stop, take at most this many seconds for the record and the clean-up
    #[arg(long, value_name = "SECONDS", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) stop_within: u64,
    /// Log level: error, warn, info, debug or trace
    #[arg(short, long, value_name = "LEVEL", default_value = "info")]
    pub(super) verbosity: String,
}

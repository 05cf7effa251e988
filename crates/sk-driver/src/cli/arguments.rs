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
    /// Replay a Simulation's trace and leave a run record
    ///
    /// In a cluster with SimKube installed, the controller runs this. Without one:
    /// sk-driver run -f simulation.yaml --kubeconfig ~/.kube/config --scenario ci.yaml --out runs/mine
    /// which leaves a whole run, to be read with `skctl report runs/mine`. Exit 0: all is good; 1: an assertion does not
    /// hold, or the run was stopped; 2: it failed, or could not be judged; 130: interrupted.
    Run(Box<RunArgs>),
}

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// The Simulation in the cluster to run
    #[arg(long, value_name = "NAME", env = names::ENV_SIMULATION, conflicts_with = "file")]
    pub(super) simulation: Option<String>,
    /// A file with the Simulation to run; nothing needs to be installed in the cluster but KWOK and its stages
    #[arg(short, long, value_name = "FILE", required_unless_present = "simulation")]
    pub(super) file: Option<PathBuf>,
    /// With -f: the scenario whose assertions must hold [default: the one that the Simulation carries, if it does]
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
    /// The folder for the record, instead of spec.record.path
    #[arg(short = 'O', long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Replay from here on, e.g. +30m or a moment; what was before makes up the state at the start
    #[arg(short, long, value_name = "TIME")]
    pub(super) start: Option<String>,
    /// Replay up to here
    #[arg(short = 't', long, value_name = "TIME")]
    pub(super) end: Option<String>,
    /// Only this repetition, from 0
    #[arg(long, value_name = "N", env = "JOB_COMPLETION_INDEX")]
    pub(super) repetition: Option<u32>,
    /// Where all randomness comes from
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    /// Stop at the first object that the API server refuses
    #[arg(long)]
    pub(super) stop_on_refusal: bool,
    /// Also replay objects of this kind, which change the cluster itself, e.g. rbac.authorization.k8s.io/v1.Role
    #[arg(long, value_name = "GROUP/VERSION.KIND")]
    pub(super) also: Vec<Gvk>,
    /// Where the API server reaches the driver, where no controller has seen to it [default: this host's address]
    #[arg(long, value_name = "https://HOST[:PORT]")]
    pub(super) webhook_url: Option<String>,
    /// Where to listen for the API server [default: all addresses; the Simulation's port, or a free one with -f]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(super) bind: Option<SocketAddr>,
    /// How long to wait until the API server reaches the driver, before its controller is told that it cannot
    #[arg(long, value_name = "SECONDS", default_value_t = WEBHOOK_WITHIN, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) webhook_within: u64,
    /// Let a Simulation of the cluster run its preRun and postRun hooks here; with -f they are your own and always run
    #[arg(long, env = ALLOW_HOOKS)]
    pub(super) allow_hooks: bool,
    /// How long to take at most when asked to stop: what is under way, the record, and the clean-up have to fit
    #[arg(long, value_name = "SECONDS", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) stop_within: u64,
    /// error, warn, info, debug or trace
    #[arg(short, long, value_name = "LEVEL", default_value = "info")]
    pub(super) verbosity: String,
}

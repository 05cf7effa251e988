//! The commands that talk to a cluster. A build without the feature `cluster` knows them too, and says what it lacks.

mod installation;
mod recording;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{TRACE_HELP, TableFormat};

pub use installation::{DoctorArgs, InstallArgs, InstallPart, ManifestsCommand, Part, Resource, SimArgs, TracerArgs};
pub use recording::{ExportArgs, ExportForm, RecordArgs, SnapshotArgs};

const LAB_EXAMPLES: &str = "Examples:
  KUBEBUILDER_ASSETS=~/kubernetes/bin skctl lab up
  skctl lab status -o json
  skctl lab down

Needs etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok in $KUBEBUILDER_ASSETS or on the PATH.";

/// The commands that talk to a cluster.
#[derive(Debug, Subcommand)]
pub enum ClusterCommand {
    /// Export a trace from the tracer in the cluster.
    #[command(after_help = recording::EXPORT_EXAMPLES)]
    Export(ExportArgs),
    /// Write the current state of the cluster as a trace; needs no tracer.
    #[command(after_help = recording::SNAPSHOT_EXAMPLES)]
    Snapshot(SnapshotArgs),
    /// Record the cluster from here until Ctrl-C; installs nothing.
    #[command(after_help = recording::RECORD_EXAMPLES)]
    Record(RecordArgs),
    /// Print the manifests that `skctl install` applies.
    #[command(subcommand, after_help = installation::MANIFESTS_EXAMPLES)]
    Manifests(ManifestsCommand),
    /// The same as `skctl manifests crd`.
    Crd,
    /// Install the tracer or the simulator in a cluster, then run the checks of `skctl doctor`.
    #[command(after_help = installation::INSTALL_EXAMPLES)]
    Install(InstallArgs),
    /// Check an installation and your permissions. Exit code 1 if something is missing.
    #[command(after_help = installation::DOCTOR_EXAMPLES)]
    Doctor(DoctorArgs),
    /// Show a Simulation: its spec, state and events.
    #[command(alias = "info")]
    Describe(DescribeArgs),
    /// Print the log of a Simulation's driver.
    Logs(LogsArgs),
    /// Pause a Simulation.
    Pause(NamedArgs),
    /// Resume a paused Simulation.
    Resume(NamedArgs),
    /// Delete a Simulation, its record and everything that it created.
    #[command(visible_alias = "rm")]
    Delete(NamedArgs),
    /// Create and delete virtual nodes (KWOK).
    #[command(subcommand)]
    Nodes(NodesCommand),
    /// Run a throw-away cluster on this machine: control plane, KWOK and controller as local processes.
    #[command(subcommand, after_help = LAB_EXAMPLES)]
    Lab(LabCommand),
}

/// Output formats of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ObjectFormat {
    /// For people.
    #[value(alias = "list")]
    Table,
    /// For programs.
    Json,
    /// YAML.
    Yaml,
}

/// `skctl describe`
#[derive(Debug, Args)]
pub struct DescribeArgs {
    /// The name of the Simulation.
    pub name: String,
    /// Output format.
    #[arg(short = 'o', long = "output", value_enum, default_value = "table", value_name = "FORMAT")]
    pub output: ObjectFormat,
}

/// `skctl logs`
#[derive(Debug, Args)]
pub struct LogsArgs {
    /// The name of the Simulation.
    pub name: String,
}

/// `skctl pause`, `resume`, `delete`
#[derive(Debug, Args)]
pub struct NamedArgs {
    /// The name of the Simulation.
    pub name: String,
}

/// `skctl nodes …`
#[derive(Debug, Subcommand)]
pub enum NodesCommand {
    /// Create KWOK nodes from the groups of a scenario, or from the nodes recorded in a trace. Other nodes stay as they are.
    #[command(after_help = "Examples:
  skctl --context lab nodes apply -f pack.yaml
  skctl --context lab nodes apply -f example:nginx --set cluster.groups.small.min=10
  skctl --context lab nodes apply week.sktrace
  skctl --context lab nodes apply -f pack.yaml --delete")]
    Apply(NodesApplyArgs),
}

/// `skctl nodes apply`
#[derive(Debug, Args)]
pub struct NodesApplyArgs {
    #[arg(help = TRACE_HELP, required_unless_present = "scenario")]
    #[allow(missing_docs, reason = "the help text says it")]
    pub trace: Option<String>,
    /// The scenario with the node groups: a file, or `example:NAME`.
    #[arg(short = 'f', long = "scenario", value_name = "SCENARIO", conflicts_with = "trace")]
    pub scenario: Option<PathBuf>,
    /// Set one field of the scenario, such as cluster.groups.small.min=10; may be repeated.
    #[arg(long, value_name = "PATH=VALUE", requires = "scenario")]
    pub set: Vec<String>,
    /// Delete these nodes.
    #[arg(long)]
    pub delete: bool,
    /// Do not wait until the nodes are ready.
    #[arg(long, conflicts_with = "delete")]
    pub no_wait: bool,
}

/// `skctl lab …`
#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// Start the lab and print its kubeconfig.
    Up(LabPlaceArgs),
    /// Stop the lab and delete its folder, also after a crash.
    Down(LabPlaceArgs),
    /// Show whether the lab is up, and its processes. Exit code 1 if it is not.
    Status(LabStatusArgs),
    /// The process that supervises the lab.
    #[command(hide = true)]
    Serve(LabPlaceArgs),
    /// Executes one of its programs.
    #[command(hide = true)]
    Exec(LabWords),
    /// The controller, as `sk-ctrl`.
    #[command(hide = true)]
    Ctrl(LabWords),
    /// A driver, as `sk-driver`.
    #[command(hide = true)]
    Driver(LabWords),
}

/// Which lab.
#[derive(Debug, Args)]
pub struct LabPlaceArgs {
    /// The folder of the lab; by default ~/.local/state/simkube/lab.
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// `skctl lab status`
#[derive(Debug, Args)]
pub struct LabStatusArgs {
    /// Which lab.
    #[command(flatten)]
    pub place: LabPlaceArgs,
    /// Output format.
    #[arg(short = 'o', long = "output", value_enum, default_value = "table", value_name = "FORMAT")]
    pub output: TableFormat,
}

/// The arguments of another program.
#[derive(Debug, Args)]
pub struct LabWords {
    /// All of them.
    #[arg(last = true)]
    pub words: Vec<OsString>,
}

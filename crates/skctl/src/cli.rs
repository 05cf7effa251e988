//! What people can type.

mod cluster;
mod trace;
mod validate;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use jiff::tz::TimeZone;

pub use cluster::{
    DescribeArgs, DoctorArgs, ExportArgs, ExportForm, InstallArgs, InstallPart, LabCommand, LabPlaceArgs,
    LabStatusArgs, LabWords, LogsArgs, ManifestsCommand, NamedArgs, NodesApplyArgs, NodesCommand, ObjectFormat, Part,
    RecordArgs, Resource, SimArgs, SnapshotArgs, TracerArgs,
};
pub use trace::{
    ConvertArgs, Form, GenerateArgs, MergeArgs, OutArgs, ScaleArgs, ShiftArgs, ShowArgs, SliceArgs, TraceCommand,
    TransformArgs,
};
pub use validate::{ExplainArgs, PrintArgs, ValidateArgs, ValidateCommand};

/// What TRACE may be, for the help texts.
const TRACE_HELP: &str = "The trace: a file or URL, `example:NAME`, plain Kubernetes YAML, a folder of it, or `-`";

/// Ask what would have happened: replay a recorded Kubernetes cluster under other conditions.
#[derive(Debug, Parser)]
#[command(
    name = "skctl",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    after_help = "Start here:  skctl demo\n\nExit codes:  0 did it, all good · 1 judged and bad · 2 could not judge · 130 interrupted"
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// What every command understands.
    #[command(flatten)]
    pub global: Global,
}

/// The heading of flags that every command understands.
const GLOBAL: &str = "Global options";

/// Flags that every command understands.
#[derive(Clone, Debug, Args)]
pub struct Global {
    /// Say nothing but the answer.
    #[arg(short, long, global = true, help_heading = GLOBAL)]
    pub quiet: bool,
    /// How much is said of what goes on inside: error, warn, info, debug or trace.
    #[arg(short, long, global = true, help_heading = GLOBAL)]
    #[arg(value_enum, default_value = "warn", value_name = "LEVEL")]
    pub verbosity: Verbosity,
    /// Which cluster: a context of the kubeconfig; the current one if not said.
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "NAME")]
    pub context: Option<String>,
    /// The kubeconfig file; $KUBECONFIG or ~/.kube/config if not said.
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The namespace that the tracer or the controller lives in; simkube if not said.
    #[arg(short, long, global = true, help_heading = GLOBAL, value_name = "NAMESPACE")]
    pub namespace: Option<String>,
    /// When to use colour.
    #[arg(long, global = true, help_heading = GLOBAL)]
    #[arg(value_enum, default_value = "auto", value_name = "WHEN")]
    pub color: Color,
    /// Whose clocks a time without a zone means, e.g. Europe/Berlin for 2026-11-10T14:00.
    #[arg(long, global = true, help_heading = GLOBAL)]
    #[arg(default_value = "UTC", value_name = "ZONE", value_parser = time_zone)]
    pub tz: TimeZone,
}

impl Global {
    /// Where the tracer or the controller lives.
    pub(crate) fn home(&self) -> &str {
        self.namespace.as_deref().unwrap_or(sk_api::simulation::names::NAMESPACE)
    }

    /// `skctl` with the flags that lead to the same cluster again, for commands that are worth typing next.
    pub(crate) fn again(&self) -> String {
        let kubeconfig = self.kubeconfig.as_ref().map(|path| format!(" --kubeconfig {}", path.display()));
        let context = self.context.as_ref().map(|context| format!(" --context {context}"));
        let namespace = self.namespace.as_ref().map(|namespace| format!(" -n {namespace}"));
        let flags: String = [kubeconfig, context, namespace].into_iter().flatten().collect();
        format!("skctl{flags}")
    }
}

fn time_zone(name: &str) -> Result<TimeZone, String> {
    TimeZone::get(name).map_err(|_| "no such time zone; use a name like UTC, Europe/Berlin or America/New_York".into())
}

/// How much is said of what goes on inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Verbosity {
    /// What went wrong.
    Error,
    /// What may be wrong.
    Warn,
    /// What is decided.
    Info,
    /// What is done.
    Debug,
    /// Everything.
    Trace,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the bundled example and open its report.
    Demo(DemoArgs),
    /// Simulate a trace, on the embedded engine or with --cluster on a real one; ends with the summary.
    #[command(after_help = RUN_EXAMPLES)]
    Run(Box<RunArgs>),
    /// Show a run again, or with --cluster fetch a Simulation's record and show it.
    #[command(after_help = REPORT_EXAMPLES)]
    Report(ReportArgs),
    /// Put runs side by side; the first one is the baseline.
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(CompareArgs),
    /// Why did a pod wait, a node stand empty, a group not grow? From a run, or from what a trace recorded.
    #[command(after_help = WHY_EXAMPLES)]
    Why(WhyArgs),
    /// List the runs in ./runs, or with --cluster the Simulations in the cluster.
    List(ListArgs),
    /// Get a trace from the tracer in the cluster.
    #[command(after_help = cluster::EXPORT_EXAMPLES)]
    Export(ExportArgs),
    /// Make a trace of the cluster as it is now; no tracer is needed.
    #[command(after_help = cluster::SNAPSHOT_EXAMPLES)]
    Snapshot(SnapshotArgs),
    /// Record the cluster in the foreground, until Ctrl-C.
    #[command(after_help = cluster::RECORD_EXAMPLES)]
    Record(RecordArgs),
    /// Look into traces, make them, change them.
    #[command(subcommand)]
    Trace(TraceCommand),
    /// The same as `skctl trace transform`.
    Transform(TransformArgs),
    /// Can this trace be replayed? Exit code 1 if not.
    #[command(after_help = validate::EXAMPLES)]
    Validate(ValidateArgs),
    /// About the scenario file.
    #[command(subcommand)]
    Scenario(ScenarioCommand),
    /// Print what would be installed in a cluster, as YAML.
    #[command(subcommand, after_help = cluster::MANIFESTS_EXAMPLES)]
    Manifests(ManifestsCommand),
    /// The same as `skctl manifests crd`.
    Crd,
    /// Install the tracer or the simulator in a cluster, then check it.
    #[command(after_help = cluster::INSTALL_EXAMPLES)]
    Install(InstallArgs),
    /// What is missing in the cluster, what may I do there? Exit code 1 if something is missing.
    #[command(after_help = cluster::DOCTOR_EXAMPLES)]
    Doctor(DoctorArgs),
    /// What a Simulation is, what state it is in, and what happened to it.
    Describe(DescribeArgs),
    /// What the driver of a Simulation said last.
    Logs(LogsArgs),
    /// Let a Simulation wait.
    Pause(NamedArgs),
    /// Let a Simulation go on.
    Resume(NamedArgs),
    /// Delete a Simulation, its record and everything it made.
    #[command(visible_alias = "rm")]
    Delete(NamedArgs),
    /// Nodes that KWOK plays.
    #[command(subcommand)]
    Nodes(NodesCommand),
    /// A throw-away cluster on this machine: control plane, KWOK and controller as processes, without containers.
    #[command(subcommand, after_help = cluster::LAB_EXAMPLES)]
    Lab(LabCommand),
    /// Print a completion script for a shell.
    #[command(after_help = "Example:  skctl completions bash > /etc/bash_completion.d/skctl")]
    Completions(CompletionsArgs),
    /// Print the version.
    Version,
}

const RUN_EXAMPLES: &str = "Examples:
  skctl run example:nginx
  skctl run week.sktrace -f pack.yaml
  skctl run week.sktrace -f pack.yaml --set cluster.groups.general.max=36
  skctl run week.sktrace -f pack.yaml --vary cluster.groups.general.max=40,36,32
  skctl run week.sktrace -f ci.yaml --overlay rendered.yaml --baseline main
  helm template ./chart | skctl run - -f nodes.yaml -D 1h
  skctl --context lab run week.sktrace --cluster --speed 10 -D 1d";

const REPORT_EXAMPLES: &str = "Examples:
  skctl report
  skctl report pack -o markdown >> $GITHUB_STEP_SUMMARY
  skctl --context lab report pack --cluster --repetition 2";

const COMPARE_EXAMPLES: &str = "Examples:
  skctl compare @2 @
  skctl compare as-is packed packed-36 -o markdown >> $GITHUB_STEP_SUMMARY
  skctl compare runs/as-is.* runs/packed.* -o html > compare.html
  skctl compare week.sktrace as-is packed

Repetitions of one scenario (other seeds) are one column with the mean of each figure. Noise is the 95 % confidence
interval of the difference of means: paired by seed where the seeds are the same, else Welch's.";

const WHY_EXAMPLES: &str = "Examples:
  skctl why
  skctl why @ payments/api --at 2026-11-10T14:10
  skctl why packed general
  skctl why tue.sktrace payments/api -s 2026-11-10T14:00 -t 2026-11-10T14:30";

/// `skctl scenario`
#[derive(Debug, Subcommand)]
pub enum ScenarioCommand {
    /// Print a commented scenario that fits a trace, or the cluster of --context.
    #[command(after_help = "Examples:
  skctl scenario init week.sktrace > pack.yaml
  skctl --context prod scenario init > pack.yaml")]
    Init(ScenarioInitArgs),
    /// Print the JSON schema of scenario files, for editors.
    #[command(after_help = "Example:  skctl scenario schema > scenario.v1.json")]
    Schema,
}

/// `skctl scenario init`
#[derive(Debug, Args)]
pub struct ScenarioInitArgs {
    /// The trace to look at, a folder of manifests, or nothing for the cluster of --context.
    pub trace: Option<String>,
}

/// `skctl demo`
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Do not open the report in a browser.
    #[arg(long)]
    pub no_open: bool,
}

/// `skctl run`
#[derive(Debug, Default, Args)]
pub struct RunArgs {
    /// The trace: a file or URL, `example:NAME`, plain Kubernetes YAML, a folder of it, or `-`; by default the
    /// scenario's.
    pub trace: Option<String>,
    /// The scenario file: which nodes, what autoscaler, what must hold.
    #[arg(short = 'f', long = "scenario", value_name = "SCENARIO")]
    pub scenario: Option<PathBuf>,
    /// Change one field of the scenario, e.g. autoscaler.scale-down-unneeded-time=2m.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub set: Vec<String>,
    /// Run once for each of these values of a field, and once for each combination of several; the first is what the
    /// others are compared with.
    #[arg(long, value_name = "PATH=A,B,C")]
    pub vary: Vec<String>,
    /// Manifests (a file, a folder, or `-`) that take the place of what the trace has of the same kind, namespace and
    /// name.
    #[arg(long, value_name = "FILE")]
    pub overlay: Vec<String>,
    /// Something that must hold, in CEL, e.g. 'nodes.max <= 10'.
    #[arg(long = "assert", value_name = "CEL")]
    pub assert: Vec<String>,
    /// The run to compare with: assertions may name its figures (`baseline.cost.total`) and this run's divided by them
    /// (`ratio.cost.total`).
    #[arg(long, value_name = "RUN")]
    pub baseline: Option<String>,
    /// Where all randomness comes from; the scenario's seed, or 1.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// How many times, each with the next seed; the scenario's number, or 1.
    #[arg(short = 'N', long, value_name = "N")]
    pub repetitions: Option<u32>,
    /// How many runs at the same time; as many as there are cores.
    #[arg(short = 'j', long, value_name = "N")]
    pub jobs: Option<usize>,
    /// Which part of the trace.
    #[command(flatten)]
    pub part: PartArgs,
    /// Let warnings (not modelled, gaps, assumed nodes) fail the run.
    #[arg(long)]
    pub strict: bool,
    /// How to call the run.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// The folder for the run, or the folder that gets one for each of several; ./runs/NAME-HASH by default.
    #[arg(short = 'O', long = "out", value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write the results of all assertions here too, for a CI server.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// In which form to print the results.
    #[arg(short = 'o', long = "output", value_enum, default_value = "table", value_name = "FORMAT")]
    pub output: TableFormat,
    /// Check trace, scenario and assertions, say what would be run, and stop.
    #[arg(long)]
    pub dry_run: bool,
    /// Open the report in a browser.
    #[arg(long)]
    pub open: bool,
    /// On a real cluster that `skctl install sim` has prepared, in wall time.
    #[arg(long)]
    pub cluster: bool,
    /// So many times as fast as recorded, to watch it; without it a simulation is as fast as it can be. With --cluster
    /// controllers keep their own timers.
    #[arg(long, value_name = "X")]
    pub speed: Option<f64>,
    /// The driver's image, if not the installation's.
    #[arg(long, value_name = "IMAGE", help_heading = ON_A_CLUSTER)]
    pub driver_image: Option<String>,
    /// The port that the driver's webhook listens on, where the API server may not reach every port of a pod.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1024..), help_heading = ON_A_CLUSTER)]
    pub driver_port: Option<u16>,
    /// A Secret whose keys become the driver's environment, such as credentials for a trace's URL; may be repeated. It
    /// needs the label simkube.io/driver-secret=true.
    #[arg(long = "driver-secret", value_name = "NAME", help_heading = ON_A_CLUSTER)]
    pub driver_secrets: Vec<String>,
    /// The folder in an object store that the driver writes the record to; if not said, the controller keeps it.
    #[arg(long, value_name = "URL", help_heading = ON_A_CLUSTER)]
    pub record_path: Option<String>,
    /// Delete the Simulation, with the record that the controller keeps, so long after its end; never if not said.
    #[arg(long, value_name = "DURATION", help_heading = ON_A_CLUSTER)]
    pub ttl: Option<String>,
    /// Begin paused; `skctl resume NAME` lets it go on.
    #[arg(long, help_heading = ON_A_CLUSTER)]
    pub start_paused: bool,
    /// Start bare pods again that were interrupted.
    #[arg(long, help_heading = ON_A_CLUSTER)]
    pub reschedule_interrupted_bare_pods: bool,
}

/// The heading of flags that only mean something on a real cluster.
const ON_A_CLUSTER: &str = "With --cluster";

/// A part of a trace's time.
#[derive(Debug, Default, Args)]
pub struct PartArgs {
    /// Begin here: +30m from the trace's start, -2h from now, 2026-11-10T14:00, or RFC 3339.
    #[arg(short = 's', long = "start", alias = "start-time", value_name = "TIME", allow_hyphen_values = true)]
    pub start: Option<String>,
    /// End before this time.
    #[arg(short = 't', long = "end", alias = "end-time", value_name = "TIME", allow_hyphen_values = true)]
    pub end: Option<String>,
    /// End after this long.
    #[arg(short = 'D', long, value_name = "DURATION", conflicts_with = "end")]
    pub duration: Option<String>,
}

/// How the newest run is called.
pub(crate) const NEWEST: &str = "@";

/// `skctl report`
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The run: a folder, a name under ./runs, `@` for the newest, `@2` for the one before; with --cluster the name of
    /// a Simulation.
    #[arg(default_value = NEWEST)]
    pub run: String,
    /// Fetch the record of a Simulation in the cluster into ./runs first.
    #[arg(long)]
    pub cluster: bool,
    /// Which repetition of the Simulation, counted from 0; the last one if not said.
    #[arg(long, value_name = "N", requires = "cluster")]
    pub repetition: Option<u32>,
    /// In which form.
    #[arg(short = 'o', long = "output", value_enum, default_value = "table", value_name = "FORMAT")]
    pub output: ReportFormat,
}

/// Forms of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// For people, on a terminal.
    Table,
    /// summary.json
    Json,
    /// For a pull request or a job summary.
    Markdown,
    /// For a CI server.
    Junit,
    /// One self-contained page.
    Html,
}

/// `skctl compare`
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// The runs: folders, names under ./runs, `@` for the newest, `@2` for the one before; or a trace with observations,
    /// which reads as the run `recorded`.
    #[arg(required = true, num_args = 2.., value_name = "RUN")]
    pub runs: Vec<String>,
    /// In which form.
    #[arg(short = 'o', long = "output", value_enum, default_value = "table", value_name = "FORMAT")]
    pub output: CompareFormat,
}

/// Forms of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CompareFormat {
    /// For people, on a terminal.
    Table,
    /// Every figure of every run, and the compared ones.
    Json,
    /// For a pull request or a job summary.
    Markdown,
    /// One self-contained page with the curves over each other.
    Html,
}

/// `skctl why`
#[derive(Debug, Args)]
pub struct WhyArgs {
    /// The run: a folder, a name under ./runs, `@` for the newest; or a trace with observations.
    #[arg(default_value = NEWEST)]
    pub run: String,
    /// A pod or an owner as namespace/name (or namespace/Kind/name), a node, or a node group; every pod if not said.
    pub object: Option<String>,
    /// What was the matter at this moment?
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, conflicts_with_all = ["start", "end", "duration"])]
    pub at: Option<String>,
    /// Which part of the run.
    #[command(flatten)]
    pub part: PartArgs,
    /// In which form.
    #[arg(short = 'o', long = "output", value_enum, default_value = "table", value_name = "FORMAT")]
    pub output: WhyFormat,
}

/// Forms of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WhyFormat {
    /// For people, on a terminal.
    Table,
    /// For programs.
    Json,
}

/// `skctl list`
#[derive(Debug, Args)]
pub struct ListArgs {
    /// The Simulations in the cluster.
    #[arg(long)]
    pub cluster: bool,
    /// In which form.
    #[arg(short = 'o', long = "output", value_enum, default_value = "table", value_name = "FORMAT")]
    pub output: ObjectFormat,
}

/// Forms of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TableFormat {
    /// For people.
    #[default]
    Table,
    /// For programs.
    Json,
}

/// `skctl completions`
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// Which shell.
    pub shell: clap_complete::Shell,
}

impl Color {
    /// Makes it the choice of the whole process.
    pub(crate) fn apply(self) {
        let choice = match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        };
        choice.write_global();
    }
}

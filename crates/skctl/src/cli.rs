//! The command line as clap parses it: commands, flags and help texts. docs/cli.md is generated from it.

mod cluster;
mod simkube2;
mod sweep;
mod trace;
mod validate;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use jiff::tz::TimeZone;

pub use cluster::{
    ClusterCommand, DescribeArgs, DoctorArgs, ExportArgs, ExportForm, InstallArgs, InstallPart, LabCommand,
    LabPlaceArgs, LabStatusArgs, LabWords, LogsArgs, ManifestsCommand, NamedArgs, NodesApplyArgs, NodesCommand,
    ObjectFormat, Part, RecordArgs, Resource, SimArgs, SnapshotArgs, TracerArgs,
};
pub use simkube2::OldRunArgs;
pub use sweep::{SweepCommand, SweepFetchArgs, SweepPlanArgs, SweepRunArgs, SweepStatusArgs};
pub use trace::{
    ConvertArgs, Form, GenerateArgs, MergeArgs, OutArgs, ScaleArgs, ShiftArgs, ShowArgs, SliceArgs, TraceCommand,
    TransformArgs,
};
pub use validate::{CheckArgs, ExplainArgs, PrintArgs, ValidateArgs, ValidateCommand};

/// What TRACE may be, for the help texts.
const TRACE_HELP: &str =
    "The trace: a file, a URL, `example:NAME`, Kubernetes YAML (a file or a folder), or `-` for standard input";

/// Record a Kubernetes cluster, replay it under other conditions, and see what would have happened.
#[derive(Debug, Parser)]
#[command(
    name = "skctl",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    after_help = "Start here:  skctl demo\n\nExit codes:  0 success · 1 the answer is no (an assertion failed, a trace is invalid) · 2 error · 130 interrupted"
)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
    /// The global flags.
    #[command(flatten)]
    pub global: Global,
}

/// The heading of the global flags in help texts.
const GLOBAL: &str = "Global options";

/// The global flags.
#[derive(Clone, Debug, Args)]
pub struct Global {
    /// Print the result only: no progress, no notes.
    #[arg(short, long, global = true, help_heading = GLOBAL)]
    pub quiet: bool,
    /// Log level.
    #[arg(short, long, global = true, help_heading = GLOBAL)]
    #[arg(value_enum, default_value = "warn", value_name = "LEVEL")]
    pub verbosity: Verbosity,
    /// The kubeconfig context to use; by default the current one.
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "NAME")]
    pub context: Option<String>,
    /// The kubeconfig file; by default $KUBECONFIG or ~/.kube/config.
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The namespace of the tracer or the controller; by default simkube.
    #[arg(short, long, global = true, help_heading = GLOBAL, value_name = "NAMESPACE")]
    pub namespace: Option<String>,
    /// When to use colour.
    #[arg(long, global = true, help_heading = GLOBAL)]
    #[arg(value_enum, default_value = "auto", value_name = "WHEN")]
    pub color: Color,
    /// The time zone of times that name none, such as 2026-11-10T14:00.
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

/// Log levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Verbosity {
    /// Errors only.
    Error,
    /// Also warnings.
    Warn,
    /// Also what skctl decides.
    Info,
    /// Also each request.
    Debug,
    /// All that libraries log.
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
    /// Replay a trace and report: on the embedded engine, or with --cluster on a real cluster.
    #[command(after_help = RUN_EXAMPLES)]
    Run(Box<RunArgs>),
    /// Show the report of a run; with --cluster, fetch the record of a Simulation first.
    #[command(after_help = REPORT_EXAMPLES)]
    Report(ReportArgs),
    /// Compare runs; the first one is the baseline.
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(CompareArgs),
    /// Explain why a pod was pending, a node was not removed or a group did not grow, in a run or a recorded trace.
    #[command(after_help = WHY_EXAMPLES)]
    Why(WhyArgs),
    /// List the runs in ./runs, in another folder or at a URL; with --cluster, the Simulations in the cluster.
    List(ListArgs),
    /// Run many simulations: plan them once, then run, stop and resume.
    #[command(subcommand, after_help = sweep::EXAMPLES)]
    Sweep(SweepCommand),
    /// Inspect, convert, edit and generate traces.
    #[command(subcommand)]
    Trace(TraceCommand),
    /// The same as `skctl trace transform`.
    Transform(TransformArgs),
    /// As SimKube 2 calls `skctl trace show`.
    #[command(hide = true)]
    Xray(ShowArgs),
    /// Check whether a trace can be replayed. Exit code 1 if not.
    #[command(after_help = validate::EXAMPLES)]
    Validate(ValidateArgs),
    /// Create a scenario file, or print its schema.
    #[command(subcommand)]
    Scenario(ScenarioCommand),
    /// What talks to a cluster.
    #[command(flatten)]
    Cluster(ClusterCommand),
    /// Print a shell completion script.
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
    /// Which runs.
    #[command(flatten)]
    pub request: RunRequestArgs,
    /// Compare with this run: assertions can use its figures (`baseline.cost.total`) and this run's divided by them
    /// (`ratio.cost.total`).
    #[arg(long, value_name = "RUN")]
    pub baseline: Option<String>,
    /// Run this many at the same time; by default one per core.
    #[arg(short = 'j', long, value_name = "N")]
    pub jobs: Option<usize>,
    /// Write the run to this folder; several runs get a folder each inside it. By default ./runs/NAME-HASH.
    #[arg(short = 'O', long = "out", value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Also write the results of all assertions to this file as JUnit XML, for a CI server.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Output format.
    #[arg(short = 'o', long = "output", value_enum, default_value = "table", value_name = "FORMAT")]
    pub output: TableFormat,
    /// Check trace, scenario and assertions, say what would be run, and stop.
    #[arg(long)]
    pub dry_run: bool,
    /// Open the report in a browser.
    #[arg(long)]
    pub open: bool,
    /// Replay on a real cluster where `skctl install sim` has run. Takes as long as the trace, divided by --speed.
    #[arg(long)]
    pub cluster: bool,
    /// Replay this many times as fast as recorded; without it, an embedded run is as fast as it can be. With --cluster,
    /// timers of the cluster's controllers do not change.
    #[arg(long, value_name = "X")]
    pub speed: Option<f64>,
    /// The image of the driver; by default the one of the installation.
    #[arg(long, short_alias = 'I', value_name = "IMAGE", help_heading = ON_A_CLUSTER)]
    pub driver_image: Option<String>,
    /// The port of the driver's webhook, for clusters where the API server cannot reach every port of a pod.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1024..), help_heading = ON_A_CLUSTER)]
    pub driver_port: Option<u16>,
    /// A Secret to use as environment of the driver, such as credentials for the trace's URL; may be repeated. It needs
    /// the label simkube.io/driver-secret=true.
    #[arg(long = "driver-secret", alias = "driver-secrets", value_delimiter = ',')]
    #[arg(value_name = "NAME", help_heading = ON_A_CLUSTER)]
    pub driver_secrets: Vec<String>,
    /// Write the record to this folder of an object store; by default the controller keeps it.
    #[arg(long, value_name = "URL", help_heading = ON_A_CLUSTER)]
    pub record_path: Option<String>,
    /// Delete the Simulation, and the record that the controller keeps, this long after it has finished; by default never.
    #[arg(long, value_name = "DURATION", help_heading = ON_A_CLUSTER)]
    pub ttl: Option<String>,
    /// Create the Simulation paused; `skctl resume NAME` starts it.
    #[arg(long, help_heading = ON_A_CLUSTER)]
    pub start_paused: bool,
    /// Create pods without an owner again when they are evicted or lose their node.
    #[arg(long, help_heading = ON_A_CLUSTER)]
    pub reschedule_interrupted_bare_pods: bool,
    /// What SimKube 2 had flags for.
    #[command(flatten)]
    pub old: OldRunArgs,
}

/// Which runs are asked for: what `skctl run` makes at once, and `skctl sweep plan` writes down.
#[derive(Clone, Debug, Default, Args)]
pub struct RunRequestArgs {
    /// The trace: a file, a URL, `example:NAME`, Kubernetes YAML (a file or a folder), or `-` for standard input; by
    /// default the one that the scenario names.
    pub trace: Option<String>,
    /// The scenario file: node groups, autoscaler flags, variants, assertions.
    #[arg(short = 'f', long = "scenario", value_name = "SCENARIO")]
    pub scenario: Option<PathBuf>,
    /// Set one field of the scenario, such as autoscaler.scale-down-unneeded-time=2m; may be repeated.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub set: Vec<String>,
    /// Run once for each of these values of a field; may be repeated, for all combinations. The first run is the baseline
    /// of the comparison.
    #[arg(long, value_name = "PATH=A,B,C")]
    pub vary: Vec<String>,
    /// Manifests (a file, a folder, or `-`) that replace the trace's objects of the same kind, namespace and name; may be
    /// repeated.
    #[arg(long, value_name = "FILE")]
    pub overlay: Vec<String>,
    /// Add an assertion in CEL, such as 'nodes.max <= 10'; may be repeated.
    #[arg(long = "assert", value_name = "CEL")]
    pub assert: Vec<String>,
    /// The random seed; repetitions count up from it. By default the scenario's, or 1.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Run this many times, each with the next seed; by default as often as the scenario says, or once.
    #[arg(short = 'N', long, value_name = "N")]
    pub repetitions: Option<u32>,
    /// The part of the trace.
    #[command(flatten)]
    pub part: PartArgs,
    /// Fail if there are warnings: features that are not modelled, gaps in the trace, assumed nodes.
    #[arg(long)]
    pub strict: bool,
    /// The name of the run or the sweep; by default the scenario's or the trace's.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
}

/// The heading of flags that only mean something on a real cluster.
const ON_A_CLUSTER: &str = "With --cluster";

/// A part of a trace's time.
#[derive(Clone, Debug, Default, Args)]
pub struct PartArgs {
    /// Start at this time: +30m after the trace's start, -2h before now, 2026-11-10T14:00, or RFC 3339.
    #[arg(short = 's', long = "start", alias = "start-time", value_name = "TIME", allow_hyphen_values = true)]
    pub start: Option<String>,
    /// End before this time.
    #[arg(short = 't', long = "end", alias = "end-time", value_name = "TIME", allow_hyphen_values = true)]
    pub end: Option<String>,
    /// End this long after the start.
    #[arg(short = 'D', long, value_name = "DURATION", conflicts_with = "end")]
    pub duration: Option<String>,
}

/// How the newest run is called.
pub(crate) const NEWEST: &str = "@";

/// `skctl report`
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The run: a folder, a name under ./runs, `@` for the newest, `@2` for the one before it; with --cluster the name
    /// of a Simulation.
    #[arg(default_value = NEWEST)]
    pub run: String,
    /// Fetch the record of a Simulation from the cluster into ./runs.
    #[arg(long)]
    pub cluster: bool,
    /// The repetition of the Simulation, counted from 0; by default the last.
    #[arg(long, value_name = "N", requires = "cluster")]
    pub repetition: Option<u32>,
    /// Output format.
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
    /// For a spreadsheet: every figure, one to a line.
    Csv,
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
    /// The runs: folders, URLs, names under ./runs, `@` for the newest, `@2` for the one before; the plan of a sweep,
    /// or a folder or URL that holds many runs; or a trace with observations, which is read as the run `recorded`.
    #[arg(required = true, num_args = 1.., value_name = "RUN")]
    pub runs: Vec<String>,
    /// An assertion in CEL about every run but the first: `baseline` is the first run, `ratio` a run divided by it, and
    /// `fidelity` how close a run comes to a recording among the runs. Exit code 1 if one fails. May be repeated.
    #[arg(long, value_name = "CEL")]
    pub assert: Vec<String>,
    /// Output format.
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
    /// For a spreadsheet: each compared figure of each run, one to a line.
    Csv,
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
    /// A pod or an owner as namespace/name (or namespace/Kind/name), a node, or a node group; by default every pod.
    pub object: Option<String>,
    /// Explain the state at this time.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, conflicts_with_all = ["start", "end", "duration"])]
    pub at: Option<String>,
    /// The part of the run.
    #[command(flatten)]
    pub part: PartArgs,
    /// Output format.
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
    /// A folder of runs, the URL of one, or the plan of a sweep; by default ./runs.
    #[arg(value_name = "PLACE", conflicts_with = "cluster")]
    pub place: Option<String>,
    /// List the Simulations in the cluster.
    #[arg(long)]
    pub cluster: bool,
    /// Output format.
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
    /// The shell.
    pub shell: clap_complete::Shell,
    /// SimKube 2 asked for standard output with this; today the script goes nowhere else.
    #[arg(short = 'o', long, hide = true)]
    pub stdout: bool,
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

//! What people can type.

mod trace;
mod validate;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use jiff::tz::TimeZone;

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
    /// When to use colour.
    #[arg(long, global = true, help_heading = GLOBAL)]
    #[arg(value_enum, default_value = "auto", value_name = "WHEN")]
    pub color: Color,
    /// Whose clocks a time without a zone means, e.g. Europe/Berlin for 2026-11-10T14:00.
    #[arg(long, global = true, help_heading = GLOBAL)]
    #[arg(default_value = "UTC", value_name = "ZONE", value_parser = time_zone)]
    pub tz: TimeZone,
}

fn time_zone(name: &str) -> Result<TimeZone, String> {
    TimeZone::get(name).map_err(|_| "no such time zone; use a name like UTC, Europe/Berlin or America/New_York".into())
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
    /// Simulate a trace on the embedded engine; ends with the summary.
    #[command(after_help = RUN_EXAMPLES)]
    Run(Box<RunArgs>),
    /// Show a run again.
    Report(ReportArgs),
    /// List the runs in ./runs.
    List(ListArgs),
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
  helm template ./chart | skctl run - -f nodes.yaml -D 1h";

/// `skctl scenario`
#[derive(Debug, Subcommand)]
pub enum ScenarioCommand {
    /// Print the JSON schema of scenario files, for editors.
    #[command(after_help = "Example:  skctl scenario schema > scenario.v1.json")]
    Schema,
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
    /// Something that must hold, in CEL, e.g. 'nodes.max <= 10'.
    #[arg(long = "assert", value_name = "CEL")]
    pub assert: Vec<String>,
    /// Where all randomness comes from; the scenario's seed, or 1.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Which part of the trace.
    #[command(flatten)]
    pub part: PartArgs,
    /// Let warnings (not modelled, gaps, assumed nodes) fail the run.
    #[arg(long)]
    pub strict: bool,
    /// How to call the run.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// The folder for the run; ./runs/NAME-HASH by default.
    #[arg(short = 'O', long = "out", value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Open the report in a browser.
    #[arg(long)]
    pub open: bool,
}

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

/// `skctl report`
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The run: a folder, a name under ./runs, `@` for the newest, `@2` for the one before.
    #[arg(default_value = "@")]
    pub run: String,
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

/// `skctl list`
#[derive(Debug, Args)]
pub struct ListArgs {
    /// In which form.
    #[arg(short = 'o', long = "output", value_enum, default_value = "table", value_name = "FORMAT")]
    pub output: TableFormat,
}

/// Forms of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TableFormat {
    /// For people.
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

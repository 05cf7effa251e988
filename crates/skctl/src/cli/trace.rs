//! Commands and flags of `skctl trace`.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, Subcommand, ValueEnum};
use sk_core::{LabelSelector, SimDuration};
use sk_store::trace::Format;
use sk_trace::generate::PRESETS;

use super::{PartArgs, TRACE_HELP, TableFormat};

/// `skctl trace …`
#[derive(Debug, Subcommand)]
pub enum TraceCommand {
    /// Summarise a trace: kinds, counts, time span, gaps, busiest moments.
    #[command(after_help = SHOW_EXAMPLES)]
    Show(ShowArgs),
    /// Convert a trace to another format.
    #[command(after_help = CONVERT_EXAMPLES)]
    Convert(ConvertArgs),
    /// Extract a part of a trace: by time, namespace, kind or label.
    #[command(after_help = SLICE_EXAMPLES)]
    Slice(SliceArgs),
    /// Merge several traces into one. Times stay as they are.
    #[command(after_help = MERGE_EXAMPLES)]
    Merge(MergeArgs),
    /// Shift a trace in time.
    #[command(after_help = SHIFT_EXAMPLES)]
    Shift(ShiftArgs),
    /// Scale a trace: multiply replicas, copy workloads or leave some out.
    #[command(after_help = SCALE_EXAMPLES)]
    Scale(ScaleArgs),
    /// Edit a trace with a jq program that runs on each version of each object.
    #[command(after_help = TRANSFORM_EXAMPLES)]
    Transform(TransformArgs),
    /// Generate a realistic workload from a seed. The same seed gives the same bytes.
    #[command(after_help = GENERATE_EXAMPLES)]
    Generate(GenerateArgs),
}

const SHOW_EXAMPLES: &str = "Examples:
  skctl trace show example:nginx
  skctl trace show week.sktrace --values | less";

const CONVERT_EXAMPLES: &str = "Examples:
  skctl trace convert old.sktrace week.sktrace
  skctl trace convert week.sktrace old.sktrace --to v2
  skctl trace convert week.sktrace - | jq .";

const SLICE_EXAMPLES: &str = "Examples:
  skctl trace slice week.sktrace -O tuesday.sktrace -s 2026-11-10T00:00 -D 1d --tz Europe/Berlin
  skctl trace slice week.sktrace -O shop.sktrace --include-namespaces shop,payments -l 'tier in (web, api)'";

const MERGE_EXAMPLES: &str = "Examples:
  skctl trace merge eu.sktrace us.sktrace -O both.sktrace
  skctl trace merge monday.sktrace tuesday.sktrace --join -O days.sktrace";

const SHIFT_EXAMPLES: &str = "Examples:
  skctl trace shift week.sktrace --by 7d -O next.sktrace
  skctl trace shift week.sktrace --start 2026-01-05T00:00 -O january.sktrace";

const SCALE_EXAMPLES: &str = "Examples:
  skctl trace scale week.sktrace --replicas 1.5 -O more.sktrace
  skctl trace scale week.sktrace --arrivals 0.1 --seed 7 -O tenth.sktrace";

const TRANSFORM_EXAMPLES: &str =
    "The program gets $time, $kind, $namespace and $name. Its output replaces the object; without output the object is removed.

Examples:
  skctl trace transform week.sktrace -f drop-debug.jq --dry-run
  skctl trace transform week.sktrace -f drop-debug.jq -O lean.sktrace
  with drop-debug.jq:  select(.metadata.labels.purpose != \"debug\")";

const GENERATE_EXAMPLES: &str = "Examples:
  skctl trace generate --preset day --seed 7 -O day.sktrace
  skctl trace generate -f workload.yaml -O workload.sktrace";

/// Formats that skctl writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// Compressed, with random access.
    Native,
    /// The format of SimKube 2: whole seconds, no observations.
    V2,
    /// JSON Lines, for jq and other programs.
    Jsonl,
}

impl Form {
    /// The format itself.
    pub fn format(self) -> Format {
        match self {
            Self::Native => Format::Native,
            Self::V2 => Format::V2,
            Self::Jsonl => Format::JsonLines,
        }
    }
}

/// The output of commands that write a trace.
#[derive(Debug, Args)]
pub struct OutArgs {
    /// Write the trace to this path or URL, or to standard output (`-`).
    #[arg(short = 'O', long = "out", value_name = "OUT")]
    pub out: String,
    /// Trace format; by default native for .sktrace, JSON Lines for .jsonl and `-`.
    #[arg(long, value_enum, value_name = "FORM")]
    pub to: Option<Form>,
}

/// `skctl trace show`
#[derive(Debug, Args)]
pub struct ShowArgs {
    #[arg(help = TRACE_HELP)]
    #[allow(missing_docs, reason = "the help text says it")]
    pub trace: String,
    /// List every string in the trace with its location, for a security review.
    #[arg(long)]
    pub values: bool,
    /// Output format.
    #[arg(short = 'o', long = "output", value_enum, default_value = "table", value_name = "FORMAT")]
    pub output: TableFormat,
}

/// `skctl trace convert`
#[derive(Debug, Args)]
pub struct ConvertArgs {
    #[arg(value_name = "IN", help = TRACE_HELP)]
    #[allow(missing_docs, reason = "the help text says it")]
    pub input: String,
    /// Write the trace to this path or URL, or to standard output (`-`).
    pub out: String,
    /// Trace format; by default native for .sktrace, JSON Lines for .jsonl and `-`.
    #[arg(long, value_enum, value_name = "FORM")]
    pub to: Option<Form>,
}

/// `skctl trace slice`
#[derive(Debug, Args)]
pub struct SliceArgs {
    #[arg(value_name = "IN", help = TRACE_HELP)]
    #[allow(missing_docs, reason = "the help text says it")]
    pub input: String,
    /// The part of the trace.
    #[command(flatten)]
    pub part: PartArgs,
    /// Keep these namespaces only; may be repeated or separated by commas. Cluster-scoped objects stay.
    #[arg(long, value_name = "NAMESPACE", value_delimiter = ',')]
    pub include_namespaces: Vec<String>,
    /// Leave these namespaces out; may be repeated or separated by commas.
    #[arg(long, value_name = "NAMESPACE", value_delimiter = ',')]
    pub excluded_namespaces: Vec<String>,
    /// Keep these kinds only: Deployment, or apps/v1.Deployment.
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    pub kind: Vec<String>,
    /// Keep objects with these labels only: 'app=web,tier in (a, b),!debug'.
    #[arg(short = 'l', long, value_name = "SELECTOR", default_value = "", hide_default_value = true)]
    pub selector: LabelSelector,
    /// The output.
    #[command(flatten)]
    pub to: OutArgs,
}

/// `skctl trace merge`
#[derive(Debug, Args)]
pub struct MergeArgs {
    /// The traces, two or more.
    #[arg(value_name = "IN", required = true, num_args = 2..)]
    pub inputs: Vec<String>,
    /// The traces are parts of one recording: the same name means the same object.
    #[arg(long)]
    pub join: bool,
    /// The output.
    #[command(flatten)]
    pub to: OutArgs,
}

/// `skctl trace shift`
#[derive(Debug, Args)]
pub struct ShiftArgs {
    #[arg(value_name = "IN", help = TRACE_HELP)]
    #[allow(missing_docs, reason = "the help text says it")]
    pub input: String,
    /// Shift by this duration; negative means earlier.
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, required_unless_present = "start")]
    pub by: Option<SimDuration>,
    /// Shift so that the trace starts at this time: now, 2026-11-10T14:00, or RFC 3339.
    #[arg(short = 's', long, value_name = "TIME", allow_hyphen_values = true, conflicts_with = "by")]
    pub start: Option<String>,
    /// The output.
    #[command(flatten)]
    pub to: OutArgs,
}

/// `skctl trace scale`
#[derive(Debug, Args)]
pub struct ScaleArgs {
    #[arg(value_name = "IN", help = TRACE_HELP)]
    #[allow(missing_docs, reason = "the help text says it")]
    pub input: String,
    /// Multiply all replicas by this.
    #[arg(long, value_name = "X", required_unless_present = "arrivals")]
    pub replicas: Option<f64>,
    /// Multiply the number of workloads by this: 0.5 leaves half of them out, 2 doubles each.
    #[arg(long, value_name = "X")]
    pub arrivals: Option<f64>,
    /// The random seed that chooses which workloads are left out or copied.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// The output.
    #[command(flatten)]
    pub to: OutArgs,
}

/// `skctl trace transform`
#[derive(Debug, Args)]
pub struct TransformArgs {
    #[arg(value_name = "IN", help = TRACE_HELP)]
    #[allow(missing_docs, reason = "the help text says it")]
    pub input: String,
    /// The position of the program in SimKube 2.
    #[arg(hide = true)]
    pub old_program: Option<PathBuf>,
    /// The jq program.
    #[arg(short = 'f', long = "program", value_name = "PROGRAM", required_unless_present = "old_program")]
    pub program: Option<PathBuf>,
    /// Show what would change, and write nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Write the trace to this path or URL, or to standard output (`-`).
    #[arg(short = 'O', long = "out", short_alias = 'o', alias = "output", value_name = "OUT")]
    #[arg(required_unless_present_any = ["dry_run", "old_program"], conflicts_with = "dry_run")]
    pub out: Option<String>,
    /// Trace format; by default native for .sktrace, JSON Lines for .jsonl and `-`.
    #[arg(long, value_enum, value_name = "FORM")]
    pub to: Option<Form>,
}

/// `skctl trace generate`
#[derive(Debug, Args)]
pub struct GenerateArgs {
    /// The specification of the workload, a YAML file; by default a small cluster.
    #[arg(short = 'f', long = "spec", value_name = "SPEC")]
    pub spec: Option<PathBuf>,
    /// A predefined workload.
    #[arg(long, value_name = "NAME", value_parser = presets(), conflicts_with = "spec")]
    pub preset: Option<String>,
    /// The random seed; by default the specification's.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// The output.
    #[command(flatten)]
    pub to: OutArgs,
}

fn presets() -> PossibleValuesParser {
    PossibleValuesParser::new(PRESETS.iter().map(|preset| PossibleValue::new(preset.name).help(preset.what)))
}

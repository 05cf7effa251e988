//! What can be typed behind `skctl trace`.

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
    /// What is in a trace: kinds, counts, times, gaps, busy moments.
    #[command(after_help = SHOW_EXAMPLES)]
    Show(ShowArgs),
    /// Write a trace in another form.
    #[command(after_help = CONVERT_EXAMPLES)]
    Convert(ConvertArgs),
    /// Cut a part out of a trace: a time, some namespaces, kinds or labels.
    #[command(after_help = SLICE_EXAMPLES)]
    Slice(SliceArgs),
    /// Put several traces together, each at its own times.
    #[command(after_help = MERGE_EXAMPLES)]
    Merge(MergeArgs),
    /// Move a trace to another time.
    #[command(after_help = SHIFT_EXAMPLES)]
    Shift(ShiftArgs),
    /// More or less of the same: other numbers of replicas, copied or left out workloads.
    #[command(after_help = SCALE_EXAMPLES)]
    Scale(ScaleArgs),
    /// Change a trace with a jq program that is run on each version of each object.
    #[command(after_help = TRANSFORM_EXAMPLES)]
    Transform(TransformArgs),
    /// Make a believable workload from a seed; the same seed gives the same bytes.
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
    "The program gets $time, $kind, $namespace and $name. Its output is the new object; no output drops the object.

Examples:
  skctl trace transform week.sktrace -f drop-debug.jq --dry-run
  skctl trace transform week.sktrace -f drop-debug.jq -O lean.sktrace
  with drop-debug.jq:  select(.metadata.labels.purpose != \"debug\")";

const GENERATE_EXAMPLES: &str = "Examples:
  skctl trace generate --preset day --seed 7 -O day.sktrace
  skctl trace generate -f workload.yaml -O workload.sktrace";

/// A form that traces are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// Compressed, with random access.
    Native,
    /// As SimKube 2 reads it; whole seconds, no observations.
    V2,
    /// JSON Lines, one thing per line.
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

/// Where a changed trace goes, and in which form.
#[derive(Debug, Args)]
pub struct OutArgs {
    /// Where to write the trace: a path, a URL, or `-` for standard output.
    #[arg(short = 'O', long = "out", value_name = "OUT")]
    pub out: String,
    /// In which form; by the name's ending if not said: .sktrace is native, .jsonl is JSON Lines, and so is `-`.
    #[arg(long, value_enum, value_name = "FORM")]
    pub to: Option<Form>,
}

/// `skctl trace show`
#[derive(Debug, Args)]
pub struct ShowArgs {
    #[arg(help = TRACE_HELP)]
    #[allow(missing_docs, reason = "the help text says it")]
    pub trace: String,
    /// List every text in the trace with where it stands, for whoever must say that it may leave the cluster.
    #[arg(long)]
    pub values: bool,
    /// In which form.
    #[arg(short = 'o', long = "output", value_enum, default_value = "table", value_name = "FORMAT")]
    pub output: TableFormat,
}

/// `skctl trace convert`
#[derive(Debug, Args)]
pub struct ConvertArgs {
    #[arg(value_name = "IN", help = TRACE_HELP)]
    #[allow(missing_docs, reason = "the help text says it")]
    pub input: String,
    /// Where to write it: a path, a URL, or `-` for standard output.
    pub out: String,
    /// In which form; by the name's ending if not said: .sktrace is native, .jsonl is JSON Lines, and so is `-`.
    #[arg(long, value_enum, value_name = "FORM")]
    pub to: Option<Form>,
}

/// `skctl trace slice`
#[derive(Debug, Args)]
pub struct SliceArgs {
    #[arg(value_name = "IN", help = TRACE_HELP)]
    #[allow(missing_docs, reason = "the help text says it")]
    pub input: String,
    /// Which time.
    #[command(flatten)]
    pub part: PartArgs,
    /// Only these namespaces; may be repeated, or separated by commas. Objects without a namespace stay.
    #[arg(long, value_name = "NAMESPACE", value_delimiter = ',')]
    pub include_namespaces: Vec<String>,
    /// Not these namespaces.
    #[arg(long, value_name = "NAMESPACE", value_delimiter = ',')]
    pub excluded_namespaces: Vec<String>,
    /// Only these kinds: Deployment, or apps/v1.Deployment.
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    pub kind: Vec<String>,
    /// Only what has such labels: 'app=web,tier in (a, b),!debug'.
    #[arg(short = 'l', long, value_name = "SELECTOR", default_value = "", hide_default_value = true)]
    pub selector: LabelSelector,
    /// Where it goes.
    #[command(flatten)]
    pub to: OutArgs,
}

/// `skctl trace merge`
#[derive(Debug, Args)]
pub struct MergeArgs {
    /// The traces, two or more.
    #[arg(value_name = "IN", required = true, num_args = 2..)]
    pub inputs: Vec<String>,
    /// The traces are parts of one recording: an object that is in several of them is one object.
    #[arg(long)]
    pub join: bool,
    /// Where it goes.
    #[command(flatten)]
    pub to: OutArgs,
}

/// `skctl trace shift`
#[derive(Debug, Args)]
pub struct ShiftArgs {
    #[arg(value_name = "IN", help = TRACE_HELP)]
    #[allow(missing_docs, reason = "the help text says it")]
    pub input: String,
    /// By how much later; earlier with a minus.
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, required_unless_present = "start")]
    pub by: Option<SimDuration>,
    /// When the trace is to begin: now, 2026-11-10T14:00, or RFC 3339.
    #[arg(short = 's', long, value_name = "TIME", allow_hyphen_values = true, conflicts_with = "by")]
    pub start: Option<String>,
    /// Where it goes.
    #[command(flatten)]
    pub to: OutArgs,
}

/// `skctl trace scale`
#[derive(Debug, Args)]
pub struct ScaleArgs {
    #[arg(value_name = "IN", help = TRACE_HELP)]
    #[allow(missing_docs, reason = "the help text says it")]
    pub input: String,
    /// Every number of replicas times this.
    #[arg(long, value_name = "X", required_unless_present = "arrivals")]
    pub replicas: Option<f64>,
    /// So many workloads for each: 0.5 leaves out half of them, 2 has each twice.
    #[arg(long, value_name = "X")]
    pub arrivals: Option<f64>,
    /// Which workloads are left out or copied once more.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Where it goes.
    #[command(flatten)]
    pub to: OutArgs,
}

/// `skctl trace transform`
#[derive(Debug, Args)]
pub struct TransformArgs {
    #[arg(value_name = "IN", help = TRACE_HELP)]
    #[allow(missing_docs, reason = "the help text says it")]
    pub input: String,
    /// Where SimKube 2 had the program.
    #[arg(hide = true)]
    pub old_program: Option<PathBuf>,
    /// The jq program.
    #[arg(short = 'f', long = "program", value_name = "PROGRAM", required_unless_present = "old_program")]
    pub program: Option<PathBuf>,
    /// Show what would change, and write nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Where to write the trace: a path, a URL, or `-` for standard output.
    #[arg(short = 'O', long = "out", short_alias = 'o', value_name = "OUT")]
    #[arg(required_unless_present_any = ["dry_run", "old_program"], conflicts_with = "dry_run")]
    pub out: Option<String>,
    /// In which form; by the name's ending if not said: .sktrace is native, .jsonl is JSON Lines, and so is `-`.
    #[arg(long, value_enum, value_name = "FORM")]
    pub to: Option<Form>,
}

/// `skctl trace generate`
#[derive(Debug, Args)]
pub struct GenerateArgs {
    /// What to generate, as a YAML file. What it does not say, or all if there is none, is a small cluster.
    #[arg(short = 'f', long = "spec", value_name = "SPEC")]
    pub spec: Option<PathBuf>,
    /// A workload that has a name.
    #[arg(long, value_name = "NAME", value_parser = presets(), conflicts_with = "spec")]
    pub preset: Option<String>,
    /// Where all randomness comes from; the specification's seed if not said.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Where it goes.
    #[command(flatten)]
    pub to: OutArgs,
}

fn presets() -> PossibleValuesParser {
    PossibleValuesParser::new(PRESETS.iter().map(|preset| PossibleValue::new(preset.name).help(preset.what)))
}

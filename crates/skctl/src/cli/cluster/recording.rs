//! Flags of the commands that take a trace from a cluster: `export`, `snapshot`, `record`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use sk_core::LabelSelector;

pub(super) const EXPORT_EXAMPLES: &str = "Examples:
  skctl --context prod-eu1 export -s -7d -O week.sktrace
  skctl export -s 2026-11-10T13:30 -t 2026-11-10T15:00 -O tuesday.sktrace --tz Europe/Berlin
  skctl export -s -2h -D 1h --excluded-namespaces hr -O s3://sim-traces/prod-eu1/hour.sktrace";

pub(super) const SNAPSHOT_EXAMPLES: &str = "Examples:
  skctl --context prod-eu1 snapshot -O now.sktrace
  skctl snapshot -c tracer.yaml -O now.sktrace";

pub(super) const RECORD_EXAMPLES: &str = "Examples:
  skctl record -O incident.sktrace
  skctl --context lab record -c tracer.yaml -O test.sktrace

The recording is kept in OUT.recording/ until it is done. After a crash, the same command continues it.";

/// `skctl export`
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Start at this time: -7d before now, 2026-11-10T14:00, or RFC 3339.
    #[arg(short = 's', long = "start", alias = "start-time", value_name = "TIME", allow_hyphen_values = true)]
    pub start: String,
    /// End before this time; by default now.
    #[arg(short = 't', long = "end", alias = "end-time", value_name = "TIME", allow_hyphen_values = true)]
    pub end: Option<String>,
    /// End this long after the start.
    #[arg(short = 'D', long, value_name = "DURATION", conflicts_with = "end")]
    pub duration: Option<String>,
    /// Write the trace to this path or URL. The tracer itself writes to s3://, gs:// and azure://.
    #[arg(short = 'O', long = "out", short_alias = 'o', alias = "output-path", value_name = "OUT")]
    pub out: String,
    /// Export these namespaces only; may be repeated or separated by commas.
    #[arg(long, value_name = "NAMESPACE", value_delimiter = ',')]
    pub include_namespaces: Vec<String>,
    /// Leave these namespaces out; may be repeated or separated by commas.
    #[arg(long, value_name = "NAMESPACE", value_delimiter = ',')]
    pub excluded_namespaces: Vec<String>,
    /// Export objects with these labels only: 'app=web,tier in (a, b),!debug'.
    #[arg(short = 'l', long, value_name = "SELECTOR", default_value = "", hide_default_value = true)]
    pub selector: LabelSelector,
    /// Trace format.
    #[arg(long, value_enum, default_value = "native", value_name = "FORM")]
    pub format: ExportForm,
    /// The address of the tracer, such as http://localhost:7777; by default it is found in the cluster.
    #[arg(long, value_name = "URL")]
    pub tracer_address: Option<String>,
    /// The SKEL program that SimKube 2 ran on the way.
    #[arg(long, hide = true)]
    pub transform: Option<PathBuf>,
}

/// Formats that the tracer exports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportForm {
    /// Compressed, with random access, gaps and observations.
    Native,
    /// The format of SimKube 2.
    V2,
}

impl ExportForm {
    /// The name of the format in an export request.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::V2 => "v2",
        }
    }
}

/// `skctl snapshot`
#[derive(Debug, Args)]
pub struct SnapshotArgs {
    /// The tracer configuration; by default the usual workloads are recorded (`-v info` prints which).
    #[arg(short = 'c', long = "config-file", value_name = "CONFIG")]
    pub config: Option<PathBuf>,
    /// Write the trace to this path or URL.
    #[arg(short = 'O', long = "out", short_alias = 'o', alias = "output", value_name = "OUT")]
    pub out: String,
    /// Leave these namespaces out; may be repeated or separated by commas.
    #[arg(long, value_name = "NAMESPACE", value_delimiter = ',')]
    pub excluded_namespaces: Vec<String>,
}

/// `skctl record`
#[derive(Debug, Args)]
pub struct RecordArgs {
    /// The tracer configuration; by default the usual workloads are recorded (`-v info` prints which).
    #[arg(short = 'c', long = "config-file", value_name = "CONFIG")]
    pub config: Option<PathBuf>,
    /// Write the trace to this file when the recording ends. The command refuses a file that exists.
    #[arg(short = 'O', long = "out", value_name = "FILE")]
    pub out: PathBuf,
    /// Replace FILE if it exists. The old file stays until the new trace is complete.
    #[arg(long)]
    pub force: bool,
}

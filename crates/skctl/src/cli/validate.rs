//! Commands and flags of `skctl validate`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Form, ObjectFormat, TRACE_HELP, TableFormat};

pub(super) const EXAMPLES: &str = "Examples:
  skctl validate week.sktrace
  skctl validate week.sktrace -f pack.yaml
  skctl validate week.sktrace --fix -O mended.sktrace
  skctl validate explain E0001";

/// `skctl validate`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct ValidateArgs {
    #[arg(required = true, help = TRACE_HELP)]
    #[allow(missing_docs, reason = "the help text says it")]
    pub trace: Option<String>,
    /// A scenario: also say which pods fit on none of its nodes, what is not modelled, and what is wrong with it.
    #[arg(short = 'f', long = "scenario", value_name = "SCENARIO")]
    pub scenario: Option<PathBuf>,
    /// Fix what can be fixed, write the result to --out and check that.
    #[arg(long, requires = "out")]
    pub fix: bool,
    /// Write the fixed trace to this path or URL.
    #[arg(short = 'O', long = "out", value_name = "OUT", requires = "fix")]
    pub out: Option<String>,
    /// Trace format; by default native for .sktrace, JSON Lines for .jsonl.
    #[arg(long, value_enum, value_name = "FORM", requires = "out")]
    pub to: Option<Form>,
    /// Treat warnings as errors.
    #[arg(long)]
    pub strict: bool,
    /// Output format.
    #[arg(short = 'o', long = "output", value_enum, default_value = "table", value_name = "FORMAT")]
    pub output: TableFormat,
    /// The codes.
    #[command(subcommand)]
    pub command: Option<ValidateCommand>,
}

/// `skctl validate …`
#[derive(Debug, Subcommand)]
pub enum ValidateCommand {
    /// As SimKube 2 writes `skctl validate TRACE`.
    #[command(hide = true)]
    Check(CheckArgs),
    /// Explain a code and what to do about it.
    #[command(after_help = "Example:  skctl validate explain E0001")]
    Explain(ExplainArgs),
    /// List all codes.
    Print(PrintArgs),
}

/// `skctl validate check`
#[derive(Debug, Args)]
pub struct CheckArgs {
    #[arg(help = TRACE_HELP)]
    #[allow(missing_docs, reason = "the help text says it")]
    pub trace: String,
    /// Fix what can be fixed, write the result to --out and check that.
    #[arg(long, requires = "out")]
    pub fix: bool,
    /// Write the fixed trace to this path or URL.
    #[arg(short = 'o', long = "output", short_alias = 'O', alias = "out", value_name = "OUT", requires = "fix")]
    pub out: Option<String>,
    /// A SKEL program that would fix the trace.
    #[arg(long, hide = true)]
    pub generate_skel: bool,
}

impl From<&CheckArgs> for ValidateArgs {
    fn from(args: &CheckArgs) -> Self {
        Self {
            trace: Some(args.trace.clone()),
            scenario: None,
            fix: args.fix,
            out: args.out.clone(),
            to: None,
            strict: false,
            output: TableFormat::Table,
            command: None,
        }
    }
}

/// `skctl validate explain`
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The code, such as E0001.
    pub code: String,
}

/// `skctl validate print`
#[derive(Debug, Args)]
pub struct PrintArgs {
    /// Output format.
    #[arg(short = 'o', long = "output", short_alias = 'f', alias = "format")]
    #[arg(value_enum, default_value = "table", value_name = "FORMAT")]
    pub output: ObjectFormat,
}

//! What can be typed behind `skctl validate`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Form, TRACE_HELP, TableFormat};

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
    /// Mend what can be mended, and judge the mended trace.
    #[arg(long, requires = "out")]
    pub fix: bool,
    /// Where to write the mended trace: a path or a URL.
    #[arg(short = 'O', long = "out", value_name = "OUT", requires = "fix")]
    pub out: Option<String>,
    /// In which form; by the name's ending if not said: .sktrace is native, .jsonl is JSON Lines.
    #[arg(long, value_enum, value_name = "FORM", requires = "out")]
    pub to: Option<Form>,
    /// Warnings make a trace invalid, too.
    #[arg(long)]
    pub strict: bool,
    /// In which form to answer.
    #[arg(short = 'o', long = "output", value_enum, default_value = "table", value_name = "FORMAT")]
    pub output: TableFormat,
    /// About the codes.
    #[command(subcommand)]
    pub command: Option<ValidateCommand>,
}

/// `skctl validate …`
#[derive(Debug, Subcommand)]
pub enum ValidateCommand {
    /// What a code means, and what to do about it.
    #[command(after_help = "Example:  skctl validate explain E0001")]
    Explain(ExplainArgs),
    /// List all codes.
    Print(PrintArgs),
}

/// `skctl validate explain`
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The code, like E0001.
    pub code: String,
}

/// `skctl validate print`
#[derive(Debug, Args)]
pub struct PrintArgs {
    /// In which form.
    #[arg(short = 'o', long = "output", value_enum, default_value = "table", value_name = "FORMAT")]
    pub output: TableFormat,
}

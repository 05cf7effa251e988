//! `skctl demo`: the bundled example, end to end.

use anyhow::Result;

use crate::cli::{DemoArgs, Global, QuestionArgs, RunArgs};
use crate::commands::run;
use crate::failure::Outcome;

/// What the demo stands for.
const TRACE: &str = "example:nginx";

pub(crate) fn run(args: &DemoArgs, global: &Global) -> Result<Outcome> {
    if !global.quiet {
        anstream::eprintln!("$ skctl run {TRACE}");
    }
    let question = QuestionArgs { trace: Some(TRACE.to_owned()), ..QuestionArgs::default() };
    let run_args = RunArgs { question, open: !args.no_open && run::can_open(), ..RunArgs::default() };
    run::run(&run_args, global)
}

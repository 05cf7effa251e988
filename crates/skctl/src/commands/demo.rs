//! `skctl demo`: the bundled example, end to end.

use anyhow::Result;

use crate::cli::{DemoArgs, Global, RunArgs, RunRequestArgs};
use crate::commands::run;
use crate::failure::Outcome;

/// What the demo stands for.
const TRACE: &str = "example:nginx";

pub(crate) fn run(args: &DemoArgs, global: &Global) -> Result<Outcome> {
    if !global.quiet {
        anstream::eprintln!("$ skctl run {TRACE}");
    }
    let request = RunRequestArgs { trace: Some(TRACE.to_owned()), ..RunRequestArgs::default() };
    let run_args = RunArgs { request, open: !args.no_open && run::can_open(), ..RunArgs::default() };
    run::run(&run_args, global)
}

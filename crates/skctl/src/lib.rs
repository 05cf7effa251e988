//! The command line as a library, so that tests and the reference generator can call it.
//!
//! `cli` has the commands and flags, `commands` one file per command, `cluster` those that talk to a cluster, `failure` the
//! exit codes: 0 success, 1 the answer is no, 2 error, 130 interrupted. Results go to standard output, everything else to
//! standard error.

#![cfg_attr(not(feature = "cluster"), allow(dead_code, reason = "what only `cluster` uses is not worth a mark each"))]

pub mod cli;
#[cfg(feature = "cluster")]
mod cluster;
#[cfg(not(feature = "cluster"))]
#[path = "without_cluster.rs"]
mod cluster;
mod commands;
mod confined;
mod examples;
mod failure;
mod output;
mod outputs;
mod progress;
mod records;
mod runs;
mod scenarios;
mod text_file;
mod times;
mod traces;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command, TraceCommand};
use failure::Outcome;

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    if let Some(evaluated) = confined::serve() {
        return evaluated;
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return failure::usage(&error),
    };
    cli.global.color.apply();
    if let Some(ended) = cluster::begin(&cli) {
        return ended;
    }
    let global = cli.global;
    let outcome = match cli.command {
        Command::Demo(args) => commands::demo::run(&args, &global),
        Command::Run(args) => commands::run::run(&args, &global),
        Command::Report(args) => commands::report::run(&args, &global),
        Command::Compare(args) => commands::compare::run(&args, &global),
        Command::Why(args) => commands::why::run(&args, &global),
        Command::List(args) => commands::list::run(&args, &global),
        Command::Sweep(command) => commands::sweep::run(&command, &global),
        Command::Trace(command) => commands::trace::run(&command, &global),
        Command::Transform(args) => commands::trace::run(&TraceCommand::Transform(args), &global),
        Command::Xray(args) => commands::trace::run(&TraceCommand::Show(args), &global),
        Command::Validate(args) => commands::validate::run(&args, &global),
        Command::Scenario(command) => commands::scenario::run(&command, &global),
        Command::Cluster(command) => cluster::run(&command, &global),
        Command::Completions(args) => commands::completions::run(&args),
        Command::Version => commands::version::run(),
    };
    Outcome::exit(outcome)
}

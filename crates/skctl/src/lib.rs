//! SimKube's command line, as a library so that tests and the reference generator can call it.
//!
//! `cli` is what people can type, one file of `commands` is what one of the words does, `failure` decides what a caller
//! gets back: 0 did it, 1 judged and bad, 2 could not judge, 130 interrupted. Answers go to standard output, talk to
//! standard error.

mod answer;
pub mod cli;
mod commands;
mod examples;
mod failure;
mod outputs;
mod progress;
mod runs;
mod scenarios;
mod texts;
mod times;
mod traces;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command, TraceCommand};
use failure::Outcome;

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return failure::usage(&error),
    };
    let global = cli.global;
    global.color.apply();
    let outcome = match cli.command {
        Command::Demo(args) => commands::demo::run(&args, &global),
        Command::Run(args) => commands::run::run(&args, &global),
        Command::Report(args) => commands::report::run(&args),
        Command::List(args) => commands::list::run(&args),
        Command::Trace(command) => commands::trace::run(&command, &global),
        Command::Transform(args) => commands::trace::run(&TraceCommand::Transform(args), &global),
        Command::Validate(args) => commands::validate::run(&args, &global),
        Command::Scenario(command) => commands::scenario::run(&command),
        Command::Completions(args) => commands::completions::run(&args),
        Command::Version => commands::version::run(),
    };
    Outcome::exit(outcome)
}

//! The command line as a library, so that tests and the reference generator can call it.
//!
//! `cli` has the commands and flags, `commands` one file per command, `failure` the exit codes: 0 success, 1 the answer
//! is no, 2 error, 130 interrupted. Results go to standard output, everything else to standard error.

pub mod cli;
mod cluster;
mod commands;
mod confined;
mod doctor;
mod examples;
mod failure;
mod installation;
mod lab;
mod logging;
mod output;
mod outputs;
mod progress;
mod recording;
mod records;
mod runs;
mod scenarios;
mod simulation;
mod text_file;
mod times;
mod traces;
mod upload;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command, ManifestsCommand, NodesCommand, TraceCommand};
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
    let global = cli.global;
    global.color.apply();
    if let Command::Lab(command) = &cli.command
        && let Some(code) = commands::lab::program(command)
    {
        return code;
    }
    // A lab's keeper asks components that are not up yet; that they are not is no news.
    if !matches!(cli.command, Command::Lab(cli::LabCommand::Serve(_))) {
        logging::begin(global.verbosity);
    }
    let outcome = match cli.command {
        Command::Demo(args) => commands::demo::run(&args, &global),
        Command::Run(args) => commands::run::run(&args, &global),
        Command::Report(args) => commands::report::run(&args, &global),
        Command::Compare(args) => commands::compare::run(&args, &global),
        Command::Why(args) => commands::why::run(&args, &global),
        Command::List(args) => commands::list::run(&args, &global),
        Command::Sweep(command) => commands::sweep::run(&command, &global),
        Command::Export(args) => commands::export::run(&args, &global),
        Command::Snapshot(args) => commands::snapshot::run(&args, &global),
        Command::Record(args) => commands::record::run(&args, &global),
        Command::Trace(command) => commands::trace::run(&command, &global),
        Command::Transform(args) => commands::trace::run(&TraceCommand::Transform(args), &global),
        Command::Xray(args) => commands::trace::run(&TraceCommand::Show(args), &global),
        Command::Validate(args) => commands::validate::run(&args, &global),
        Command::Scenario(command) => commands::scenario::run(&command, &global),
        Command::Manifests(command) => commands::manifests::run(&command, &global),
        Command::Crd => commands::manifests::run(&ManifestsCommand::Crd, &global),
        Command::Install(args) => commands::install::run(&args, &global),
        Command::Doctor(args) => commands::doctor::run(&args, &global),
        Command::Describe(args) => commands::simulations::describe(&args, &global),
        Command::Logs(args) => commands::simulations::logs(&args, &global),
        Command::Pause(args) => commands::simulations::pause(&args, &global),
        Command::Resume(args) => commands::simulations::resume(&args, &global),
        Command::Delete(args) => commands::simulations::delete(&args, &global),
        Command::Nodes(NodesCommand::Apply(args)) => commands::nodes::apply(&args, &global),
        Command::Lab(command) => commands::lab::run(&command, &global),
        Command::Completions(args) => commands::completions::run(&args),
        Command::Version => commands::version::run(),
    };
    Outcome::exit(outcome)
}

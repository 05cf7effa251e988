//! One file per command that talks to a cluster.

mod doctor;
mod export;
mod install;
pub(super) mod lab;
mod manifests;
mod nodes;
mod record;
pub(super) mod simulations;
mod snapshot;

use anyhow::Result;

use crate::cli::{ClusterCommand, Global, ManifestsCommand, NodesCommand};
use crate::failure::Outcome;

/// Carries out a command.
pub(crate) fn run(command: &ClusterCommand, global: &Global) -> Result<Outcome> {
    match command {
        ClusterCommand::Export(args) => export::run(args, global),
        ClusterCommand::Snapshot(args) => snapshot::run(args, global),
        ClusterCommand::Record(args) => record::run(args, global),
        ClusterCommand::Manifests(command) => manifests::run(command, global),
        ClusterCommand::Crd => manifests::run(&ManifestsCommand::Crd, global),
        ClusterCommand::Install(args) => install::run(args, global),
        ClusterCommand::Doctor(args) => doctor::run(args, global),
        ClusterCommand::Describe(args) => simulations::describe(args, global),
        ClusterCommand::Logs(args) => simulations::logs(args, global),
        ClusterCommand::Pause(args) => simulations::pause(args, global),
        ClusterCommand::Resume(args) => simulations::resume(args, global),
        ClusterCommand::Delete(args) => simulations::delete(args, global),
        ClusterCommand::Nodes(NodesCommand::Apply(args)) => nodes::apply(args, global),
        ClusterCommand::Lab(command) => lab::run(command, global),
    }
}

//! `skctl manifests tracer|sim|crd`: prints what `skctl install` applies.

use anyhow::Result;

use crate::cli::{Global, ManifestsCommand};
use crate::cluster::installation;
use crate::failure::Outcome;
use crate::output;

pub(crate) fn run(command: &ManifestsCommand, global: &Global) -> Result<Outcome> {
    let objects = match command {
        ManifestsCommand::Tracer(args) => installation::tracer(args, global)?,
        ManifestsCommand::Sim(args) => installation::sim(args, global),
        ManifestsCommand::Crd => installation::crds()?,
    };
    output::print_yaml(&objects)?;
    Ok(Outcome::Good)
}

//! `skctl scenario …`

mod init;

use anyhow::Result;

use crate::cli::{Global, ScenarioCommand};
use crate::failure::Outcome;
use crate::output;

pub(crate) fn run(command: &ScenarioCommand, global: &Global) -> Result<Outcome> {
    match command {
        ScenarioCommand::Init(args) => init::run(args, global)?,
        ScenarioCommand::Schema => output::print_json(&sk_api::scenario::scenario_schema())?,
    }
    Ok(Outcome::Good)
}

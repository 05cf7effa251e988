//! `skctl scenario …`

use anyhow::Result;

use crate::cli::ScenarioCommand;
use crate::failure::Outcome;
use crate::output;

pub(crate) fn run(command: &ScenarioCommand) -> Result<Outcome> {
    match command {
        ScenarioCommand::Schema => output::print_json(&sk_api::scenario::scenario_schema())?,
    }
    Ok(Outcome::Good)
}

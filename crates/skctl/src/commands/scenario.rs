//! `skctl scenario …`

use anyhow::Result;

use crate::answer;
use crate::cli::ScenarioCommand;
use crate::failure::Outcome;

pub(crate) fn run(command: &ScenarioCommand) -> Result<Outcome> {
    match command {
        ScenarioCommand::Schema => answer::print_json(&sk_api::scenario::scenario_schema())?,
    }
    Ok(Outcome::Good)
}

//! The scenario's KubeSchedulerConfiguration, read and checked before a run.
//!
//! Errors name file, line and column, whether the configuration is a file of its own or part of the scenario. The
//! caller reads files; nothing here touches a disk.

use std::fmt;

use serde_json::{Map, Value};
use sk_api::scenario::{Path, Place, Scenario, Scheduler};
use sk_engine::scheduler_config::{self, ConfigError};
use sk_record::{Warning, WarningKind};

pub use sk_engine::scheduler_config::Configuration;

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{place}{path}: {problem}")]
pub struct SchedulerError {
    place: Shown,
    path: String,
    problem: String,
}

/// A position, and the separator after it.
#[derive(Debug)]
struct Shown(Option<String>);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |place| write!(f, "{place}: "))
    }
}

/// Reads a file's text, of which errors speak as `file`. The first answer is the configuration as it was written, to be
/// kept in the scenario in place of the file's name: a run's own scenario then says all.
pub fn from_text(file: &str, text: &str) -> Result<(Map<String, Value>, Configuration), SchedulerError> {
    let refused = |error: ConfigError| SchedulerError {
        place: Shown(Some(
            error.place.map_or_else(|| file.to_owned(), |(line, column)| format!("{file}:{line}:{column}")),
        )),
        path: error.path.to_string(),
        problem: error.problem,
    };
    let configuration = Configuration::from_yaml(text).map_err(refused)?;
    // Read as a configuration it is a mapping, or nothing at all.
    let written = match Configuration::tree(text).map_err(refused)? {
        Value::Object(written) => written,
        _ => Map::new(),
    };
    Ok((written, configuration))
}

/// What the scenario says in place; kube-scheduler's own where it says nothing. A file that is only named is not read:
/// see [`from_text`].
pub fn of(scenario: &Scenario) -> Result<Configuration, SchedulerError> {
    let Some(Scheduler::Inline(written)) = &scenario.scheduler else { return Ok(Configuration::default()) };
    Configuration::from_value(&Value::Object(written.clone())).map_err(|error| {
        let mut path = Path::of(["scheduler"]);
        for step in &error.path.0 {
            path = match step {
                scheduler_config::Step::Field(name) => path.field(name),
                scheduler_config::Step::Index(index) => path.index(*index),
            };
        }
        let place = scenario.place(&path).as_ref().map(Place::to_string);
        SchedulerError { place: Shown(place), path: path.to_string(), problem: error.problem }
    })
}

/// What a configuration sets and a simulation does not need, for the run's warnings.
pub fn warnings(configuration: &Configuration) -> Vec<Warning> {
    let warning = |setting: &String| Warning {
        code: "scheduler-setting".to_owned(),
        kind: WarningKind::Note,
        message: format!("scheduler: {setting}"),
        count: 1,
    };
    configuration.ignored.iter().map(warning).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: &str = "cluster: {groups: {g: {min: 1, max: 1, cpu: 1, memory: 1Gi}}}\n";

    fn scenario(scheduler: &str) -> Scenario {
        let text = format!("apiVersion: simkube.io/v1\nkind: Scenario\n{scheduler}{NODES}");
        Scenario::parse("s.yaml", &text).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn a_mistake_is_named_where_it_stands() {
        let error = of(&scenario("scheduler:\n  profiles:\n    - percentageOfNodesToScore: 101\n")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "s.yaml:5:33: scheduler.profiles[0].percentageOfNodesToScore: 101 is not from 0 to 100"
        );
        let error = from_text("k.yaml", "profiles:\n  - plugins: {score: {enabled: [{name: Mine}]}}\n").unwrap_err();
        let words = "k.yaml:2:40: profiles[0].plugins.score.enabled[0].name: the plugin `Mine` is not built in";
        assert!(error.to_string().starts_with(words), "{error}");
    }

    #[test]
    fn what_is_ignored_is_a_warning_of_the_run() {
        let read = of(&scenario("scheduler: {parallelism: 8}\n")).unwrap();
        let said: Vec<String> = warnings(&read).into_iter().map(|warning| warning.message).collect();
        assert_eq!(said, ["scheduler: parallelism: decisions are those of `parallelism: 1`"]);
    }
}

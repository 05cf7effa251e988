//! Completes the record of a run without a controller: writes scenario, summary, HTML report and JUnit beside the
//! tables, as `skctl run` does, so that every command that reads runs can read this one.
//!
//! With a controller, skctl does this when it fetches the record. Only the assertions of the scenario apply here:
//! nodes, scheduler and autoscaler are the cluster's own, timing and duration are the Simulation's, and the stored
//! scenario says so. Assertions may be somebody else's, so they are evaluated in a process with limits, as skctl's are.

use sk_api::scenario::{Scenario, ScenarioError};
use sk_api::simulation::{Simulation, names};
use sk_core::{SimDuration, SmolStr, TimeSpec};
use sk_record::Staged;
use sk_replay::plan::Window;
use sk_replay::setup::{ASSUMED, Setup, beside_defaults};
use sk_report::compare::differs::of_scenarios;
use sk_report::figure::ToFigure;
use sk_report::html::Asked;
use sk_report::{Analysis, Assertion, Judgement, Scope, Terms};
use sk_sandbox::assertions::{self, Checked};

use super::stop::Stop;

/// Why there is nothing to judge by.
#[derive(Debug, thiserror::Error)]
pub enum JudgeError {
    /// The scenario is none.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// One of its assertions is none.
    #[error("{file}: {error}")]
    Assertion {
        /// Where it stands.
        file: String,
        /// What is wrong.
        error: Box<assertions::Error>,
    },
}

/// What a run is judged by.
#[derive(Debug)]
pub struct Judge {
    scenario: Scenario,
    checked: Checked,
    terms: Terms,
    stop: Stop,
}

/// A record that is whole, and what is to be said of it.
#[derive(Debug)]
pub struct Judged {
    /// Its figures.
    pub analysis: Analysis,
    /// How it went, all told.
    pub judgement: Judgement,
}

/// Why a record could not be made whole.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The record could not be read or completed.
    #[error(transparent)]
    Record(#[from] sk_record::Error),
    /// The assertions could not be evaluated.
    #[error(transparent)]
    Assertions(#[from] assertions::Error),
    /// A report could not be made of it: a bug.
    #[error("cannot make the run's reports: {0}; please report this")]
    Report(#[from] serde_json::Error),
}

impl Judge {
    /// By the scenario in this file, if there is one, or the one that the Simulation carries; everything that can be wrong
    /// with it is found before the run. `part` is what is replayed, if it is not the whole trace. `stop` ends an evaluation.
    pub fn new(
        simulation: &Simulation,
        file: Option<(&str, &str)>,
        part: Option<Window>,
        stop: &Stop,
    ) -> Result<Self, JudgeError> {
        let (name, scenario) = scenario(simulation, file, part)?;
        let assertion = |written: &sk_api::scenario::Assertion| Assertion {
            name: written.name.clone(),
            text: written.that.clone(),
        };
        let asserted = scenario.assertions.iter().map(assertion).collect();
        let groups = Setup::new(&scenario).groups();
        let checked = assertions::check(asserted, &groups, Scope::default(), is_stopped(stop))
            .map_err(|error| JudgeError::Assertion { file: name, error: Box::new(error) })?;
        let terms = Terms { accept: scenario.accept.clone(), strict: false };
        Ok(Self { scenario, checked, terms, stop: stop.clone() })
    }

    /// Judges a staged run, and adds to it what `skctl` would have added.
    pub(crate) fn complete(&self, staged: &mut Staged) -> Result<Judged, ReportError> {
        let text = self.scenario.to_yaml();
        staged.add_file("scenario.yaml", text.as_bytes())?;
        let analysis = Analysis::of(&staged.run()?)?;
        let verdicts = self.checked.judge(&analysis.summary.figure(), is_stopped(&self.stop))?;
        let judgement = Judgement::of(&analysis, verdicts, &self.terms);
        let (defaults, own) = beside_defaults(&self.scenario)?;
        let asked = Asked { text: &text, differs: &of_scenarios(&defaults, &own) };
        for (name, text) in sk_report::files(&analysis, &judgement, asked)? {
            staged.add_file(name, text.as_bytes())?;
        }
        Ok(Judged { analysis, judgement })
    }
}

/// The scenario that a run is judged by, as the record keeps it, and what it is called.
fn scenario(
    simulation: &Simulation,
    file: Option<(&str, &str)>,
    part: Option<Window>,
) -> Result<(String, Scenario), ScenarioError> {
    let carried = simulation.metadata.annotations.as_ref().and_then(|all| all.get(names::SCENARIO_ANNOTATION));
    let (name, text) = match (file, carried) {
        (Some(file), _) => file,
        (None, Some(text)) => (names::SCENARIO_ANNOTATION, text.as_str()),
        (None, None) => ("the assumed scenario", ASSUMED),
    };
    let mut scenario = Scenario::parse(name, text)?;
    say_what_was_run(&mut scenario, simulation, part);
    Ok((name.to_owned(), scenario))
}

/// A run that was stopped is judged as far as it came; a stop that comes later ends the evaluation.
fn is_stopped(stop: &Stop) -> impl Fn() -> bool + Clone + Send + 'static {
    let (before, stop) = (stop.reason().is_some(), stop.clone());
    move || !before && stop.reason().is_some()
}

/// The Simulation decides how fast pods start and what is replayed; the scenario in the record says the same.
fn say_what_was_run(scenario: &mut Scenario, simulation: &Simulation, part: Option<Window>) {
    let written = &simulation.spec.lifecycle_params;
    let millis = |millis: u32| SimDuration::from_millis(millis.into());
    let timing = &mut scenario.timing;
    timing.image_pull_delay = millis(written.image_pull_delay);
    timing.image_pull_jitter = millis(written.image_pull_jitter);
    timing.pod_startup_delay = millis(written.pod_startup_delay);
    timing.pod_startup_jitter = millis(written.pod_startup_jitter);
    scenario.trace.start = part.map(|part| TimeSpec::At(part.start));
    scenario.trace.end = part.map(|part| TimeSpec::At(part.end));
    scenario.trace.duration = None;
    scenario.name = scenario.name.take().or_else(|| simulation.metadata.name.as_deref().map(SmolStr::from));
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sk_core::SimTime;

    use super::*;

    fn simulation() -> Simulation {
        let spec = json!({"driver": {"tracePath": "/t"}, "lifecycleParams": {"podStartupDelay": 3000}});
        let json =
            json!({"apiVersion": "simkube.io/v1", "kind": "Simulation", "metadata": {"name": "s"}, "spec": spec});
        serde_json::from_value(json).unwrap()
    }

    fn kept(simulation: &Simulation, file: Option<(&str, &str)>, part: Option<Window>) -> Scenario {
        let (_, scenario) = scenario(simulation, file, part).unwrap();
        Scenario::parse("scenario.yaml", &scenario.to_yaml()).unwrap()
    }

    #[test]
    fn the_scenario_that_is_kept_says_what_the_simulation_made_of_it() {
        let text =
            format!("{ASSUMED}timing: {{podStartupDelay: 9s}}\ntrace: {{start: +30m}}\nassert: [pods.created >= 1]\n");
        let (start, end) = (SimTime::from_secs(100), SimTime::from_secs(190));
        let part = Window { start, end, includes_end: false };
        let kept = kept(&simulation(), Some(("mine.yaml", &text)), Some(part));
        assert_eq!(kept.timing.pod_startup_delay, SimDuration::from_secs(3));
        assert_eq!((kept.trace.start, kept.trace.end), (Some(TimeSpec::At(start)), Some(TimeSpec::At(end))));
        assert_eq!(kept.assertions.len(), 1);
    }

    #[test]
    fn a_simulation_that_carries_no_scenario_is_judged_by_nothing() {
        let kept = kept(&simulation(), None, None);
        assert_eq!((kept.assertions.len(), kept.name.as_deref()), (0, Some("s")));
    }

    #[test]
    fn a_scenario_that_travels_with_the_simulation_is_judged_by_unless_a_file_is_given() {
        let mut simulation = simulation();
        let carried = format!("{ASSUMED}assert: [pods.created >= 1, unschedulable.pods == 0]\n");
        simulation.metadata.annotations = Some([(names::SCENARIO_ANNOTATION.to_owned(), carried)].into());
        assert_eq!(kept(&simulation, None, None).assertions.len(), 2);
        assert_eq!(kept(&simulation, Some(("mine.yaml", ASSUMED)), None).assertions.len(), 0);
    }
}

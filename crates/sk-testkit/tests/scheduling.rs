//! Are the recorded answers of the real scheduler whole, and answers to the questions that are asked today?

use std::collections::BTreeSet;
use std::path::Path;

use sk_testkit::Versions;
use sk_testkit::scheduling::attempt::{Outcome, name_of};
use sk_testkit::scheduling::{Family, Recorded, SchedulingScenario, Step};

/// How many scenarios the hermetic suite compares with, at least.
const SCENARIOS: usize = 200;

fn recorded() -> Vec<(Family, Recorded)> {
    Recorded::all().expect("every family has a recording: run `make record-fixtures SCENARIOS=scheduler`")
}

#[test]
fn every_family_was_recorded_as_it_is_now_with_the_pinned_kubernetes() {
    let pinned = format!("v{}", Versions::pinned().kubernetes);
    for (family, recording) in recorded() {
        let advice = format!("run `make record-fixtures SCENARIOS=scheduler/{}`", family.name);
        assert_eq!(recording.kubernetes, pinned, "{} is of another version: {advice}", family.name);
        assert_eq!(recording.family, family.source, "{} has changed since it was recorded: {advice}", family.name);
        assert!(recording.recorded.parse::<jiff::civil::Date>().is_ok(), "{} says no day", family.name);
        let asked: BTreeSet<_> = family.scenarios.iter().map(|scenario| &scenario.name).collect();
        let answered: BTreeSet<_> = recording.answers.keys().collect();
        assert_eq!(asked, answered, "{}: {advice}", family.name);
    }
}

#[test]
fn no_recording_is_of_a_family_that_is_gone() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/scheduler");
    let files = std::fs::read_dir(folder).expect("there are recordings").flatten();
    let found: BTreeSet<_> =
        files.map(|file| file.path().file_stem().unwrap_or_default().to_string_lossy().into_owned()).collect();
    let known: BTreeSet<_> = Family::all().unwrap().into_iter().map(|family| family.name).collect();
    assert_eq!(found, known);
}

#[test]
fn there_are_enough_scenarios_to_believe_in() {
    let scenarios: usize = Family::all().unwrap().iter().map(|family| family.scenarios.len()).sum();
    assert!(scenarios >= SCENARIOS, "only {scenarios} scenarios");
}

/// The pods that a scheduler should have tried at once: those that are for one that runs, and that no gate holds.
fn tried_at_once(scenario: &SchedulingScenario, pod: &serde_json::Value) -> bool {
    let name = pod["spec"]["schedulerName"].as_str().unwrap_or("default-scheduler");
    let profiles = scenario.scheduler["profiles"].as_array().cloned().unwrap_or_default();
    let runs = |name: &str| {
        profiles.is_empty() && name == "default-scheduler"
            || profiles.iter().any(|profile| profile["schedulerName"].as_str().unwrap_or("default-scheduler") == name)
    };
    runs(name) && pod["spec"]["schedulingGates"].is_null()
}

#[test]
fn every_step_has_its_answer_and_every_pod_was_tried() {
    for (family, recording) in recorded() {
        for scenario in &family.scenarios {
            let answers = &recording.answers[&scenario.name];
            assert_eq!(answers.len(), scenario.steps.len(), "{}/{}", family.name, scenario.name);
            for (step, attempts) in scenario.steps.iter().zip(answers) {
                let Step::Pod(pod) = step else { continue };
                let tried = attempts.iter().any(|attempt| attempt.pod == name_of(pod));
                let place = format!("{}/{}: {}", family.name, scenario.name, name_of(pod));
                assert_eq!(tried, tried_at_once(scenario, pod), "{place}");
            }
        }
    }
}

#[test]
fn the_answers_agree_with_themselves() {
    for (family, recording) in recorded() {
        for (name, answers) in &recording.answers {
            for attempt in answers.iter().flatten() {
                let place = format!("{}/{name}: {}", family.name, attempt.pod);
                assert!(!matches!(attempt.outcome, Outcome::Failed { .. }), "{place}: {:?}", attempt.outcome);
                let Some(scores) = &attempt.scores else { continue };
                let sum = |node: usize| scores.plugins.iter().map(|(_, column)| column[node]).sum::<i64>();
                let sums: Vec<i64> = (0..scores.nodes.len()).map(sum).collect();
                assert_eq!(sums, scores.totals, "{place}");
                let Outcome::Bound { node, feasible, .. } = &attempt.outcome else { panic!("{place} was scored") };
                assert_eq!(scores.nodes.len() as u64, *feasible, "{place}");
                let chosen = scores.nodes.iter().position(|known| known == node).expect("the chosen node was scored");
                assert_eq!(scores.totals.iter().max(), Some(&scores.totals[chosen]), "{place}");
            }
        }
    }
}

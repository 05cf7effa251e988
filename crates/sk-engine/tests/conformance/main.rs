//! The engine does what the real control plane did: the same scenarios, played here, against recorded answers.
//!
//! Each test plays a scenario of sk-testkit on the engine and compares with the fixture that was recorded from
//! Kubernetes. What is compared is said in each test; what is not modelled yet is not pretended.

mod arm;
mod job;

use std::collections::BTreeMap;

use arm::Arm;
use serde_json::Value;
use sk_engine::kinds::POD;
use sk_testkit::fixture::Fixture;
use sk_testkit::scenario::Scenario;
use sk_testkit::states::{self, Run};

fn load(name: &str) -> (Scenario, Fixture) {
    let scenario = Scenario::named(name).unwrap_or_else(|error| panic!("{error}"));
    (scenario, Fixture::named(name).unwrap_or_else(|error| panic!("{error}")))
}

/// Where each pod went, by name; pods that never got a node have none.
fn recorded_placements(fixture: &Fixture) -> BTreeMap<String, Option<String>> {
    let pods = fixture.objects.iter().filter(|history| history.kind == POD);
    let node = |state: &Value| state.pointer("/spec/nodeName").and_then(Value::as_str).map(str::to_owned);
    let name = |canonical: &str| canonical.rsplit('/').next().unwrap_or_default().to_owned();
    pods.map(|history| (name(&history.name), history.states.last().and_then(node))).collect()
}

/// Every distinct sentence the scheduler wrote into a pod, in order.
fn recorded_sentences(fixture: &Fixture, pod: &str) -> Vec<String> {
    let history = fixture.object(pod).unwrap_or_else(|| panic!("the fixture has {pod}"));
    let mut sentences: Vec<String> = Vec::new();
    for state in &history.states {
        let conditions = state.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
        let refused =
            conditions.filter(|condition| condition["type"] == "PodScheduled" && condition["status"] == "False");
        for sentence in refused.filter_map(|condition| condition["message"].as_str()) {
            if sentences.last().map(String::as_str) != Some(sentence) {
                sentences.push(sentence.to_owned());
            }
        }
    }
    sentences
}

#[test]
fn fifty_pods_land_on_the_nodes_the_real_scheduler_chose() {
    let (scenario, fixture) = load("placement");
    let recorded = recorded_placements(&fixture);
    assert_eq!(recorded.len(), 50);
    assert_eq!(Arm::play(&scenario).placements(), recorded);
}

#[test]
fn pods_over_zones_land_on_the_nodes_the_real_scheduler_chose() {
    let (scenario, fixture) = load("placement-zones");
    assert_eq!(Arm::play(&scenario).placements(), recorded_placements(&fixture));
}

#[test]
fn a_pod_that_fits_nowhere_is_told_so_in_the_real_schedulers_words() {
    let (scenario, fixture) = load("unschedulable");
    let arm = Arm::play(&scenario);
    for pod in ["big", "huge"] {
        assert_eq!(arm.sentences(pod), recorded_sentences(&fixture, &format!("default/Pod/{pod}")), "{pod}");
    }
    assert_eq!(arm.placements()["big"].as_deref(), Some("late"));
}

#[expect(clippy::disallowed_methods, reason = "which scenarios are played is asked for from outside, as a flag is")]
fn of_states() -> Vec<Scenario> {
    let one = std::env::var("SCENARIO").ok();
    let mut all = states::scenarios().unwrap_or_else(|error| panic!("{error}"));
    all.retain(|scenario| one.as_ref().is_none_or(|one| scenario.name.starts_with(one)));
    all
}

/// Every difference of one scenario, with its name. One that nobody has recorded yet must still come to what it waits for.
fn differences(scenario: &Scenario) -> Vec<String> {
    let arm = Arm::play(scenario);
    if !states::is_recorded(scenario) {
        return Vec::new();
    }
    let (_, fixture) = load(&scenario.name);
    let recorded = Run { objects: &fixture.objects, steps: &fixture.steps };
    let played = Run { objects: &arm.histories(&scenario.watch), steps: arm.steps() };
    let mut found = states::differences(scenario, &recorded, &played);
    for (real, ours) in fixture.refusals.iter().zip(arm.refusals()).filter(|(real, ours)| real != ours) {
        found.push(format!("step {} is refused with {ours:?} and was recorded as {real:?}", real.step));
    }
    found.into_iter().map(|difference| format!("{}: {difference}", scenario.name)).collect()
}

#[test]
fn workloads_end_in_the_states_that_the_real_control_plane_ended_in_and_go_as_far_in_between() {
    // One that never comes to what it waits for does not keep the others from being compared.
    let played = |scenario: &Scenario| {
        let compared = std::panic::catch_unwind(|| differences(scenario));
        compared.unwrap_or_else(|_| vec![format!("{}: see above", scenario.name)])
    };
    let found: Vec<_> = of_states().iter().flat_map(played).collect();
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), found.join("\n"));
}

#[test]
fn a_scenario_played_twice_leaves_the_same_log() {
    for scenario in of_states() {
        assert!(Arm::play(&scenario).log() == Arm::play(&scenario).log(), "{}", scenario.name);
    }
}

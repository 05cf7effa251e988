//! Our scheduler beside the real one, live: random pods on random clusters, and whether the recordings are still true.

#[path = "../differential/admission.rs"]
mod admission;
#[path = "../differential/compare.rs"]
mod compare;
#[path = "../differential/ours/mod.rs"]
mod ours;

use sk_testkit::scheduling::live::Arena;
use sk_testkit::scheduling::recorded::Answers;
use sk_testkit::scheduling::{Recorded, generate};

use crate::compare::{Difference, Level, compare};

/// One in so many recorded scenarios is played again: enough to notice another scheduler, in under a minute.
const REPLAYED: usize = 12;
/// What `make e2e` compares; `make differential` sets the variables to more.
const SEEDS: u64 = 4;
const PODS: u64 = 250;

/// A number from the environment.
fn setting(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok().filter(|text| !text.is_empty());
    text.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

#[tokio::test(flavor = "multi_thread")]
async fn random_pods_are_decided_as_the_real_scheduler_decides_them() {
    let (seeds, pods) = (setting("DIFFERENTIAL_SEEDS", SEEDS), setting("DIFFERENTIAL_PODS", PODS));
    let mut arena = Arena::start().await.expect("the control plane starts");
    let (mut attempts, mut placements, mut found) = (0, 0, Vec::new());
    for seed in 0..seeds {
        let scenario = generate::scenario(seed, pods as usize);
        let answers = arena.play(&scenario).await.expect("the real scheduler plays it");
        let verdict = compare(&scenario, &answers);
        println!(
            "seed {seed}: {} nodes, {} steps, {} attempts, {} placements, {} differences",
            scenario.nodes.len(),
            scenario.steps.len(),
            verdict.attempts,
            verdict.placements,
            verdict.differences.len()
        );
        attempts += verdict.attempts;
        placements += verdict.placements;
        found.extend(verdict.differences);
    }
    let (open, found): (Vec<Difference>, Vec<Difference>) = found.into_iter().partition(is_open);
    let retries = open.iter().filter(|difference| difference.level == Level::Retries).count();
    println!("{attempts} attempts, {placements} placements");
    println!("known to differ: {retries} retries, {} scores", open.len() - retries);
    assert!(placements > 0, "nothing was compared");
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), found.join("\n"));
}

/// What is known to differ in long random runs and is counted, not judged (docs/testing.md): which waiting pods an event
/// makes be tried again, which cascades, and ImageLocality after an update that changes nothing else of a node. Nodes,
/// victims and words are always judged; the recorded scenarios judge everything.
fn is_open(difference: &Difference) -> bool {
    match difference.level {
        Level::Retries => true,
        Level::Scores => difference.real.starts_with("ImageLocality"),
        Level::Words | Level::Node | Level::Counts | Level::Input => false,
    }
}

/// The answers without what a race decides.
fn without_races(answers: &Answers) -> Answers {
    let mut answers = answers.clone();
    answers.iter_mut().flatten().for_each(|attempt| {
        attempt.events.clear();
        attempt.at = None;
    });
    answers
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_scenarios_played_again_are_answered_as_recorded() {
    let mut arena = Arena::start().await.expect("the control plane starts");
    let recorded = Recorded::all().expect("every family has a recording; a hermetic test says so");
    let scenarios = recorded.iter().flat_map(|(family, recording)| {
        family.scenarios.iter().map(move |scenario| (family, scenario, &recording.answers[&scenario.name]))
    });
    for (family, scenario, answers) in scenarios.step_by(REPLAYED) {
        let again = arena.play(scenario).await.expect("the real scheduler plays it");
        assert_eq!(without_races(&again), without_races(answers), "{}/{}", family.name, scenario.name);
    }
}

//! Our scheduler beside the real one, live: random pods on random clusters, and whether the recordings are still true.

#[path = "../differential/admission.rs"]
mod admission;
#[path = "../differential/compare.rs"]
mod compare;
#[path = "../differential/ours/mod.rs"]
mod ours;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sk_testkit::scheduling::attempt::{Attempt, Outcome, Scores};
use sk_testkit::scheduling::live::{Arena, Flags, PlayError};
use sk_testkit::scheduling::recorded::Answers;
use sk_testkit::scheduling::{Recorded, SchedulingScenario, generate};

use crate::compare::{Chance, Verdict, compare};

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

/// The folder in which real answers are kept, by seed: what is there is judged again and not played.
fn kept(seed: u64, pods: u64) -> Option<PathBuf> {
    let folder = std::env::var_os("DIFFERENTIAL_KEPT").filter(|folder| !folder.is_empty())?;
    Some(Path::new(&folder).join(format!("seed-{seed}-of-{pods}.json")))
}

/// The real scheduler's answers to a scenario: kept ones, or those that it gives now; and what kept it from giving all.
async fn answers(
    arena: &mut Option<Arena>,
    flags: Flags,
    scenario: &SchedulingScenario,
    kept: Option<&Path>,
) -> (Answers, Option<PlayError>) {
    if let Some(text) = kept.and_then(|path| std::fs::read(path).ok()) {
        return (serde_json::from_slice(&text).expect("what was kept can be read"), None);
    }
    let mut playing = match arena.take() {
        Some(arena) => arena,
        None => Arena::start(flags).await.expect("the control plane starts"),
    };
    let mut answers = Vec::new();
    let failed = playing.play_into(scenario, &mut answers).await.err();
    if failed.is_none() {
        *arena = Some(playing);
    }
    if let Some(path) = kept {
        let path = if failed.is_none() { path.to_owned() } else { path.with_extension("part.json") };
        let text = serde_json::to_vec(&answers).expect("answers are data");
        std::fs::write(path, text).expect("the folder of DIFFERENTIAL_KEPT can be written to");
    }
    (answers, failed)
}

/// Plays a random scenario per seed and compares every attempt. Where answers are kept, which only the default profile's are
/// under the deterministic flags, a seed can be judged again without the real scheduler.
async fn compare_seeds(flags: Flags, chance: Chance, scheduler: Value, seeds: impl Iterator<Item = u64>) {
    let pods = setting("DIFFERENTIAL_PODS", PODS);
    let keeps = flags == Flags::Deterministic && scheduler == json!({});
    let mut arena = None;
    let mut all = Verdict::default();
    let mut cut_short = Vec::new();
    for seed in seeds {
        let scenario = SchedulingScenario { scheduler: scheduler.clone(), ..generate::scenario(seed, pods as usize) };
        let place = kept(seed, pods).filter(|_| keeps);
        let (answers, failed) = answers(&mut arena, flags, &scenario, place.as_deref()).await;
        let Verdict { attempts, placements, raced, differences } = compare(&scenario, &answers, chance);
        println!(
            "{}: {} nodes, {} steps, {attempts} attempts, {placements} placements, {raced} of them while a node went, {} differences",
            scenario.name,
            scenario.nodes.len(),
            answers.len(),
            differences.len()
        );
        // Later seeds may take hours, or fail.
        differences.iter().for_each(|difference| println!("{difference}"));
        failed.iter().for_each(|error| println!("{}: {error}", scenario.name));
        cut_short.extend(failed.map(|error| error.to_string()));
        all.attempts += attempts;
        all.placements += placements;
        all.raced += raced;
        all.differences.extend(differences);
    }
    println!("{} attempts, {} placements", all.attempts, all.placements);
    assert!(all.placements > 0, "nothing was compared");
    assert!(all.differences.is_empty(), "{} differences; they stand above", all.differences.len());
    assert!(cut_short.is_empty(), "not played to their ends: {cut_short:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn random_pods_are_decided_as_the_real_scheduler_decides_them() {
    let first = setting("DIFFERENTIAL_FIRST", 0);
    let seeds = first..first + setting("DIFFERENTIAL_SEEDS", SEEDS);
    compare_seeds(Flags::Deterministic, Chance::Nothing, json!({}), seeds).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_profile_decides_random_pods_alike_too() {
    let strategy =
        json!({"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 3}, {"name": "memory", "weight": 1}]});
    let scores = json!([{"name": "ImageLocality", "weight": 5}, {"name": "NodeAffinity", "weight": 1}, {"name": "PodTopologySpread", "weight": 7}]);
    let packer = json!({
        "schedulerName": "default-scheduler",
        "plugins": {"multiPoint": {"enabled": scores}},
        "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}],
    });
    let scheduler = json!({"percentageOfNodesToScore": 100, "profiles": [packer]});
    // The one with more than a hundred nodes, where the percentage has a say, and one with priorities.
    compare_seeds(Flags::Deterministic, Chance::Nothing, scheduler, [3, 5].into_iter()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn under_default_flags_the_real_scheduler_takes_one_of_the_best_nodes() {
    // One seed in four draws more than a hundred nodes, of which the real scheduler then looks at different ones each time.
    let seeds = (0..setting("DIFFERENTIAL_SEEDS", SEEDS)).filter(|seed| generate::scenario(*seed, 0).nodes.len() < 100);
    compare_seeds(Flags::Default, Chance::Order, json!({}), seeds).await;
}

/// What an attempt came to: the pod, what had been learnt before it, the outcome, the scores.
type Answered<'a> = (&'a str, &'a [String], &'a Outcome, &'a Option<Scores>);

/// Attempts without what says when they were.
fn timeless<'a>(answers: &'a [Vec<Attempt>]) -> Vec<Vec<Answered<'a>>> {
    let answered = |attempt: &'a Attempt| {
        let Attempt { pod, events, at: _, outcome, scores } = attempt;
        (pod.as_str(), events.as_slice(), outcome, scores)
    };
    answers.iter().map(|attempts| attempts.iter().map(answered).collect()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_scenarios_played_again_are_answered_as_recorded() {
    let mut arena = Arena::start(Flags::Deterministic).await.expect("the control plane starts");
    let recorded = Recorded::all().expect("every family has a recording; a hermetic test says so");
    let scenarios = recorded.iter().flat_map(|(family, recording)| {
        family.scenarios.iter().map(move |scenario| (family, scenario, &recording.answers[&scenario.name]))
    });
    for (family, scenario, answers) in scenarios.step_by(REPLAYED) {
        let again = arena.play(scenario).await.expect("the real scheduler plays it");
        assert_eq!(timeless(&again), timeless(answers), "{}/{}", family.name, scenario.name);
    }
}

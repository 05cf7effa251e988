//! Our scheduler beside the real one, live: random pods on random clusters, and whether the recordings are still true.

#[path = "../differential/admission.rs"]
mod admission;
#[path = "../differential/compare.rs"]
mod compare;
#[path = "../differential/ours/mod.rs"]
mod ours;

use sk_testkit::scheduling::answer::{Attempt, Outcome, Raced, Scores};
use sk_testkit::scheduling::live::Arena;
use sk_testkit::scheduling::{Recorded, SchedulingScenario, generate};

use crate::compare::{Verdict, compare};

/// One in so many recorded scenarios is played again: enough to notice another scheduler, in under a minute.
const REPLAYED: usize = 12;
/// A scenario that races spoil is played so often at most. A race is the busy machine's doing, not the scheduler's: another
/// time there is none.
const PLAYS: usize = 4;
/// What `make e2e` compares; `make differential` sets the variables to more.
const SEEDS: u64 = 4;
const PODS: u64 = 250;
/// At most one attempt in so many may differ where the log cannot tell what the real scheduler knew. What differs anywhere
/// else fails the test however often the scenario is played.
const RACED_PER_ATTEMPTS: usize = 100;

/// A number from the environment.
fn setting(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok().filter(|text| !text.is_empty());
    text.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

#[tokio::test(flavor = "multi_thread")]
async fn random_pods_are_decided_as_the_real_scheduler_decides_them() {
    let (seeds, pods) = (setting("DIFFERENTIAL_SEEDS", SEEDS), setting("DIFFERENTIAL_PODS", PODS));
    let mut arena = Arena::start().await.expect("the control plane starts");
    let mut all = Verdict::default();
    for seed in 0..seeds {
        let scenario = generate::scenario(seed, pods as usize);
        let verdict = played(&mut arena, &scenario).await;
        all.attempts += verdict.attempts;
        all.placements += verdict.placements;
        all.differences.extend(verdict.differences);
        all.raced.extend(verdict.raced);
    }
    println!("{} attempts, {} placements", all.attempts, all.placements);
    assert!(all.placements > 0, "nothing was compared");
    let found: Vec<String> = all.differences.iter().map(ToString::to_string).collect();
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), found.join("\n"));
    let raced: Vec<String> = all.raced.iter().map(ToString::to_string).collect();
    let bound = all.attempts / RACED_PER_ATTEMPTS;
    assert!(
        raced.len() <= bound,
        "{} differences, more than {bound}, may be races:\n{}",
        raced.len(),
        raced.join("\n")
    );
}

/// The comparison of the play with the fewest races, which is the first one on a quiet machine. Differences that no race
/// explains end the playing. A play whose log could not be followed to its end compares nothing and is played again.
async fn played(arena: &mut Arena, scenario: &SchedulingScenario) -> Verdict {
    let mut best: Option<Verdict> = None;
    for play in 1..=PLAYS {
        let answers = match arena.play(scenario).await {
            Ok(answers) => answers,
            Err(error) if play < PLAYS => {
                println!("{}, play {play}: {error}", scenario.name);
                continue;
            }
            Err(error) => panic!("{} cannot be played: {error}", scenario.name),
        };
        let verdict = compare(scenario, &answers);
        println!(
            "{}, play {play}: {} nodes, {} steps, {} attempts, {} placements, {} differences, {} raced",
            scenario.name,
            scenario.nodes.len(),
            scenario.steps.len(),
            verdict.attempts,
            verdict.placements,
            verdict.differences.len(),
            verdict.raced.len()
        );
        let is_settled =
            !verdict.differences.is_empty() || verdict.raced.len() <= verdict.attempts / RACED_PER_ATTEMPTS;
        if is_settled || best.as_ref().is_none_or(|best| verdict.raced.len() < best.raced.len()) {
            best = Some(verdict);
        }
        if is_settled {
            break;
        }
    }
    best.expect("a scenario is played at least once")
}

/// What an attempt came to: the pod, the outcome, the scores.
type Answered<'a> = (&'a str, &'a Outcome, &'a Option<Scores>);

/// The steps up to the first that a race decides, without what says when it was.
fn before_races<'a>(answers: &'a [Vec<Attempt>], played: &[Vec<Attempt>]) -> Vec<Vec<Answered<'a>>> {
    let races = |attempts: &Vec<Attempt>| attempts.iter().any(|attempt| attempt.raced != Raced::default());
    let steps = played.iter().position(races).unwrap_or(played.len());
    let answered = |attempt: &'a Attempt| (attempt.pod.as_str(), &attempt.outcome, &attempt.scores);
    answers[..steps].iter().map(|attempts| attempts.iter().map(answered).collect()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_scenarios_played_again_are_answered_as_recorded() {
    let mut arena = Arena::start().await.expect("the control plane starts");
    let recorded = Recorded::all().expect("every family has a recording; a hermetic test says so");
    let scenarios = recorded.iter().flat_map(|(family, recording)| {
        family.scenarios.iter().map(move |scenario| (family, scenario, &recording.answers[&scenario.name]))
    });
    let (mut whole, mut cut_short) = (0, Vec::new());
    for (family, scenario, answers) in scenarios.step_by(REPLAYED) {
        let mut is_whole = false;
        for _ in 0..PLAYS {
            let again = arena.play(scenario).await.expect("the real scheduler plays it");
            let (compared, expected) = (before_races(&again, &again), before_races(answers, &again));
            assert_eq!(compared, expected, "{}/{}", family.name, scenario.name);
            is_whole = compared.len() == again.len();
            if is_whole {
                break;
            }
        }
        if is_whole {
            whole += 1;
        } else {
            cut_short.push(&scenario.name);
        }
    }
    println!("{whole} scenarios as recorded; up to a race: {cut_short:?}");
    assert!(whole > 3 * cut_short.len(), "races cut short one in four: {cut_short:?}");
}

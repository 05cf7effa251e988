//! Does the real control plane do today what the fixtures say it did? Scenarios are recorded again and compared: some in
//! CI, all with `LIVE=all` (`make live`).

use std::collections::VecDeque;
use std::sync::Mutex;

use futures::future::join_all;
use sk_testkit::recorder::Recorder;
use sk_testkit::{Fixture, Scenario, states};

/// Clusters at the same time: one per core of the smallest machine that the suite is meant for.
const AT_ONCE: usize = 2;
/// Every so-manieth scenario is played in CI: about five minutes' worth.
const SAMPLE: usize = 4;

/// What differs between a scenario's fixture and a new recording of it.
async fn differences(recorder: &mut Recorder, scenario: &Scenario) -> Vec<String> {
    let again = match recorder.record(scenario).await {
        Ok(again) => again,
        Err(error) => return vec![format!("{}: {error}", scenario.name)],
    };
    let before = Fixture::named(&scenario.name).expect("every scenario has a fixture; a hermetic test says so");
    let differences = before.comparable(&scenario.incomparable).differences(&again.comparable(&scenario.incomparable));
    let mut told: Vec<_> = differences.into_iter().map(|one| format!("{}: {one}", scenario.name)).collect();
    if before.refusals != again.refusals {
        told.push(format!("{}: refused {:?} and now {:?}", scenario.name, before.refusals, again.refusals));
    }
    told
}

fn wanted() -> VecDeque<Scenario> {
    let all = Scenario::all().unwrap_or_else(|error| panic!("{error}"));
    let every = if std::env::var("LIVE").is_ok_and(|live| live == "all") { 1 } else { SAMPLE };
    all.into_iter().filter(states::is_recorded).step_by(every).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn scenarios_recorded_again_end_as_their_fixtures_say() {
    let scenarios = Mutex::new(wanted());
    let next = || scenarios.lock().expect("nobody panics with the list in hand").pop_front();
    assert!(!scenarios.lock().expect("the same").is_empty());
    let play = |_| async {
        let (mut recorder, mut found) = (Recorder::default(), Vec::new());
        while let Some(scenario) = next() {
            found.extend(differences(&mut recorder, &scenario).await);
        }
        found
    };
    let found: Vec<String> = join_all((0..AT_ONCE).map(play)).await.into_iter().flatten().collect();
    assert!(found.is_empty(), "not comparable, though no scenario says so under `incomparable`:\n{}", found.join("\n"));
}

//! Does the real control plane do today what the fixtures say it did? Every scenario is recorded again and compared.

use futures::{StreamExt, stream};
use sk_testkit::recorder::record;
use sk_testkit::{Fixture, Scenario};

/// Recordings at the same time: one per core of the smallest machine that the suite is meant for.
const AT_ONCE: usize = 2;

/// What differs between a scenario's fixture and a new recording of it.
async fn differences(scenario: Scenario) -> Vec<String> {
    let again = match record(&scenario).await {
        Ok(again) => again,
        Err(error) => return vec![format!("{}: {error}", scenario.name)],
    };
    let before = Fixture::named(&scenario.name).expect("every scenario has a fixture; a hermetic test says so");
    let differences = before.comparable(&scenario.incomparable).differences(&again.comparable(&scenario.incomparable));
    differences.into_iter().map(|difference| format!("{}: {difference}", scenario.name)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_scenario_recorded_again_ends_as_its_fixture_says() {
    let scenarios = Scenario::all().unwrap();
    assert!(!scenarios.is_empty());
    let found: Vec<String> =
        stream::iter(scenarios).map(differences).buffer_unordered(AT_ONCE).flat_map(stream::iter).collect().await;
    assert!(found.is_empty(), "not comparable, though no scenario says so under `incomparable`:\n{}", found.join("\n"));
}

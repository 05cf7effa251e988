//! The scenarios that users are shown are read as they stand there.

use std::fs;
use std::path::Path;

use sk_api::Scenario;

/// Everything between ` ```yaml ` and ` ``` ` in the user's page.
fn samples() -> Vec<(String, String)> {
    let page = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scenario.md"));
    let page = fs::read_to_string(page).expect("docs/scenario.md is there");
    let mut samples = Vec::new();
    for (number, part) in page.split("\n```yaml\n").skip(1).enumerate() {
        let sample = part.split("\n```").next().unwrap_or_default();
        samples.push((format!("sample {}", number + 1), sample.to_owned()));
    }
    samples
}

#[test]
fn the_samples_of_the_documentation_are_scenarios() {
    let scenarios: Vec<_> = samples()
        .iter()
        .map(|(name, text)| Scenario::parse(name, text).unwrap_or_else(|error| panic!("{error}")))
        .collect();
    assert_eq!(scenarios.len(), 4, "the smallest, everything, a scheduler, a timeline");
}

#[test]
fn the_first_example_is_the_smallest_scenario_with_a_name() {
    let example = include_str!("../../../../examples/nginx.yaml");
    let example = Scenario::parse("nginx.yaml", example).unwrap();
    let mut smallest = Scenario::parse("smallest.yaml", crate::cases::SMALLEST).unwrap();
    smallest.name = Some("nginx".into());
    assert_eq!(example, smallest);
}

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
    let [carried_out @ .., not_yet] = scenarios.as_slice() else { panic!("there are samples") };
    assert_eq!(carried_out.len(), 3, "the smallest, everything that is carried out, a scheduler");
    for scenario in carried_out {
        assert_eq!(scenario.unsupported(), []);
    }
    assert!(!not_yet.unsupported().is_empty(), "it belongs to what is carried out");
}

#[test]
fn the_documentation_names_what_is_not_carried_out() {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scenario.md")).unwrap();
    let (_, table) = page.split_once("## What is read but not carried out yet").unwrap();
    for (name, text) in samples() {
        for asked in Scenario::parse(&name, &text).unwrap().unsupported() {
            let path = asked.path.to_string();
            let field = path.rsplit('.').next().unwrap_or(&path);
            assert!(table.contains(&format!("`{field}")) || table.contains(&format!(".{field}")), "{path} is not told");
        }
    }
}

#[test]
fn the_first_example_is_the_smallest_scenario_with_a_name() {
    let example = include_str!("../../../../examples/nginx.yaml");
    let example = Scenario::parse("nginx.yaml", example).unwrap();
    let mut smallest = Scenario::parse("smallest.yaml", crate::cases::SMALLEST).unwrap();
    smallest.name = Some("nginx".into());
    assert_eq!(example, smallest);
}

//! Are the recorded answers whole, and answers of the Kubernetes that the project is pinned to?

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;
use sk_testkit::scenario::Action;
use sk_testkit::{Fixture, OracleFixture, Scenario, Versions, fixture, states};

const ORACLES: [&str; 4] = ["quantity", "cron", "smp", "victims"];

/// Every file in `fixtures/` itself: its name and its content. The scheduler's have a folder and a test of their own.
fn all_fixtures() -> Vec<(String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let entries = fs::read_dir(folder).expect("there are fixtures").flatten();
    entries
        .filter(|entry| entry.path().is_file())
        .map(|entry| {
            let text = fs::read_to_string(entry.path()).expect("a fixture is text");
            let name = entry.path().file_stem().expect("a fixture has a name").to_string_lossy().into_owned();
            (name, serde_json::from_str(&text).expect("a fixture is JSON"))
        })
        .collect()
}

#[test]
fn every_fixture_was_recorded_with_the_pinned_kubernetes() {
    let pinned = format!("v{}", Versions::pinned().kubernetes);
    for (name, fixture) in all_fixtures() {
        assert_eq!(
            fixture["kubernetes"], pinned,
            "{name}.json is of another version than tools/control-plane/go.mod: run `make record-fixtures`"
        );
        let recorded = fixture["recorded"].as_str().unwrap();
        assert!(recorded.parse::<jiff::civil::Date>().is_ok(), "{name}.json says no day but {recorded}");
    }
}

/// The scenarios that have been recorded.
fn recorded() -> Vec<Scenario> {
    Scenario::all().expect("every scenario can be read").into_iter().filter(states::is_recorded).collect()
}

/// What is done in a scenario. What is said of it, and what of it is compared, changes no recording.
fn done(scenario: &Value) -> Value {
    let mut done = scenario.clone();
    done.as_object_mut()
        .expect("a scenario is an object")
        .retain(|name, _| !["about", "incomparable"].contains(&&**name));
    done
}

#[test]
fn every_fixture_is_of_its_scenario_as_it_is_now() {
    for scenario in recorded() {
        let fixture = Fixture::named(&scenario.name).unwrap();
        let advice = "run `make record-fixtures`";
        assert_eq!(
            done(&fixture.scenario),
            done(&scenario.source),
            "{} has changed since it was recorded: {advice}",
            scenario.name
        );
        assert!(!fixture.objects.is_empty(), "{} has seen nothing", scenario.name);
    }
}

#[test]
fn every_fixture_belongs_to_a_scenario_an_oracle_or_a_test() {
    let scenarios = recorded().into_iter().map(|scenario| scenario.name);
    let others =
        ORACLES.map(|oracle| format!("oracle-{oracle}")).into_iter().chain(["discovery", "openapi"].map(str::to_owned));
    let known: BTreeSet<_> = scenarios.chain(others).collect();
    let found: BTreeSet<_> = all_fixtures().into_iter().map(|(name, _)| name).collect();
    assert_eq!(found, known);
}

#[test]
fn every_oracle_has_answered_all_its_questions() {
    for oracle in ORACLES {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("oracle").join(oracle).with_extension("jsonl");
        let questions = fs::read_to_string(path).unwrap();
        let fixture = OracleFixture::<Value>::named(oracle).unwrap();
        assert_eq!(fixture.cases.len(), questions.lines().count(), "run `make record-fixtures`");
        for (line, case) in questions.lines().zip(&fixture.cases) {
            let question: Value = serde_json::from_str(line).unwrap();
            let answers_it = match &question {
                Value::Object(fields) => fields.iter().all(|(key, value)| &case[key] == value),
                list @ Value::Array(_) => &case["pods"] == list,
                text => &case["input"] == text,
            };
            assert!(answers_it, "{oracle}: {line} was answered by {case}; run `make record-fixtures`");
        }
    }
}

#[test]
fn no_fixture_holds_what_a_cluster_makes_up() {
    for scenario in recorded() {
        let text = fs::read_to_string(fixture::path_of(&scenario.name)).unwrap();
        // What the scenario itself says was not made up by a cluster.
        let mut fixture: Value = serde_json::from_str(&text).unwrap();
        fixture["scenario"].take();
        let text = fixture.to_string();
        for made_up in ["\"uid\"", "resourceVersion", "managedFields", "creationTimestamp", "generateName"] {
            assert!(!text.contains(made_up), "{} holds {made_up}", scenario.name);
        }
        // The day of the recording is the only date.
        let this_year = format!("\"{}-", &Fixture::named(&scenario.name).unwrap().recorded[..4]);
        assert_eq!(text.matches(&this_year).count(), 1, "{} holds times", scenario.name);
    }
}

#[test]
fn the_placement_fixtures_tell_each_nodes_room_and_each_pods_node() {
    for name in ["placement", "placement-zones"] {
        let (fixture, scenario) = (Fixture::named(name).unwrap(), Scenario::named(name).unwrap());
        for node in &scenario.nodes {
            let state = fixture.object(&format!("Node/{}", node.name)).unwrap().last_state();
            assert_eq!(state["status"]["allocatable"]["cpu"], node.cpu.0, "{name} {}", node.name);
        }
        let Action::Create(pods) = &scenario.steps[0].action else { panic!("{name} begins with pods") };
        assert!(pods.len() >= 30);
        for pod in pods {
            let pod = pod["metadata"]["name"].as_str().unwrap();
            let state = fixture.object(&format!("default/Pod/{pod}")).unwrap().last_state();
            let node = state["spec"]["nodeName"].as_str().unwrap();
            assert!(scenario.nodes.iter().any(|known| known.name == node), "{name}: {pod} is on {node}");
        }
    }
}

/// Counts that are not compared turn by turn, with the reason that their scenario gives.
fn chance(scenarios: &[&Scenario]) -> String {
    let mut text =
        "\nCounts that take other turns by chance (of `turns` first, largest and last are still compared):\n\n\
        | scenario | of | count | because |\n|---|---|---|---|\n"
            .to_owned();
    for scenario in scenarios {
        let mut why = "";
        for one in &scenario.incomparable {
            why = if one.why == "the same" { why } else { &one.why };
            if let Some(count) = one.field.strip_prefix("/counts") {
                let count = if count.is_empty() { "all" } else { count.trim_start_matches('/') };
                text.push_str(&format!("| {} | {} | {count} | {why} |\n", scenario.name, one.of.kind));
            }
        }
    }
    text
}

/// What of docs/fidelity.md is made from the scenarios: which there are, and what is left out of the comparison.
fn compared() -> String {
    let scenarios = states::scenarios().expect("every scenario can be read");
    let (compared, awaiting): (Vec<_>, Vec<_>) = scenarios.iter().partition(|scenario| states::is_recorded(scenario));
    let table = |scenarios: &[&Scenario]| {
        let row = |scenario: &&Scenario| format!("| {} | {} |\n", scenario.name, scenario.about.trim());
        format!("| scenario | what happens |\n|---|---|\n{}", scenarios.iter().map(row).collect::<String>())
    };
    let mut text = format!("{} scenarios, each equal in both arms:\n\n{}", compared.len(), table(&compared));
    text.push_str(&chance(&compared));
    if !awaiting.is_empty() {
        let count = awaiting.len();
        let told =
            "come to what they wait for on the engine and have not been recorded from the real control plane yet";
        text.push_str(&format!("\n{count} more {told} (`make record-fixtures`):\n\n{}", table(&awaiting)));
    }
    text.push_str("\nLeft out of the comparison:\n\n| of | field | because it |\n|---|---|---|\n");
    for (kind, field, why) in states::LEFT_OUT {
        let kind = if *kind == "*" { "every kind" } else { kind };
        text.push_str(&format!("| {kind} | `{}` | {why} |\n", field.replace("~1", "/")));
    }
    text.push_str("\nEvents that are not compared:\n\n| reason | because it |\n|---|---|\n");
    states::UNSAID.iter().for_each(|(reason, why)| text.push_str(&format!("| {reason} | {why} |\n")));
    text
}

#[test]
fn the_page_on_fidelity_lists_the_scenarios_that_there_are_and_what_is_not_compared() {
    const BEGIN: &str = "<!-- made from the scenarios by `make docs` -->\n";
    const END: &str = "<!-- end -->\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/fidelity.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page has a place for the scenarios");
    let (_, after) = rest.split_once(END).expect("the place for the scenarios ends");
    let generated = format!("{before}{BEGIN}{}{END}{after}", compared());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &generated).unwrap();
    }
    let page = fs::read_to_string(&path).unwrap();
    assert!(page == generated, "docs/fidelity.md is out of date: `make docs` writes it");
}

//! Does our scheduler decide as the real one did? Every recorded scenario, attempt by attempt: words, scores, nodes.
//!
//! Hermetic: the real answers are in `fixtures/scheduler`. `differential_live` asks the real scheduler itself.

mod admission;
mod compare;
mod ours;
mod self_play;

use serde::Deserialize;
use sk_core::SimTime;
use sk_core::sort::sort_slice;
use sk_scheduler::Importance;
use sk_testkit::fixture::OracleFixture;
use sk_testkit::scheduling::recorded::Answers;
use sk_testkit::scheduling::{Recorded, generate};

use crate::compare::{Chance, Verdict, compare};

#[test]
fn our_scheduler_decides_every_recorded_scenario_as_the_real_one_did() {
    let mut all = Verdict::default();
    let mut scenarios = 0;
    for (family, recording) in Recorded::all().expect("every family has a recording; a test of its own says so") {
        for mut scenario in family.scenarios {
            let answers = &recording.answers[&scenario.name];
            scenario.name = format!("{}/{}", family.name, scenario.name);
            let verdict = compare(&scenario, answers, Chance::Nothing);
            scenarios += 1;
            all.attempts += verdict.attempts;
            all.placements += verdict.placements;
            all.differences.extend(verdict.differences);
        }
    }
    println!("{scenarios} scenarios, {} attempts, {} placements", all.attempts, all.placements);
    let found: Vec<String> = all.differences.iter().map(ToString::to_string).collect();
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), found.join("\n"));
}

#[test]
#[ignore = "judges again what live comparisons have kept in the folder DIFFERENTIAL_KEPT"]
fn kept_answers_are_judged_again() {
    let folder = std::env::var("DIFFERENTIAL_KEPT").expect("DIFFERENTIAL_KEPT names a folder");
    let mut found = 0;
    for file in std::fs::read_dir(&folder).expect("the folder can be read") {
        let path = file.expect("it can be read").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let numbers: Vec<u64> = name.split(['-', '.']).filter_map(|part| part.parse().ok()).collect();
        let [seed, pods] = numbers[..] else { panic!("{name} is not called as live comparisons call what they keep") };
        let answers: Answers = serde_json::from_slice(&std::fs::read(&path).expect("it can be read")).expect(name);
        let verdict = compare(&generate::scenario(seed, pods as usize), &answers, Chance::Nothing);
        println!("{name}: {} attempts, {} differences", verdict.attempts, verdict.differences.len());
        verdict.differences.iter().for_each(|difference| println!("{difference}"));
        found += verdict.differences.len();
    }
    assert_eq!(found, 0, "differences; they stand above");
}

#[derive(Deserialize)]
struct Victim {
    priority: i32,
    started: Option<i64>,
}

#[derive(Deserialize)]
struct Victims {
    pods: Vec<Victim>,
    order: Vec<usize>,
}

#[test]
fn victims_are_sorted_as_kubernetes_sorts_them_also_where_its_comparison_is_no_order() {
    let fixture = OracleFixture::<Victims>::named("victims").expect("the fixture is part of the repository");
    assert!(fixture.cases.len() >= 100);
    for Victims { pods, order } in &fixture.cases {
        let importance = |place: usize| Importance {
            priority: pods[place].priority,
            started: pods[place].started.map(SimTime::from_secs),
        };
        let mut found: Vec<usize> = (0..pods.len()).collect();
        sort_slice(&mut found, |one, other| importance(*one).is_greater_than(importance(*other)));
        assert_eq!(found, *order, "{} pods", pods.len());
    }
}

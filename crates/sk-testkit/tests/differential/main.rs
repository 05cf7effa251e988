//! Does our scheduler decide as the real one did? Every recorded scenario, attempt by attempt: words, scores, nodes.
//!
//! Hermetic: the real answers are in `fixtures/scheduler`. `differential_live` asks the real scheduler itself.

mod admission;
mod compare;
mod ours;
mod self_play;

use sk_testkit::scheduling::Recorded;

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

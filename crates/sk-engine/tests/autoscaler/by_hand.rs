//! For looking at recordings by hand: none of these is a test, and all are ignored.

use sk_core::SimTime;
use sk_engine::api::WatchEvent;
use sk_engine::kinds::Node;
use sk_engine::{Autoscaler, Rule};
use sk_testkit::autoscaling::{self, Observation};

use crate::allowed::{self, Allowed};
use crate::player::{Played, Rig};
use crate::{Comparison, SEED, as_it_is, compare, compare::differences, outcome, player, rules};

/// A number that the environment has, or another.
fn number(name: &str, otherwise: i64) -> i64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// The scenarios whose names begin as `SCENARIO` says.
fn wanted() -> impl Iterator<Item = Observation> {
    let wanted = std::env::var("SCENARIO").unwrap_or_default();
    autoscaling::all().into_iter().filter(move |seen| seen.scenario.starts_with(&wanted))
}

/// Prints in which recordings each rule shows, or one of them:
/// `RULE=DrainFails cargo test ... where_rules_show -- --ignored --nocapture`.
#[test]
#[ignore = "for finding a scenario by hand"]
fn where_rules_show() {
    let all = autoscaling::all();
    let before: Vec<Comparison> = all.iter().map(|seen| compare(seen, as_it_is, 0)).collect();
    let shown = |change: &dyn Fn(&mut Autoscaler)| -> Vec<&str> {
        let differs = |(seen, before): &(&Observation, &Comparison)| compare(seen, change, 0) != **before;
        all.iter().zip(&before).filter(differs).map(|(seen, _)| seen.scenario.as_str()).collect()
    };
    let wanted = std::env::var("RULE").ok();
    let is_wanted = |rule: &Rule| wanted.as_ref().is_none_or(|wanted| *wanted == format!("{rule:?}"));
    for rule in Rule::ALL.iter().copied().filter(is_wanted) {
        println!("{rule:?}: {:?}", shown(&|flags| flags.without = Some(rule)));
    }
    for (flag, _, change) in rules::BY_FLAG.iter().filter(|_| wanted.is_none()) {
        println!("--{flag}: {:?}", shown(&change));
    }
}

/// Prints all that happened in a scenario: `SCENARIO=c9 SEED=3 LATENCY=10 cargo test ... what_happened -- --ignored
/// --nocapture`.
#[test]
#[ignore = "for looking at scenarios by hand"]
fn what_happened() {
    let usual = Rig::default();
    let (phase_ms, ready_ms) = (number("PHASE", usual.phase_ms), number("READY", usual.ready_ms));
    let rig = Rig { phase_ms, ready_ms, latency_ms: number("LATENCY", usual.latency_ms), ..races() };
    let seed = number("SEED", 1).unsigned_abs();
    for seen in wanted() {
        let mut lines = lines(player::play(&seen, seed, rig, |_| {}));
        lines.sort_by(|one, other| one.0.total_cmp(&other.0));
        lines.iter().for_each(|(at, line)| println!("{at:9.3} {line}"));
        let run = outcome::of(player::play(&seen, seed, rig, |_| {}));
        let allowed = allowed::of(&seen.scenario).unwrap_or_default();
        println!("{} {seed} {rig:?}: {:?}", seen.scenario, differences(&seen, &run, &allowed));
    }
}

/// What the informers of the rig did.
fn races() -> Rig {
    let (race_ms, steps) = (number("RACE", 0), number("STEPS", 0).unsigned_abs());
    let unseen_nodes = number("UNSEEN", 0) as usize;
    Rig { race_ms, unseen_nodes, steps, ..Rig::default() }
}

/// When, and what: changes, events and decisions.
fn lines(mut played: Played) -> Vec<(f64, String)> {
    let at = |at: SimTime| at.since(played.zero).as_secs_f64();
    let changes = played.engine.watch(0).expect("a recording's changes stay within the log");
    let mut lines: Vec<(f64, String)> = changes.map(|event| (at(event.at), change(event))).collect();
    for event in played.engine.take_events() {
        lines.push((at(event.at), format!("{} {} {}", event.reason, event.about, event.message)));
    }
    for decision in played.engine.take_decisions() {
        let verdict = format!("loop {} {:?}: {:?}", decision.loop_number, decision.trigger, decision.verdict);
        lines.push((at(decision.at), verdict));
    }
    lines
}

fn change(event: &WatchEvent) -> String {
    let object = &event.object;
    let taints = object.node().map(|node| node.spec.taints.iter().map(|taint| taint.key.clone()).collect::<Vec<_>>());
    let (ready, on) = (object.node().map(Node::is_ready), object.pod().and_then(|pod| pod.node_name.clone()));
    format!("{:?} {} {} {taints:?} {ready:?} {on:?}", event.change, object.gvk.kind, object.key)
}

/// Searches seeds with which a scenario comes out as it was seen to its end, with nothing allowed but lots that are drawn:
/// `SCENARIO=k1 SEEDS=100 READY=500 cargo test ... which_seeds -- --ignored --nocapture`.
#[test]
#[ignore = "for finding a seed by hand"]
fn which_seeds() {
    let latency_ms = number("LATENCY", Rig::default().latency_ms);
    let rig = Rig { ready_ms: number("READY", 0), phase_ms: number("PHASE", 0), latency_ms, ..races() };
    for mut seen in wanted() {
        // A search by its beginning is quicker.
        seen.ended = number("ENDED", seen.ended as i64) as f64;
        let first = number("SEED", SEED as i64).unsigned_abs();
        for seed in first..first + number("SEEDS", 20).unsigned_abs() {
            let run = outcome::of(player::play(&seen, seed, rig, |_| {}));
            let until = number("UNTIL", 0);
            let allowed = if until > 0 { Allowed::default().until(until as f64) } else { Allowed::default() };
            let left = differences(&seen, &run, &allowed);
            if left.len() < number("MOST", 3) as usize {
                println!("{} seed {seed}: {left:?}", seen.scenario);
            }
        }
    }
}

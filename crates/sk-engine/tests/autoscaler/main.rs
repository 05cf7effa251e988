//! The model of the cluster autoscaler does what the real one was seen to do: every recording is played in virtual time and
//! compared.

mod allowed;
mod compare;
mod flags;
mod objects;
mod one_flag;
mod outcome;
mod picture;
mod player;
mod rules;
mod small;
mod swarm;
mod unrecorded;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use allowed::Allowed;
use player::Rig;
use rules::shows_in;
use sk_engine::{Autoscaler, Rule};
use sk_testkit::autoscaling::{self, Observation};

/// The seed of all runs. Where the real one drew lots, `allowed` says what else could have come.
const SEED: u64 = 1;

/// How a scenario compares.
#[derive(Clone, Debug, PartialEq)]
enum Comparison {
    /// As closely as can be.
    Tight,
    /// Within a scan interval.
    Equal,
    /// But for what was chance, or the rig; and with that set aside closely or not.
    Allowed(&'static str, bool),
    Different(Vec<String>),
}

/// Compares a scenario, with the flags changed: a rule of the model left out, or nothing. `patience`: how many other seeds are
/// tried if the listed one does not give what was seen.
fn compare(seen: &Observation, change: impl Fn(&mut Autoscaler), patience: u64) -> Comparison {
    let play = |seed, rig| outcome::of(player::play(seen, seed, rig, &change));
    let run = play(SEED, Rig::default());
    if compare::differences(seen, &run, &Allowed::default().tightly()).is_empty() {
        return Comparison::Tight;
    }
    let first = compare::differences(seen, &run, &Allowed::default());
    if first.is_empty() {
        return Comparison::Equal;
    }
    let Some(allowed) = allowed::of(&seen.scenario) else { return Comparison::Different(first) };
    let listed = allowed.seed.max(SEED);
    let run = play(listed, allowed.rig);
    let left = compare::differences(seen, &run, &allowed);
    if left.is_empty() {
        let is_tight = compare::differences(seen, &run, &allowed.tightly()).is_empty();
        return Comparison::Allowed(allowed.why, is_tight);
    }
    let fits = |seed: &u64| compare::differences(seen, &play(*seed, allowed.rig), &allowed).is_empty();
    match (SEED..SEED + patience).find(fits) {
        Some(seed) => Comparison::Different(vec![format!("seed {seed} gives what was seen, not {listed}: list it")]),
        None => Comparison::Different(left),
    }
}

/// Nothing is left out.
fn as_it_is(_: &mut Autoscaler) {}

#[test]
fn leaving_out_any_one_rule_makes_a_recording_come_out_otherwise() {
    let all = autoscaling::all();
    let find = |name: &str| all.iter().find(|seen| seen.scenario == name).expect("the scenario is there");
    let mut unnoticed = Vec::new();
    for rule in Rule::ALL {
        let seen = find(shows_in(rule));
        if compare(seen, |flags| flags.without = Some(rule), 0) == compare(seen, as_it_is, 0) {
            unnoticed.push(format!("{rule:?}"));
        }
    }
    for (flag, scenario, change) in rules::BY_FLAG {
        let seen = find(scenario);
        if compare(seen, change, 0) == compare(seen, as_it_is, 0) {
            unnoticed.push(format!("--{flag}"));
        }
    }
    assert!(unnoticed.is_empty(), "nobody would notice if these rules did not hold: {unnoticed:?}");
}

#[test]
fn every_flag_of_the_recordings_is_a_rule_that_some_recording_shows() {
    let used: BTreeSet<String> = autoscaling::all().into_iter().flat_map(|seen| seen.flags.into_keys()).collect();
    let missing: Vec<_> = used
        .iter()
        .filter(|flag| !flags::IGNORED.iter().chain(&rules::NOT_SHOWN).any(|known| known == flag))
        .filter(|flag| !rules::BY_FLAG.iter().any(|(known, ..)| known == flag))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Prints in which recordings each rule shows: `cargo test ... where_rules_show -- --ignored --nocapture`.
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
    for rule in Rule::ALL.into_iter().filter(|rule| wanted.as_ref().is_none_or(|wanted| *wanted == format!("{rule:?}")))
    {
        println!("{rule:?}: {:?}", shown(&|flags| flags.without = Some(rule)));
    }
    for (flag, _, change) in rules::BY_FLAG.iter().filter(|_| wanted.is_none()) {
        println!("--{flag}: {:?}", shown(&change));
    }
}

#[test]
fn every_recording_comes_out_as_the_lists_say() {
    let (mut wrong, mut rows) = (String::new(), String::new());
    let mut counts = [0; 3];
    for seen in autoscaling::all() {
        let known = allowed::DIFFERENT.iter().find(|(name, ..)| *name == seen.scenario);
        if let Some((_, until, _)) = known {
            let run = outcome::of(player::play(&seen, SEED, Rig::default(), |_| {}));
            let before = compare::differences(&seen, &run, &Allowed::default().until(*until));
            assert!(before.is_empty(), "{} differs before {until} s: {before:?}", seen.scenario);
        }
        let (place, verdict, more) = match compare(&seen, as_it_is, 200) {
            Comparison::Tight | Comparison::Equal => (0, "equal", String::new()),
            Comparison::Allowed(why, _) => (1, "allowed", why.to_owned()),
            Comparison::Different(left) => (2, "different", left.join("; ")),
        };
        counts[place] += 1;
        println!("{:48} {verdict} {more}", seen.scenario);
        match (known, place) {
            (Some(_), 0 | 1) => writeln!(wrong, "{} is listed as different, but is not", seen.scenario),
            (None, 2) => writeln!(wrong, "{} differs: {more}", seen.scenario),
            (None, 0) if allowed::of(&seen.scenario).is_some() => {
                writeln!(wrong, "{} is equal: nothing needs to be allowed", seen.scenario)
            }
            _ => Ok(()),
        }
        .expect("a text grows");
        let more = known.map_or(more, |(_, until, why)| format!("equal until {until} s; then {why}"));
        writeln!(rows, "| {} | {verdict} | {more} |", seen.scenario).expect("a text grows");
    }
    println!("{} equal, {} allowed, {} different", counts[0], counts[1], counts[2]);
    assert!(wrong.is_empty(), "\n{wrong}");
    let sums = format!("{} equal, {} allowed, {} different.", counts[0], counts[1], counts[2]);
    let table = format!("{sums}\n\n| scenario | comes out | because |\n|---|---|---|\n{rows}");
    autoscaling::docs_section("fidelity.md", "autoscaler", &table).unwrap_or_else(|error| panic!("{error}"));
}

/// Prints all that happened in a scenario: `SCENARIO=c9 cargo test ... what_happened -- --ignored --nocapture`.
#[test]
#[ignore = "for looking at scenarios by hand"]
fn what_happened() {
    let wanted = std::env::var("SCENARIO").unwrap_or("c11".to_owned());
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    for seen in autoscaling::all().into_iter().filter(|seen| seen.scenario.starts_with(&wanted)) {
        let allowed = allowed::of(&seen.scenario).unwrap_or_default();
        let rig = Rig { phase_ms: number("PHASE"), latency_ms: number("LATENCY"), ready_ms: number("READY") };
        let seed = u64::try_from(number("SEED")).unwrap_or_default().max(SEED);
        let mut played = player::play(&seen, seed, rig, |_| {});
        let at = |at: sk_core::SimTime| at.since(played.zero).as_secs_f64();
        let mut lines: Vec<(f64, String)> = Vec::new();
        for event in played.engine.watch(0).expect("a recording's changes stay within the log") {
            let object = &event.object;
            let taints = object
                .node()
                .map(|node| node.spec.taints.iter().map(|t| format!("{}:{:?}", t.key, t.effect)).collect::<Vec<_>>());
            let ready = object.node().map(sk_engine::kinds::Node::is_ready);
            let node = object.pod().and_then(|pod| pod.node_name.clone());
            lines.push((
                at(event.at),
                format!("{:?} {} {} {taints:?} {ready:?} {node:?}", event.change, object.gvk.kind, object.key),
            ));
        }
        for event in played.engine.take_events() {
            lines.push((at(event.at), format!("{} {} {}", event.reason, event.about, event.message)));
        }
        for decision in played.engine.take_decisions() {
            lines.push((
                at(decision.at),
                format!("loop {} {:?}: {:?}", decision.loop_number, decision.trigger, decision.verdict),
            ));
        }
        lines.sort_by(|one, other| one.0.total_cmp(&other.0));
        lines.iter().for_each(|(at, line)| println!("{at:9.3} {line}"));
        let run = outcome::of(player::play(&seen, seed, rig, |_| {}));
        println!("{} {seed} {rig:?}: {:?}", seen.scenario, compare::differences(&seen, &run, &allowed));
    }
}

/// Searches seeds with which a scenario comes out as it was seen to its end, with nothing allowed but lots that are drawn:
/// `SCENARIO=k1 cargo test ... which_seeds -- --ignored --nocapture`.
#[test]
#[ignore = "for finding a seed by hand"]
fn which_seeds() {
    let wanted = std::env::var("SCENARIO").unwrap_or("k1".to_owned());
    for seen in autoscaling::all().into_iter().filter(|seen| seen.scenario.starts_with(&wanted)) {
        let ready_ms = std::env::var("READY").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
        let seeds = std::env::var("SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(100);
        for seed in SEED..SEED + seeds {
            let run = outcome::of(player::play(&seen, seed, Rig { ready_ms, ..Rig::default() }, |_| {}));
            let left = compare::differences(&seen, &run, &Allowed::default());
            if left.len() < 3 {
                println!("{} seed {seed}: {left:?}", seen.scenario);
            }
        }
    }
}

#[test]
fn a_race_of_milliseconds_falls_either_way_on_faster_and_slower_machines() {
    let all = autoscaling::all();
    // Which of two pods the scheduler tries before a node has lost its taint, and whether a loop finds a node ready and still
    // without its DaemonSet's pod: the recordings show one outcome each.
    for (scenario, seed) in [("a2-nginx-from-zero-full-cpu", 1), ("k1-daemonset-in-template", 3)] {
        let seen = all.iter().find(|seen| seen.scenario == scenario).expect("the scenario is there");
        let is_as_seen = |latency_ms: i64| {
            let run = outcome::of(player::play(seen, seed, Rig { latency_ms, ..Rig::default() }, |_| {}));
            compare::differences(seen, &run, &Allowed::default()).is_empty()
        };
        assert!(!is_as_seen(0) && is_as_seen(10), "{scenario}");
    }
}

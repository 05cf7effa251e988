//! The model of the cluster autoscaler does what the real one was seen to do: every recording is played in virtual time and
//! compared.

mod allowed;
#[expect(clippy::disallowed_methods, reason = "what to look at is said on the command line")]
mod by_hand;
mod compare;
mod flags;
mod missing;
mod objects;
mod one_flag;
mod outcome;
mod picture;
mod player;
mod referee;
mod rig;
mod rules;
mod sentences;
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
    Allowed(String, bool),
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
        return Comparison::Allowed(allowed.why(), is_tight);
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
    for (rule, scenario) in Rule::ALL.iter().filter_map(|rule| Some((*rule, shows_in(*rule)?))) {
        let seen = find(scenario);
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

#[test]
fn every_recording_comes_out_as_the_lists_say() {
    let (mut wrong, mut rows) = (String::new(), String::new());
    let mut counts = [0; 3];
    let different = allowed::different();
    for seen in autoscaling::all() {
        let known = different.iter().find(|known| known.scenario == seen.scenario);
        if let Some(known) = known {
            let run = outcome::of(player::play(&seen, known.nearest.seed, known.nearest.rig, |_| {}));
            let left = compare::differences(&seen, &run, &known.nearest);
            assert_eq!(left, known.left, "{} differs otherwise than the list says", seen.scenario);
        }
        let (place, verdict, more) = match compare(&seen, as_it_is, 200) {
            Comparison::Tight | Comparison::Equal => (0, "equal", String::new()),
            Comparison::Allowed(why, _) => (1, "allowed", why),
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
        let more = known.map_or(more, |known| known.why.to_owned());
        writeln!(rows, "| {} | {verdict} | {more} |", seen.scenario).expect("a text grows");
    }
    println!("{} equal, {} allowed, {} different", counts[0], counts[1], counts[2]);
    assert!(wrong.is_empty(), "\n{wrong}");
    let sums = format!("{} equal, {} allowed, {} different.", counts[0], counts[1], counts[2]);
    let table = format!("{sums}\n\n| scenario | comes out | because |\n|---|---|---|\n{rows}");
    autoscaling::docs_section("fidelity.md", "autoscaler", &table).unwrap_or_else(|error| panic!("{error}"));
}

//! The model of the cluster autoscaler does what the real one was seen to do: every recording is played in virtual time and
//! compared.

mod allowed;
mod compare;
mod flags;
mod objects;
mod outcome;
mod picture;
mod player;
mod swarm;
mod unrecorded;

use std::fmt::Write as _;

use allowed::Allowed;
use sk_engine::Rule;
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

/// Compares a scenario, with one rule of the model left out or none. `patience`: how many other seeds are tried if the
/// listed one does not give what was seen.
fn compare(seen: &Observation, without: Option<Rule>, patience: u64) -> Comparison {
    let play = |seed| outcome::of(&mut player::play(seen, seed, |flags| flags.without = without));
    let run = play(SEED);
    if compare::differences(seen, &run, &Allowed::default().tightly()).is_empty() {
        return Comparison::Tight;
    }
    let first = compare::differences(seen, &run, &Allowed::default());
    if first.is_empty() {
        return Comparison::Equal;
    }
    let Some(allowed) = allowed::of(&seen.scenario) else { return Comparison::Different(first) };
    let listed = allowed.seed.max(SEED);
    let run = play(listed);
    let left = compare::differences(seen, &run, &allowed);
    if left.is_empty() {
        let is_tight = compare::differences(seen, &run, &allowed.tightly()).is_empty();
        return Comparison::Allowed(allowed.why, is_tight);
    }
    let fits = |seed: &u64| compare::differences(seen, &play(*seed), &allowed).is_empty();
    match (SEED..SEED + patience).find(fits) {
        Some(seed) => Comparison::Different(vec![format!("seed {seed} gives what was seen, not {listed}: list it")]),
        None => Comparison::Different(left),
    }
}

/// Where a rule shows.
fn shows_in(rule: Rule) -> &'static str {
    match rule {
        Rule::YoungPodsWait => "a1-nginx-story",
        Rule::TimerRestarts => "f5-scan-20s",
        Rule::PodsStartLoops => "c10-one-size-slow-nodes",
        Rule::LoopFollowsScaleUp => "c5-two-groups-needed",
        Rule::TemplateFromNode => "a3-template-age",
        Rule::UpcomingNodes => "c7-max-nodes-per-scaleup",
        Rule::PackedInAnyOrder => "c11-mixed-from-zero-1",
        Rule::DaemonsInTemplate => "k1-daemonset-in-template",
        Rule::NominatedPodsWait => "h3-preemption",
        Rule::ExpendablePods => "h5-priority-cutoff",
        Rule::RecheckTimeout => "g4-anti-affinity",
        Rule::CumulativeSimulation => "d3-order-drain1",
        Rule::BudgetsUsedUp => "e1-blockers",
        Rule::NoDestination => "e4-full-elsewhere",
        Rule::SoftTaintsInBulk => "d5-empty-bulk",
        Rule::UnneededLimit => "f2-delay-after-delete",
        Rule::RemovalsCountForMinimum => "e3-min-size",
        Rule::RemovalsCountForParallelism => "d6-empty-bulk-3",
        Rule::EmptyBesideDrain => "d1-threshold",
        Rule::UnneededTimeRestarts => "f4-unneeded-reset",
        Rule::DelayAfterAdd => "f1-delay-after-add",
        Rule::DelayAfterTaint => "d6-empty-bulk-3",
        Rule::DrainPolls => "d1-threshold",
        Rule::DrainFails => "f3-delay-after-failure",
        Rule::StartupTime => "j1-never-ready",
        Rule::ClusterHealth => "j1-never-ready",
    }
}

#[test]
fn leaving_out_any_one_rule_makes_a_recording_come_out_otherwise() {
    let all = autoscaling::all();
    let mut unnoticed = Vec::new();
    for rule in Rule::ALL {
        let seen = all.iter().find(|seen| seen.scenario == shows_in(rule)).expect("the scenario is there");
        if compare(seen, Some(rule), 0) == compare(seen, None, 0) {
            unnoticed.push(rule);
        }
    }
    assert!(unnoticed.is_empty(), "nobody would notice if these rules did not hold: {unnoticed:?}");
}

#[test]
fn every_recording_comes_out_as_the_lists_say() {
    let (mut wrong, mut rows) = (String::new(), String::new());
    let mut counts = [0; 3];
    for seen in autoscaling::all() {
        let known = allowed::DIFFERENT.iter().find(|(name, _)| *name == seen.scenario);
        let (place, verdict, more) = match compare(&seen, None, 200) {
            Comparison::Tight | Comparison::Equal => (0, "equal", String::new()),
            Comparison::Allowed(why, _) => (1, "allowed", why.to_owned()),
            Comparison::Different(left) => (2, "different", left.join("; ")),
        };
        counts[place] += 1;
        println!("{:48} {verdict} {more}", seen.scenario);
        match (known, place) {
            (Some(_), 0 | 1) => writeln!(wrong, "{} is listed as different, but is not", seen.scenario),
            (None, 2) => writeln!(wrong, "{} differs: {more}", seen.scenario),
            _ => Ok(()),
        }
        .expect("a text grows");
        let more = known.map_or(more, |(_, why)| (*why).to_owned());
        writeln!(rows, "| {} | {verdict} | {more} |", seen.scenario).expect("a text grows");
    }
    println!("{} equal, {} allowed, {} different", counts[0], counts[1], counts[2]);
    assert!(wrong.is_empty(), "\n{wrong}");
    let sums = format!("{} equal, {} allowed, {} different.", counts[0], counts[1], counts[2]);
    let table = format!("{sums}\n\n| scenario | comes out | because |\n|---|---|---|\n{rows}");
    autoscaling::docs_section("fidelity.md", "autoscaler", &table).unwrap_or_else(|error| panic!("{error}"));
}

/// Prints the scale-ups of some seeds: `SCENARIO=c9 cargo test ... scale_ups_by_seed -- --ignored --nocapture`.
#[test]
#[ignore = "for looking at scenarios by hand"]
fn scale_ups_by_seed() {
    let wanted = option_env!("SCENARIO").unwrap_or("c11");
    for seen in autoscaling::all().into_iter().filter(|seen| seen.scenario.starts_with(wanted)) {
        for seed in SEED..SEED + 20 {
            let run = outcome::of(&mut player::play(&seen, seed, |_| {}));
            println!("{} seed {seed}: {:?}", seen.scenario, run.plans);
            println!("    {:?}", compare::differences(&seen, &run, &allowed::of(&seen.scenario).unwrap_or_default()));
        }
    }
}

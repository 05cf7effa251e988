//! Scenarios that the recordings' README names and that are not among the recordings, each with what holds their rule instead.
//!
//! The names are read from the README, so the list is complete; docs/fidelity.md has it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use sk_testkit::autoscaling;

/// The scenario, the rule for which the README names it, and what holds that rule instead.
const INSTEAD: &[(&str, &str, &str)] = &[
    (
        "b-priority-chain",
        "priority hands what it leaves to the next expander",
        "a unit test of the chain in `expander`",
    ),
    (
        "c11-2",
        "mixed sizes are packed anew; the real scheduler needed the further node",
        "c11-1 and c11-3 but for the scheduler's need",
    ),
    ("d7", "empty nodes go in the same loop as a drain", "d1, which has both in one loop"),
    ("e6", "min-replica-count", "a small cluster in `one_flag`"),
    ("f8", "scale-down-delay-type-local holds back one group alone", "f1, which differs with the flag"),
    ("g7", "topology spread is simulated", "g5 and g6"),
    ("i3", "a scale-up does not stop a running drain", "a small cluster in `unrecorded`"),
    ("k5", "the soft taint is taken back", "f4"),
];

/// The scenarios that a text names: a letter and a number, perhaps with the number of a run, or `b-` and words.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    words.filter(|word| is_scenario(word)).map(str::to_owned).collect()
}

fn is_scenario(word: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (head, run) = word.split_once('-').unwrap_or((word, "1"));
    let Some(letter) = head.chars().next() else { return false };
    let is_story = ('a'..='k').contains(&letter) || letter == 'z';
    (is_story && is_number(&head[1..]) && is_number(run)) || (head == "b" && !is_number(run))
}

/// Is the named scenario among the recordings? `c11-2` is the second run of c11.
fn is_there(name: &str, all: &BTreeSet<String>) -> bool {
    let is_run = |(head, run): (&str, &str)| {
        all.iter().any(|known| known.starts_with(&format!("{head}-")) && known.ends_with(&format!("-{run}")))
    };
    all.iter().any(|known| known == name || known.starts_with(&format!("{name}-")))
        || name.split_once('-').is_some_and(is_run)
}

#[test]
fn the_docs_list_every_scenario_that_the_readme_names_and_that_is_not_there() {
    let all: BTreeSet<String> = autoscaling::all().into_iter().map(|seen| seen.scenario).collect();
    let missing: Vec<String> = named(&autoscaling::readme()).into_iter().filter(|name| !is_there(name, &all)).collect();
    let listed: Vec<&str> = INSTEAD.iter().map(|(name, ..)| *name).collect();
    assert_eq!(missing, listed, "the scenarios that the README names and nobody has");
    let mut table = "| scenario | its rule | held by |\n|---|---|---|\n".to_owned();
    for (name, rule, instead) in INSTEAD {
        writeln!(table, "| {name} | {rule} | {instead} |").expect("a text grows");
    }
    autoscaling::docs_section("fidelity.md", "autoscaler-missing", &table).unwrap_or_else(|error| panic!("{error}"));
}

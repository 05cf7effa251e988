//! Validates the timeline: each entry has a time and one fault or change, names known groups, and changes only fields
//! that can change in a running cluster.

use sk_core::{SimDuration, SmolStr};

use super::{Faults, check_changes, no_such};
use crate::scenario::path::{Path, Step};
use crate::scenario::timeline::{Happening, LoseNodes, MAX_NAMES};
use crate::scenario::{Nodes, Scenario};

/// The most entries. Each `set` is tried on the whole file before the run, which takes a millisecond.
const MAX_HAPPENINGS: usize = 1_000;

/// The shortest interval of `every`: a week then has 604,800 happenings.
const MIN_INTERVAL: SimDuration = SimDuration::from_secs(1);

/// The longest that a request may take: client-go gives up after a minute at the latest.
const MAX_LATENCY: SimDuration = SimDuration::from_secs(60);

/// Fields of a group that its recorded nodes decided before the run began.
const FITTED: [&str; 1] = ["match"];

pub(super) fn check_timeline(scenario: &Scenario, faults: &mut Faults<'_>) {
    let at = Path::of(["timeline"]);
    faults.unless(scenario.timeline.len() <= MAX_HAPPENINGS, at.clone(), || {
        format!("{} entries are more than {MAX_HAPPENINGS}: `every` repeats one", scenario.timeline.len())
    });
    for (index, happening) in scenario.timeline.iter().enumerate().take(MAX_HAPPENINGS) {
        check_happening(happening, scenario, &at.index(index), faults);
    }
}

fn check_happening(happening: &Happening, scenario: &Scenario, at: &Path, faults: &mut Faults<'_>) {
    faults.unless(happening.at.is_some() != happening.every.is_some(), at.clone(), || {
        "say either `at` or `every`: when it happens".to_owned()
    });
    faults.unless(happening.every.is_none_or(|every| every >= MIN_INTERVAL), at.field("every"), || {
        format!("it happens at most every {MIN_INTERVAL}: write that or more")
    });
    let said = [
        happening.stockout.is_some(),
        happening.lose_zone.is_some(),
        happening.lose_nodes.is_some(),
        happening.slow_api.is_some(),
        happening.reclaim.is_some(),
        !happening.set.is_empty(),
    ];
    faults.unless(said.iter().filter(|said| **said).count() == 1, at.clone(), || {
        "say one of `stockout`, `loseZone`, `loseNodes`, `slowApi`, `reclaim` and `set`: what happens".to_owned()
    });
    check_groups(happening, scenario, at, faults);
    if let Some(lost) = &happening.lose_nodes {
        check_lost(lost, &at.field("loseNodes"), faults);
    }
    let slow = happening.slow_api.as_ref().map_or(SimDuration::ZERO, |slow| slow.latency);
    faults.unless(slow <= MAX_LATENCY, at.field("slowApi").field("latency"), || {
        format!("{slow} is longer than {MAX_LATENCY}, after which every client gives up: write less")
    });
    let share = happening.reclaim.as_ref().map_or(0.0, |reclaim| reclaim.share);
    faults.unless((0.0..=1.0).contains(&share), at.field("reclaim").field("share"), || {
        format!("{share} is not a share: write one from 0 to 1, such as 0.1")
    });
    faults.unless(happening.set.is_empty() || happening.every.is_none(), at.field("every"), || {
        "a field that is set stays so: write `at`".to_owned()
    });
    check_changes(happening.set.keys(), &at.field("set"), faults);
    for text in happening.set.keys() {
        if let Some(problem) = text.parse().ok().and_then(|path| why_not(&path, scenario)) {
            faults.add(at.field("set").field(text), problem);
        }
    }
}

/// Named groups exist, and create nodes.
fn check_groups(happening: &Happening, scenario: &Scenario, at: &Path, faults: &mut Faults<'_>) {
    let groups = [
        ("stockout", happening.stockout.as_ref().map(|stockout| &stockout.group)),
        ("reclaim", happening.reclaim.as_ref().map(|reclaim| &reclaim.group)),
        ("loseNodes", happening.lose_nodes.as_ref().and_then(|lost| lost.group.as_ref())),
    ];
    for (what, group) in groups {
        let Some(group) = group else { continue };
        let known = scenario.cluster.groups.keys().map(SmolStr::as_str);
        let at = at.field(what).field("group");
        faults.unless(scenario.cluster.groups.contains_key(group), at, || no_such("group", group, known));
    }
    faults.unless(
        happening.stockout.is_none() || scenario.cluster.nodes == Nodes::Groups,
        at.field("stockout"),
        || "no group makes nodes here, so none can run out of them: write `cluster: {nodes: groups}`".to_owned(),
    );
}

fn check_lost(lost: &LoseNodes, at: &Path, faults: &mut Faults<'_>) {
    faults.unless(lost.group.is_some() == lost.names.is_empty(), at.clone(), || {
        "say either `group` or `names`: which nodes are lost".to_owned()
    });
    faults.unless(lost.count.is_none() || lost.group.is_some(), at.field("count"), || {
        "`count` is how many of a `group`: leave it out beside `names`".to_owned()
    });
    faults.unless(lost.count != Some(0), at.field("count"), || "0 nodes are none: write at least 1".to_owned());
    faults.unless(lost.names.len() <= MAX_NAMES, at.field("names"), || {
        format!("{} names are more than {MAX_NAMES}: use `group` and `count`", lost.names.len())
    });
}

/// Why this field cannot change while the cluster runs.
fn why_not(path: &Path, scenario: &Scenario) -> Option<String> {
    let fields: Vec<&str> = path
        .steps()
        .iter()
        .map(|step| match step {
            Step::Field(name) => name.as_str(),
            Step::Index(_) => "",
        })
        .collect();
    match fields.as_slice() {
        ["autoscaler" | "timing", _, ..] | ["scheduler", ..] => None,
        ["cluster", "groups", _, field, ..] if FITTED.contains(field) => {
            Some(format!("`{field}` is settled before the run begins: change `min`, `max`, `price` or `ready`"))
        }
        ["cluster", "groups", group, _, ..] => {
            let known = scenario.cluster.groups.keys().map(SmolStr::as_str);
            (!scenario.cluster.groups.contains_key(*group)).then(|| no_such("group", group, known))
        }
        _ => Some(format!(
            "`{path}` cannot change during a run: only fields under `autoscaler`, `scheduler`, `timing` and a group of \
             `cluster.groups` can"
        )),
    }
}

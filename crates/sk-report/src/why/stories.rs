//! The history of single pods, nodes and groups, event by event.

use std::collections::BTreeSet;

use sk_core::SimTime;
use sk_record::{AutoscalerRow, DecisionRow, EndedBy, Outcome, PodRow, RunMeta};

use super::messages::{Messages, in_short, in_words};
use super::{Event, GroupStory, NodeStory, PodStory, STRETCHES_MAX, Subject};
use crate::fleet::{Fleet, IdleEnd, Node};
use crate::step::{Step, Window};
use crate::words;

/// One pod's life.
pub(super) fn pod(pod: &PodRow, messages: &Messages, fleet: &Fleet) -> PodStory {
    let mut events = vec![Event { at: pod.created, what: "created".to_owned() }];
    let is_own = |answer: &&DecisionRow| answer.namespace == pod.namespace && answer.pod == pod.name;
    let own: Vec<&DecisionRow> = messages.answers.iter().filter(is_own).collect();
    events.extend(refusals(&own));
    let is_about = |row: &&AutoscalerRow| {
        row.pod.as_deref() == Some(pod.name.as_str()) && row.namespace.as_deref() == Some(pod.namespace.as_str())
    };
    let about = || messages.autoscaler.iter().filter(is_about);
    events.extend(by_the_autoscaler(about(), in_words));
    let considered = |row: &AutoscalerRow| format!("considered {}", row.options.as_deref().unwrap_or_default());
    events.extend(by_the_autoscaler(about().filter(|row| row.options.is_some()), considered));
    if let Some(at) = pod.scheduled {
        let node = pod.node.as_deref().unwrap_or("a node");
        let group = pod.group.as_deref().map(|group| format!(" of group {group}")).unwrap_or_default();
        let waited = at.since(pod.created);
        events.push(Event { at, what: format!("bound to {node}{group}, {waited} after its creation") });
        events.extend(why_there(&own, at));
    }
    if let Some(at) = pod.started {
        events.push(Event { at, what: format!("running, {} after its creation", at.since(pod.created)) });
    }
    if let Some(at) = crate::tally::end_of(pod) {
        events.push(Event { at, what: ended(pod, at, messages, fleet) });
    }
    events.sort_by_key(|event| event.at);
    PodStory { pod: format!("{}/{}", pod.namespace, pod.name), owner: pod.owner.clone(), events }
}

/// The same message several times is one event.
fn refusals(own: &[&DecisionRow]) -> Vec<Event> {
    let mut events = Vec::new();
    let mut last: Option<&str> = None;
    for answer in own.iter().filter(|answer| answer.outcome == Outcome::Unschedulable) {
        let message = answer.message.as_deref().unwrap_or("no node fits");
        if last != Some(message) {
            events.push(Event { at: answer.time, what: format!("not scheduled: {message}") });
            last = Some(message);
        }
        events.extend(why_victims(answer));
    }
    events
}

/// Whom it preempts, and why them.
fn why_victims(answer: &DecisionRow) -> Option<Event> {
    let victims = answer.explained.victims.as_deref()?;
    let why = answer.explained.scores.as_deref().map(|why| format!(" on {why}")).unwrap_or_default();
    Some(Event { at: answer.time, what: format!("makes room by preempting {victims}{why}") })
}

/// Why it is on that node: how many were feasible, and their scores.
fn why_there(own: &[&DecisionRow], at: SimTime) -> Vec<Event> {
    let Some(answer) = own.iter().rev().find(|answer| answer.outcome == Outcome::Scheduled) else { return Vec::new() };
    let mut events = Vec::new();
    if let (Some(evaluated), Some(feasible)) = (answer.explained.evaluated, answer.explained.feasible) {
        let only = if feasible == 1 { ", so nothing was scored" } else { "" };
        let evaluated = words::plural(evaluated, "evaluated node");
        let what = format!("why there: {} of {evaluated} feasible{only}", words::grouped(feasible));
        events.push(Event { at, what });
    }
    // The only node that fits is taken without scores; those in the record were made to explain it.
    let scores = answer.explained.scores.as_deref().filter(|_| answer.explained.feasible != Some(1));
    events.extend(scores.map(|scores| Event { at, what: format!("scores, best first: {scores}") }));
    events
}

/// How it ended, and who ended it if that is known.
fn ended(pod: &PodRow, at: SimTime, messages: &Messages, fleet: &Fleet) -> String {
    let how = pod.ended_by.map_or("ended", EndedBy::as_str).replace('_', " ");
    let own = format!("{}/{}", pod.namespace, pod.name);
    let why = match pod.ended_by {
        Some(EndedBy::Preempted) => {
            let names_it = |victims: &str| victims.split(", ").any(|victim| victim == own);
            let by = messages.preemptions.iter().rev().find(|(time, _, victims)| *time <= at && names_it(victims));
            by.map(|(_, by, _)| format!(" to make room for {by}, which has a higher priority"))
        }
        Some(EndedBy::Evicted) => {
            let node = pod.node.as_deref().and_then(|name| fleet.node_at(name, at));
            let gone = node.and_then(|node| Some((&node.row.name, node.row.deleted.filter(|gone| *gone >= at)?)));
            gone.map(|(name, gone)| format!(": {name} was emptied and removed {} later", gone.since(at)))
        }
        Some(EndedBy::NodeLost) => pod.node.as_deref().map(|node| format!(" with {node}")),
        Some(EndedBy::Finished | EndedBy::Failed | EndedBy::Deleted) | None => None,
    };
    format!("{how}{}", why.unwrap_or_default())
}

/// The lives of the node that is asked for.
pub(super) fn nodes(
    subject: &Subject,
    fleet: &Fleet,
    pods: &[PodRow],
    messages: &Messages,
    window: Window,
) -> Vec<NodeStory> {
    let Subject::Node(name) = subject else { return Vec::new() };
    let lives = fleet.nodes().filter(|node| node.row.name == *name);
    lives.map(|node| one_node(node, pods, messages, window)).collect()
}

fn one_node(node: &Node, pods: &[PodRow], messages: &Messages, window: Window) -> NodeStory {
    let row = &node.row;
    let group = row.group.as_deref().map(|group| format!(" in group {group}")).unwrap_or_default();
    let mut events = vec![Event { at: row.created, what: format!("created{group}") }];
    events.extend(row.ready.map(|at| Event { at, what: format!("ready, {} later", at.since(row.created)) }));
    let there = pods.iter().filter(|pod| pod.node.as_deref() == Some(row.name.as_str()));
    let owners: BTreeSet<&str> = there.clone().map(|pod| pod.owner.as_str()).collect();
    if let Some(first) = there.clone().filter_map(|pod| pod.scheduled).min() {
        let owners: Vec<&str> = owners.iter().take(5).copied().collect();
        let what = format!("first of {} pods came; owners: {}", there.count(), owners.join(", "));
        events.push(Event { at: first, what });
    }
    for idle in node.idle().take(STRETCHES_MAX) {
        let how = match idle.end {
            IdleEnd::Removed => "until it was removed",
            IdleEnd::RunEnd => "until the run's end",
            IdleEnd::PodCame => "until a pod came",
        };
        events.push(Event { at: idle.window.start, what: format!("empty for {} {how}", idle.window.length()) });
    }
    let lived = |said: &&AutoscalerRow| row.created <= said.time && row.deleted.is_none_or(|gone| said.time <= gone);
    events.extend(by_the_autoscaler(messages.autoscaler.iter().filter(lived), in_short));
    events.extend(row.deleted.map(|at| Event { at, what: "removed".to_owned() }));
    events.retain(|event| window.contains(event.at) || event.at < window.start);
    events.sort_by_key(|event| event.at);
    NodeStory { node: row.name.clone(), events }
}

/// The autoscaler's messages as events: the same message several times is one, and at most [`STRETCHES_MAX`] are shown.
fn by_the_autoscaler<'a>(
    rows: impl Iterator<Item = &'a AutoscalerRow>,
    in_words: impl Fn(&AutoscalerRow) -> String,
) -> Vec<Event> {
    let mut said: Vec<Event> =
        rows.map(|row| Event { at: row.time, what: format!("autoscaler: {}", in_words(row)) }).collect();
    said.dedup_by(|a, b| a.what == b.what);
    let cut = said.len().saturating_sub(STRETCHES_MAX);
    said.truncate(STRETCHES_MAX);
    if let (Some(last), true) = (said.last(), cut > 0) {
        let what = format!("autoscaler: and {cut} more decisions; ask for a shorter time with -s and -t");
        let at = last.at;
        said.push(Event { at, what });
    }
    said
}

/// How the group in question grew and shrank, and the autoscaler's messages about it.
pub(super) fn groups(
    subject: &Subject,
    fleet: &Fleet,
    meta: &RunMeta,
    messages: &Messages,
    window: Window,
) -> Vec<GroupStory> {
    let Subject::Group(name) = subject else { return Vec::new() };
    let curve: Step = fleet.curve(Some(name));
    let max = meta.groups.iter().find(|group| group.name == *name).map(|group| group.max);
    let mut events = Vec::new();
    for (at, count) in curve.points().iter().filter(|(at, _)| window.contains(*at)) {
        let at_max = if max.is_some_and(|max| max == *count) { ", its maximum" } else { "" };
        events.push(Event { at: *at, what: format!("{}{at_max}", words::plural(*count, "node")) });
    }
    let cut = events.len().saturating_sub(STRETCHES_MAX);
    events.truncate(STRETCHES_MAX);
    if cut > 0 {
        let at = events.last().map_or(window.start, |event| event.at);
        events.push(Event { at, what: format!("and {cut} more changes; ask for a shorter time with -s and -t") });
    }
    let about = messages.autoscaler.iter().filter(|row| window.contains(row.time) && row.pod.is_none());
    events.extend(by_the_autoscaler(about, |row| match &row.node {
        Some(node) => format!("{node} {}", in_short(row)),
        None => in_short(row),
    }));
    events.sort_by_key(|event| event.at);
    vec![GroupStory { group: name.clone(), events }]
}

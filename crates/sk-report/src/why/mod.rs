//! Why did a pod wait, why is it there, why did it go, why was this node there and idle, why did this group not grow:
//! answered from a run's rows, in Kubernetes' own words.
//!
//! A run is read once for what the object is and once more for what the scheduler said about it. What is kept is bounded
//! ([`PODS_MAX`], [`ANSWERS_MAX`]); what is left out is counted and said.

mod subject;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use sk_core::{SimDuration, SimTime};
use sk_record::{DecisionRow, Error, Outcome, PodRow, RunMeta};

use crate::causes::Wait;
use crate::fleet::{Fleet, IdleEnd};
use crate::source::Source;
use crate::step::{Step, Window};
use crate::words;

pub use subject::Subject;
pub use text::render;

/// Pods that are looked at; a Deployment of more is told by its first ones.
pub const PODS_MAX: usize = 10_000;
/// Answers of the scheduler that are kept: 50,000 × 300 bytes are 15 MB.
pub const ANSWERS_MAX: usize = 50_000;
/// Pods whose whole story is told when several are asked for.
const STORIES_MAX: usize = 5;
/// Stretches told of one node or group.
const STRETCHES_MAX: usize = 20;

/// Why nothing can be answered.
#[derive(Debug, thiserror::Error)]
pub enum WhyError {
    /// The run cannot be read.
    #[error(transparent)]
    Record(#[from] Error),
    /// No such thing in the run.
    #[error("{asked} is no pod, owner, node or node group of this run{near}")]
    Unknown {
        /// What was asked for.
        asked: String,
        /// What there is instead, as the end of the sentence.
        near: String,
    },
}

/// The whole answer.
#[derive(Debug, Serialize)]
pub struct Why {
    /// What was asked for, spelt out.
    pub subject: String,
    /// The time it is about.
    #[serde(skip)]
    pub window: Window,
    /// Who waited, when, and what the scheduler said; longest first.
    pub waits: Vec<Waited>,
    /// What happened to single pods.
    pub pods: Vec<PodStory>,
    /// What happened to a node.
    pub nodes: Vec<NodeStory>,
    /// What happened to a node group.
    pub groups: Vec<GroupStory>,
    /// Pods that were looked at.
    pub pods_total: usize,
    /// Some pods or answers were left out: the bounds were reached.
    pub is_cut: bool,
}

/// Pods of one owner that waited at the same time.
#[derive(Clone, Debug, Serialize)]
pub struct Waited {
    /// `ns/Kind/name`.
    pub owner: String,
    /// How many pods.
    pub pods: usize,
    /// From when.
    #[serde(serialize_with = "rfc3339")]
    pub from: SimTime,
    /// To when.
    #[serde(serialize_with = "rfc3339")]
    pub to: SimTime,
    /// The longest wait of one of them, in seconds.
    #[serde(serialize_with = "seconds")]
    pub longest: SimDuration,
    /// What the scheduler said, in its own words, with how often; most often first.
    pub said: Vec<Said>,
    /// Node groups that stood at their maximum meanwhile, and since when: the autoscaler could not add to them.
    pub at_max: Vec<AtMax>,
    /// What ended it.
    pub ended: String,
}

/// A node group that could not grow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AtMax {
    /// Its name.
    pub group: String,
    /// How many nodes that is.
    pub max: i64,
    /// Since when.
    #[serde(serialize_with = "rfc3339")]
    pub since: SimTime,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Said {
    /// In the scheduler's words.
    pub message: String,
    /// How often.
    pub times: usize,
    /// First.
    #[serde(serialize_with = "rfc3339")]
    pub first: SimTime,
    /// Last.
    #[serde(serialize_with = "rfc3339")]
    pub last: SimTime,
}

/// One pod's life, event by event.
#[derive(Clone, Debug, Serialize)]
pub struct PodStory {
    /// `ns/name`.
    pub pod: String,
    /// `ns/Kind/name`.
    pub owner: String,
    /// What happened when.
    pub events: Vec<Event>,
}

/// Something that happened.
#[derive(Clone, Debug, Serialize)]
pub struct Event {
    /// When.
    #[serde(serialize_with = "rfc3339")]
    pub at: SimTime,
    /// What, as a sentence.
    pub what: String,
}

/// One node's life.
#[derive(Clone, Debug, Serialize)]
pub struct NodeStory {
    /// Its name.
    pub node: String,
    /// What happened when.
    pub events: Vec<Event>,
}

/// One group over time.
#[derive(Clone, Debug, Serialize)]
pub struct GroupStory {
    /// Its name.
    pub group: String,
    /// What happened when.
    pub events: Vec<Event>,
}

impl Why {
    /// Answers about `subject` inside `window`, which lies in the run's.
    pub fn of(source: &impl Source, subject: &Subject, window: Window) -> Result<Self, WhyError> {
        let run = Window::new(source.meta().start, source.meta().end);
        let mut fleet = Fleet::new(source.nodes()?.collect::<Result<_, _>>()?, run);
        let mut pods: Vec<PodRow> = Vec::new();
        let mut is_cut = false;
        let mut known = subject::Known::default();
        for pod in source.pods()? {
            let pod = pod?;
            fleet.add(&pod);
            known.see(subject, &pod);
            if !subject.takes(&pod) || !touches(&pod, window) {
                continue;
            }
            if pods.len() < PODS_MAX {
                pods.push(pod);
            } else {
                is_cut = true;
            }
        }
        fleet.settle();
        subject::check(subject, &known, &fleet, source.meta())?;
        let (answers, more) = answers(source, &pods, window)?;
        let of_pods = !matches!(subject, Subject::Node(_) | Subject::Group(_));
        let shown = if of_pods { pods.len().min(STORIES_MAX) } else { 0 };
        let tells_pods = matches!(subject, Subject::Object(_)) && pods.len() <= STORIES_MAX;
        let stories =
            if tells_pods { pods[..shown].iter().map(|pod| story(pod, &answers)).collect() } else { Vec::new() };
        Ok(Self {
            subject: subject.to_string(),
            window,
            waits: if of_pods { waits(&pods, &answers, &fleet, source.meta(), window) } else { Vec::new() },
            pods: stories,
            nodes: nodes(subject, &fleet, &pods, window),
            groups: groups(subject, &fleet, source.meta(), window),
            pods_total: pods.len(),
            is_cut: is_cut || more,
        })
    }
}

/// Was the pod there at any time of the window?
fn touches(pod: &PodRow, window: Window) -> bool {
    window.clip(pod.created, crate::tally::end_of(pod)).is_some()
}

/// What the scheduler had said about these pods by the window's end, in order of time.
fn answers(source: &impl Source, pods: &[PodRow], window: Window) -> Result<(Vec<DecisionRow>, bool), Error> {
    let names: BTreeSet<(&str, &str)> = pods.iter().map(|pod| (pod.namespace.as_str(), pod.name.as_str())).collect();
    let mut kept = Vec::new();
    for row in source.decisions()? {
        let row = row?;
        if !names.contains(&(row.namespace.as_str(), row.pod.as_str())) || row.time > window.end {
            continue;
        }
        if kept.len() >= ANSWERS_MAX {
            return Ok((kept, true));
        }
        kept.push(row);
    }
    Ok((kept, false))
}

/// Waits that belong together, longest first.
fn waits(pods: &[PodRow], answers: &[DecisionRow], fleet: &Fleet, meta: &RunMeta, window: Window) -> Vec<Waited> {
    let run = Window::new(meta.start, meta.end);
    let refused = pods.iter().filter(|pod| pod.waited_for.is_some());
    let mut all: Vec<(Wait, &PodRow)> = refused.map(|pod| (Wait::of(pod, fleet, run), pod)).collect();
    all.retain(|(wait, _)| window.clip(wait.from, Some(wait.to)).is_some());
    all.sort_by(|(a, _), (b, _)| (&a.owner, &a.ending, a.from).cmp(&(&b.owner, &b.ending, b.from)));
    let mut found: Vec<(Waited, Vec<&PodRow>)> = Vec::new();
    for (wait, pod) in all {
        let ended = wait.ending.to_string();
        match found.last_mut() {
            Some((last, members)) if last.owner == wait.owner && last.ended == ended && wait.from <= last.to => {
                last.pods += 1;
                last.to = last.to.max(wait.to);
                last.longest = last.longest.max(wait.length());
                members.push(pod);
            }
            _ => {
                let (from, to, longest) = (wait.from, wait.to, wait.length());
                let waited = Waited {
                    owner: wait.owner,
                    pods: 1,
                    from,
                    to,
                    longest,
                    said: Vec::new(),
                    at_max: Vec::new(),
                    ended,
                };
                found.push((waited, vec![pod]));
            }
        }
    }
    let full = full_stretches(fleet, meta);
    let complete = |(waited, members): (Waited, Vec<&PodRow>)| Waited {
        said: said(&waited, &members, answers),
        at_max: at_max(&full, &waited),
        ..waited
    };
    let mut waits: Vec<Waited> = found.into_iter().map(complete).collect();
    waits.sort_by_key(|waited| (std::cmp::Reverse(waited.longest), waited.from));
    waits
}

/// When each group stood at its maximum.
fn full_stretches(fleet: &Fleet, meta: &RunMeta) -> Vec<(String, i64, SimTime, SimTime)> {
    let mut stretches = Vec::new();
    for group in meta.groups.iter().filter(|group| group.max > 0) {
        let curve = fleet.curve(Some(&group.name));
        let full = curve.pieces().filter(|(_, _, count)| *count >= group.max);
        stretches.extend(full.map(|(from, to, _)| (group.name.clone(), group.max, from, to)));
    }
    stretches
}

fn at_max(full: &[(String, i64, SimTime, SimTime)], waited: &Waited) -> Vec<AtMax> {
    let meanwhile = full.iter().filter(|(_, _, from, to)| *from < waited.to && waited.from < *to);
    let mut found: Vec<AtMax> = Vec::new();
    for (group, max, since, _) in meanwhile {
        if found.iter().all(|known| known.group != *group) {
            found.push(AtMax { group: group.clone(), max: *max, since: *since });
        }
    }
    found
}

/// What the scheduler said to these pods; where its answers were not kept, the last words that the pods bear.
fn said(waited: &Waited, members: &[&PodRow], answers: &[DecisionRow]) -> Vec<Said> {
    let names: BTreeSet<(&str, &str)> = members.iter().map(|pod| (pod.namespace.as_str(), pod.name.as_str())).collect();
    let mut by_message: BTreeMap<&str, Said> = BTreeMap::new();
    let refusals = answers.iter().filter(|answer| {
        answer.outcome == Outcome::Unschedulable && names.contains(&(answer.namespace.as_str(), answer.pod.as_str()))
    });
    let told: Vec<(&str, SimTime)> =
        refusals.filter_map(|answer| Some((answer.message.as_deref()?, answer.time))).collect();
    let borne = members.iter().filter_map(|pod| Some((pod.waited_for.as_deref()?, waited.from)));
    let all: Vec<(&str, SimTime)> = if told.is_empty() { borne.collect() } else { told };
    for (message, at) in all {
        let said = by_message.entry(message).or_insert_with(|| Said {
            message: message.to_owned(),
            times: 0,
            first: at,
            last: at,
        });
        said.times += 1;
        said.first = said.first.min(at);
        said.last = said.last.max(at);
    }
    let mut said: Vec<Said> = by_message.into_values().collect();
    said.sort_by_key(|said| (std::cmp::Reverse(said.times), said.first));
    said
}

fn story(pod: &PodRow, answers: &[DecisionRow]) -> PodStory {
    let mut events = vec![Event { at: pod.created, what: "created".to_owned() }];
    let mut last: Option<&str> = None;
    let own = answers.iter().filter(|answer| answer.namespace == pod.namespace && answer.pod == pod.name);
    for answer in own.filter(|answer| answer.outcome == Outcome::Unschedulable) {
        let message = answer.message.as_deref().unwrap_or("no node fits");
        // The same words again and again are one event.
        if last != Some(message) {
            events.push(Event { at: answer.time, what: format!("not scheduled: {message}") });
            last = Some(message);
        }
    }
    let node = pod.node.as_deref().unwrap_or("a node");
    let group = pod.group.as_deref().map(|group| format!(" of group {group}")).unwrap_or_default();
    let after = |from: SimTime, to: SimTime| to.since(from);
    if let Some(at) = pod.scheduled {
        let waited = after(pod.created, at);
        events.push(Event { at, what: format!("bound to {node}{group}, {waited} after its creation") });
    }
    if let Some(at) = pod.started {
        events.push(Event { at, what: format!("running, {} after its creation", after(pod.created, at)) });
    }
    if let Some(at) = crate::tally::end_of(pod) {
        let how = pod.ended_by.map_or("ended", sk_record::EndedBy::as_str).replace('_', " ");
        events.push(Event { at, what: how });
    }
    PodStory { pod: format!("{}/{}", pod.namespace, pod.name), owner: pod.owner.clone(), events }
}

fn nodes(subject: &Subject, fleet: &Fleet, pods: &[PodRow], window: Window) -> Vec<NodeStory> {
    let Subject::Node(name) = subject else { return Vec::new() };
    let lives = fleet.nodes().filter(|node| node.row.name == *name);
    let story = |node: &crate::fleet::Node| {
        let row = &node.row;
        let group = row.group.as_deref().map(|group| format!(" in group {group}")).unwrap_or_default();
        let mut events = vec![Event { at: row.created, what: format!("created{group}") }];
        events.extend(row.ready.map(|at| Event { at, what: format!("ready, {} later", at.since(row.created)) }));
        let there = pods.iter().filter(|pod| pod.node.as_deref() == Some(name.as_str()));
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
        events.extend(row.deleted.map(|at| Event { at, what: "removed".to_owned() }));
        events.retain(|event| window.contains(event.at) || event.at < window.start);
        events.sort_by_key(|event| event.at);
        NodeStory { node: name.clone(), events }
    };
    lives.map(story).collect()
}

fn groups(subject: &Subject, fleet: &Fleet, meta: &RunMeta, window: Window) -> Vec<GroupStory> {
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
    vec![GroupStory { group: name.clone(), events }]
}

fn rfc3339<S: serde::Serializer>(time: &SimTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&time.to_rfc3339_micros())
}

fn seconds<S: serde::Serializer>(time: &SimDuration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

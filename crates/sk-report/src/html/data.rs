//! The data for the page's script: times in milliseconds since the run's start, everything bounded.
//!
//! Pods, messages and nodes are columns with interned strings, which take a third of the bytes of a list of objects
//! and load faster.

use serde::Serialize;
use sk_core::{SimDuration, SimTime};
use sk_record::EndedBy;

use crate::analysis::{Analysis, NodeStory};
use crate::escape::embedded_bytes;
use crate::events::{Events, Minute, Names, PodLine, Scalings};
use crate::incidents::Incident;
use crate::step::{Step, Window};

/// Points of one curve; a longer one is drawn by the peak of each of this many parts, finer than any screen.
const POINTS_MAX: usize = 4_000;
/// Points of a node group's curve: 21 of them at most.
const GROUP_POINTS_MAX: usize = 1_000;
/// Groups drawn apart; the rest, the smallest, are drawn together.
const GROUPS_MAX: usize = 20;
/// What nodes may take in the page.
const NODES_MAX_BYTES: usize = 700_000;
/// What a node takes beside its name: five numbers.
const NODE_BYTES: usize = 40;
/// What the loads of a node take.
const LOADS_BYTES: usize = 400;

pub(crate) type Point = (i64, i64);

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Data<'a> {
    /// The run's start in milliseconds since the epoch.
    start: i64,
    length: i64,
    currency: &'a str,
    running: Vec<Point>,
    pending: Vec<Point>,
    empty: Vec<Point>,
    groups: Vec<GroupData>,
    recorded: Option<RecordedData>,
    /// Faults and changes of the scenario's timeline: when, until when, what.
    faults: Vec<(i64, Option<i64>, &'a str)>,
    /// When, whose, from how many replicas to how many.
    changes: Vec<(i64, &'a str, Option<f64>, Option<f64>)>,
    waits: Vec<WaitData<'a>>,
    owners: Vec<&'a str>,
    node_names: Vec<&'a str>,
    texts: Vec<&'a str>,
    pods: PodColumns,
    answers: AnswerColumns,
    minutes: MinuteRows,
    scalings: ScalingColumns<'a>,
    nodes: NodeColumns<'a>,
    /// Seconds, at each percent.
    latency: Vec<f64>,
    left_out: LeftOut,
}

#[derive(Debug, Serialize)]
struct GroupData {
    name: String,
    /// Of an hour of one node.
    price: Option<f64>,
    points: Vec<Point>,
}

#[derive(Debug, Serialize)]
struct RecordedData {
    running: Vec<Point>,
    pending: Vec<Point>,
    nodes: Vec<Point>,
}

#[derive(Debug, Serialize)]
struct WaitData<'a> {
    owner: &'a str,
    from: i64,
    to: i64,
}

/// Pods, column by column. Times after `created` are counted from it; -1 is never.
#[derive(Debug, Default, Serialize)]
struct PodColumns {
    /// `~` and what follows the namespace and the owner's name, or `=` and the whole name.
    name: Vec<String>,
    owner: Vec<i64>,
    created: Vec<i64>,
    scheduled: Vec<i64>,
    started: Vec<i64>,
    ended: Vec<i64>,
    node: Vec<i64>,
    how: Vec<u8>,
    why: Vec<i64>,
}

/// Answers of the scheduler, column by column.
#[derive(Debug, Default, Serialize)]
struct AnswerColumns {
    at: Vec<i64>,
    pod: Vec<u32>,
    node: Vec<i64>,
    text: Vec<i64>,
}

/// What is only counted: owner, minute, waited, longest in ms, never placed, evicted, preempted, failed.
#[derive(Debug, Serialize)]
struct MinuteRows {
    width: i64,
    rows: Vec<[i64; 8]>,
}

/// Decisions of the autoscaler, column by column; -1 is nothing.
#[derive(Debug, Serialize)]
struct ScalingColumns<'a> {
    subjects: Vec<&'a str>,
    texts: Vec<&'a str>,
    at: Vec<i64>,
    /// The kind of decision: `scale-up`.
    what: Vec<&'static str>,
    about: Vec<i64>,
    pods: Vec<i64>,
    text: Vec<i64>,
}

#[derive(Debug, Default, Serialize)]
struct NodeColumns<'a> {
    name: Vec<&'a str>,
    group: Vec<&'a str>,
    created: Vec<i64>,
    ready: Vec<Option<i64>>,
    deleted: Vec<Option<i64>>,
    /// Milliseconds with nothing to do.
    empty: Vec<i64>,
    /// Percent of CPU asked for in each part of the window, of the nodes that have it.
    loads: Vec<Option<Vec<Option<i64>>>>,
}

/// What the page does not hold, so that it can say so.
#[derive(Debug, Serialize)]
struct LeftOut {
    /// Pods to which nothing happened.
    quiet: u64,
    answers: u64,
    scalings: u64,
    nodes: usize,
}

/// The data of one run, and what it tells of its pods.
pub(super) fn of<'a>(analysis: &'a Analysis, events: &'a Events) -> Data<'a> {
    let clock = Clock { window: analysis.window };
    let nodes = nodes(analysis, clock);
    let change = |change: &'_ crate::changes::Change| (clock.millis(change.at), change.old, change.new);
    let changes = analysis.changes.iter().map(|one| (one.owner.as_str(), change(one)));
    Data {
        start: analysis.window.start.as_micros().div_euclid(1_000),
        length: clock.millis(analysis.window.end),
        currency: &analysis.meta.currency,
        running: clock.points(&analysis.curves.running, POINTS_MAX),
        pending: clock.points(&analysis.curves.pending, POINTS_MAX),
        empty: clock.points(&analysis.curves.empty, POINTS_MAX),
        groups: groups(analysis, clock),
        recorded: analysis.recorded.as_ref().map(|recorded| {
            let [running, pending, nodes] = [&recorded.running, &recorded.pending, &recorded.nodes].map(|points| {
                points.iter().map(|(at, value)| (clock.millis(SimTime::from_micros(*at)), *value)).collect()
            });
            RecordedData { running, pending, nodes }
        }),
        changes: changes.map(|(owner, (at, old, new))| (at, owner, old, new)).collect(),
        faults: faults(analysis, clock),
        waits: waits(analysis, clock),
        owners: events.owners.in_order(),
        node_names: events.nodes.in_order(),
        texts: events.texts.in_order(),
        pods: pods(events, clock),
        answers: answers(events, clock),
        minutes: minutes(events),
        scalings: scalings(&analysis.scalings, clock),
        left_out: LeftOut {
            quiet: events.quiet,
            answers: events.answers_left_out,
            scalings: analysis.scalings.left_out,
            nodes: analysis.nodes_total - nodes.name.len(),
        },
        nodes,
        latency: analysis.latency_percentiles.iter().map(|span| span.as_secs_f64()).collect(),
    }
}

/// A curve as points of the page, in milliseconds since the window's start.
pub(crate) fn points(step: &Step, window: Window) -> Vec<Point> {
    Clock { window }.points(step, GROUP_POINTS_MAX)
}

#[derive(Clone, Copy)]
struct Clock {
    window: Window,
}

impl Clock {
    fn millis(self, time: SimTime) -> i64 {
        time.since(self.window.start).as_micros() / 1_000
    }

    /// From one moment to a later one; -1 for never.
    fn after(from: SimTime, to: Option<SimTime>) -> i64 {
        to.map_or(-1, |to| (to.since(from).as_micros() / 1_000).max(0))
    }

    fn points(self, step: &Step, most: usize) -> Vec<Point> {
        let reduced = step.reduced(self.window, most);
        reduced.iter().map(|(time, value)| (self.millis(*time), *value)).collect()
    }
}

fn groups(analysis: &Analysis, clock: Clock) -> Vec<GroupData> {
    let mut largest: Vec<(&String, &Step)> = analysis.curves.groups.iter().collect();
    largest.sort_by_key(|(_, step)| std::cmp::Reverse(step.integral()));
    let rest = largest.split_off(largest.len().min(GROUPS_MAX));
    let price = |name: &str| analysis.meta.groups.iter().find(|group| group.name == name)?.price_per_hour;
    let named = largest.iter().map(|(name, step)| {
        let shown = if name.is_empty() { "(no group)" } else { name };
        GroupData { name: shown.to_owned(), price: price(name), points: clock.points(step, GROUP_POINTS_MAX) }
    });
    let mut groups: Vec<_> = named.collect();
    if !rest.is_empty() {
        let sum = Step::sum(rest.iter().map(|(_, step)| *step), analysis.window);
        let name = format!("{} other groups", rest.len());
        groups.push(GroupData { name, price: None, points: clock.points(&sum, GROUP_POINTS_MAX) });
    }
    groups
}

/// Faults of the scenario's timeline that a page tells; a timeline may have 10,000.
const FAULTS_MAX: usize = 500;
/// What is shown of one fault: it may name every node of a zone.
const FAULT_MAX_CHARS: usize = 200;

fn faults(analysis: &Analysis, clock: Clock) -> Vec<(i64, Option<i64>, &str)> {
    let shown = |what: &'_ str| what.char_indices().nth(FAULT_MAX_CHARS).map_or(what.len(), |(end, _)| end);
    let all = analysis.meta.timeline.iter().filter(|fault| analysis.window.contains(fault.at));
    all.take(FAULTS_MAX)
        .map(|fault| {
            let until = fault.until.map(|until| clock.millis(until));
            (clock.millis(fault.at), until, &fault.what[..shown(&fault.what)])
        })
        .collect()
}

fn waits(analysis: &Analysis, clock: Clock) -> Vec<WaitData<'_>> {
    let wait = |incident: &'_ Incident| (clock.millis(incident.from), clock.millis(incident.to));
    let timed = analysis.incidents.iter().map(|incident| (incident.owner.as_str(), wait(incident)));
    timed.map(|(owner, (from, to))| WaitData { owner, from, to }).collect()
}

fn place(place: Option<u32>) -> i64 {
    place.filter(|place| *place != Names::OTHER).map_or(-1, i64::from)
}

fn pods(events: &Events, clock: Clock) -> PodColumns {
    let owners = events.owners.in_order();
    let mut columns = PodColumns::default();
    for pod in &events.pods {
        columns.name.push(short_name(pod, owners.get(pod.owner as usize).copied().unwrap_or_default()));
        columns.owner.push(place(Some(pod.owner)));
        columns.created.push(clock.millis(pod.created));
        columns.scheduled.push(Clock::after(pod.created, pod.scheduled));
        columns.started.push(Clock::after(pod.created, pod.started));
        columns.ended.push(Clock::after(pod.created, pod.ended));
        columns.node.push(place(pod.node));
        columns.how.push(code(pod.how));
        // -1: never refused; -2: refused, and there was no room for the reason.
        columns.why.push(pod.waited_for.map_or(-1, |text| if text == Names::OTHER { -2 } else { i64::from(text) }));
    }
    columns
}

/// A pod's name without what its owner's name says already.
fn short_name(pod: &PodLine, owner: &str) -> String {
    let mut parts = owner.splitn(3, '/');
    let (namespace, name) = (parts.next().unwrap_or_default(), parts.nth(1).unwrap_or_default());
    let rest = pod.name.strip_prefix(namespace).and_then(|rest| rest.strip_prefix('/')?.strip_prefix(name));
    match rest.filter(|_| !name.is_empty()) {
        Some(rest) => format!("~{rest}"),
        None => format!("={}", pod.name),
    }
}

const fn code(how: Option<EndedBy>) -> u8 {
    match how {
        None => 0,
        Some(EndedBy::Finished) => 1,
        Some(EndedBy::Failed) => 2,
        Some(EndedBy::Deleted) => 3,
        Some(EndedBy::Evicted) => 4,
        Some(EndedBy::Preempted) => 5,
        Some(EndedBy::NodeLost) => 6,
    }
}

fn answers(events: &Events, clock: Clock) -> AnswerColumns {
    let mut columns = AnswerColumns::default();
    for answer in &events.answers {
        columns.at.push(clock.millis(answer.at));
        columns.pod.push(answer.pod);
        columns.node.push(place(answer.node));
        columns.text.push(place(answer.text));
    }
    columns
}

fn minutes(events: &Events) -> MinuteRows {
    let row = |(owner, minute, of): (u32, i64, &Minute)| {
        let longest = of.longest.as_micros() / 1_000;
        [place(Some(owner)), minute, of.waited, longest, of.never_placed, of.evicted, of.preempted, of.failed]
    };
    let width = events.minutes.width.as_micros() / 1_000;
    MinuteRows { width, rows: events.minutes.rows().map(row).collect() }
}

fn scalings(scalings: &Scalings, clock: Clock) -> ScalingColumns<'_> {
    let rows = &scalings.rows;
    ScalingColumns {
        subjects: scalings.subjects.in_order(),
        texts: scalings.texts.in_order(),
        at: rows.iter().map(|row| clock.millis(row.at)).collect(),
        what: rows.iter().map(|row| row.decision.as_str()).collect(),
        about: rows.iter().map(|row| place(row.about)).collect(),
        pods: rows.iter().map(|row| row.pods).collect(),
        text: rows.iter().map(|row| place(row.text)).collect(),
    }
}

/// The nodes whose load is known come first, as long as there is room; then all are in order of creation again.
fn nodes(analysis: &Analysis, clock: Clock) -> NodeColumns<'_> {
    let mut bytes = 0;
    let mut fits = |story: &NodeStory| {
        let loads = if story.loads.is_empty() { 0 } else { LOADS_BYTES };
        let group = story.row.group.as_deref().map_or(0, embedded_bytes);
        bytes += NODE_BYTES + embedded_bytes(&story.row.name) + group + loads;
        bytes <= NODES_MAX_BYTES
    };
    let (known, others): (Vec<_>, Vec<_>) =
        analysis.nodes.iter().enumerate().partition(|(_, story)| !story.loads.is_empty());
    let mut told: Vec<(usize, &NodeStory)> =
        known.into_iter().chain(others).take_while(|(_, story)| fits(story)).collect();
    told.sort_by_key(|(place, _)| *place);
    let mut columns = NodeColumns::default();
    let percent = |load: f64| (load * 100.0).round() as i64;
    for (_, story) in told {
        columns.name.push(&story.row.name);
        columns.group.push(story.row.group.as_deref().unwrap_or_default());
        columns.created.push(clock.millis(story.row.created));
        columns.ready.push(story.row.ready.map(|time| clock.millis(time)));
        columns.deleted.push(story.row.deleted.map(|time| clock.millis(time)));
        columns.empty.push(SimDuration::from_micros((story.empty_hours * 3.6e9) as i64).as_micros() / 1_000);
        let loads = || story.loads.iter().map(|load| load.map(percent)).collect();
        columns.loads.push((!story.loads.is_empty()).then(loads));
    }
    columns
}

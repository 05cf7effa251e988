//! What the page's script draws from: times in milliseconds since the run's start, everything bounded.

use std::collections::BTreeMap;

use serde::Serialize;
use sk_core::{SimDuration, SimTime};
use sk_record::Outcome;

use crate::analysis::Analysis;
use crate::incidents::Incident;
use crate::step::{Step, Window};
use crate::words;

/// Points of one curve; a longer one is drawn by the peak of each of this many parts, finer than any screen.
const POINTS_MAX: usize = 2_000;

/// Groups drawn apart; the rest, the smallest, are drawn together.
const GROUPS_MAX: usize = 20;

/// Text of decisions in the page. The answers to ten thousand pods are mostly the same few messages, kept once; should
/// they all differ, the later ones stay in decisions.parquet.
const DECISIONS_MAX_BYTES: usize = 3_000_000;

pub(crate) type Point = (i64, i64);

#[derive(Debug, Serialize)]
pub(super) struct Data<'a> {
    /// The run's start in milliseconds since the epoch, for the tooltip's clock.
    start: i64,
    length: i64,
    running: Vec<Point>,
    pending: Vec<Point>,
    empty: Vec<Point>,
    groups: Vec<(String, Vec<Point>)>,
    marks: Vec<(i64, String)>,
    marked: String,
    waits: Vec<WaitData<'a>>,
    /// Messages, each once: decisions repeat them.
    messages: Vec<&'a str>,
    decisions: Vec<DecisionData<'a>>,
    nodes: Vec<NodeData<'a>>,
    /// Seconds, at each percent.
    latency: Vec<f64>,
}

#[derive(Debug, Serialize)]
struct WaitData<'a> {
    owner: &'a str,
    from: i64,
    to: i64,
}

/// When, in which wait, about which pod, the node or nothing, the message's place or nothing.
type DecisionData<'a> = (i64, usize, String, Option<&'a str>, Option<usize>);

#[derive(Debug, Serialize)]
struct NodeData<'a> {
    name: &'a str,
    group: &'a str,
    created: i64,
    ready: Option<i64>,
    deleted: Option<i64>,
    empty: String,
    /// Percent of CPU asked for in each part of the window.
    loads: Vec<Option<i64>>,
}

/// The data of one run.
pub(super) fn of(analysis: &Analysis) -> Data<'_> {
    let clock = Clock { window: analysis.window };
    let (messages, decisions) = decisions(analysis, clock);
    let marks = analysis.marks.as_ref();
    Data {
        start: analysis.window.start.as_micros().div_euclid(1_000),
        length: clock.millis(analysis.window.end),
        running: clock.points(&analysis.curves.running),
        pending: clock.points(&analysis.curves.pending),
        empty: clock.points(&analysis.curves.empty),
        groups: groups(analysis, clock),
        marks: marks.map(|marks| marks.changes.iter().map(|change| clock.mark(change)).collect()).unwrap_or_default(),
        marked: marks.map(|marks| words::owner_name(&marks.owner)).unwrap_or_default(),
        waits: waits(analysis, clock),
        messages,
        decisions,
        nodes: nodes(analysis, clock),
        latency: analysis.latency_percentiles.iter().map(|span| span.as_secs_f64()).collect(),
    }
}

/// A curve as points of the page, in milliseconds since the window's start.
pub(crate) fn points(step: &Step, window: Window) -> Vec<Point> {
    Clock { window }.points(step)
}

#[derive(Clone, Copy)]
struct Clock {
    window: Window,
}

impl Clock {
    fn millis(self, time: SimTime) -> i64 {
        time.since(self.window.start).as_micros() / 1_000
    }

    fn points(self, step: &Step) -> Vec<Point> {
        if step.points().len() <= POINTS_MAX {
            return step.points().iter().map(|(time, value)| (self.millis(*time), *value)).collect();
        }
        let peaks = step.peaks(self.window, POINTS_MAX);
        let mut points: Vec<Point> =
            self.window.parts(POINTS_MAX).zip(peaks).map(|(part, peak)| (self.millis(part.start), peak)).collect();
        points.dedup_by_key(|point| point.1);
        points
    }

    fn mark(self, (time, value): &(SimTime, Option<f64>)) -> (i64, String) {
        let label = value.map_or_else(|| "deleted".to_owned(), |value| format!("×{}", words::figure(value)));
        (self.millis(*time), label)
    }
}

fn groups(analysis: &Analysis, clock: Clock) -> Vec<(String, Vec<Point>)> {
    let mut largest: Vec<(&String, &Step)> = analysis.curves.groups.iter().collect();
    largest.sort_by_key(|(_, step)| std::cmp::Reverse(step.integral()));
    let rest = largest.split_off(largest.len().min(GROUPS_MAX));
    let named = largest.iter().map(|(name, step)| {
        let name = if name.is_empty() { "(no group)" } else { name };
        (name.to_owned(), clock.points(step))
    });
    let mut groups: Vec<_> = named.collect();
    if !rest.is_empty() {
        let sum = Step::sum(rest.iter().map(|(_, step)| *step), analysis.window);
        groups.push((format!("{} other groups", rest.len()), clock.points(&sum)));
    }
    groups
}

fn waits(analysis: &Analysis, clock: Clock) -> Vec<WaitData<'_>> {
    let wait = |incident: &'_ Incident| (clock.millis(incident.from), clock.millis(incident.to));
    let timed = analysis.incidents.iter().map(|incident| (incident.owner.as_str(), wait(incident)));
    timed.map(|(owner, (from, to))| WaitData { owner, from, to }).collect()
}

fn decisions(analysis: &Analysis, clock: Clock) -> (Vec<&str>, Vec<DecisionData<'_>>) {
    let mut messages: Vec<&str> = Vec::new();
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    let mut rows = Vec::new();
    let mut bytes = 0;
    for (wait, decision) in &analysis.decisions {
        let node = decision.node.as_deref().filter(|_| decision.outcome == Outcome::Scheduled);
        let pod = format!("{}/{}", decision.namespace, decision.pod);
        let new_message = decision.message.as_deref().filter(|message| !known.contains_key(message));
        bytes += [Some(pod.as_str()), node, new_message].into_iter().flatten().map(embedded_bytes).sum::<usize>();
        if bytes > DECISIONS_MAX_BYTES {
            break;
        }
        let message = decision.message.as_deref().map(|message| {
            *known.entry(message).or_insert_with(|| {
                messages.push(message);
                messages.len() - 1
            })
        });
        rows.push((clock.millis(decision.time), *wait, pod, node, message));
    }
    (messages, rows)
}

/// What a text takes in the page: `<`, quotes and control characters are written as up to six.
fn embedded_bytes(text: &str) -> usize {
    let longer = text.bytes().filter(|byte| matches!(byte, b'<' | b'"' | b'\\' | 0..32)).count();
    text.len() + 5 * longer
}

fn nodes(analysis: &Analysis, clock: Clock) -> Vec<NodeData<'_>> {
    let percent = |load: f64| (load * 100.0).round() as i64;
    let of = |story: &'_ crate::analysis::NodeStory| story.loads.iter().map(|load| load.map(percent)).collect();
    analysis
        .nodes
        .iter()
        .map(|story| NodeData {
            name: &story.row.name,
            group: story.row.group.as_deref().unwrap_or_default(),
            created: clock.millis(story.row.created),
            ready: story.row.ready.map(|time| clock.millis(time)),
            deleted: story.row.deleted.map(|time| clock.millis(time)),
            empty: SimDuration::from_micros((story.empty_hours * 3.6e9) as i64).to_string(),
            loads: of(story),
        })
        .collect()
}

//! Which figures are compared, how they are written, and which way is better.

use sk_core::SimDuration;

use super::column::Column;
use super::noise;
use crate::figures::Summary;
use crate::words;

/// Hours of a month and of a year, as price lists of machines count them.
const HOURS_PER_MONTH: f64 = 730.0;
const HOURS_PER_YEAR: f64 = 8_760.0;

/// Which way a figure should go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Less is better.
    Lower,
    /// More is better.
    Higher,
    /// Neither: it is a fact, not a quality.
    Neither,
}

/// How a figure is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seconds.
    Time,
    /// A whole number.
    Count,
    /// Hours and the like.
    Number,
    /// In the scenario's currency.
    Money,
    /// Of a whole; 0.58 is 58 %.
    Share,
}

/// What a difference means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// Nothing changed.
    Same,
    /// It changed by no more than chance explains.
    Noise,
    /// It changed for the better.
    Better,
    /// It changed for the worse.
    Worse,
    /// It changed, and nobody can say whether that is good.
    Changed,
}

/// One figure in every column.
#[derive(Debug)]
pub struct Row {
    /// What people call it.
    pub label: &'static str,
    /// The figure's path, or the paths it is made of.
    pub path: &'static str,
    /// How it is written.
    pub unit: Unit,
    /// Its mean in every column; nothing where a run does not have it.
    pub means: Vec<Option<f64>>,
    /// Against the baseline; one for each column but the first.
    pub changes: Vec<Option<Change>>,
}

/// One figure against the baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// How much more than in the baseline.
    pub difference: f64,
    /// As a share of the baseline, unless that is nothing.
    pub relative: Option<f64>,
    /// Half the width of the 95 % interval of the difference, if there are repetitions.
    pub noise: Option<f64>,
    /// What it means.
    pub judged: Judged,
}

#[derive(Clone, Copy)]
struct Definition {
    label: &'static str,
    path: &'static str,
    unit: Unit,
    better: Better,
    /// Left out while it is the same everywhere.
    only_if_it_differs: bool,
    value: fn(&Summary, hours: f64) -> Option<f64>,
}

const fn row(
    label: &'static str,
    path: &'static str,
    unit: Unit,
    better: Better,
    value: fn(&Summary, f64) -> Option<f64>,
) -> Definition {
    Definition { label, path, unit, better, only_if_it_differs: false, value }
}

const fn rare(row: Definition) -> Definition {
    Definition { only_if_it_differs: true, ..row }
}

/// In the order in which they are shown.
const ROWS: [Definition; 22] = [
    rare(row("pods created", "pods.created", Unit::Count, Better::Neither, |s, _| count(s.pods.created))),
    rare(row("pods that ran", "pods.ran", Unit::Count, Better::Higher, |s, _| count(s.pods.ran))),
    rare(row("pods that failed", "pods.failed", Unit::Count, Better::Lower, |s, _| count(s.pods.failed))),
    rare(row("not simulated", "missing.pods", Unit::Count, Better::Lower, |s, _| count(s.missing.pods))),
    row("start latency p50", "start_latency.p50", Unit::Time, Better::Lower, |s, _| time(s.start_latency.p50)),
    row("start latency p99", "start_latency.p99", Unit::Time, Better::Lower, |s, _| time(s.start_latency.p99)),
    row("pods that waited", "pending.pods", Unit::Count, Better::Lower, |s, _| count(s.pending.pods)),
    row("pending longest", "pending.longest", Unit::Time, Better::Lower, |s, _| time(s.pending.longest)),
    row("unschedulable pods", "unschedulable.pods", Unit::Count, Better::Lower, |s, _| count(s.unschedulable.pods)),
    row("nodes mean", "nodes.mean", Unit::Number, Better::Neither, |s, _| Some(s.nodes.mean)),
    row("nodes max", "nodes.max", Unit::Count, Better::Neither, |s, _| count(s.nodes.max)),
    row("node-hours", "node_hours.total", Unit::Number, Better::Lower, |s, _| Some(s.node_hours.total)),
    row("node-hours empty", "node_hours.empty", Unit::Number, Better::Lower, |s, _| Some(s.node_hours.empty)),
    row("requested CPU", "requested.cpu", Unit::Share, Better::Higher, |s, _| Some(s.requested.cpu)),
    rare(row("requested memory", "requested.memory", Unit::Share, Better::Higher, |s, _| Some(s.requested.memory))),
    row("cost", "cost.total", Unit::Money, Better::Lower, |s, _| s.cost.as_ref().map(|cost| cost.total)),
    row("cost per hour", "cost.total", Unit::Money, Better::Lower, |s, hours| per(s, hours, 1.0)),
    row("cost per month", "cost.total", Unit::Money, Better::Lower, |s, hours| per(s, hours, HOURS_PER_MONTH)),
    row("cost per year", "cost.total", Unit::Money, Better::Lower, |s, hours| per(s, hours, HOURS_PER_YEAR)),
    row("evicted pods", "evicted.pods", Unit::Count, Better::Lower, |s, _| count(s.evicted.pods)),
    rare(row("preempted pods", "preempted.pods", Unit::Count, Better::Lower, |s, _| count(s.preempted.pods))),
    rare(row("nodes came or went", "churn.nodes", Unit::Count, Better::Lower, |s, _| count(s.churn.nodes))),
];

fn count(count: i64) -> Option<f64> {
    Some(count as f64)
}

fn time(time: SimDuration) -> Option<f64> {
    Some(time.as_secs_f64())
}

fn per(summary: &Summary, hours: f64, of: f64) -> Option<f64> {
    let cost = summary.cost.as_ref()?;
    (hours > 0.0).then(|| cost.total / hours * of)
}

/// The rows that any column has something to say about.
pub(super) fn of(columns: &[Column]) -> Vec<Row> {
    ROWS.iter().filter_map(|definition| of_one(definition, columns)).collect()
}

fn of_one(definition: &Definition, columns: &[Column]) -> Option<Row> {
    let values: Vec<Option<Vec<f64>>> = columns.iter().map(|column| values(definition, column)).collect();
    let means: Vec<Option<f64>> = values.iter().map(|values| values.as_deref().map(noise::mean)).collect();
    let is_same = means.iter().all(|mean| *mean == means[0]);
    if means.iter().all(Option::is_none) || (definition.only_if_it_differs && is_same) {
        return None;
    }
    let changes = (1..columns.len()).map(|place| {
        let is_paired = columns[0].seeds() == columns[place].seeds();
        let mut change = change(definition.better, values[0].as_deref()?, values[place].as_deref()?, is_paired)?;
        // What nobody can see in the table is neither better nor worse.
        if change.noise.is_none() && reads_alike(definition.unit, means[0], means[place]) {
            change.judged = if change.difference == 0.0 { Judged::Same } else { Judged::Changed };
        }
        Some(change)
    });
    let changes = changes.collect();
    Some(Row { label: definition.label, path: definition.path, unit: definition.unit, means, changes })
}

fn reads_alike(unit: Unit, old: Option<f64>, new: Option<f64>) -> bool {
    let text = |value: Option<f64>| value.map(|value| unit.text(value, ""));
    text(old) == text(new)
}

fn values(definition: &Definition, column: &Column) -> Option<Vec<f64>> {
    let of = |member: &super::Member| {
        if member.unknown.contains(&definition.path) {
            return None;
        }
        let hours = member.meta.end.since(member.meta.start).as_secs_f64() / 3_600.0;
        (definition.value)(&member.summary, hours)
    };
    column.members.iter().map(of).collect()
}

fn change(better: Better, baseline: &[f64], new: &[f64], is_paired: bool) -> Option<Change> {
    let (old, now) = (noise::mean(baseline), noise::mean(new));
    let difference = now - old;
    let noise = noise::bound(baseline, new, is_paired);
    let judged = match better {
        _ if difference == 0.0 => Judged::Same,
        _ if noise.is_some_and(|noise| difference.abs() <= noise) => Judged::Noise,
        Better::Neither => Judged::Changed,
        Better::Lower if difference < 0.0 => Judged::Better,
        Better::Higher if difference > 0.0 => Judged::Better,
        Better::Lower | Better::Higher => Judged::Worse,
    };
    Some(Change { difference, relative: (old != 0.0).then(|| difference / old), noise, judged })
}

impl Unit {
    /// A value for people.
    pub fn text(self, value: f64, currency: &str) -> String {
        match self {
            Self::Time => seconds(value).to_string(),
            Self::Count if value.fract() == 0.0 => words::grouped(value as i64),
            Self::Count | Self::Number => words::decimal(value),
            Self::Money => words::money(value, currency),
            Self::Share => words::percent(value),
        }
    }

    /// A difference, or a bound of one, without its sign. Times and counts are told as such, hours and money as shares
    /// of the baseline.
    fn size(self, size: f64, baseline: Option<f64>, currency: &str) -> String {
        match (self, baseline) {
            (Self::Number | Self::Money, Some(old)) if old != 0.0 => format!("{:.1}%", 100.0 * size / old.abs()),
            (Self::Share, _) => format!("{:.1} points", 100.0 * size),
            (unit, _) => unit.text(size, currency),
        }
    }
}

impl Row {
    /// The value in one column.
    pub fn value(&self, column: usize, currency: &str) -> String {
        self.means[column].map_or_else(|| "–".to_owned(), |mean| self.unit.text(mean, currency))
    }

    /// `+2m18s`, `-12.8%`, `=`: the difference of one column from the baseline.
    pub fn difference(&self, change: &Change, currency: &str) -> String {
        if change.judged == Judged::Same {
            return "=".to_owned();
        }
        let sign = if change.difference < 0.0 { '-' } else { '+' };
        format!("{sign}{}", self.unit.size(change.difference.abs(), self.means[0], currency))
    }

    /// `±4s`, or nothing where noise is unknown.
    pub fn noise(&self, change: &Change, currency: &str) -> String {
        let bound = change.noise.filter(|_| change.judged != Judged::Same);
        bound.map(|bound| format!("±{}", self.unit.size(bound, self.means[0], currency))).unwrap_or_default()
    }
}

impl Judged {
    /// The word printed for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Same | Self::Changed => "",
            Self::Noise => "noise",
            Self::Better => "better",
            Self::Worse => "WORSE",
        }
    }
}

fn seconds(value: f64) -> SimDuration {
    SimDuration::from_micros((value * 1e6).round() as i64)
}

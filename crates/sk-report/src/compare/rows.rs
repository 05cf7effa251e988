//! The rows of a comparison: which figures differ, by how much, and whether that is better or worse.

use super::column::Column;
use super::noise;
use crate::columns::{Better, Column as FigureColumn, Unit};
use crate::figure::{Figure, ToFigure};
use crate::figures::RUN_COLUMNS;

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
    /// It changed, and neither direction is better.
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

/// The rows that any column has something to say about.
pub(super) fn of(columns: &[Column]) -> Vec<Row> {
    // One tree for each run, not one for each run and figure.
    let trees: Vec<Vec<Figure>> = columns.iter().map(trees).collect();
    RUN_COLUMNS.iter().filter_map(|shown| of_one(shown, columns, &trees)).collect()
}

/// The figures of each of a column's runs, without its owners and namespaces: there may be a hundred thousand of them.
pub(super) fn trees(column: &Column) -> Vec<Figure> {
    let tree = |member: &super::Member| match member.summary.figure() {
        Figure::Fields(fields) => {
            Figure::Fields(fields.into_iter().filter(|(_, figure)| !matches!(figure, Figure::Entries(_))).collect())
        }
        other => other,
    };
    column.members.iter().map(tree).collect()
}

fn of_one(definition: &FigureColumn, columns: &[Column], trees: &[Vec<Figure>]) -> Option<Row> {
    let of_column = |(column, trees): (&Column, &Vec<Figure>)| values(definition, column, trees);
    let values: Vec<Option<Vec<f64>>> = columns.iter().zip(trees).map(of_column).collect();
    let means: Vec<Option<f64>> = values.iter().map(|values| values.as_deref().map(noise::mean)).collect();
    let is_same = means.iter().all(|mean| *mean == means[0]);
    if means.iter().all(Option::is_none) || (definition.is_rare && is_same) {
        return None;
    }
    let changes = (1..columns.len()).map(|place| {
        let is_paired = columns[0].seeds() == columns[place].seeds();
        let mut change = change(definition.better, values[0].as_deref()?, values[place].as_deref()?, is_paired)?;
        // A difference too small to show in the table is neither better nor worse.
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

pub(super) fn values(definition: &FigureColumn, column: &Column, trees: &[Figure]) -> Option<Vec<f64>> {
    let of = |(member, tree): (&super::Member, &Figure)| {
        if member.unknown.contains(&definition.path) {
            return None;
        }
        let hours = member.meta.end.since(member.meta.start).as_secs_f64() / 3_600.0;
        definition.value(tree, hours)
    };
    column.members.iter().zip(trees).map(of).collect()
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

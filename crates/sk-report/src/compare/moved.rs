//! Which owners, namespaces and groups changed most between two columns.

use std::collections::BTreeMap;

use sk_core::SimDuration;

use super::column::Column;
use super::noise::mean;
use crate::columns::Unit;
use crate::figures::Summary;

/// Entries shown of each sort.
const EACH: usize = 3;

/// One entry that moved.
#[derive(Clone, Debug, PartialEq)]
pub struct Moved {
    /// `owners`, `namespaces` or `groups`.
    pub sort: &'static str,
    /// Which one.
    pub name: String,
    /// The figure, e.g. `start_latency.p99`.
    pub figure: &'static str,
    /// How it is written.
    pub unit: Unit,
    /// In the baseline; nothing if it is not there.
    pub old: Option<f64>,
    /// In the column.
    pub new: Option<f64>,
}

impl Moved {
    /// How much more than in the baseline. What is not there counts as nothing.
    pub fn difference(&self) -> f64 {
        self.new.unwrap_or(0.0) - self.old.unwrap_or(0.0)
    }

    /// `search/Deployment/indexer p99 +2m51s`.
    pub fn sentence(&self) -> String {
        let difference = self.difference();
        let sign = if difference < 0.0 { '-' } else { '+' };
        let what = match self.figure {
            "start_latency.p99" => "start p99",
            "pending.longest" => "longest wait",
            other => other,
        };
        let what = if self.sort == "groups" { "node-hours" } else { what };
        let note = match (self.old, self.new) {
            (None, _) => " (only here)",
            (_, None) => " (not here)",
            _ => "",
        };
        format!("{} {what} {sign}{}{note}", self.name, self.unit.text(difference.abs(), ""))
    }
}

/// What moved most, owners first.
pub(super) fn between(baseline: &Column, column: &Column) -> Vec<Moved> {
    let sorts = [
        ("owners", "start_latency.p99", Unit::Time, owners as fn(&Summary) -> BTreeMap<&str, f64>),
        ("namespaces", "pending.longest", Unit::Time, namespaces),
        ("groups", "node_hours.total", Unit::Number, groups),
    ];
    sorts
        .into_iter()
        .flat_map(|(sort, figure, unit, of)| {
            let (old, new) = (means(baseline, of), means(column, of));
            let names = old.keys().chain(new.keys()).copied().collect::<std::collections::BTreeSet<&str>>();
            let moved = names.into_iter().map(|name| {
                let (old, new) = (old.get(name).copied(), new.get(name).copied());
                Moved { sort, name: name.to_owned(), figure, unit, old, new }
            });
            let mut moved: Vec<Moved> = moved.filter(|moved| moved.difference() != 0.0).collect();
            moved.sort_by(|a, b| b.difference().abs().total_cmp(&a.difference().abs()));
            moved.truncate(EACH);
            moved
        })
        .collect()
}

fn owners(summary: &Summary) -> BTreeMap<&str, f64> {
    summary.owners.iter().map(|(name, owner)| (name.as_str(), secs(owner.start_latency.p99))).collect()
}

fn namespaces(summary: &Summary) -> BTreeMap<&str, f64> {
    summary.namespaces.iter().map(|(name, figures)| (name.as_str(), secs(figures.pending.longest))).collect()
}

fn groups(summary: &Summary) -> BTreeMap<&str, f64> {
    summary.groups.iter().map(|(name, group)| (name.as_str(), group.node_hours.total)).collect()
}

fn secs(time: SimDuration) -> f64 {
    time.as_secs_f64()
}

/// The mean over the runs that have the entry.
fn means(column: &Column, of: fn(&Summary) -> BTreeMap<&str, f64>) -> BTreeMap<&str, f64> {
    let mut values: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (name, value) in column.members.iter().flat_map(|member| of(&member.summary)) {
        values.entry(name).or_default().push(value);
    }
    values.into_iter().map(|(name, values)| (name, mean(&values))).collect()
}

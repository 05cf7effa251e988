//! The study on a terminal and in Markdown: a line for each variant, and one for each parameter.

use super::super::Comparison;
use super::super::rows::Row;
use super::super::table::{currency, wrapped};
use super::Study;
use super::parameters::{Effect, Parameter};
use super::tradeoff::Point;
use crate::columns::Unit;
use crate::escape::markdown;
use crate::words::{fit_middle, printable, width, wrapped as wrapped_words};

/// Figures of a line; the others are in `-o json`.
const EACH: usize = 5;
/// Fields that changed together and are named; the others are counted here, and named where the scenarios differ.
const FIELDS: usize = 2;
/// The longest name of a variant that is shown whole.
const LABEL_MAX: usize = 24;

/// Between two columns.
const GAP: usize = 2;
/// Mark, name, cost and wait are always shown.
const FEWEST: usize = 4;

/// The figures of a variant beside cost and waiting, by their paths: what the front does not show.
const BESIDE: [&str; 3] = ["start_latency.p99", "unschedulable.pods", "nodes.max"];

/// For a terminal that is so wide; nothing if there is no study.
pub(in super::super) fn render(comparison: &Comparison, columns: usize) -> String {
    let Some(study) = &comparison.study else { return String::new() };
    let mut text = String::new();
    if !study.points.is_empty() {
        let head = "cost against waiting; * is on the Pareto front: no other variant beats it";
        text.push_str(&format!("\n{}\n", wrapped_words(head, columns, 2)));
        text.push_str(&aligned(&lines(comparison, study, &printable), columns));
    }
    if !study.parameters.is_empty() {
        text.push('\n');
    }
    for parameter in &study.parameters {
        let (fields, moved) = told_of(comparison, parameter, &printable);
        // Each field on a line of its own: their paths are long. `differs` has them whole.
        let mut label = "parameter";
        for field in fields {
            text.push_str(&format!("{label:9}  {}\n", fit_middle(&field, columns.saturating_sub(11))));
            label = "";
        }
        text.push_str(&wrapped("    moved", "", &moved, columns));
    }
    text
}

/// For a pull request; nothing if there is no study.
pub(in super::super) fn render_markdown(comparison: &Comparison) -> String {
    let Some(study) = &comparison.study else { return String::new() };
    let mut text = String::new();
    if !study.points.is_empty() {
        let lines = lines(comparison, study, &markdown);
        let (head, lines) = (&lines[0], &lines[1..]);
        text.push_str(&format!("\n| {} |\n|---|---|{}\n", head.join(" | "), "---:|".repeat(head.len() - 2)));
        for line in lines {
            text.push_str(&format!("| {} |\n", line.join(" | ")));
        }
        text.push('\n');
    }
    for parameter in &study.parameters {
        text.push_str(&format!("- {}\n", sentence(comparison, parameter, &markdown)));
    }
    text
}

/// A head and a line for each variant: whether it is on the front, its name, cost and wait, and further columns.
fn lines(comparison: &Comparison, study: &Study, clean: &dyn Fn(&str) -> String) -> Vec<Vec<String>> {
    let beside: Vec<&Row> =
        BESIDE.iter().filter_map(|path| comparison.rows.iter().find(|row| row.path == *path)).collect();
    let cost = comparison.rows.iter().find(|row| row.unit == Unit::Money);
    let mut head: Vec<String> = ["", "variant", "cost", "pending p99"].map(str::to_owned).to_vec();
    head.extend(beside.iter().map(|row| row.label.to_owned()));
    head.push(String::new());
    let line = |point: &Point| {
        let (column, money) = (&comparison.columns[point.column], currency(comparison, point.column));
        let runs = if column.members.len() > 1 { format!(" ×{}", column.members.len()) } else { String::new() };
        let mark = if point.is_on_front() { "*" } else { "" };
        let name = format!("{}{runs}", clean(&fit_middle(&column.label, LABEL_MAX)));
        let cost = cost.map_or_else(|| Unit::Money.text(point.cost, money), |row| with_noise(row, point.column, money));
        let mut line = vec![mark.to_owned(), name, clean(&cost), Unit::Time.text(point.waiting, money)];
        line.extend(beside.iter().map(|row| with_noise(row, point.column, money)));
        line.push(clean(&remark(comparison, point)));
        line
    };
    std::iter::once(head).chain(study.points.iter().map(line)).collect()
}

/// `1.20 USD`, and behind it how far it is from the first column and how far chance reaches.
fn with_noise(row: &Row, column: usize, money: &str) -> String {
    let value = row.value(column, money);
    let change = column.checked_sub(1).and_then(|place| row.changes[place]);
    let Some(change) = change else { return value };
    let parts = [value, row.difference(&change, money), row.noise(&change, money)];
    parts.join(" ").trim_end().to_owned()
}

fn remark(comparison: &Comparison, point: &Point) -> String {
    let Some(better) = point.beaten_by else { return String::new() };
    let noise = if point.within_noise { ", within noise" } else { "" };
    format!("{} is better{noise}", fit_middle(&comparison.columns[better].label, LABEL_MAX))
}

/// `cluster.groups.small.max 10 → 4 moved cost 1.20 USD → 1.02 USD, pending longest 41s → 2m10s`.
pub(super) fn sentence(comparison: &Comparison, parameter: &Parameter, clean: &dyn Fn(&str) -> String) -> String {
    let (fields, moved) = told_of(comparison, parameter, clean);
    format!("{} moved {}", fields.join(" and "), moved.join(", "))
}

/// The fields with their values, and what they moved.
fn told_of(
    comparison: &Comparison,
    parameter: &Parameter,
    clean: &dyn Fn(&str) -> String,
) -> (Vec<String>, Vec<String>) {
    let of_path = |(place, path): (usize, &String)| {
        let values: Vec<String> = parameter.values.iter().map(|setting| clean(&setting.texts[place])).collect();
        format!("{} {}", clean(path), values.join(" → "))
    };
    let mut fields: Vec<String> = parameter.paths.iter().enumerate().take(FIELDS).map(of_path).collect();
    if let Some(more) = parameter.paths.len().checked_sub(FIELDS).filter(|more| *more > 0) {
        fields.push(format!("{more} more fields"));
    }
    let real = parameter.effects.iter().filter(|effect| effect.is_real());
    let told = real.filter_map(|effect| told(comparison, effect)).take(EACH);
    let mut moved: Vec<String> = told.map(|told| clean(&told)).collect();
    if moved.is_empty() {
        moved.push("nothing beyond noise".to_owned());
    }
    if !parameter.is_balanced {
        moved.push("other fields have a part in it: not every combination was run".to_owned());
    }
    (fields, moved)
}

/// Nothing where the difference is smaller than what is shown of the figure.
fn told(comparison: &Comparison, effect: &Effect) -> Option<String> {
    let money = currency(comparison, 0);
    let means: Vec<String> = effect.means.iter().map(|mean| effect.shown.unit.text(*mean, money)).collect();
    if means.iter().all(|mean| *mean == means[0]) {
        return None;
    }
    let noise = effect.noise.filter(|noise| *noise > 0.0);
    let noise = noise.map(|noise| format!(" ±{}", effect.shown.unit.text(noise, money))).unwrap_or_default();
    Some(format!("{} {}{noise}", effect.shown.label, means.join(" → ")))
}

/// A table: the first two columns to the left, the figures to the right, the remark as it is. What the terminal has no
/// room for is left out, the remark first; the other formats have all of it.
fn aligned(lines: &[Vec<String>], columns: usize) -> String {
    let wide = |place: usize| lines.iter().map(|line| width(&line[place])).max().unwrap_or(0);
    let count = lines.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..count).map(wide).collect();
    let fits = |shown: &usize| widths[..*shown].iter().map(|wide| wide + GAP).sum::<usize>() <= columns + GAP;
    let shown = (FEWEST..=count).rev().find(fits).unwrap_or(FEWEST.min(count));
    let mut text = String::new();
    for line in lines {
        let mut row = String::new();
        for (place, cell) in line.iter().enumerate().take(shown) {
            let space = " ".repeat(widths[place].saturating_sub(width(cell)));
            let is_left = place < 2 || place + 1 == count;
            row.push_str(&if is_left { format!("{cell}{space}") } else { format!("{space}{cell}") });
            row.push_str(&" ".repeat(GAP));
        }
        text.push_str(&format!("{}\n", row.trim_end()));
    }
    text
}

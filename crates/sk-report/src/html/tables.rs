//! Tables of groups, namespaces and owners: bounded, the worst first.

use std::collections::BTreeMap;

use crate::analysis::Analysis;
use crate::columns::{self, Column};
use crate::escape::markup;
use crate::figure::{Figure, ToFigure};
use crate::figures::{GROUP_COLUMNS, POD_COLUMNS, PodFigures};
use crate::gaps::Size;
use crate::verdict::Judgement;
use crate::words::grouped;

/// Rows of a table in the page; all of them are in summary.json.
const ROWS_MAX: usize = 200;

/// `10`, or `showing 200 of 1,234 …`.
pub(super) fn showing(shown: usize, total: usize, what: &str) -> String {
    if shown >= total { grouped(total as i64) } else { format!("showing {shown} of {} {what}", grouped(total as i64)) }
}

/// What was not simulated, object by object, worst first; the totals of each kind come before its objects.
pub(super) fn not_simulated(judgement: &Judgement) -> String {
    let all =
        || judgement.gaps.iter().map(|gap| (gap, "")).chain(judgement.accepted.iter().map(|gap| (gap, "accepted")));
    let total: usize = all().map(|(gap, _)| gap.objects.len()).sum();
    let mut room = ROWS_MAX;
    let mut rows = String::new();
    for (gap, accepted) in all() {
        let label = format!("<b>{}</b>", markup(&gap.label()));
        rows.push_str(&missing_row(&label, &gap.size.in_words(), &gap.kind, accepted));
        for missing in gap.objects.iter().take(room) {
            let name = markup(&missing.object);
            let size = Size::of([missing]).in_words();
            rows.push_str(&missing_row(&name, &size, missing.message.as_deref().unwrap_or_default(), accepted));
        }
        room = room.saturating_sub(gap.objects.len());
    }
    if rows.is_empty() {
        return rows;
    }
    let count = showing(total.min(ROWS_MAX), total, "objects, worst first; all are in summary.json");
    format!(
        "<section class=\"missing\">\n<h2>Not simulated <span class=\"count\">{count}</span></h2>\n<div class=\"scroll\">\
         <table><tbody>\n{rows}</tbody></table></div>\n</section>\n"
    )
}

fn missing_row(name: &str, size: &str, about: &str, accepted: &str) -> String {
    format!("<tr><td>{name}</td><td>{}</td><td>{}</td><td>{accepted}</td></tr>\n", markup(size), markup(about))
}

/// Every shown figure of the run, under the name by which assertions and summary.json know it.
pub(super) fn figures(analysis: &Analysis) -> String {
    let row = |(column, label, value): (&Column, &str, String)| {
        let (label, value) = (markup(label), markup(&value));
        format!("<tr><td>{label}</td><td class=\"num\">{value}</td><td><code>{}</code></td></tr>\n", column.path)
    };
    let rows: String = columns::rows(analysis).map(row).collect();
    format!(
        "<section>\n<h2>Figures</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Figures\"><table>\
         <thead><tr><th scope=\"col\">figure</th><th scope=\"col\" class=\"num\">value</th><th scope=\"col\">in assertions\
         </th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n</section>\n"
    )
}

pub(super) fn groups(analysis: &Analysis) -> String {
    let groups = &analysis.summary.groups;
    let row = |(name, figures): (&String, &crate::figures::GroupFigures)| {
        let name = if name.is_empty() { "(no group)" } else { name };
        row(name, &GROUP_COLUMNS, &figures.figure(), &analysis.meta.currency)
    };
    let rows: String = groups.iter().take(ROWS_MAX).map(row).collect();
    let count = showing(groups.len().min(ROWS_MAX), groups.len(), "groups");
    table("Node groups", "group", &count, &GROUP_COLUMNS, &rows)
}

pub(super) fn workloads(title: &str, noun: &str, all: &BTreeMap<String, PodFigures>) -> String {
    let mut worst: Vec<(&String, &PodFigures)> = all.iter().collect();
    worst.sort_by_key(|(_, figures)| std::cmp::Reverse((figures.unschedulable.pods, figures.pending.longest)));
    worst.truncate(ROWS_MAX);
    let rows: String = worst.iter().map(|(name, figures)| row(name, &POD_COLUMNS, &figures.figure(), "")).collect();
    let count = showing(worst.len(), all.len(), &format!("{noun}s, longest waits first"));
    table(title, noun, &count, &POD_COLUMNS, &rows)
}

fn table(title: &str, noun: &str, count: &str, columns: &[Column], rows: &str) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let head = |column: &Column| format!("<th scope=\"col\" class=\"num\">{}</th>", column.label);
    let heads: String = columns.iter().map(head).collect();
    format!(
        "<section>\n<h2>{title} <span class=\"count\">{count}</span></h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" \
         aria-label=\"{title}\"><table class=\"live\"><thead><tr><th scope=\"col\">{noun}</th>{heads}</tr></thead>\n<tbody>\n{rows}\
         </tbody></table></div>\n</section>\n"
    )
}

/// A row: what it is about, and each figure with what it sorts by.
fn row(name: &str, columns: &[Column], figures: &Figure, currency: &str) -> String {
    let cell = |column: &Column| {
        let value = column.value(figures, 0.0).unwrap_or(-1.0);
        format!("<td class=\"num\" data-v=\"{value}\">{}</td>", markup(&column.text(figures, 0.0, currency)))
    };
    let cells: String = columns.iter().map(cell).collect();
    format!("<tr><td>{}</td>{cells}</tr>\n", markup(name))
}

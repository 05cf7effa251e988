//! Tables of groups, namespaces and owners: bounded, the worst first.

use std::collections::BTreeMap;

use crate::analysis::Analysis;
use crate::escape::markup;
use crate::figures::PodFigures;
use crate::gaps::Size;
use crate::verdict::Judgement;
use crate::words::{self, grouped};

/// Rows of a table in the page; all of them are in summary.json.
const ROWS_MAX: usize = 200;

/// `10`, or `showing 200 of 1,234 …`.
pub(super) fn showing(shown: usize, total: usize, what: &str) -> String {
    if shown >= total { grouped(total as i64) } else { format!("showing {shown} of {} {what}", grouped(total as i64)) }
}

/// What was not simulated, object by object, worst first; the totals of each kind stand before its objects.
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

pub(super) fn groups(analysis: &Analysis) -> String {
    let groups = &analysis.summary.groups;
    let row = |(name, figures): (&String, &crate::figures::GroupFigures)| {
        let name = if name.is_empty() { "(no group)" } else { name };
        let cost = figures.cost.as_ref().map(|cost| words::money(cost.total, &analysis.meta.currency));
        let cells = [
            format!("{} / {} / {}", figures.nodes.min, words::decimal(figures.nodes.mean), figures.nodes.max),
            words::decimal(figures.node_hours.total),
            words::decimal(figures.node_hours.empty),
            cost.unwrap_or_else(|| "–".into()),
            words::percent(figures.requested.cpu),
            words::percent(figures.requested.memory),
        ];
        row(name, &cells)
    };
    let rows: String = groups.iter().take(ROWS_MAX).map(row).collect();
    let heads = ["nodes min / mean / max", "node-hours", "of them empty", "cost", "CPU requested", "memory requested"];
    table("Node groups", "group", &showing(groups.len().min(ROWS_MAX), groups.len(), "groups"), &heads, &rows)
}

pub(super) fn workloads(title: &str, noun: &str, all: &BTreeMap<String, PodFigures>) -> String {
    let mut worst: Vec<(&String, &PodFigures)> = all.iter().collect();
    worst.sort_by_key(|(_, figures)| std::cmp::Reverse((figures.unschedulable.pods, figures.pending.longest)));
    worst.truncate(ROWS_MAX);
    let rows: String = worst
        .iter()
        .map(|(name, figures)| {
            let cells = [
                grouped(figures.pods.created),
                grouped(figures.pods.ran),
                grouped(figures.pending.pods),
                figures.pending.longest.to_string(),
                figures.start_latency.p50.to_string(),
                figures.start_latency.p99.to_string(),
                grouped(figures.unschedulable.pods),
                grouped(figures.evicted.pods),
                grouped(figures.preempted.pods),
            ];
            row(name, &cells)
        })
        .collect();
    let heads =
        ["pods", "ran", "waited", "longest wait", "start p50", "start p99", "unschedulable", "evicted", "preempted"];
    let count = showing(worst.len(), all.len(), &format!("{noun}s, longest waits first"));
    table(title, noun, &count, &heads, &rows)
}

fn table(title: &str, noun: &str, count: &str, heads: &[&str], rows: &str) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let heads: String = heads.iter().map(|head| format!("<th class=\"num\">{head}</th>")).collect();
    format!(
        "<section>\n<h2>{title} <span class=\"count\">{count}</span></h2>\n<div class=\"scroll\"><table><thead><tr>\
         <th>{noun}</th>{heads}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n</section>\n"
    )
}

fn row(name: &str, cells: &[String]) -> String {
    let cells: String = cells.iter().map(|cell| format!("<td class=\"num\">{}</td>", markup(cell))).collect();
    format!("<tr><td>{}</td>{cells}</tr>\n", markup(name))
}

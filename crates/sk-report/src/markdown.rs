//! A summary for a pull request or a CI job's page.

use crate::analysis::Analysis;
use crate::assertion::Verdict;
use crate::escape::markdown;
use crate::verdict::{Mark, Trust, sentence};
use crate::words::{self, grouped};

/// The whole text.
pub fn render(analysis: &Analysis, verdicts: &[Verdict]) -> String {
    let meta = &analysis.meta;
    let mut text = format!("### {}: {}\n\n", markdown(&meta.run_id), Mark::of(verdicts).word());
    text.push_str(&format!("{}.\n\n", sentence(analysis, verdicts)));
    for verdict in verdicts {
        let mark = if verdict.passed { "PASS" } else { "**FAIL**" };
        text.push_str(&format!("- {mark} {}\n", markdown(&verdict.with_values())));
    }
    if !verdicts.is_empty() {
        text.push('\n');
    }
    text.push_str("| figure | value |\n|---|---|\n");
    for (label, value) in rows(analysis) {
        text.push_str(&format!("| {label} | {} |\n", markdown(&value)));
    }
    text.push_str(&format!("\n**Trust:** {}\n", markdown(&Trust::of(analysis).pieces.join(" · "))));
    text
}

fn rows(analysis: &Analysis) -> Vec<(&'static str, String)> {
    let summary = &analysis.summary;
    let mut rows = vec![
        ("start latency p50", summary.start_latency.p50.to_string()),
        ("start latency p99", summary.start_latency.p99.to_string()),
        ("pods that waited", format!("{} of {}", grouped(summary.pending.pods), grouped(summary.pods.created))),
        ("pending longest", summary.pending.longest.to_string()),
        ("unschedulable pods", grouped(summary.unschedulable.pods)),
        ("nodes max", grouped(summary.nodes.max)),
        ("node-hours", words::decimal(summary.node_hours.total)),
        ("node-hours empty", words::decimal(summary.node_hours.empty)),
    ];
    rows.extend(summary.cost.as_ref().map(|cost| ("cost", words::money(cost.total, &analysis.meta.currency))));
    rows.push(("requested CPU", words::percent(summary.requested.cpu)));
    rows.push(("evicted pods", grouped(summary.evicted.pods)));
    rows.push(("preempted pods", grouped(summary.preempted.pods)));
    rows
}

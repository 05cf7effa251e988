//! The comparison as Markdown, for a pull request or a CI job's page.

use super::Comparison;
use super::judged::Asserted;
use super::rows::Judged;
use super::study;
use super::table::currency;
use crate::assertion::Evaluated;
use crate::escape::markdown;

/// The whole text: every column with its difference from the baseline.
pub fn render(comparison: &Comparison) -> String {
    let mut text: String = comparison.assertions.iter().map(asserted).collect();
    if !text.is_empty() {
        text.push('\n');
    }
    let labels: Vec<String> = comparison.columns.iter().map(|column| markdown(&column.label)).collect();
    let heads: Vec<String> = labels.iter().skip(1).map(|label| format!("{label} | vs {}", labels[0])).collect();
    text.push_str(&format!("| figure | {} | {} |\n|---|", labels[0], heads.join(" | ")));
    text.push_str(&"---:|".repeat(1 + 2 * heads.len()));
    text.push('\n');
    for row in &comparison.rows {
        text.push_str(&format!("| {} | {} |", row.label, markdown(&row.value(0, currency(comparison, 0)))));
        for place in 1..comparison.columns.len() {
            let money = currency(comparison, place);
            let change = row.changes[place - 1].map(|change| {
                let word = match change.judged {
                    Judged::Worse => " **WORSE**",
                    Judged::Better => " better",
                    Judged::Noise => " noise",
                    Judged::Same | Judged::Changed => "",
                };
                let parts = [row.difference(&change, money), row.noise(&change, money)];
                format!("{}{word}", parts.join(" ").trim_end())
            });
            let change = change.unwrap_or_default();
            text.push_str(&format!(" {} | {} |", markdown(&row.value(place, money)), change));
        }
        text.push('\n');
    }
    text.push_str(&study::text::render_markdown(comparison));
    text.push('\n');
    for caution in comparison.cautions() {
        text.push_str(&format!("- **Trust:** {}\n", markdown(&caution)));
    }
    for (label, differences) in labels.iter().skip(1).zip(&comparison.differs) {
        let pieces: Vec<String> = differences.iter().map(|difference| markdown(&difference.to_string())).collect();
        let pieces = if pieces.is_empty() { "nothing: the same inputs".to_owned() } else { pieces.join(" · ") };
        text.push_str(&format!("- **{label} differs:** {pieces}\n"));
    }
    if !comparison.moved.is_empty() {
        let moved: Vec<String> = comparison.moved.iter().map(|moved| markdown(&moved.sentence())).collect();
        text.push_str(&format!("- **Moved most:** {}\n", moved.join(" · ")));
    }
    text
}

/// One assertion about one run, value beside limit.
fn asserted(Asserted { label, verdict }: &Asserted) -> String {
    let (word, why) = match &verdict.result {
        Evaluated::Held => ("PASS", String::new()),
        Evaluated::Failed => ("**FAIL**", String::new()),
        Evaluated::Unknown(why) => ("**ERROR**", format!(": {}", markdown(why))),
    };
    format!("- {word} {}: {}{why}\n", markdown(label), markdown(&verdict.with_values()))
}

//! A summary in Markdown, for a pull request or a CI job's page.

use crate::analysis::Analysis;
use crate::columns;
use crate::escape::markdown;
use crate::gaps::Gap;
use crate::verdict::{Judged, Judgement, Trust};

/// The whole text.
pub fn render(analysis: &Analysis, judgement: &Judgement) -> String {
    let meta = &analysis.meta;
    let mut text = format!("### {}: {}\n\n", markdown(&meta.run_id), judgement.mark.word());
    text.push_str(&format!("{}.\n\n", markdown(&judgement.sentence(analysis))));
    for verdict in &judgement.verdicts {
        let judged = judgement.judged(verdict);
        let mark = if judged == Judged::Pass { "PASS".to_owned() } else { format!("**{}**", judged.word()) };
        let why = match &judged {
            Judged::Error(why) => format!(": {}", markdown(why)),
            Judged::Pass | Judged::Fail | Judged::Skipped(_) => String::new(),
        };
        text.push_str(&format!("- {mark} {}{why}\n", markdown(&verdict.with_values())));
    }
    if !judgement.verdicts.is_empty() {
        text.push('\n');
    }
    text.push_str(&not_simulated(judgement));
    text.push_str("| figure | value |\n|---|---|\n");
    for (_, label, value) in columns::rows(analysis).filter(|(column, ..)| !column.is_rare) {
        text.push_str(&format!("| {label} | {} |\n", markdown(&value)));
    }
    text.push_str(&format!("\n**Trust:** {}\n", markdown(&Trust::of(analysis).pieces.join(" · "))));
    text
}

/// A table of what was not simulated, by kind; all of its objects are in summary.json.
fn not_simulated(judgement: &Judgement) -> String {
    const EXAMPLES: usize = 5;
    if judgement.gaps.is_empty() && judgement.accepted.is_empty() {
        return String::new();
    }
    let row = |gap: &Gap, accepted: &str| {
        let examples: Vec<String> = gap.examples().take(EXAMPLES).collect();
        let cells = [gap.label(), gap.size.in_words(), examples.join(", ")].map(|cell| markdown(&cell));
        format!("| {}{accepted} |\n", cells.join(" | "))
    };
    let open = judgement.gaps.iter().map(|gap| row(gap, ""));
    let accepted = judgement.accepted.iter().map(|gap| row(gap, " (accepted)"));
    let rows: String = open.chain(accepted).collect();
    format!("| not simulated | how much | worst first |\n|---|---|---|\n{rows}\n")
}

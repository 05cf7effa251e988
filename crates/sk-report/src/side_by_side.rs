//! Several runs of one command in a table: a row for each with its main figures, and the mean of repetitions.
//!
//! It does not compare: it calls no run better or worse.

use anstyle::{AnsiColor, Style};

use crate::assertion::{Evaluated, Verdict};
use crate::figures::Summary;
use crate::verdict::Mark;
use crate::words::{decimal, fit, grouped, money, printable, width, wrapped};

const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();
const CAREFUL: Style = AnsiColor::Yellow.on_default().bold();
/// Between two columns.
const GAP: usize = 2;
/// Run and verdict are always shown.
const FEWEST: usize = 2;
/// The widest label: more would leave no room for figures.
const LABEL_COLUMNS: usize = 40;

/// One run.
#[derive(Clone, Debug)]
pub struct Beside {
    /// What tells it from the others: `packed`, `max=36`, `packed #2`.
    pub label: String,
    /// The verdict.
    pub mark: Mark,
    /// Its figures.
    pub summary: Summary,
    /// What its money is in.
    pub currency: String,
    /// Its assertions that did not hold or could not be evaluated.
    pub bad: Vec<Verdict>,
    /// Its folder.
    pub dir: String,
}

/// An assertion about all repetitions of one variant.
#[derive(Clone, Debug)]
pub struct Across {
    /// Of which variant; empty if there is only one.
    pub label: String,
    /// `any` or `mean`.
    pub how: &'static str,
    /// Its outcome.
    pub verdict: Verdict,
}

const HEAD: [&str; 9] =
    ["RUN", "VERDICT", "START P99", "LONGEST WAIT", "UNSCHED", "NODES MAX", "NODE-HOURS", "COST", "EVICTED"];

/// The table, what did not hold, and where the runs lie. What a terminal of so many columns has no room for is left out
/// from the right; `skctl compare` has it.
pub fn render(runs: &[Beside], across: &[Across], columns: usize) -> String {
    let rows: Vec<[String; 9]> = runs.iter().map(row).collect();
    let widths: [usize; 9] = std::array::from_fn(|column| {
        rows.iter().map(|row| width(&row[column])).chain([HEAD[column].len()]).max().unwrap_or(0)
    });
    let fits = |shown: &usize| widths[..*shown].iter().map(|wide| wide + GAP).sum::<usize>() <= columns + GAP;
    let shown = (FEWEST..=HEAD.len()).rev().find(fits).unwrap_or(FEWEST);
    let mut text = line(&HEAD.map(str::to_owned), &widths[..shown], None);
    for (row, run) in rows.iter().zip(runs) {
        text.push_str(&line(row, &widths[..shown], Some(run.mark)));
    }
    text.push('\n');
    for run in runs {
        for verdict in &run.bad {
            text.push_str(&verdict_line(&run.label, verdict, columns));
        }
    }
    for Across { label, how, verdict } in across {
        let label = if label.is_empty() { format!("for: {how}") } else { format!("{label}, for: {how}") };
        text.push_str(&verdict_line(&label, verdict, columns));
    }
    for run in runs {
        text.push_str(&format!("run  {}\n", run.dir));
    }
    text
}

fn row(run: &Beside) -> [String; 9] {
    let Summary { start_latency, pending, unschedulable, nodes, node_hours, cost, evicted, .. } = &run.summary;
    [
        fit(&run.label, LABEL_COLUMNS),
        run.mark.word().to_owned(),
        start_latency.p99.to_string(),
        pending.longest.to_string(),
        grouped(unschedulable.pods),
        grouped(nodes.max),
        decimal(node_hours.total),
        cost.as_ref().map_or_else(|| "–".to_owned(), |cost| money(cost.total, &run.currency)),
        grouped(evicted.pods),
    ]
}

fn line(row: &[String; 9], widths: &[usize], mark: Option<Mark>) -> String {
    let mut text = String::new();
    for (column, (cell, wide)) in row.iter().zip(widths).enumerate() {
        let pad = " ".repeat(wide.saturating_sub(width(cell)));
        let cell = match (column, mark) {
            (1, Some(mark)) => painted(cell, style(mark)),
            _ => cell.clone(),
        };
        // Words begin on the left, figures end on the right.
        text.push_str(&if column < 2 { format!("{cell}{pad}") } else { format!("{pad}{cell}") });
        text.push_str("  ");
    }
    text.trim_end().to_owned() + "\n"
}

fn style(mark: Mark) -> Style {
    match mark {
        Mark::Pass => GOOD,
        Mark::Fail => BAD,
        Mark::Incomplete | Mark::Partial => CAREFUL,
        Mark::Done => Style::new(),
    }
}

fn painted(text: &str, style: Style) -> String {
    format!("{style}{text}{style:#}")
}

pub(crate) fn verdict_line(label: &str, verdict: &Verdict, columns: usize) -> String {
    let (word, style, text) = match &verdict.result {
        Evaluated::Held => ("PASS", GOOD, verdict.with_values()),
        Evaluated::Failed => ("FAIL", BAD, verdict.with_values()),
        Evaluated::Unknown(why) => ("ERROR", CAREFUL, format!("{}: {why}", verdict.text)),
    };
    let line = wrapped(&format!("{word}  {label}: {}", printable(&text)), columns, word.len() + 2);
    format!("{}{}\n", painted(word, style), &line[word.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(label: &str, mark: Mark, nodes: i64) -> Beside {
        let mut summary = Summary::default();
        summary.nodes.max = nodes;
        let (label, dir) = (label.to_owned(), format!("runs/{label}"));
        Beside { label, mark, summary, currency: "USD".to_owned(), bad: Vec::new(), dir }
    }

    #[test]
    fn every_run_has_a_row_and_what_failed_is_told_with_its_value() {
        let mut packed = run("packed", Mark::Fail, 1_038);
        packed.bad.push(Verdict {
            name: None,
            text: "nodes.max <= 36".to_owned(),
            result: Evaluated::Failed,
            values: vec![("nodes.max".to_owned(), "1038".to_owned())],
        });
        let text = render(&[run("as-is", Mark::Pass, 40), packed], &[], 100);
        let text = anstream::adapter::strip_str(&text).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("RUN     VERDICT  START P99"), "{text}");
        assert!(lines[1].starts_with("as-is   PASS") && lines[2].contains("  1,038  "), "{text}");
        assert_eq!(lines[4], "FAIL  packed: nodes.max <= 36   (nodes.max = 1038)");
        assert_eq!(lines[5..], ["run  runs/as-is", "run  runs/packed"]);
    }

    #[test]
    fn figures_that_the_terminal_has_no_room_for_are_left_out_from_the_right() {
        for columns in [80, 60, 40, 5] {
            let text = render(&[run("as-is", Mark::Pass, 40), run("packed", Mark::Fail, 36)], &[], columns);
            let text = anstream::adapter::strip_str(&text).to_string();
            assert!(text.lines().all(|line| line.len() <= columns.max("run  runs/packed".len())), "{columns}:\n{text}");
            assert!(text.starts_with("RUN     VERDICT") && text.contains("run  runs/packed\n"), "{text}");
        }
    }
}

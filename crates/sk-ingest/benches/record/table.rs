//! The tables that are printed: Markdown, in columns, so that they can be read as they are and pasted into a page.

use crate::steps::Measured;

/// A figure, both sides of it, how they compare, and what is aimed at.
pub(crate) struct Row([String; 5]);

impl Row {
    /// Events per second; the ratio says how many times as fast ours is.
    pub(crate) fn rate(figure: &str, against: &Measured, ours: &Measured, goal: &str) -> Self {
        let rate = |measured: &Measured| measured.events as f64 / measured.took.as_secs_f64();
        let ratio = format!("{:.2} × as fast", rate(ours) / rate(against));
        let shown = |measured: &Measured| format!("{:.0}", rate(measured));
        Self([figure.into(), shown(against), shown(ours), ratio, goal.into()])
    }

    /// Events per second of processor time; the ratio says how many times as many ours are.
    pub(crate) fn work(figure: &str, against: &Measured, ours: &Measured, goal: &str) -> Self {
        let rate = |measured: &Measured| measured.events as f64 / measured.processor.as_secs_f64().max(0.01);
        let ratio = format!("{:.2} × as many", rate(ours) / rate(against));
        let shown = |measured: &Measured| format!("{:.0}", rate(measured));
        Self([figure.into(), shown(against), shown(ours), ratio, goal.into()])
    }

    /// Peak memory; the ratio says how many times as much ours is.
    pub(crate) fn memory(figure: &str, against: &Measured, ours: &Measured, goal: &str) -> Self {
        let ratio = format!("{:.3} ×", ours.peak_kib as f64 / against.peak_kib as f64);
        Self([figure.into(), mebibytes(against.peak_kib), mebibytes(ours.peak_kib), ratio, goal.into()])
    }

    /// Bytes; the ratio says how many times as many ours are.
    pub(crate) fn bytes(figure: &str, against: u64, ours: u64, goal: &str) -> Self {
        let ratio = format!("{:.3} ×", ours as f64 / against as f64);
        Self([figure.into(), against.to_string(), ours.to_string(), ratio, goal.into()])
    }
}

/// Memory as people say it.
pub(crate) fn mebibytes(kib: u64) -> String {
    format!("{:.1} MiB", kib as f64 / 1024.0)
}

/// Prints the rows under their headings, and an empty line: text to the left, figures to the right.
pub(crate) fn print(headings: [&str; 5], rows: &[Row]) {
    let headings = Row(headings.map(String::from));
    let all = || std::iter::once(&headings).chain(rows);
    let width = |column: usize| all().map(|row| row.0[column].chars().count()).max().unwrap_or(0);
    let [a, b, c, d, e] = std::array::from_fn(width);
    for (number, Row([figure, against, ours, ratio, goal])) in all().enumerate() {
        println!("| {figure:a$} | {against:>b$} | {ours:>c$} | {ratio:>d$} | {goal:e$} |");
        if number == 0 {
            let rule = |width: usize| "-".repeat(width);
            println!("| {} | {}: | {}: | {}: | {} |", rule(a), rule(b - 1), rule(c - 1), rule(d - 1), rule(e));
        }
    }
    println!();
}

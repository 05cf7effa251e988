//! The tables that are printed: Markdown, in columns, so that they can be read as they are and pasted into a page.

use crate::steps::Measured;

/// A figure, both sides of it, how they compare, and what is aimed at.
pub(crate) struct Row([String; 5]);

impl Row {
    /// Files; the ratio says how many times as large ours is.
    pub(crate) fn size(figure: &str, against: u64, ours: u64, goal: &str) -> Self {
        let ratio = format!("{:.2} ×", ours as f64 / against as f64);
        Self([figure.into(), megabytes(against), megabytes(ours), ratio, goal.into()])
    }

    /// Time; the ratio says how many times as fast ours is.
    pub(crate) fn speed(figure: &str, against: &Measured, ours: &Measured, goal: &str) -> Self {
        let ratio = format!("{:.2} × as fast", against.took.as_secs_f64() / ours.took.as_secs_f64());
        let time = |measured: &Measured| format!("{:.3} s", measured.took.as_secs_f64());
        Self([figure.into(), time(against), time(ours), ratio, goal.into()])
    }

    /// Peak memory; the ratio says how many times as much ours is.
    pub(crate) fn memory(figure: &str, against: &Measured, ours: &Measured, goal: &str) -> Self {
        let ratio = format!("{:.3} ×", ours.peak_kib as f64 / against.peak_kib as f64);
        let memory = |measured: &Measured| format!("{:.1} MiB", measured.peak_kib as f64 / 1024.0);
        Self([figure.into(), memory(against), memory(ours), ratio, goal.into()])
    }
}

/// Bytes as people say them.
pub(crate) fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
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

//! The comparison on a terminal: figures in columns, and after each block's last column its difference from the
//! baseline.
//!
//! A block has as many columns as the terminal is wide; more columns come in further blocks that repeat the baseline,
//! so no figure is cut.

use anstyle::{AnsiColor, Style};

use super::Comparison;
use super::judged::Asserted;
use super::rows::{Judged, Row};
use super::study;
use crate::assertion::Evaluated;
use crate::side_by_side;
use crate::words::{self, fit_middle, printable, width};

/// The longest label of a column that is shown whole.
const LABEL_MAX: usize = 24;
/// A shorter one tells nothing.
const LABEL_LEAST: usize = 8;
/// Between two columns.
const GAP: usize = 2;

/// The whole text, with a newline after each line. `columns`: how wide the terminal is.
pub fn render(comparison: &Comparison, columns: usize) -> String {
    let mut text = String::new();
    let mut first = 1;
    loop {
        let block = Block::starting_at(comparison, first, columns);
        text.push_str(&block.render());
        first = block.last + 1;
        if first >= comparison.columns.len() {
            break;
        }
        text.push('\n');
    }
    text.push_str(&study::text::render(comparison, columns));
    text.push_str(&notes(comparison, columns));
    text.push_str(&assertions(comparison, columns));
    text
}

/// The baseline and the columns from `first` to `last`, with the difference of the last one.
struct Block<'a> {
    comparison: &'a Comparison,
    places: Vec<usize>,
    last: usize,
    label_width: usize,
    widths: Vec<usize>,
    /// The longest label of a column that is shown whole.
    label_max: usize,
    /// The terminal has no room for differences beside the figures: they come below.
    is_narrow: bool,
}

impl<'a> Block<'a> {
    fn starting_at(comparison: &'a Comparison, first: usize, columns: usize) -> Self {
        let label_width = comparison.rows.iter().map(|row| width(row.label)).max().unwrap_or(0).max(8);
        let label_max = (columns.saturating_sub(label_width) / 2).saturating_sub(GAP).clamp(LABEL_LEAST, LABEL_MAX);
        let wide = |place: usize| {
            let values = comparison.rows.iter().map(|row| width(&row.value(place, currency(comparison, place))));
            values
                .chain([width(&label(comparison, place, label_max)), width(verdict(comparison, place))])
                .max()
                .unwrap_or(0)
                + GAP
        };
        let mut places = vec![0];
        let mut widths = vec![wide(0)];
        let mut used = label_width + widths[0];
        let mut is_narrow = false;
        for place in first..comparison.columns.len() {
            let (needed, difference) = (wide(place), difference_width(comparison, place));
            if places.len() > 1 && used + needed + difference > columns {
                break;
            }
            is_narrow |= used + needed + difference > columns;
            used += needed;
            places.push(place);
            widths.push(needed);
        }
        let last = places.last().copied().unwrap_or(0);
        Self { comparison, places, last, label_width, widths, label_max, is_narrow }
    }

    fn render(&self) -> String {
        let mut text = String::new();
        let mut heads: Vec<String> =
            self.places.iter().map(|place| label(self.comparison, *place, self.label_max)).collect();
        let against = format!("   {} vs {}", heads.last().cloned().unwrap_or_default(), heads[0]);
        text.push_str(&self.line("", &mut heads, if self.last == 0 { "" } else { &against }));
        if (0..self.comparison.columns.len()).any(|place| !verdict(self.comparison, place).is_empty()) {
            let mut verdicts: Vec<String> =
                self.places.iter().map(|place| verdict(self.comparison, *place).to_owned()).collect();
            text.push_str(&self.line("verdict", &mut verdicts, ""));
        }
        for row in &self.comparison.rows {
            let value = |place: &usize| row.value(*place, currency(self.comparison, *place));
            let mut values: Vec<String> = self.places.iter().map(value).collect();
            text.push_str(&self.line(row.label, &mut values, &self.difference(row)));
        }
        text
    }

    fn line(&self, label: &str, cells: &mut [String], rest: &str) -> String {
        let mut line = format!("{label:<wide$}", wide = self.label_width);
        for (cell, wide) in cells.iter().zip(&self.widths) {
            line.push_str(&" ".repeat(wide.saturating_sub(width(cell))));
            line.push_str(cell);
        }
        if self.is_narrow && !rest.trim().is_empty() {
            return format!("{}\n  {}\n", line.trim_end(), rest.trim());
        }
        line.push_str(rest);
        format!("{}\n", line.trim_end())
    }

    fn difference(&self, row: &Row) -> String {
        let Some(change) = self.last.checked_sub(1).and_then(|place| row.changes[place]) else {
            return String::new();
        };
        let [difference_wide, noise_wide] = parts(self.comparison, self.last);
        let money = currency(self.comparison, self.last);
        let difference = format!("{:<difference_wide$}", row.difference(&change, money));
        let noise = format!("{:<noise_wide$}", row.noise(&change, money));
        let gap = if noise_wide > 0 { "  " } else { "" };
        format!("   {difference}{gap}{noise}  {}", styled(change.judged))
    }
}

/// How wide differences and bounds are in one column.
fn parts(comparison: &Comparison, place: usize) -> [usize; 2] {
    let Some(change_at) = place.checked_sub(1) else { return [0, 0] };
    let money = currency(comparison, place);
    let changes = || comparison.rows.iter().filter_map(move |row| Some((row, row.changes[change_at]?)));
    let differences = changes().map(|(row, change)| width(&row.difference(&change, money))).max();
    let noises = changes().map(|(row, change)| width(&row.noise(&change, money))).max();
    [differences.unwrap_or(0), noises.unwrap_or(0)]
}

fn difference_width(comparison: &Comparison, place: usize) -> usize {
    let [difference, noise] = parts(comparison, place);
    3 + difference + 2 + noise + 2 + "better".len()
}

fn label(comparison: &Comparison, place: usize, most: usize) -> String {
    let column = &comparison.columns[place];
    let runs = if column.members.len() > 1 { format!(" ×{}", column.members.len()) } else { String::new() };
    format!("{}{runs}", fit_middle(&printable(&column.label), most))
}

fn verdict(comparison: &Comparison, place: usize) -> &str {
    let verdicts: Vec<&str> =
        comparison.columns[place].members.iter().filter_map(|member| member.verdict.as_deref()).collect();
    // The worst of several.
    ["FAIL", "PARTIAL", "INCOMPLETE", "PASS", "DONE"].into_iter().find(|word| verdicts.contains(word)).unwrap_or("")
}

pub(super) fn currency(comparison: &Comparison, place: usize) -> &str {
    &comparison.columns[place].members[0].meta.currency
}

fn styled(judged: Judged) -> String {
    let style = match judged {
        Judged::Better => AnsiColor::Green.on_default().bold(),
        Judged::Worse => AnsiColor::Red.on_default().bold(),
        Judged::Same | Judged::Noise | Judged::Changed => Style::new().dimmed(),
    };
    let word = judged.word();
    if word.is_empty() { String::new() } else { format!("{style}{word}{style:#}") }
}

/// The outcome of each assertion, value beside limit; those that did not hold last, where they are seen.
fn assertions(comparison: &Comparison, columns: usize) -> String {
    let line = |Asserted { label, verdict }: &Asserted| side_by_side::verdict_line(&printable(label), verdict, columns);
    let (held, open): (Vec<&Asserted>, Vec<&Asserted>) =
        comparison.assertions.iter().partition(|asserted| asserted.verdict.result == Evaluated::Held);
    let text: String = held.into_iter().chain(open).map(line).collect();
    if text.is_empty() { text } else { format!("\n{text}") }
}

/// What limits trust, how the inputs differ, and what moved most.
fn notes(comparison: &Comparison, columns: usize) -> String {
    let mut text = String::from("\n");
    for caution in comparison.cautions() {
        text.push_str(&words::wrapped(&format!("TRUST  {}", printable(&caution)), columns, 7));
        text.push('\n');
    }
    for (column, differences) in comparison.columns.iter().skip(1).zip(&comparison.differs) {
        let differences: Vec<String> =
            differences.iter().map(|difference| printable(&difference.to_string())).collect();
        let nothing = vec!["nothing: the same inputs".to_owned()];
        let pieces = if differences.is_empty() { nothing } else { differences };
        text.push_str(&wrapped("differs", &format!("{}:", printable(&column.label)), &pieces, columns));
    }
    let moved: Vec<String> = comparison.moved.iter().map(|moved| printable(&moved.sentence())).collect();
    if !moved.is_empty() {
        text.push_str(&wrapped("moved most", "", &moved, columns));
    }
    text
}

/// Pieces with ` · ` between them, in lines no wider than the terminal where they can be; a piece that is wider than a
/// line is broken between words.
pub(super) fn wrapped(label: &str, lead: &str, pieces: &[String], columns: usize) -> String {
    let indent = width(label) + 2;
    let mut line = format!("{label}  {lead}");
    let mut text = String::new();
    let mut is_first = lead.is_empty();
    for (place, piece) in pieces.iter().enumerate() {
        let separator = if place > 0 {
            " · "
        } else if is_first {
            ""
        } else {
            " "
        };
        let is_room = width(&line) + width(separator) + width(piece) <= columns;
        // Behind a lead alone, a new line is worth it only if the piece fits there.
        if !is_room && (place > 0 || (!is_first && indent + width(piece) <= columns)) {
            text.push_str(&format!("{}\n", words::wrapped(&line, columns, indent + 2)));
            line = format!("{:indent$}{piece}", "");
        } else {
            line.push_str(separator);
            line.push_str(piece);
        }
        is_first = false;
    }
    format!("{text}{}\n", words::wrapped(&line, columns, indent + 2))
}

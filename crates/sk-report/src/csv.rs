//! Figures for spreadsheets: every figure of a run, or the rows of a comparison, one per line (RFC 4180).
//!
//! Both come from the declarations in [`crate::figures`], so a new figure appears here by itself. Numbers are plain:
//! seconds, counts, shares and money without units, as in summary.json.

use crate::analysis::Analysis;
use crate::compare::Comparison;
use crate::compare::rows::Judged;
use crate::figure::{Figure, ToFigure};

/// Every figure of a run: `run_id,of,name,figure,value`. `of` and `name` say of which group, namespace or owner it is;
/// both are empty where it is the whole run's.
pub fn render(analysis: &Analysis) -> String {
    let mut text = String::from("run_id,of,name,figure,value\n");
    let of = Of { run_id: &analysis.meta.run_id, of: "", name: "" };
    write_figures(&mut text, &of, "", &analysis.summary.figure());
    text
}

/// Whose figures they are.
struct Of<'a> {
    run_id: &'a str,
    of: &'a str,
    name: &'a str,
}

fn write_figures(text: &mut String, of: &Of<'_>, path: &str, figure: &Figure) {
    match figure {
        Figure::Count(count) => write_line(text, of, path, &count.to_string()),
        Figure::Number(number) => write_line(text, of, path, &number.to_string()),
        Figure::Time(time) => write_line(text, of, path, &time.as_secs_f64().to_string()),
        Figure::Fields(fields) => {
            for (name, figure) in fields {
                let path = if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
                write_figures(text, of, &path, figure);
            }
        }
        Figure::Entries(entries) => {
            for (name, figure) in entries {
                write_figures(text, &Of { of: path, name, ..*of }, "", figure);
            }
        }
        Figure::Absent => {}
    }
}

fn write_line(text: &mut String, of: &Of<'_>, path: &str, value: &str) {
    let cells = [of.run_id, of.of, of.name, path, value].map(cell);
    text.push_str(&cells.join(","));
    text.push('\n');
}

/// What a comparison shows: a line for each figure and run, with the difference from the first run, the half width of
/// its 95 % interval where there are repetitions, and what that means.
pub fn render_comparison(comparison: &Comparison) -> String {
    let mut text = String::from("figure,label,run,value,difference,noise,judged\n");
    for row in &comparison.rows {
        for (place, column) in comparison.columns.iter().enumerate() {
            let change = place.checked_sub(1).and_then(|place| row.changes[place]);
            let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
            let cells = [
                row.path,
                row.label,
                &column.label,
                &number(row.means[place]),
                &number(change.map(|change| change.difference)),
                &number(change.and_then(|change| change.noise)),
                change.map_or("", |change| word(change.judged)),
            ];
            text.push_str(&cells.map(cell).join(","));
            text.push('\n');
        }
    }
    text
}

fn word(judged: Judged) -> &'static str {
    match judged {
        Judged::Same => "same",
        Judged::Noise => "noise",
        Judged::Better => "better",
        Judged::Worse => "worse",
        Judged::Changed => "changed",
    }
}

/// A cell, quoted where it must be. A name that a spreadsheet would take for a formula gets a quote in front of it.
fn cell(text: &str) -> String {
    let is_formula =
        text.starts_with(['=', '+', '@', '\t', '\r']) || (text.starts_with('-') && text.parse::<f64>().is_err());
    let guard = if is_formula { "'" } else { "" };
    if is_formula || text.contains([',', '"', '\n', '\r']) {
        format!("\"{guard}{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_others_stay_in_their_cell_and_are_no_formulas() {
        assert_eq!(cell("a,b"), "\"a,b\"");
        assert_eq!(cell("say \"hi\"\n"), "\"say \"\"hi\"\"\n\"");
        assert_eq!(cell("=1+1"), "\"'=1+1\"");
        assert_eq!(cell("-3.5"), "-3.5");
        assert_eq!(cell("-rm"), "\"'-rm\"");
    }
}

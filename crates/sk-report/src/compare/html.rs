//! The comparison as one page: figures, overlaid curves, differences. One file, no network.
//!
//! It shares the report's style sheet. The figures are a plain table and need no script; the script draws the curves.
//! Everything that comes from a record is escaped.

use serde::Serialize;

use super::Comparison;
use super::judged::Asserted;
use super::rows::{Judged, Row};
use super::study;
use super::table::currency;
use crate::assertion::Evaluated;
use crate::escape::markup;
use crate::html::{Page, points};

const STYLE: &str = include_str!("../../assets/compare.css");
const SCRIPTS: [&str; 2] = [include_str!("../../assets/tables.js"), include_str!("../../assets/compare.js")];

/// Columns that are drawn: eight colours can be distinguished. The table has all of them.
pub const DRAWN_MAX: usize = 8;

#[derive(Serialize)]
struct Data<'a> {
    /// When the first run began, in milliseconds since the epoch.
    start: i64,
    length: i64,
    runs: Vec<Curve<'a>>,
}

#[derive(Serialize)]
struct Curve<'a> {
    label: &'a str,
    /// Is it a recording? It is drawn in grey, as in the report.
    recorded: bool,
    running: Vec<(i64, i64)>,
    pending: Vec<(i64, i64)>,
    nodes: Vec<(i64, i64)>,
}

/// The whole page.
pub fn render(comparison: &Comparison) -> Result<String, serde_json::Error> {
    let data = serde_json::to_string(&data(comparison))?;
    let labels: Vec<String> = comparison.columns.iter().map(|column| markup(&column.label)).collect();
    let title: Vec<&str> = comparison.columns.iter().map(|column| column.label.as_str()).collect();
    let body = [
        header(comparison, &labels),
        trust(comparison),
        assertions(comparison),
        PICTURE.to_owned(),
        study::page::render(comparison),
        figures(comparison, &labels),
        differs(comparison, &labels),
        moved(comparison),
        runs(comparison),
    ]
    .concat();
    let title = title.join(" · ");
    Ok(Page { title: &title, run: "", body: &body, data: &data, style: STYLE, scripts: &SCRIPTS }.render())
}

/// The outcome of the assertions, each with its values.
fn assertions(comparison: &Comparison) -> String {
    let row = |Asserted { label, verdict }: &Asserted| {
        let (class, word, why) = match &verdict.result {
            Evaluated::Held => ("pass", "PASS", String::new()),
            Evaluated::Failed => ("fail", "FAIL", String::new()),
            Evaluated::Unknown(why) => ("error", "ERROR", format!(" {}", markup(why))),
        };
        let values: Vec<String> = verdict.values.iter().map(|(path, value)| format!("{path} = {value}")).collect();
        let [label, text, values] = [label, &verdict.text, &values.join(", ")].map(|text| markup(text));
        format!(
            "<tr><td><span class=\"mark {class}\">{word}</span></td><td>{label}</td><td><code>{text}</code>{why}</td>\
             <td>{values}</td></tr>\n"
        )
    };
    let rows: String = comparison.assertions.iter().map(row).collect();
    if rows.is_empty() {
        return rows;
    }
    format!(
        "<section>\n<h2>Assertions</h2>\n<div class=\"scroll\"><table class=\"judged\"><thead><tr><th scope=\"col\">result</th>\
         <th scope=\"col\">run</th><th scope=\"col\">assertion</th><th scope=\"col\">values</th></tr></thead>\n<tbody>\n{rows}\
         </tbody></table></div>\n</section>\n"
    )
}

fn data(comparison: &Comparison) -> Data<'_> {
    let drawn = comparison.columns.iter().filter_map(|column| {
        let (window, curves) = column.members[0].curves.as_ref()?;
        let curve = |step| points(step, *window);
        let recorded = column.members[0].is_recording();
        let [running, pending, nodes] = [&curves.running, &curves.pending, &curves.nodes].map(curve);
        Some((window.length().as_micros() / 1_000, Curve { label: &column.label, recorded, running, pending, nodes }))
    });
    let drawn: Vec<(i64, Curve<'_>)> = drawn.take(DRAWN_MAX).collect();
    let length = drawn.iter().map(|(length, _)| *length).max().unwrap_or(0);
    let first = comparison.columns.iter().find_map(|column| column.members[0].curves.as_ref());
    let start = first.map_or(0, |(window, _)| window.start.as_micros().div_euclid(1_000));
    Data { start, length, runs: drawn.into_iter().map(|(_, curve)| curve).collect() }
}

fn header(comparison: &Comparison, labels: &[String]) -> String {
    let count = |judged| {
        let last = comparison.rows.iter().filter_map(|row| Some((row.path, row.changes.last().copied().flatten()?)));
        // The cost per hour, month and year is one figure.
        let paths = last.filter(|(_, change)| change.judged == judged).map(|(path, _)| path);
        paths.collect::<std::collections::BTreeSet<_>>().len()
    };
    let (worse, better) = (count(Judged::Worse), count(Judged::Better));
    let (first, last) = (&labels[0], labels.last().map_or("", String::as_str));
    let sentence = match (worse, better) {
        (0, 0) => format!("{last} is no better and no worse than {first}"),
        (worse, 0) => format!("{last} is worse than {first} in {worse} figures"),
        (0, better) => format!("{last} is better than {first} in {better} figures"),
        (worse, better) => format!("{last} against {first}: {better} figures better, {worse} worse"),
    };
    format!(
        "<header>\n<p class=\"run\">comparison · the first run is the baseline</p>\n<h1>{sentence}</h1>\n</header>\n"
    )
}

fn trust(comparison: &Comparison) -> String {
    let cautions: Vec<String> = comparison.cautions().iter().map(|caution| markup(caution)).collect();
    if cautions.is_empty() {
        return String::new();
    }
    format!("<p class=\"trust amber\"><b>Trust</b> {}</p>\n", cautions.join(" · "))
}

const PICTURE: &str = "<section class=\"card\" aria-label=\"What happened when, run over run\">\n\
    <div class=\"legend\" id=\"legend\"></div>\n\
    <div id=\"picture\" tabindex=\"0\" role=\"img\" aria-label=\"What happened when\" aria-describedby=\"picture-help\"></div>\n\
    <p class=\"unseen\" id=\"picture-says\" role=\"status\"></p>\n\
    <p class=\"help\" id=\"picture-help\">Drag to zoom. Keys: ← → move, + − zoom, Shift ← → shift, Esc whole run. \
    <button type=\"button\" id=\"whole\" hidden>Whole run</button></p>\n\
    <noscript><p>The pictures need JavaScript; all figures are here without it.</p></noscript>\n</section>\n";

fn figures(comparison: &Comparison, labels: &[String]) -> String {
    let heads: String = labels
        .iter()
        .enumerate()
        .map(|(place, label)| {
            let against = if place == 0 { "" } else { "<th scope=\"col\" class=\"num\">change</th>" };
            format!("<th scope=\"col\" class=\"num\">{label}</th>{against}")
        })
        .collect();
    let rows: String = comparison.rows.iter().map(|row| figure(comparison, row)).collect();
    format!(
        "<section>\n<h2>Figures</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Figures\">\
         <table class=\"compared\"><thead><tr><th scope=\"col\">figure</th>\
         {heads}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n</section>\n"
    )
}

fn figure(comparison: &Comparison, row: &Row) -> String {
    let mut cells = String::new();
    for place in 0..comparison.columns.len() {
        let money = currency(comparison, place);
        cells.push_str(&format!("<td class=\"num\">{}</td>", markup(&row.value(place, money))));
        if place == 0 {
            continue;
        }
        let change = row.changes[place - 1].map(|change| {
            let class = change.judged.word().to_lowercase();
            let text = [row.difference(&change, money), row.noise(&change, money), change.judged.word().to_owned()];
            format!("<span class=\"{class}\">{}</span>", markup(text.join(" ").trim()))
        });
        cells.push_str(&format!("<td class=\"num\">{}</td>", change.unwrap_or_default()));
    }
    format!("<tr><th scope=\"row\" title=\"{}\">{}</th>{cells}</tr>\n", row.path, row.label)
}

fn differs(comparison: &Comparison, labels: &[String]) -> String {
    let row = |(label, differences): (&String, &Vec<super::differs::Difference>)| -> String {
        if differences.is_empty() {
            return format!("<tr><td>{label}</td><td colspan=\"3\">nothing: the same inputs</td></tr>\n");
        }
        let cells = differences.iter().map(|one| {
            let [path, old, new] = [&one.path, &one.old, &one.new].map(|text| markup(text));
            format!("<tr><td>{label}</td><td><code>{path}</code></td><td>{old}</td><td>{new}</td></tr>\n")
        });
        cells.collect()
    };
    let rows: String = labels.iter().skip(1).zip(&comparison.differs).map(row).collect();
    format!(
        "<section>\n<h2>How the inputs differ</h2>\n<div class=\"scroll\"><table class=\"live\"><thead><tr><th scope=\"col\">run</th>\
         <th scope=\"col\">field</th><th scope=\"col\">{}</th><th scope=\"col\">here</th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n</section>\n",
        labels[0]
    )
}

fn moved(comparison: &Comparison) -> String {
    if comparison.moved.is_empty() {
        return String::new();
    }
    let rows: String =
        comparison.moved.iter().map(|moved| format!("<li>{}</li>\n", markup(&moved.sentence()))).collect();
    format!("<section>\n<h2>Moved most</h2>\n<ul>\n{rows}</ul>\n</section>\n")
}

fn runs(comparison: &Comparison) -> String {
    let members =
        comparison.columns.iter().flat_map(|column| column.members.iter().map(move |member| (column, member)));
    let row = |(column, member): (&super::Column, &super::Member)| {
        let meta = &member.meta;
        let verdict = member.verdict.as_deref().unwrap_or("–");
        format!(
            "<tr><td>{}</td><td><code>{}</code></td><td><span class=\"mark {}\">{}</span></td><td>{}</td><td class=\"num\">{}</td>\
             <td>{}</td></tr>\n",
            markup(&column.label),
            markup(&meta.run_id),
            markup(&verdict.to_lowercase()),
            markup(verdict),
            markup(&meta.trace.name),
            meta.seed,
            markup(&meta.version),
        )
    };
    let rows: String = members.map(row).collect();
    format!(
        "<section>\n<h2>Runs</h2>\n<div class=\"scroll\"><table class=\"live\"><thead><tr><th scope=\"col\">column</th><th scope=\"col\">run</th>\
         <th scope=\"col\">verdict</th><th scope=\"col\">trace</th><th scope=\"col\" class=\"num\">seed</th><th scope=\"col\">SimKube</th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n</section>\n"
    )
}

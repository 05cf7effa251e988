//! The comparison as one page: figures, overlaid curves, differences. One file, no network.
//!
//! It shares the report's style sheet, so the two read alike. The figures stand in the page as a table and need no
//! script; the script draws the curves. Everything that comes from a record is escaped.

use serde::Serialize;

use super::Comparison;
use super::rows::{Judged, Row};
use super::table::currency;
use crate::escape::{json_in_script, markup};
use crate::html::points;

const STYLE: &str = include_str!("../../assets/report.css");
const COMPARE_STYLE: &str = include_str!("../../assets/compare.css");
const SCRIPT: &str = include_str!("../../assets/compare.js");

/// Columns that are drawn: eight colours can be told apart. The table has all of them.
const DRAWN_MAX: usize = 8;

#[derive(Serialize)]
struct Data<'a> {
    length: i64,
    runs: Vec<Curve<'a>>,
}

#[derive(Serialize)]
struct Curve<'a> {
    label: &'a str,
    running: Vec<(i64, i64)>,
    pending: Vec<(i64, i64)>,
    nodes: Vec<(i64, i64)>,
}

/// The whole page.
pub fn render(comparison: &Comparison) -> Result<String, serde_json::Error> {
    let data = json_in_script(&serde_json::to_string(&data(comparison))?);
    let labels: Vec<String> = comparison.columns.iter().map(|column| markup(&column.label)).collect();
    let title = labels.join(" · ");
    let body = [header(comparison, &labels), trust(comparison), PICTURE.into(), figures(comparison, &labels)];
    let rest = [differs(comparison, &labels), moved(comparison), runs(comparison)];
    Ok(format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'unsafe-inline'\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <style>\n{STYLE}{COMPARE_STYLE}</style>\n</head>\n<body>\n<main>\n{}{}</main>\n\
         <script type=\"application/json\" id=\"data\">{data}</script>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        body.concat(),
        rest.concat(),
    ))
}

fn data(comparison: &Comparison) -> Data<'_> {
    let drawn = comparison.columns.iter().filter_map(|column| {
        let (window, curves) = column.members[0].curves.as_ref()?;
        let curve = |step| points(step, *window);
        let [running, pending, nodes] = [&curves.running, &curves.pending, &curves.nodes].map(curve);
        Some((window.length().as_micros() / 1_000, Curve { label: &column.label, running, pending, nodes }))
    });
    let drawn: Vec<(i64, Curve<'_>)> = drawn.take(DRAWN_MAX).collect();
    let length = drawn.iter().map(|(length, _)| *length).max().unwrap_or(0);
    Data { length, runs: drawn.into_iter().map(|(_, curve)| curve).collect() }
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
    <div class=\"legend\" id=\"legend\"></div>\n<div id=\"curves\" role=\"img\"></div>\n\
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
        "<section>\n<h2>Figures</h2>\n<div class=\"scroll\"><table class=\"compared\"><thead><tr><th scope=\"col\">figure</th>\
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
            return format!("<tr><td>{label}</td><td colspan=\"3\">nothing: the same question</td></tr>\n");
        }
        let cells = differences.iter().map(|one| {
            let [path, old, new] = [&one.path, &one.old, &one.new].map(|text| markup(text));
            format!("<tr><td>{label}</td><td><code>{path}</code></td><td>{old}</td><td>{new}</td></tr>\n")
        });
        cells.collect()
    };
    let rows: String = labels.iter().skip(1).zip(&comparison.differs).map(row).collect();
    format!(
        "<section>\n<h2>How the questions differ</h2>\n<div class=\"scroll\"><table><thead><tr><th>run</th><th>field</th>\
         <th>{}</th><th>here</th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n</section>\n",
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
        "<section>\n<h2>Runs</h2>\n<div class=\"scroll\"><table><thead><tr><th></th><th>run</th><th>verdict</th><th>trace</th>\
         <th class=\"num\">seed</th><th>SimKube</th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n</section>\n"
    )
}

//! report.html: one file, no network, at most [`BYTES_MAX`] bytes; the first screen shows the result without
//! scrolling.
//!
//! Text and tables are written here and readable without JavaScript; the scripts in assets/ draw the charts, and the
//! tables of pods, decisions and nodes, from the JSON in the page. Everything that comes from a trace is escaped, and
//! the page's Content-Security-Policy forbids any connection.

mod data;
mod page;
mod tables;

pub(crate) use data::points;
pub(crate) use page::Page;

use crate::analysis::Analysis;
use crate::assertion::{Evaluated, Verdict};
use crate::compare::differs::Difference;
use crate::escape::markup;
use crate::events::{Detail, Events};
use crate::gaps::Gap;
use crate::incidents::Incident;
use crate::verdict::{Judged, Judgement, Mark, Trust};
use crate::words::{self, grouped, plural};

/// What a report may weigh. Its parts are bounded one by one: pods 6 MB, answers of the scheduler 1.5, texts 1.2, names
/// 0.8, nodes 0.7, decisions of the autoscaler 1, curves 0.5, tables 600 rows of about 1 KB, scenario 0.3. Where all of
/// them come to their bounds, or text is made of nothing but `<`, which is six times as long when escaped, pods that
/// just ran are left out, and then pods are counted by owner and minute.
pub const BYTES_MAX: usize = 10_000_000;

/// Scenario text shown in the page; the rest stays in scenario.yaml.
const SCENARIO_MAX_BYTES: usize = 256 << 10;

/// Rows of "longest waits" on the first screen.
const FIRST_WAITS: usize = 5;

const SCRIPTS: [&str; 6] = [
    include_str!("../../assets/run.js"),
    include_str!("../../assets/tables.js"),
    include_str!("../../assets/picture.js"),
    include_str!("../../assets/nodes.js"),
    include_str!("../../assets/explore.js"),
    include_str!("../../assets/report.js"),
];

/// The scenario as the page shows it.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The resolved scenario, as it lies beside the report.
    pub text: &'a str,
    /// In which fields it differs from the defaults.
    pub differs: &'a [Difference],
}

/// The whole page, with as much detail as fits.
pub fn render(
    analysis: &Analysis,
    judgement: &Judgement,
    asked: Option<Asked<'_>>,
) -> Result<String, serde_json::Error> {
    let title = format!("{} {}", judgement.mark.word(), analysis.meta.run_id);
    let body = body(analysis, judgement, asked);
    let page = |events: &Events| -> Result<String, serde_json::Error> {
        let data = serde_json::to_string(&data::of(analysis, events))?;
        let run = &analysis.meta.run_id;
        Ok(Page { title: &title, run, body: &body, data: &data, style: "", scripts: &SCRIPTS }.render())
    };
    let mut text = page(&analysis.events)?;
    for detail in [Detail::Eventful, Detail::Counted] {
        if text.len() <= BYTES_MAX {
            break;
        }
        text = page(&analysis.events.with(detail, analysis.window))?;
    }
    Ok(text)
}

fn body(analysis: &Analysis, judgement: &Judgement, asked: Option<Asked<'_>>) -> String {
    [
        header(analysis, judgement),
        trust(analysis),
        five_figures(analysis),
        PICTURE.to_owned(),
        STORY.to_owned(),
        waits(analysis),
        EXPLORE.to_owned(),
        causes(analysis),
        nodes(analysis),
        LATENCY.to_owned(),
        tables::not_simulated(judgement),
        tables::figures(analysis),
        tables::groups(analysis),
        tables::workloads("Namespaces", "namespace", &analysis.summary.namespaces),
        tables::workloads("Owners", "owner", &analysis.summary.owners),
        assertions(judgement),
        scenario(asked),
        files(analysis),
    ]
    .concat()
}

fn header(analysis: &Analysis, judgement: &Judgement) -> String {
    let meta = &analysis.meta;
    let mark = judgement.mark;
    // Never green while something is left out, accepted or not.
    let class = match mark {
        Mark::Pass if !judgement.accepted.is_empty() => "incomplete".to_owned(),
        mark => mark.word().to_lowercase(),
    };
    let failed: String = judgement
        .verdicts
        .iter()
        .filter(|verdict| verdict.result != Evaluated::Held)
        .map(|verdict| format!("<li><code>{}</code>{}</li>", markup(&verdict.with_values()), why(judgement, verdict)))
        .collect();
    let failed = if failed.is_empty() { failed } else { format!("<ul class=\"failed\">{failed}</ul>\n") };
    let missing: String = judgement.gaps.iter().map(missing_kind).collect();
    let missing = if missing.is_empty() { missing } else { format!("<ul class=\"left-out\">{missing}</ul>\n") };
    format!(
        "<header>\n<p class=\"run\"><b>{}</b> · {} simulated · Kubernetes {} rules · seed {} · <code>{}</code></p>\n\
         <h1><span class=\"mark {class}\">{}</span> {}</h1>\n{failed}{missing}</header>\n",
        markup(&meta.name),
        analysis.window.length(),
        markup(&meta.kubernetes),
        meta.seed,
        markup(&meta.run_id),
        mark.word(),
        markup(&judgement.sentence(analysis)),
    )
}

fn trust(analysis: &Analysis) -> String {
    let trust = Trust::of(analysis);
    let class = if trust.amber { "trust amber" } else { "trust" };
    let pieces: Vec<String> = trust.pieces.iter().map(|piece| markup(piece)).collect();
    format!("<p class=\"{class}\"><b>Trust</b> {}</p>\n", pieces.join(" · "))
}

fn five_figures(analysis: &Analysis) -> String {
    let summary = &analysis.summary;
    let empty_share = summary.node_hours.empty / summary.node_hours.total;
    let empty_share = if empty_share.is_finite() { words::percent(empty_share) } else { words::percent(0.0) };
    let started = format!("{} started", words::plural(summary.pods.ran, "pod"));
    let waited = format!("{} of {} waited", grouped(summary.pending.pods), plural(summary.pods.created, "pod"));
    let empty = format!("{} of them ({empty_share}) empty", words::decimal(summary.node_hours.empty));
    let (cost, cost_note) = match &summary.cost {
        Some(cost) => {
            let money = |amount| words::money(amount, &analysis.meta.currency);
            (money(cost.total), format!("{} of it for empty nodes", money(cost.empty)))
        }
        None => ("–".to_owned(), "no price, so no cost".to_owned()),
    };
    let unschedulable = summary.unschedulable.pods;
    let figures = [
        ("latency", "start latency p99", summary.start_latency.p99.to_string(), started),
        ("wait", "longest wait", summary.pending.longest.to_string(), waited),
        ("unschedulable", "unschedulable", grouped(unschedulable), "pods no node could take".to_owned()),
        ("hours", "node-hours", words::decimal(summary.node_hours.total), empty),
        ("cost", "cost", cost, cost_note),
    ];
    let tiles = figures.map(|(id, label, value, note)| {
        let class = if id == "unschedulable" && unschedulable > 0 { "figure bad" } else { "figure" };
        let (value, note) = (markup(&value), markup(&note));
        format!(
            "<div class=\"{class}\" id=\"tile-{id}\"><dt>{label}</dt><dd>{value}</dd>\
             <dd class=\"note\">{note}</dd></div>\n"
        )
    });
    format!(
        "<p class=\"interval\" id=\"interval\" role=\"status\"></p>\n<dl class=\"figures\">\n{}</dl>\n",
        tiles.concat()
    )
}

const PICTURE: &str = "<section class=\"card\" aria-label=\"What happened when\">\n\
    <div class=\"legend\" id=\"legend\"></div>\n\
    <div id=\"picture\" tabindex=\"0\" role=\"img\" aria-label=\"What happened when\" aria-describedby=\"picture-help\"></div>\n\
    <p class=\"unseen\" id=\"picture-says\" role=\"status\"></p>\n\
    <p class=\"help\" id=\"picture-help\">Drag to zoom everything on this page. Keys: ← → move, + − zoom, Shift ← → shift, \
    Esc whole run. <button type=\"button\" id=\"whole\" hidden>Whole run</button></p>\n\
    <noscript><p>The pictures need JavaScript; all figures and tables are here without it.</p></noscript>\n</section>\n";

/// One pod's or node's page, by the address' fragment.
const STORY: &str =
    "<section id=\"story\" class=\"card\" aria-live=\"polite\" aria-label=\"One pod or node\" hidden></section>\n";

const EXPLORE: &str = "<section id=\"pods\">\n<h2>Pods</h2>\n</section>\n\
    <section id=\"minutes\" hidden>\n<h2>Waits by owner and minute</h2>\n</section>\n\
    <section id=\"decisions\">\n<h2>Decisions of the scheduler</h2>\n</section>\n\
    <section id=\"scalings\" hidden>\n<h2>Decisions of the autoscaler</h2>\n</section>\n";

const LATENCY: &str = "<section id=\"latency-section\">\n<h2>Start latency <span class=\"count\">share of pods running within a \
    time</span></h2>\n<div class=\"card\"><div id=\"latency\" role=\"img\" aria-label=\"Share of pods running within a time\">\
    </div></div>\n</section>\n";

fn waits(analysis: &Analysis) -> String {
    if analysis.incidents.is_empty() {
        return "<section>\n<h2>Longest waits</h2>\n<p class=\"none\">No pod had to wait for a node.</p>\n</section>\n"
            .into();
    }
    let row = |(place, incident): (usize, &Incident)| {
        let class = if place < FIRST_WAITS { "" } else { " class=\"more\"" };
        let at = |time| words::clock(time, analysis.window);
        format!(
            "<tr{class} data-wait=\"{place}\"><td><a href=\"#wait={place}\">{}</a></td><td class=\"num\">{}</td>\
             <td class=\"num\" data-v=\"{}\">{}–{}</td><td class=\"num\" data-v=\"{}\">{}</td><td>{}, {}</td></tr>\n",
            markup(&incident.owner),
            grouped(incident.pods),
            incident.from.as_micros(),
            at(incident.from),
            at(incident.to),
            incident.longest.as_micros(),
            incident.longest,
            markup(&incident.reason),
            markup(&incident.ending.to_string()),
        )
    };
    let rows: String = analysis.incidents.iter().enumerate().map(row).collect();
    let shown = analysis.incidents.len();
    let more = shown.saturating_sub(FIRST_WAITS);
    let button = if more > 0 {
        format!("<p><button type=\"button\" id=\"more-waits\">Show {more} more</button></p>\n")
    } else {
        String::new()
    };
    let count = tables::showing(shown, analysis.incidents_total, "");
    format!(
        "<section id=\"waits\">\n<h2>Longest waits <span class=\"count\">{count}</span></h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Longest waits\">\
         <table class=\"live\"><thead><tr><th scope=\"col\">who</th><th scope=\"col\" class=\"num\">pods</th>\
         <th scope=\"col\" class=\"num\">when</th><th scope=\"col\" class=\"num\">longest</th><th scope=\"col\">why</th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n{button}</section>\n",
    )
}

fn nodes(analysis: &Analysis) -> String {
    let shown = analysis.nodes.iter().filter(|story| !story.loads.is_empty()).count();
    let count = tables::showing(shown, analysis.nodes_total, "nodes, those empty longest");
    format!(
        "<section>\n<h2>Load of nodes <span class=\"count\">{count}</span></h2>\n<p class=\"help\">CPU asked for, as a share of \
         what the node has to give. <span class=\"scale\" id=\"scale\"></span></p>\n<div class=\"card\"><div id=\"nodes\"></div></div>\n\
         </section>\n<section id=\"node-table\">\n<h2>Nodes</h2>\n</section>\n"
    )
}

fn causes(analysis: &Analysis) -> String {
    const SHOWN: usize = 20;
    let pending = analysis.pending_causes.iter().take(SHOWN).map(|cause| {
        let text = format!("{}, {}", cause.reason, cause.ending);
        let pods = plural(cause.pods, "pod");
        format!(
            "<tr><td>{pods} waited</td><td>{}</td><td class=\"num\">up to {}</td></tr>\n",
            markup(&text),
            cause.longest
        )
    });
    let empty = analysis.empty_causes.iter().take(SHOWN).map(|cause| {
        let hours = words::decimal(cause.hours);
        format!(
            "<tr><td>nodes empty</td><td>{}</td><td class=\"num\">{hours} node-hours</td></tr>\n",
            markup(&cause.reason)
        )
    });
    let rows: String = pending.chain(empty).collect();
    if rows.is_empty() {
        return String::new();
    }
    format!("<section>\n<h2>Why</h2>\n<div class=\"scroll\"><table><tbody>\n{rows}</tbody></table></div>\n</section>\n")
}

/// One kind of what was not simulated, with its worst objects.
fn missing_kind(gap: &Gap) -> String {
    const EXAMPLES: usize = 5;
    let examples: Vec<String> = gap.examples().take(EXAMPLES).collect();
    let text = format!("{}: {}", gap.size.in_words(), examples.join(", "));
    format!("<li><b>{}</b> {}</li>", markup(&gap.label()), markup(&text))
}

/// Why an assertion is neither held nor failed, behind it.
fn why(judgement: &Judgement, verdict: &Verdict) -> String {
    match judgement.judged(verdict) {
        Judged::Skipped(why) | Judged::Error(why) => format!(" {}", markup(&why)),
        Judged::Pass | Judged::Fail => String::new(),
    }
}

fn assertions(judgement: &Judgement) -> String {
    if judgement.verdicts.is_empty() {
        return String::new();
    }
    let row = |verdict: &Verdict| {
        let judged = judgement.judged(verdict);
        let (class, word) = (judged.word().to_lowercase(), judged.word());
        let values: Vec<String> = verdict.values.iter().map(|(path, value)| format!("{path} = {value}")).collect();
        let name = verdict.name.as_deref().map(|name| format!("{}<br>", markup(name))).unwrap_or_default();
        format!(
            "<tr><td><span class=\"mark {class}\">{word}</span></td><td>{name}<code>{}</code>{}</td><td>{}</td></tr>\n",
            markup(&verdict.text),
            why(judgement, verdict),
            markup(&values.join(", "))
        )
    };
    let rows: String = judgement.verdicts.iter().map(row).collect();
    format!(
        "<section>\n<h2>Assertions</h2>\n<div class=\"scroll\"><table class=\"judged\"><tbody>\n{rows}</tbody></table></div>\n</section>\n"
    )
}

fn scenario(asked: Option<Asked<'_>>) -> String {
    let Some(Asked { text, differs }) = asked else { return String::new() };
    let mut end = text.len().min(SCENARIO_MAX_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let rest = if end < text.len() { "\n… the rest is in scenario.yaml" } else { "" };
    let row = |one: &Difference| {
        let [path, old, new] = [&one.path, &one.old, &one.new].map(|text| markup(text));
        format!("<tr><td><code>{path}</code></td><td>{old}</td><td>{new}</td></tr>\n")
    };
    let rows: String = differs.iter().map(row).collect();
    let differs = if rows.is_empty() {
        String::new()
    } else {
        format!(
            "<div class=\"scroll\"><table><thead><tr><th scope=\"col\">differs from the defaults in</th><th scope=\"col\">default</th>\
             <th scope=\"col\">here</th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n"
        )
    };
    format!(
        "<section>\n<h2>Scenario</h2>\n{differs}<details><summary>All of it, resolved</summary><pre tabindex=\"0\">{}{rest}</pre>\
         </details>\n</section>\n",
        markup(&text[..end])
    )
}

fn files(analysis: &Analysis) -> String {
    const FILES: [(&str, &str); 9] = [
        ("summary.json", "all figures and assertions"),
        ("run.json", "what was asked, and the warnings in full"),
        ("scenario.yaml", "the resolved scenario, ready to run again"),
        ("pods.parquet", "one row per pod"),
        ("nodes.parquet", "one row per node"),
        ("series.parquet", "what changed when"),
        ("decisions.parquet", "every answer of the scheduler"),
        ("autoscaler.parquet", "every decision of the autoscaler"),
        ("events.parquet", "Kubernetes Events"),
    ];
    let rows = FILES.map(|(file, about)| format!("<li><a href=\"{file}\">{file}</a> {about}</li>\n"));
    let meta = &analysis.meta;
    format!(
        "<section>\n<h2>Files beside this report</h2>\n<ul class=\"files\">\n{}</ul>\n<pre tabindex=\"0\">duckdb -c \"select owner, \
         max(pending_s) wait_s from 'pods.parquet' group by 1 order by 2 desc limit 5\"</pre>\n</section>\n\
         <footer>SimKube {} · trace {} ({}) · {} to {}</footer>\n",
        rows.concat(),
        markup(&meta.version),
        markup(&meta.trace.name),
        markup(&meta.trace.format),
        meta.start.to_rfc3339_secs(),
        meta.end.to_rfc3339_secs(),
    )
}

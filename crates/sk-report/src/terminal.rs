//! The summary that ends a run: as wide as the terminal, at most 80 columns, and 24 lines at 80 columns, the same with
//! and without colour. What was not simulated, what limits trust and wrapped lines come on top of that and are never
//! cut. Nor is what a user may copy: the run's id, the report's path and the suggested commands exceed the last column
//! if they must. A narrow terminal gets a smaller chart.
//!
//! Order: verdict, how far to trust it, the chart, the five main figures, the causes, next commands. Colour is escape
//! codes around whole words; the caller (anstream) decides whether they stay.

use anstyle::{AnsiColor, Style};

use crate::analysis::Analysis;
use crate::assertion::{Evaluated, Verdict};
use crate::causes::{EmptyCause, Ending, PendingCause};
use crate::figures::Summary;
use crate::gaps::Gap;
use crate::spark;
use crate::step::{Step, Window};
use crate::verdict::{Judgement, Mark, Trust};
use crate::words::{self, fit, fit_middle, grouped, plural, width};

/// The most columns of a line, and the default if the terminal's width is unknown.
pub const COLUMNS: usize = 80;
/// A terminal that is narrower breaks the lines itself.
const LEAST_COLUMNS: usize = 30;
/// Lines of a summary of [`COLUMNS`], those about what was not simulated and about trust aside.
pub const LINES: usize = 24;
/// Lines about where to go next at least: the report, and a command to try.
const LEAST_NEXT: usize = 2;

const PLAIN: Style = Style::new();
const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();
const CAREFUL: Style = AnsiColor::Yellow.on_default().bold();

/// What only the caller knows; none of it is in the record.
#[derive(Clone, Copy, Debug, Default)]
pub struct Occasion<'a> {
    /// How long the simulation took by the wall clock, in seconds.
    pub wall_s: Option<f64>,
    /// Where the report lies.
    pub report: Option<&'a str>,
    /// Commands worth trying next.
    pub tries: &'a [String],
    /// The terminal's width; [`COLUMNS`] by default.
    pub columns: Option<usize>,
}

/// The whole summary, with a newline after each line.
pub fn render(analysis: &Analysis, judgement: &Judgement, occasion: &Occasion<'_>) -> String {
    let columns = occasion.columns.unwrap_or(COLUMNS).clamp(LEAST_COLUMNS, COLUMNS);
    let blank = || vec![Line::default()];
    let (headline, failures) = self::judged(analysis, judgement, columns);
    let causes = causes(analysis);
    let rest = LINES.saturating_sub(FIXED_LINES + failures.len() + causes.len());
    let next = directions(occasion, rest.max(LEAST_NEXT));
    let sections = [
        vec![header(analysis, occasion, columns)],
        blank(),
        vec![headline],
        not_simulated(judgement, columns),
        failures,
        trust(analysis, columns),
        blank(),
        picture(analysis, columns),
        blank(),
        figures(analysis),
    ];
    let mut lines: Vec<Line> = sections.into_iter().flatten().collect();
    for section in [causes, next].into_iter().filter(|section| !section.is_empty()) {
        lines.push(Line::default());
        lines.extend(section);
    }
    lines.iter().map(|line| line.styled(columns)).collect()
}

/// Header 1, headline 1, trust 1, picture 5, figures 5, blank lines between the sections 5. Of the 24, up to two
/// assertions that failed take 3 with who was never placed, and the causes at most 2, so at least 1 is left for where
/// to go next. More failures and further limits of trust are shown all the same, in lines beyond the 24.
const FIXED_LINES: usize = 18;

fn header(analysis: &Analysis, occasion: &Occasion<'_>, columns: usize) -> Line {
    let meta = &analysis.meta;
    let wall = occasion.wall_s.map(|wall_s| format!(" in {}", wall(wall_s))).unwrap_or_default();
    let rest = format!(
        "  {} simulated{wall} · Kubernetes {} rules · seed {} · ",
        analysis.window.length(),
        meta.kubernetes,
        meta.seed
    );
    let id = words::printable(&meta.run_id);
    // On a narrow terminal the rest is broken, and the name has a line of its own.
    let beside = COLUMNS.saturating_sub(width(&rest) + width(&id)).max(8);
    let name_columns = if columns < COLUMNS { columns } else { beside };
    Line::of(BOLD, &fit_middle(&meta.name, name_columns)).and(PLAIN, &rest).and_whole(PLAIN, &id).continued_at(2)
}

fn wall(seconds: f64) -> String {
    if seconds < 10.0 { format!("{seconds:.1}s") } else { sk_core::SimDuration::from_secs(seconds as i64).to_string() }
}

/// The headline, and the assertions that did not hold or could not be judged.
fn judged(analysis: &Analysis, judgement: &Judgement, columns: usize) -> (Line, Vec<Line>) {
    let style = match judgement.mark {
        Mark::Pass if judgement.accepted.is_empty() => GOOD,
        Mark::Fail => BAD,
        Mark::Done if judgement.accepted.is_empty() => BOLD,
        Mark::Pass | Mark::Done | Mark::Incomplete | Mark::Partial => CAREFUL,
    };
    let lead = judgement.mark.lead();
    let word = lead.trim_end();
    let headline =
        Line::of(style, word).and(PLAIN, &format!("{}{}", &lead[word.len()..], judgement.sentence(analysis)));
    let failed = judgement.verdicts.iter().filter(|verdict| verdict.is_failed());
    let unknown = judgement.verdicts.iter().filter(|verdict| matches!(verdict.result, Evaluated::Unknown(_)));
    let failed: Vec<&Verdict> = failed.chain(unknown).collect();
    let mut lines: Vec<Line> = failed.iter().map(|verdict| failure(verdict)).collect();
    lines.extend(never_placed(analysis, &failed, columns));
    (headline.continued_at(LABEL), lines)
}

/// One assertion that did not hold, with its values; of one that cannot be judged the reason comes first.
fn failure(verdict: &Verdict) -> Line {
    let text = match &verdict.result {
        Evaluated::Unknown(why) => format!("{why}: {}", verdict.text),
        Evaluated::Held | Evaluated::Failed => verdict.with_values(),
    };
    Line::of(PLAIN, &format!("       {text}")).continued_at(LABEL + 2)
}

/// Which pods make an assertion about unschedulable ones fail, and why no node took them; the longest waits first.
fn never_placed(analysis: &Analysis, failed: &[&Verdict], columns: usize) -> Option<Line> {
    let is_about_them = |verdict: &&Verdict| verdict.values.iter().any(|(path, _)| path.contains("unschedulable"));
    failed.iter().find(|verdict| is_about_them(verdict))?;
    let waiting = analysis.incidents.iter().filter(|incident| match incident.ending {
        Ending::Never | Ending::Gone => true,
        Ending::NodeReady(_) | Ending::Room => false,
    });
    let pods: Vec<String> = waiting
        .map(|incident| format!("{} {}: {}", incident.owner, plural(incident.pods, "pod"), incident.reason))
        .collect();
    let text = |shown: usize| {
        let more = pods.len() - shown;
        let more = if more > 0 { format!("; +{more} more") } else { String::new() };
        format!("       never placed  {}{more}", pods[..shown].join("; "))
    };
    // As many as fit whole, and the first in any case: half an owner's name is of no use.
    let shown = (1..=pods.len()).rev().find(|shown| width(&text(*shown)) <= columns).unwrap_or(1);
    (!pods.is_empty()).then(|| Line::of(PLAIN, &text(shown)).continued_at(LABEL + 2))
}

/// Each kind, worst first, with as many of its objects as three lines hold; all of them are in summary.json and in the
/// page.
fn not_simulated(judgement: &Judgement, columns: usize) -> Vec<Line> {
    let open = judgement.gaps.iter().map(|gap| (gap, ""));
    let accepted = judgement.accepted.iter().map(|gap| (gap, ", accepted"));
    open.chain(accepted).flat_map(|(gap, accepted)| missing_kind(gap, accepted, columns)).collect()
}

fn missing_kind(gap: &Gap, accepted: &str, columns: usize) -> Vec<Line> {
    const LINES_EACH: usize = 3;
    let mut lines = vec![format!("       {}{accepted}  {}:", gap.label(), gap.size.in_words())];
    for (place, example) in gap.examples().enumerate() {
        let (count, comma) = (lines.len(), if place == 0 { "" } else { "," });
        let last = lines.last_mut().expect("there is always a first line");
        if place == 0 || width(last) + width(&example) + 2 <= columns {
            last.push_str(&format!("{comma} {example}"));
        } else if count < LINES_EACH {
            last.push_str(comma);
            lines.push(format!("         {example}"));
        } else {
            last.push(',');
            lines.push(format!("         … all {} are in summary.json", gap.objects.len()));
            break;
        }
    }
    lines.iter().map(|line| Line::of(PLAIN, line).continued_at(LABEL + 2)).collect()
}

/// Columns of `PASS` and `TRUST`, with what separates them from the sentence.
const LABEL: usize = 7;

/// All that there is to know about the figures, worst first.
fn trust(analysis: &Analysis, columns: usize) -> Vec<Line> {
    let trust = Trust::of(analysis);
    let style = if trust.amber { CAREFUL } else { BOLD };
    let mut text: Vec<String> = Vec::new();
    for piece in &trust.pieces {
        match text.last_mut() {
            Some(line) if LABEL + width(line) + 3 + width(piece) <= columns => line.push_str(&format!(" · {piece}")),
            _ => text.push(piece.clone()),
        }
    }
    let label = |place| if place == 0 { Line::of(style, "TRUST") } else { Line::of(PLAIN, "     ") };
    let line = |(place, text): (usize, &String)| label(place).and(PLAIN, &format!("  {text}")).continued_at(LABEL);
    text.iter().enumerate().map(line).collect()
}

fn picture(analysis: &Analysis, columns: usize) -> Vec<Line> {
    /// Columns of a row's name.
    const NAME: usize = 9;
    /// A picture of fewer columns shows nothing.
    const LEAST: usize = 8;
    /// The columns beside the widest chart, and the longest name of an owner that is shown whole.
    const BESIDE: usize = COLUMNS - NAME - spark::COLUMNS - 2;
    let (curves, window) = (&analysis.curves, analysis.window);
    // Running and pending are both pods: on one scale their heights can be compared.
    let pods = curves.running.max().max(curves.pending.max());
    let running = format!("peak {}, end {}", grouped(curves.running.max()), grouped(curves.running.last()));
    let (nodes, pending) = (course(&curves.nodes), format!("peak {}", grouped(curves.pending.max())));
    let owner = analysis.marks.as_ref().map_or(0, |marks| width(&words::owner_name(&marks.owner)).min(BESIDE));
    let beside = [&running, &nodes, &pending].map(|text| width(text)).into_iter().max().unwrap_or(0).max(owner);
    let wide = columns.saturating_sub(NAME + 2 + beside).clamp(LEAST, spark::COLUMNS);
    let row = |label, colour: AnsiColor, step: &Step, full, text: &str| {
        let bars = spark::bars(step, window, full, wide);
        let text = fit(text, columns.saturating_sub(NAME + 2 + wide));
        Line::of(PLAIN, &format!("{label:<NAME$}")).and(colour.on_default(), &bars).and(PLAIN, &format!("  {text}"))
    };
    vec![
        row("running", AnsiColor::Green, &curves.running, pods, &running),
        row("nodes", AnsiColor::Blue, &curves.nodes, curves.nodes.max(), &nodes),
        row("pending", AnsiColor::Yellow, &curves.pending, pods, &pending),
        Line::of(DIM, &format!("{:NAME$}{}", "", spark::axis(window, wide))),
        marks(analysis, wide, columns - NAME),
    ]
}

/// `1 → 10 → 1`: where it began, its peak, where it ended.
fn course(step: &Step) -> String {
    let first = step.points().first().map_or(0, |point| point.1);
    let mut stations = vec![first, step.max(), step.last()];
    stations.dedup();
    let text: Vec<String> = stations.iter().map(|count| grouped(*count)).collect();
    if text.len() == 1 { format!("{} throughout", text[0]) } else { text.join(" → ") }
}

/// What changed and when, below a picture that is so wide, with the owner's name behind it; in as many columns.
fn marks(analysis: &Analysis, wide: usize, columns: usize) -> Line {
    let Some(marks) = &analysis.marks else { return Line::default() };
    let row = spark::marks(analysis.window, &marks.changes, wide);
    let name = fit_middle(&words::owner_name(&marks.owner), columns.saturating_sub(wide + 2));
    let gap = wide + 2 - width(&row).min(wide);
    Line::of(PLAIN, &format!("{:9}{row}{:gap$}{name}", "", ""))
}

fn figures(analysis: &Analysis) -> Vec<Line> {
    let summary = &analysis.summary;
    let evicted = format!("evicted {}", grouped(summary.evicted.pods));
    vec![
        labelled("start latency", &start_latency(summary)),
        labelled("pending", &waited(summary)),
        labelled("nodes", &stood(summary, &analysis.meta.currency)),
        labelled("requested CPU", &used(summary)),
        labelled(&evicted, &format!("preempted {}", grouped(summary.preempted.pods))),
    ]
}

fn start_latency(summary: &Summary) -> String {
    if summary.pods.ran == 0 {
        return "no pod started".to_owned();
    }
    let latency = &summary.start_latency;
    let figures = [("p50", latency.p50), ("p90", latency.p90), ("p99", latency.p99), ("max", latency.max)];
    figures.map(|(name, length)| format!("{name}{TIE}{length}")).join("   ")
}

fn waited(summary: &Summary) -> String {
    let (waited, pods) = (grouped(summary.pending.pods), plural(summary.pods.created, "pod"));
    let (longest, unschedulable) = (summary.pending.longest, grouped(summary.unschedulable.pods));
    format!("{waited} of {pods} waited, longest {longest}; unschedulable {unschedulable}")
}

fn stood(summary: &Summary, currency: &str) -> String {
    let (min, max) = (grouped(summary.nodes.min), grouped(summary.nodes.max));
    let (mean, hours) = (words::decimal(summary.nodes.mean), words::decimal(summary.node_hours.total));
    let cost = summary.cost.as_ref().map(|cost| format!("   {}", words::money(cost.total, currency)));
    format!("min{TIE}{min}  mean{TIE}{mean}  max{TIE}{max}   {hours}{TIE}node-hours{}", cost.unwrap_or_default())
}

fn used(summary: &Summary) -> String {
    let hours = &summary.node_hours;
    let share = words::percent(if hours.total > 0.0 { hours.empty / hours.total } else { 0.0 });
    let (requested, empty) = (words::percent(summary.requested.cpu), words::decimal(hours.empty));
    format!("{requested} of allocatable; {empty} node-hours ({share}) stood empty")
}

/// At most two lines of [`COLUMNS`], which a narrow terminal wraps: why pods waited and why nodes were empty.
fn causes(analysis: &Analysis) -> Vec<Line> {
    let pending = analysis.pending_causes.iter().map(why_pending);
    let empty = analysis.empty_causes.iter().map(|cause| why_empty(cause, analysis.window));
    let (mut pending, mut empty): (Vec<_>, Vec<_>) = (pending.take(2).collect(), empty.take(2).collect());
    if !pending.is_empty() && !empty.is_empty() {
        pending.truncate(1);
        empty.truncate(1);
    }
    pending.into_iter().chain(empty).collect()
}

fn why_pending(cause: &PendingCause) -> Line {
    let pods = plural(cause.pods, "pod");
    let columns = COLUMNS.saturating_sub(16 + width(&pods) + 3);
    let ending = format!(", {}", cause.ending);
    // The ending is ours and short; the reason comes from the scheduler and gives way.
    let reason = fit_list(&cause.reason, columns.saturating_sub(width(&ending)));
    labelled("why pending", &format!("{pods}   {reason}{ending}"))
}

/// As many items of a list as fit whole, but at least the first, on a line of its own if it must be. The report has
/// them all.
fn fit_list(list: &str, columns: usize) -> String {
    const FIRST_COLUMNS: usize = 40;
    let ends = list.match_indices(", ").map(|(end, _)| end).chain([list.len()]);
    let whole = ends.map(|end| &list[..end]).take_while(|items| width(items) <= columns).last();
    let first = || list.split(", ").next().unwrap_or(list);
    whole.map_or_else(|| fit(first(), FIRST_COLUMNS), str::to_owned)
}

fn why_empty(cause: &EmptyCause, window: Window) -> Line {
    let mut text = format!("{}:", cause.reason);
    for (shown, stretch) in cause.stretches.iter().enumerate() {
        let at = |time| words::moment(time, window.start, window.length());
        let nodes = if shown == 0 { plural(stretch.nodes as i64, "node") } else { grouped(stretch.nodes as i64) };
        let comma = if shown == 0 { "" } else { "," };
        let piece = format!("{comma} {nodes} {}–{}", at(stretch.window.start), at(stretch.window.end));
        let room_for_more = if shown + 1 < cause.stretches.len() { 3 } else { 0 };
        if shown > 0 && 16 + width(&text) + width(&piece) + room_for_more > COLUMNS {
            text.push_str(", …");
            break;
        }
        text.push_str(&piece);
    }
    labelled("why empty", &text)
}

fn directions(occasion: &Occasion<'_>, lines: usize) -> Vec<Line> {
    let report =
        occasion.report.map(|path| Line::of(BOLD, "report").and_whole(PLAIN, &format!("  {}", words::printable(path))));
    let tries = occasion.tries.iter().enumerate().map(|(place, command)| {
        let label = if place == 0 { "try" } else { "" };
        let command = words::printable(command);
        Line::of(BOLD, label).and_whole(PLAIN, &format!("{:gap$}{command}", "", gap = 8 - label.len()))
    });
    report.into_iter().chain(tries).take(lines).collect()
}

fn labelled(label: &str, text: &str) -> Line {
    Line::of(PLAIN, &format!("{label:<16}{text}")).continued_at(16)
}

/// A space at which no line is broken: it ties a figure to its name.
const TIE: char = '\u{a0}';

/// One line in parts of different colour. If the terminal is too narrow, it continues below.
#[derive(Debug, Default)]
struct Line {
    parts: Vec<Part>,
    /// The column at which it continues.
    indent: usize,
}

#[derive(Debug)]
struct Part {
    style: Style,
    text: String,
    /// A user may copy it, so it is neither wrapped nor cut.
    is_whole: bool,
}

impl Line {
    fn of(style: Style, text: &str) -> Self {
        Self::default().and(style, text)
    }

    fn and(self, style: Style, text: &str) -> Self {
        self.with(Part { style, text: words::printable(text), is_whole: false })
    }

    /// The same for text that a user may copy.
    fn and_whole(self, style: Style, text: &str) -> Self {
        self.with(Part { style, text: text.to_owned(), is_whole: true })
    }

    fn with(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    fn continued_at(mut self, indent: usize) -> Self {
        self.indent = indent;
        self
    }

    /// With escape codes and a newline, without spaces at the end of a line.
    fn styled(&self, columns: usize) -> String {
        let mut text = String::new();
        let mut used = 0;
        for part in &self.parts {
            for (place, piece) in self.broken(part, &mut used, columns).iter().enumerate() {
                if place > 0 {
                    text.truncate(text.trim_end().len());
                    text.push_str(&format!("\n{:indent$}", "", indent = self.indent));
                }
                let piece = piece.replace(TIE, " ");
                text.push_str(&if part.style == PLAIN { piece } else { format!("{0}{piece}{0:#}", part.style) });
            }
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
        text
    }

    /// A part in the pieces that go on separate lines; of the first line so many columns are used.
    fn broken(&self, part: &Part, used: &mut usize, columns: usize) -> Vec<String> {
        let mut pieces = vec![String::new()];
        let tokens: Vec<&str> = if part.is_whole { vec![&part.text] } else { part.text.split_inclusive(' ').collect() };
        for token in tokens {
            let word = token.trim_end_matches(' ');
            // What is copied stays behind its label, and has a line of its own behind a sentence.
            let may_break = !word.is_empty() && !word.starts_with(' ') && *used > self.indent;
            if may_break && *used + width(word) > columns {
                let before = pieces.last_mut().expect("there is always a first piece");
                before.truncate(before.trim_end().len());
                pieces.push(String::new());
                *used = self.indent;
            }
            let room = columns.saturating_sub(*used);
            let is_cut = !part.is_whole && width(word) > room;
            let token = if is_cut { fit_middle(word, room) + " " } else { token.to_owned() };
            *used += width(&token);
            pieces.last_mut().expect("there is always a first piece").push_str(&token);
        }
        pieces
    }
}

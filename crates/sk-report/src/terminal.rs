//! The summary that ends a run: at most 80 columns and 24 lines, the same with and without colour. What was not simulated
//! comes on top of that, a line for each kind: it is never cut short. Neither is what somebody may copy: the run's id, the
//! report's path and the commands to try go beyond 80 columns where they must.
//!
//! Order: verdict, how far to trust it, the picture, the five deciding figures, the causes, where to go next. Colour
//! comes as escape codes around whole words; whoever prints decides (anstream) whether they stay.

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

/// Columns of a line.
pub const COLUMNS: usize = 80;
/// Lines of a summary, those about what was not simulated aside.
pub const LINES: usize = 24;

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
}

/// The whole summary, with a newline after each line.
pub fn render(analysis: &Analysis, judgement: &Judgement, occasion: &Occasion<'_>) -> String {
    let blank = || vec![Line::default()];
    let (headline, judged) = self::judged(analysis, judgement);
    let causes = causes(analysis);
    let next = directions(occasion, LINES - FIXED_LINES - 1 - judged.len() - causes.len());
    let sections = [
        vec![header(analysis, occasion)],
        blank(),
        vec![headline],
        not_simulated(judgement),
        judged,
        blank(),
        picture(analysis),
        blank(),
        figures(analysis),
    ];
    let mut lines: Vec<Line> = sections.into_iter().flatten().collect();
    for section in [causes, next].into_iter().filter(|section| !section.is_empty()) {
        lines.push(Line::default());
        lines.extend(section);
    }
    lines.iter().map(Line::styled).collect()
}

/// Header 1, picture 5, figures 5, blank lines between the sections 5. Of the 24 the judgement takes at most 5 (one
/// word, two failures, who was never placed and trust in one line, or no failure and trust in two) and the causes at
/// most 2, so at least 1 is left for where to go next.
const FIXED_LINES: usize = 16;

fn header(analysis: &Analysis, occasion: &Occasion<'_>) -> Line {
    let meta = &analysis.meta;
    let wall = occasion.wall_s.map(|wall_s| format!(" in {}", wall(wall_s))).unwrap_or_default();
    let rest = format!(
        "  {} simulated{wall} · Kubernetes {} rules · seed {} · ",
        analysis.window.length(),
        meta.kubernetes,
        meta.seed
    );
    let id = words::printable(&meta.run_id);
    let name_columns = COLUMNS.saturating_sub(width(&rest) + width(&id)).max(8);
    Line::of(BOLD, &fit_middle(&meta.name, name_columns)).and(PLAIN, &rest).and_whole(PLAIN, &id)
}

fn wall(seconds: f64) -> String {
    if seconds < 10.0 { format!("{seconds:.1}s") } else { sk_core::SimDuration::from_secs(seconds as i64).to_string() }
}

/// The headline, and what stands below it: assertions that did not hold or could not be judged, and trust.
fn judged(analysis: &Analysis, judgement: &Judgement) -> (Line, Vec<Line>) {
    const FAILURES_SHOWN: usize = 2;
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
    let shown = if failed.len() > FAILURES_SHOWN { FAILURES_SHOWN - 1 } else { failed.len() };
    let mut lines: Vec<Line> = failed[..shown].iter().map(|verdict| failure(verdict)).collect();
    if failed.len() > shown {
        lines.push(Line::of(DIM, &format!("       … and {} more in summary.json", failed.len() - shown)));
    }
    lines.extend(never_placed(analysis, &failed));
    lines.extend(trust(analysis, if failed.is_empty() { 2 } else { 1 }));
    (headline, lines)
}

/// One assertion that did not hold, with its values; of one that cannot be judged the reason comes first.
fn failure(verdict: &Verdict) -> Line {
    let text = match &verdict.result {
        Evaluated::Unknown(why) => format!("{why}: {}", verdict.text),
        Evaluated::Held | Evaluated::Failed => verdict.with_values(),
    };
    Line::of(PLAIN, &format!("       {text}"))
}

/// Which pods make an assertion about unschedulable ones fail, and why no node took them; the longest waits first.
fn never_placed(analysis: &Analysis, failed: &[&Verdict]) -> Option<Line> {
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
        (format!("       never placed  {}", pods[..shown].join("; ")), more)
    };
    let fits = |shown: &usize| {
        let (text, more) = text(*shown);
        width(&text) + width(&more) <= COLUMNS
    };
    // As many as fit whole: half an owner's name is of no use.
    let (told, more) = text((1..=pods.len()).rev().find(fits).unwrap_or(1).min(pods.len()));
    (!pods.is_empty()).then(|| Line::of(PLAIN, &fit(&told, COLUMNS - width(&more))).and(PLAIN, &more))
}

/// Each kind, worst first, with as many of its objects as three lines hold; all of them are in summary.json and in the
/// page.
fn not_simulated(judgement: &Judgement) -> Vec<Line> {
    let open = judgement.gaps.iter().map(|gap| (gap, ""));
    let accepted = judgement.accepted.iter().map(|gap| (gap, ", accepted"));
    open.chain(accepted).flat_map(|(gap, accepted)| missing_kind(gap, accepted)).collect()
}

fn missing_kind(gap: &Gap, accepted: &str) -> Vec<Line> {
    const LINES_EACH: usize = 3;
    let mut lines = vec![format!("       {}{accepted}  {}:", gap.label(), gap.size.in_words())];
    for (place, example) in gap.examples().enumerate() {
        let (count, comma) = (lines.len(), if place == 0 { "" } else { "," });
        let last = lines.last_mut().expect("there is always a first line");
        if place == 0 || width(last) + width(&example) + 2 <= COLUMNS {
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
    lines.iter().map(|line| Line::of(PLAIN, line)).collect()
}

/// What to know about the figures, in `lines` lines at most.
fn trust(analysis: &Analysis, lines: usize) -> Vec<Line> {
    const LABEL: usize = 7;
    let trust = Trust::of(analysis);
    let style = if trust.amber { CAREFUL } else { BOLD };
    let mut rest = trust.pieces.as_slice();
    let mut text = Vec::new();
    while !rest.is_empty() && text.len() < lines {
        let is_last = text.len() + 1 == lines;
        let (line, taken) = joined(rest, COLUMNS - LABEL, is_last);
        text.push(line);
        rest = &rest[taken..];
    }
    let label = |place| if place == 0 { Line::of(style, "TRUST") } else { Line::of(PLAIN, "     ") };
    text.iter().enumerate().map(|(place, text)| label(place).and(PLAIN, &format!("  {text}"))).collect()
}

/// As many pieces as fit in a line, at least one; `count_rest` says how many it leaves out. Also how many it took.
fn joined(pieces: &[String], columns: usize, count_rest: bool) -> (String, usize) {
    let text = |shown: usize| {
        let more = pieces.len() - shown;
        let more = if more > 0 && count_rest { format!(" · and {more} more") } else { String::new() };
        (pieces[..shown].join(" · "), more)
    };
    let fits = |shown: &usize| {
        let (text, more) = text(*shown);
        width(&text) + width(&more) <= columns
    };
    let shown = (1..=pieces.len()).rev().find(fits).unwrap_or(1);
    let (text, more) = text(shown);
    (fit(&text, columns - width(&more)) + &more, shown)
}

fn picture(analysis: &Analysis) -> Vec<Line> {
    let (curves, window) = (&analysis.curves, analysis.window);
    // Running and pending are both pods: on one scale their heights can be compared.
    let pods = curves.running.max().max(curves.pending.max());
    let running = format!("peak {}, end {}", grouped(curves.running.max()), grouped(curves.running.last()));
    let pending = format!("peak {}", grouped(curves.pending.max()));
    let row = |label, colour: AnsiColor, step: &Step, full, text: &str| {
        let bars = spark::bars(step, window, full);
        Line::of(PLAIN, &format!("{label:<9}")).and(colour.on_default(), &bars).and(PLAIN, &format!("  {text}"))
    };
    vec![
        row("running", AnsiColor::Green, &curves.running, pods, &running),
        row("nodes", AnsiColor::Blue, &curves.nodes, curves.nodes.max(), &course(&curves.nodes)),
        row("pending", AnsiColor::Yellow, &curves.pending, pods, &pending),
        Line::of(DIM, &format!("{:9}{}", "", spark::axis(window))),
        marks(analysis, window),
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

fn marks(analysis: &Analysis, window: Window) -> Line {
    let Some(marks) = &analysis.marks else { return Line::default() };
    let row = spark::marks(window, &marks.changes);
    let name = fit_middle(&words::owner_name(&marks.owner), COLUMNS - 9 - spark::COLUMNS - 2);
    let gap = spark::COLUMNS + 2 - width(&row).min(spark::COLUMNS);
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
    format!("p50 {}   p90 {}   p99 {}   max {}", latency.p50, latency.p90, latency.p99, latency.max)
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
    format!("min {min}  mean {mean}  max {max}   {hours} node-hours{}", cost.unwrap_or_default())
}

fn used(summary: &Summary) -> String {
    let hours = &summary.node_hours;
    let share = words::percent(if hours.total > 0.0 { hours.empty / hours.total } else { 0.0 });
    let (requested, empty) = (words::percent(summary.requested.cpu), words::decimal(hours.empty));
    format!("{requested} of allocatable; {empty} node-hours ({share}) stood empty")
}

/// At most two lines: why pods waited and why nodes stood empty, or twice the one that there is.
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
    let columns = COLUMNS - 16 - width(&pods) - 3;
    let ending = format!(", {}", cause.ending);
    // The ending is ours and short; the reason comes from the scheduler and gives way.
    let reason = fit_list(&cause.reason, columns.saturating_sub(width(&ending)).max(16));
    labelled("why pending", &format!("{pods}   {reason}{ending}"))
}

/// As many items of a list as fit whole, but at least the first, cut if it must be. The report has them all.
fn fit_list(list: &str, columns: usize) -> String {
    let ends = list.match_indices(", ").map(|(end, _)| end).chain([list.len()]);
    let whole = ends.map(|end| &list[..end]).take_while(|items| width(items) <= columns).last();
    whole.map_or_else(|| fit(list, columns), str::to_owned)
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
    Line::of(PLAIN, &format!("{label:<16}{text}"))
}

/// One line in parts of different colour, never wider than [`COLUMNS`] unless a part has to stay whole.
#[derive(Debug, Default)]
struct Line {
    parts: Vec<(Style, String)>,
    used: usize,
}

impl Line {
    fn of(style: Style, text: &str) -> Self {
        Self::default().and(style, text)
    }

    fn and(self, style: Style, text: &str) -> Self {
        let text = fit(text, COLUMNS.saturating_sub(self.used));
        self.and_whole(style, &text)
    }

    /// The same for what somebody may copy: it is not cut.
    fn and_whole(mut self, style: Style, text: &str) -> Self {
        self.used += width(text);
        self.parts.push((style, text.to_owned()));
        self
    }

    /// With escape codes and a newline, without spaces at the end.
    fn styled(&self) -> String {
        let mut text: String = self
            .parts
            .iter()
            .map(|(style, text)| if *style == PLAIN { text.clone() } else { format!("{style}{text}{style:#}") })
            .collect();
        text.truncate(text.trim_end().len());
        text.push('\n');
        text
    }
}

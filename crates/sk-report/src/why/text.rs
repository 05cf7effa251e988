//! The output of `why` on a terminal.

use sk_core::SimTime;

use super::{Event, Said, Why};
use crate::step::Window;
use crate::words::{self, plural, printable};

/// Waits shown; the rest is counted. `-s` and `-t` ask for less time, an object for less of the run.
const WAITS_SHOWN: usize = 20;
/// The column at which a sentence continues: behind `  simulated  `.
const MOVED_IN: usize = 13;
/// Messages shown of one wait.
const SAID_SHOWN: usize = 4;

/// The whole text, with a newline after each line. `columns`: how wide the terminal is; longer lines go on below, and
/// nothing is cut.
pub fn render(why: &Why, columns: usize) -> String {
    let whole = whole(why);
    whole
        .lines()
        .map(|line| words::wrapped(line, columns, if line.starts_with(' ') { MOVED_IN } else { 2 }) + "\n")
        .collect()
}

fn whole(why: &Why) -> String {
    let clock = Clock::of(why.window);
    let mut text =
        format!("{}   {} to {}\n", printable(&why.subject), clock.full(why.window.start), clock.full(why.window.end));
    text.push_str(&waits(why, clock));
    let stories = why.pods.iter().map(|pod| (format!("pod {} of {}", pod.pod, pod.owner), &pod.events));
    let nodes = why.nodes.iter().map(|node| (format!("node {}", node.node), &node.events));
    let groups = why.groups.iter().map(|group| (format!("group {}", group.group), &group.events));
    for (title, events) in stories.chain(nodes).chain(groups) {
        text.push_str(&format!("\n{}\n", printable(&title)));
        events.iter().for_each(|event| text.push_str(&line(event, clock)));
    }
    if why.is_cut {
        text.push_str("\nthe output is limited: narrow it with OBJECT, -s and -t\n");
    }
    text
}

fn waits(why: &Why, clock: Clock) -> String {
    let about_pods = why.nodes.is_empty() && why.groups.is_empty();
    if why.waits.is_empty() && about_pods {
        return format!("  {} here, and none was refused by the scheduler\n", plural(why.pods_total as i64, "pod"));
    }
    let mut text = String::new();
    for waited in why.waits.iter().take(WAITS_SHOWN) {
        let when = format!("{}–{}", clock.short(waited.from), clock.short(waited.to));
        let pods = plural(waited.pods as i64, "pod");
        let longest =
            if waited.pods > 1 { format!(", the longest {}", waited.longest) } else { format!(", {}", waited.longest) };
        text.push_str(&format!("\n{}   {pods} pending {when}{longest}\n", printable(&waited.owner)));
        let whose = if why.is_recorded { "recorded" } else { "simulated" };
        text.push_str(&said(whose, &waited.said));
        text.push_str(&said("autoscaler", &waited.autoscaler));
        text.push_str(&said("considered", &waited.considered));
        for full in &waited.at_max {
            let since = clock.short(full.since);
            text.push_str(&format!("  autoscaler {} at its max {} since {since}\n", printable(&full.group), full.max));
        }
        if !waited.would_have_fitted.is_empty() {
            let fitting: Vec<String> = waited.would_have_fitted.iter().map(|group| printable(group)).collect();
            text.push_str(&format!("  would have fitted  {}\n", fitting.join(" · ")));
        }
        text.push_str(&format!("  ended      {}\n", printable(&waited.ended)));
    }
    if why.waits.len() > WAITS_SHOWN {
        let more = plural((why.waits.len() - WAITS_SHOWN) as i64, "shorter wait");
        text.push_str(&format!("\n… and {more}; -o json has them all\n"));
    }
    text
}

/// A message of one of them, with its count.
fn said(whose: &str, all: &[Said]) -> String {
    let mut text = String::new();
    for said in all.iter().take(SAID_SHOWN) {
        text.push_str(&format!("  {whose:<10} {} (×{})\n", printable(&said.message), said.times));
    }
    if all.len() > SAID_SHOWN {
        text.push_str(&format!("  {:10} and {}\n", "", plural((all.len() - SAID_SHOWN) as i64, "other message")));
    }
    text
}

fn line(event: &Event, clock: Clock) -> String {
    format!("  {}  {}\n", clock.short(event.at), printable(&event.what))
}

/// Moments by the trace's own clock, in UTC; with the date where the window lies in more than one day.
#[derive(Clone, Copy)]
struct Clock {
    with_date: bool,
}

impl Clock {
    fn of(window: Window) -> Self {
        let day = |time: SimTime| time.to_rfc3339_secs().chars().take(10).collect::<String>();
        Self { with_date: day(window.start) != day(window.end) }
    }

    fn full(self, time: SimTime) -> String {
        time.to_rfc3339_secs()
    }

    fn short(self, time: SimTime) -> String {
        let text = time.to_rfc3339_secs();
        let (date, clock) = text.split_once('T').unwrap_or(("", &text));
        let clock = clock.trim_end_matches('Z');
        if self.with_date { format!("{} {clock}", date.get(5..).unwrap_or(date)) } else { clock.to_owned() }
    }
}

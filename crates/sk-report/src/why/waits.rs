//! Pods that waited together, the scheduler's messages about them, and what would have helped.

use sk_core::SimTime;
use sk_record::{PodRow, RunMeta};

use super::messages::{Messages, in_words, refusals, tally};
use super::{AtMax, Said, Waited, fitting};
use crate::causes::{Wait, is_about_starting};
use crate::fleet::Fleet;
use crate::step::Window;

/// Waits that belong together, longest first.
pub(super) fn of(pods: &[PodRow], messages: &Messages, fleet: &Fleet, meta: &RunMeta, window: Window) -> Vec<Waited> {
    let run = Window::new(meta.start, meta.end);
    let refused = pods.iter().filter(|pod| pod.waited_for.is_some());
    let mut all: Vec<(Wait, &PodRow)> = refused.map(|pod| (Wait::of(pod, fleet, run), pod)).collect();
    all.retain(|(wait, _)| window.clip(wait.from, Some(wait.to)).is_some());
    all.sort_by(|(a, _), (b, _)| (&a.owner, &a.ending, a.from).cmp(&(&b.owner, &b.ending, b.from)));
    let mut found: Vec<(Waited, Vec<&PodRow>)> = Vec::new();
    for (wait, pod) in all {
        let ended = wait.ending.to_string();
        match found.last_mut() {
            Some((last, members)) if last.owner == wait.owner && last.ended == ended && wait.from <= last.to => {
                last.pods += 1;
                last.to = last.to.max(wait.to);
                last.longest = last.longest.max(wait.length());
                members.push(pod);
            }
            _ => found.push((begun(wait, ended), vec![pod])),
        }
    }
    let full = full_stretches(fleet, meta);
    let mut waits: Vec<Waited> =
        found.into_iter().map(|(waited, members)| complete(waited, &members, messages, &full, meta)).collect();
    waits.sort_by_key(|waited| (std::cmp::Reverse(waited.longest), waited.from));
    waits
}

fn begun(wait: Wait, ended: String) -> Waited {
    Waited {
        pods: 1,
        from: wait.from,
        to: wait.to,
        longest: wait.length(),
        owner: wait.owner,
        said: Vec::new(),
        autoscaler: Vec::new(),
        considered: Vec::new(),
        at_max: Vec::new(),
        would_have_fitted: Vec::new(),
        ended,
    }
}

fn complete(waited: Waited, members: &[&PodRow], messages: &Messages, full: &[Full], meta: &RunMeta) -> Waited {
    let mut said = said(&waited, members, messages);
    // That a node is starting is the end of the wait, not its cause.
    said.sort_by_key(|said| is_about_starting(&said.message));
    let told = messages.autoscaler_on(&waited.owner, members, waited.from, waited.to);
    let autoscaler = tally(told.iter().map(|row| (in_words(row), row.time)));
    let considered = tally(told.iter().filter_map(|row| Some((row.options.clone()?, row.time))));
    Waited {
        at_max: at_max(full, &waited),
        would_have_fitted: fitting::of(members, (&autoscaler, &considered), meta),
        autoscaler,
        considered,
        said,
        ..waited
    }
}

/// A group, its maximum, and from when to when it was at the maximum.
type Full = (String, i64, SimTime, SimTime);

/// When each group was at its maximum.
fn full_stretches(fleet: &Fleet, meta: &RunMeta) -> Vec<Full> {
    let mut stretches = Vec::new();
    for group in meta.groups.iter().filter(|group| group.max > 0) {
        let curve = fleet.curve(Some(&group.name));
        let full = curve.pieces().filter(|(_, _, count)| *count >= group.max);
        stretches.extend(full.map(|(from, to, _)| (group.name.clone(), group.max, from, to)));
    }
    stretches
}

fn at_max(full: &[Full], waited: &Waited) -> Vec<AtMax> {
    let meanwhile = full.iter().filter(|(_, _, from, to)| *from < waited.to && waited.from < *to);
    let mut found: Vec<AtMax> = Vec::new();
    for (group, max, since, _) in meanwhile {
        if found.iter().all(|known| known.group != *group) {
            found.push(AtMax { group: group.clone(), max: *max, since: *since });
        }
    }
    found
}

/// The scheduler's messages about these pods; if they were not kept, the last message in the pods' conditions.
fn said(waited: &Waited, members: &[&PodRow], messages: &Messages) -> Vec<Said> {
    let told = tally(refusals(&messages.answers, members));
    if !told.is_empty() {
        return told;
    }
    tally(members.iter().filter_map(|pod| Some((pod.waited_for.clone()?, waited.from))))
}

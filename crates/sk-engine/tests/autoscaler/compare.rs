//! Says what differs between a recording and a run.
//!
//! Compared: the sizes of groups (all, ready, soft-tainted, to be deleted, cordoned), pods pending and running, the scale-ups
//! in their order with what each option would waste, the autoscaler's events with their times and how many pods were told, and
//! why nodes could not go. Times may differ by the latencies of the rig and by a scan
//! interval, because loops are not on a common grid; a tight comparison takes a quarter of that and looks at the shares in
//! reasons as well. Values that a count only passes through are not looked at. Which of several equal nodes goes is not compared: the real one takes them in any order.

use std::collections::{BTreeMap, BTreeSet};

use sk_testkit::autoscaling::{NodeCounts, Observation};

use crate::allowed::Allowed;
use crate::outcome::{Curve, Outcome};

/// What the rig's machine, busy as it was, added to a time: nodes up to 2.1 s late, loops of up to a second.
const RIG_LATENCY: f64 = 2.5;

/// What differs, in words; nothing if nothing does.
pub(crate) fn differences(seen: &Observation, run: &Outcome, allowed: &Allowed) -> Vec<String> {
    let scan_interval = scan_interval(seen);
    // Loops are not on a common grid: what waits for one may wait for the next.
    let window = RIG_LATENCY + if allowed.tight { scan_interval / 4.0 } else { scan_interval };
    let until = allowed.until.unwrap_or(seen.ended);
    let mut found = Vec::new();
    let columns = ["nodes", "ready", "soft-tainted", "to be deleted", "cordoned"];
    for (place, column) in columns.iter().enumerate() {
        let recorded = |rows: &Vec<NodeCounts>| -> Curve {
            rows.iter().map(|row| (row.0, [row.1, row.2, row.3, row.4, row.5][place])).collect()
        };
        let real = seen.nodes.iter().map(|(name, rows)| (name.clone(), recorded(rows))).collect();
        let ours = run.nodes.iter().map(|(name, curves)| (name.clone(), curves[place].clone())).collect();
        found.extend(curves(column, &real, &ours, window, until));
    }
    for (place, column) in ["pending", "running"].iter().enumerate() {
        let recorded = |rows: &Vec<(f64, i64, i64, i64)>| -> Curve {
            rows.iter().map(|row| (row.0, [row.1, row.2][place])).collect()
        };
        let real = seen.pods.iter().map(|(name, rows)| (name.clone(), recorded(rows))).collect();
        let ours = run.pods.iter().map(|(name, curves)| (name.clone(), curves[place].clone())).collect();
        found.extend(curves(column, &real, &ours, window, until));
    }
    found.extend(plans(seen, run, if allowed.tight { RIG_LATENCY } else { window }, allowed));
    found.extend(wastes(seen, run, allowed));
    found.extend(events(seen, run, RIG_LATENCY + scan_interval, allowed));
    found.extend(unremovable(seen, run, allowed));
    found
}

fn scan_interval(seen: &Observation) -> f64 {
    let text = seen.flags.get("scan-interval").map_or("10s", String::as_str);
    text.trim_end_matches('s').parse().expect("whole seconds")
}

/// The value at a time; 0 before the first.
fn value(curve: &Curve, at: f64) -> i64 {
    curve.iter().rev().find(|(since, _)| *since <= at).map_or(0, |(_, value)| *value)
}

/// The least and the most between two times.
fn range(curve: &Curve, from: f64, to: f64) -> (i64, i64) {
    let within = curve.iter().filter(|(at, _)| *at > from && *at <= to).map(|(_, value)| *value);
    let first = value(curve, from);
    within.fold((first, first), |(least, most), value| (least.min(value), most.max(value)))
}

fn curves(
    what: &str,
    real: &BTreeMap<String, Curve>,
    ours: &BTreeMap<String, Curve>,
    window: f64,
    until: f64,
) -> Vec<String> {
    let names: BTreeSet<&String> = real.keys().chain(ours.keys()).filter(|name| !name.is_empty()).collect();
    let none = Curve::new();
    let mut found = Vec::new();
    for name in names {
        let (real, ours) = (real.get(name).unwrap_or(&none), ours.get(name).unwrap_or(&none));
        let at = first_difference(real, ours, window, until);
        if let Some((at, seen, got)) = at {
            found.push(format!("{name} {what}: {seen} were seen at {at:.1} s, here {got}"));
        }
    }
    found
}

/// The first time at which one curve is where the other is not within the window; with the values of both.
fn first_difference(real: &Curve, ours: &Curve, window: f64, until: f64) -> Option<(f64, i64, i64)> {
    let mut times: Vec<f64> = real.iter().chain(ours).map(|(at, _)| at.max(0.0)).collect();
    times.extend(real.iter().chain(ours).map(|(at, _)| at.max(0.0) + window));
    times.push(until);
    times.sort_by(f64::total_cmp);
    times.into_iter().filter(|at| *at <= until).find_map(|at| {
        let strays = |value: i64, curve: &Curve| {
            let (least, most) = range(curve, at - window, (at + window).min(until));
            value < least || value > most
        };
        let (seen, got) = (value(real, at), value(ours, at));
        let differs = (is_settled(real, at) && strays(seen, ours)) || (is_settled(ours, at) && strays(got, real));
        differs.then_some((at, seen, got))
    })
}

/// Has the curve the value of this time for longer than the latency of the rig? It passes through others.
fn is_settled(curve: &Curve, at: f64) -> bool {
    let since = curve.iter().rev().find(|(since, _)| *since <= at).map_or(f64::NEG_INFINITY, |(since, _)| *since);
    let until = curve.iter().find(|(next, _)| *next > at).map_or(f64::INFINITY, |(next, _)| *next);
    until - since > RIG_LATENCY
}

type Plan = Vec<(String, usize, usize)>;

/// The groups of a plan come in any order.
fn sorted(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    plan.sort();
    plan
}

fn plans(seen: &Observation, run: &Outcome, window: f64, allowed: &Allowed) -> Vec<String> {
    let until = allowed.until.unwrap_or(seen.ended);
    let within = |plans: &[(f64, Plan)]| -> Vec<(f64, Plan)> {
        plans.iter().filter(|(at, _)| *at <= until).map(|(at, plan)| (*at, sorted(plan))).collect()
    };
    let (real, ours) = (within(&seen.plans), within(&run.plans));
    let text = |plans: &[(f64, Plan)]| -> Vec<String> {
        let one = |(group, from, to): &(String, usize, usize)| format!("{group} {from}->{to}");
        plans.iter().map(|(_, plan)| plan.iter().map(one).collect::<Vec<_>>().join(" ")).collect()
    };
    if text(&real) != text(&ours) {
        return vec![format!("scale-ups: {} were seen, here {}", text(&real).join(", "), text(&ours).join(", "))];
    }
    if let Some(words) = other_loops(seen, &real, &ours) {
        return vec![words];
    }
    let late = real.iter().zip(&ours).find(|((real, _), (ours, _))| (real - ours).abs() > window);
    late.map(|((real, _), (ours, _))| format!("a scale-up was seen at {real:.1} s, here {ours:.1} s"))
        .into_iter()
        .collect()
}

/// One loop enlarges one group, but with `salvo-scale-up`. Times of the recording are tenths of seconds: scale-ups of different
/// times are those of different loops, and those of a salvo have one time.
fn other_loops(seen: &Observation, real: &[(f64, Plan)], ours: &[(f64, Plan)]) -> Option<String> {
    let is_salvo = seen.flags.get("salvo-scale-up").is_some_and(|value| value == "true");
    let pairs = real.windows(2).zip(ours.windows(2));
    let mut apart = pairs.map(|(real, ours)| (real[1].0 - real[0].0 > 0.05, ours[1].0 > ours[0].0));
    apart.find_map(|apart| match apart {
        (true, false) => Some("two scale-ups were seen in two loops, here in one".to_owned()),
        (false, true) if is_salvo => Some("two scale-ups were seen in one loop, here in two".to_owned()),
        _ => None,
    })
}

/// What each option would have wasted, where the real one logged it: to the hundredth of a percent.
fn wastes(seen: &Observation, run: &Outcome, allowed: &Allowed) -> Vec<String> {
    if seen.wastes.is_empty() || allowed.until.is_some() {
        return Vec::new();
    }
    let shape = |(group, percent): &(String, f64)| (group.clone(), (percent * 100.0).round() as i64);
    let real: BTreeSet<_> = seen.wastes.iter().map(shape).collect();
    let ours: BTreeSet<_> = run.wastes.iter().map(shape).collect();
    let lacks = |all: &BTreeSet<(String, i64)>, one: &(String, i64)| {
        !all.iter().any(|(group, percent)| *group == one.0 && (percent - one.1).abs() <= 1)
    };
    let missing = real.iter().filter(|one| lacks(&ours, one)).map(|(group, percent)| (group, percent, "no option"));
    let extra = ours.iter().filter(|one| lacks(&real, one)).map(|(group, percent)| (group, percent, "an option"));
    let words =
        |(group, percent, what): (&String, &i64, &str)| format!("{what} of {group} that wastes {percent} of 10,000");
    missing.chain(extra).map(words).collect()
}

/// By reason, who and message: when first, and how many were told.
type Events = BTreeMap<(String, String, String), (f64, usize)>;

/// Reasons of which each pod is told once.
const TOLD_PODS: [&str; 2] = ["TriggeredScaleUp", "NotTriggerScaleUp"];

fn events(seen: &Observation, run: &Outcome, window: f64, allowed: &Allowed) -> Vec<String> {
    let until = allowed.until.unwrap_or(f64::INFINITY);
    let shape = |reason: &str, who: &str, message: &str| {
        let message = message.strip_prefix("pod didn't trigger scale-up: ").map_or(message.to_owned(), |parts| {
            // Parts come in any order.
            let mut parts: Vec<&str> = parts.split(", ").collect();
            parts.sort_unstable();
            parts.join(", ")
        });
        (reason.to_owned(), who.to_owned(), message)
    };
    let mut real = Events::new();
    for (at, reason, who, message, pods) in seen.events.iter().filter(|(at, ..)| *at <= until) {
        real.entry(shape(reason, who, message)).or_insert((*at, 0)).1 += pods;
    }
    let mut ours = Events::new();
    for (at, reason, who, message) in run.events.iter().filter(|(at, ..)| *at <= until) {
        ours.entry(shape(reason, who, message)).or_insert((*at, 0)).1 += 1;
    }
    let words = |(reason, who, message): &(String, String, String)| format!("{reason} {who}: {message}");
    let missing = real.keys().filter(|key| !ours.contains_key(*key)).map(|key| format!("no event {}", words(key)));
    let extra =
        ours.keys().filter(|key| !real.contains_key(*key)).map(|key| format!("an event too many: {}", words(key)));
    let both = real.iter().filter_map(|(key, real)| Some((key, *real, *ours.get(key)?)));
    let differ = both.filter_map(|(key, (at, pods), (here, told))| {
        let counts = TOLD_PODS.contains(&key.0.as_str()) && pods != told;
        let late = (at - here).abs() > window;
        let words = || format!("{}: {pods} at {at:.1} s were seen, here {told} at {here:.1} s", words(key));
        (late || counts).then(words)
    });
    missing.chain(extra).chain(differ).collect()
}

fn unremovable(seen: &Observation, run: &Outcome, allowed: &Allowed) -> Vec<String> {
    let shape = |group: &str, reason: &str| {
        let is_kept = |c: &char| allowed.tight || (!c.is_ascii_digit() && *c != '.');
        (group.to_owned(), reason.chars().filter(is_kept).collect::<String>())
    };
    let real: BTreeSet<_> = seen.unremovable.iter().map(|(group, reason)| shape(group, reason)).collect();
    let ours: BTreeSet<_> = run.unremovable.iter().map(|(group, reason)| shape(group, reason)).collect();
    let missing =
        real.difference(&ours).map(|(group, reason)| format!("{group}: no node was found unremovable: {reason}"));
    let extra =
        ours.difference(&real).map(|(group, reason)| format!("{group}: a node was found unremovable: {reason}"));
    missing.chain(extra).collect()
}

//! Why pods waited and why nodes were empty, in plain words and few groups.

use std::collections::BTreeMap;

use sk_core::{SimDuration, SimTime};
use sk_record::{PodRow, RunMeta};

use crate::fleet::{Fleet, IdleEnd, Node};
use crate::step::{Window, hours};
use crate::tally::{end_of, wait_end};

/// What let a waiting pod go on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// A node became ready that was not there before; its group.
    NodeReady(String),
    /// Room became free on a node that was there.
    Room,
    /// The pod was deleted first.
    Gone,
    /// Nothing, until the run's end.
    Never,
}

impl Ending {
    fn of<Text: AsRef<str>>(pod: &PodRow<Text>, fleet: &Fleet, window: Window) -> Self {
        let bound = pod.scheduled.filter(|time| *time <= window.end);
        let (Some(time), Some(name)) = (bound, &pod.node) else {
            return if end_of(pod).is_some_and(|end| end <= window.end) { Self::Gone } else { Self::Never };
        };
        let node = fleet.node_at(name.as_ref(), time);
        match node.filter(|node| node.row.ready.is_some_and(|ready| ready > pod.created)) {
            Some(node) => Self::NodeReady(node.group().to_owned()),
            None => Self::Room,
        }
    }
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NodeReady(group) if group.is_empty() => f.write_str("until a node was ready"),
            Self::NodeReady(group) => write!(f, "until a node of group {group} was ready"),
            Self::Room => f.write_str("until there was room on a node"),
            Self::Gone => f.write_str("until the pod was gone"),
            Self::Never => f.write_str("and still waiting at the end"),
        }
    }
}

/// Pods that waited for the same reason and with the same outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingCause {
    /// How many pods.
    pub pods: i64,
    /// The scheduler's reason without its counts.
    pub reason: String,
    /// What ended it.
    pub ending: Ending,
    /// The longest of their waits.
    pub longest: SimDuration,
}

/// One pod's wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    /// The pod's top-most owner.
    pub(crate) owner: String,
    /// From its creation.
    pub(crate) from: SimTime,
    /// To its binding, its end or the run's.
    pub(crate) to: SimTime,
    /// The scheduler's reason without its counts; empty if it was never refused.
    pub(crate) reason: String,
    /// What ended it.
    pub(crate) ending: Ending,
}

impl Wait {
    /// The wait of one pod.
    pub(crate) fn of<Text: AsRef<str>>(pod: &PodRow<Text>, fleet: &Fleet, window: Window) -> Self {
        let ending = Ending::of(pod, fleet, window);
        let reason = pod.waited_for.as_ref().map(|message| plain_reason(message.as_ref())).unwrap_or_default();
        Self {
            owner: pod.owner.as_ref().to_owned(),
            from: pod.created,
            to: wait_end(pod).map_or(window.end, |end| end.min(window.end)),
            reason: if matches!(ending, Ending::NodeReady(_)) { taints_last(&reason) } else { reason },
            ending,
        }
    }

    /// How long.
    pub(crate) fn length(&self) -> SimDuration {
        self.to.since(self.from).max(SimDuration::ZERO)
    }
}

/// Groups waits by reason and ending.
#[derive(Debug, Default)]
pub(crate) struct PendingCauses(BTreeMap<(String, Ending), (i64, SimDuration)>);

impl PendingCauses {
    /// How many different causes are kept; messages hold names, so a trace could have one per pod. Later ones
    /// are counted together.
    const MAX: usize = 1_000;
    const OTHER: &str = "other reasons";

    pub(crate) fn add(&mut self, wait: &Wait) {
        let mut key = (wait.reason.clone(), wait.ending.clone());
        if self.0.len() >= Self::MAX && !self.0.contains_key(&key) {
            key.0 = Self::OTHER.into();
        }
        let entry = self.0.entry(key).or_default();
        entry.0 += 1;
        entry.1 = entry.1.max(wait.length());
    }

    /// Most pods first.
    pub(crate) fn into_sorted(self) -> Vec<PendingCause> {
        let causes = self.0.into_iter();
        let mut causes: Vec<PendingCause> =
            causes.map(|((reason, ending), (pods, longest))| PendingCause { pods, reason, ending, longest }).collect();
        causes.sort_by_key(|cause| (-cause.pods, -cause.longest.as_micros()));
        causes
    }
}

/// The scheduler's message without what only a machine needs: `0/4 nodes are available: 3 Insufficient cpu, 1 node(s)
/// had untolerated taint {spot: true}. preemption: …` becomes `Insufficient cpu, untolerated taint {spot: true}`.
pub fn plain_reason(message: &str) -> String {
    let list = message.split_once("nodes are available: ").map_or(message, |(_, list)| list);
    let list = list.split(". ").next().unwrap_or(list).trim_end_matches('.');
    let mut reasons: Vec<&str> = list.split(", ").map(without_count).collect();
    // That a node is starting is how a wait ends, not why it began.
    reasons.sort_by_key(|reason| is_about_starting(reason));
    reasons.join(", ")
}

/// Of a wait for a node that came: Kubernetes 1.36 does not name taints, and those of the nodes that were on their way
/// are no reason for it.
fn taints_last(reason: &str) -> String {
    let mut reasons: Vec<&str> = reason.split(", ").collect();
    reasons.sort_by_key(|reason| reason.starts_with("untolerated taint(s)"));
    reasons.join(", ")
}

/// Taints of nodes that are still starting: a pod that waits for one has another reason first.
const STARTING: [&str; 3] = [
    "node.kubernetes.io/not-ready",
    "node.cloudprovider.kubernetes.io/uninitialized",
    "node.kubernetes.io/network-unavailable",
];

/// Does it only say that a node is starting?
pub(crate) fn is_about_starting(reason: &str) -> bool {
    STARTING.iter().any(|taint| reason.contains(taint)) && !reason.contains("Insufficient")
}

fn without_count(reason: &str) -> &str {
    let reason = match reason.split_once(' ') {
        Some((count, rest)) if !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit()) => rest,
        _ => reason,
    };
    let reason = reason.strip_prefix("node(s) ").unwrap_or(reason);
    reason.strip_prefix("had ").unwrap_or(reason)
}

/// Why nodes were empty: one reason, and the periods it explains.
#[derive(Clone, Debug, PartialEq)]
pub struct EmptyCause {
    /// In plain English, with the setting that decides it.
    pub reason: String,
    /// Node-hours it explains.
    pub hours: f64,
    /// Nodes that were empty at about the same time, in order of time.
    pub stretches: Vec<Stretch>,
}

/// Some nodes, empty together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// How many.
    pub nodes: usize,
    /// From when to when, of the first of them.
    pub window: Window,
}

/// The causes of empty node-hours, the weightiest first.
pub(crate) fn empty_causes(fleet: &Fleet, meta: &RunMeta, window: Window) -> Vec<EmptyCause> {
    let mut by_end: BTreeMap<IdleEnd, Vec<Window>> = BTreeMap::new();
    for idle in fleet.nodes().flat_map(Node::idle) {
        by_end.entry(idle.end).or_default().push(idle.window);
    }
    let cause = |(end, windows): (IdleEnd, Vec<Window>)| {
        let micros: i128 = windows.iter().map(|idle| i128::from(idle.length().as_micros())).sum();
        let stretches = stretches(windows, tolerance(meta, window));
        EmptyCause { reason: empty_reason(end, meta), hours: hours(micros), stretches }
    };
    let mut causes: Vec<EmptyCause> = by_end.into_iter().map(cause).collect();
    causes.sort_by(|a, b| b.hours.total_cmp(&a.hours));
    causes
}

fn empty_reason(end: IdleEnd, meta: &RunMeta) -> String {
    match (end, &meta.autoscaler) {
        (IdleEnd::Removed, Some(settings)) => {
            let wait = SimDuration::from_micros((settings.scale_down_unneeded_time_s * 1e6) as i64);
            format!("scale-down-unneeded-time {wait}")
        }
        (IdleEnd::Removed, None) => "removed later".into(),
        (IdleEnd::RunEnd, Some(_)) => "still there at the end".into(),
        (IdleEnd::RunEnd, None) => "no autoscaler to remove them".into(),
        (IdleEnd::PodCame, _) => "before pods came".into(),
    }
}

/// Two stretches count as one when they begin and end within this: a hundredth of the window, but no less than the
/// autoscaler's own step, which spreads removals that have one cause.
fn tolerance(meta: &RunMeta, window: Window) -> SimDuration {
    let scan = meta.autoscaler.as_ref().map_or(0.0, |settings| settings.scan_interval_s);
    (window.length() / 100).max(SimDuration::from_micros((scan * 2e6) as i64))
}

fn stretches(mut windows: Vec<Window>, tolerance: SimDuration) -> Vec<Stretch> {
    windows.sort_by_key(|window| (window.start, window.end));
    let near = |a: SimTime, b: SimTime| a.since(b).max(b.since(a)) <= tolerance;
    let mut found: Vec<Stretch> = Vec::new();
    for window in windows {
        // Windows come by start, so only the latest few stretches can be near; beyond them the search stops.
        let known = found.iter_mut().rev().take_while(|stretch| near(stretch.window.start, window.start));
        match known.into_iter().find(|stretch| near(stretch.window.end, window.end)) {
            Some(stretch) => stretch.nodes += 1,
            None => found.push(Stretch { nodes: 1, window }),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_lose_what_only_a_machine_needs() {
        let cases = [
            (
                "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No victims.",
                "Insufficient cpu",
            ),
            (
                "0/40 nodes are available: 31 Insufficient cpu, 9 node(s) had untolerated taint {spot: true}.",
                "Insufficient cpu, untolerated taint {spot: true}",
            ),
            (
                "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.",
                "didn't match Pod's node affinity/selector",
            ),
            (
                "0/2 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/not-ready: }, 1 Insufficient cpu.",
                "Insufficient cpu, untolerated taint {node.kubernetes.io/not-ready: }",
            ),
            ("no nodes available to schedule pods", "no nodes available to schedule pods"),
            ("", ""),
        ];
        for (message, plain) in cases {
            assert_eq!(plain_reason(message), plain);
        }
    }

    #[test]
    fn nodes_that_stand_empty_together_are_one_stretch() {
        let window = |from, to| Window::new(SimTime::from_secs(from), SimTime::from_secs(to));
        let windows = vec![window(1500, 2110), window(900, 1510), window(905, 1520), window(900, 2400)];
        let found = stretches(windows, SimDuration::from_secs(20));
        let counts: Vec<_> = found.iter().map(|stretch| (stretch.nodes, stretch.window.start.as_secs())).collect();
        assert_eq!(counts, [(2, 900), (1, 900), (1, 1500)]);
    }
}

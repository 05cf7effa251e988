//! How close a simulation comes to what was recorded.
//!
//! Pods of a simulation have other names than the recorded ones, so the pods of one owner are matched in the order of
//! their creation: the third pod of a Deployment with the third. What one side has more of is not matched, and counted.

use std::collections::BTreeMap;

use sk_core::{SimDuration, SimTime};
use sk_record::Error;

use super::column::Column;
use crate::source::Source;
use crate::step::Window;
use crate::words;

/// Two pods started alike if their times to start differ by no more.
const CLOSE: SimDuration = SimDuration::from_secs(5);

/// When the pods of each owner were created, and how long each took to start.
#[derive(Debug, Default)]
pub struct Lives(BTreeMap<String, Vec<(SimTime, Option<SimDuration>)>>);

impl Lives {
    /// Reads the pods that were created inside the window.
    pub fn of(source: &impl Source, window: Window) -> Result<Self, Error> {
        let mut lives = Self::default();
        for pod in source.pods()? {
            let pod = pod?;
            if window.contains(pod.created) {
                let latency = pod.started.map(|started| started.since(pod.created));
                lives.0.entry(pod.owner).or_default().push((pod.created, latency));
            }
        }
        lives.0.values_mut().for_each(|pods| pods.sort_unstable());
        Ok(lives)
    }

    fn count(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }
}

/// One column against the recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Fidelity {
    /// The column's label.
    pub label: String,
    /// The recording's label.
    pub recorded: String,
    /// How much longer the p99 of the time to start is, as a share of the recorded one.
    pub start_latency_error: Option<f64>,
    /// How many more node-hours there are, as a share of the recorded ones.
    pub node_hours_error: Option<f64>,
    /// Pods that were matched.
    pub compared: usize,
    /// Of those, pods whose time to start differs by at most five seconds.
    pub within_5s: usize,
    /// Pods that only one side has.
    pub unmatched: usize,
}

impl Fidelity {
    /// `as-is vs recorded: start latency p99 +7%, node-hours -0.4%, 96% of pods within 5 s`.
    pub fn sentence(&self) -> String {
        let error = |name: &str, error: Option<f64>| error.map(|error| format!("{name} {:+.1}%", 100.0 * error));
        let mut pieces: Vec<String> = Vec::new();
        pieces.extend(error("start latency p99", self.start_latency_error));
        pieces.extend(error("node-hours", self.node_hours_error));
        if self.compared > 0 {
            let share = words::percent(self.within_5s as f64 / self.compared as f64);
            pieces
                .push(format!("{share} of {} started within 5s of theirs", words::plural(self.compared as i64, "pod")));
        }
        if self.unmatched > 0 {
            pieces.push(format!("{} without a counterpart", words::plural(self.unmatched as i64, "pod")));
        }
        format!("{} vs {}: {}", self.label, self.recorded, pieces.join(", "))
    }
}

/// Every other column against the first one that is a recording.
pub(super) fn of(columns: &[Column]) -> Vec<Fidelity> {
    let is_recording = |column: &&Column| !column.members[0].unknown.is_empty();
    let Some(recorded) = columns.iter().find(is_recording) else { return Vec::new() };
    columns.iter().filter(|column| !is_recording(column)).map(|column| one(recorded, column)).collect()
}

fn one(recorded: &Column, column: &Column) -> Fidelity {
    let (real, ours) = (&recorded.members[0], &column.members[0]);
    let error = |real: f64, ours: f64| (real > 0.0).then(|| (ours - real) / real);
    let p99 = |member: &super::Member| member.summary.start_latency.p99.as_secs_f64();
    let hours = |member: &super::Member| member.summary.node_hours.total;
    let (compared, within_5s, unmatched) = match (&real.lives, &ours.lives) {
        (Some(real), Some(ours)) => matched(real, ours),
        _ => (0, 0, 0),
    };
    Fidelity {
        label: column.label.clone(),
        recorded: recorded.label.clone(),
        start_latency_error: error(p99(real), p99(ours)),
        node_hours_error: error(hours(real), hours(ours)),
        compared,
        within_5s,
        unmatched,
    }
}

/// How many pods were matched, how many of them started alike, and how many have no counterpart.
fn matched(real: &Lives, ours: &Lives) -> (usize, usize, usize) {
    let none = Vec::new();
    let (mut compared, mut close) = (0, 0);
    for (owner, pods) in &real.0 {
        for ((_, real), (_, ours)) in pods.iter().zip(ours.0.get(owner).unwrap_or(&none)) {
            compared += 1;
            close += usize::from(match (real, ours) {
                (Some(real), Some(ours)) => (*real - *ours).max(*ours - *real) <= CLOSE,
                (real, ours) => real.is_none() && ours.is_none(),
            });
        }
    }
    (compared, close, real.count() + ours.count() - 2 * compared)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lives(pods: &[(&str, i64, Option<i64>)]) -> Lives {
        let mut lives = Lives::default();
        for (owner, created, latency) in pods {
            let latency = latency.map(SimDuration::from_secs);
            lives.0.entry((*owner).to_owned()).or_default().push((SimTime::from_secs(*created), latency));
        }
        lives
    }

    #[test]
    fn pods_are_matched_by_owner_in_order_of_creation() {
        let real = lives(&[("a", 0, Some(10)), ("a", 5, Some(60)), ("b", 0, Some(1))]);
        let ours = lives(&[("a", 0, Some(12)), ("a", 6, Some(10)), ("a", 7, Some(1)), ("c", 0, None)]);
        // Of a two pairs, one of them close; b and c and the third of a stand alone.
        assert_eq!(matched(&real, &ours), (2, 1, 3));
    }

    #[test]
    fn pods_that_never_started_on_either_side_agree() {
        assert_eq!(matched(&lives(&[("a", 0, None)]), &lives(&[("a", 3, None)])), (1, 1, 0));
    }
}

//! How close a simulation comes to the recording.
//!
//! A simulation's pods have other names than the recorded ones, so the pods of one owner are matched in order of
//! creation: the third pod of a Deployment with the third. Surplus pods of either side are not matched, and counted.
//! Placement is compared owner by owner as counts per node, because which of ten equal pods is on which node does not
//! matter.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sk_core::{SimDuration, SimTime};
use sk_record::Error;

use crate::analysis::Analysis;
use crate::figure::ToFigure;
use crate::figures::{Deviation, Fidelity, MatchedPods, Placements, Summary};
use crate::source::Source;
use crate::step::{Step, Window};

/// Two pods started alike if their times to start differ by no more.
const CLOSE: SimDuration = SimDuration::from_secs(5);

/// Points of one recorded curve that a run keeps: 3 curves × 5,000 points × 20 bytes are 300 KB.
const POINTS_MAX: usize = 5_000;

/// When one pod was created, how long it took to start, and where it ran.
type Life = (SimTime, Option<SimDuration>, Option<String>);

/// The lives of pods, by owner.
#[derive(Debug, Default)]
pub struct Lives(BTreeMap<String, Vec<Life>>);

impl Lives {
    /// Reads the pods that were created inside the window.
    pub fn of(source: &impl Source, window: Window) -> Result<Self, Error> {
        let mut lives = Self::default();
        for pod in source.pods()? {
            let pod = pod?;
            if window.contains(pod.created) {
                let latency = pod.started.map(|started| started.since(pod.created));
                lives.0.entry(pod.owner).or_default().push((pod.created, latency, pod.node));
            }
        }
        lives.0.values_mut().for_each(|pods| pods.sort_unstable());
        Ok(lives)
    }

    fn count(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }
}

/// A run's figures beside the recorded ones.
pub fn between(real: (&Summary, &Lives), ours: (&Summary, &Lives)) -> Fidelity {
    let p99 = |summary: &Summary| summary.start_latency.p99.as_secs_f64();
    let hours = |summary: &Summary| summary.node_hours.total;
    let (pods, placements) = matched(real.1, ours.1);
    Fidelity {
        start_latency: deviation(p99(real.0), p99(ours.0)),
        node_hours: (hours(real.0) > 0.0).then(|| deviation(hours(real.0), hours(ours.0))),
        placements,
        pods,
    }
}

fn deviation(real: f64, ours: f64) -> Deviation {
    let change = match real {
        0.0 if ours == 0.0 => 0.0,
        0.0 => 1.0,
        real => (ours - real) / real,
    };
    Deviation { error: change.abs(), change }
}

fn matched(real: &Lives, ours: &Lives) -> (MatchedPods, Placements) {
    let none = Vec::new();
    let (mut compared, mut close, mut same) = (0_usize, 0_usize, 0_usize);
    for (owner, pods) in &real.0 {
        let others = ours.0.get(owner).unwrap_or(&none);
        for ((_, real, _), (_, ours, _)) in pods.iter().zip(others) {
            compared += 1;
            close += usize::from(match (real, ours) {
                (Some(real), Some(ours)) => (*real - *ours).max(*ours - *real) <= CLOSE,
                (real, ours) => real.is_none() && ours.is_none(),
            });
        }
        let both = pods.len().min(others.len());
        same += in_common(&places(&pods[..both]), &places(&others[..both]));
    }
    let share = |part: usize| if compared == 0 { 1.0 } else { part as f64 / compared as f64 };
    let unmatched = real.count() + ours.count() - 2 * compared;
    let pods = MatchedPods { compared: compared as i64, within_5s: share(close), unmatched: unmatched as i64 };
    (pods, Placements { same: share(same) })
}

/// How many pods were on each node; those on none are counted too.
fn places(pods: &[Life]) -> BTreeMap<Option<&str>, usize> {
    let mut places = BTreeMap::new();
    for (_, _, node) in pods {
        *places.entry(node.as_deref()).or_default() += 1;
    }
    places
}

fn in_common(a: &BTreeMap<Option<&str>, usize>, b: &BTreeMap<Option<&str>, usize>) -> usize {
    a.iter().map(|(node, count)| (*count).min(b.get(node).copied().unwrap_or(0))).sum()
}

/// What was recorded in the window of a run.
#[derive(Debug)]
pub struct Recording {
    summary: Summary,
    lives: Lives,
    curves: RecordedCurves,
}

/// The recorded running pods, waiting pods and nodes over time: microseconds since the epoch, and the value from then
/// on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedCurves {
    /// Running pods.
    pub running: Vec<(i64, i64)>,
    /// Pods without a node.
    pub pending: Vec<(i64, i64)>,
    /// Nodes; empty if the recording has none.
    pub nodes: Vec<(i64, i64)>,
}

impl Recording {
    /// Reads a recording, which comes as the rows of a run.
    pub fn of(source: &impl Source) -> Result<Self, Error> {
        let analysis = Analysis::of(source)?;
        let curve = |step: &Step| thinned(step, analysis.window);
        let curves = RecordedCurves {
            running: curve(&analysis.curves.running),
            pending: curve(&analysis.curves.pending),
            nodes: if analysis.curves.nodes.max() > 0 { curve(&analysis.curves.nodes) } else { Vec::new() },
        };
        let lives = Lives::of(source, analysis.window)?;
        Ok(Self { summary: analysis.summary, lives, curves })
    }

    /// Puts a run beside it.
    pub fn beside(&self, analysis: &mut Analysis, source: &impl Source) -> Result<(), Error> {
        let lives = Lives::of(source, analysis.window)?;
        analysis.summary.fidelity = Some(between((&self.summary, &self.lives), (&analysis.summary, &lives)));
        analysis.recorded = Some(self.curves.clone());
        Ok(())
    }
}

/// What a run keeps of its recording, so that a later report says the same without the trace.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    fidelity: Value,
    curves: RecordedCurves,
}

/// What it is called in the run's folder.
pub const FILE: &str = "recorded.json";

/// The file that a run keeps; nothing where there is no recording.
pub fn to_json(analysis: &Analysis) -> Result<Option<String>, serde_json::Error> {
    let (Some(curves), Some(fidelity)) = (&analysis.recorded, &analysis.summary.fidelity) else { return Ok(None) };
    let kept = Kept { fidelity: serde_json::to_value(fidelity.figure())?, curves: curves.clone() };
    Ok(Some(serde_json::to_string(&kept)? + "\n"))
}

/// Puts what a run kept back beside it.
pub fn from_json(analysis: &mut Analysis, text: &[u8]) -> Result<(), serde_json::Error> {
    let kept: Kept = serde_json::from_slice(text)?;
    analysis.summary.fidelity = Fidelity::from_json(Some(&kept.fidelity));
    analysis.recorded = Some(kept.curves);
    Ok(())
}

fn thinned(step: &Step, window: Window) -> Vec<(i64, i64)> {
    if step.points().len() <= POINTS_MAX {
        return step.points().iter().map(|(time, value)| (time.as_micros(), *value)).collect();
    }
    let peaks = step.peaks(window, POINTS_MAX);
    let mut points: Vec<(i64, i64)> =
        window.parts(POINTS_MAX).zip(peaks).map(|(part, peak)| (part.start.as_micros(), peak)).collect();
    points.dedup_by_key(|point| point.1);
    points
}

/// `start latency p99 +7.0%, node-hours -0.4%, 96% of 120 pods started within 5s of theirs, 90% on the same nodes`.
pub(crate) fn sentence(fidelity: &Fidelity) -> String {
    let signed = |name: &str, deviation: &Deviation| format!("{name} {:+.1}%", 100.0 * deviation.change);
    let mut pieces = vec![signed("start latency p99", &fidelity.start_latency)];
    pieces.extend(fidelity.node_hours.as_ref().map(|hours| signed("node-hours", hours)));
    if fidelity.pods.compared > 0 {
        let pods = crate::words::plural(fidelity.pods.compared, "pod");
        let (close, same) =
            (crate::words::percent(fidelity.pods.within_5s), crate::words::percent(fidelity.placements.same));
        pieces.push(format!("{close} of {pods} started within 5s of theirs"));
        pieces.push(format!("{same} on the same nodes"));
    }
    if fidelity.pods.unmatched > 0 {
        pieces.push(format!("{} without a counterpart", crate::words::plural(fidelity.pods.unmatched, "pod")));
    }
    pieces.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lives(pods: &[(&str, i64, Option<i64>, &str)]) -> Lives {
        let mut lives = Lives::default();
        for (owner, created, latency, node) in pods {
            let life = (SimTime::from_secs(*created), latency.map(SimDuration::from_secs), Some((*node).to_owned()));
            lives.0.entry((*owner).to_owned()).or_default().push(life);
        }
        lives
    }

    #[test]
    fn pods_are_matched_by_owner_in_order_of_creation() {
        let real = lives(&[("a", 0, Some(10), "n1"), ("a", 5, Some(60), "n2"), ("b", 0, Some(1), "n1")]);
        let ours = lives(&[("a", 1, Some(12), "n2"), ("a", 6, Some(90), "n1"), ("c", 0, Some(1), "n1")]);
        let (pods, placements) = matched(&real, &ours);
        assert_eq!((pods.compared, pods.within_5s, pods.unmatched), (2, 0.5, 2));
        assert_eq!(placements.same, 1.0, "which of two equal pods is on which node means nothing");
        let elsewhere = lives(&[("a", 1, Some(12), "n1"), ("a", 6, Some(90), "n1")]);
        assert_eq!(matched(&real, &elsewhere).1.same, 0.5);
    }

    #[test]
    fn an_error_has_no_sign_and_a_change_has() {
        assert_eq!(deviation(10.0, 8.0), Deviation { error: 0.2, change: -0.2 });
        assert_eq!(deviation(0.0, 0.0), Deviation::default());
        assert_eq!(deviation(0.0, 3.0).error, 1.0);
    }
}

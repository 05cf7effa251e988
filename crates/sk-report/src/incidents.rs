//! Waits that belong together: pods of one owner, rejected for one reason, waiting at the same time.
//!
//! Ten thousand pods that wait for the same nodes are one incident; the longest waits pod by pod would hide everything
//! else.

use std::collections::BTreeMap;

use sk_core::{SimDuration, SimTime};

use crate::causes::{Ending, Wait};

/// Incidents kept, the longest; the rest only count. 200 × about 2 KB of text is 0.4 MB in a report.
pub const INCIDENTS_MAX: usize = 200;

/// Pods of one owner that waited at the same time for the same reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incident {
    /// `ns/Kind/name`.
    pub owner: String,
    /// How many pods.
    pub pods: i64,
    /// When the first began to wait.
    pub from: SimTime,
    /// When the last stopped.
    pub to: SimTime,
    /// The longest wait of one pod.
    pub longest: SimDuration,
    /// The scheduler's reason without its counts.
    pub reason: String,
    /// What ended it.
    pub ending: Ending,
}

/// Gathers waits; sixteen bytes for each.
#[derive(Debug, Default)]
pub(crate) struct Incidents(BTreeMap<(String, String, Ending), Vec<(SimTime, SimTime)>>);

impl Incidents {
    pub(crate) fn add(&mut self, wait: Wait) {
        self.0.entry((wait.owner, wait.reason, wait.ending)).or_default().push((wait.from, wait.to));
    }

    /// The incidents with the longest waits, the longest first, and how many there were in all.
    pub(crate) fn into_longest(self) -> (Vec<Incident>, usize) {
        let mut incidents: Vec<Incident> = Vec::new();
        for ((owner, reason, ending), mut waits) in self.0 {
            waits.sort_unstable();
            incidents.extend(together(&waits).map(|(pods, from, to, longest)| Incident {
                owner: owner.clone(),
                reason: reason.clone(),
                ending: ending.clone(),
                pods,
                from,
                to,
                longest,
            }));
        }
        let total = incidents.len();
        incidents.sort_by_key(|incident| (std::cmp::Reverse((incident.longest, incident.pods)), incident.from));
        incidents.truncate(INCIDENTS_MAX);
        (incidents, total)
    }
}

/// Runs of waits that overlap or touch, of waits in order: how many, from when, to when, the longest.
fn together(waits: &[(SimTime, SimTime)]) -> impl Iterator<Item = (i64, SimTime, SimTime, SimDuration)> {
    let mut runs: Vec<(i64, SimTime, SimTime, SimDuration)> = Vec::new();
    for (from, to) in waits {
        let length = to.since(*from).max(SimDuration::ZERO);
        match runs.last_mut() {
            Some((pods, _, end, longest)) if *from <= *end => {
                *pods += 1;
                *end = (*end).max(*to);
                *longest = (*longest).max(length);
            }
            _ => runs.push((1, *from, (*to).max(*from), length)),
        }
    }
    runs.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_that_overlap_are_one_incident() {
        let at = SimTime::from_secs;
        let runs: Vec<_> =
            together(&[(at(0), at(70)), (at(300), at(370)), (at(310), at(500)), (at(500), at(501))]).collect();
        let span = SimDuration::from_secs;
        assert_eq!(runs, [(1, at(0), at(70), span(70)), (3, at(300), at(501), span(190))]);
    }
}

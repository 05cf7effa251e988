//! What the scheduler said about what is asked.

use std::collections::BTreeSet;

use sk_core::SimTime;
use sk_record::{DecisionRow, Error, Outcome, PodRow};

use super::{ANSWERS_MAX, Said};
use crate::source::Source;
use crate::step::Window;

/// Everything that was said, in order of time, up to the window's end.
#[derive(Debug, Default)]
pub(super) struct Heard {
    pub(super) answers: Vec<DecisionRow>,
    /// Who was placed by preempting others, and whom: `ns/name, ns/name`.
    pub(super) preemptions: Vec<(SimTime, String, String)>,
    pub(super) is_cut: bool,
}

impl Heard {
    pub(super) fn about(source: &impl Source, pods: &[PodRow], window: Window) -> Result<Self, Error> {
        let mut heard = Self::default();
        let names: BTreeSet<(&str, &str)> =
            pods.iter().map(|pod| (pod.namespace.as_str(), pod.name.as_str())).collect();
        for row in source.decisions()? {
            let row = row?;
            if row.time > window.end {
                continue;
            }
            if let Some(victims) = row.explained.victims.clone() {
                heard.preemptions.push((row.time, format!("{}/{}", row.namespace, row.pod), victims));
            }
            if names.contains(&(row.namespace.as_str(), row.pod.as_str())) {
                heard.answers.push(row);
            }
            if heard.is_full() {
                break;
            }
        }
        Ok(heard)
    }

    fn is_full(&mut self) -> bool {
        self.is_cut |= self.answers.len() + self.preemptions.len() >= ANSWERS_MAX;
        self.is_cut
    }
}

/// Each message once with how often, most often first.
pub(super) fn tally(told: impl Iterator<Item = (String, SimTime)>) -> Vec<Said> {
    let mut by_message: std::collections::BTreeMap<String, Said> = std::collections::BTreeMap::new();
    for (message, at) in told {
        let said = by_message.entry(message).or_insert_with_key(|message| Said {
            message: message.clone(),
            times: 0,
            first: at,
            last: at,
        });
        said.times += 1;
        said.first = said.first.min(at);
        said.last = said.last.max(at);
    }
    let mut said: Vec<Said> = by_message.into_values().collect();
    said.sort_by_key(|said| (std::cmp::Reverse(said.times), said.first));
    said
}

/// The refusals among the answers, with what was said.
pub(super) fn refusals<'a>(
    answers: &'a [DecisionRow],
    members: &[&PodRow],
) -> impl Iterator<Item = (String, SimTime)> + use<'a> {
    let names: BTreeSet<(String, String)> =
        members.iter().map(|pod| (pod.namespace.clone(), pod.name.clone())).collect();
    answers
        .iter()
        .filter(move |answer| {
            answer.outcome == Outcome::Unschedulable && names.contains(&(answer.namespace.clone(), answer.pod.clone()))
        })
        .filter_map(|answer| Some((answer.message.clone()?, answer.time)))
}

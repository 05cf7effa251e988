//! What the scheduler and the autoscaler reported about the object in question.

use std::collections::BTreeSet;

use sk_core::SimTime;
use sk_record::{AutoscalerRow, Decided, DecisionRow, Error, Outcome, PodRow};

use super::{ANSWERS_MAX, Said, Subject};
use crate::source::Source;
use crate::step::Window;

/// All messages, in order of time, up to the window's end.
#[derive(Debug, Default)]
pub(super) struct Messages {
    pub(super) answers: Vec<DecisionRow>,
    /// Who was placed by preempting others, and whom: `ns/name, ns/name`.
    pub(super) preemptions: Vec<(SimTime, String, String)>,
    pub(super) autoscaler: Vec<AutoscalerRow>,
    pub(super) is_cut: bool,
}

impl Messages {
    pub(super) fn about(
        source: &impl Source,
        subject: &Subject,
        pods: &[PodRow],
        window: Window,
    ) -> Result<Self, Error> {
        let mut messages = Self::default();
        let names: BTreeSet<(&str, &str)> =
            pods.iter().map(|pod| (pod.namespace.as_str(), pod.name.as_str())).collect();
        for row in source.decisions()? {
            let row = row?;
            if row.time > window.end {
                continue;
            }
            if let Some(victims) = row.explained.victims.clone() {
                messages.preemptions.push((row.time, format!("{}/{}", row.namespace, row.pod), victims));
            }
            if names.contains(&(row.namespace.as_str(), row.pod.as_str())) {
                messages.answers.push(row);
            }
            if messages.is_full() {
                break;
            }
        }
        let owners: BTreeSet<&str> = pods.iter().map(|pod| pod.owner.as_str()).collect();
        for row in source.autoscaler()? {
            let row = row?;
            if row.time > window.end || !is_about(&row, subject, &owners) {
                continue;
            }
            messages.autoscaler.push(row);
            if messages.is_full() {
                break;
            }
        }
        Ok(messages)
    }

    fn is_full(&mut self) -> bool {
        self.is_cut |= self.answers.len() + self.preemptions.len() + self.autoscaler.len() >= ANSWERS_MAX;
        self.is_cut
    }

    /// What the autoscaler decided about these pods of one owner between two moments. It names a hundred pods of a
    /// decision; if it names none of these, its decisions about their owner's pods are shown.
    pub(super) fn autoscaler_on(
        &self,
        owner: &str,
        pods: &[&PodRow],
        from: SimTime,
        to: SimTime,
    ) -> Vec<&AutoscalerRow> {
        let names: BTreeSet<&str> = pods.iter().map(|pod| pod.name.as_str()).collect();
        let during = self.autoscaler.iter().filter(|row| from <= row.time && row.time <= to);
        let about = |row: &&AutoscalerRow| row.owner.as_deref() == Some(owner);
        let (named, owners): (Vec<_>, Vec<_>) =
            during.clone().filter(about).partition(|row| row.pod.as_deref().is_some_and(|pod| names.contains(pod)));
        let specific = if named.is_empty() { owners } else { named };
        let general = during.filter(|row| row.owner.is_none() && is_general(row.decision));
        specific.into_iter().chain(general).collect()
    }
}

/// Decisions that are about everything at once.
const fn is_general(decision: Decided) -> bool {
    match decision {
        Decided::WaitsForMorePods | Decided::MaxNodesTotal | Decided::Unhealthy | Decided::ScaleUpFailed => true,
        Decided::ScaleUp
        | Decided::NoScaleUp
        | Decided::Unneeded
        | Decided::Unremovable
        | Decided::Cooldown
        | Decided::ScaleDown
        | Decided::ScaleDownFailed => false,
    }
}

fn is_about(row: &AutoscalerRow, subject: &Subject, owners: &BTreeSet<&str>) -> bool {
    match subject {
        Subject::Everything | Subject::Object(_) => match &row.owner {
            Some(owner) => owners.contains(owner.as_str()),
            None => is_general(row.decision),
        },
        Subject::Node(name) => row.node.as_deref() == Some(name) || row.decision == Decided::Cooldown,
        Subject::Group(name) => row.group.as_deref() == Some(name) || row.decision == Decided::MaxNodesTotal,
    }
}

/// The message of a decision about pods: the Kubernetes Event, or what was done.
pub(super) fn in_words(row: &AutoscalerRow) -> String {
    match (&row.event, &row.message) {
        (Some(event), Some(message)) => format!("{event}: {message}"),
        (None, Some(message)) => message.clone(),
        (_, None) => {
            let group = row.group.as_deref().map(|group| format!(" of {group}")).unwrap_or_default();
            format!("{}{group}{}", decided(row.decision), size(row))
        }
    }
}

/// A decision about a node or group: `unremovable: NotUnneededLongEnough`.
pub(super) fn in_short(row: &AutoscalerRow) -> String {
    match &row.message {
        Some(message) => format!("{}: {message}", decided(row.decision)),
        None => format!("{}{}{}", decided(row.decision), size(row), considered(row)),
    }
}

/// The groups that were considered, in brackets.
fn considered(row: &AutoscalerRow) -> String {
    row.options.as_deref().map(|options| format!(" ({options})")).unwrap_or_default()
}

fn size(row: &AutoscalerRow) -> String {
    match (row.nodes_before, row.nodes_after) {
        (Some(before), Some(after)) => format!(" from {before} to {after}"),
        _ => String::new(),
    }
}

/// The text for a decision without a message.
fn decided(decision: Decided) -> String {
    match decision {
        Decided::Cooldown => "cooldown: nodes stay after a recent change of the cluster".to_owned(),
        Decided::WaitsForMorePods => "waits for more pods".to_owned(),
        other => other.as_str().replace('-', " "),
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

/// The failed attempts, with their messages.
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

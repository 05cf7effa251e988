//! The scheduler's state, as its log shows it: which pods are queued, the result of each attempt, and whether anything
//! is left to do. Pure: lines in, state out.
//!
//! The messages are those of pkg/scheduler in Kubernetes 1.36: eventhandlers.go, schedule_one.go,
//! backend/queue/scheduling_queue.go and framework/preemption/executor.go. If a message is no longer written, a
//! recording times out and fails; it cannot become wrong.

use std::collections::{BTreeMap, BTreeSet};

use super::log::Line;
use crate::scheduling::attempt::{Attempt, Outcome, Scores, pod_name};

/// The pod whose updates are the fence, as recordings call it.
pub(super) const FENCE: &str = "fence/fence";

/// What the scheduler says of a pod when there is no node at all; it is not in the log line (schedule_one.go,
/// `ErrNoNodesAvailable`).
const NO_NODES: &str = "no nodes available to schedule pods";

/// An event that has reached the scheduler.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Seen {
    /// As the log puts it, such as `Add event for node`.
    pub(super) event: &'static str,
    /// The object: a node's name, or a pod as recordings call it.
    pub(super) object: String,
}

pub(super) const NODE_ADDED: &str = "Add event for node";
pub(super) const NODE_UPDATED: &str = "Update event for node";
pub(super) const NODE_DELETED: &str = "Delete event for node";
pub(super) const PENDING_ADDED: &str = "Add event for unscheduled pod";
pub(super) const PENDING_UPDATED: &str = "Update event for unscheduled pod";
pub(super) const PENDING_DELETED: &str = "Delete event for unscheduled pod";
pub(super) const ASSIGNED_ADDED: &str = "Add event for scheduled pod";
pub(super) const ASSIGNED_UPDATED: &str = "Update event for scheduled pod";
pub(super) const ASSIGNED_DELETED: &str = "Delete event for scheduled pod";

const EVENTS: [&str; 9] = [
    NODE_ADDED,
    NODE_UPDATED,
    NODE_DELETED,
    PENDING_ADDED,
    PENDING_UPDATED,
    PENDING_DELETED,
    ASSIGNED_ADDED,
    ASSIGNED_UPDATED,
    ASSIGNED_DELETED,
];

/// The state of the scheduler.
#[derive(Debug, Default)]
pub(super) struct Tracker {
    /// What reached the scheduler while it was deciding, if anything did: it counts for the pod in hand and for those
    /// that wait, and which of them were in hand is not logged.
    disturbed: Option<String>,
    /// How often the fence was seen to move, and each node to change.
    fences: u64,
    node_updates: BTreeMap<String, u64>,
    /// Pods that will be tried without anything happening first.
    queued: BTreeSet<String>,
    /// Pods that left the queue through the informer.
    left: BTreeSet<String>,
    /// Pods that others are being deleted for, and which of the drafts found that out.
    preempting: BTreeMap<String, usize>,
    /// Pods that others will be deleted for: decided, but the goroutine that does it has not spoken yet.
    about_to_preempt: BTreeSet<String>,
    drafts: Vec<Draft>,
    seen: BTreeSet<Seen>,
    /// Pods that came onto nodes, left them or were changed since the last attempt began.
    news: Vec<String>,
}

/// An attempt that is under way, or over.
#[derive(Debug)]
struct Draft {
    pod: String,
    events: Vec<String>,
    at: Option<i64>,
    outcome: Option<Outcome>,
    scores: Scores,
    /// Pods that are deleted for it.
    victims: Vec<String>,
    /// How many pods would have to go, by node; and how many of those on the chosen one are going already.
    victims_on: BTreeMap<String, usize>,
    going_already: usize,
    target: Option<String>,
    /// The outcome was written into the pod's status.
    posted: bool,
}

impl Draft {
    fn of(pod: String) -> Self {
        Self {
            pod,
            events: Vec::new(),
            at: None,
            outcome: None,
            scores: Scores::default(),
            victims: Vec::new(),
            victims_on: BTreeMap::new(),
            going_already: 0,
            target: None,
            posted: false,
        }
    }
}

impl Tracker {
    /// A step begins: what was seen and tried before belongs to the one before it.
    pub(super) fn begin(&mut self) {
        self.drafts.clear();
        self.seen.clear();
        self.news.clear();
        self.disturbed = None;
    }

    /// Has this event reached the scheduler since the step began?
    pub(super) fn has_seen(&self, event: &'static str, object: &str) -> bool {
        self.seen.contains(&Seen { event, object: object.to_owned() })
    }

    /// What reached the scheduler in the middle of a decision since the step began.
    pub(super) fn disturbed(&self) -> Option<String> {
        self.disturbed.clone()
    }

    /// Nothing is queued, under way or half done.
    pub(super) fn is_idle(&self) -> bool {
        let done = |draft: &Draft| match &draft.outcome {
            Some(Outcome::Bound { .. }) => true,
            Some(Outcome::Unschedulable { .. } | Outcome::Failed { .. }) => draft.posted,
            None => false,
        };
        self.queued.is_empty()
            && self.preempting.is_empty()
            && self.about_to_preempt.is_empty()
            && self.drafts.iter().all(done)
    }

    /// How many attempts the step has seen so far.
    pub(super) fn tried(&self) -> usize {
        self.drafts.len()
    }

    /// How often the fence has been seen to move.
    pub(super) fn fences(&self) -> u64 {
        self.fences
    }

    /// How often a node has been seen to change.
    pub(super) fn node_updates(&self, node: &str) -> u64 {
        self.node_updates.get(node).copied().unwrap_or_default()
    }

    /// The attempts of the step. An attempt without an outcome cannot be there once the scheduler is idle.
    pub(super) fn attempts(&self) -> Vec<Attempt> {
        let attempt = |draft: &Draft| {
            let scores = (!draft.scores.nodes.is_empty()).then(|| draft.scores.clone());
            let mut outcome = draft.outcome.clone()?;
            if let Outcome::Unschedulable { victims, .. } = &mut outcome {
                victims.clone_from(&draft.victims);
                victims.sort();
            }
            Some(Attempt { pod: draft.pod.clone(), events: draft.events.clone(), at: draft.at, outcome, scores })
        };
        self.drafts.iter().filter_map(attempt).collect()
    }

    /// What is not finished, for a person who wonders why it does not go on.
    pub(super) fn unfinished(&self) -> String {
        let open: Vec<_> =
            self.drafts.iter().filter(|draft| draft.outcome.is_none() || !draft.posted).map(|d| &d.pod).collect();
        format!(
            "queued {:?}, tried and not settled {open:?}, preempting {:?}, about to preempt {:?}",
            self.queued, self.preempting, self.about_to_preempt
        )
    }

    /// Takes in one line of the log.
    pub(super) fn take(&mut self, line: &Line) {
        if let Some(event) = EVENTS.iter().find(|event| **event == line.message) {
            self.event(event, line);
        } else if line.message.starts_with("Pod moved to an internal scheduling queue") {
            self.moved(line);
        } else if line.message == "Event received while pods are in flight" {
            // The fence moves while pods are decided about. It changes nothing that any plugin asks for.
            self.disturbed = line.field("event").filter(|event| event != "AssignedPodUpdate").or(self.disturbed.take());
        } else if line.message.contains("reempt") || line.message.starts_with("Victim Pod") {
            self.preemption(line);
        } else {
            self.attempt(line);
        }
    }

    fn event(&mut self, event: &'static str, line: &Line) {
        let object = line.field("node").or_else(|| pod_of(line, "pod")).unwrap_or_default();
        if object == FENCE {
            self.fences += u64::from(event == ASSIGNED_UPDATED);
            return;
        }
        match event {
            NODE_UPDATED => *self.node_updates.entry(object.clone()).or_default() += 1,
            PENDING_ADDED => drop(self.left.remove(&object)),
            ASSIGNED_ADDED => self.news.push(format!("+{object}")),
            ASSIGNED_DELETED => self.news.push(format!("-{object}")),
            ASSIGNED_UPDATED | PENDING_UPDATED => self.news.push(format!("~{object}")),
            PENDING_DELETED => {
                self.queued.remove(&object);
                self.left.insert(object.clone());
            }
            _ => {}
        }
        self.seen.insert(Seen { event, object });
    }

    fn moved(&mut self, line: &Line) {
        // Said once more after the queue itself has said it, when the pod may have been taken out again.
        if line.message.ends_with("because the Pod is updated") {
            return;
        }
        let Some(pod) = pod_of(line, "pod") else { return };
        if self.left.contains(&pod) {
            // Another handler moved it while this one took it out.
            return;
        }
        // Without nodes a pod is tried again by the clock alone.
        let no_nodes = |draft: &Draft| matches!(&draft.outcome, Some(Outcome::Unschedulable { unschedulable, .. }) if unschedulable == NO_NODES);
        let by_the_clock = line.field("event").as_deref() == Some("ScheduleAttemptFailure")
            && self.drafts.iter().rfind(|draft| draft.pod == pod).is_some_and(no_nodes);
        if by_the_clock || line.field("queue").as_deref() == Some("Unschedulable") {
            self.queued.remove(&pod);
        } else {
            self.queued.insert(pod);
        }
    }

    fn preemption(&mut self, line: &Line) {
        if let "Pod is a potential preemption victim on node" = line.message {
            let node = line.field("node").unwrap_or_default();
            if let Some(draft) = self.drafts.last_mut() {
                *draft.victims_on.entry(node).or_default() += 1;
            }
        }
        if let "the target node for the preemption is determined" = line.message {
            let (pod, node) = (pod_of(line, "pod").unwrap_or_default(), line.field("node"));
            self.draft(&pod).into_iter().for_each(|draft| draft.target.clone_from(&node));
            self.about_to_preempt.insert(pod);
        }
        let Some(pod) = pod_of(line, "preemptor") else { return };
        match line.message {
            "Victim Pod is already being deleted, skipping the API call for it" => {
                let Some(draft) = self.draft(&pod) else { return };
                draft.going_already += 1;
                let victims = draft.target.as_ref().and_then(|node| draft.victims_on.get(node));
                if victims == Some(&draft.going_already) {
                    self.about_to_preempt.remove(&pod);
                }
            }
            "Start the preemption asynchronously" => {
                self.about_to_preempt.remove(&pod);
                let draft = self.drafts.iter().rposition(|draft| draft.pod == pod).unwrap_or_default();
                self.preempting.insert(pod, draft);
            }
            "Async Preemption finished completely" => drop(self.preempting.remove(&pod)),
            "Preemptor Pod preempted victim Pod" => {
                let victim = pod_of(line, "victim").unwrap_or_default();
                // With victims that need no grace the next attempt may have begun by now.
                let draft = self.preempting.get(&pod).and_then(|draft| self.drafts.get_mut(*draft));
                draft.into_iter().for_each(|draft| draft.victims.push(victim.clone()));
            }
            _ => {}
        }
    }

    fn attempt(&mut self, line: &Line) {
        let Some(pod) = pod_of(line, "pod") else { return };
        match line.message {
            "Attempting to schedule pod" => {
                self.queued.remove(&pod);
                let events = std::mem::take(&mut self.news);
                self.drafts.push(Draft { events, at: line.at(), ..Draft::of(pod) });
            }
            "Skip schedule deleting pod" => drop(self.queued.remove(&pod)),
            "Plugin scored node for pod" => self.score(&pod, line),
            "Calculated node's final score for pod" => {
                let total = line.number("score").unwrap_or_default();
                if let Some(draft) = self.draft(&pod) {
                    draft.scores.totals.push(total);
                }
            }
            "Successfully bound pod to node" => self.bound(&pod, line),
            "Unable to schedule pod; no fit; waiting" => {
                self.unschedulable(&pod, line.field("err").unwrap_or_default());
            }
            "Unable to schedule pod; no nodes are registered to the cluster; waiting" => {
                self.unschedulable(&pod, NO_NODES.to_owned());
            }
            "Error scheduling pod; retrying" => {
                let error = line.field("err").unwrap_or_default();
                self.end(&pod, Outcome::Failed { error });
            }
            "Updating pod condition and nominated node name" => self.posted(&pod, line),
            _ => {}
        }
    }

    fn score(&mut self, pod: &str, line: &Line) {
        let (Some(plugin), Some(node), Some(score)) = (line.field("plugin"), line.field("node"), line.number("score"))
        else {
            return;
        };
        let Some(draft) = self.draft(pod) else { return };
        let scores = &mut draft.scores;
        if scores.nodes.last() != Some(&node) {
            scores.nodes.push(node);
        }
        match scores.plugins.iter_mut().find(|(known, _)| *known == plugin) {
            Some((_, column)) => column.push(score),
            None => scores.plugins.push((plugin, vec![score])),
        }
    }

    fn bound(&mut self, pod: &str, line: &Line) {
        let count = |key: &str| line.number(key).and_then(|n| u64::try_from(n).ok()).unwrap_or_default();
        let outcome = Outcome::Bound {
            node: line.field("node").unwrap_or_default(),
            evaluated: count("evaluatedNodes"),
            feasible: count("feasibleNodes"),
        };
        self.end(pod, outcome);
    }

    fn unschedulable(&mut self, pod: &str, unschedulable: String) {
        self.end(pod, Outcome::Unschedulable { unschedulable, nominated: None, victims: Vec::new() });
    }

    fn posted(&mut self, pod: &str, line: &Line) {
        let node = line.field("nominatedNodeName").filter(|node| !node.is_empty());
        if let Some(draft) = self.draft(pod) {
            draft.posted = true;
            if let Some(Outcome::Unschedulable { nominated, .. }) = &mut draft.outcome {
                *nominated = node;
            }
        }
    }

    fn end(&mut self, pod: &str, outcome: Outcome) {
        if let Some(draft) = self.draft(pod) {
            draft.outcome = Some(outcome);
        }
    }

    /// The last attempt of a pod.
    fn draft(&mut self, pod: &str) -> Option<&mut Draft> {
        self.drafts.iter_mut().rev().find(|draft| draft.pod == pod)
    }
}

/// A pod that a line is about, as recordings call it.
fn pod_of(line: &Line, key: &str) -> Option<String> {
    let text = line.field(key)?;
    let (namespace, name) = text.split_once('/')?;
    Some(pod_name(namespace, name))
}

#[cfg(test)]
mod tests;

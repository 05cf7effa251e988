//! What the scheduler is doing, as its log tells it: which pods are queued, which attempt came to what, and whether
//! anything is left to do. Pure: lines in, state out.
//!
//! The messages are those of pkg/scheduler in Kubernetes 1.36: eventhandlers.go, schedule_one.go,
//! backend/queue/scheduling_queue.go and framework/preemption/executor.go. A message that is no longer written
//! makes a recording wait in vain, and fail; it cannot make it wrong.

use std::collections::{BTreeMap, BTreeSet};

use super::log::Line;
use crate::scheduling::answer::{Attempt, Outcome, Scores, pod_name};

/// What the scheduler says of a pod when there is no node at all; it is not in the log line (schedule_one.go,
/// `ErrNoNodesAvailable`).
const NO_NODES: &str = "no nodes available to schedule pods";

/// An event that has reached the scheduler.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Seen {
    /// As the log puts it, such as `Add event for node`.
    pub(super) event: &'static str,
    /// The object: a node's name, or a pod as answers call it.
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
    /// Pods that will be tried without anything happening first.
    queued: BTreeSet<String>,
    /// Pods that wait for something to happen.
    waiting: BTreeSet<String>,
    /// Pods that are bound, but not yet seen to be by the scheduler's own informer.
    binding: BTreeSet<String>,
    /// Pods that left the queue through the informer; the word that they were bound may come later.
    left: BTreeSet<String>,
    /// Pods that others are being deleted for, and which of the drafts found that out.
    preempting: BTreeMap<String, usize>,
    drafts: Vec<Draft>,
    seen: BTreeSet<Seen>,
    /// Pods that came onto nodes or left them since the last attempt began.
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
    /// The outcome was written into the pod's status.
    posted: bool,
}

impl Tracker {
    /// A step begins: what was seen and tried before belongs to the one before it.
    pub(super) fn begin(&mut self) {
        self.drafts.clear();
        self.seen.clear();
        self.news.clear();
    }

    /// Has this event reached the scheduler since the step began?
    pub(super) fn has_seen(&self, event: &'static str, object: &str) -> bool {
        self.seen.contains(&Seen { event, object: object.to_owned() })
    }

    /// Nothing is queued, under way or half done.
    pub(super) fn is_idle(&self) -> bool {
        let done = |draft: &Draft| match &draft.outcome {
            Some(Outcome::Bound { .. }) => true,
            Some(Outcome::Unschedulable { .. } | Outcome::Failed { .. }) => draft.posted,
            None => false,
        };
        self.queued.is_empty() && self.binding.is_empty() && self.preempting.is_empty() && self.drafts.iter().all(done)
    }

    /// Has the queue taken a new pod in? Its arrival is logged a moment before.
    pub(super) fn has_taken_in(&self, pod: &str) -> bool {
        self.waiting.contains(pod) || self.queued.contains(pod) || self.drafts.iter().any(|draft| draft.pod == pod)
    }

    /// Does some pod wait for an event? Then one must be given time to be looked at.
    pub(super) fn someone_waits(&self) -> bool {
        !self.waiting.is_empty()
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
            "queued {:?}, tried and not settled {open:?}, binding {:?}, preempting {:?}",
            self.queued, self.binding, self.preempting
        )
    }

    /// Takes in one line of the log.
    pub(super) fn take(&mut self, line: &Line) {
        if let Some(event) = EVENTS.iter().find(|event| **event == line.message) {
            self.event(event, line);
        } else if line.message.starts_with("Pod moved to an internal scheduling queue") {
            self.moved(line);
        } else if line.message.contains("reempt") {
            self.preemption(line);
        } else {
            self.attempt(line);
        }
    }

    fn event(&mut self, event: &'static str, line: &Line) {
        let object = line.field("node").or_else(|| pod_of(line, "pod")).unwrap_or_default();
        match event {
            PENDING_ADDED => drop(self.left.remove(&object)),
            ASSIGNED_ADDED => self.news.push(format!("+{object}")),
            ASSIGNED_DELETED => self.news.push(format!("-{object}")),
            PENDING_DELETED => {
                self.queued.remove(&object);
                self.waiting.remove(&object);
                self.binding.remove(&object);
                self.left.insert(object.clone());
            }
            _ => {}
        }
        self.seen.insert(Seen { event, object });
    }

    fn moved(&mut self, line: &Line) {
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
            self.waiting.insert(pod);
        } else {
            self.waiting.remove(&pod);
            self.queued.insert(pod);
        }
    }

    fn preemption(&mut self, line: &Line) {
        let Some(pod) = pod_of(line, "preemptor") else { return };
        match line.message {
            "Start the preemption asynchronously" => {
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
                self.waiting.remove(&pod);
                let events = std::mem::take(&mut self.news);
                let (scores, victims) = (Scores::default(), Vec::new());
                self.drafts.push(Draft { pod, events, at: line.at(), outcome: None, scores, victims, posted: false });
            }
            "Skip schedule deleting pod" => drop(self.queued.remove(&pod)),
            "Plugin scored node for pod" => self.score(&pod, line),
            "Calculated node's final score for pod" => {
                let total = line.number("score").unwrap_or_default();
                if let Some(draft) = self.draft(&pod) {
                    draft.scores.totals.push(total);
                }
            }
            "Successfully bound pod to node" => self.bound(pod, line),
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

    fn bound(&mut self, pod: String, line: &Line) {
        let count = |key: &str| line.number(key).and_then(|n| u64::try_from(n).ok()).unwrap_or_default();
        let outcome = Outcome::Bound {
            node: line.field("node").unwrap_or_default(),
            evaluated: count("evaluatedNodes"),
            feasible: count("feasibleNodes"),
        };
        self.end(&pod, outcome);
        if !self.left.contains(&pod) {
            self.binding.insert(pod);
        }
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

/// A pod that a line is about, as answers call it.
fn pod_of(line: &Line, key: &str) -> Option<String> {
    let text = line.field(key)?;
    let (namespace, name) = text.split_once('/')?;
    Some(pod_name(namespace, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(lines: &[&str]) -> Tracker {
        let mut tracker = Tracker::default();
        for line in lines {
            tracker.take(&Line::parse(&format!("I1 7 x.go:1] {line}")).unwrap());
        }
        tracker
    }

    const ADDED: &str = r#""Add event for unscheduled pod" pod="default/p""#;
    const ACTIVE: &str =
        r#""Pod moved to an internal scheduling queue" pod="default/p" event="UnscheduledPodAdd" queue="Active""#;
    const TRIED: &str = r#""Attempting to schedule pod" pod="default/p""#;
    const BOUND: &str = r#""Successfully bound pod to node" pod="default/p" node="a" evaluatedNodes=3 feasibleNodes=2"#;
    const LEFT: &str = r#""Delete event for unscheduled pod" pod="default/p""#;
    const NO_FIT: &str = r#""Unable to schedule pod; no fit; waiting" pod="default/p" err="0/1 nodes are available""#;
    const PARKED: &str = r#""Pod moved to an internal scheduling queue" pod="default/p" event="ScheduleAttemptFailure" queue="Unschedulable""#;
    const POSTED: &str = r#""Updating pod condition and nominated node name" pod="default/p" conditionType="PodScheduled" nominatedNodeName="a""#;

    #[test]
    fn a_pod_is_under_way_until_the_informer_has_seen_it_bound() {
        for lines in [&[ADDED, ACTIVE][..], &[ADDED, ACTIVE, TRIED], &[ADDED, ACTIVE, TRIED, BOUND]] {
            assert!(!after(lines).is_idle(), "{lines:?}");
        }
        assert!(after(&[ADDED, ACTIVE, TRIED, BOUND, LEFT]).is_idle());
        assert!(after(&[ADDED, ACTIVE, TRIED, LEFT, BOUND]).is_idle(), "the informer may be quicker than the answer");
    }

    #[test]
    fn a_pod_without_a_node_waits_once_its_condition_is_written() {
        assert!(!after(&[ADDED, ACTIVE, TRIED, NO_FIT, PARKED]).is_idle());
        let tracker = after(&[ADDED, ACTIVE, TRIED, NO_FIT, PARKED, POSTED]);
        assert!(tracker.is_idle() && tracker.someone_waits());
        let Outcome::Unschedulable { unschedulable, nominated, .. } = &tracker.attempts()[0].outcome else {
            panic!("it did not fit")
        };
        assert_eq!((unschedulable.as_str(), nominated.as_deref()), ("0/1 nodes are available", Some("a")));
    }

    #[test]
    fn a_pod_that_was_deleted_is_not_queued_by_a_late_word() {
        assert!(after(&[ADDED, ACTIVE, TRIED, NO_FIT, PARKED, POSTED, LEFT, ACTIVE]).is_idle());
    }

    #[test]
    fn a_pod_without_any_node_is_at_rest_although_the_clock_will_have_it_tried_again() {
        let no_nodes = r#""Unable to schedule pod; no nodes are registered to the cluster; waiting" pod="default/p""#;
        let backoff = r#""Pod moved to an internal scheduling queue" pod="default/p" event="ScheduleAttemptFailure" queue="Backoff""#;
        assert!(after(&[ADDED, ACTIVE, TRIED, no_nodes, backoff, POSTED]).is_idle());
    }

    #[test]
    fn scores_come_as_a_table_by_plugin() {
        let scored = |plugin: &str, node: &str, score: i64| {
            format!(r#""Plugin scored node for pod" pod="default/p" plugin="{plugin}" node="{node}" score={score}"#)
        };
        let total = |node: &str, score: i64| {
            format!(r#""Calculated node's final score for pod" pod="default/p" node="{node}" score={score}"#)
        };
        let lines = [
            scored("F", "a", 1),
            scored("G", "a", 2),
            scored("F", "b", 3),
            scored("G", "b", 4),
            total("a", 3),
            total("b", 7),
        ];
        let lines: Vec<&str> =
            [TRIED].into_iter().chain(lines.iter().map(String::as_str)).chain([BOUND, LEFT]).collect();
        let scores = after(&lines).attempts()[0].scores.clone().unwrap();
        assert_eq!(scores.nodes, ["a", "b"]);
        assert_eq!(scores.plugins, [("F".to_owned(), vec![1, 3]), ("G".to_owned(), vec![2, 4])]);
        assert_eq!(scores.totals, [3, 7]);
    }

    #[test]
    fn an_attempt_tells_which_pods_came_and_went_before_it() {
        let came = r#""Add event for scheduled pod" pod="default/a""#;
        let went = r#""Delete event for scheduled pod" pod="x/b""#;
        let attempts = after(&[came, went, TRIED, NO_FIT, PARKED, POSTED, TRIED, NO_FIT, PARKED, POSTED]).attempts();
        assert_eq!(attempts[0].events, ["+a", "-x/b"]);
        assert!(attempts[1].events.is_empty());
    }

    #[test]
    fn victims_belong_to_the_pod_that_they_make_room_for() {
        let started = r#""Start the preemption asynchronously" preemptor="default/p" node="a" numVictims=1"#;
        let victim = r#""Preemptor Pod preempted victim Pod" preemptor="default/p" victim="x/v" node="a""#;
        let finished = r#""Async Preemption finished completely" preemptor="default/p" node="a""#;
        assert!(!after(&[TRIED, started, NO_FIT, PARKED, POSTED]).is_idle());
        for lines in [
            [TRIED, started, NO_FIT, PARKED, POSTED, victim, finished],
            [TRIED, started, victim, NO_FIT, PARKED, POSTED, finished],
        ] {
            let tracker = after(&lines);
            assert!(tracker.is_idle());
            let Outcome::Unschedulable { victims, unschedulable, .. } = &tracker.attempts()[0].outcome else {
                panic!("it does not fit yet")
            };
            assert_eq!((victims.as_slice(), unschedulable.is_empty()), (&["x/v".to_owned()][..], false));
        }
    }
}

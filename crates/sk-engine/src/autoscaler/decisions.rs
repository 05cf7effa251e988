//! The autoscaler's decisions and their reasons as data: one entry per loop and subject for which it did or refused
//! something.
//!
//! A loop that repeats the decision of the loop before adds no entry. The list is bounded, and entries that did not
//! fit are counted.

use std::collections::{BTreeMap, BTreeSet};

use sk_apiserver::ObjectId;
use sk_core::{ObjectKey, SimTime, SmolStr};

use super::flags::{Autoscaler, Expander};
use super::rules::Rule;
use super::utilization::Utilization;
use super::view::PodView;

/// At most so many are kept until somebody takes them. One is some 300 bytes, and 48 more for each pod: 30 MB and more.
const MAX_KEPT: usize = 100_000;
/// Of the pods that have been told of a scale-up before, at most so many are named again in one decision; the others are
/// counted. Every pod is told once until it has a place.
const MAX_REPEATED: usize = 100;

/// One decision.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// When.
    pub at: SimTime,
    /// The number of the loop, from 1.
    pub loop_number: u64,
    /// What started the loop.
    pub trigger: Trigger,
    /// What was decided.
    pub verdict: Verdict,
}

/// What starts a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The scan interval is over.
    Timer,
    /// A pod was found to be unschedulable.
    Pod,
    /// The loop before enlarged a group.
    AfterScaleUp,
    /// The loop before began to remove nodes.
    AfterScaleDown,
}

/// What a loop did or refused.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Groups grow.
    ScaleUp {
        /// What could have been done.
        options: Vec<Choice>,
        /// Why this one was chosen of them.
        because: Because,
        /// The groups that were no option for these pods, with their reasons.
        refused: Vec<(SmolStr, String)>,
        /// What is done: one group, or several that are alike.
        plan: Vec<Resize>,
        /// For whom.
        pods: Vec<ObjectKey>,
        /// How many more than those named.
        more_pods: usize,
        /// Those of them that had not been told before.
        told: Vec<ObjectKey>,
    },
    /// No group grows for these pods, for this reason.
    NoScaleUp {
        /// For whom: those that had not been told before.
        pods: Vec<ObjectKey>,
        /// The message of the Event `NotTriggerScaleUp`: the count of groups per reason.
        reason: String,
        /// The reason of each group; empty if no group was considered.
        groups: Vec<(SmolStr, String)>,
    },
    /// A group did not make the nodes that were asked of it, and is left alone for a while.
    ScaleUpFailed {
        /// Its name.
        group: SmolStr,
        /// Reason and message of the event that says so.
        event: (&'static str, String),
    },
    /// All pods without a place are so new that more may come.
    WaitsForMorePods,
    /// Too many nodes are not ready: nothing is done at all.
    Unhealthy {
        /// How many are not ready.
        unready: usize,
    },
    /// The cluster has as many nodes as it may.
    MaxNodesTotal {
        /// `max-nodes-total`.
        most: usize,
    },
    /// A node cannot go.
    Unremovable {
        /// Which.
        node: SmolStr,
        /// cluster-autoscaler's message.
        reason: String,
    },
    /// A node could go from now on.
    Unneeded {
        /// Which.
        node: SmolStr,
    },
    /// Nodes that could go stay for now, because the cluster has just changed.
    Cooldown,
    /// A node is being removed.
    ScaleDown {
        /// Which.
        node: SmolStr,
        /// The pods that have to move.
        pods: Vec<ObjectKey>,
        /// How much of it was asked for.
        utilization: Utilization,
    },
    /// The pods of a node that is being removed are evicted. Not a decision of a loop, but a step of the removal.
    Evicts {
        /// Which.
        node: SmolStr,
        /// The pods, those of DaemonSets included.
        pods: Vec<ObjectKey>,
    },
    /// A node is deleted: the last step of its removal.
    Removed {
        /// Which.
        node: SmolStr,
        /// It had pods that moved.
        is_drained: bool,
    },
    /// A node could not be removed after all.
    ScaleDownFailed {
        /// Which.
        node: SmolStr,
        /// cluster-autoscaler's message.
        reason: String,
    },
}

/// Why a group was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Because {
    /// No other could.
    OnlyOption,
    /// This expander left no other.
    Expander(Expander),
    /// Lots were drawn among these, which the expanders left.
    Drawn(Vec<SmolStr>),
    /// The group has fewer nodes than its minimum.
    Minimum,
}

/// A group that could grow.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Its name.
    pub group: SmolStr,
    /// By how many nodes.
    pub nodes: usize,
    /// For how many pods.
    pub pods: usize,
    /// Unused share of CPU plus unused share of memory on the new nodes, in millionths.
    pub waste: i64,
    /// The score of the price expander, if it was asked: the least wins.
    pub price: Option<f64>,
}

/// A group that grows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resize {
    /// Its name.
    pub group: SmolStr,
    /// How many nodes it has.
    pub from: usize,
    /// How many it will have.
    pub to: usize,
    /// How many it may have.
    pub max: usize,
}

impl std::fmt::Display for Resize {
    /// As cluster-autoscaler writes it into events.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{{{} {}->{} (max: {})}}", self.group, self.from, self.to, self.max)
    }
}

impl Decision {
    /// The Kubernetes events that cluster-autoscaler writes: reason, object and message.
    pub fn events(&self) -> Vec<Event> {
        let about = |kind: &str, name: &dyn std::fmt::Display| format!("{kind}/{name}");
        match &self.verdict {
            Verdict::ScaleUp { plan, told, .. } => scaled_up(plan, told),
            Verdict::NoScaleUp { pods, reason, .. } => {
                let message = format!("pod didn't trigger scale-up: {reason}");
                pods.iter().map(|pod| ("NotTriggerScaleUp", about("Pod", pod), message.clone())).collect()
            }
            Verdict::ScaleDown { node, pods, utilization } => {
                let marked = "marked the node as toBeDeleted/unschedulable".to_owned();
                vec![("ScaleDown", about("Node", node), marked), removing(node, pods, utilization)]
            }
            Verdict::Evicts { pods, .. } => {
                let message = "deleting pod for node scale down";
                pods.iter().map(|pod| ("ScaleDown", about("Pod", pod), message.to_owned())).collect()
            }
            Verdict::Removed { node, is_drained: true } => {
                vec![("ScaleDown", STATUS.to_owned(), format!("Scale-down: node {node} removed with drain"))]
            }
            Verdict::Removed { node, is_drained: false } => {
                vec![("ScaleDownEmpty", STATUS.to_owned(), format!("Scale-down: empty node {node} removed"))]
            }
            Verdict::ScaleDownFailed { node, reason } => {
                let message = format!("failed to drain and delete node: {reason}");
                vec![("ScaleDownFailed", about("Node", node), message)]
            }
            Verdict::ScaleUpFailed { event: (reason, message), .. } => {
                vec![(reason, STATUS.to_owned(), message.clone())]
            }
            Verdict::MaxNodesTotal { most } => {
                vec![("MaxNodesTotalReached", STATUS.to_owned(), format!("Max total nodes in cluster reached: {most}"))]
            }
            Verdict::Unhealthy { .. } => {
                vec![("ClusterUnhealthy", STATUS.to_owned(), "Cluster is unhealthy".to_owned())]
            }
            Verdict::WaitsForMorePods | Verdict::Unremovable { .. } | Verdict::Unneeded { .. } | Verdict::Cooldown => {
                Vec::new()
            }
        }
    }
}

/// Reason, object and message.
type Event = (&'static str, String, String);

fn scaled_up(plan: &[Resize], told: &[ObjectKey]) -> Vec<Event> {
    let mut events = Vec::new();
    for Resize { group, from, to, max } in plan {
        let asked = format!("Scale-up: setting group {group} size to {to} instead of {from} (max: {max})");
        let done = format!("Scale-up: group {group} size set to {to} instead of {from} (max: {max})");
        events.extend([asked, done].map(|message| ("ScaledUpGroup", STATUS.to_owned(), message)));
    }
    let plan: Vec<String> = plan.iter().map(ToString::to_string).collect();
    let message = format!("pod triggered scale-up: [{}]", plan.join(" "));
    events.extend(told.iter().map(|pod| ("TriggeredScaleUp", format!("Pod/{pod}"), message.clone())));
    events
}

fn removing(node: &SmolStr, pods: &[ObjectKey], utilization: &Utilization) -> Event {
    if pods.is_empty() {
        return ("ScaleDownEmpty", STATUS.to_owned(), format!("Scale-down: removing empty node \"{node}\""));
    }
    let names: Vec<&str> = pods.iter().map(|pod| pod.name.as_str()).collect();
    let names = names.join(",");
    let message = format!("Scale-down: removing node {node}, utilization: {utilization}, pods to reschedule: {names}");
    ("ScaleDown", STATUS.to_owned(), message)
}

const STATUS: &str = "ConfigMap/cluster-autoscaler-status";

/// The names of the pods of a scale-up, and how many more there are: all that are told of it now, and some others.
pub(super) fn named(pods: &[PodView], told: &[ObjectKey]) -> (Vec<ObjectKey>, usize) {
    let told: BTreeSet<&ObjectKey> = told.iter().collect();
    let is_named = |(place, pod): &(usize, &ObjectKey)| *place < MAX_REPEATED || told.contains(pod);
    let names: Vec<ObjectKey> =
        pods.iter().map(PodView::key).enumerate().filter(is_named).map(|(_, pod)| pod.clone()).collect();
    let more = pods.len() - names.len();
    (names, more)
}

/// The decisions that were not taken yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Decisions {
    kept: Vec<Decision>,
    dropped: u64,
    /// The number of the loop that decides now.
    loop_number: u64,
    /// The last reported reason why each node could not be removed.
    unremovable: BTreeMap<SmolStr, String>,
    pub(super) told: Told,
    cooling: bool,
    sick: bool,
    full: bool,
}

/// What each pod that waits has been told, by its object's id: a loop asks of every one of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    /// Pods with `NotTriggerScaleUp`.
    refused: Vec<bool>,
    /// Pods with `TriggeredScaleUp`.
    helped: Vec<bool>,
}

impl Told {
    fn has(pods: &[bool], pod: ObjectId) -> bool {
        pods.get(pod.index()).copied().unwrap_or(false)
    }

    /// `true`: that is news to the pod.
    fn add(pods: &mut Vec<bool>, pod: ObjectId) -> bool {
        if pods.len() <= pod.index() {
            pods.resize(pod.index() + 1, false);
        }
        !std::mem::replace(&mut pods[pod.index()], true)
    }

    fn forget(&mut self, pod: ObjectId) {
        let known = [&mut self.refused, &mut self.helped].into_iter().filter_map(|pods| pods.get_mut(pod.index()));
        known.for_each(|told| *told = false);
    }

    /// Does the pod know that no group grows for it, and is not told again?
    pub(super) fn is_refused(&self, pod: &PodView, flags: &Autoscaler) -> bool {
        flags.follows(Rule::ToldOnce) && Self::has(&self.refused, pod.object_id)
    }
}

impl Decisions {
    /// A loop begins.
    pub(super) fn next_loop(&mut self) {
        self.loop_number += 1;
    }

    pub(super) fn push(&mut self, at: SimTime, trigger: Trigger, verdict: Verdict) {
        if self.kept.len() < MAX_KEPT {
            self.kept.push(Decision { at, loop_number: self.loop_number, trigger, verdict });
        } else {
            self.dropped += 1;
        }
    }

    /// Reports that a node cannot be removed, unless that was reported before.
    pub(super) fn unremovable(&mut self, at: SimTime, trigger: Trigger, node: &SmolStr, reason: String) {
        if self.unremovable.get(node) != Some(&reason) {
            self.unremovable.insert(node.clone(), reason.clone());
            self.push(at, trigger, Verdict::Unremovable { node: node.clone(), reason });
        }
    }

    /// The node is gone or could go.
    pub(super) fn forget_node(&mut self, node: &SmolStr) {
        self.unremovable.remove(node);
    }

    /// The pod is gone or has a place.
    pub(super) fn forget_pod(&mut self, pod: ObjectId) {
        self.told.forget(pod);
    }

    /// Of these pods those that were not told before that a group grows for them, or does not: cluster-autoscaler's recorder
    /// of events keeps one event of a reason per pod.
    pub(super) fn news(&mut self, pods: &[PodView], grows: bool, flags: &Autoscaler) -> Vec<ObjectKey> {
        let Told { refused, helped } = &mut self.told;
        let was_helped =
            |pod: &PodView| !grows && !flags.follows(Rule::RefusedAfterScaleUp) && Told::has(helped, pod.object_id);
        let pods: Vec<&PodView> = pods.iter().filter(|pod| !was_helped(pod)).collect();
        let told = if grows { helped } else { refused };
        let is_new = |pod: &&PodView| Told::add(told, pod.object_id) || !flags.follows(Rule::ToldOnce);
        pods.into_iter().filter(is_new).map(|pod| pod.key().clone()).collect()
    }

    /// What a loop adds to: the number of the loop, and how many decisions were kept and dropped.
    pub(super) fn said(&self) -> (u64, usize, u64) {
        (self.loop_number, self.kept.len(), self.dropped)
    }

    /// Whether scale-down is in cooldown now; `true`: it was not in the loop before.
    pub(super) fn cooldown_begins(&mut self, cooling: bool) -> bool {
        !std::mem::replace(&mut self.cooling, cooling) && cooling
    }

    /// The same of the cluster's health.
    pub(super) fn sickness_begins(&mut self, sick: bool) -> bool {
        !std::mem::replace(&mut self.sick, sick) && sick
    }

    /// The same of `max-nodes-total`.
    pub(super) fn fullness_begins(&mut self, full: bool) -> bool {
        !std::mem::replace(&mut self.full, full) && full
    }

    /// How many did not fit.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Hands out what was decided since the last time.
    pub(super) fn take(&mut self) -> Vec<Decision> {
        std::mem::take(&mut self.kept)
    }
}

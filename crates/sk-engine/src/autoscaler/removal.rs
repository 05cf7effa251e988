//! Removes a node: taint and cordon it, evict its pods some seconds later, check every five seconds, delete it; or, if
//! its pods do not end in time, uncordon it (`core/scaledown/actuation`).

use std::collections::BTreeMap;
use std::sync::Arc;

use sk_apiserver::kinds::NODE;
use sk_apiserver::{DeleteOptions, Object, Request};
use sk_core::{ObjectKey, ObjectRef, SimDuration, SimTime, SmolStr, Taint, TaintEffect};

use super::flags::Autoscaler;
use super::rules::Rule;
use super::scale_down::InFlight;
use super::view::{NodeView, View};
use super::{SOFT_TAINT, TO_BE_DELETED, drain};

/// How often a node that is being emptied is looked at.
const POLL: SimDuration = SimDuration::from_secs(5);
/// So much longer than the pods' grace a drain may take (`PodEvictionHeadroom`).
const HEADROOM: SimDuration = SimDuration::from_secs(30);
/// A refused eviction is tried again after this (`EvictionRetryTime` is 10 s, but client-go itself retries each second).
pub(super) const EVICTION_RETRY: SimDuration = SimDuration::from_secs(1);
/// For this long (`max-pod-eviction-time`).
pub(super) const EVICTION_TIME: SimDuration = SimDuration::from_mins(2);

/// Nodes on their way out.
#[derive(Clone, Debug, Default)]
pub(super) struct Removals {
    going: BTreeMap<SmolStr, Removal>,
}

/// One of them.
#[derive(Clone, Debug)]
pub(super) struct Removal {
    group: usize,
    pub(super) is_drain: bool,
    /// Evictions begin, or an empty node is deleted.
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Marked.
    Marked,
    /// Its pods are asked to go, until then.
    Draining { deadline: SimTime },
    /// Being deleted.
    Deleted,
}

/// What is done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// These pods are evicted; then the node is looked at again.
    Evict(Vec<(ObjectKey, Option<i64>)>, SimTime),
    /// Looked at again at that time.
    Wait(SimTime),
    /// The node is deleted; it had pods that moved, or none.
    Delete { is_drained: bool },
    /// Given back, because its pods did not go.
    GiveUp,
    /// Given back, because it is not empty any more.
    NotEmpty,
    /// It is gone already.
    Nothing,
}

impl Removals {
    /// A removal begins: the time of its next step.
    pub(super) fn begin(
        &mut self,
        node: &SmolStr,
        group: usize,
        is_drain: bool,
        flags: &Autoscaler,
        now: SimTime,
    ) -> SimTime {
        self.going.insert(node.clone(), Removal { group, is_drain, stage: Stage::Marked });
        if flags.follows(Rule::DelayAfterTaint) { now + flags.node_delete_delay_after_taint } else { now }
    }

    /// A removal is over: the node's group.
    pub(super) fn end(&mut self, node: &SmolStr) -> Option<usize> {
        self.going.remove(node).map(|removal| removal.group)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.going.is_empty()
    }

    /// The nodes that are being emptied.
    pub(super) fn draining(&self) -> impl Iterator<Item = &SmolStr> {
        self.going.iter().filter(|(_, removal)| removal.is_drain).map(|(name, _)| name)
    }

    pub(super) fn in_flight(&self) -> InFlight {
        let mut flight = InFlight::default();
        for removal in self.going.values() {
            *flight.groups.entry(removal.group).or_insert(0) += 1;
            *if removal.is_drain { &mut flight.drains } else { &mut flight.empty } += 1;
        }
        flight
    }

    /// The next step of a node.
    pub(super) fn step(&mut self, name: &SmolStr, view: &View, flags: &Autoscaler, now: SimTime) -> Next {
        let (Some(removal), Some(node)) = (self.going.get_mut(name), view.nodes.get(name)) else {
            return Next::Nothing;
        };
        let holds = node.pods().any(|pod| !pod.expendable && !drain::belongs_to_the_node(&pod.object));
        match removal.stage {
            Stage::Marked if removal.is_drain => {
                let mut pods = to_evict(node, flags.daemonset_eviction_for_occupied_nodes, flags);
                if !flags.follows(Rule::AllPodsAtOnce) {
                    pods.truncate(1);
                }
                let grace = longest_grace(node, flags);
                removal.stage = Stage::Draining { deadline: now + grace + HEADROOM };
                let poll = if flags.follows(Rule::DrainPolls) { POLL } else { SimDuration::from_millis(500) };
                Next::Evict(pods, now + poll)
            }
            Stage::Marked if holds => Next::NotEmpty,
            Stage::Marked => {
                removal.stage = Stage::Deleted;
                match flags.daemonset_eviction_for_empty_nodes {
                    true => {
                        removal.stage = Stage::Draining { deadline: now + HEADROOM };
                        Next::Evict(to_evict(node, true, flags), now + SimDuration::from_secs(1))
                    }
                    false => Next::Delete { is_drained: false },
                }
            }
            Stage::Draining { .. } if !holds => {
                removal.stage = Stage::Deleted;
                Next::Delete { is_drained: removal.is_drain }
            }
            Stage::Draining { deadline } if now >= deadline && flags.follows(Rule::DrainFails) => Next::GiveUp,
            Stage::Draining { .. } if !flags.follows(Rule::AllPodsAtOnce) => {
                let mut pods = to_evict(node, flags.daemonset_eviction_for_occupied_nodes, flags);
                pods.truncate(1);
                Next::Evict(pods, now + POLL)
            }
            Stage::Draining { .. } => Next::Wait(now + POLL),
            Stage::Deleted => Next::Nothing,
        }
    }
}

/// All pods but the node's own; with the grace they get, if that is less than they ask for.
fn to_evict(node: &NodeView, daemons_too: bool, flags: &Autoscaler) -> Vec<(ObjectKey, Option<i64>)> {
    let goes = |pod: &sk_apiserver::Object| {
        !drain::is_mirror(pod) && !pod.is_deleting() && (daemons_too || !drain::is_daemon(pod))
    };
    let most = flags.max_graceful_termination.as_micros() / 1_000_000;
    let shorter = |pod: &Object| grace(pod).filter(|grace| *grace > most).map(|_| most);
    node.pods().filter(|pod| goes(&pod.object)).map(|pod| (pod.key().clone(), shorter(&pod.object))).collect()
}

fn grace(pod: &Object) -> Option<i64> {
    pod.pod().map(|pod| pod.spec.termination_grace_period_seconds.unwrap_or(30))
}

fn longest_grace(node: &NodeView, flags: &Autoscaler) -> SimDuration {
    let graces =
        node.pods().filter(|pod| !drain::belongs_to_the_node(&pod.object)).filter_map(|pod| grace(&pod.object));
    SimDuration::from_secs(graces.max().unwrap_or(0)).min(flags.max_graceful_termination)
}

/// A change of the marks on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// About to be removed.
    ToBeDeleted,
    /// No longer about to be removed.
    Spared,
    /// Could go: pods are better put elsewhere.
    Soft,
    /// Needed again.
    Needed,
}

/// The request that marks a node; `None`: it is marked so already.
pub(super) fn mark(node: &Arc<Object>, mark: Mark, cordon: bool) -> Option<Request> {
    let mut marked = Object::clone(node);
    let spec = Arc::make_mut(&mut marked.node_mut()?.spec);
    let before = (spec.taints.clone(), spec.unschedulable);
    let mut set = |key: &'static str, effect: TaintEffect, present: bool| {
        spec.taints.retain(|taint| taint.key != key);
        if present {
            spec.taints.push(Taint::new(key, effect));
        }
    };
    match mark {
        Mark::ToBeDeleted => set(TO_BE_DELETED, TaintEffect::NoSchedule, true),
        Mark::Spared => set(TO_BE_DELETED, TaintEffect::NoSchedule, false),
        Mark::Soft => set(SOFT_TAINT, TaintEffect::PreferNoSchedule, true),
        Mark::Needed => set(SOFT_TAINT, TaintEffect::PreferNoSchedule, false),
    }
    match mark {
        Mark::ToBeDeleted if cordon => spec.unschedulable = true,
        Mark::Spared if cordon => spec.unschedulable = false,
        Mark::ToBeDeleted | Mark::Spared | Mark::Soft | Mark::Needed => {}
    }
    let changed = (spec.taints.clone(), spec.unschedulable) != before;
    changed.then(|| Request::update(marked))
}

/// The request that deletes a node.
pub(super) fn delete(node: &SmolStr) -> Request {
    let target = ObjectRef::new(NODE.clone(), ObjectKey::cluster(node.clone()));
    Request::Delete { target, options: DeleteOptions::default() }
}

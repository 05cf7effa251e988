//! One sync of a DaemonSet: nodes with missing or surplus pods, and the status (`daemon_controller.go`, 1.36).

use std::collections::BTreeMap;
use std::sync::Arc;

use sk_apiserver::kinds::{DaemonSet, DaemonSetStatus, PodPhase, SetStrategyType};
use sk_apiserver::{Body, Object, ObjectId, OwnerRef, Request, View};
use sk_core::rng::Stream;
use sk_core::{SimDuration, SimTime, SmolStr};

use super::backoff::Backoff;
use super::placement::{self, Fit, Placement};
use crate::controller::Plan;
use crate::controllers::pods::{available_in, delete, generated, is_available, ready_since, slow_start};
use crate::controllers::revisions::{REVISION_LABEL, Revisions};

/// At most this many creations or deletions in one go (`BurstReplicas`).
const BURST: usize = 250;

/// A set, the nodes and its pods on them, at one moment.
pub(super) struct Sync<'a> {
    id: ObjectId,
    object: &'a Arc<Object>,
    pub(super) set: &'a DaemonSet,
    hash: &'a SmolStr,
    placement: &'a Placement,
    pub(super) nodes: BTreeMap<SmolStr, Fit>,
    /// The set's pods by the node they are for, oldest first.
    pub(super) pods: BTreeMap<SmolStr, Vec<&'a Arc<Object>>>,
    pub(super) now: SimTime,
}

/// Where pods are to be made, and which are to go.
#[derive(Default)]
pub(super) struct Changes<'a> {
    pub(super) create_on: Vec<SmolStr>,
    pub(super) delete: Vec<&'a Arc<Object>>,
}

impl Changes<'_> {
    fn are_none(&self) -> bool {
        self.create_on.is_empty() && self.delete.is_empty()
    }
}

impl<'a> Sync<'a> {
    pub(super) fn new(
        (id, object, set): (ObjectId, &'a Arc<Object>, &'a DaemonSet),
        hash: &'a SmolStr,
        placement: &'a Placement,
        nodes: Vec<&'a Arc<Object>>,
        view: View<'a>,
        now: SimTime,
    ) -> Self {
        let mut pods = BTreeMap::<SmolStr, Vec<&'a Arc<Object>>>::new();
        let mine = |pod: &Object| pod.pod().is_some() && pod.controller().is_some_and(|owner| owner.uid == object.uid);
        for pod in view.owned_by(object.uid).map(|(_, pod)| pod).filter(|pod| mine(pod)) {
            // One that has ended and is going is for the node or the pod garbage collector.
            let is_over = pod.is_deleting() && phase(pod).is_final();
            if let Some(node) = placement::target(pod).filter(|_| !is_over) {
                pods.entry(node).or_default().push(pod);
            }
        }
        let is_unbound = |pod: &Object| pod.pod().is_some_and(|pod| pod.node_name.is_none());
        for on_node in pods.values_mut() {
            on_node
                .sort_by(|a, b| (is_unbound(a), a.created, &a.key.name).cmp(&(is_unbound(b), b.created, &b.key.name)));
        }
        let nodes = nodes.into_iter().map(|node| (node.key.name.clone(), placement.fit(node))).collect();
        Self { id, object, set, hash, placement, nodes, pods, now }
    }

    pub(super) fn plan(&self, revisions: &Revisions<'_>, failures: &mut Backoff, order: &mut Stream) -> Plan {
        let spec = &self.set.spec;
        let mut plan = Plan::of(revisions.bring_up(self.hash, &spec.template));
        let (mut changes, again) = self.manage(failures);
        order.shuffle(&mut changes.create_on);
        order.shuffle(&mut changes.delete);
        if changes.are_none() && spec.update_strategy.kind == SetStrategyType::RollingUpdate {
            changes = self.roll(order);
        }
        self.carry_out(&changes, &mut plan);
        let is_newest = |name: &str| name == revisions.name(self.hash);
        let is_live = |name: &str| {
            let mut all = self.pods.values().flatten();
            is_newest(name) || all.any(|pod| revisions.name(revision_of(pod)) == name)
        };
        let old = revisions.truncate(spec.revision_history_limit, |name| !is_newest(name), is_live);
        plan.batches.extend(old.into_iter().chain(self.report()).map(|request| vec![request]));
        plan.again_after = again.into_iter().chain(self.next_available()).min();
        plan
    }

    /// Makes pods in batches that double, then removes the others all at once.
    fn carry_out(&self, changes: &Changes<'_>, plan: &mut Plan) {
        let mut template = self.set.spec.template.metadata.clone();
        template.labels.make_mut().insert(REVISION_LABEL, self.hash.clone());
        let owners: Arc<[OwnerRef]> = [self.object.as_controller()].into();
        let create = |node: &SmolStr| generated(self.object, &owners, &template, &self.placement.spec_for(node));
        plan.batches.extend(slow_start(changes.create_on.iter().take(BURST).map(create)));
        let gone: Vec<_> = changes.delete.iter().take(BURST).map(|pod| delete(pod)).collect();
        if !gone.is_empty() {
            plan.batches.push_back(gone);
        }
    }

    /// A pod where one should be, none where none should be, and when to look again (`manage`).
    fn manage(&self, failures: &mut Backoff) -> (Changes<'a>, Option<SimDuration>) {
        let mut changes = Changes::default();
        let mut again: Option<SimDuration> = None;
        for (node, fit) in &self.nodes {
            match self.pods.get(node) {
                None if fit.should_run => changes.create_on.push(node.clone()),
                None => {}
                Some(pods) if fit.may_stay => {
                    let wait = self.manage_node(node, pods, fit.should_run, failures, &mut changes);
                    again = again.into_iter().chain(wait).min();
                }
                Some(pods) => changes.delete.extend(pods.iter().filter(|pod| !pod.is_deleting())),
            }
        }
        // A pod that is pinned to a deleted node will never be bound.
        let lost = self.pods.iter().filter(|(node, _)| !self.nodes.contains_key(*node)).flat_map(|(_, pods)| pods);
        let unbound = |pod: &&&Arc<Object>| pod.pod().is_some_and(|pod| pod.node_name.is_none());
        changes.delete.extend(lost.filter(unbound).filter(|pod| !pod.is_deleting()));
        (changes, again)
    }

    /// A node that may have pods: ended ones go, and so do those beyond one, or beyond an old and a new one while a rollout
    /// surges.
    fn manage_node(
        &self,
        node: &SmolStr,
        pods: &[&'a Arc<Object>],
        should_run: bool,
        failures: &mut Backoff,
        changes: &mut Changes<'a>,
    ) -> Option<SimDuration> {
        let (mut running, mut again) = (Vec::new(), None);
        for pod in pods.iter().filter(|pod| !pod.is_deleting()) {
            match phase(pod) {
                PodPhase::Succeeded => changes.delete.push(pod),
                PodPhase::Failed => match failures.wait(self.id, node, self.now) {
                    Some(wait) => again = Some(wait),
                    None => changes.delete.push(pod),
                },
                PodPhase::Pending | PodPhase::Running | PodPhase::Unknown => running.push(*pod),
            }
        }
        if !self.allows_surge() {
            changes.delete.extend(running.iter().skip(1));
        } else if running.is_empty() {
            changes.create_on.extend(should_run.then(|| node.clone()));
        } else if running.len() > 1 {
            changes.delete.extend(self.beyond_old_and_new(&running));
        }
        again
    }

    /// Of several pods the oldest of each template stay, and the old one only as long as it is ready and the new one is
    /// not available.
    fn beyond_old_and_new(&self, running: &[&'a Arc<Object>]) -> Vec<&'a Arc<Object>> {
        let (new, old): (Vec<&Arc<Object>>, Vec<_>) = running.iter().partition(|pod| self.is_new(pod));
        let mut gone: Vec<&Arc<Object>> = new.iter().skip(1).chain(old.iter().skip(1)).copied().collect();
        if let (Some(new), Some(old)) = (new.first(), old.first())
            && (ready_since(old).is_none() || self.is_available(new))
        {
            gone.push(old);
        }
        gone
    }

    pub(super) fn is_new(&self, pod: &Object) -> bool {
        revision_of(pod) == self.hash
    }

    pub(super) fn is_available(&self, pod: &Object) -> bool {
        is_available(pod, self.set.spec.min_ready_seconds, self.now)
    }

    /// How many nodes should have a pod.
    pub(super) fn desired(&self) -> usize {
        self.nodes.values().filter(|fit| fit.should_run).count()
    }

    /// The status to write, if it is news.
    fn report(&self) -> Option<Request> {
        let mut status = DaemonSetStatus {
            observed_generation: self.object.meta.generation,
            rest: self.set.status.rest.clone(),
            ..DaemonSetStatus::default()
        };
        for (node, fit) in &self.nodes {
            let pod = self.pods.get(node).and_then(|pods| pods.first());
            if !fit.should_run {
                status.number_misscheduled += i32::from(pod.is_some());
                continue;
            }
            status.desired_number_scheduled += 1;
            let Some(pod) = pod else { continue };
            status.current_number_scheduled += 1;
            status.number_ready += i32::from(ready_since(pod).is_some());
            status.number_available += i32::from(self.is_available(pod));
            status.updated_number_scheduled += i32::from(self.is_new(pod));
        }
        status.number_unavailable = status.desired_number_scheduled - status.number_available;
        if status == self.set.status {
            return None;
        }
        let mut object = Object::clone(self.object);
        // Figures, not decisions: they are written whatever else has changed meanwhile.
        object.resource_version = 0;
        object.body = Body::DaemonSet(DaemonSet { spec: self.set.spec.clone(), status });
        Some(Request::update_status(object))
    }

    /// When the next ready pod becomes available by waiting alone.
    fn next_available(&self) -> Option<SimDuration> {
        let min_ready = self.set.spec.min_ready_seconds;
        let waits = self.pods.values().flatten().filter_map(|pod| available_in(pod, min_ready, self.now));
        waits.filter(|wait| *wait > SimDuration::ZERO).min()
    }
}

fn phase(pod: &Object) -> PodPhase {
    pod.pod().map_or(PodPhase::Unknown, |pod| pod.status.phase)
}

fn revision_of(pod: &Object) -> &str {
    pod.meta.labels.get(&REVISION_LABEL).map_or("", SmolStr::as_str)
}

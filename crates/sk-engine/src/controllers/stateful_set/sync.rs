//! One sync of a StatefulSet: pods to create, delete and replace, and the status (`stateful_set_control.go`, 1.36).

use std::collections::BTreeMap;
use std::sync::Arc;

use sk_apiserver::kinds::{
    PodManagementPolicy, PodPhase, PodTemplate, SetStrategyType, StatefulSet, StatefulSetSpec, StatefulSetStatus,
};
use sk_apiserver::{Body, Object, Request, View};
use sk_core::limits::MAX_OBJECTS;
use sk_core::{SimDuration, SimTime, SmolStr};

use super::claims::Claims;
use super::identity::{self, ordinal_in, revision_of};
use crate::controller::Plan;
use crate::controllers::pods::{available_in, delete, is_available, ready_since, slow_start};
use crate::controllers::revisions::{self, Revisions};

/// A set and its pods at one moment.
pub(super) struct Sync<'a> {
    object: &'a Arc<Object>,
    set: &'a StatefulSet,
    spec: &'a StatefulSetSpec,
    /// The revision that is being replaced.
    current: SmolStr,
    /// The newest revision.
    update: SmolStr,
    current_template: Option<PodTemplate>,
    /// How many pods are wanted.
    wanted: usize,
    /// The wanted pods that are there, by place.
    replicas: BTreeMap<usize, &'a Arc<Object>>,
    /// Pods beyond those, the one with the highest number first.
    condemned: Vec<&'a Arc<Object>>,
    view: View<'a>,
    now: SimTime,
}

/// Whether a sync may go on after a step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Go {
    On,
    NoFurther,
}

impl<'a> Sync<'a> {
    pub(super) fn new(
        object: &'a Arc<Object>,
        set: &'a StatefulSet,
        revisions: &Revisions<'a>,
        hash: &str,
        view: View<'a>,
        now: SimTime,
    ) -> Self {
        let update = revisions.name(hash);
        let current = revisions.find(&set.status.current_revision);
        let current = current.filter(|current| current.key.name != update);
        let spec = &*set.spec;
        let wanted = usize::try_from(spec.replicas).unwrap_or(0).min(MAX_OBJECTS);
        let mine = |pod: &Object| pod.pod().is_some() && pod.controller().is_some_and(|owner| owner.uid == object.uid);
        let (mut replicas, mut condemned) = (BTreeMap::new(), Vec::new());
        for pod in view.owned_by(object.uid).map(|(_, pod)| pod).filter(|pod| mine(pod)) {
            let Some(ordinal) = ordinal_in(object, pod) else { continue };
            let place = ordinal.checked_sub(spec.start_ordinal()).and_then(|place| usize::try_from(place).ok());
            match place.filter(|place| *place < wanted) {
                Some(place) => drop(replicas.insert(place, pod)),
                None => condemned.push(pod),
            }
        }
        condemned.sort_by_key(|pod| std::cmp::Reverse(ordinal_in(object, pod)));
        Self {
            object,
            set,
            spec,
            current: current.map_or_else(|| update.clone(), |current| current.key.name.clone()),
            current_template: current.and_then(|current| revisions::template(current)),
            update,
            wanted,
            replicas,
            condemned,
            view,
            now,
        }
    }

    fn pods(&self) -> impl Iterator<Item = &'a Arc<Object>> {
        self.replicas.values().chain(&self.condemned).copied()
    }

    /// Replaces and makes, then removes what is too many, then replaces what is old.
    fn act(&self, plan: &mut Plan, status: &mut StatefulSetStatus) {
        let is_ordered = self.spec.pod_management_policy == PodManagementPolicy::OrderedReady;
        let went = if is_ordered { self.keep_in_order(plan) } else { self.keep_at_once(plan) };
        if went == Go::NoFurther || self.shrink(plan, is_ordered) == Go::NoFurther {
            return;
        }
        if self.spec.update_strategy.kind == SetStrategyType::RollingUpdate
            && let Some(old) = self.next_to_replace()
        {
            plan.batches.push_back(vec![delete(old)]);
            status.current_replicas -= 1;
        }
    }

    /// One pod after the other: the first that is not as it should be is seen to, and the rest waits.
    fn keep_in_order(&self, plan: &mut Plan) -> Go {
        for place in 0..self.wanted {
            let (first, then, go) = self.keep(place, true);
            plan.batches.extend([first, then].into_iter().filter(|batch| !batch.is_empty()));
            if go == Go::NoFurther {
                return go;
            }
        }
        Go::On
    }

    /// All pods in batches that double.
    fn keep_at_once(&self, plan: &mut Plan) -> Go {
        for places in slow_start(0..self.wanted) {
            let (mut first, mut then) = (Vec::new(), Vec::new());
            for place in places {
                let (claims, pods, _) = self.keep(place, false);
                first.extend(claims);
                then.extend(pods);
            }
            plan.batches.extend([first, then].into_iter().filter(|batch| !batch.is_empty()));
        }
        Go::On
    }

    /// What one wanted pod needs: claims first, then the rest; and whether the next one may be looked at (`processReplica`).
    fn keep(&self, place: usize, is_ordered: bool) -> (Vec<Request>, Vec<Request>, Go) {
        let ordinal = i32::try_from(place).unwrap_or(i32::MAX).saturating_add(self.spec.start_ordinal());
        let claims = Claims { set: self.object, spec: self.spec, ordinal, view: self.view };
        let wait = if is_ordered { Go::NoFurther } else { Go::On };
        let Some(pod) = self.replicas.get(&place) else {
            if claims.are_stale() {
                return (Vec::new(), Vec::new(), Go::NoFurther);
            }
            return (claims.missing(), vec![self.make(place, ordinal)], wait);
        };
        let phase = phase(pod);
        if phase.is_final() {
            let gone = (!pod.is_deleting()).then(|| delete(pod));
            return (Vec::new(), gone.into_iter().collect(), Go::NoFurther);
        }
        let missing = if phase == PodPhase::Pending { claims.missing() } else { Vec::new() };
        let is_up = phase == PodPhase::Running && is_available(pod, self.spec.min_ready_seconds, self.now);
        if is_ordered && (pod.is_deleting() || !is_up) {
            return (missing, Vec::new(), Go::NoFurther);
        }
        let corrected = claims.corrected(pod, false).into_iter().chain(identity::correct(self.object, pod));
        (missing, corrected.collect(), Go::On)
    }

    /// The pod for a place: of the old template below the partition (`newVersionedStatefulSetPod`).
    fn make(&self, place: usize, ordinal: i32) -> Request {
        let is_old = i32::try_from(place).is_ok_and(|place| place < self.spec.partition());
        match self.current_template.as_ref().filter(|_| is_old) {
            Some(template) => identity::new_pod(self.object, self.spec, template, &self.current, ordinal),
            None => identity::new_pod(self.object, self.spec, &self.spec.template, &self.update, ordinal),
        }
    }

    /// Removes pods beyond the wanted ones, in order from the highest number (`processCondemned`).
    fn shrink(&self, plan: &mut Plan, is_ordered: bool) -> Go {
        let claims = self.condemned.iter().flat_map(|pod| {
            let ordinal = ordinal_in(self.object, pod).unwrap_or(0);
            Claims { set: self.object, spec: self.spec, ordinal, view: self.view }.corrected(pod, true)
        });
        plan.batches.extend(claims.map(|request| vec![request]));
        if !is_ordered {
            let going = self.condemned.iter().filter(|pod| !pod.is_deleting()).map(|pod| delete(pod));
            plan.batches.extend(slow_start(going));
            return Go::On;
        }
        let Some(last) = self.condemned.first() else { return Go::On };
        // One that is not available may go only if it is the first of them: others wait for it.
        let first_unavailable = self.condemned.iter().rev().find(|pod| self.is_unavailable(pod));
        let may_go = !self.is_unavailable(last) || first_unavailable.is_some_and(|first| first.uid == last.uid);
        if !last.is_deleting() && may_go {
            plan.batches.push_back(vec![delete(last)]);
        }
        Go::NoFurther
    }

    /// The next pod that a rollout replaces: from the highest number down to the partition, one at a time.
    fn next_to_replace(&self) -> Option<&'a Arc<Object>> {
        let partition = usize::try_from(self.spec.partition()).unwrap_or(0);
        for place in (partition..self.wanted).rev() {
            // One that is being made is waited for.
            let pod = self.replicas.get(&place)?;
            if revision_of(pod) != self.update && !pod.is_deleting() {
                return Some(pod);
            }
            if self.is_unavailable(pod) {
                return None;
            }
        }
        None
    }

    fn is_unavailable(&self, pod: &Object) -> bool {
        pod.is_deleting() || !is_available(pod, self.spec.min_ready_seconds, self.now)
    }

    fn status(&self) -> StatefulSetStatus {
        let mut status = StatefulSetStatus {
            observed_generation: self.object.meta.generation,
            current_revision: self.current.clone(),
            update_revision: self.update.clone(),
            collision_count: Some(0),
            rest: self.set.status.rest.clone(),
            ..StatefulSetStatus::default()
        };
        for pod in self.pods() {
            let is_ready = phase(pod) == PodPhase::Running && ready_since(pod).is_some();
            let of = |revision: &SmolStr| i32::from(!pod.is_deleting() && revision_of(pod) == revision);
            status.replicas += 1;
            status.ready_replicas += i32::from(is_ready);
            let is_up = is_ready && is_available(pod, self.spec.min_ready_seconds, self.now);
            status.available_replicas += i32::from(is_up);
            status.current_replicas += of(&self.current);
            status.updated_replicas += of(&self.update);
        }
        status
    }

    /// A rollout ends when all pods are new and ready (`completeRollingUpdate`).
    fn complete(&self, status: &mut StatefulSetStatus) {
        let counts = [status.updated_replicas, status.ready_replicas, status.replicas];
        let is_rolling = self.spec.update_strategy.kind == SetStrategyType::RollingUpdate;
        if is_rolling && counts.iter().all(|count| *count == self.spec.replicas) {
            status.current_replicas = status.updated_replicas;
            status.current_revision.clone_from(&status.update_revision);
        }
    }

    /// What is to be done for the set.
    pub(super) fn plan(&self, revisions: &Revisions<'_>, hash: &str) -> Plan {
        let mut plan = Plan::of(revisions.bring_up(hash, &self.spec.template));
        let mut status = self.status();
        if !self.object.is_deleting() {
            self.act(&mut plan, &mut status);
        }
        plan.batches.extend(self.report(status).map(|request| vec![request]));
        let is_live =
            |name: &str| name == self.current || name == self.update || self.pods().any(|pod| revision_of(pod) == name);
        let old = revisions.truncate(self.spec.revision_history_limit, |name| !is_live(name), is_live);
        plan.batches.extend(old.into_iter().map(|request| vec![request]));
        plan.again_after = self.next_available();
        plan
    }

    /// What the set reports when something for it was refused: its pods as they are.
    pub(super) fn report_alone(&self) -> Option<Request> {
        self.report(self.status())
    }

    /// The status to write, if it is news.
    fn report(&self, mut status: StatefulSetStatus) -> Option<Request> {
        self.complete(&mut status);
        if status == self.set.status {
            return None;
        }
        let mut object = Object::clone(self.object);
        // Figures, not decisions: they are written whatever else has changed meanwhile.
        object.resource_version = 0;
        object.body = Body::StatefulSet(StatefulSet { spec: self.set.spec.clone(), status });
        Some(Request::update_status(object))
    }

    /// When the next ready pod becomes available by waiting alone.
    fn next_available(&self) -> Option<SimDuration> {
        let waits = self.pods().filter_map(|pod| available_in(pod, self.spec.min_ready_seconds, self.now));
        waits.filter(|wait| *wait > SimDuration::ZERO).min()
    }
}

fn phase(pod: &Object) -> PodPhase {
    pod.pod().map_or(PodPhase::Unknown, |pod| pod.status.phase)
}

//! One sync of a StatefulSet: pods to create, delete and replace, and the status (`stateful_set_control.go`, 1.36).
//!
//! It looks at the places where a pod or a claim has changed since the last sync, and at no others: [`Pods`] knows which.

use std::sync::Arc;

use sk_apiserver::kinds::{
    PodManagementPolicy, PodPhase, PodTemplate, SetStrategyType, StatefulSet, StatefulSetSpec, StatefulSetStatus,
};
use sk_apiserver::{Body, Object, Request, View};
use sk_core::{SimTime, SmolStr};

use super::claims::Claims;
use super::identity::{self, revision_of};
use super::pods::{Pods, wanted};
use crate::controller::Plan;
use crate::controllers::pods::{delete, is_available, slow_start, slow_start_batch};
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
    pods: &'a mut Pods,
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
        pods: &'a mut Pods,
        view: View<'a>,
        now: SimTime,
    ) -> Self {
        let update = revisions.name(hash);
        let current = revisions.find(&set.status.current_revision);
        let current = current.filter(|current| current.key.name != update);
        let spec = &*set.spec;
        Self {
            object,
            set,
            spec,
            current: current.map_or_else(|| update.clone(), |current| current.key.name.clone()),
            current_template: current.and_then(|current| revisions::template(current)),
            update,
            wanted: wanted(spec),
            pods,
            view,
            now,
        }
    }

    fn ordinal(&self, place: usize) -> i32 {
        i32::try_from(place).unwrap_or(i32::MAX).saturating_add(self.spec.start_ordinal())
    }

    /// The pod at a place.
    fn replica(&self, place: usize) -> Option<&'a Arc<Object>> {
        self.pods.get(self.ordinal(place)).and_then(|id| self.view.get(id))
    }

    /// Replaces and makes, then removes what is too many, then replaces what is old.
    fn act(&mut self, plan: &mut Plan, status: &mut StatefulSetStatus) {
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
    fn keep_in_order(&mut self, plan: &mut Plan) -> Go {
        let mut from = 0;
        while let Some(place) = self.pods.kept.lowest(from..self.wanted) {
            from = place + 1;
            let (first, then, go) = self.keep(place, true);
            let is_in_order = first.is_empty() && then.is_empty() && go == Go::On;
            self.pods.kept.looked_at(place, is_in_order);
            plan.batches.extend([first, then].into_iter().filter(|batch| !batch.is_empty()));
            if go == Go::NoFurther {
                return go;
            }
        }
        Go::On
    }

    /// All pods in batches that double.
    fn keep_at_once(&mut self, plan: &mut Plan) -> Go {
        let places = self.pods.kept.all(self.wanted);
        for batch in places.chunk_by(|one, next| slow_start_batch(*one) == slow_start_batch(*next)) {
            let (mut first, mut then) = (Vec::new(), Vec::new());
            for place in batch {
                let (claims, pods, go) = self.keep(*place, false);
                let is_in_order = claims.is_empty() && pods.is_empty() && go == Go::On;
                self.pods.kept.looked_at(*place, is_in_order);
                first.extend(claims);
                then.extend(pods);
            }
            plan.batches.extend([first, then].into_iter().filter(|batch| !batch.is_empty()));
        }
        Go::On
    }

    /// What one wanted pod needs: claims first, then the rest; and whether the next one may be looked at (`processReplica`).
    fn keep(&self, place: usize, is_ordered: bool) -> (Vec<Request>, Vec<Request>, Go) {
        let ordinal = self.ordinal(place);
        let claims = Claims { set: self.object, spec: self.spec, ordinal, view: self.view };
        let wait = if is_ordered { Go::NoFurther } else { Go::On };
        let Some(pod) = self.replica(place) else {
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
        let claims = self.condemned_claims();
        plan.batches.extend(claims.into_iter().map(|request| vec![request]));
        let condemned = || self.pods.condemned(self.wanted).filter_map(|(_, id)| self.view.get(id));
        if !is_ordered {
            plan.batches.extend(slow_start(condemned().map(|pod| delete(pod))));
            return Go::On;
        }
        let last = self.pods.last_condemned(self.wanted).and_then(|id| self.view.get(id));
        let Some(last) = last else { return Go::On };
        // One that is not available may go only if it is the first of them: others wait for it.
        let is_first_unavailable = || {
            let all = self.pods.all_condemned(self.wanted);
            let mut from_below = all.iter().rev().filter_map(|(_, id)| self.view.get(*id));
            from_below.find(|pod| self.is_unavailable(pod)).is_some_and(|first| first.uid == last.uid)
        };
        if !last.is_deleting() && (!self.is_unavailable(last) || is_first_unavailable()) {
            plan.batches.push_back(vec![delete(last)]);
        }
        Go::NoFurther
    }

    /// The claims of pods beyond the wanted ones get the owner that the retention policy asks for.
    fn condemned_claims(&self) -> Vec<Request> {
        if self.spec.volume_claim_templates.is_empty() {
            return Vec::new();
        }
        let condemned = self.pods.all_condemned(self.wanted).into_iter();
        let corrected = condemned.filter_map(|(ordinal, id)| {
            let claims = Claims { set: self.object, spec: self.spec, ordinal, view: self.view };
            Some(claims.corrected(self.view.get(id)?, true))
        });
        corrected.flatten().collect()
    }

    /// The next pod that a rollout replaces: from the highest number down to the partition, one at a time.
    fn next_to_replace(&mut self) -> Option<&'a Arc<Object>> {
        let partition = usize::try_from(self.spec.partition()).unwrap_or(0);
        while let Some(place) = self.pods.rolled.highest(partition) {
            let pod = self.replica(place);
            let is_old = |pod: &Arc<Object>| revision_of(pod) != self.update;
            let is_in_order = pod.is_some_and(|pod| !is_old(pod) && !self.is_unavailable(pod));
            self.pods.rolled.looked_at(place, is_in_order);
            if !is_in_order {
                // One that is being made, or is going, or is not up, is waited for.
                return pod.filter(|pod| is_old(pod) && !pod.is_deleting());
            }
        }
        None
    }

    fn is_unavailable(&self, pod: &Object) -> bool {
        pod.is_deleting() || !is_available(pod, self.spec.min_ready_seconds, self.now)
    }

    fn status(&mut self) -> StatefulSetStatus {
        StatefulSetStatus {
            observed_generation: self.object.meta.generation,
            replicas: self.pods.total(),
            ready_replicas: self.pods.ready,
            available_replicas: self.pods.available.at(self.now).0,
            current_replicas: self.pods.staying_of(&self.current),
            updated_replicas: self.pods.staying_of(&self.update),
            current_revision: self.current.clone(),
            update_revision: self.update.clone(),
            collision_count: Some(0),
            rest: self.set.status.rest.clone(),
        }
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
    pub(super) fn plan(&mut self, revisions: &Revisions<'_>, hash: &str) -> Plan {
        let mut plan = Plan::of(revisions.bring_up(hash, &self.spec.template));
        let mut status = self.status();
        if !self.object.is_deleting() {
            self.act(&mut plan, &mut status);
        }
        plan.batches.extend(self.report(status).map(|request| vec![request]));
        let is_live = |name: &str| name == self.current || name == self.update || self.pods.have_revision(name);
        let old = revisions.truncate(self.spec.revision_history_limit, |name| !is_live(name), is_live);
        plan.batches.extend(old.into_iter().map(|request| vec![request]));
        plan.again_after = self.pods.available.at(self.now).1;
        plan
    }

    /// What the set reports when something for it was refused: its pods as they are.
    pub(super) fn report_alone(&mut self) -> Option<Request> {
        let status = self.status();
        self.report(status)
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
}

fn phase(pod: &Object) -> PodPhase {
    pod.pod().map_or(PodPhase::Unknown, |pod| pod.status.phase)
}

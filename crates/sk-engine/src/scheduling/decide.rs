//! Carries out a scheduling decision: a binding, or a `PodScheduled` condition with the reason and perhaps a
//! preemption.

use std::sync::Arc;

use sk_apiserver::kinds::{Condition, POD};
use sk_apiserver::{DeleteOptions, Object, ObjectId, Request, Uid};
use sk_core::{ObjectRef, SmolStr};
use sk_scheduler::queue::{Event, PodAction};
use sk_scheduler::{ClassId, Decision, Diagnosis, NodeId, PodId};

use super::{Context, Explained, KubeScheduler, Sent};
use crate::events;

/// What is said of a pod that got a node.
pub(super) fn assigned(pod: &Object, from: SmolStr) -> events::Event {
    let node = pod.pod().and_then(|pod| pod.node_name.as_deref()).unwrap_or_default();
    // Every pod gets it, so it is built without `format!`.
    let message = ["Successfully assigned ", pod.key.namespace_or_empty(), "/", &pod.key.name, " to ", node].concat();
    events::Event::normal(from, pod, "Scheduled", message)
}

impl KubeScheduler {
    /// How Events about the scheduling of a pod are signed: as the profile that schedules it (`profile/profile.go`,
    /// `newProfile`, whose recorder is made for the profile's `schedulerName`).
    pub(super) fn signature(&self, class: ClassId) -> SmolStr {
        self.library.cluster.class(class).scheduler_name.clone()
    }

    pub(super) fn schedule(&mut self, pod: PodId, ctx: &mut Context<'_>) {
        let id = self.objects[pod.index()];
        let Some((id, object)) = id.and_then(|id| Some((id, ctx.view.get(id)?))) else {
            return self.queue.remove(pod);
        };
        let object = object.clone();
        self.explainer.count();
        let start = self.library.search_start();
        let mut decision = self.library.schedule(pod);
        if matches!(decision, Decision::Nominated { .. }) && self.reckon_budgets(ctx.view) {
            // Budgets are reckoned only now that somebody is to go. A search among nodes that the pod names goes no full circle.
            self.library.search_from(start);
            decision = self.library.schedule(pod);
        }
        match decision {
            Decision::Placed { node, feasible, evaluated } => {
                if self.explainer.is_on() {
                    let scores = self.scores(pod, start);
                    let (pod, counts, victims) = (object.uid, Some((evaluated, feasible)), Vec::new());
                    let (preemption, message) = (None, None);
                    self.explainer.told.push(Explained { pod, counts, scores, victims, preemption, message });
                }
                self.queue.remove(pod);
                self.library.cluster.withdraw(pod);
                self.library.cluster.add_pod(pod, node);
                self.first_use(self.library.cluster.pod(pod).class, node);
                let node = self.library.cluster.node(node).name.clone();
                let request = Request::Bind { pod: object.key.clone(), uid: object.uid, node };
                self.send(Some(Sent::Binding(id, object.uid)), request, ctx);
            }
            Decision::Nominated { node, victims, diagnosis } => {
                self.explain_victims((pod, object.uid), &victims, (start, diagnosis.message().to_owned()), ctx);
                self.make_room(pod, &object, id, node, &victims, ctx);
                self.queue.failed(ctx.now, pod, diagnosis.plugins(), &self.library);
                let name = self.library.cluster.node(node).name.clone();
                let from = self.signature(self.library.cluster.pod(pod).class);
                self.report(&object, from, diagnosis.message(), Some(name), ctx);
            }
            Decision::Unschedulable(diagnosis) => {
                self.queue.failed(ctx.now, pod, diagnosis.plugins(), &self.library);
                let cleared = self.renew_nomination(pod, &diagnosis);
                let from = self.signature(self.library.cluster.pod(pod).class);
                self.report(&object, from, diagnosis.message(), cleared.then(SmolStr::default), ctx);
            }
            Decision::NoProfile => self.queue.remove(pod),
        }
    }

    /// A pod that finds no room loses its nomination, unless it was not asked whether others could make room; `true` if
    /// it does (`schedule_one.go`, `handleSchedulingFailure`).
    fn renew_nomination(&mut self, pod: PodId, diagnosis: &Diagnosis) -> bool {
        let seen = self.library.cluster.pod(pod).nominated.filter(|_| diagnosis.keeps_nomination());
        match seen {
            Some(node) => self.library.cluster.nominate(pod, node),
            None => drop(self.library.cluster.withdraw(pod)),
        }
        !diagnosis.keeps_nomination()
    }

    /// Nominates a pod; those less important lose their nomination for its node, and the victims go, unless all of them are
    /// going already (`preemption/executor.go`, `prepareCandidateAsync`).
    fn make_room(
        &mut self,
        pod: PodId,
        object: &Object,
        id: ObjectId,
        node: NodeId,
        victims: &[PodId],
        ctx: &mut Context<'_>,
    ) {
        let cluster = &mut self.library.cluster;
        cluster.nominate(pod, node);
        let victims: Vec<PodId> = victims.iter().copied().filter(|victim| !cluster.pod(*victim).deleting).collect();
        if victims.is_empty() {
            return;
        }
        // Of those whose status is not known to name a node, nothing is cleared (`clearNominatedNodeName`).
        let mut losers = cluster.nominations_below(pod, node);
        losers.retain(|loser| cluster.pod(*loser).nominated.is_some());
        self.queue.set_preempting(pod, true);
        let losers: Vec<_> = losers.into_iter().filter_map(|loser| self.object_of(loser, ctx)).collect();
        for loser in losers {
            let clear = Request::PatchPodStatus {
                pod: loser.key.clone(),
                uid: loser.uid,
                conditions: Vec::new(),
                nominated_node_name: Some(SmolStr::default()),
            };
            self.send(None, clear, ctx);
        }
        let scheduler = self.signature(self.library.cluster.pod(pod).class);
        let victims: Vec<_> = victims.iter().filter_map(|victim| self.object_of(*victim, ctx)).collect();
        // As `PreemptPod` of `preemption/executor.go` says it.
        let message = || format!("Preempted by pod {} on node {}", object.uid, self.library.cluster.node(node).name);
        ctx.tell(|_| {
            victims
                .iter()
                .map(|victim| events::Event::normal(scheduler.clone(), victim, "Preempted", message()))
                .collect::<Vec<_>>()
        });
        self.evict(Sent::LastVictim(id, object.uid), &scheduler, &victims, ctx);
    }

    pub(super) fn object_of(&self, pod: PodId, ctx: &Context<'_>) -> Option<Arc<Object>> {
        self.objects[pod.index()].and_then(|id| ctx.view.get(id)).cloned()
    }

    /// Tells the victims why they go, and deletes them; the last one after the others.
    fn evict(&mut self, end: Sent, scheduler: &str, victims: &[Arc<Object>], ctx: &mut Context<'_>) {
        for (place, victim) in victims.iter().enumerate() {
            let message = format!("{scheduler}: preempting to accommodate a higher priority pod");
            let condition = Condition::new("DisruptionTarget", true, ctx.now).because("PreemptionByScheduler", message);
            let told = Request::PatchPodStatus {
                pod: victim.key.clone(),
                uid: victim.uid,
                conditions: vec![condition],
                nominated_node_name: None,
            };
            self.send(None, told, ctx);
            let options = DeleteOptions { uid: Some(victim.uid), ..DeleteOptions::default() };
            let target = ObjectRef::new(POD.clone(), victim.key.clone());
            let last = place + 1 == victims.len();
            self.send(last.then_some(end), Request::Delete { target, options }, ctx);
        }
    }

    /// Writes the reason into the pod, and its nomination: empty for none, `None` to leave it. What is there already is not
    /// written again.
    pub(super) fn report(
        &mut self,
        object: &Object,
        from: SmolStr,
        message: &str,
        nominated: Option<SmolStr>,
        ctx: &mut Context<'_>,
    ) {
        let Some(pod) = object.pod() else { return };
        let said = pod.status.condition("PodScheduled").is_some_and(|c| !c.is_true() && c.message() == message);
        // A repetition only makes Kubernetes count one more in the same Event.
        let tell = || events::Event::warning(from, object, "FailedScheduling", message.to_owned());
        ctx.tell(|_| (!said).then(tell));
        let written = pod.status.nominated_node_name.clone().unwrap_or_default();
        let nominated = nominated.filter(|node| *node != written);
        if said && nominated.is_none() {
            return;
        }
        let condition = Condition::new("PodScheduled", false, ctx.now).because("Unschedulable", message);
        let request = Request::PatchPodStatus {
            pod: object.key.clone(),
            uid: object.uid,
            conditions: vec![condition],
            nominated_node_name: nominated,
        };
        self.send(None, request, ctx);
    }

    fn send(&mut self, what: Option<Sent>, request: Request, ctx: &mut Context<'_>) {
        ctx.send(self.sent.add(what), request);
    }

    pub(super) fn binding_failed(&mut self, id: ObjectId, uid: Uid, ctx: &mut Context<'_>) {
        let Some(known) = self.known(id).filter(|known| known.uid == uid && !known.is_bound) else { return };
        self.library.cluster.remove_pod(known.pod);
        let event = Event::PlacedPod { action: PodAction::Delete, before: Some(known.class), after: None };
        self.queue.happened(ctx.now, &event, &self.library);
        let waits = ctx.view.get(id).is_some_and(|object| object.uid == uid && !object.is_deleting());
        if waits {
            self.queue.add(ctx.now, known.pod, &self.library);
        }
    }
}

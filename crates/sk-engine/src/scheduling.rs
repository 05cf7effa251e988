//! kube-scheduler as a component: informers feed the library, its decisions become requests.
//!
//! A decision counts at once, before its binding is committed (the *assumed* pod), so that the next pod sees it. A pod that
//! preempts others is nominated for their node, its victims are told why and deleted, and it is tried again when they are
//! gone.

use std::collections::BTreeMap;

use serde_json::Value;
use sk_apiserver::kinds::{Condition, POD, Pod};
use sk_apiserver::{Answer, Body, Change, DeleteOptions, KindTag, Object, ObjectId, Request, Uid, WatchEvent};
use sk_core::{LabelSelector, ObjectRef, SimDuration, SimTime, SmolStr};
use sk_scheduler::class::{DEFAULT_SCHEDULER, OwnerKind};
use sk_scheduler::cluster::objects::Budget;
use sk_scheduler::queue::{Event, PodAction, QueueSettings};
use sk_scheduler::{ClassId, Decision, NodeId, PodId, Queue, Scheduler};

use crate::classes::{self, Classes};
use crate::component::{Component, Context};
use crate::engine::{EVERY_KIND, Process};
use crate::settings::Timing;

/// Wake-up: try the next pod.
const CYCLE: u64 = 1;
/// Wake-up: pods that have waited long enough are tried again.
const FLUSH: u64 = 2;
/// Wake-up: a pod that something went wrong for has waited long enough.
const RETRY: u64 = 3;
/// Tags from here on are those of requests.
const FIRST_REQUEST: u64 = 4;

pub(crate) fn process(timing: &Timing, now: SimTime) -> Process {
    let scheduler = KubeScheduler {
        library: Scheduler::default(),
        queue: Queue::new(QueueSettings::default(), now),
        classes: Classes::default(),
        pods: Vec::new(),
        objects: Vec::new(),
        cycle: timing.scheduling_cycle,
        cycle_is_due: false,
        flush_is_due: None,
        retry_is_due: None,
        sent: BTreeMap::new(),
        requests: FIRST_REQUEST,
    };
    Process::new(timing.watch_latency).with(scheduler, timing.scheduler_limit)
}

#[derive(Clone)]
struct KubeScheduler {
    library: Scheduler,
    queue: Queue,
    classes: Classes,
    /// What is known of each pod, by the object's id.
    pods: Vec<Option<Known>>,
    /// The object of each of the library's pods.
    objects: Vec<Option<ObjectId>>,
    cycle: SimDuration,
    cycle_is_due: bool,
    flush_is_due: Option<SimTime>,
    retry_is_due: Option<SimTime>,
    /// Requests without an answer.
    sent: BTreeMap<u64, Sent>,
    requests: u64,
}

/// A pod as the scheduler last saw it.
#[derive(Clone, Copy, Debug)]
struct Known {
    pod: PodId,
    uid: Uid,
    class: ClassId,
    /// The informer has seen it bound.
    is_bound: bool,
}

/// What a request was for.
#[derive(Clone, Copy, Debug)]
enum Sent {
    /// A binding of this pod.
    Binding(ObjectId, Uid),
    /// The last deletion of a victim of this pod.
    LastVictim(ObjectId, Uid),
}

impl Component for KubeScheduler {
    fn watches(&self) -> &'static [KindTag] {
        EVERY_KIND
    }

    fn observe(&mut self, event: &WatchEvent, ctx: &mut Context<'_>) {
        match &event.object.body {
            Body::Pod(pod) => self.pod_seen(event, pod, ctx),
            Body::Node(_) => self.node_seen(event, ctx.now),
            Body::Namespace(_) => {
                let labels = is_there(event).then(|| (*event.object.meta.labels).clone());
                self.library.cluster.objects.set_namespace(event.object.key.name.clone(), labels);
            }
            Body::ReplicaSet(set) => self.owner_seen(event, OwnerKind::ReplicaSet, &set.spec.selector),
            Body::StatefulSet(set) => self.owner_seen(event, OwnerKind::StatefulSet, &set.spec.selector),
            Body::Other(other) => self.other_seen(event, other.fields.get("spec").unwrap_or(&Value::Null)),
            Body::Deployment(_) | Body::DaemonSet(_) | Body::Job(_) | Body::CronJob(_) => {}
        }
        self.kick(ctx);
    }

    fn wake(&mut self, tag: u64, ctx: &mut Context<'_>) {
        match tag {
            CYCLE => {
                self.cycle_is_due = false;
                self.try_next(ctx);
            }
            RETRY => {
                self.retry_is_due = None;
                self.try_next(ctx);
            }
            _ => {
                self.flush_is_due = None;
                self.queue.flush(ctx.now, &self.library);
            }
        }
        self.kick(ctx);
    }

    fn answered(&mut self, tag: u64, answer: Answer, ctx: &mut Context<'_>) {
        match self.sent.remove(&tag) {
            // The pod is gone, going, or bound by somebody else: what the informer brings next decides.
            Some(Sent::Binding(id, uid)) if answer.is_err() => self.binding_failed(id, uid, ctx),
            Some(Sent::LastVictim(id, uid)) => {
                if let Some(known) = self.known(id).filter(|known| known.uid == uid) {
                    self.queue.set_preempting(known.pod, false);
                }
            }
            Some(Sent::Binding(..)) | None => {}
        }
        self.kick(ctx);
    }
}

fn is_there(event: &WatchEvent) -> bool {
    event.change != Change::Deleted
}

impl KubeScheduler {
    fn known(&self, id: ObjectId) -> Option<Known> {
        self.pods.get(id.index()).copied().flatten()
    }

    fn pod_seen(&mut self, event: &WatchEvent, pod: &Pod, ctx: &mut Context<'_>) {
        let object = &event.object;
        if self.known(event.id).is_some_and(|known| known.uid != object.uid) {
            self.pod_gone(event.id, ctx.now);
        }
        if !is_there(event) || pod.status.phase.is_final() {
            self.pod_gone(event.id, ctx.now);
        } else if let Some(node) = &pod.node_name {
            let node = self.library.cluster.slot(node);
            self.bound_pod_seen(event, pod, node, ctx);
        } else {
            self.waiting_pod_seen(event, pod, ctx);
        }
    }

    fn pod_gone(&mut self, id: ObjectId, now: SimTime) {
        let Some(known) = self.pods.get_mut(id.index()).and_then(Option::take) else { return };
        let held_room = self.library.cluster.pod(known.pod).node().is_some();
        let was_nominated = self.library.cluster.nomination(known.pod).is_some();
        self.queue.remove(known.pod);
        self.library.cluster.drop_pod(known.pod);
        self.objects[known.pod.index()] = None;
        if held_room || was_nominated {
            let event = Event::PlacedPod { action: PodAction::Delete, before: Some(known.class), after: None };
            self.queue.happened(now, &event, &self.library);
        }
    }

    /// The pod as the library knows it, made known now if it is not; `None`: nobody could schedule it.
    fn learn(&mut self, event: &WatchEvent, pod: &Pod, ctx: &mut Context<'_>) -> Option<(Known, ClassId)> {
        let object = &event.object;
        let class = match self.classes.of(object, pod, &mut self.library.cluster) {
            Ok(class) => class,
            Err(error) => {
                self.report(object, &error.to_string(), None, ctx);
                return None;
            }
        };
        if let Some(known) = self.known(event.id) {
            return Some((known, class));
        }
        let id = self.library.cluster.new_pod(class, object.key.name.clone());
        let known = Known { pod: id, uid: object.uid, class, is_bound: false };
        if self.pods.len() <= event.id.index() {
            self.pods.resize(event.id.index() + 1, None);
        }
        if self.objects.len() <= id.index() {
            self.objects.resize(id.index() + 1, None);
        }
        self.pods[event.id.index()] = Some(known);
        self.objects[id.index()] = Some(event.id);
        Some((known, class))
    }

    fn bound_pod_seen(&mut self, event: &WatchEvent, pod: &Pod, node: NodeId, ctx: &mut Context<'_>) {
        let Some((known, class)) = self.learn(event, pod, ctx) else { return };
        let preempted = pod.status.condition("DisruptionTarget").is_some_and(|c| c.reason() == "PreemptionByScheduler");
        let (started, deleting) = (pod.status.start_time, event.object.is_deleting());
        let cluster = &mut self.library.cluster;
        let before = cluster.pod(known.pod);
        let is_new = !known.is_bound;
        let changed = before.class != class || before.started != started || before.deleting != deleting;
        if before.node() != Some(node) {
            cluster.add_pod(known.pod, node);
        }
        if is_new || changed || cluster.pod(known.pod).preempted != preempted {
            cluster.update_pod(known.pod, |pod| {
                (pod.class, pod.started, pod.deleting, pod.preempted) = (class, started, deleting, preempted);
            });
        }
        self.pods[event.id.index()] = Some(Known { class, is_bound: true, ..known });
        if is_new {
            self.library.cluster.withdraw(known.pod);
            self.queue.remove(known.pod);
            let event = Event::PlacedPod { action: PodAction::Add, before: None, after: Some(class) };
            self.queue.happened(ctx.now, &event, &self.library);
        } else if known.class != class {
            let classes = &self.library.cluster;
            for action in Event::pod_actions(classes.class(known.class), classes.class(class)) {
                let event = Event::PlacedPod { action, before: Some(known.class), after: Some(class) };
                self.queue.happened(ctx.now, &event, &self.library);
            }
        }
    }

    fn waiting_pod_seen(&mut self, event: &WatchEvent, pod: &Pod, ctx: &mut Context<'_>) {
        let Some((known, class)) = self.learn(event, pod, ctx) else { return };
        if event.object.is_deleting() {
            self.queue.remove(known.pod);
            return;
        }
        // An assumed pod whose binding is on its way is not queued again.
        if self.library.cluster.pod(known.pod).node().is_some() {
            return;
        }
        if known.class != class {
            self.library.cluster.update_pod(known.pod, |pod| pod.class = class);
            self.pods[event.id.index()] = Some(Known { class, ..known });
            self.queue.updated(ctx.now, known.pod, known.class, &self.library);
        } else if self.library.has_profile(&self.library.cluster.class(class).scheduler_name) {
            self.queue.add(ctx.now, known.pod, &self.library);
        }
    }

    fn node_seen(&mut self, event: &WatchEvent, now: SimTime) {
        let cluster = &mut self.library.cluster;
        let known = cluster.node_id(&event.object.key.name);
        let change = match (classes::node(&event.object).filter(|_| is_there(event)), known) {
            (Some(spec), _) => cluster.set_node(spec),
            (None, Some(node)) => cluster.remove_node(node),
            (None, None) => return,
        };
        for event in Event::of_node(&change) {
            self.queue.happened(now, &event, &self.library);
        }
    }

    /// A controller whose selector spreads its pods.
    fn owner_seen(&mut self, event: &WatchEvent, kind: OwnerKind, selector: &Value) {
        // One that is no selector was refused by the API server.
        let selector = LabelSelector::from_json(selector).ok().filter(|_| is_there(event));
        let (namespace, name) = (event.object.key.namespace_or_empty(), event.object.key.name.clone());
        self.library.cluster.objects.set_owner(kind, namespace, name, selector);
    }

    fn other_seen(&mut self, event: &WatchEvent, spec: &Value) {
        let selector = spec.get("selector").unwrap_or(&Value::Null);
        match (event.object.gvk.group.as_str(), event.object.gvk.kind.as_str()) {
            ("", "Service") => {
                let labels = selector.as_object().is_some_and(|labels| !labels.is_empty() && is_there(event));
                let selector = labels.then(|| LabelSelector::from_json(&serde_json::json!({"matchLabels": selector})));
                let (namespace, name) = (event.object.key.namespace_or_empty(), event.object.key.name.clone());
                self.library.cluster.objects.set_service(namespace, name, selector.and_then(Result::ok));
            }
            ("policy", "PodDisruptionBudget") => self.budget_seen(event, selector),
            ("", "ReplicationController") => {
                let selector = serde_json::json!({"matchLabels": selector});
                self.owner_seen(event, OwnerKind::ReplicationController, &selector);
            }
            _ => {}
        }
    }

    /// A budget that preemption spares where it can.
    fn budget_seen(&mut self, event: &WatchEvent, selector: &Value) {
        let Body::Other(other) = &event.object.body else { return };
        let status = other.status.as_deref().unwrap_or(&Value::Null);
        let allowed = status.get("disruptionsAllowed").and_then(Value::as_i64).unwrap_or(0);
        let disrupted = status.get("disruptedPods").and_then(Value::as_object).into_iter().flatten();
        let budget = LabelSelector::from_json(selector).ok().filter(|_| is_there(event)).map(|selector| Budget {
            selector,
            allowed: i32::try_from(allowed).unwrap_or(0),
            disrupted: disrupted.map(|(name, _)| SmolStr::from(name)).collect(),
        });
        let key = (SmolStr::from(event.object.key.namespace_or_empty()), event.object.key.name.clone());
        self.library.cluster.objects.set_budget(key, budget);
    }

    fn kick(&mut self, ctx: &mut Context<'_>) {
        if self.queue.is_ready() && !self.cycle_is_due {
            self.cycle_is_due = true;
            ctx.wake(CYCLE, ctx.now + self.cycle);
        }
        if let Some(at) = self.queue.next_retry()
            && self.retry_is_due.is_none_or(|due| at < due)
        {
            self.retry_is_due = Some(at);
            ctx.wake(RETRY, at.max(ctx.now + SimDuration::from_millis(1)));
        }
        if let Some(at) = self.queue.next_flush()
            && self.flush_is_due.is_none_or(|due| at < due)
        {
            self.flush_is_due = Some(at);
            ctx.wake(FLUSH, at);
        }
    }

    fn try_next(&mut self, ctx: &mut Context<'_>) {
        if let Some(pod) = self.queue.pop(ctx.now) {
            self.schedule(pod, ctx);
        }
    }

    fn schedule(&mut self, pod: PodId, ctx: &mut Context<'_>) {
        let id = self.objects[pod.index()];
        let Some((id, object)) = id.and_then(|id| Some((id, ctx.view.get(id)?))) else {
            return self.queue.remove(pod);
        };
        let object = object.clone();
        match self.library.schedule(pod) {
            Decision::Placed { node, .. } => {
                self.queue.remove(pod);
                self.library.cluster.withdraw(pod);
                self.library.cluster.add_pod(pod, node);
                let node = self.library.cluster.node(node).name.clone();
                let request = Request::Bind { pod: object.key.clone(), uid: object.uid, node };
                self.send(Some(Sent::Binding(id, object.uid)), request, ctx);
            }
            Decision::Nominated { node, victims, diagnosis } => {
                self.library.cluster.nominate(pod, node);
                self.library.cluster.update_pod(pod, |pod| pod.nominated = Some(node));
                self.queue.set_preempting(pod, true);
                self.queue.failed(ctx.now, pod, diagnosis.plugins(), &self.library);
                self.preempt(id, object.uid, &victims, ctx);
                self.report(&object, &diagnosis.to_string(), Some(node), ctx);
            }
            Decision::Unschedulable(diagnosis) => {
                self.queue.failed(ctx.now, pod, diagnosis.plugins(), &self.library);
                self.report(&object, &diagnosis.to_string(), None, ctx);
            }
            Decision::NoProfile => self.queue.remove(pod),
        }
    }

    /// Tells the victims why they go, and deletes them; the last one after the others (`preemption/executor.go`).
    fn preempt(&mut self, preemptor: ObjectId, uid: Uid, victims: &[PodId], ctx: &mut Context<'_>) {
        let of = |pod: &PodId| self.objects[pod.index()].and_then(|id| ctx.view.get(id)).cloned();
        let victims: Vec<_> = victims.iter().filter_map(of).collect();
        for (place, victim) in victims.iter().enumerate() {
            let message = format!("{DEFAULT_SCHEDULER}: preempting to accommodate a higher priority pod");
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
            self.send(last.then_some(Sent::LastVictim(preemptor, uid)), Request::Delete { target, options }, ctx);
        }
    }

    /// Writes the reason into the pod, if it is not there already.
    fn report(&mut self, object: &Object, message: &str, nominated: Option<NodeId>, ctx: &mut Context<'_>) {
        let Some(pod) = object.pod() else { return };
        let said = pod.status.condition("PodScheduled").is_some_and(|c| !c.is_true() && c.message() == message);
        let nominated = nominated.map(|node| self.library.cluster.node(node).name.clone());
        if said && nominated == pod.status.nominated_node_name {
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
        self.requests += 1;
        if let Some(what) = what {
            self.sent.insert(self.requests, what);
        }
        ctx.send(self.requests, request);
    }

    fn binding_failed(&mut self, id: ObjectId, uid: Uid, ctx: &mut Context<'_>) {
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

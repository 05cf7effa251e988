//! Virtual nodes: the kubelets of a cluster without machines.
//!
//! They do what KWOK's stages do on a real cluster: a node becomes ready after a delay; a pod bound to it starts after
//! the delays in its annotations, ends after the lifetime in its annotations, and terminates when it is deleted. A
//! machine goes with its Node: the pods that are bound to a node that does not exist stay as they are until the pod
//! garbage collector finds them (`controllers/pod_gc.rs`) or the node comes back. On a node whose `Ready` condition is
//! `Unknown`, or that a fault has silenced before the control plane noticed, no pod starts, ends or terminates until
//! the node is back.

mod admission;
mod containers;
mod events;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sk_apiserver::directives::{self, NODE_READY_DELAY, NODE_SILENT};
use sk_apiserver::kinds::{Condition, ConditionStatus, Directives, NODE, Node, Pod, PodPhase, Why};
use sk_apiserver::{
    Answer, Body, Change, DeleteOptions, KindTag, Object, ObjectId, Reason, Request, Uid, View, WatchEvent,
};
use sk_core::{ObjectKey, SimDuration, SimTime, SmolStr, TaintEffect};

use self::admission::{NodeUse, Verdict};
use self::containers::{directives_of, exit_code};
use crate::component::{Component, Context, Pending, Timers};
use crate::process::Process;
use crate::settings::{Settings, Timing};

/// The taint of a node that is not ready yet.
pub(crate) const NOT_READY: &str = "node.kubernetes.io/not-ready";
/// After a conflict the kubelet looks at what changed and tries again.
const RETRY: SimDuration = SimDuration::from_millis(10);

pub(crate) fn process(timing: &Timing) -> Process {
    // Every kubelet has a client of its own, so together they know no limit.
    let kubelets = Kubelets {
        timers: Timers::new(),
        sent: Pending::new(),
        termination: timing.pod_termination,
        job_duration: timing.job_duration,
        node_use: NodeUse::new(),
        silent: BTreeMap::new(),
        unheard: BTreeSet::new(),
    };
    Process::new(timing.watch_latency).with(kubelets, None)
}

/// All virtual nodes.
#[derive(Clone)]
struct Kubelets {
    timers: Timers<Step>,
    /// Requests without an answer.
    sent: Pending<Step>,
    termination: SimDuration,
    /// How long a pod of a Job runs if it is unknown.
    job_duration: SimDuration,
    node_use: NodeUse,
    /// Nodes whose machines are silent, with the steps that would have been taken there.
    silent: BTreeMap<SmolStr, Vec<Step>>,
    /// Nodes that are known not to report, and those that are gone and have pods left.
    unheard: BTreeSet<SmolStr>,
}

/// The next step of a node or pod.
#[derive(Clone, Copy, Debug)]
struct Step {
    id: ObjectId,
    uid: Uid,
    kind: StepKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StepKind {
    NodeReady,
    /// The not-ready taint comes off, as the node lifecycle controller does on a real cluster.
    NodeOpens,
    PodStarts,
    /// Its node has no room for it.
    PodRejected,
    PodEnds,
    PodRestarts,
    /// Its node reports again, and the pod is as ready as before.
    PodReady,
    /// It reports how it ended before it is deleted, because it has a finalizer.
    PodStops,
    PodGoes,
}

impl Component for Kubelets {
    fn watches(&self) -> &'static [KindTag] {
        &[KindTag::Node, KindTag::Pod]
    }

    fn observe(&mut self, event: &WatchEvent, ctx: &mut Context<'_>) {
        match &event.object.body {
            Body::Node(node) => self.node_seen(event, node, ctx),
            Body::Pod(_) => {
                self.node_use.see(event);
                match event.change {
                    Change::Added | Change::Modified => self.pod_seen(event, ctx),
                    Change::Deleted => self.pod_gone(event, ctx),
                }
            }
            Body::Namespace(_)
            | Body::Deployment(_)
            | Body::ReplicaSet(_)
            | Body::ReplicationController(_)
            | Body::StatefulSet(_)
            | Body::DaemonSet(_)
            | Body::Job(_)
            | Body::CronJob(_)
            | Body::Other(_) => {}
        }
    }

    fn wake(&mut self, tag: u64, ctx: &mut Context<'_>) {
        if let Some(step) = self.timers.take(tag) {
            self.take(step, ctx);
        }
    }

    /// Not once its object is gone.
    fn still_wants(&mut self, tag: u64, view: View<'_>) -> bool {
        let is_there = |step: &Step| view.get(step.id).is_some_and(|object| object.uid == step.uid);
        let wants = self.timers.get(tag).is_some_and(is_there);
        if !wants {
            self.timers.take(tag);
        }
        wants
    }

    fn reconfigured(&mut self, settings: &Settings, _ctx: &mut Context<'_>) {
        self.termination = settings.timing.pod_termination;
        self.job_duration = settings.timing.job_duration;
    }

    fn answered(&mut self, tag: u64, answer: Answer, ctx: &mut Context<'_>) {
        let Some(step) = self.sent.take(tag) else { return };
        match answer {
            Ok(_) if step.kind == StepKind::NodeReady => {
                let opens = Step { kind: StepKind::NodeOpens, ..step };
                self.timers.set(ctx, ctx.now + RETRY, opens);
            }
            Ok(_) if step.kind == StepKind::PodStops => self.take(Step { kind: StepKind::PodGoes, ..step }, ctx),
            Err(error) if error.reason == Reason::Conflict => self.timers.set(ctx, ctx.now + RETRY, step),
            // Done, or the object is gone and with it everything that was left to do.
            Ok(_) | Err(_) => {}
        }
    }
}

impl Kubelets {
    fn node_seen(&mut self, event: &WatchEvent, node: &Node, ctx: &mut Context<'_>) {
        let object = &event.object;
        let is_unheard = match event.change {
            Change::Added | Change::Modified => is_silent(node),
            Change::Deleted => ctx.view.pods_on(&object.key.name).next().is_some(),
        };
        if is_unheard {
            self.unheard.insert(object.key.name.clone());
        } else {
            self.unheard.remove(&object.key.name);
        }
        self.listen(event, ctx);
        match event.change {
            Change::Added => {
                if !node.is_ready() {
                    let delay = directives::read_span(&object.meta.annotations, &NODE_READY_DELAY).unwrap_or_default();
                    self.later(ctx, object.created + delay, event, StepKind::NodeReady);
                }
                self.node_comes(&object.key.name, ctx);
            }
            Change::Modified if was_silent(event) && !is_silent(node) => self.node_returns(&object.key.name, ctx),
            Change::Modified | Change::Deleted => {}
        }
    }

    /// A new node takes on pods that were bound to it before it was there, and has those that an earlier node of its
    /// name left.
    fn node_comes(&mut self, node: &SmolStr, ctx: &mut Context<'_>) {
        let is_new = |pod: &Object| pod.pod().is_some_and(|pod| pod.status.phase == PodPhase::Pending);
        for (id, pod) in pods_of(node, ctx.view) {
            match is_new(pod) && !pod.is_deleting() {
                true => self.take_on(id, pod, ctx),
                false => self.resume(id, pod, ctx),
            }
        }
    }

    /// A pod was bound: its node, if it is there, refuses it or starts it.
    fn take_on(&mut self, id: ObjectId, pod: &Arc<Object>, ctx: &mut Context<'_>) {
        let Directives { create_delay, ready_delay, .. } = directives_of(pod);
        let takes = directives::in_millis(create_delay) + directives::in_millis(ready_delay);
        let (at, kind) = match self.node_use.judge(pod, ctx.view) {
            Verdict::NoNode => return,
            Verdict::Refused(_) => (ctx.now, StepKind::PodRejected),
            Verdict::Taken => (ctx.now + takes, StepKind::PodStarts),
        };
        self.timers.set(ctx, at, Step { id, uid: pod.uid, kind });
    }

    /// Whether a node's kubelet reports. Once it does again, what waited there happens.
    fn listen(&mut self, event: &WatchEvent, ctx: &mut Context<'_>) {
        let object = &event.object;
        let is_silent = event.change != Change::Deleted && object.meta.annotations.contains_key(&NODE_SILENT);
        if is_silent {
            self.silent.entry(object.key.name.clone()).or_default();
        } else if let Some(steps) = self.silent.remove(&object.key.name) {
            steps.into_iter().for_each(|step| self.take(step, ctx));
        }
    }

    /// A node reports again: what should have happened to its pods meanwhile happens now.
    fn node_returns(&mut self, node: &SmolStr, ctx: &mut Context<'_>) {
        pods_of(node, ctx.view).into_iter().for_each(|(id, pod)| self.resume(id, pod, ctx));
    }

    fn resume(&mut self, id: ObjectId, pod: &Arc<Object>, ctx: &mut Context<'_>) {
        let next = |kind| Step { id, uid: pod.uid, kind };
        if pod.is_deleting() {
            return self.take(next(if must_tell(pod) { StepKind::PodStops } else { StepKind::PodGoes }), ctx);
        }
        let Some(status) = pod.pod().map(|pod| &pod.status) else { return };
        let ends = containers::lifetime(pod, self.job_duration).zip(status.started);
        if status.phase == PodPhase::Running && !status.is_waiting() {
            self.take(next(StepKind::PodReady), ctx);
        }
        if status.phase == PodPhase::Pending {
            self.take(next(StepKind::PodStarts), ctx);
        } else if status.is_waiting() {
            self.take(next(StepKind::PodRestarts), ctx);
        } else if let Some((lifetime, started)) = ends {
            self.timers.set(ctx, started + lifetime, next(StepKind::PodEnds));
        }
    }

    /// Once the last pod of a node that is gone has gone too, nobody asks for that node any more.
    fn pod_gone(&mut self, event: &WatchEvent, ctx: &Context<'_>) {
        if self.unheard.is_empty() {
            return;
        }
        let node = event.object.pod().and_then(|pod| pod.node_name.as_ref());
        if let Some(node) = node.filter(|node| !is_there(node, ctx.view) && ctx.view.pods_on(node).next().is_none()) {
            self.unheard.remove(node);
        }
    }

    fn pod_seen(&mut self, event: &WatchEvent, ctx: &mut Context<'_>) {
        let (object, before) = (&event.object, event.before.as_ref());
        let Some(pod) = object.pod().filter(|pod| pod.node_name.is_some()) else { return };
        let was = |test: fn(&Object) -> bool| before.is_some_and(|before| test(before));
        let node = pod.node_name.as_ref();
        if object.is_deleting() && !was(Object::is_deleting) && node.is_some_and(|node| is_there(node, ctx.view)) {
            let grace = object.meta.deletion.map_or(0, |deletion| deletion.grace_secs);
            let takes = self.termination.min(SimDuration::from_secs(grace));
            let stops = if must_tell(object) { StepKind::PodStops } else { StepKind::PodGoes };
            ctx.tell(|_| events::killing(object));
            self.later(ctx, ctx.now + takes, event, stops);
        }
        let was_bound = was(|before| before.pod().is_some_and(|pod| pod.node_name.is_some()));
        if pod.status.phase == PodPhase::Pending && !was_bound {
            self.take_on(event.id, object, ctx);
        }
        self.containers_seen(event, ctx);
    }

    /// Containers that have started end after their time; those that have failed start again.
    fn containers_seen(&mut self, event: &WatchEvent, ctx: &mut Context<'_>) {
        let (object, before) = (&event.object, event.before.as_ref().and_then(|before| before.pod()));
        let Some(pod) = object.pod().filter(|pod| pod.status.phase == PodPhase::Running) else { return };
        let started = pod.status.started.unwrap_or(ctx.now);
        let is_new = before.is_none_or(|before| {
            before.status.phase != PodPhase::Running || before.status.started != pod.status.started
        });
        if is_new
            && !pod.status.is_waiting()
            && let Some(lifetime) = containers::lifetime(object, self.job_duration)
        {
            self.later(ctx, started + lifetime, event, StepKind::PodEnds);
        }
        if pod.status.is_waiting() && before.is_some_and(|before| !before.status.is_waiting()) {
            let wait = containers::backoff(pod);
            if wait > SimDuration::ZERO {
                ctx.tell(|_| events::backing_off(object));
            }
            self.later(ctx, pod.status.finished.unwrap_or(ctx.now) + wait, event, StepKind::PodRestarts);
        }
    }

    fn later(&mut self, ctx: &mut Context<'_>, at: SimTime, event: &WatchEvent, kind: StepKind) {
        self.timers.set(ctx, at, Step { id: event.id, uid: event.object.uid, kind });
    }

    /// Takes a step if its object is still there and still wants it.
    fn take(&mut self, step: Step, ctx: &mut Context<'_>) {
        let object = ctx.view.get(step.id).filter(|object| object.uid == step.uid);
        if let Some(held) = object.and_then(|object| self.silent.get_mut(machine_of(object)?)) {
            return held.push(step);
        }
        if object.and_then(|object| object.pod()?.node_name.as_ref()).is_some_and(|node| self.unheard.contains(node)) {
            return;
        }
        let refusal = object.filter(|_| step.kind == StepKind::PodRejected);
        let refusal = refusal.and_then(|object| self.node_use.refusal(object, ctx.view));
        let Some(request) = object.and_then(|object| request(object, step.kind, refusal.clone(), ctx.now)) else {
            return;
        };
        ctx.tell(|_| object.zip(refusal).map(|(object, why)| events::rejected(object, &why)));
        ctx.send(self.sent.add(step), request);
    }
}

/// The node whose kubelet an object is an affair of.
fn machine_of(object: &Object) -> Option<&SmolStr> {
    match object.pod() {
        Some(pod) => pod.node_name.as_ref(),
        None => Some(&object.key.name),
    }
}

/// The pods on a node, by name.
fn pods_of<'a>(node: &SmolStr, view: View<'a>) -> Vec<(ObjectId, &'a Arc<Object>)> {
    let mut pods: Vec<_> = view.pods_on(node).collect();
    pods.sort_by(|(_, one), (_, other)| one.key.cmp(&other.key));
    pods
}

/// Is there such a node?
fn is_there(node: &SmolStr, view: View<'_>) -> bool {
    view.find(&NODE, &ObjectKey::cluster(node.clone())).is_some()
}

/// Has a node stopped reporting?
fn is_silent(node: &Node) -> bool {
    let ready = node.status.conditions.iter().find(|condition| condition.is("Ready"));
    ready.is_some_and(|ready| ready.status == ConditionStatus::Unknown)
}

fn was_silent(event: &WatchEvent) -> bool {
    event.before.as_ref().and_then(|before| before.node()).is_some_and(is_silent)
}

/// Does a pod have a finalizer, so that its end is written to its status before it is deleted?
fn must_tell(object: &Object) -> bool {
    let ended = object.pod().is_none_or(|pod| pod.status.phase.is_final());
    !ended && !object.meta.finalizers.is_empty()
}

fn request(object: &Arc<Object>, kind: StepKind, refusal: Option<Why>, now: SimTime) -> Option<Request> {
    if kind == StepKind::PodGoes {
        let options = DeleteOptions { uid: Some(object.uid), grace_secs: Some(0), ..DeleteOptions::default() };
        return Some(Request::Delete { target: object.reference(), options });
    }
    let exit_code = exit_code(object);
    let mut changed = Object::clone(object);
    match &mut changed.body {
        Body::Node(node) if kind == StepKind::NodeReady => {
            let ready = Condition::new("Ready", true, now).because("KubeletReady", "kubelet is posting ready status");
            let status = Arc::make_mut(&mut node.status);
            status.conditions.retain(|condition| !condition.is("Ready"));
            status.conditions.push(ready);
            Some(Request::update_status(changed))
        }
        Body::Node(node) => {
            let spec = Arc::make_mut(&mut node.spec);
            spec.taints.retain(|taint| !(taint.key == NOT_READY && taint.effect == TaintEffect::NoSchedule));
            Some(Request::update(changed))
        }
        Body::Pod(pod) => pod_steps(pod, kind, refusal, exit_code, now).then(|| Request::update_status(changed)),
        Body::Namespace(_)
        | Body::Deployment(_)
        | Body::ReplicaSet(_)
        | Body::ReplicationController(_)
        | Body::StatefulSet(_)
        | Body::DaemonSet(_)
        | Body::Job(_)
        | Body::CronJob(_)
        | Body::Other(_) => None,
    }
}

/// What a step makes of a pod. `false`: it no longer applies.
fn pod_steps(pod: &mut Pod, kind: StepKind, refusal: Option<Why>, exit_code: i32, now: SimTime) -> bool {
    let (phase, waiting) = (pod.status.phase, pod.status.is_waiting());
    match kind {
        StepKind::PodStarts if phase == PodPhase::Pending => containers::start(pod, now),
        StepKind::PodRestarts if waiting => containers::start(pod, now),
        StepKind::PodEnds if phase == PodPhase::Running && !waiting => containers::end(pod, exit_code, now),
        StepKind::PodReady if phase == PodPhase::Running && !waiting => return containers::ready_again(pod, now),
        StepKind::PodStops if !phase.is_final() => containers::stop(pod, now),
        StepKind::PodRejected if phase == PodPhase::Pending && refusal.is_some() => {
            pod.status.phase = PodPhase::Failed;
            pod.status.why = refusal.map(Arc::new);
        }
        StepKind::PodStops => {}
        StepKind::NodeReady
        | StepKind::NodeOpens
        | StepKind::PodStarts
        | StepKind::PodRejected
        | StepKind::PodEnds
        | StepKind::PodRestarts
        | StepKind::PodReady
        | StepKind::PodGoes => return false,
    }
    true
}

//! Virtual nodes: the kubelets of a cluster without machines.
//!
//! They do what KWOK's stages do on a real cluster: a node becomes ready after a while, a pod bound to it starts after
//! the delays written on it, ends after the lifetime written on it, and goes when it is deleted. A node that is gone
//! takes its pods with it at once, where a real cluster waits for its pod garbage collector.

use std::collections::BTreeMap;
use std::sync::Arc;

use sk_apiserver::kinds::{Condition, NODE, Node, POD, PodPhase};
use sk_apiserver::{ApiError, Body, Change, DeleteOptions, Object, Reason, Request, Uid};
use sk_core::{ObjectKey, SimDuration, SimTime, TaintEffect};

use crate::annotations::{self, CREATE_DELAY, LIFETIME, NODE_READY_DELAY, READY_DELAY};
use crate::cache::Seen;
use crate::component::{Component, Context, Timers};
use crate::engine::Process;
use crate::settings::Timing;

/// The taint of a node that is not ready yet.
pub(crate) const NOT_READY: &str = "node.kubernetes.io/not-ready";
/// After a conflict the kubelet looks at what changed and tries again.
const RETRY: SimDuration = SimDuration::from_millis(10);

pub(crate) fn process(timing: &Timing) -> Process {
    // Every kubelet has a client of its own, so together they know no limit.
    let nodes = Nodes { timers: Timers::new(), sent: BTreeMap::new(), made: 0, termination: timing.pod_termination };
    Process::new(Some(vec![POD, NODE]), timing.watch_latency).with(nodes, None)
}

/// All virtual nodes.
struct Nodes {
    timers: Timers<Step>,
    /// Requests without an answer.
    sent: BTreeMap<u64, Step>,
    made: u64,
    termination: SimDuration,
}

/// The next step of a node or pod.
#[derive(Clone, Debug)]
struct Step {
    key: ObjectKey,
    uid: Uid,
    kind: StepKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StepKind {
    NodeReady,
    /// The not-ready taint comes off, as the node lifecycle controller does on a real cluster.
    NodeOpens,
    PodStarts,
    PodEnds,
    PodGoes,
}

impl Component for Nodes {
    fn observe(&mut self, seen: &Seen, ctx: &mut Context<'_>) {
        match &seen.object.body {
            Body::Node(node) => self.node_seen(seen, node, ctx),
            Body::Pod(_) if seen.change != Change::Deleted => self.pod_seen(seen, ctx),
            _ => {}
        }
    }

    fn wake(&mut self, tag: u64, ctx: &mut Context<'_>) {
        if let Some(step) = self.timers.take(tag) {
            self.take(step, ctx);
        }
    }

    fn answered(&mut self, tag: u64, answer: Result<Arc<Object>, ApiError>, ctx: &mut Context<'_>) {
        let Some(step) = self.sent.remove(&tag) else { return };
        match answer {
            Ok(_) if step.kind == StepKind::NodeReady => {
                let opens = Step { kind: StepKind::NodeOpens, ..step };
                self.timers.set(ctx, ctx.now + RETRY, opens);
            }
            Err(error) if error.reason == Reason::Conflict => self.timers.set(ctx, ctx.now + RETRY, step),
            // Done, or the object is gone and with it everything that was left to do.
            _ => {}
        }
    }
}

impl Nodes {
    fn node_seen(&mut self, seen: &Seen, node: &Node, ctx: &mut Context<'_>) {
        let object = &seen.object;
        match seen.change {
            Change::Added if !node.is_ready() => {
                let delay = annotations::read(&object.meta.annotations, &NODE_READY_DELAY).unwrap_or_default();
                self.later(ctx, object.meta.created + delay, object, StepKind::NodeReady);
            }
            Change::Deleted => {
                let stranded: Vec<_> = ctx.cache.pods_on(&object.key.name).cloned().collect();
                for pod in stranded {
                    self.take(Step { key: pod.key.clone(), uid: pod.meta.uid, kind: StepKind::PodGoes }, ctx);
                }
            }
            _ => {}
        }
    }

    fn pod_seen(&mut self, seen: &Seen, ctx: &mut Context<'_>) {
        let object = &seen.object;
        let (Some(pod), before) = (object.pod(), seen.before.as_ref()) else { return };
        if pod.node_name.is_none() {
            return;
        }
        let was = |test: fn(&Object) -> bool| before.is_some_and(|before| test(before));
        if object.is_deleting() && !was(Object::is_deleting) {
            let grace = object.meta.deletion.map_or(0, |deletion| deletion.grace_secs);
            let takes = self.termination.min(SimDuration::from_secs(grace));
            self.later(ctx, ctx.now + takes, object, StepKind::PodGoes);
        }
        let was_bound = was(|before| before.pod().is_some_and(|pod| pod.node_name.is_some()));
        if pod.status.phase == PodPhase::Pending && !was_bound {
            let delay = |name| annotations::read(&object.meta.annotations, name).unwrap_or_default();
            self.later(ctx, ctx.now + delay(&CREATE_DELAY) + delay(&READY_DELAY), object, StepKind::PodStarts);
        }
        let was_running = was(|before| before.pod().is_some_and(|pod| pod.status.phase == PodPhase::Running));
        if pod.status.phase == PodPhase::Running && !was_running {
            let started = pod.status.started.unwrap_or(ctx.now);
            if let Some(lifetime) = annotations::read(&object.meta.annotations, &LIFETIME) {
                self.later(ctx, started + lifetime, object, StepKind::PodEnds);
            }
        }
    }

    fn later(&mut self, ctx: &mut Context<'_>, at: SimTime, object: &Object, kind: StepKind) {
        self.timers.set(ctx, at, Step { key: object.key.clone(), uid: object.meta.uid, kind });
    }

    /// Takes a step if its object is still there and still wants it.
    fn take(&mut self, step: Step, ctx: &mut Context<'_>) {
        let gvk = match step.kind {
            StepKind::NodeReady | StepKind::NodeOpens => NODE,
            _ => POD,
        };
        let object = ctx.cache.get(&gvk, &step.key).filter(|object| object.meta.uid == step.uid);
        let Some(request) = object.and_then(|object| request(object, step.kind, ctx.now)) else { return };
        self.made += 1;
        self.sent.insert(self.made, step);
        ctx.send(self.made, request);
    }
}

fn request(object: &Arc<Object>, kind: StepKind, now: SimTime) -> Option<Request> {
    if kind == StepKind::PodGoes {
        let options = DeleteOptions { uid: Some(object.meta.uid), grace_secs: Some(0), ..DeleteOptions::default() };
        return Some(Request::Delete { target: object.reference(), options });
    }
    let mut changed = Object::clone(object);
    match &mut changed.body {
        Body::Node(node) if kind == StepKind::NodeReady => {
            let ready = Condition::new("Ready", true, now).because("KubeletReady", "kubelet is posting ready status");
            let status = Arc::make_mut(&mut node.status);
            status.conditions.retain(|condition| condition.kind != "Ready");
            status.conditions.push(ready);
            Some(Request::UpdateStatus(changed))
        }
        Body::Node(node) => {
            let spec = Arc::make_mut(&mut node.spec);
            spec.taints.retain(|taint| !(taint.key == NOT_READY && taint.effect == TaintEffect::NoSchedule));
            Some(Request::Update(changed))
        }
        Body::Pod(pod) if kind == StepKind::PodStarts && pod.status.phase == PodPhase::Pending => {
            pod.status.phase = PodPhase::Running;
            pod.status.start_time = Some(now);
            pod.status.started = Some(now);
            for condition in ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"] {
                pod.status.set_condition(Condition::new(condition, true, now));
            }
            Some(Request::UpdateStatus(changed))
        }
        Body::Pod(pod) if kind == StepKind::PodEnds && pod.status.phase == PodPhase::Running => {
            pod.status.phase = PodPhase::Succeeded;
            pod.status.finished = Some(now);
            for condition in ["Ready", "ContainersReady"] {
                pod.status.set_condition(Condition::new(condition, false, now).because("PodCompleted", ""));
            }
            Some(Request::UpdateStatus(changed))
        }
        _ => None,
    }
}

//! kube-scheduler as a component: informers feed the library, its decisions become requests.
//!
//! A decision counts at once, before its binding is committed (the *assumed* pod), so that the next pod sees it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sk_apiserver::kinds::{Condition, POD, Pod};
use sk_apiserver::{Answer, Body, Change, KindTag, Object, Request, Uid, WatchEvent};
use sk_core::{ObjectKey, SimDuration, SimTime, SmolStr};
use sk_scheduler::plugins::Filter;
use sk_scheduler::{Decision, PodClass, QueueSettings, Scheduler, SchedulingQueue, Unschedulable};

use crate::classes::{self, Classes};
use crate::component::{Component, Context};
use crate::engine::Process;
use crate::settings::Timing;

/// Wake-up: try the next pod.
const CYCLE: u64 = 1;
/// Wake-up: pods that have waited long enough are tried again.
const FLUSH: u64 = 2;
/// Tags from here on are those of bindings.
const FIRST_BINDING: u64 = 3;

pub(crate) fn process(timing: &Timing) -> Process {
    let scheduler = KubeScheduler {
        library: Scheduler::default(),
        queue: SchedulingQueue::new(QueueSettings::default()),
        placed: BTreeMap::new(),
        classes: Classes::new(),
        kept_off: BTreeMap::new(),
        cycle: timing.scheduling_cycle,
        cycle_is_due: false,
        bindings: BTreeMap::new(),
        sent: FIRST_BINDING,
    };
    Process::new(timing.watch_latency).with(scheduler, timing.scheduler_limit)
}

#[derive(Clone)]
struct KubeScheduler {
    library: Scheduler,
    queue: SchedulingQueue,
    /// Every pod that is counted on a node, bound or assumed.
    placed: BTreeMap<ObjectKey, Placed>,
    classes: Classes,
    /// Who kept a waiting pod off when it was last tried.
    kept_off: BTreeMap<ObjectKey, BTreeSet<Filter>>,
    cycle: SimDuration,
    cycle_is_due: bool,
    /// Bindings without an answer.
    bindings: BTreeMap<u64, ObjectKey>,
    sent: u64,
}

#[derive(Clone)]
struct Placed {
    uid: Uid,
    node: SmolStr,
    class: Arc<PodClass>,
}

impl Component for KubeScheduler {
    fn watches(&self) -> &'static [KindTag] {
        &[KindTag::Node, KindTag::Pod]
    }

    fn observe(&mut self, seen: &WatchEvent, ctx: &mut Context<'_>) {
        match &seen.object.body {
            Body::Pod(pod) => self.pod_seen(seen, pod, ctx),
            Body::Node(_) => self.node_seen(seen, ctx),
            Body::Namespace(_) | Body::Deployment(_) | Body::ReplicaSet(_) | Body::Other(_) => {}
        }
        self.kick(ctx);
    }

    fn wake(&mut self, tag: u64, ctx: &mut Context<'_>) {
        self.queue.flush(ctx.now);
        if tag == CYCLE {
            self.cycle_is_due = false;
            if let Some(pod) = self.queue.pop(ctx.now) {
                self.schedule(&pod, ctx);
            }
        }
        self.kick(ctx);
    }

    fn answered(&mut self, tag: u64, answer: Answer, ctx: &mut Context<'_>) {
        let Some(key) = self.bindings.remove(&tag) else { return };
        if answer.is_err() {
            // The pod is gone, going, or bound by somebody else: what the informer brings next decides.
            self.uncount(&key);
            if let Some((_, object)) = ctx.view.find(&POD, &key) {
                let object = object.clone();
                self.wait(&object, ctx);
            }
        }
        self.kick(ctx);
    }
}

impl KubeScheduler {
    fn pod_seen(&mut self, seen: &WatchEvent, pod: &Pod, ctx: &mut Context<'_>) {
        let object = &seen.object;
        if seen.change == Change::Deleted || pod.status.phase.is_final() {
            self.leave(&object.key);
            if self.uncount(&object.key) {
                self.room_was_made(ctx.now);
            }
        } else if let Some(node) = &pod.node_name {
            self.leave(&object.key);
            self.count(object, pod, node);
        } else {
            self.wait(object, ctx);
        }
    }

    /// Queues a pod that has no node, if it is for this scheduler to find one.
    fn wait(&mut self, object: &Arc<Object>, ctx: &mut Context<'_>) {
        let Some(pod) = object.pod() else { return };
        let ours = pod.spec.rest.get("schedulerName").and_then(|name| name.as_str());
        let ours = ours.is_none_or(|name| name == "default-scheduler");
        if object.is_deleting() || pod.node_name.is_some() {
            self.leave(&object.key);
        } else if ours && pod.spec.scheduling_gates.is_empty() && !self.placed.contains_key(&object.key) {
            self.queue.add(ctx.now, &object.key, pod.spec.priority.unwrap_or(0));
        }
    }

    fn node_seen(&mut self, seen: &WatchEvent, ctx: &mut Context<'_>) {
        let name = &seen.object.key.name;
        if seen.change == Change::Deleted {
            self.library.cluster.remove(name);
            return;
        }
        let Some(node) = classes::node(&seen.object) else { return };
        let before = seen.before.as_ref().and_then(|before| classes::node(before));
        self.library.cluster.upsert(node.clone());
        if before.is_none() {
            for placed in self.placed.values().filter(|placed| placed.node == *name) {
                self.library.cluster.add_pod(name, &placed.class);
            }
        }
        // Queueing hints: a pod is worth another try if one of those who kept it off would not any more.
        let Self { queue, classes, kept_off, .. } = self;
        queue.happened(ctx.now, |key| {
            let Some(pod) = ctx.view.find(&POD, key).and_then(|(_, object)| object.pod()) else { return true };
            let class = classes.of(pod);
            let by = kept_off.get(key);
            by.is_none_or(|by| {
                by.is_empty() || by.iter().any(|filter| filter.is_helped(&class, before.as_ref(), &node))
            })
        });
    }

    /// The pod waits no longer.
    fn leave(&mut self, key: &ObjectKey) {
        self.queue.remove(key);
        self.kept_off.remove(key);
    }

    /// A pod went: those that lacked room may fit now.
    fn room_was_made(&mut self, now: SimTime) {
        let Self { queue, kept_off, .. } = self;
        let lacked_room = |by: &BTreeSet<Filter>| by.is_empty() || by.contains(&Filter::NodeResourcesFit);
        queue.happened(now, |key| kept_off.get(key).is_none_or(lacked_room));
    }

    fn kick(&mut self, ctx: &mut Context<'_>) {
        if self.queue.is_ready() && !self.cycle_is_due {
            self.cycle_is_due = true;
            ctx.wake(CYCLE, ctx.now + self.cycle);
        }
    }

    fn schedule(&mut self, key: &ObjectKey, ctx: &mut Context<'_>) {
        let Some(object) = ctx.view.find(&POD, key).map(|(_, object)| object).filter(|object| !object.is_deleting())
        else {
            return self.leave(key);
        };
        let Some(pod) = object.pod().filter(|pod| pod.node_name.is_none()) else { return self.leave(key) };
        let class = self.classes.of(pod);
        match self.library.schedule(&class) {
            Decision::Placed { node, .. } => {
                self.leave(key);
                self.count(object, pod, &node);
                self.sent += 1;
                self.bindings.insert(self.sent, key.clone());
                ctx.send(self.sent, Request::Bind { pod: key.clone(), uid: object.uid, node });
            }
            Decision::Unschedulable(why) => {
                self.queue.failed(ctx.now, key);
                self.kept_off.insert(key.clone(), why.by.clone());
                if let Some(at) = self.queue.next_flush() {
                    ctx.wake(FLUSH, at);
                }
                if let Some(request) = report(object, &why, ctx) {
                    ctx.send(0, request);
                }
            }
        }
    }

    fn count(&mut self, object: &Object, pod: &Pod, node: &SmolStr) {
        let known = self.placed.get(&object.key);
        if known.is_some_and(|placed| placed.uid == object.uid && placed.node == *node) {
            return;
        }
        self.uncount(&object.key);
        let class = self.classes.of(pod);
        self.library.cluster.add_pod(node, &class);
        let placed = Placed { uid: object.uid, node: node.clone(), class };
        self.placed.insert(object.key.clone(), placed);
    }

    fn uncount(&mut self, key: &ObjectKey) -> bool {
        let Some(placed) = self.placed.remove(key) else { return false };
        self.library.cluster.remove_pod(&placed.node, &placed.class);
        true
    }
}

/// Writes the reason into the pod, if it is not there already.
fn report(object: &Arc<Object>, why: &Unschedulable, ctx: &Context<'_>) -> Option<Request> {
    let mut changed = Object::clone(object);
    changed.resource_version = 0;
    let pod = changed.pod_mut()?;
    let condition = Condition::new("PodScheduled", false, ctx.now).because("Unschedulable", why.message.as_str());
    pod.status.set_condition(condition).then_some(Request::update_status(changed))
}

//! kube-scheduler as a component: informers feed the scheduler library, and its decisions become requests.
//!
//! The scheduler *assumes* a pod on its node as soon as it decides, before the binding is committed, so that the next
//! pod sees it. A pod that preempts others is nominated for their node; the scheduler writes the reason into its
//! victims' status, deletes them, and tries the pod again when they are gone.

mod budgets;
mod decide;
mod explain;
mod informers;
mod passed_through;
mod volumes;

use std::collections::BTreeMap;

use sk_apiserver::{Answer, Body, Change, KindTag, Object, ObjectId, Uid, WatchEvent};
use sk_core::{SimDuration, SimTime, SmolStr};
use sk_scheduler::class::{DEFAULT_SCHEDULER, OwnerKind, PassedThrough};
use sk_scheduler::cluster::objects::Key;
use sk_scheduler::{ClassId, Cluster, Configuration, PodId, Queue, Scheduler};

use self::budgets::Limits;
use self::explain::Explainer;
pub use self::explain::{Explained, NodeScore, WhyVictims};
pub use self::passed_through::PodsPassed;
use self::passed_through::{Devices, Passed};
use self::volumes::Volumes;
use crate::classes::Classes;
use crate::component::{Component, Context, Pending};
use crate::limiter::RateLimit;
use crate::process::Process;
use crate::settings::{Settings, Timing};

/// Wake-up: try the next pod.
const CYCLE: u64 = 1;
/// Wake-up: pods that have waited long enough are tried again.
const FLUSH: u64 = 2;
/// Wake-up: a pod that something went wrong for has waited long enough.
const RETRY: u64 = 3;

pub(crate) fn process(timing: &Timing, settings: &Settings, now: SimTime) -> Process {
    let configuration = &settings.scheduler;
    let scheduler = KubeScheduler {
        library: Scheduler::new(Cluster::default(), configuration.profiles.clone()),
        queue: Queue::new(configuration.queue.clone(), now),
        classes: Classes::with_claims(),
        storage: Volumes::default(),
        budgets: BTreeMap::new(),
        pods: Vec::new(),
        objects: Vec::new(),
        cycle: timing.scheduling_cycle,
        cycle_is_due: false,
        flush_is_due: None,
        retry_is_due: None,
        sent: Pending::new(),
        explainer: Explainer::new(settings.explain),
        passed: Passed::default(),
        devices: Devices::default(),
    };
    Process::new(timing.watch_latency).with(scheduler, limit(timing, configuration))
}

/// The client's rate: the configuration's, where it says one and clients have limits at all.
fn limit(timing: &Timing, configuration: &Configuration) -> Option<RateLimit> {
    let usual = timing.scheduler_limit?;
    match configuration.client {
        None => Some(usual),
        Some(client) if client.qps < 0.0 => None,
        // Fractions of a request per second are rounded up: a limit of 0 would mean never.
        Some(client) => Some(RateLimit { qps: (client.qps.ceil() as i64).max(1), burst: client.burst }),
    }
}

#[derive(Clone)]
struct KubeScheduler {
    library: Scheduler,
    queue: Queue,
    classes: Classes,
    storage: Volumes,
    budgets: BTreeMap<Key, Limits>,
    /// What is known of each pod, by the object's id.
    pods: Vec<Option<Known>>,
    /// The object of each of the library's pods.
    objects: Vec<Option<ObjectId>>,
    cycle: SimDuration,
    cycle_is_due: bool,
    flush_is_due: Option<SimTime>,
    retry_is_due: Option<SimTime>,
    /// Requests without an answer.
    sent: Pending<Option<Sent>>,
    explainer: Explainer,
    passed: Passed,
    devices: Devices,
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
        // Of kinds that are kept as they came, it reads Services, claims, volumes, storage and device classes, and budgets.
        &[
            KindTag::Pod,
            KindTag::Node,
            KindTag::Namespace,
            KindTag::ReplicaSet,
            KindTag::ReplicationController,
            KindTag::StatefulSet,
            KindTag::Other,
        ]
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
            Body::ReplicationController(controller) => {
                self.owner_seen(event, OwnerKind::ReplicationController, &controller.0.spec.selector);
            }
            Body::StatefulSet(set) => self.owner_seen(event, OwnerKind::StatefulSet, &set.spec.selector),
            Body::Other(other) => self.other_seen(event, other, ctx.now),
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

    fn reconfigured(&mut self, settings: &Settings, _ctx: &mut Context<'_>) {
        self.cycle = settings.timing.scheduling_cycle;
    }

    fn take_explained(&mut self) -> Vec<Explained> {
        std::mem::take(&mut self.explainer.told)
    }

    fn passed_through(&self) -> BTreeMap<PassedThrough, PodsPassed> {
        self.passed.0.clone()
    }

    fn inherit_passed(&mut self, passed: BTreeMap<PassedThrough, PodsPassed>) {
        self.passed = Passed(passed);
    }

    fn answered(&mut self, tag: u64, answer: Answer, ctx: &mut Context<'_>) {
        match self.sent.take(tag).flatten() {
            // The pod is gone, going, or bound by somebody else: what the informer brings next decides.
            Some(Sent::Binding(id, uid)) if answer.is_err() => self.binding_failed(id, uid, ctx),
            Some(Sent::LastVictim(id, uid)) => {
                if let Some(known) = self.known(id).filter(|known| known.uid == uid) {
                    self.queue.set_preempting(known.pod, false);
                }
            }
            Some(Sent::Binding(id, uid)) => ctx.tell(|_| {
                let known = self.known(id).filter(|known| known.uid == uid);
                answer.ok().map(|pod| {
                    let from = known.map_or_else(|| named_scheduler(&pod), |known| self.signature(known.class));
                    decide::assigned(&pod, from)
                })
            }),
            None => {}
        }
        self.kick(ctx);
    }
}

/// The `schedulerName` of a pod that has no class, or none any more.
fn named_scheduler(pod: &Object) -> SmolStr {
    let named = pod.pod().and_then(|pod| pod.spec.rest.get("schedulerName")?.as_str());
    named.unwrap_or(DEFAULT_SCHEDULER).into()
}

fn is_there(event: &WatchEvent) -> bool {
    event.change != Change::Deleted
}

impl KubeScheduler {
    fn known(&self, id: ObjectId) -> Option<Known> {
        self.pods.get(id.index()).copied().flatten()
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
}

//! A process of the control plane: components that share one informer, and so have seen the same.
//!
//! The engine asks for every change and every component whether the component subscribed to it, so a [`Subscription`] is a
//! few bits that stand apart from the component.

use std::collections::VecDeque;

use sk_apiserver::{KindTag, Object, WatchEvent};
use sk_core::{SimDuration, SimTime};

use crate::component::{Component, Context};
use crate::limiter::{Limiter, RateLimit};

/// The subscription of a component that receives every change.
pub(crate) const EVERY_KIND: &[KindTag] = KindTag::ALL;

/// Which component: by process and place in it.
pub(crate) type Address = (usize, usize);

/// A process of the control plane.
#[derive(Clone)]
pub(crate) struct Process {
    /// How long after a change it learns of it.
    pub(crate) latency: SimDuration,
    /// The version up to which it has learnt.
    pub(crate) cursor: u64,
    pub(crate) components: Vec<Member>,
    /// What each of them subscribed to.
    pub(crate) subscriptions: Vec<Subscription>,
}

/// A component with its client.
#[derive(Clone)]
pub(crate) struct Member {
    pub(crate) component: Box<dyn Component>,
    pub(crate) limiter: Limiter,
}

impl Process {
    pub(crate) fn new(latency: SimDuration) -> Self {
        Self { latency, cursor: 0, components: Vec::new(), subscriptions: Vec::new() }
    }

    pub(crate) fn with(mut self, component: impl Component + 'static, limit: Option<RateLimit>) -> Self {
        self.subscriptions.push(Subscription::of(&component));
        self.components.push(Member { component: Box::new(component), limiter: Limiter::new(limit) });
        self
    }

    /// Replaces the components by stubs, when another process takes this one's place.
    pub(crate) fn retire(&mut self) {
        for member in &mut self.components {
            member.component = Box::new(Retired);
        }
        self.subscriptions.fill(Subscription::of(&Retired));
    }
}

/// The changes that are delivered to a component.
#[derive(Clone, Copy)]
pub(crate) struct Subscription {
    /// A bit for each kind that it watches.
    kinds: u32,
    /// A bit for each kind whose objects' pods it wants to hear of as it is now.
    pods_of: u32,
}

impl Subscription {
    fn of(component: &dyn Component) -> Self {
        let kinds = component.watches().iter().fold(0, |bits, tag| bits | bit(*tag));
        let mut subscription = Self { kinds, pods_of: 0 };
        subscription.renew(component);
        subscription
    }

    /// Asks the component again which pods it wants to hear of.
    pub(crate) fn renew(&mut self, component: &dyn Component) {
        self.pods_of = if component.wants_pods() { component.pods_of().map_or(u32::MAX, bit) } else { 0 };
    }

    /// Does it watch the kind at all?
    pub(crate) fn watches(self, tag: KindTag) -> bool {
        self.kinds & bit(tag) != 0
    }

    /// Is a change with this scope delivered to it?
    pub(crate) fn covers(self, scope: Scope) -> bool {
        self.kinds & scope.kind != 0 && (!scope.is_pod() || self.pods_of & scope.controllers != 0)
    }
}

/// What a change is about, as far as subscriptions ask.
#[derive(Clone, Copy)]
pub(crate) struct Scope {
    /// The bit of the kind.
    kind: u32,
    /// The bits of the kinds that control a pod, before and after the change: all, if nobody does, or if a finalizer gives
    /// others a say.
    controllers: u32,
}

impl Scope {
    pub(crate) fn of(event: &WatchEvent) -> Self {
        let scope = Self { kind: bit(event.object.body.tag()), controllers: 0 };
        if scope.is_pod() { Self { controllers: controllers_of(event), ..scope } } else { scope }
    }

    pub(crate) fn is_pod(self) -> bool {
        self.kind == bit(KindTag::Pod)
    }
}

fn controllers_of(event: &WatchEvent) -> u32 {
    let of = |pod: &Object| match pod.controller() {
        Some(owner) if pod.meta.finalizers.is_empty() => bit(owner.gvk.tag()),
        Some(_) | None => u32::MAX,
    };
    let before = event.before.as_deref().filter(|before| !before.has_owners_of(&event.object));
    of(&event.object) | before.map_or(0, of)
}

/// The bit of a kind.
const fn bit(tag: KindTag) -> u32 {
    1 << tag as u32
}

const _: () = assert!(KindTag::ALL.len() <= u32::BITS as usize, "every kind has a bit");

/// Processes of one latency learn of a change at the same moment, so that one entry on the agenda does for all.
#[derive(Clone)]
pub(crate) struct Lane {
    pub(crate) latency: SimDuration,
    pub(crate) processes: Vec<usize>,
    /// The deliveries on the agenda, oldest first: when, and up to which version.
    pub(crate) deliveries: VecDeque<(SimTime, u64)>,
}

/// The processes by latency, in the order in which they first appear.
pub(crate) fn lanes(processes: &[Process]) -> Vec<Lane> {
    let mut lanes: Vec<Lane> = Vec::new();
    for (index, process) in processes.iter().enumerate() {
        match lanes.iter_mut().find(|lane| lane.latency == process.latency) {
            Some(lane) => lane.processes.push(index),
            None => {
                let (latency, deliveries) = (process.latency, VecDeque::new());
                lanes.push(Lane { latency, processes: vec![index], deliveries });
            }
        }
    }
    lanes
}

/// The stub of a component whose process was replaced: it ignores everything.
#[derive(Clone)]
struct Retired;

impl Component for Retired {
    fn watches(&self) -> &'static [KindTag] {
        &[]
    }

    fn observe(&mut self, _event: &WatchEvent, _ctx: &mut Context<'_>) {}
}

//! The loop: virtual time, the API server, and the processes around it.
//!
//! [`Engine`] never sleeps. A caller asks [`Engine::next_deadline`], calls [`Engine::advance_to`], and puts requests in
//! with [`Engine::handle`]; whether it lets wall time pass in between is its own affair.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use sk_apiserver::{AdmitPod, ApiError, ApiServer, Change, Expired, Notice, Object, Request, WatchEvent};
use sk_core::{Gvk, SimDuration, SimTime};

use crate::agenda::{Agenda, Class};
use crate::cache::Cache;
use crate::component::{Component, Context, Wanted};
use crate::limiter::{Limiter, RateLimit};
use crate::settings::Settings;
use crate::{autoscaler, controllers, kubelet, scheduling};

/// A whole cluster in one value.
pub struct Engine {
    api: ApiServer,
    now: SimTime,
    agenda: Agenda<Happening>,
    processes: Vec<Process>,
    request_latency: SimDuration,
    /// Reused between calls to spare allocations.
    wanted: Vec<Wanted>,
}

/// A process of the control plane: components that share an informer cache.
pub(crate) struct Process {
    cache: Cache,
    /// The kinds it watches; `None` for all.
    kinds: Option<Vec<Gvk>>,
    /// How long after a change it learns of it.
    latency: SimDuration,
    /// The version up to which it has learnt.
    cursor: u64,
    /// The deliveries on the agenda, oldest first: when, and up to which version.
    deliveries: VecDeque<(SimTime, u64)>,
    components: Vec<(Box<dyn Component>, Limiter)>,
}

/// Which component: by process and place in it.
type Address = (usize, usize);

enum Happening {
    /// A process learns of what was committed a while ago.
    Deliver { process: usize },
    /// A request reaches the API server.
    Request { from: Address, tag: u64, request: Box<Request> },
    /// A component wakes up.
    Wake { who: Address, tag: u64 },
}

impl Process {
    pub(crate) fn new(kinds: Option<Vec<Gvk>>, latency: SimDuration) -> Self {
        Self { cache: Cache::default(), kinds, latency, cursor: 0, deliveries: VecDeque::new(), components: Vec::new() }
    }

    pub(crate) fn with(mut self, component: impl Component + 'static, limit: Option<RateLimit>) -> Self {
        self.components.push((Box::new(component), Limiter::new(limit)));
        self
    }

    fn watches(&self, gvk: &Gvk) -> bool {
        self.kinds.as_ref().is_none_or(|kinds| kinds.contains(gvk))
    }
}

impl Engine {
    /// A cluster at the moment `start`, with the namespaces every cluster has and the nodes its groups begin with.
    pub fn new(settings: &Settings, start: SimTime) -> Self {
        let timing = settings.timing.clone();
        let mut engine = Self {
            api: ApiServer::new(settings.seed),
            now: start,
            agenda: Agenda::new(),
            processes: Vec::new(),
            request_latency: timing.request_latency,
            wanted: Vec::new(),
        };
        engine.processes = vec![
            controllers::process(&timing),
            scheduling::process(&timing),
            kubelet::process(&timing),
            autoscaler::process(settings.clone()),
        ];
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            let namespace = controllers::new_namespace(name);
            engine.handle(Request::Create(namespace)).expect("an empty server takes its first namespaces");
        }
        for node in settings.groups.iter().flat_map(|group| autoscaler::first_nodes(group, start)) {
            engine.handle(Request::Create(node)).expect("names of first nodes differ, as names of groups do");
        }
        for address in engine.addresses() {
            engine.call(address, |component, ctx| component.start(ctx));
        }
        engine
    }

    /// Lets `hook` see every new pod before it is stored.
    pub fn set_pod_hook(&mut self, hook: Box<dyn AdmitPod>) {
        self.api.set_pod_hook(hook);
    }

    /// The virtual time.
    pub fn now(&self) -> SimTime {
        self.now
    }

    /// When something happens next, if nobody puts anything in.
    pub fn next_deadline(&self) -> Option<SimTime> {
        self.agenda.next_time()
    }

    /// Lets everything happen that is due by `until`, and makes that the time. Time never goes back.
    pub fn advance_to(&mut self, until: SimTime) {
        while !self.advance(until, u64::MAX) {}
    }

    /// The same, but stops after `changes` changes at the latest, so that a reader of [`Self::watch`] can keep up with
    /// the log. `true`: the time is `until`.
    pub fn advance(&mut self, until: SimTime, changes: u64) -> bool {
        let stop_at = self.resource_version().saturating_add(changes);
        while let Some((at, happening)) = self.agenda.pop_due(until) {
            self.now = self.now.max(at);
            self.happen(happening);
            if self.resource_version() >= stop_at {
                return false;
            }
        }
        self.now = self.now.max(until);
        true
    }

    /// Sends a request from outside, now.
    pub fn handle(&mut self, request: Request) -> Result<Arc<Object>, ApiError> {
        let before = self.api.store().resource_version();
        let answer = self.api.handle(self.now, request);
        if self.api.store().resource_version() != before {
            self.announce();
        }
        answer
    }

    /// All changes after version `since`: what a watch over everything would show.
    pub fn watch(&self, since: u64) -> Result<impl Iterator<Item = &WatchEvent>, Expired> {
        self.api.store().watch(since)
    }

    /// The version of the newest change.
    pub fn resource_version(&self) -> u64 {
        self.api.store().resource_version()
    }

    /// One object as it is now.
    pub fn get(&self, gvk: &Gvk, key: &sk_core::ObjectKey) -> Option<&Arc<Object>> {
        self.api.store().get(gvk, key)
    }

    /// All objects of a kind as they are now.
    pub fn list(&self, gvk: &Gvk) -> impl Iterator<Item = &Arc<Object>> + use<'_> {
        self.api.store().list(gvk)
    }

    /// What the API server decided without knowing, and how often.
    pub fn notices(&self) -> &BTreeMap<Notice, u64> {
        self.api.notices()
    }

    fn addresses(&self) -> Vec<Address> {
        let all = self.processes.iter().enumerate();
        all.flat_map(|(process, p)| (0..p.components.len()).map(move |component| (process, component))).collect()
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Deliver { process } => self.deliver(process),
            Happening::Wake { who, tag } => self.call(who, |component, ctx| component.wake(tag, ctx)),
            Happening::Request { from, tag, request } => {
                let answer = self.handle(*request);
                self.call(from, |component, ctx| component.answered(tag, answer, ctx));
            }
        }
    }

    /// Puts the news of the latest change on its way to every process; news of one moment travels together.
    fn announce(&mut self) {
        let newest = self.api.store().resource_version();
        for (index, process) in self.processes.iter_mut().enumerate() {
            let at = self.now + process.latency;
            match process.deliveries.back_mut() {
                Some((same, until)) if *same == at => *until = newest,
                _ => {
                    process.deliveries.push_back((at, newest));
                    self.agenda.add(at, Class::Delivery, Happening::Deliver { process: index });
                }
            }
        }
    }

    fn deliver(&mut self, index: usize) {
        let process = &mut self.processes[index];
        let Some((_, until)) = process.deliveries.pop_front() else { return };
        let events: Vec<WatchEvent> = match self.api.store().watch(process.cursor) {
            Ok(events) => {
                let fresh = events.take_while(|event| event.object.resource_version <= until);
                fresh.filter(|event| process.watches(&event.object.gvk)).cloned().collect()
            }
            Err(Expired { .. }) => relist(process, &self.api, self.now),
        };
        process.cursor = process.cursor.max(until);
        for event in events {
            let seen = self.processes[index].cache.learn(&event);
            for component in 0..self.processes[index].components.len() {
                self.call((index, component), |component, ctx| component.observe(&seen, ctx));
            }
        }
    }

    /// Runs a component and does what it asks for.
    fn call(&mut self, address: Address, act: impl FnOnce(&mut dyn Component, &mut Context<'_>)) {
        let mut wanted = std::mem::take(&mut self.wanted);
        let Process { cache, components, .. } = &mut self.processes[address.0];
        let (component, limiter) = &mut components[address.1];
        act(component.as_mut(), &mut Context::new(self.now, cache, &mut wanted));
        for want in wanted.drain(..) {
            match want {
                Wanted::Wake { at, tag } => {
                    self.agenda.add(at.max(self.now), Class::Wake, Happening::Wake { who: address, tag });
                }
                Wanted::Send { request, tag } => {
                    let at = limiter.reserve(self.now) + self.request_latency;
                    self.agenda.add(at, Class::Request, Happening::Request { from: address, tag, request });
                }
            }
        }
        self.wanted = wanted;
    }
}

/// After 410 Gone: the changes that lead from what the process knows to what there is now. Versions in between are lost,
/// as they are for a real informer.
fn relist(process: &mut Process, api: &ApiServer, now: SimTime) -> Vec<WatchEvent> {
    let store = api.store();
    let mut events = Vec::new();
    for known in process.cache.all() {
        let same = store.get(&known.gvk, &known.key).is_some_and(|object| object.meta.uid == known.meta.uid);
        if !same {
            events.push(WatchEvent { at: now, change: Change::Deleted, object: known.clone() });
        }
    }
    for object in store.all().filter(|object| process.watches(&object.gvk)) {
        match process.cache.get(&object.gvk, &object.key) {
            Some(known) if known.resource_version == object.resource_version => {}
            Some(known) if known.meta.uid == object.meta.uid => {
                events.push(WatchEvent { at: now, change: Change::Modified, object: object.clone() });
            }
            _ => events.push(WatchEvent { at: now, change: Change::Added, object: object.clone() }),
        }
    }
    process.cursor = store.resource_version();
    events
}

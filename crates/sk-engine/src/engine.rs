//! The simulation loop: virtual time, the API server, and the processes around it.
//!
//! [`Engine`] never sleeps. A caller asks [`Engine::next_deadline`], calls [`Engine::advance_to`], and sends requests
//! with [`Engine::handle`]; whether wall time passes in between is up to the caller. An engine is a value: a clone
//! continues on its own, and neither sees what happens to the other.

use std::collections::BTreeMap;
use std::sync::Arc;

use sk_apiserver::{AdmitPod, Answer, ApiServer, Change, Expired, Notice, Object, ObjectId, Request, View, WatchEvent};
use sk_core::{Gvk, ObjectKey, SimDuration, SimTime};
use sk_scheduler::class::PassedThrough;

use crate::agenda::{Agenda, Class};
use crate::autoscaler::Decision;
use crate::budget::{Budget, Spinning};
use crate::component::{Component, Context, Wanted};
use crate::events::{Event, Kept};
use crate::process::{Address, Lane, Process, Scope, lanes};
use crate::scheduling::{Explained, PodsPassed};
use crate::settings::Settings;
use crate::{autoscaler, controllers, kubelet, scheduling};

/// Before the log is so full that fewer changes than this fit before it would forget what somebody has not heard of, the
/// news is brought at once. A request makes at most two changes.
const LOG_RESERVE: usize = 64;

/// A whole cluster in one value.
#[derive(Clone)]
pub struct Engine {
    api: ApiServer,
    now: SimTime,
    agenda: Agenda<Happening>,
    processes: Vec<Process>,
    /// Where each process of the control plane stands among them; those that were replaced stand there too.
    places: [usize; 4],
    lanes: Vec<Lane>,
    request_latency: SimDuration,
    /// How much longer than that requests take for now.
    slowness: SimDuration,
    /// Reused between calls to spare allocations.
    wanted: Vec<Wanted>,
    /// The Events since the last call; `None` if they are off.
    events: Option<Kept>,
    budget: Budget,
    spinning: Option<Spinning>,
}

#[derive(Clone, Debug)]
enum Happening {
    /// Processes learn of what was committed a while ago.
    Deliver { lane: usize },
    /// A request reaches the API server.
    Request { from: Address, tag: u64, request: Box<Request> },
    /// A component wakes up.
    Wake { who: Address, tag: u64 },
}

impl Engine {
    /// A cluster at the moment `start`, with the namespaces every cluster has and the nodes its groups begin with.
    pub fn new(settings: &Settings, start: SimTime) -> Self {
        let processes = processes(settings, start);
        let mut engine = Self {
            api: ApiServer::new(settings.seed),
            now: start,
            agenda: Agenda::new(),
            lanes: lanes(&processes),
            processes: processes.into(),
            places: [0, 1, 2, 3],
            request_latency: settings.timing.request_latency,
            slowness: SimDuration::ZERO,
            wanted: Vec::new(),
            events: settings.events.then(Kept::default),
            budget: Budget::default(),
            spinning: None,
        };
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            let namespace = controllers::new_namespace(name);
            engine.handle(Request::create(namespace)).expect("an empty server takes its first namespaces");
        }
        for node in settings.groups.iter().flat_map(|group| autoscaler::first_nodes(group, start)) {
            engine.handle(Request::create(node)).expect("names of first nodes differ, as names of groups do");
        }
        engine.api.set_rules(settings.rules);
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

    /// The time of the next event, without further requests.
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
        while self.spinning.is_none()
            && let Some((at, happening)) = self.agenda.pop_due(until)
        {
            self.now = self.now.max(at);
            self.spend(&happening);
            self.happen(happening);
            if self.resource_version() >= stop_at {
                return false;
            }
        }
        self.now = self.now.max(until);
        true
    }

    /// The part that would go on for ever within one second, if one does. From then on time passes and nothing happens: what
    /// the engine says after that is worth nothing.
    pub fn spinning(&self) -> Option<&Spinning> {
        self.spinning.as_ref()
    }

    /// Sends a request from outside, now.
    pub fn handle(&mut self, request: Request) -> Answer {
        self.api.judge(&request)?;
        self.admit(request)
    }

    /// Carries out a request that was judged or needs no judgement, and announces what it changed.
    fn admit(&mut self, request: Request) -> Answer {
        let before = self.resource_version();
        let answer = self.api.handle(self.now, request);
        if self.resource_version() != before {
            self.announce();
        }
        answer
    }

    /// From now on every request takes so much longer: the API server is slow.
    pub fn slow_api(&mut self, more: SimDuration) {
        self.slowness = more;
    }

    /// Changes the settings of a running cluster. kube-scheduler is started anew if its configuration changed, as a real one
    /// has to be; all others go on with what they know. Nodes that are there stay as they are.
    pub fn reconfigure(&mut self, settings: &Settings, restart_scheduler: bool) {
        self.request_latency = settings.timing.request_latency;
        let fresh = processes(settings, self.now);
        self.lanes.iter_mut().for_each(|lane| lane.latency = settings.timing.watch_latency);
        for (place, new) in fresh.into_iter().enumerate() {
            let now_at = self.places[place];
            let old = &mut self.processes[now_at];
            old.latency = new.latency;
            for (member, new) in old.components.iter_mut().zip(&new.components) {
                member.limiter = new.limiter.clone();
            }
            if place == SCHEDULER && restart_scheduler {
                self.restart(place, new);
            }
        }
        for (process, component) in self.addresses() {
            self.call((process, component), |component, ctx| component.reconfigured(settings, ctx));
        }
    }

    /// Puts a new process in the place of one. It lists everything, as an informer does that starts; what the old one had
    /// sent is still carried out, and nobody waits for the answer.
    fn restart(&mut self, place: usize, mut fresh: Process) {
        let old = self.places[place];
        let passed = self.processes[old].components.iter().map(|member| member.component.passed_through());
        let passed: Vec<_> = passed.collect();
        self.processes[old].retire();
        fresh.cursor = self.resource_version();
        let new = self.processes.len();
        self.places[place] = new;
        for lane in self.lanes.iter_mut().filter(|lane| lane.processes.contains(&old)) {
            lane.processes.push(new);
        }
        self.processes.push(fresh);
        let listed = |(id, object): (ObjectId, &Arc<Object>)| WatchEvent {
            at: self.now,
            change: Change::Added,
            id,
            object: object.clone(),
            before: None,
        };
        let events: Vec<WatchEvent> = self.objects().everything().map(listed).collect();
        for (component, passed) in passed.into_iter().enumerate() {
            self.call((new, component), |component, ctx| component.start(ctx));
            for event in &events {
                if self.processes[new].subscriptions[component].watches(event.object.body.tag()) {
                    self.call((new, component), |component, ctx| component.observe(event, ctx));
                }
            }
            self.processes[new].components[component].component.inherit_passed(passed);
        }
    }

    /// What the scheduler has to say of its decisions since this was last called; see [`crate::Settings::explain`].
    pub fn take_explained(&mut self) -> Vec<Explained> {
        let mut explained = Vec::new();
        for member in &mut self.processes[self.places[SCHEDULER]].components {
            explained.append(&mut member.component.take_explained());
        }
        explained
    }

    /// The pods that needed what the scheduler passes through, by need.
    pub fn passed_through(&self) -> BTreeMap<PassedThrough, PodsPassed> {
        let members = &self.processes[self.places[SCHEDULER]].components;
        members.iter().flat_map(|member| member.component.passed_through()).collect()
    }

    /// All changes after version `since`: what a watch over everything would show.
    pub fn watch(&self, since: u64) -> Result<impl Iterator<Item = &WatchEvent>, Expired> {
        self.api.store().watch(since)
    }

    /// The reader of [`Self::watch`] has read up to version `cursor`, and there is no other: what every process has read,
    /// too, need not be kept.
    pub fn forget(&mut self, cursor: u64) {
        let slowest = self.processes.iter().map(|process| process.cursor).min();
        self.api.forget(cursor.min(slowest.unwrap_or(cursor)));
    }

    /// The version of the newest change.
    pub fn resource_version(&self) -> u64 {
        self.api.store().resource_version()
    }

    /// The objects as they are now.
    pub fn objects(&self) -> View<'_> {
        self.api.store().now()
    }

    /// One object as it is now.
    pub fn get(&self, gvk: &Gvk, key: &ObjectKey) -> Option<&Arc<Object>> {
        self.api.store().get(gvk, key)
    }

    /// All objects of a kind as they are now, by namespace and name.
    pub fn list(&self, gvk: &Gvk) -> impl Iterator<Item = &Arc<Object>> + use<'_> {
        self.api.store().list(gvk)
    }

    /// The cluster autoscaler's decisions and reasons since the last call.
    pub fn take_decisions(&mut self) -> Vec<Decision> {
        let mut decisions = Vec::new();
        for member in &mut self.processes[self.places[AUTOSCALER]].components {
            decisions.append(&mut member.component.take_decisions());
        }
        decisions
    }

    /// The Events since the last call; see [`crate::Settings::events`].
    pub fn take_events(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        self.move_events_to(&mut events);
        events
    }

    /// The same, put behind what is there.
    pub fn move_events_to(&mut self, events: &mut Vec<Event>) {
        self.events.as_mut().into_iter().for_each(|kept| kept.move_to(events));
    }

    /// How many Events were dropped because they were not taken in time.
    pub fn dropped_events(&self) -> u64 {
        self.events.as_ref().map_or(0, Kept::dropped)
    }

    /// How many decisions were dropped because they were not taken in time.
    pub fn dropped_decisions(&self) -> u64 {
        let components = self.processes.iter().flat_map(|process| &process.components);
        components.map(|member| member.component.dropped_decisions()).sum()
    }

    /// How many comparisons of a pod with a node were made so far to find out what would fit: what the autoscaler's loops cost,
    /// whatever the machine.
    pub fn fits_asked(&self) -> u64 {
        let components = self.processes.iter().flat_map(|process| &process.components);
        components.map(|member| member.component.fits_asked()).sum()
    }

    /// What a component keeps of the objects, where that differs from what it would make of them anew: there is no such thing.
    pub fn strays(&self) -> Option<String> {
        self.processes.iter().find_map(|process| {
            let view = self.api.store().view(process.cursor);
            process.components.iter().find_map(|member| member.component.strays(view))
        })
    }

    /// Lets the cloud have no nodes of a group until then: those that the autoscaler asks for do not come, and it leaves the
    /// group alone for a while, as after any failure. A time that has passed ends a stock-out; of a group that nobody
    /// has, nothing is known. Nodes that are there, or were asked for before, are not touched.
    pub fn set_stock_out(&mut self, group: &str, until: SimTime) {
        let components = self.processes.iter_mut().flat_map(|process| &mut process.components);
        components.for_each(|member| member.component.stock_out(group, until));
    }

    /// What the API server decided without knowing, and how often.
    pub fn notices(&self) -> &BTreeMap<Notice, u64> {
        self.api.notices()
    }

    fn addresses(&self) -> Vec<Address> {
        let all = self.processes.iter().enumerate();
        all.flat_map(|(process, p)| (0..p.components.len()).map(move |component| (process, component))).collect()
    }

    /// Charges what happens to the budget of its second.
    fn spend(&mut self, happening: &Happening) {
        let who = match happening {
            Happening::Deliver { .. } => None,
            Happening::Request { from, .. } => Some(*from),
            Happening::Wake { who, .. } => Some(*who),
        };
        if let Some((who, events)) = self.budget.spend(self.now, self.api.store().objects(), who) {
            let component = self.processes[who.0].components[who.1].component.name().to_owned();
            self.spinning = Some(Spinning { at: self.now, component, events });
        }
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Deliver { lane } => {
                if let Some((_, until)) = self.lanes[lane].deliveries.pop_front() {
                    self.deliver(lane, until);
                }
            }
            Happening::Wake { who, tag } => self.call(who, |component, ctx| component.wake(tag, ctx)),
            Happening::Request { from, tag, request } => {
                // What a component makes is judged; what it changes was judged when it was made.
                let is_new = matches!(*request, Request::Create(_));
                let answer = if is_new { self.handle(*request) } else { self.admit(*request) };
                self.call(from, |component, ctx| component.answered(tag, answer, ctx));
            }
        }
    }

    /// Puts the news of the latest change on its way to every process; news of one moment travels together.
    fn announce(&mut self) {
        let newest = self.resource_version();
        for index in 0..self.lanes.len() {
            let lane = &mut self.lanes[index];
            let at = self.now + lane.latency;
            match lane.deliveries.back_mut() {
                Some((same, until)) if *same == at => *until = newest,
                _ => {
                    lane.deliveries.push_back((at, newest));
                    self.agenda.add_soon(at, Class::Delivery, Happening::Deliver { lane: index });
                }
            }
            let slowest = lane.processes.iter().map(|process| self.processes[*process].cursor).min();
            if slowest.is_some_and(|cursor| self.api.store().room_after(cursor) < LOG_RESERVE) {
                self.deliver(index, newest);
            }
        }
    }

    /// Brings the processes of a lane up to version `until`, change by change, one process after the other.
    fn deliver(&mut self, lane: usize, until: u64) {
        for place in 0..self.lanes[lane].processes.len() {
            let process = self.lanes[lane].processes[place];
            while self.processes[process].cursor < until {
                self.processes[process].cursor += 1;
                self.observe(process);
            }
        }
        let seen_by_all = self.processes.iter().map(|process| process.cursor).min().unwrap_or(until);
        self.api.reclaim(seen_by_all);
    }

    /// Tells the components of a process of the change that its cursor stands on.
    fn observe(&mut self, process: usize) {
        let mut first = 0;
        while let Some(component) = self.tell(process, first) {
            self.carry_out((process, component));
            first = component + 1;
        }
    }

    /// Tells them from the one at `first` on, as far as one that asks for something: which that is.
    fn tell(&mut self, process: usize, first: usize) -> Option<usize> {
        let Self { api, processes, wanted, now, events, .. } = self;
        let Process { cursor, components, subscriptions, .. } = &mut processes[process];
        let event = api.store().event(*cursor).expect("the log is never so full that it forgets unread changes");
        let scope = Scope::of(event);
        let ctx = &mut Context::new(*now, api.store().view(*cursor), wanted, events.as_mut());
        for (place, subscription) in subscriptions.iter_mut().enumerate().skip(first) {
            if !subscription.covers(scope) {
                continue;
            }
            let component = components[place].component.as_mut();
            component.observe(event, ctx);
            if !scope.is_pod() {
                subscription.renew(component);
            }
            if ctx.wants() {
                return Some(place);
            }
        }
        None
    }

    /// Runs a component and does what it asks for.
    fn call(&mut self, address: Address, act: impl FnOnce(&mut dyn Component, &mut Context<'_>)) {
        let Self { api, processes, wanted, now, events, .. } = self;
        let Process { cursor, components, subscriptions, .. } = &mut processes[address.0];
        let ctx = &mut Context::new(*now, api.store().view(*cursor), wanted, events.as_mut());
        let component = components[address.1].component.as_mut();
        act(component, ctx);
        subscriptions[address.1].renew(component);
        self.carry_out(address);
    }

    fn carry_out(&mut self, address: Address) {
        if self.wanted.is_empty() {
            return;
        }
        let limiter = &mut self.processes[address.0].components[address.1].limiter;
        for want in self.wanted.drain(..) {
            match want {
                Wanted::Wake { at, tag } => {
                    self.agenda.add(at.max(self.now), Class::Wake, Happening::Wake { who: address, tag });
                }
                Wanted::Send { request, tag } => {
                    let sent = limiter.reserve(self.now);
                    let at = sent + self.request_latency + self.slowness;
                    let happening = Happening::Request { from: address, tag, request };
                    if sent == self.now {
                        self.agenda.add_soon(at, Class::Request, happening);
                    } else {
                        self.agenda.add(at, Class::Request, happening);
                    }
                }
            }
        }
        if self.agenda.is_large() {
            self.sweep();
        }
    }

    /// Lets go of wake-ups that would do nothing.
    fn sweep(&mut self) {
        let Self { api, processes, agenda, .. } = self;
        agenda.sweep(|happening| match happening {
            Happening::Deliver { .. } | Happening::Request { .. } => true,
            Happening::Wake { who, tag } => {
                let Process { cursor, components, .. } = &mut processes[who.0];
                components[who.1].component.still_wants(*tag, api.store().view(*cursor))
            }
        });
    }
}

/// The place of kube-scheduler among the processes.
const SCHEDULER: usize = 1;
/// The place of the cluster autoscaler.
const AUTOSCALER: usize = 3;

/// All processes of a control plane.
fn processes(settings: &Settings, now: SimTime) -> [Process; 4] {
    let timing = &settings.timing;
    [
        controllers::process(timing, settings.seed),
        scheduling::process(timing, settings, now),
        kubelet::process(timing),
        autoscaler::process(settings.clone()),
    ]
}

#[cfg(test)]
mod tests {
    use sk_apiserver::KindTag;

    use super::*;

    /// Asks to be woken whenever it is.
    #[derive(Clone)]
    struct Restless;

    impl Component for Restless {
        fn watches(&self) -> &'static [KindTag] {
            &[]
        }

        fn start(&mut self, ctx: &mut Context<'_>) {
            ctx.wake(0, ctx.now + SimDuration::from_secs(5));
        }

        fn observe(&mut self, _event: &WatchEvent, _ctx: &mut Context<'_>) {}

        fn wake(&mut self, tag: u64, ctx: &mut Context<'_>) {
            ctx.wake(tag, ctx.now);
        }
    }

    #[test]
    fn a_part_that_never_rests_is_named_and_does_not_hang_the_engine() {
        let mut engine = Engine::new(&Settings::default(), SimTime::EPOCH);
        engine.processes.push(Process::new(SimDuration::ZERO).with(Restless, None));
        engine.lanes = lanes(&engine.processes);
        let restless = (engine.processes.len() - 1, 0);
        engine.call(restless, |component, ctx| component.start(ctx));
        engine.advance_to(SimTime::from_secs(4));
        assert_eq!(engine.spinning(), None);
        engine.advance_to(SimTime::from_secs(60));
        let spinning = engine.spinning().expect("it goes on for ever");
        assert_eq!((spinning.component.as_str(), spinning.at), ("Restless", SimTime::from_secs(5)));
        assert_eq!(engine.now(), SimTime::from_secs(60));
    }
}

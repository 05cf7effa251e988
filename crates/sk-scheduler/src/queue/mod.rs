//! The scheduling queue (`backend/queue`).
//!
//! A pod is in one of three queues. *Active*: by priority, then by age. *Unschedulable*: until an event may help it,
//! or for [`QueueSettings::flush_after`]. *Backoff*: helped, but it failed recently; a scheduler with nothing else to
//! do takes these too, so backoff only orders pods and never makes an idle scheduler wait. Events during a pod's
//! attempt are kept and evaluated when the attempt has failed.
//!
//! Waiting pods of one class that the same plugins rejected form one group. An event is evaluated once per group, so
//! ten thousand pods that wait for the same thing cost as much as one. The caller passes time in.

mod entries;
mod entry;
mod event;
mod groups;
mod ranked;

use std::collections::{BTreeMap, BTreeSet};

use sk_core::SimTime;

use self::entries::Entries;
pub use self::entry::QueueSettings;
use self::entry::{Entry, Place, Rank, ended_from, has_ended};
pub(crate) use self::event::HintCx;
pub use self::event::{Event, Hint, NodeAction, PodAction};
use self::groups::Groups;
use self::ranked::{Ranked, Stamp};
use super::framework::Scheduler;
use super::framework::plugin::{PluginId, PluginSet};
use super::ids::{ClassId, PodId};

/// The pods that wait for a node.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    settings: QueueSettings,
    started: SimTime,
    entries: Entries,
    active: Ranked<Rank>,
    backoff: Ranked<(SimTime, Rank)>,
    error_backoff: BTreeMap<(SimTime, Rank), PodId>,
    unschedulable: Groups,
    waiting_since: Ranked<SimTime>,
    /// Pods that are being tried, by how many events had happened when they were taken.
    in_flight: Ranked<u64>,
    events: Vec<Event>,
    first_event: u64,
    preempting: BTreeSet<PodId>,
    number: u64,
    /// The last stamp that was given.
    stamp: Stamp,
}

impl Queue {
    /// An empty queue of a scheduler that starts now.
    pub fn new(settings: QueueSettings, now: SimTime) -> Self {
        Self { settings, started: now, ..Self::default() }
    }

    /// A new pod. One that is known already keeps its place.
    pub fn add(&mut self, now: SimTime, pod: PodId, scheduler: &Scheduler) {
        if self.entries.contains(pod) {
            return;
        }
        self.number += 1;
        let class = scheduler.cluster.pod(pod).class;
        let priority = scheduler.cluster.class(class).priority;
        self.entries.insert(pod, Entry::new(class, priority, now, self.number));
        self.activate(pod, scheduler);
    }

    /// Forgets a pod: it is bound, or gone.
    pub fn remove(&mut self, pod: PodId) {
        self.settle(pod, Place::Nowhere);
        self.entries.remove(pod);
        self.preempting.remove(&pod);
        self.forget_events();
    }

    /// The classes that pods and kept events have here, for [`Scheduler::free_classes`].
    pub fn classes(&self) -> impl Iterator<Item = ClassId> {
        self.entries.classes().chain(self.events.iter().flat_map(Event::classes))
    }

    /// Does it wait here, or is it being tried?
    pub fn contains(&self, pod: PodId) -> bool {
        self.entries.contains(pod)
    }

    /// Takes the next pod to try. Tell [`Self::failed`] or [`Self::remove`] how it went.
    pub fn pop(&mut self, now: SimTime) -> Option<PodId> {
        self.end_backoffs(now);
        let first = self.active.first().map(|(_, pod)| pod);
        let pod = first.or_else(|| self.backoff.first().map(|(_, pod)| pod))?;
        self.take_off(pod);
        Some(pod)
    }

    /// Takes this pod out of turn (`PopSpecificPod`), and says whether its turn could have come without anything
    /// happening first.
    pub fn pop_this(&mut self, now: SimTime, pod: PodId) -> bool {
        self.end_backoffs(now);
        let Some(entry) = self.entries.get(pod) else { return false };
        let was_ready = matches!(entry.place, Place::Active | Place::Backoff(_));
        if !matches!(entry.place, Place::InFlight(_)) {
            self.take_off(pod);
        }
        was_ready
    }

    /// `flushBackoffQCompleted`.
    fn end_backoffs(&mut self, now: SimTime) {
        while let Some((_, pod)) = self.backoff.first().filter(|((end, _), _)| has_ended(*end, now)) {
            self.settle(pod, Place::Active);
        }
        while let Some((pod, _)) = self.first_after_error().filter(|(_, end)| has_ended(*end, now)) {
            self.settle(pod, Place::Active);
        }
    }

    fn take_off(&mut self, pod: PodId) {
        let mark = self.first_event + self.events.len() as u64;
        self.settle(pod, Place::InFlight(mark));
        if let Some(entry) = self.entries.get_mut(pod) {
            entry.attempts += 1;
        }
    }

    fn first_after_error(&self) -> Option<(PodId, SimTime)> {
        self.error_backoff.first_key_value().map(|((end, _), pod)| (*pod, *end))
    }

    /// Is a pod ready to be tried?
    pub fn is_ready(&self) -> bool {
        !self.active.is_empty() || !self.backoff.is_empty()
    }

    /// When the next pod that something else kept from being tried comes back: its backoff is waited for, also by an idle
    /// scheduler.
    pub fn next_retry(&self) -> Option<SimTime> {
        self.first_after_error().map(|(_, end)| ended_from(end))
    }

    /// How often the pod has been tried.
    pub fn attempts(&self, pod: PodId) -> u32 {
        self.entries.get(pod).map_or(0, |entry| entry.attempts)
    }

    /// How many pods are active, backing off, and waiting for something to happen.
    pub fn sizes(&self) -> (usize, usize, usize) {
        (self.active.len(), self.backoff.len() + self.error_backoff.len(), self.waiting_since.len())
    }

    /// The pod found no node, because of these plugins; with none, something else went wrong
    /// (`AddUnschedulableIfNotPresent`).
    pub fn failed(&mut self, now: SimTime, pod: PodId, rejectors: PluginSet, scheduler: &Scheduler) {
        let Some(entry) = self.entries.get(pod) else { return };
        let (class, place) = (entry.class, entry.place);
        if !matches!(place, Place::InFlight(_)) {
            // Its rank, by which it is found there, is about to change.
            self.settle(pod, Place::Nowhere);
        }
        self.entries.get_mut(pod).into_iter().for_each(|entry| entry.failed(now, rejectors));
        let mut missed = self.missed(place).iter();
        let helped = rejectors.is_empty() || missed.any(|event| worth(scheduler, class, rejectors, Some(pod), event));
        if helped {
            self.requeue(now, pod, scheduler);
        } else {
            self.settle(pod, Place::Unschedulable);
        }
        self.forget_events();
    }

    /// What happened since a pod was taken that is in this place.
    fn missed(&self, place: Place) -> &[Event] {
        match place {
            Place::InFlight(mark) => &self.events[(mark - self.first_event) as usize..],
            Place::Nowhere | Place::Active | Place::Backoff(_) | Place::ErrorBackoff(_) | Place::Unschedulable => &[],
        }
    }

    /// Forgets the events that no pod needs which is being tried.
    fn forget_events(&mut self) {
        let end = self.first_event + self.events.len() as u64;
        let needed = self.in_flight.first().map_or(end, |(mark, _)| mark);
        self.events.drain(..(needed - self.first_event) as usize);
        self.first_event = needed;
    }

    /// Something happened: those pods that it may help are to be tried again (`MoveAllToActiveOrBackoffQueue`).
    pub fn happened(&mut self, now: SimTime, event: &Event, scheduler: &Scheduler) {
        self.happened_to(i32::MAX, now, event, scheduler);
    }

    /// Something happened that only pods of at most this priority notice: a nomination that was held against them is no
    /// more (`eventhandlers.go`, `getLEPriorityPreCheck`).
    pub fn happened_to(&mut self, priority: i32, now: SimTime, event: &Event, scheduler: &Scheduler) {
        if !self.in_flight.is_empty() {
            self.events.push(event.clone());
        }
        let registered = event.registered();
        if !self.unschedulable.concern(registered) {
            return;
        }
        let mut helped = Vec::new();
        for ((class, rejectors, gate), pods) in self.unschedulable.iter() {
            if !rejectors.is_empty() && !rejectors.intersects(registered) {
                continue;
            }
            if gate.is_some_and(|gate| !opens(gate, event)) || scheduler.cluster.class(*class).priority > priority {
                continue;
            }
            if event.is_about_one_pod() {
                let one = |pod: &&PodId| worth(scheduler, *class, *rejectors, Some(**pod), event);
                helped.extend(pods.iter().filter(one));
            } else if worth(scheduler, *class, *rejectors, None, event) {
                helped.extend(pods);
            }
        }
        // In their order, which is how the queues take them most cheaply. It makes no other difference. Those of a group failed
        // in their order, so these are a few runs, which this way of sorting knows how to merge.
        let rank = |pod: PodId| (self.entries.get(pod).map(Entry::rank), pod);
        let mut helped: Vec<_> = helped.into_iter().map(rank).collect();
        helped.sort();
        for (_, pod) in helped {
            self.requeue(now, pod, scheduler);
        }
    }

    /// A waiting pod's object changed. The cluster has its new class already.
    pub fn updated(&mut self, now: SimTime, pod: PodId, before: ClassId, scheduler: &Scheduler) {
        let Some(entry) = self.entries.get(pod) else { return self.add(now, pod, scheduler) };
        let (place, after) = (entry.place, scheduler.cluster.pod(pod).class);
        let actions = Event::pod_actions(scheduler.cluster.class(before), scheduler.cluster.class(after));
        let events: Vec<Event> =
            actions.into_iter().map(|action| Event::WaitingPod { pod, action, before, after }).collect();
        self.settle(pod, Place::Nowhere);
        if let Some(entry) = self.entries.get_mut(pod) {
            (entry.class, entry.priority) = (after, scheduler.cluster.class(after).priority);
        }
        self.settle(pod, place);
        match place {
            Place::InFlight(_) => self.events.extend(events),
            Place::Unschedulable => {
                let rejectors = self.entries.get(pod).map_or(PluginSet::EMPTY, |entry| entry.rejectors);
                if events.iter().any(|event| worth(scheduler, after, rejectors, Some(pod), event)) {
                    self.requeue(now, pod, scheduler);
                }
            }
            Place::Nowhere | Place::Active | Place::Backoff(_) | Place::ErrorBackoff(_) => {}
        }
    }

    /// The pod's victims are being deleted (or have been): meanwhile it is held back
    /// (`defaultpreemption/default_preemption.go`, `PreEnqueue`).
    pub fn set_preempting(&mut self, pod: PodId, is_preempting: bool) {
        if is_preempting {
            self.preempting.insert(pod);
        } else {
            self.preempting.remove(&pod);
        }
    }

    /// Pods that have waited too long are to be tried again.
    pub fn flush(&mut self, now: SimTime, scheduler: &Scheduler) {
        let flush_after = self.settings.flush_after;
        let too_long = |since: SimTime| now.since(since) > flush_after;
        let mut late = Vec::new();
        while let Some((_, pod)) = self.waiting_since.first().filter(|(since, _)| too_long(*since)) {
            self.settle(pod, Place::Nowhere);
            late.push(pod);
        }
        for pod in late {
            if let Some(entry) = self.entries.get_mut(pod) {
                entry.flushed = Some(now);
            }
            self.requeue(now, pod, scheduler);
        }
    }

    /// When [`Self::flush`] is next worth calling.
    pub fn next_flush(&self) -> Option<SimTime> {
        let due = self.waiting_since.first()?.0 + self.settings.flush_after;
        let period = self.settings.flush_period.as_micros().max(1);
        let ticks = due.since(self.started).as_micros().div_euclid(period) + 1;
        Some(self.started + self.settings.flush_period * ticks)
    }

    /// Puts a pod that was helped where it belongs (`requeuePodWithQueueingStrategy`).
    fn requeue(&mut self, now: SimTime, pod: PodId, scheduler: &Scheduler) {
        let Some(entry) = self.entries.get(pod) else { return };
        if !entry.is_backing_off(&self.settings, now) {
            return self.activate(pod, scheduler);
        }
        let end = entry.backoff_end(&self.settings).unwrap_or(now);
        let place = if entry.rejectors.is_empty() { Place::ErrorBackoff(end) } else { Place::Backoff(end) };
        self.settle_unless_gated(pod, place, scheduler);
    }

    fn activate(&mut self, pod: PodId, scheduler: &Scheduler) {
        self.settle_unless_gated(pod, Place::Active, scheduler);
    }

    /// `runPreEnqueuePlugins`: a pod that a plugin holds back waits with the unschedulable ones.
    fn settle_unless_gated(&mut self, pod: PodId, place: Place, scheduler: &Scheduler) {
        let Some(entry) = self.entries.get(pod) else { return };
        let class = scheduler.cluster.class(entry.class);
        let holds = |plugin: &&PluginId| match plugin {
            PluginId::SchedulingGates => !class.gates.is_empty(),
            PluginId::DefaultPreemption => self.preempting.contains(&pod),
            _ => false,
        };
        let may_be_held = !class.gates.is_empty() || !self.preempting.is_empty();
        let profile = scheduler.profile(&class.scheduler_name).filter(|_| may_be_held);
        let gate = profile.and_then(|profile| profile.profile.pre_enqueue.iter().find(holds)).copied();
        let Some(entry) = self.entries.get_mut(pod) else { return };
        entry.gate = gate;
        entry.rejectors.extend_with(gate);
        self.settle(pod, if gate.is_some() { Place::Unschedulable } else { place });
    }

    /// Moves a pod from where it is to `place`.
    fn settle(&mut self, pod: PodId, place: Place) {
        let Some(entry) = self.entries.get_mut(pod) else { return };
        self.stamp += 1;
        entry.stamp = self.stamp;
        let (rank, since) = (entry.rank(), entry.waits_since());
        let group = (entry.class, entry.rejectors, entry.gate);
        let before = std::mem::replace(&mut entry.place, place);
        self.leave(pod, before, rank);
        match place {
            Place::Nowhere => {}
            Place::Active => self.active.insert(rank, pod, self.stamp),
            Place::Backoff(end) => self.backoff.insert((end, rank), pod, self.stamp),
            Place::ErrorBackoff(end) => drop(self.error_backoff.insert((end, rank), pod)),
            Place::Unschedulable => {
                self.waiting_since.insert(since, pod, self.stamp);
                self.unschedulable.insert(group, pod, &mut self.entries);
            }
            Place::InFlight(mark) => self.in_flight.insert(mark, pod, self.stamp),
        }
    }

    /// Takes a pod that has a new stamp already out of the place that it had.
    fn leave(&mut self, pod: PodId, before: Place, rank: Rank) {
        let entries = &self.entries;
        let is_there = |pod: PodId, stamp| entries.get(pod).is_some_and(|entry| entry.stamp == stamp);
        match before {
            Place::Nowhere => {}
            Place::Active => self.active.leave(is_there),
            Place::Backoff(_) => self.backoff.leave(is_there),
            Place::ErrorBackoff(end) => drop(self.error_backoff.remove(&(end, rank))),
            Place::Unschedulable => {
                self.waiting_since.leave(is_there);
                self.unschedulable.remove(pod, &mut self.entries);
            }
            Place::InFlight(_) => self.in_flight.leave(is_there),
        }
    }
}

/// `isPodWorthRequeuing`: does the event help with a plugin that rejected the pod? Without one, any event does.
fn worth(scheduler: &Scheduler, class: ClassId, rejectors: PluginSet, pod: Option<PodId>, event: &Event) -> bool {
    if rejectors.is_empty() || matches!(event, Event::Timeout) {
        return true;
    }
    let class = scheduler.cluster.class(class);
    let Some(profile) = scheduler.profile(&class.scheduler_name) else { return true };
    let cx = HintCx { cluster: &scheduler.cluster, profile, class, pod };
    let is_taint = matches!(event, Event::Node { action: NodeAction::Taint, .. });
    let helps =
        |plugin: PluginId| (is_taint && takes_any_taint(plugin)) || plugin.plugin().hint(&cx, event) == Hint::Queue;
    let registered = event.registered();
    debug_assert!(
        rejectors.iter().all(|plugin| registered.contains(plugin) || !helps(plugin)),
        "a plugin that is helped by an event registers for it: {rejectors} {event:?}"
    );
    rejectors.iter().any(|plugin| registered.contains(plugin) && helps(plugin))
}

/// Plugins that ask for new nodes but not for changed taints get the latter all the same, without a hint of their own
/// (`scheduler.go`, `buildQueueingHintMap`).
fn takes_any_taint(plugin: PluginId) -> bool {
    use PluginId::{
        InterPodAffinity, NodeAffinity, NodeName, NodePorts, NodeResourcesFit, VolumeBinding, VolumeRestrictions,
        VolumeZone,
    };
    matches!(
        plugin,
        NodeName
            | NodeAffinity
            | NodePorts
            | NodeResourcesFit
            | VolumeRestrictions
            | VolumeBinding
            | VolumeZone
            | InterPodAffinity
    )
}

/// Is this an event that the plugin which holds a pod back has asked for?
fn opens(gate: PluginId, event: &Event) -> bool {
    match gate {
        PluginId::SchedulingGates => matches!(event, Event::WaitingPod { action: PodAction::GatesEliminated, .. }),
        PluginId::DefaultPreemption => matches!(event, Event::PlacedPod { action: PodAction::Delete, .. }),
        _ => true,
    }
}

//! The interface between the engine and a part of the control plane: a state machine that receives events and sends
//! requests.
//!
//! Components know the API and what their process has seen of it, never each other. They put requests into the
//! [`Context`]; the engine sends them and reports each result back. They are `Clone + Send`, so that an engine can be
//! forked.

use std::collections::BTreeMap;

use sk_apiserver::{Answer, KindTag, Request, View, WatchEvent};
use sk_core::SimTime;
use sk_scheduler::class::PassedThrough;

use crate::autoscaler::Decision;
use crate::events::{Event, Kept};
use crate::scheduling::{Explained, PodsPassed};
use crate::settings::Settings;

/// A part of the control plane.
pub(crate) trait Component: Send + CloneComponent {
    /// The kinds that it watches. Nothing else is delivered to it.
    fn watches(&self) -> &'static [KindTag];

    /// Of pods, does it want to hear only of those that nobody controls and those that such an object controls?
    fn pods_of(&self) -> Option<KindTag> {
        None
    }

    /// Do changes of pods mean anything to it as it is now? Asked again after everything that it is told but a change of a pod.
    fn wants_pods(&self) -> bool {
        true
    }

    /// What it is called where people read it: the name of its type, or of the reconciler in its frame.
    fn name(&self) -> &'static str {
        let name = std::any::type_name::<Self>().trim_end_matches('>');
        name.rsplit("::").next().unwrap_or(name)
    }

    /// The simulation begins.
    fn start(&mut self, _ctx: &mut Context<'_>) {}

    /// The informer delivers a change; the view shows it already.
    fn observe(&mut self, event: &WatchEvent, ctx: &mut Context<'_>);

    /// A wake-up that the component asked for.
    fn wake(&mut self, _tag: u64, _ctx: &mut Context<'_>) {}

    /// What the component can say of its decisions since it was last asked.
    fn take_explained(&mut self) -> Vec<Explained> {
        Vec::new()
    }

    /// The pods whose needs the component passed through, by need.
    fn passed_through(&self) -> BTreeMap<PassedThrough, PodsPassed> {
        BTreeMap::new()
    }

    /// It was started in the place of another one, which had counted these; those that it was just told of are among them.
    fn inherit_passed(&mut self, _passed: BTreeMap<PassedThrough, PodsPassed>) {}

    /// Would this wake-up still do anything? Asked now and then, so that the agenda does not fill with those that would not;
    /// after `false` it does not come.
    fn still_wants(&mut self, _tag: u64, _view: View<'_>) -> bool {
        true
    }

    /// The answer to a request that the component sent.
    fn answered(&mut self, _tag: u64, _answer: Answer, _ctx: &mut Context<'_>) {}

    /// The cloud has no nodes of this group until then.
    fn stock_out(&mut self, _group: &str, _until: SimTime) {}

    /// The cluster's settings have changed while it runs.
    fn reconfigured(&mut self, _settings: &Settings, _ctx: &mut Context<'_>) {}

    /// What it decided since it was last asked.
    fn take_decisions(&mut self) -> Vec<Decision> {
        Vec::new()
    }

    /// How many comparisons of a pod with a node it made to find out what would fit.
    fn fits_asked(&self) -> u64 {
        0
    }

    /// What it keeps of the objects, where that differs from what it would make of them anew.
    fn strays(&self, _view: View<'_>) -> Option<String> {
        None
    }

    /// How many decisions were dropped because they were not taken.
    fn dropped_decisions(&self) -> u64 {
        0
    }
}

/// Copies a component whose type is not known.
pub(crate) trait CloneComponent {
    fn clone_component(&self) -> Box<dyn Component>;
}

impl<C: Component + Clone + 'static> CloneComponent for C {
    fn clone_component(&self) -> Box<dyn Component> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Component> {
    fn clone(&self) -> Self {
        (**self).clone_component()
    }
}

/// What a component sees and can ask for while it runs.
pub(crate) struct Context<'a> {
    /// The virtual time.
    pub(crate) now: SimTime,
    /// The objects as the component's process knows them.
    pub(crate) view: View<'a>,
    wanted: &'a mut Vec<Wanted>,
    /// Where Events go, if anybody listens.
    events: Option<&'a mut Kept>,
}

/// What a component asked for.
#[derive(Clone, Debug)]
pub(crate) enum Wanted {
    /// Send this request when the client's rate limit allows.
    Send { request: Box<Request>, tag: u64 },
    /// Wake me.
    Wake { at: SimTime, tag: u64 },
}

impl<'a> Context<'a> {
    pub(crate) fn new(now: SimTime, view: View<'a>, wanted: &'a mut Vec<Wanted>, events: Option<&'a mut Kept>) -> Self {
        Self { now, view, wanted, events }
    }

    /// Has the component asked for anything?
    pub(crate) fn wants(&self) -> bool {
        !self.wanted.is_empty()
    }

    /// Emits an Event about an object, if Events are on.
    pub(crate) fn tell<Events: IntoIterator<Item = Event>>(&mut self, events: impl FnOnce(View<'a>) -> Events) {
        if let Some(kept) = &mut self.events {
            events(self.view).into_iter().for_each(|event| kept.push(Event { at: self.now, ..event }));
        }
    }

    /// Sends a request; the answer comes with the same tag.
    pub(crate) fn send(&mut self, tag: u64, request: Request) {
        self.wanted.push(Wanted::Send { request: Box::new(request), tag });
    }

    /// Asks to be woken at `at`, or at once if that has passed.
    pub(crate) fn wake(&mut self, tag: u64, at: SimTime) {
        self.wanted.push(Wanted::Wake { at, tag });
    }
}

/// What is remembered until an answer or a wake-up comes, by the tag that it comes with. A tag is good once: the place that
/// it names is used again with another generation.
#[derive(Clone, Debug)]
pub(crate) struct Pending<T> {
    slots: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
}

impl<T> Pending<T> {
    pub(crate) fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }

    /// Remembers something; the tag it is found by.
    pub(crate) fn add(&mut self, what: T) -> u64 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push((0, None));
            u32::try_from(self.slots.len() - 1).expect("the agenda is bounded, and so is what waits for it")
        });
        let slot = &mut self.slots[place as usize];
        *slot = (slot.0.wrapping_add(1), Some(what));
        u64::from(slot.0) << 32 | u64::from(place)
    }

    fn slot(&mut self, tag: u64) -> Option<&mut Option<T>> {
        let (generation, place) = ((tag >> 32) as u32, tag as u32 as usize);
        self.slots.get_mut(place).filter(|slot| slot.0 == generation).map(|(_, what)| what)
    }

    /// What the tag stands for.
    pub(crate) fn get(&mut self, tag: u64) -> Option<&T> {
        self.slot(tag)?.as_ref()
    }

    /// The same, which is then forgotten.
    pub(crate) fn take(&mut self, tag: u64) -> Option<T> {
        let what = self.slot(tag)?.take()?;
        self.free.push(tag as u32);
        Some(what)
    }
}

/// Wake-ups with something to remember until then.
#[derive(Clone, Debug)]
pub(crate) struct Timers<T> {
    pending: Pending<T>,
}

impl<T> Timers<T> {
    pub(crate) fn new() -> Self {
        Self { pending: Pending::new() }
    }

    /// Asks to be woken at `at` with `what` in mind.
    pub(crate) fn set(&mut self, ctx: &mut Context<'_>, at: SimTime, what: T) {
        ctx.wake(self.pending.add(what), at);
    }

    /// What a wake-up is for.
    pub(crate) fn get(&mut self, tag: u64) -> Option<&T> {
        self.pending.get(tag)
    }

    /// What a wake-up was for.
    pub(crate) fn take(&mut self, tag: u64) -> Option<T> {
        self.pending.take(tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_good_once_even_if_its_place_is_used_again() {
        let mut pending = Pending::new();
        let first = pending.add("first");
        assert_eq!(pending.get(first), Some(&"first"));
        assert_eq!(pending.take(first), Some("first"));
        let second = pending.add("second");
        assert_eq!(pending.get(first), None);
        assert_eq!(pending.take(first), None);
        assert_eq!((pending.take(second), pending.take(second), pending.take(u64::MAX)), (Some("second"), None, None));
    }
}

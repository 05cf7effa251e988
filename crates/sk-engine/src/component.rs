//! What a part of the control plane is to the engine: a state machine that is told things and asks for things.
//!
//! Components know the API and their own cache, never each other. What they want done they put into the [`Context`];
//! the engine does it and tells them how it went.

use std::collections::BTreeMap;
use std::sync::Arc;

use sk_apiserver::{ApiError, Object, Request};
use sk_core::SimTime;

use crate::cache::{Cache, Seen};

/// A part of the control plane.
pub(crate) trait Component {
    /// The simulation begins.
    fn start(&mut self, _ctx: &mut Context<'_>) {}

    /// The informer delivers a change; the cache has it already.
    fn observe(&mut self, seen: &Seen, ctx: &mut Context<'_>);

    /// A wake-up that the component asked for.
    fn wake(&mut self, _tag: u64, _ctx: &mut Context<'_>) {}

    /// The answer to a request that the component sent.
    fn answered(&mut self, _tag: u64, _answer: Result<Arc<Object>, ApiError>, _ctx: &mut Context<'_>) {}
}

/// What a component sees and can ask for while it runs.
pub(crate) struct Context<'a> {
    /// The virtual time.
    pub(crate) now: SimTime,
    /// The objects as the component's process knows them.
    pub(crate) cache: &'a Cache,
    wanted: &'a mut Vec<Wanted>,
}

/// What a component asked for.
pub(crate) enum Wanted {
    /// Send this request when the client's rate limit allows.
    Send { request: Box<Request>, tag: u64 },
    /// Wake me.
    Wake { at: SimTime, tag: u64 },
}

impl<'a> Context<'a> {
    pub(crate) fn new(now: SimTime, cache: &'a Cache, wanted: &'a mut Vec<Wanted>) -> Self {
        Self { now, cache, wanted }
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

/// Wake-ups with something to remember until then.
#[derive(Debug)]
pub(crate) struct Timers<T> {
    pending: BTreeMap<u64, T>,
    made: u64,
}

impl<T> Timers<T> {
    pub(crate) fn new() -> Self {
        Self { pending: BTreeMap::new(), made: 0 }
    }

    /// Asks to be woken at `at` with `what` in mind.
    pub(crate) fn set(&mut self, ctx: &mut Context<'_>, at: SimTime, what: T) {
        self.made += 1;
        self.pending.insert(self.made, what);
        ctx.wake(self.made, at);
    }

    /// What a wake-up was for.
    pub(crate) fn take(&mut self, tag: u64) -> Option<T> {
        self.pending.remove(&tag)
    }
}

//! The frame around a reconciler: work queue, workers, one request after the other, backoff.
//!
//! A reconciler decides purely: from the cache and a key to the requests that bring the world nearer to what is desired.
//! This frame sends them in order through the client's rate limit, stops at the first refusal and tries again later, as
//! a controller's `sync` in Kubernetes does when a call returns an error.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use sk_apiserver::{ApiError, Object, Reason, Request};
use sk_core::{SimDuration, SimTime};

use crate::cache::{Cache, Seen};
use crate::component::{Component, Context, Timers};
use crate::workqueue::WorkQueue;

/// Decides what to do about one key.
pub(crate) trait Reconciler {
    /// What it works on.
    type Key: Ord + Clone;

    /// The keys that a change concerns.
    fn concerns(&mut self, seen: &Seen, cache: &Cache) -> Vec<Self::Key>;

    /// What to do about `key`.
    fn reconcile(&mut self, key: &Self::Key, cache: &Cache, now: SimTime) -> Plan;

    /// A request of a plan for `key` was refused, and so the requests in `unsent` were not sent.
    fn refused(&mut self, _key: &Self::Key, _unsent: &[Request]) {}
}

/// What a reconciler wants done, in order.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) requests: Vec<Request>,
    /// Look again after this long even if nothing changes.
    pub(crate) again_after: Option<SimDuration>,
}

impl Plan {
    pub(crate) fn nothing() -> Self {
        Self::default()
    }

    pub(crate) fn of(requests: impl IntoIterator<Item = Request>) -> Self {
        Self { requests: requests.into_iter().collect(), again_after: None }
    }
}

/// A reconciler with its queue and workers.
pub(crate) struct Controller<R: Reconciler> {
    reconciler: R,
    queue: WorkQueue<R::Key>,
    workers: usize,
    /// The plans under way, by the tag of their requests.
    running: BTreeMap<u64, Running<R::Key>>,
    started: u64,
    timers: Timers<R::Key>,
}

struct Running<K> {
    key: K,
    /// The request that was sent last is at the front until its answer comes.
    requests: VecDeque<Request>,
    again_after: Option<SimDuration>,
}

impl<R: Reconciler> Controller<R> {
    pub(crate) fn new(reconciler: R, workers: usize) -> Self {
        Self {
            reconciler,
            queue: WorkQueue::new(),
            workers,
            running: BTreeMap::new(),
            started: 0,
            timers: Timers::new(),
        }
    }

    /// Gives free workers something to do.
    fn work(&mut self, ctx: &mut Context<'_>) {
        while self.running.len() < self.workers {
            let Some(key) = self.queue.take() else { return };
            let plan = self.reconciler.reconcile(&key, ctx.cache, ctx.now);
            self.started += 1;
            let running = Running { key, requests: plan.requests.into(), again_after: plan.again_after };
            self.go_on(self.started, running, ctx);
        }
    }

    /// Sends the next request of a plan, or ends it.
    fn go_on(&mut self, tag: u64, running: Running<R::Key>, ctx: &mut Context<'_>) {
        if let Some(request) = running.requests.front() {
            ctx.send(tag, request.clone());
            self.running.insert(tag, running);
            return;
        }
        self.queue.forget(&running.key);
        self.queue.done(&running.key);
        if let Some(delay) = running.again_after {
            self.timers.set(ctx, ctx.now + delay, running.key);
        }
    }
}

impl<R: Reconciler> Component for Controller<R> {
    fn observe(&mut self, seen: &Seen, ctx: &mut Context<'_>) {
        for key in self.reconciler.concerns(seen, ctx.cache) {
            self.queue.add(key);
        }
        self.work(ctx);
    }

    fn wake(&mut self, tag: u64, ctx: &mut Context<'_>) {
        if let Some(key) = self.timers.take(tag) {
            self.queue.add(key);
        }
        self.work(ctx);
    }

    fn answered(&mut self, tag: u64, answer: Result<Arc<Object>, ApiError>, ctx: &mut Context<'_>) {
        let Some(mut running) = self.running.remove(&tag) else { return };
        match answer {
            // Somebody else deleted it first, which is what a deletion wanted.
            Err(error)
                if error.reason != Reason::NotFound
                    || !matches!(running.requests.front(), Some(Request::Delete { .. })) =>
            {
                self.reconciler.refused(&running.key, running.requests.make_contiguous());
                let delay = self.queue.failed(&running.key);
                self.queue.done(&running.key);
                self.timers.set(ctx, ctx.now + delay, running.key);
            }
            _ => {
                running.requests.pop_front();
                self.go_on(tag, running, ctx);
            }
        }
        self.work(ctx);
    }
}

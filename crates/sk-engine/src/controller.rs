//! Runs a reconciler: work queue, workers, batches of requests, backoff.
//!
//! A reconciler decides purely: from a key and what its process has seen, it returns the requests that bring the
//! cluster nearer to the desired state. This file sends them batch by batch through the client's rate limit, tells the
//! reconciler the result of each, stops at the first error and retries later, as a controller's `sync` in Kubernetes
//! does when a call fails.

use std::collections::{BTreeMap, VecDeque};

use sk_apiserver::{Answer, KindTag, Reason, Request, Verb, View, WatchEvent};
use sk_core::{SimDuration, SimTime};

use crate::component::{Component, Context, Pending, Timers};
use crate::events::Event;
use crate::workqueue::{Delays, WorkQueue};

/// Decides what to do about one key.
pub(crate) trait Reconciler: Clone + Send + 'static {
    /// What it works on.
    type Key: Ord + Clone + Send;

    /// The kinds that it watches.
    const WATCHES: &'static [KindTag];

    /// See [`Component::pods_of`].
    fn pods_of(&self) -> Option<KindTag> {
        None
    }

    /// See [`Component::wants_pods`].
    fn wants_pods(&self) -> bool {
        true
    }

    /// How long a key waits after a sync that failed.
    const DELAYS: Delays = Delays::DEFAULT;

    /// Adds the keys that a change concerns to the queue.
    fn concerns(&mut self, event: &WatchEvent, view: View<'_>, queue: &mut WorkQueue<Self::Key>);

    /// What to do about `key`.
    fn reconcile(&mut self, key: &Self::Key, view: View<'_>, now: SimTime) -> Plan;

    /// How a request of a plan for `key` went.
    fn answered(&mut self, _key: &Self::Key, _verb: Verb, _answer: &Answer) {}

    /// What is left to do when all requests of the plan for `key` went well: what only their answers could tell.
    fn follow_up(&mut self, _key: &Self::Key) -> Option<Request> {
        None
    }

    /// The Events after a request of the plan for `key` was answered. The view still shows the state before.
    fn events(&self, _key: &Self::Key, _verb: Verb, _answer: &Answer, _view: View<'_>) -> Vec<Event> {
        Vec::new()
    }

    /// What is said for people at the beginning of a sync of `key`, whether or not it leads to a request. Asked for only where
    /// somebody listens.
    fn remarks(&self, _key: &Self::Key, _view: View<'_>, _now: SimTime) -> Vec<Event> {
        Vec::new()
    }

    /// What is still to be said of `key` after a request of its plan was refused.
    fn after_refusal(&mut self, _key: &Self::Key, _view: View<'_>, _now: SimTime) -> Option<Request> {
        None
    }

    /// Another request of the plan for `key` was refused, and so this one was not sent.
    fn abandoned(&mut self, _key: &Self::Key, _unsent: Verb) {}
}

/// What a reconciler wants done, in order.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Each batch is sent as a whole once the one before it has been answered.
    pub(crate) batches: VecDeque<Vec<Request>>,
    /// Look again after this long even if nothing changes.
    pub(crate) again_after: Option<SimDuration>,
}

impl Plan {
    pub(crate) fn nothing() -> Self {
        Self::default()
    }

    /// One request after the other.
    pub(crate) fn of(requests: impl IntoIterator<Item = Request>) -> Self {
        Self { batches: requests.into_iter().map(|request| vec![request]).collect(), again_after: None }
    }
}

/// A reconciler with its queue and workers.
#[derive(Clone)]
pub(crate) struct Controller<R: Reconciler> {
    reconciler: R,
    queue: WorkQueue<R::Key>,
    workers: usize,
    /// The plans under way, by number.
    running: BTreeMap<u64, Running<R::Key>>,
    started: u64,
    /// Requests without an answer: which plan's, and what it wants.
    sent: Pending<(u64, Verb)>,
    timers: Timers<R::Key>,
    /// When each key that waits for a timer is looked at: the earliest moment that anybody asked for.
    due: BTreeMap<R::Key, SimTime>,
}

#[derive(Clone)]
struct Running<K> {
    key: K,
    batches: VecDeque<Vec<Request>>,
    /// Requests of the current batch without an answer.
    unanswered: usize,
    refused: bool,
    /// Was the refusal spoken of?
    is_told: bool,
    again_after: Option<SimDuration>,
}

impl<R: Reconciler> Controller<R> {
    pub(crate) fn new(reconciler: R, workers: usize) -> Self {
        Self {
            reconciler,
            queue: WorkQueue::new(R::DELAYS),
            workers,
            running: BTreeMap::new(),
            started: 0,
            sent: Pending::new(),
            timers: Timers::new(),
            due: BTreeMap::new(),
        }
    }

    /// Looks at a key again at `at`, unless it is looked at earlier anyway (client-go's delaying queue).
    fn look_again(&mut self, ctx: &mut Context<'_>, at: SimTime, key: R::Key) {
        if self.due.get(&key).is_none_or(|due| at < *due) {
            self.due.insert(key.clone(), at);
            self.timers.set(ctx, at, key);
        }
    }

    /// Gives free workers something to do.
    fn work(&mut self, ctx: &mut Context<'_>) {
        while self.running.len() < self.workers {
            let Some(key) = self.queue.take() else { return };
            let now = ctx.now;
            ctx.tell(|view| self.reconciler.remarks(&key, view, now));
            let Plan { batches, again_after } = self.reconciler.reconcile(&key, ctx.view, ctx.now);
            self.started += 1;
            let running = Running { key, batches, unanswered: 0, refused: false, is_told: false, again_after };
            self.go_on(self.started, running, ctx);
        }
    }

    /// Sends the next batch of a plan, or ends it.
    fn go_on(&mut self, plan: u64, mut running: Running<R::Key>, ctx: &mut Context<'_>) {
        if running.refused {
            for unsent in running.batches.drain(..).flatten() {
                self.reconciler.abandoned(&running.key, unsent.verb());
            }
            let last_word = || self.reconciler.after_refusal(&running.key, ctx.view, ctx.now);
            if let Some(request) = (!running.is_told).then(last_word).flatten() {
                running.is_told = true;
                return self.send(plan, running, vec![request], ctx);
            }
            let delay = self.queue.failed(&running.key);
            self.queue.done(&running.key);
            return self.look_again(ctx, ctx.now + delay, running.key);
        }
        let batch = running.batches.pop_front();
        if let Some(batch) = batch.or_else(|| self.reconciler.follow_up(&running.key).map(|request| vec![request])) {
            return self.send(plan, running, batch, ctx);
        }
        self.queue.forget(&running.key);
        self.queue.done(&running.key);
        if let Some(delay) = running.again_after {
            self.look_again(ctx, ctx.now + delay, running.key);
        }
    }

    fn send(&mut self, plan: u64, mut running: Running<R::Key>, batch: Vec<Request>, ctx: &mut Context<'_>) {
        running.unanswered = batch.len();
        for request in batch {
            ctx.send(self.sent.add((plan, request.verb())), request);
        }
        self.running.insert(plan, running);
    }
}

impl<R: Reconciler> Component for Controller<R> {
    fn watches(&self) -> &'static [KindTag] {
        R::WATCHES
    }

    fn pods_of(&self) -> Option<KindTag> {
        self.reconciler.pods_of()
    }

    fn wants_pods(&self) -> bool {
        self.reconciler.wants_pods()
    }

    fn observe(&mut self, event: &WatchEvent, ctx: &mut Context<'_>) {
        self.reconciler.concerns(event, ctx.view, &mut self.queue);
        if self.queue.is_idle() {
            return;
        }
        for (key, delay) in self.queue.take_later() {
            self.look_again(ctx, ctx.now + delay, key);
        }
        self.work(ctx);
    }

    fn wake(&mut self, tag: u64, ctx: &mut Context<'_>) {
        // A timer that an earlier one has overtaken says nothing new.
        if let Some(key) = self.timers.take(tag).filter(|key| self.due.get(key).is_some_and(|due| *due <= ctx.now)) {
            self.due.remove(&key);
            self.queue.add(key);
        }
        self.work(ctx);
    }

    fn answered(&mut self, tag: u64, answer: Answer, ctx: &mut Context<'_>) {
        let Some((plan, verb)) = self.sent.take(tag) else { return };
        let Some(running) = self.running.get_mut(&plan) else { return };
        ctx.tell(|view| self.reconciler.events(&running.key, verb, &answer, view));
        self.reconciler.answered(&running.key, verb, &answer);
        running.refused |= is_failure(verb, &answer);
        running.unanswered -= 1;
        if running.unanswered == 0
            && let Some(running) = self.running.remove(&plan)
        {
            self.go_on(plan, running, ctx);
        }
        self.work(ctx);
    }
}

/// Somebody else deleted it first, which is what a deletion wanted and what a finalizer stood in the way of; any other
/// refusal fails the sync.
fn is_failure(verb: Verb, answer: &Answer) -> bool {
    match answer {
        Ok(_) => false,
        Err(error) => !(error.reason == Reason::NotFound && matches!(verb, Verb::Delete | Verb::RemoveFinalizer)),
    }
}

//! The state of a connection: idle, sending a request, or works for an authenticated caller. The state decides how
//! long the connection may stay open.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use futures::StreamExt;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::limits::Limits;
use crate::slots::{Id, Slots};

/// All connections of a server.
pub(crate) struct Connections {
    limits: Limits,
    slots: Mutex<Registry>,
}

struct Registry {
    slots: Slots,
    /// The states of open connections, to tell one that it is evicted.
    states: HashMap<Id, Arc<watch::Sender<State>>>,
}

/// What is known of a connection.
#[derive(Clone, Copy, Debug)]
struct State {
    /// Since when it does what it does.
    since: Instant,
    /// Has it been answered before?
    answered: bool,
    requests: u32,
    works: u32,
    evicted: bool,
}

/// One open connection: it holds its slot until it is dropped.
pub(crate) struct Connection {
    connections: Arc<Connections>,
    id: Id,
    from: IpAddr,
    state: Arc<watch::Sender<State>>,
    progress: Progress,
}

/// When something was last sent or received.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    began: Instant,
    /// Milliseconds after that.
    last: Arc<AtomicU64>,
}

impl Progress {
    pub(crate) fn note(&self) {
        let millis = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(millis, Ordering::Relaxed);
    }

    fn last(&self) -> Instant {
        self.began + Duration::from_millis(self.last.load(Ordering::Relaxed))
    }
}

impl Connections {
    pub(crate) fn new(limits: Limits) -> Self {
        let slots = Slots::new(limits.connections, limits.per_address, limits.at_work);
        Self { limits, slots: Mutex::new(Registry { slots, states: HashMap::new() }) }
    }

    fn registry(&self) -> std::sync::MutexGuard<'_, Registry> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accepts a connection. Another one may be evicted for it.
    pub(crate) fn enter(self: &Arc<Self>, from: IpAddr) -> Connection {
        let since = Instant::now();
        let mut registry = self.registry();
        let (id, out) = registry.slots.enter(from);
        if let Some(state) = out.and_then(|out| registry.states.remove(&out)) {
            state.send_modify(|state| state.evicted = true);
        }
        let state = State { since, answered: false, requests: 0, works: 0, evicted: false };
        let state = Arc::new(watch::Sender::new(state));
        registry.states.insert(id, Arc::clone(&state));
        let progress = Progress { began: since, last: Arc::default() };
        Connection { connections: Arc::clone(self), id, from, state, progress }
    }
}

impl Connection {
    pub(crate) fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// What a request handler may know and do about its connection.
    pub(crate) fn handle(&self) -> ConnectionHandle {
        ConnectionHandle {
            connections: Arc::clone(&self.connections),
            id: self.id,
            from: self.from,
            state: Arc::clone(&self.state),
        }
    }

    /// Waits until the connection has been open for too long, or somebody else needs its slot.
    pub(crate) async fn expired(&self) {
        let mut states = self.state.subscribe();
        loop {
            let state = *states.borrow_and_update();
            let until = self.until(&state);
            if state.evicted || until <= Instant::now() {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep_until(until) => {}
                // The sender is held here.
                _ = states.changed() => {}
            }
        }
    }

    fn until(&self, state: &State) -> Instant {
        let limits = &self.connections.limits;
        match state {
            State { works: 1.., .. } => state.since.max(self.progress.last()) + limits.stall,
            State { requests: 1.., .. } => state.since + limits.request,
            State { answered: true, .. } => state.since + limits.idle,
            State { answered: false, .. } => state.since + limits.first_request,
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut registry = self.connections.registry();
        registry.slots.leave(self.id);
        registry.states.remove(&self.id);
    }
}

/// Too many callers are being served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many requests are being served; try again in a moment")]
pub struct TooBusy;

/// A request's connection, as its handler knows it: an extension of every request.
#[derive(Clone)]
pub struct ConnectionHandle {
    connections: Arc<Connections>,
    id: Id,
    from: IpAddr,
    state: Arc<watch::Sender<State>>,
}

impl std::fmt::Debug for ConnectionHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConnectionHandle").field("from", &self.from).finish_non_exhaustive()
    }
}

impl ConnectionHandle {
    /// Where the caller is.
    pub fn from(&self) -> IpAddr {
        self.from
    }

    /// The caller is known: from now on the connection is not evicted.
    pub fn work(&self) -> Result<Work, TooBusy> {
        if !self.connections.registry().slots.begin_work(self.id) {
            return Err(TooBusy);
        }
        self.change(|state| state.works += 1);
        Ok(Work(self.clone()))
    }

    /// A request has arrived, apart from its body.
    pub(crate) fn begin_request(&self) -> ActiveRequest {
        self.change(|state| state.requests += 1);
        ActiveRequest(self.clone())
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        self.state.send_modify(|state| {
            change(state);
            state.since = Instant::now();
        });
    }
}

/// A request that is being answered.
pub(crate) struct ActiveRequest(ConnectionHandle);

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.0.change(|state| {
            state.requests = state.requests.saturating_sub(1);
            state.answered = true;
        });
    }
}

/// A caller at work, until this is dropped.
#[derive(Debug)]
#[must_use = "work that is dropped is over"]
pub struct Work(ConnectionHandle);

impl Work {
    /// Lets the work go on until the answer's last byte is sent.
    pub fn until_sent(self, response: Response) -> Response {
        response.map(|body| {
            let chunks = body.into_data_stream().inspect(move |_| {
                // Held by the stream, and dropped with it.
                let _at_work = &self;
            });
            Body::from_stream(chunks)
        })
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.0.connections.registry().slots.end_work(self.0.id);
        self.0.change(|state| state.works = state.works.saturating_sub(1));
    }
}

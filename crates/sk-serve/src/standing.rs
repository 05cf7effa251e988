//! The state of a connection: idle, sending a request, or working for an authenticated caller. The state decides how
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
use crate::places::{Id, Places};

/// All connections of a server.
pub(crate) struct Room {
    limits: Limits,
    places: Mutex<Seated>,
}

struct Seated {
    places: Places,
    /// Who is told to go.
    states: HashMap<Id, Arc<watch::Sender<State>>>,
}

/// What is known of a connection.
#[derive(Clone, Copy, Debug)]
struct State {
    /// Since when it does what it does.
    since: Instant,
    /// Has it been answered before?
    answered: bool,
    asking: u32,
    working: u32,
    pushed_out: bool,
}

/// One connection's place, until it is dropped.
pub(crate) struct Place {
    room: Arc<Room>,
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

impl Room {
    pub(crate) fn new(limits: Limits) -> Self {
        let places = Places::new(limits.places, limits.per_address, limits.at_work);
        Self { limits, places: Mutex::new(Seated { places, states: HashMap::new() }) }
    }

    fn seated(&self) -> std::sync::MutexGuard<'_, Seated> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection comes. Another one may have to go for it.
    pub(crate) fn enter(self: &Arc<Self>, from: IpAddr) -> Place {
        let since = Instant::now();
        let mut seated = self.seated();
        let (id, out) = seated.places.enter(from);
        if let Some(state) = out.and_then(|out| seated.states.remove(&out)) {
            state.send_modify(|state| state.pushed_out = true);
        }
        let state = State { since, answered: false, asking: 0, working: 0, pushed_out: false };
        let state = Arc::new(watch::Sender::new(state));
        seated.states.insert(id, Arc::clone(&state));
        let progress = Progress { began: since, last: Arc::default() };
        Place { room: Arc::clone(self), id, from, state, progress }
    }
}

impl Place {
    pub(crate) fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// What a request of this connection may know of it.
    pub(crate) fn standing(&self) -> Standing {
        Standing { room: Arc::clone(&self.room), id: self.id, from: self.from, state: Arc::clone(&self.state) }
    }

    /// Waits until the connection has been here for too long, or somebody else needs its place.
    pub(crate) async fn overstayed(&self) {
        let mut states = self.state.subscribe();
        loop {
            let state = *states.borrow_and_update();
            let until = self.until(&state);
            if state.pushed_out || until <= Instant::now() {
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
        let limits = &self.room.limits;
        match state {
            State { working: 1.., .. } => state.since.max(self.progress.last()) + limits.stall,
            State { asking: 1.., .. } => state.since + limits.request,
            State { answered: true, .. } => state.since + limits.idle,
            State { answered: false, .. } => state.since + limits.first_request,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut seated = self.room.seated();
        seated.places.leave(self.id);
        seated.states.remove(&self.id);
    }
}

/// Too many callers are at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many others are being served; try again in a moment")]
pub struct Crowded;

/// A request's connection, as its handler knows it: an extension of every request.
#[derive(Clone)]
pub struct Standing {
    room: Arc<Room>,
    id: Id,
    from: IpAddr,
    state: Arc<watch::Sender<State>>,
}

impl std::fmt::Debug for Standing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Standing").field("from", &self.from).finish_non_exhaustive()
    }
}

impl Standing {
    /// Where the caller is.
    pub fn from(&self) -> IpAddr {
        self.from
    }

    /// The caller is known: from now on nobody pushes the connection out.
    pub fn work(&self) -> Result<Work, Crowded> {
        if !self.room.seated().places.begin_work(self.id) {
            return Err(Crowded);
        }
        self.change(|state| state.working += 1);
        Ok(Work(self.clone()))
    }

    /// A request has come whole, its body aside.
    pub(crate) fn asks(&self) -> Asking {
        self.change(|state| state.asking += 1);
        Asking(self.clone())
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        self.state.send_modify(|state| {
            change(state);
            state.since = Instant::now();
        });
    }
}

/// A request that is being answered.
pub(crate) struct Asking(Standing);

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.change(|state| {
            state.asking = state.asking.saturating_sub(1);
            state.answered = true;
        });
    }
}

/// A caller at work, until this is dropped.
#[derive(Debug)]
#[must_use = "work that is dropped is over"]
pub struct Work(Standing);

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
        self.0.room.seated().places.end_work(self.0.id);
        self.0.change(|state| state.working = state.working.saturating_sub(1));
    }
}

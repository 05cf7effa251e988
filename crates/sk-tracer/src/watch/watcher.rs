//! The watcher of one kind: discovers where the kind is served, lists it, watches it, and starts again when it has to.
//!
//! | what happens | what the watcher does |
//! |---|---|
//! | the kind is not served (yet, or any more) | logs a warning and asks again; see [`Watcher::came_late`] |
//! | the connection ends, the API server restarts | resumes the watch from the last resource version; nothing is lost |
//! | 410 Gone, as a response or within the stream | lists the kind again; the time since the last event or bookmark is a gap |
//! | 401 | reads the credentials again |
//!
//! The watcher never drops an event: if the store is slow, it waits, and so does the API server. A full disk is handled
//! by the store, which keeps accepting events, so only history is missing afterwards.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{AsyncBufRead, AsyncReadExt};
use sk_core::{SimDuration, SimTime, SmolStr};
use sk_ingest::Rules;
use tokio::sync::{mpsc, watch};

use super::backoff::{Backoff, jitter};
use super::lines::Lines;
use super::plan::Task;
use super::resource::Resource;
use super::status::{Phase, Status};
use super::wire::{self, Event, Page};
use crate::access::Access;
use crate::clock::Clock;
use crate::error_reporter::Cause;
use crate::metrics::Metrics;
use crate::store::{Batch, Item, Message, Missed, Position};

/// Objects per page of a list, as kubectl and client-go ask for.
const PAGE_OBJECTS: usize = 500;
/// Bytes per page: 500 ordinary objects are 2 MB. A page beyond this is asked for again with fewer objects in it.
const MAX_PAGE_BYTES: u64 = 64 << 20;
/// How long one watch lives before the server ends it with a bookmark: somewhere between these, so that watches do not
/// end together. A client gives up on a connection that has been silent for 295 s.
const WATCH_SECONDS: (f64, f64) = (200.0, 280.0);

/// A watch that ends in order lives for minutes; client-go's reflector too takes one that lives for less than this for a
/// failure.
const SHORT_WATCH: Duration = Duration::from_secs(1);
/// A server that has forgotten a version says so at once, but after it has begun to answer.
const REFUSAL_LIMIT: Duration = Duration::from_millis(500);

/// How often the server may refuse to go on from a position, with other words than 410, before the kind is listed again:
/// waits up to the sixth add up to 13 s, more than a restart takes.
const MAX_REFUSALS: u32 = 6;
/// How long an event may be on its way here: milliseconds, and seconds from a busy server to a machine that stands still.
/// Should the watch be lost, what was missed is said to begin so long before the last event came. A gap that begins a little
/// too early is honest; one that begins too late is not.
const ON_ITS_WAY: SimDuration = SimDuration::from_secs(10);

/// What all watchers share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) access: Access,
    pub(crate) rules: Arc<Rules>,
    pub(crate) clock: Arc<Clock>,
    pub(crate) metrics: Arc<Metrics>,
    /// How long a kind must not be served before its objects count as gone.
    pub(crate) gone_after: Duration,
}

/// The time before the first list of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unseen {
    /// Objects may exist since then.
    Since(SimTime),
    /// The API server last reported then that it does not serve the kind.
    AbsentAt(SimTime),
}

/// The watcher of one kind.
pub(crate) struct Watcher {
    shared: Arc<Shared>,
    status: Arc<Status>,
    store: mpsc::Sender<Message>,
    position: Option<Position>,
    missed: Option<Missed>,
    /// When this watcher was made.
    began: SimTime,
    /// What is not known of the kind before its first list.
    unseen: Option<Unseen>,
    /// May the store hold objects of the kind?
    may_hold: bool,
    backoff: Backoff,
    /// Requests an immediate retry.
    nudges: watch::Receiver<u64>,
    /// How often in a row the server has refused to resume from the position.
    refusals: u32,
}

/// Why a list or a watch ended.
#[derive(Debug, thiserror::Error)]
enum Stop {
    /// 410: the server no longer has the resource version.
    #[error("the API server no longer has the history: {0}")]
    Expired(String),
    /// The kind is gone.
    #[error("the API server no longer serves the kind")]
    NotServed,
    /// The API server rejects the credentials.
    #[error("the API server rejects the credentials: {0}")]
    Unauthorised(String),
    /// The tracer ends.
    #[error("the tracer is shutting down")]
    Ending,
    /// A page exceeds the memory set aside for it.
    #[error("a page of {0} objects is larger than {MAX_PAGE_BYTES} bytes")]
    PageTooLarge(usize),
    /// The server refuses.
    #[error("the API server answers {}: {}", .0.code, .0.message)]
    Refused(Box<kube::core::Status>),
    /// The connection fails.
    #[error("send the request: {0}")]
    Request(Box<kube::Error>),
    /// The connection breaks.
    #[error("read the response: {0}")]
    Read(#[from] std::io::Error),
    /// The response is not Kubernetes' JSON.
    #[error("parse the response: {0}")]
    Rubbish(#[from] serde_json::Error),
}

impl Stop {
    fn cause(&self) -> Cause {
        match self {
            Self::Expired(_) => Cause::Refused(410),
            Self::NotServed => Cause::Refused(404),
            Self::Unauthorised(_) => Cause::Unauthorised,
            Self::Refused(status) => Cause::of_status(status.code),
            Self::Request(error) => Cause::of(error),
            Self::Read(_) | Self::Ending => Cause::Unreachable,
            Self::PageTooLarge(_) | Self::Rubbish(_) => Cause::Garbled,
        }
    }
}

impl From<kube::Error> for Stop {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => match status.code {
                410 => Self::Expired(status.message),
                404 => Self::NotServed,
                401 => Self::Unauthorised(status.message),
                _ => Self::Refused(status),
            },
            other => Self::Request(Box::new(other)),
        }
    }
}

impl Watcher {
    /// A watcher that resumes from a position, or begins with a list.
    pub(crate) fn new(
        shared: Arc<Shared>,
        status: Arc<Status>,
        store: mpsc::Sender<Message>,
        position: Option<Position>,
    ) -> Self {
        if let Some(position) = &position {
            status.reached(&position.version);
            status.seen(position.seen);
        }
        let (nudges, backoff, began) = (status.nudges(), Backoff::default(), shared.clock.now());
        Self {
            shared,
            status,
            store,
            position,
            missed: None,
            began,
            unseen: None,
            may_hold: false,
            backoff,
            nudges,
            refusals: 0,
        }
    }

    /// There is a log already, which begins at that moment. It may hold objects of the kind; if it has no position of it,
    /// nothing was seen of the kind since then.
    pub(crate) fn after(mut self, beginning: Option<SimTime>) -> Self {
        self.may_hold = beginning.is_some();
        self.unseen = beginning.map(Unseen::Since);
        self
    }

    /// After a configuration that has changed, or a log that was lost: what was missed until the first list.
    pub(crate) fn having_missed(mut self, missed: Option<Missed>) -> Self {
        self.missed = missed;
        self
    }

    /// Watches until the tracer ends.
    pub(crate) async fn run(mut self) {
        loop {
            let resource = self.wait_until_served().await;
            self.status.served_at(resource.clone());
            if self.follow(&resource).await.is_err() {
                return;
            }
        }
    }

    fn task(&self) -> &Task {
        &self.status.task
    }

    /// Discovers where the kind is served; retries until that is known.
    async fn wait_until_served(&mut self) -> Resource {
        let mut not_served_since = None;
        loop {
            let (asked, nudged) = (self.shared.clock.now(), *self.nudges.borrow_and_update());
            match Resource::find(&self.shared.access.client(), &self.task().kind).await {
                Ok(Some(resource)) => return resource,
                Ok(None) => {
                    let since = *not_served_since.get_or_insert_with(Instant::now);
                    if since.elapsed() >= self.shared.gone_after && self.may_hold {
                        self.find_nothing().await;
                    }
                    if self.status.progress().phase != Phase::NotServed {
                        let kind = &self.task().kind;
                        tracing::warn!(%kind, "the API server does not serve this kind; waiting for it");
                    }
                    self.unseen = Some(Unseen::AbsentAt(asked));
                    self.shared.access.failures().recovered(&self.task().kind.to_string());
                    self.status.not_served(nudged);
                    self.back_off().await;
                }
                Err(error) => self.recover(&error.into()).await,
            }
        }
    }

    /// Ends all objects of a kind that is no longer served; no list will ever report that.
    async fn find_nothing(&mut self) {
        self.lose_position("the API server no longer serves the kind").await;
        let mut batch = self.batch();
        batch.push(Item::ListBegins, 0);
        batch.push(Item::ListEnded(self.shared.clock.now(), self.missed.take()), 0);
        // The tracer may be ending; then nobody needs to know.
        let _ = self.send(batch).await;
        self.may_hold = false;
        self.status.reached("0");
    }

    /// Lists and watches until the kind is gone; `Err` when the tracer ends.
    async fn follow(&mut self, resource: &Resource) -> Result<(), Stop> {
        loop {
            let began = Instant::now();
            let stop = match self.list_and_watch(resource).await {
                Ok(()) if began.elapsed() >= SHORT_WATCH => continue,
                // A server that ends every watch at once is not asked in a circle.
                Ok(()) => {
                    self.back_off().await;
                    continue;
                }
                Err(stop) => stop,
            };
            match &stop {
                Stop::Ending => return Err(stop),
                Stop::Expired(_) => self.relist_after(&stop).await,
                Stop::NotServed => {
                    self.lose_position(&stop.to_string()).await;
                    // Discovery may name a kind a moment before it is served, or after.
                    self.back_off().await;
                    return Ok(());
                }
                Stop::Refused(status) if status.code != 403 && status.code != 429 => {
                    self.refusals += 1;
                    if self.refusals >= MAX_REFUSALS {
                        self.refusals = 0;
                        self.lose_position(&stop.to_string()).await;
                    }
                    self.recover(&stop).await;
                }
                _ => self.recover(&stop).await,
            }
        }
    }

    /// Lists everything again, because the server no longer has this watch's resource version.
    async fn relist_after(&mut self, stop: &Stop) {
        let kind = &self.task().kind;
        tracing::warn!(%kind, reason = %stop, "listing this kind again; the time in between is a gap");
        // A list can expire too, between its pages. Then the next one is not begun at once.
        if self.position.is_none() {
            self.note_unseen();
            self.back_off().await;
        }
        self.lose_position(&stop.to_string()).await;
    }

    async fn list_and_watch(&mut self, resource: &Resource) -> Result<(), Stop> {
        self.nudges.mark_unchanged();
        let position = match self.position.clone() {
            Some(position) => position,
            None => self.list(resource).await?,
        };
        self.watch(resource, &position.version).await
    }

    /// The position is worth nothing any more. What was missed begins at the last sign of life. The log is told at once,
    /// so that whoever is killed before the next list has ended does not forget it.
    async fn lose_position(&mut self, reason: &str) {
        if let Some(position) = self.position.take() {
            self.missed.get_or_insert(Missed { from: position.seen, reason: reason.to_owned() });
            let mut batch = self.batch();
            batch.push(Item::Lost, 0);
            // A tracer that is ending has nobody to tell.
            let _ = self.send(batch).await;
        }
    }

    /// The API server has not answered: from when on nothing was seen of a kind that was never listed.
    fn note_unseen(&mut self) {
        if self.position.is_none() {
            let from = match self.unseen {
                Some(Unseen::Since(from) | Unseen::AbsentAt(from)) => from,
                None => self.began,
            };
            self.unseen = Some(Unseen::Since(from));
        }
    }

    /// Reports a failure and waits before the next attempt.
    async fn recover(&mut self, stop: &Stop) {
        self.note_unseen();
        let wait = self.backoff.next();
        let kind = &self.task().kind;
        tracing::debug!(%kind, problem = %stop, again_in = ?wait, "this kind's watch broke");
        self.shared.access.failures().note(&kind.to_string(), stop.cause(), stop);
        self.shared.metrics.reconnect(kind);
        self.shared.metrics.watching(kind, false);
        self.status.enter(Phase::Failing(stop.to_string()));
        if let Stop::Unauthorised(_) = stop {
            self.shared.access.renew().await;
        }
        self.pause(wait).await;
    }

    async fn back_off(&mut self) {
        let wait = self.backoff.next();
        self.pause(wait).await;
    }

    /// Waits before the next attempt, unless somebody asks for it since the last one began.
    async fn pause(&mut self, wait: Duration) {
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            // The sender lives as long as the status, which is held here.
            _ = self.nudges.changed() => {}
        }
    }

    /// Sends all objects of the kind to the store, page by page. Returns where to watch from.
    async fn list(&mut self, resource: &Resource) -> Result<Position, Stop> {
        self.status.enter(Phase::Listing);
        // A list shows the state at its beginning: what happens while its pages come is not seen by it.
        let seen = self.shared.clock.now();
        self.may_hold = true;
        let mut limit = PAGE_OBJECTS;
        let (version, recorded) = loop {
            match self.list_pages(resource, limit).await {
                Err(Stop::PageTooLarge(objects)) if objects > 1 => limit = objects.div_ceil(8),
                listed_or_failed => break listed_or_failed?,
            }
        };
        let mut batch = self.batch();
        let missed = self.missed.clone().or_else(|| self.came_late(recorded));
        batch.push(Item::ListEnded(self.shared.clock.now(), missed), 0);
        let position = Position { version, seen };
        batch.position = Some(position.clone());
        self.send(batch).await?;
        self.shared.metrics.listed(&self.task().kind);
        (self.missed, self.unseen) = (None, None);
        self.status.completed();
        self.backoff.reset();
        self.stand_at(position.clone());
        Ok(position)
    }

    /// What was missed of a kind until its first list: if the log was begun without it, or the API server did not let it be
    /// listed, everything since. If it came to be served while the tracer ran and has objects when it is first listed, they
    /// came, and perhaps changed, since it was last known not to be there. If it has none, that is not a gap: nothing but
    /// objects that came and went in these moments can have been missed, and a kind that is merely new would otherwise
    /// cast doubt on every trace. Nor is there one if the very first attempt to list the kind succeeds on a new log: that is
    /// where its history begins.
    fn came_late(&self, recorded: usize) -> Option<Missed> {
        let from = match self.unseen? {
            Unseen::Since(from) => from,
            Unseen::AbsentAt(from) if recorded > 0 => from,
            Unseen::AbsentAt(_) => return None,
        };
        let reason = "the kind was not watched before: what happened until it was first listed was not seen";
        Some(Missed { from, reason: reason.to_owned() })
    }

    /// The version that all pages show, and how many of the objects are recorded.
    async fn list_pages(&mut self, resource: &Resource, limit: usize) -> Result<(SmolStr, usize), Stop> {
        let mut batch = self.batch();
        batch.push(Item::ListBegins, 0);
        let (mut next, mut version, mut recorded) = (String::new(), None, 0);
        loop {
            let bytes = self.page(resource, limit, &next).await?;
            let page: Page<'_> = serde_json::from_slice(&bytes)?;
            for object in page.items.unwrap_or_default() {
                let object = object.get().as_bytes();
                if let Some(sighting) = self.sieve(object) {
                    recorded += 1;
                    batch.push(Item::Applied(self.shared.clock.now(), sighting), object.len());
                }
                if batch.is_full() {
                    let full = std::mem::replace(&mut batch, self.batch());
                    self.send(full).await?;
                }
            }
            // All pages show the state at the first one's version.
            let version = version.get_or_insert(page.metadata.resource_version);
            next = page.metadata.next;
            if next.is_empty() {
                let version = version.clone();
                self.send(batch).await?;
                return Ok((version, recorded));
            }
        }
    }

    async fn page(&self, resource: &Resource, limit: usize, next: &str) -> Result<Vec<u8>, Stop> {
        let request = resource.list(self.task().depth(), limit, next)?;
        let stream = self.shared.access.client().request_stream(request).await?;
        let mut bytes = Vec::new();
        Box::pin(stream).take(MAX_PAGE_BYTES + 1).read_to_end(&mut bytes).await?;
        if bytes.len() as u64 > MAX_PAGE_BYTES { Err(Stop::PageTooLarge(limit)) } else { Ok(bytes) }
    }

    /// Sends all changes to the store until the server ends the watch.
    async fn watch(&mut self, resource: &Resource, version: &str) -> Result<(), Stop> {
        let (shortest, longest) = WATCH_SECONDS;
        let seconds = shortest + (longest - shortest) * jitter();
        let request = resource.watch(self.task().depth(), version, seconds as u64)?;
        let stream = self.shared.access.client().request_stream(request).await?;
        self.status.enter(Phase::Watching);
        self.shared.metrics.watching(&self.task().kind, true);
        self.shared.access.failures().recovered(&self.task().kind.to_string());
        let mut lines = Lines::new(Box::pin(stream));
        loop {
            self.take_arrived(&mut lines).await?;
            if !self.more(&mut lines).await? {
                return Ok(());
            }
            // The connection works; the next failure is the first in a row.
            self.backoff.reset();
        }
    }

    /// Waits for more. A watch that goes on from the log is as good as a list once something has come of it, or the server
    /// has not refused it at once.
    async fn more<R: AsyncBufRead + Unpin>(&self, lines: &mut Lines<R>) -> Result<bool, Stop> {
        if !self.status.progress().complete {
            if let Ok(more) = tokio::time::timeout(REFUSAL_LIMIT, lines.more()).await {
                return Ok(more?);
            }
            self.status.completed();
        }
        Ok(lines.more().await?)
    }

    /// Sends on what has arrived whole. What came before a line that ends the watch is sent on as well.
    async fn take_arrived<R: AsyncBufRead + Unpin>(&mut self, lines: &mut Lines<R>) -> Result<(), Stop> {
        loop {
            let mut batch = self.batch();
            let mut taken = Ok(());
            while !batch.is_full() && taken.is_ok() {
                let Some(line) = lines.arrived() else { break };
                taken = self.take(line, &mut batch);
            }
            let is_last = !batch.is_full();
            self.send_on(batch).await?;
            taken?;
            if is_last {
                return Ok(());
            }
        }
    }

    /// Reads one line of a watch into the batch.
    fn take(&self, line: &[u8], batch: &mut Batch) -> Result<(), Stop> {
        let (object, deleted) = match Event::read(line)? {
            Some(Event::Applied(object)) => (object, false),
            Some(Event::Deleted(object)) => (object, true),
            Some(Event::Bookmark(version)) => {
                batch.position = Some(self.come_to(version));
                return Ok(());
            }
            Some(Event::Failed(failure)) if failure.code == 410 => return Err(Stop::Expired(failure.message)),
            Some(Event::Failed(failure)) => {
                let status = kube::core::Status::failure(&failure.message, "watch").with_code(failure.code);
                return Err(Stop::Refused(Box::new(status)));
            }
            None => return Ok(()),
        };
        batch.events += 1;
        match self.sieve(object) {
            Some(sighting) => {
                let now = self.shared.clock.now();
                batch.position = Some(self.come_to(sighting.resource_version.clone()));
                batch.push(
                    if deleted { Item::Deleted(now, sighting) } else { Item::Applied(now, sighting) },
                    object.len(),
                );
            }
            // What is not recorded still moves the watch on.
            None => batch.position = Some(self.come_to(wire::version_of(object)?)),
        }
        Ok(())
    }

    /// Where the watch stands when this version has just been received. When what follows it happened, nobody can tell:
    /// after the version, which was on its way for a while; but never before the list that the watch began with.
    fn come_to(&self, version: SmolStr) -> Position {
        let sent = self.shared.clock.now() - ON_ITS_WAY;
        let seen = self.position.as_ref().map_or(sent, |before| before.seen.max(sent));
        Position { version, seen }
    }

    /// What is kept of an object; `None` if nothing is.
    fn sieve(&self, object: &[u8]) -> Option<sk_ingest::Sighting> {
        let Task { kind, role } = self.task();
        match self.shared.rules.sieve(kind, *role, object) {
            Ok(sighting) => sighting,
            Err(error) => {
                self.shared.metrics.refused(kind);
                tracing::warn!(%kind, %error, bytes = object.len(), "an object cannot be read and is not recorded");
                None
            }
        }
    }

    fn stand_at(&mut self, position: Position) {
        self.status.seen(position.seen);
        self.refusals = 0;
        self.position = Some(position);
    }

    fn batch(&self) -> Batch {
        Batch::new(self.task().kind.clone())
    }

    /// Sends a batch of a watch, and remembers how far that brings the watch.
    async fn send_on(&mut self, batch: Batch) -> Result<(), Stop> {
        let Some(position) = batch.position.clone() else { return Ok(()) };
        self.send(batch).await?;
        self.status.completed();
        self.stand_at(position);
        Ok(())
    }

    async fn send(&self, batch: Batch) -> Result<(), Stop> {
        let (version, events) = (batch.position.as_ref().map(|position| position.version.clone()), batch.events);
        self.store.send(Message::Batch(batch)).await.map_err(|_| Stop::Ending)?;
        // Not before: what is counted is on its way to the log, also if the tracer ends now.
        self.shared.metrics.events(&self.task().kind, events);
        if let Some(version) = version {
            self.status.reached(&version);
        }
        Ok(())
    }
}

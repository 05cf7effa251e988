//! Messages to the store, and how many of them may be in flight.

use sk_core::{Gvk, SimTime, SmolStr};
use sk_ingest::{LookupResult, OwnerLookup, Sighting};
use tokio::sync::oneshot;

use super::StoreError;

/// Items in one batch at most: enough that a batch costs little per item, few enough that exports need not wait long.
const BATCH_ITEMS: usize = 512;
/// Bytes that the items of one batch had on the wire, at most, unless it is one item.
const BATCH_BYTES: usize = 1 << 20;
/// Batches under way at most: 64 of 1 MiB are 64 MiB, and at 20,000 events of 2.4 KB a second more than a second's worth.
pub(crate) const QUEUE_BATCHES: usize = 64;

/// What is sent to the store.
#[derive(Debug)]
pub(crate) enum Message {
    /// From a watcher.
    Batch(Batch),
    /// The result of an owner lookup.
    LookupEnded(Box<(OwnerLookup, LookupResult)>),
    /// Pods that were read again.
    Reread(Vec<Sighting>),
    /// Answer when everything sent before can be read.
    Flush(oneshot::Sender<Flushed>),
    /// Sync everything to disk and stop.
    End,
}

/// Everything sent before can be read, if it could be written.
#[derive(Debug)]
pub(crate) struct Flushed {
    pub(crate) written: Result<(), StoreError>,
    /// Owners that the API server is being asked about.
    pub(crate) open_lookups: usize,
}

/// The position of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// The resource version up to which everything was received.
    pub(crate) version: SmolStr,
    /// The time up to which everything was received.
    pub(crate) seen: SimTime,
}

/// Events of a watcher, in order.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) kind: Gvk,
    pub(crate) items: Vec<Item>,
    /// The position of the watch after this batch.
    pub(crate) position: Option<Position>,
    /// Events of a watch in it, recorded or not.
    pub(crate) events: u64,
    bytes: usize,
}

/// One event of a watcher.
#[derive(Debug)]
pub(crate) enum Item {
    /// An object, as it is.
    Applied(SimTime, Sighting),
    /// A deleted object in its last state.
    Deleted(SimTime, Sighting),
    /// The watch cannot resume: events are missed from there until the kind is listed.
    Lost,
    /// A list of all objects of the kind begins.
    ListBegins,
    /// The list is complete; events before it may have been missed.
    ListEnded(SimTime, Option<Missed>),
}

/// A gap of a watch, up to the end of the list that follows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Missed {
    pub(crate) from: SimTime,
    pub(crate) reason: String,
}

impl Batch {
    pub(crate) fn new(kind: Gvk) -> Self {
        Self { kind, items: Vec::new(), position: None, events: 0, bytes: 0 }
    }

    /// Adds an item that had so many bytes on the wire.
    pub(crate) fn push(&mut self, item: Item, bytes: usize) {
        self.items.push(item);
        self.bytes += bytes;
    }

    /// Is it time to send it?
    pub(crate) fn is_full(&self) -> bool {
        self.items.len() >= BATCH_ITEMS || self.bytes >= BATCH_BYTES
    }

    /// When its first item was received.
    pub(crate) fn received(&self) -> Option<SimTime> {
        self.items.iter().find_map(|item| match item {
            Item::Applied(at, _) | Item::Deleted(at, _) | Item::ListEnded(at, _) => Some(*at),
            Item::Lost | Item::ListBegins => None,
        })
    }
}

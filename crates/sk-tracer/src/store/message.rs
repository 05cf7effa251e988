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
    /// What the API server said about an owner.
    LookupEnded(Box<(OwnerLookup, LookupResult)>),
    /// Pods that were looked at again.
    Looked(Vec<Sighting>),
    /// Answer when everything sent before can be read.
    Flush(oneshot::Sender<Flushed>),
    /// Put everything on disk and end.
    End,
}

/// Everything sent before can be read, if it could be written.
#[derive(Debug)]
pub(crate) struct Flushed {
    pub(crate) written: Result<(), StoreError>,
    /// Owners that the API server is being asked about.
    pub(crate) open_lookups: usize,
}

/// Where a watch stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// The version up to which everything was seen.
    pub(crate) version: SmolStr,
    /// Until when nothing can have happened that was not seen.
    pub(crate) seen: SimTime,
}

/// What a watcher saw, in order.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) kind: Gvk,
    pub(crate) items: Vec<Item>,
    /// How far, with this batch, the watch has come.
    pub(crate) position: Option<Position>,
    /// Events of a watch in it, recorded or not.
    pub(crate) events: u64,
    bytes: usize,
}

/// One thing that a watcher saw.
#[derive(Debug)]
pub(crate) enum Item {
    /// An object, as it is.
    Applied(SimTime, Sighting),
    /// An object that is gone, as it was.
    Deleted(SimTime, Sighting),
    /// The watch cannot go on from where it was: what happens from there on is missed until the kind is listed.
    Lost,
    /// From now on come all objects of the kind.
    ListBegins,
    /// Those were all; before them something may have been missed.
    ListEnded(SimTime, Option<Missed>),
}

/// A time that a watch did not see, up to the end of the list that follows it.
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

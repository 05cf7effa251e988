//! Writes v2, so that SimKube 2 can read it.
//!
//! The format needs the length of every list before the list, so events wait in a temporary file until all of them are
//! there. Records are grouped by second. If an object is both applied and deleted within a second, the second is split into
//! several events, because SimKube 2 would lose the object otherwise; an event that was read from a v2 trace stays whole.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;

use sk_core::{ObjectRef, SimTime, StableHash};

use super::write_lives::LivesWriter;
use crate::msgpack::{MAX_OBJECT_BYTES, encode};
use crate::trace::header::Header;
use crate::trace::lives::OwnerLives;
use crate::trace::record::{Change, Mark, Record};
use crate::trace::rows::{IndexPart, Row};
use crate::trace::spool::{Spool, SpoolFolder};
use crate::trace::write::{Losses, WriteError};

/// The most objects in an index that is made here: 2^22 at about 150 bytes is 600 MiB.
const MAX_INDEXED: usize = 1 << 22;

/// How many objects of one second are remembered: 2^18 at about 150 bytes is 40 MiB. A fuller second becomes several
/// events, which means the same.
const MAX_TOUCHED: usize = 1 << 18;

/// Writes a trace as v2.
pub(crate) struct Writer<W> {
    out: W,
    config: Vec<u8>,
    events: List,
    current: Option<Event>,
    index: Index,
    lives: LivesWriter,
    losses: Losses,
    folder: SpoolFolder,
    /// Reused: one encoded object.
    bytes: Vec<u8>,
}

/// Encoded elements and how many they are.
pub(super) struct List {
    pub(super) bytes: Spool,
    pub(super) count: u64,
}

/// The event that is being put together.
struct Event {
    secs: i64,
    /// It was read from a v2 trace and stays as it was.
    whole: bool,
    applied: List,
    deleted: List,
    /// Where each delete lies in `deleted`, and where it goes; empty unless the order changes.
    delete_order: Vec<u32>,
    delete_ends: Vec<u64>,
    /// What happened to each object in this event.
    touched: HashMap<ObjectRef, Touch>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Touch {
    Applied,
    Deleted,
}

/// The trace's index: carried from the v2 trace it was, or made from the objects.
enum Index {
    Carried(Box<Grouped<String>>),
    Made { kinds: BTreeMap<String, BTreeMap<String, StableHash>>, len: usize },
}

/// Maps by key, where the parts of one key come one after another.
pub(super) struct Grouped<K> {
    done: List,
    open: Option<(K, Vec<u8>, List)>,
    folder: SpoolFolder,
}

impl List {
    pub(super) fn new(folder: &SpoolFolder) -> Self {
        Self { bytes: Spool::new(folder), count: 0 }
    }

    pub(super) fn push(&mut self, element: &[u8]) -> Result<(), WriteError> {
        self.count += 1;
        self.bytes.append(element)
    }
}

/// A list's length as MessagePack can say it.
pub(super) fn len32(count: u64, what: &'static str) -> Result<usize, WriteError> {
    let limit = u64::from(u32::MAX);
    if count > limit {
        return Err(WriteError::TooMany { what, limit });
    }
    usize::try_from(count).map_err(|_| WriteError::TooMany { what, limit })
}

impl<K: PartialEq> Grouped<K> {
    pub(super) fn new(folder: &SpoolFolder) -> Self {
        Self { done: List::new(folder), open: None, folder: folder.clone() }
    }

    /// The open map of `key`, whose encoded form is `encoded`.
    pub(super) fn group(&mut self, key: K, encoded: impl FnOnce(&K) -> Vec<u8>) -> Result<&mut List, WriteError> {
        if self.open.as_ref().is_some_and(|(open, ..)| *open != key) {
            self.close()?;
        }
        let (_, _, list) = self.open.get_or_insert_with(|| {
            let encoded = encoded(&key);
            (key, encoded, List::new(&self.folder))
        });
        Ok(list)
    }

    fn close(&mut self) -> Result<(), WriteError> {
        if let Some((_, mut head, mut list)) = self.open.take() {
            encode::map_len(&mut head, len32(list.count, "objects of one kind")?);
            self.done.push(&head)?;
            list.bytes.drain_into(&mut self.done.bytes)?;
        }
        Ok(())
    }

    /// Writes the whole map under the top-level key `name`.
    pub(super) fn drain(mut self, name: &str, out: &mut impl Write) -> Result<(), WriteError> {
        self.close()?;
        let mut head = Vec::new();
        encode::text(&mut head, name);
        encode::map_len(&mut head, len32(self.done.count, "owners")?);
        out.write_all(&head).map_err(WriteError::Output)?;
        self.done.bytes.drain(out)
    }
}

impl<W: Write> Writer<W> {
    pub(crate) fn new(out: W, header: &Header, folder: &SpoolFolder) -> Self {
        let mut config = Vec::new();
        encode::value(&mut config, header.config.as_written());
        let index = match header.origin {
            Some(2) => Index::Carried(Box::new(Grouped::new(folder))),
            _ => Index::Made { kinds: BTreeMap::new(), len: 0 },
        };
        Self {
            out,
            config,
            events: List::new(folder),
            current: None,
            index,
            lives: LivesWriter::new(folder),
            folder: folder.clone(),
            losses: Losses::default(),
            bytes: Vec::new(),
        }
    }

    pub(crate) fn record(&mut self, record: &Record) -> Result<(), WriteError> {
        let secs = record.at.as_secs();
        if record.at != SimTime::from_secs(secs) {
            self.losses.subsecond_times += 1;
        }
        match &record.change {
            Change::Mark(Mark::V2Event { delete_order }) => self.begin(secs, true, delete_order.clone()),
            Change::Mark(Mark::Moment) if self.current.as_ref().is_some_and(|event| event.secs == secs) => Ok(()),
            Change::Mark(Mark::Moment) => self.begin(secs, false, Vec::new()),
            Change::Apply(object) => {
                self.index.note(object.reference(), object.value())?;
                self.bytes.clear();
                encode::value(&mut self.bytes, object.value());
                self.put(secs, object.reference(), Touch::Applied)
            }
            Change::Delete(deletion) => {
                self.bytes.clear();
                encode::value(&mut self.bytes, &deletion.to_value());
                self.put(secs, &deletion.object, Touch::Deleted)
            }
        }
    }

    /// Adds the object in `bytes` to the event of that second, or to a new one if it does not fit there.
    fn put(&mut self, secs: i64, object: &ObjectRef, touch: Touch) -> Result<(), WriteError> {
        if self.bytes.len() > MAX_OBJECT_BYTES {
            return Err(WriteError::TooLarge { what: object.to_string(), limit: MAX_OBJECT_BYTES });
        }
        let fits = self.current.as_ref().is_some_and(|event| {
            let alike = event.touched.get(object).is_none_or(|before| *before == touch);
            event.secs == secs && (event.whole || (alike && event.touched.len() < MAX_TOUCHED))
        });
        if !fits {
            self.begin(secs, false, Vec::new())?;
        }
        let Some(event) = &mut self.current else { return Ok(()) };
        if !event.whole {
            event.touched.insert(object.clone(), touch);
        }
        match touch {
            Touch::Applied => event.applied.push(&self.bytes),
            Touch::Deleted => {
                event.deleted.push(&self.bytes)?;
                if !event.delete_order.is_empty() {
                    event.delete_ends.push(event.deleted.bytes.len());
                }
                Ok(())
            }
        }
    }

    fn begin(&mut self, secs: i64, whole: bool, delete_order: Vec<u32>) -> Result<(), WriteError> {
        self.end_event()?;
        self.current = Some(Event {
            secs,
            whole,
            applied: List::new(&self.folder),
            deleted: List::new(&self.folder),
            delete_order,
            delete_ends: Vec::new(),
            touched: HashMap::new(),
        });
        Ok(())
    }

    fn end_event(&mut self) -> Result<(), WriteError> {
        let Some(mut event) = self.current.take() else { return Ok(()) };
        let mut head = Vec::new();
        encode::map_len(&mut head, 3);
        encode::text(&mut head, "ts");
        encode::signed(&mut head, event.secs);
        encode::text(&mut head, "applied_objs");
        encode::array_len(&mut head, len32(event.applied.count, "objects in one second")?);
        self.events.push(&head)?;
        event.applied.bytes.drain_into(&mut self.events.bytes)?;
        head.clear();
        encode::text(&mut head, "deleted_objs");
        encode::array_len(&mut head, len32(event.deleted.count, "objects in one second")?);
        self.events.bytes.append(&head)?;
        event.restore_delete_order()?;
        event.deleted.bytes.drain_into(&mut self.events.bytes)
    }

    pub(crate) fn row(&mut self, row: &Row) -> Result<(), WriteError> {
        match row {
            Row::Lives(lives) => self.owner_lives(lives),
            Row::Index(part) => self.index.carry(part),
            _ => {
                self.losses.rows += 1;
                Ok(())
            }
        }
    }

    fn owner_lives(&mut self, lives: &OwnerLives) -> Result<(), WriteError> {
        self.losses.lives += self.lives.row(lives)?;
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<(W, Losses), WriteError> {
        self.end_event()?;
        let mut head = Vec::new();
        encode::map_len(&mut head, 5);
        encode::text(&mut head, "version");
        encode::unsigned(&mut head, 2);
        encode::text(&mut head, "config");
        head.extend(&self.config);
        encode::text(&mut head, "events");
        encode::array_len(&mut head, len32(self.events.count, "events")?);
        self.out.write_all(&head).map_err(WriteError::Output)?;
        self.events.bytes.drain(&mut self.out)?;
        self.index.finish(&self.folder)?.drain("index", &mut self.out)?;
        self.lives.drain(&mut self.out)?;
        Ok((self.out, self.losses))
    }
}

impl Event {
    /// Puts the deletes where they stood in the event that they were read from, if all of them are still there.
    fn restore_delete_order(&mut self) -> Result<(), WriteError> {
        let count = self.delete_ends.len();
        let mut at = vec![None; count];
        if self.delete_order.len() != count {
            return Ok(());
        }
        let starts = std::iter::once(0).chain(self.delete_ends.iter().copied());
        for ((start, end), position) in starts.zip(&self.delete_ends).zip(&self.delete_order) {
            let Some(slot) = usize::try_from(*position).ok().and_then(|position| at.get_mut(position)) else {
                return Ok(());
            };
            *slot = Some((start, end - start));
        }
        let mut ordered = self.deleted.bytes.another();
        let mut one = Vec::new();
        for (start, len) in at.into_iter().flatten() {
            one.clear();
            self.deleted.bytes.copy(start, len, &mut one)?;
            ordered.append(&one)?;
        }
        if ordered.len() == self.deleted.bytes.len() {
            self.deleted.bytes = ordered;
        }
        Ok(())
    }
}

impl Index {
    fn note(&mut self, object: &ObjectRef, value: &serde_json::Value) -> Result<(), WriteError> {
        let Self::Made { kinds, len } = self else { return Ok(()) };
        let hash = StableHash::of(&value["spec"]);
        let objects = kinds.entry(object.gvk.to_string()).or_default();
        if objects.insert(v2_key(object), hash).is_none() {
            *len += 1;
        }
        if *len > MAX_INDEXED {
            return Err(WriteError::TooMany { what: "objects", limit: MAX_INDEXED as u64 });
        }
        Ok(())
    }

    fn carry(&mut self, part: &IndexPart) -> Result<(), WriteError> {
        // An index that is made anew does not need the old one.
        match self {
            Self::Carried(groups) => carry(groups, part),
            Self::Made { .. } => Ok(()),
        }
    }

    fn finish(self, folder: &SpoolFolder) -> Result<Grouped<String>, WriteError> {
        match self {
            Self::Carried(groups) => Ok(*groups),
            Self::Made { kinds, .. } => {
                let mut groups = Grouped::new(folder);
                for (kind, objects) in kinds {
                    let objects = objects.into_iter().map(|(name, hash)| (name, Some(hash))).collect();
                    carry(&mut groups, &IndexPart { kind, objects })?;
                }
                Ok(groups)
            }
        }
    }
}

fn carry(groups: &mut Grouped<String>, part: &IndexPart) -> Result<(), WriteError> {
    let group = groups.group(part.kind.clone(), |kind| {
        let mut bytes = Vec::new();
        encode::text(&mut bytes, kind);
        bytes
    })?;
    for (name, hash) in &part.objects {
        let mut bytes = Vec::new();
        encode::text(&mut bytes, name);
        encode::unsigned(&mut bytes, hash.map_or(0, StableHash::get));
        group.push(&bytes)?;
    }
    Ok(())
}

/// `namespace/name`, and `/name` for a cluster-scoped object, as SimKube 2 writes it.
pub(super) fn v2_key(object: &ObjectRef) -> String {
    format!("{}/{}", object.key.namespace_or_empty(), object.key.name)
}

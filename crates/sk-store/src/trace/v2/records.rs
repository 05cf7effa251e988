//! The records of a v2 trace, one object in memory at a time.
//!
//! An event of v2 is two lists, what was applied and what was deleted, without an order between them. A key in both
//! is deleted first if the object existed before the event (it was recreated), else last (it was short-lived). All
//! other deletes come after what was applied.

use std::collections::HashSet;

use sk_core::{ObjectRef, SimTime};

use super::read::{Event, Objects, V2, Walk};
use crate::msgpack::decode::Slice;
use crate::trace::error::{Flaw, TraceError};
use crate::trace::peek;
use crate::trace::record::{Change, Deletion, Mark, Object, Record};

/// The most deletes in one event: 2^20 at about 150 bytes of key each is 150 MiB. Kubernetes' own limit is 150,000
/// pods in a cluster, so this is all of them deleted at once, seven times over.
const MAX_EVENT_DELETES: u64 = 1 << 20;

/// The most objects that exist at one moment: 2^22 at about 150 bytes of key each is 600 MiB.
const MAX_LIVE_OBJECTS: usize = 1 << 22;

/// Streams records in the order of the file.
pub(crate) struct Records<'a> {
    walk: Walk<'a>,
    events: u64,
    next_event: u64,
    seq: u64,
    live: HashSet<ObjectRef>,
    current: Option<Current>,
    bytes: Vec<u8>,
}

/// The event whose records are being given out.
struct Current {
    at: SimTime,
    applied: Objects,
    /// In the order in which they are given out; the first `before` of them before anything is applied.
    deletes: Vec<Delete>,
    before: usize,
    given: usize,
    end: u64,
}

struct Delete {
    object: ObjectRef,
    /// Where in the file it is.
    at: u64,
    /// Where in the event's list it stood.
    position: u32,
}

impl<'a> Records<'a> {
    pub(crate) fn new(trace: &'a V2) -> Result<Self, TraceError> {
        Ok(Self {
            walk: Walk::begin(&trace.source, "events", trace.events_at)?,
            events: trace.events,
            next_event: 0,
            seq: 0,
            live: HashSet::new(),
            current: None,
            bytes: Vec::new(),
        })
    }

    fn step(&mut self) -> Result<Option<Record>, TraceError> {
        if let Some(mut current) = self.current.take() {
            let change = self.next_change(&mut current)?;
            if let Some(change) = change {
                let at = current.at;
                self.current = Some(current);
                return Ok(Some(self.record(at, change)));
            }
            self.seek(current.end)?;
        }
        if self.next_event == self.events {
            return Ok(None);
        }
        self.walk.part = format!("event {}", self.next_event);
        self.next_event += 1;
        let current = self.begin_event()?;
        let delete_order = order_of(&current.deletes);
        let at = current.at;
        self.current = Some(current);
        Ok(Some(self.record(at, Change::Mark(Mark::V2Event { delete_order }))))
    }

    fn record(&mut self, at: SimTime, change: Change) -> Record {
        let seq = self.seq;
        self.seq += 1;
        Record { at, seq, change }
    }

    fn begin_event(&mut self) -> Result<Current, TraceError> {
        let Event { at, applied, deleted, end } = self.walk.event()?;
        let deletes = self.keys_of_deletes(deleted)?;
        let (first, last) = self.split_deletes(deletes, applied)?;
        let before = first.len();
        let deletes = first.into_iter().chain(last).collect();
        Ok(Current { at, applied, deletes, before, given: 0, end })
    }

    fn keys_of_deletes(&mut self, deleted: Objects) -> Result<Vec<Delete>, TraceError> {
        if deleted.count > MAX_EVENT_DELETES {
            let what = format!("the event deletes {} objects, more than {MAX_EVENT_DELETES}", deleted.count);
            return Err(self.walk.error(Flaw::Content(what)));
        }
        self.seek(deleted.at)?;
        let mut deletes = Vec::new();
        for position in 0..u32::try_from(deleted.count).unwrap_or(u32::MAX) {
            let at = self.walk.input.offset();
            let object = self.key()?;
            deletes.push(Delete { object, at, position });
        }
        Ok(deletes)
    }

    /// Which deletes come before what is applied: those of objects that existed and are applied again.
    fn split_deletes(
        &mut self,
        deletes: Vec<Delete>,
        applied: Objects,
    ) -> Result<(Vec<Delete>, Vec<Delete>), TraceError> {
        let existed: HashSet<ObjectRef> =
            deletes.iter().map(|delete| &delete.object).filter(|object| self.live.contains(*object)).cloned().collect();
        let mut again = HashSet::new();
        if !existed.is_empty() {
            self.seek(applied.at)?;
            for _ in 0..applied.count {
                let object = self.key()?;
                if existed.contains(&object) {
                    again.insert(object);
                }
            }
        }
        Ok(deletes.into_iter().partition(|delete| again.contains(&delete.object)))
    }

    fn next_change(&mut self, current: &mut Current) -> Result<Option<Change>, TraceError> {
        let deletes_first = current.given < current.before;
        if !deletes_first && current.applied.count > 0 {
            self.seek(current.applied.at)?;
            let object = self.object()?;
            current.applied = Objects { count: current.applied.count - 1, at: self.walk.input.offset() };
            self.comes_to_be(object.reference())?;
            return Ok(Some(Change::Apply(object)));
        }
        let Some(delete) = current.deletes.get(current.given) else { return Ok(None) };
        current.given += 1;
        self.seek(delete.at)?;
        self.walk.object(&mut self.bytes)?;
        let value = Slice::new(&self.bytes).value().map_err(|fault| self.walk.error(fault))?;
        let deletion = Deletion::from_value(value).map_err(|error| self.walk.error(error))?;
        self.live.remove(&deletion.object);
        Ok(Some(Change::Delete(deletion)))
    }

    fn comes_to_be(&mut self, object: &ObjectRef) -> Result<(), TraceError> {
        if !self.live.contains(object) {
            if self.live.len() >= MAX_LIVE_OBJECTS {
                let what = format!("more than {MAX_LIVE_OBJECTS} objects exist at once");
                return Err(self.walk.error(Flaw::Content(what)));
            }
            self.live.insert(object.clone());
        }
        Ok(())
    }

    fn object(&mut self) -> Result<Object, TraceError> {
        self.walk.object(&mut self.bytes)?;
        let value = Slice::new(&self.bytes).value().map_err(|fault| self.walk.error(fault))?;
        Object::new(value).map_err(|error| self.walk.error(error))
    }

    /// What the next object is called.
    fn key(&mut self) -> Result<ObjectRef, TraceError> {
        self.walk.object(&mut self.bytes)?;
        peek::reference(&self.bytes).map_err(|flaw| self.walk.error(flaw))
    }

    fn seek(&mut self, offset: u64) -> Result<(), TraceError> {
        self.walk.input.seek(offset).map_err(|error| self.walk.error(error))
    }
}

impl Iterator for Records<'_> {
    type Item = Result<Record, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if step.is_err() {
            // Nothing after a broken place can be trusted.
            self.next_event = self.events;
            self.current = None;
        }
        step.transpose()
    }
}

/// Where each delete stood in the event's list; empty if they are in that order.
fn order_of(deletes: &[Delete]) -> Vec<u32> {
    if deletes.is_sorted_by_key(|delete| delete.position) {
        return Vec::new();
    }
    deletes.iter().map(|delete| delete.position).collect()
}

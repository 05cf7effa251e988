//! The heads of a chunk, in columns: first the distinct strings, objects and label sets, then for each record what
//! happened, when, its sequence number, its object and its label set.
//!
//! A column of similar numbers compresses far better than the same numbers interleaved with others.

use std::ops::Range;
use std::sync::Arc;

use sk_core::lookup::{Lookup, hash_of};
use sk_core::{ObjectRef, SimTime};

use super::{MAX_CHUNK_RECORDS, MAX_HEADS_BYTES};
use crate::trace::head::{Head, Labels, What};
use crate::trace::record::{Mark, name_object};
use crate::varint::{self, Corrupt, Cursor};

/// What happened, as a byte of the first column.
mod code {
    pub(super) const MOMENT: u8 = 0;
    pub(super) const V2_EVENT: u8 = 1;
    pub(super) const APPLY: u8 = 2;
    /// A delete that names the object.
    pub(super) const DELETE: u8 = 3;
    /// A delete that holds the object as it was.
    pub(super) const DELETE_WHOLE: u8 = 4;
}

/// What one record's head says, as it is written.
pub(super) enum Entry<'a> {
    Mark(&'a Mark),
    Apply { object: &'a ObjectRef, labels: Labels },
    Delete { object: &'a ObjectRef, labels: Option<Labels> },
}

/// Texts, each once, in the order they first came.
#[derive(Default)]
pub(super) struct TextTableBuilder {
    /// The texts one after another, each behind its length, as the block has them.
    bytes: Vec<u8>,
    /// Where each text begins and ends in `bytes`.
    ranges: Vec<Range<usize>>,
    places: Lookup<(u64, usize)>,
    size: usize,
}

impl TextTableBuilder {
    pub(super) fn place(&mut self, text: &str) -> usize {
        let hash = hash_of(text);
        let is_it = |(_, place): &(u64, usize)| &self.bytes[self.ranges[*place].clone()] == text.as_bytes();
        if let Some((_, place)) = self.places.find(hash, is_it) {
            return *place;
        }
        let place = self.ranges.len();
        self.size += text.len() + 1;
        varint::put_text(&mut self.bytes, text);
        self.ranges.push(self.bytes.len() - text.len()..self.bytes.len());
        self.places.insert(hash, (hash, place), |(hash, _)| *hash);
        place
    }

    /// The texts of an object: apiVersion, kind, namespace (`""` if it has none), name.
    pub(super) fn put_object(&mut self, out: &mut Vec<u8>, object: &ObjectRef) {
        let api_version = object.gvk.api_version();
        for text in [&api_version, object.gvk.kind.as_str(), object.key.namespace_or_empty(), &object.key.name] {
            varint::put_len(out, self.place(text));
        }
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        varint::put_len(out, self.ranges.len());
        out.extend_from_slice(&self.bytes);
    }
}

/// The texts of a block as it is read.
pub(super) struct TextTable<'a>(Vec<&'a str>);

impl<'a> TextTable<'a> {
    pub(super) fn decode(cursor: &mut Cursor<'a>) -> Result<Self, Corrupt> {
        let count = cursor.count()?;
        (0..count).map(|_| cursor.text()).collect::<Result<_, _>>().map(Self)
    }

    fn text(&self, cursor: &mut Cursor<'_>) -> Result<&'a str, Corrupt> {
        self.0.get(cursor.len()?).copied().ok_or(Corrupt("it refers to a text that it does not have"))
    }

    pub(super) fn object(&self, cursor: &mut Cursor<'_>) -> Result<ObjectRef, Corrupt> {
        let [api_version, kind, namespace, name] =
            [self.text(cursor)?, self.text(cursor)?, self.text(cursor)?, self.text(cursor)?];
        name_object(api_version, kind, namespace, name).map_err(|_| Corrupt("an object's kind is not a kind"))
    }
}

/// The heads of a chunk as it is written.
#[derive(Default)]
pub(super) struct HeadsOut {
    texts: TextTableBuilder,
    objects: Table<ObjectRef>,
    label_sets: Table<Labels>,
    codes: Vec<u8>,
    times: Vec<i64>,
    seqs: Vec<u64>,
    object_column: Vec<u8>,
    label_column: Vec<u8>,
    order_column: Vec<u8>,
    /// The label set that each object had last in this chunk.
    last_labels: ByPlace,
}

/// A number for each object of a chunk, by the object's place in it.
#[derive(Default)]
pub(super) struct ByPlace(Vec<Option<usize>>);

impl ByPlace {
    /// Sets a number and returns the one before.
    pub(super) fn replace(&mut self, place: usize, number: usize) -> Option<usize> {
        if self.0.len() <= place {
            self.0.resize(place + 1, None);
        }
        self.0[place].replace(number)
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Things, each once, in the order they first came, already encoded.
struct Table<T> {
    things: Vec<T>,
    places: Lookup<(u64, usize)>,
    bytes: Vec<u8>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { things: Vec::new(), places: Lookup::default(), bytes: Vec::new() }
    }
}

impl<T: std::hash::Hash + Eq + Clone> Table<T> {
    fn place(&mut self, thing: &T, encode: impl FnOnce(&mut Vec<u8>)) -> usize {
        let hash = hash_of(thing);
        if let Some((_, place)) = self.places.find(hash, |(_, place)| self.things[*place] == *thing) {
            return *place;
        }
        let place = self.things.len();
        self.things.push(thing.clone());
        self.places.insert(hash, (hash, place), |(hash, _)| *hash);
        encode(&mut self.bytes);
        place
    }

    fn encode(&self, out: &mut Vec<u8>) {
        varint::put_len(out, self.things.len());
        out.extend_from_slice(&self.bytes);
    }
}

impl HeadsOut {
    pub(super) fn len(&self) -> usize {
        self.codes.len()
    }

    /// About how large it is.
    pub(super) fn size(&self) -> usize {
        let columns = self.object_column.len() + self.label_column.len() + self.order_column.len();
        self.texts.size + self.objects.bytes.len() + self.label_sets.bytes.len() + columns
    }

    /// The objects that occur, in the order they first came.
    pub(super) fn objects(&self) -> impl Iterator<Item = &ObjectRef> {
        self.objects.things.iter()
    }

    /// The earliest and the latest time, and the first and the last sequence number.
    pub(super) fn bounds(&self) -> Option<(SimTime, SimTime, u64, u64)> {
        let (first, last) = (self.times.iter().min()?, self.times.iter().max()?);
        let (first_seq, last_seq) = (self.seqs.first()?, self.seqs.last()?);
        Some((SimTime::from_micros(*first), SimTime::from_micros(*last), *first_seq, *last_seq))
    }

    /// Adds a head; answers the object's place in this chunk.
    pub(super) fn push(&mut self, at: SimTime, seq: u64, entry: &Entry<'_>) -> Option<usize> {
        self.times.push(at.as_micros());
        self.seqs.push(seq);
        match entry {
            Entry::Mark(Mark::Moment) => {
                self.codes.push(code::MOMENT);
                None
            }
            Entry::Mark(Mark::V2Event { delete_order }) => {
                self.codes.push(code::V2_EVENT);
                varint::put_len(&mut self.order_column, delete_order.len());
                delete_order.iter().for_each(|place| varint::put(&mut self.order_column, u64::from(*place)));
                None
            }
            Entry::Apply { object, labels } => Some(self.push_object(code::APPLY, object, Some(labels))),
            Entry::Delete { object, labels: None } => Some(self.push_object(code::DELETE, object, None)),
            Entry::Delete { object, labels } => Some(self.push_object(code::DELETE_WHOLE, object, labels.as_ref())),
        }
    }

    fn push_object(&mut self, code: u8, object: &ObjectRef, labels: Option<&Labels>) -> usize {
        self.codes.push(code);
        let texts = &mut self.texts;
        let place = self.objects.place(object, |out| texts.put_object(out, object));
        varint::put_len(&mut self.object_column, place);
        if let Some(labels) = labels {
            let set = self.label_sets.place(labels, |out| {
                varint::put_len(out, labels.len());
                for (key, value) in labels.iter() {
                    varint::put_len(out, texts.place(key));
                    varint::put_len(out, texts.place(value));
                }
            });
            let same = self.last_labels.replace(place, set) == Some(set);
            varint::put_len(&mut self.label_column, if same { 0 } else { set + 1 });
        }
        place
    }

    /// The block's bytes.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        varint::put_len(&mut out, self.codes.len());
        self.texts.encode(&mut out);
        self.objects.encode(&mut out);
        self.label_sets.encode(&mut out);
        out.extend_from_slice(&self.codes);
        encode_times(&mut out, &self.times);
        let mut before = 0;
        for seq in &self.seqs {
            varint::put(&mut out, seq.wrapping_sub(before));
            before = *seq;
        }
        out.extend_from_slice(&self.object_column);
        out.extend_from_slice(&self.label_column);
        out.extend_from_slice(&self.order_column);
        out
    }
}

/// The first time, the largest unit that all differences are multiples of, and the differences in that unit: traces
/// of whole seconds then count seconds, not millions of microseconds.
fn encode_times(out: &mut Vec<u8>, times: &[i64]) {
    let first = times.first().copied().unwrap_or_default();
    let steps: Vec<i64> = times.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
    let unit = steps.iter().fold(0, |unit, step| gcd(unit, step.unsigned_abs()));
    let unit = i64::try_from(unit).unwrap_or(1).max(1);
    varint::put_signed(out, first);
    varint::put(out, unit.unsigned_abs());
    steps.iter().for_each(|step| varint::put_signed(out, step / unit));
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The heads of a chunk as it is read.
pub(super) struct HeadsIn {
    objects: Vec<Arc<ObjectRef>>,
    label_sets: Vec<Labels>,
    rows: Vec<HeadRow>,
    orders: Vec<Vec<u32>>,
}

/// One head; places instead of things.
#[derive(Clone, Copy)]
struct HeadRow {
    code: u8,
    at: i64,
    seq: u64,
    /// The object's place, or that of a v2 event's order of deletes.
    thing: u32,
    labels: u32,
}

impl HeadsIn {
    pub(super) fn decode(raw: &[u8]) -> Result<Self, Corrupt> {
        let mut cursor = Cursor::new(raw);
        let count = cursor.count()?;
        if count > MAX_CHUNK_RECORDS || raw.len() > MAX_HEADS_BYTES {
            return Err(Corrupt("it is larger than the heads of a chunk may be"));
        }
        let texts = TextTable::decode(&mut cursor)?;
        let objects = decode_table(&mut cursor, count, |cursor| texts.object(cursor).map(Arc::new))?;
        let label_sets = decode_table(&mut cursor, count, |cursor| {
            let pairs = cursor.count()?;
            (0..pairs).map(|_| Ok((texts.text(cursor)?.into(), texts.text(cursor)?.into()))).collect()
        })?;
        let codes = cursor.bytes(count)?;
        let mut rows: Vec<_> =
            codes.iter().map(|code| HeadRow { code: *code, at: 0, seq: 0, thing: 0, labels: 0 }).collect();
        decode_times(&mut cursor, &mut rows)?;
        decode_seqs(&mut cursor, &mut rows)?;
        decode_things(&mut cursor, &mut rows, objects.len(), label_sets.len())?;
        let orders = decode_orders(&mut cursor, &mut rows)?;
        if !cursor.is_empty() {
            return Err(Corrupt("it has more bytes than heads"));
        }
        Ok(Self { objects, label_sets, rows, orders })
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The earliest and the latest time, and the first and the last sequence number.
    pub(super) fn bounds(&self) -> Option<(SimTime, SimTime, u64, u64)> {
        let times = || self.rows.iter().map(|row| row.at);
        let (first, last) = (SimTime::from_micros(times().min()?), SimTime::from_micros(times().max()?));
        Some((first, last, self.rows.first()?.seq, self.rows.last()?.seq))
    }

    /// Whether an object lies in the bodies for the head at `index`.
    pub(super) fn has_body(&self, index: usize) -> bool {
        matches!(self.rows[index].code, code::APPLY | code::DELETE_WHOLE)
    }

    /// The mark at `index`, if it is one.
    pub(super) fn mark(&self, index: usize) -> Option<Mark> {
        let row = self.rows[index];
        match row.code {
            code::MOMENT => Some(Mark::Moment),
            code::V2_EVENT => Some(Mark::V2Event { delete_order: self.orders[row.thing as usize].clone() }),
            _ => None,
        }
    }

    /// The head at `index`.
    pub(super) fn head(&self, index: usize) -> Head {
        let row = self.rows[index];
        let object = || self.objects[row.thing as usize].clone();
        let what = match row.code {
            code::APPLY => What::Apply(object(), self.label_sets[row.labels as usize].clone()),
            code::DELETE => What::Delete(object(), Labels::default()),
            code::DELETE_WHOLE => What::Delete(object(), self.label_sets[row.labels as usize].clone()),
            _ => What::Mark,
        };
        Head { at: SimTime::from_micros(row.at), seq: row.seq, what }
    }
}

fn decode_table<'a, T>(
    cursor: &mut Cursor<'a>,
    records: usize,
    mut decode: impl FnMut(&mut Cursor<'a>) -> Result<T, Corrupt>,
) -> Result<Vec<T>, Corrupt> {
    let count = cursor.count()?;
    if count > records {
        return Err(Corrupt("it lists more than its records can use"));
    }
    (0..count).map(|_| decode(cursor)).collect()
}

fn decode_times(cursor: &mut Cursor<'_>, rows: &mut [HeadRow]) -> Result<(), Corrupt> {
    let mut at = cursor.i64()?;
    let unit = cursor.u64()?.cast_signed();
    for (index, row) in rows.iter_mut().enumerate() {
        if index > 0 {
            at = at.wrapping_add(cursor.i64()?.wrapping_mul(unit));
        }
        row.at = at;
    }
    Ok(())
}

fn decode_seqs(cursor: &mut Cursor<'_>, rows: &mut [HeadRow]) -> Result<(), Corrupt> {
    let mut seq = 0_u64;
    for (index, row) in rows.iter_mut().enumerate() {
        let step = cursor.u64()?;
        seq = match seq.checked_add(step) {
            Some(next) if index == 0 || step > 0 => next,
            _ => return Err(Corrupt("sequence numbers do not rise")),
        };
        row.seq = seq;
    }
    Ok(())
}

fn decode_things(
    cursor: &mut Cursor<'_>,
    rows: &mut [HeadRow],
    objects: usize,
    label_sets: usize,
) -> Result<(), Corrupt> {
    const NO_OBJECT: Corrupt = Corrupt("a head refers to an object that it does not have");
    const NO_LABELS: Corrupt = Corrupt("a head refers to labels that it does not have");
    for row in rows.iter_mut().filter(|row| matches!(row.code, code::APPLY | code::DELETE | code::DELETE_WHOLE)) {
        let place = cursor.len()?;
        row.thing = u32::try_from(place).ok().filter(|_| place < objects).ok_or(NO_OBJECT)?;
    }
    let mut last = vec![None; objects];
    for row in rows.iter_mut().filter(|row| matches!(row.code, code::APPLY | code::DELETE_WHOLE)) {
        let last = &mut last[row.thing as usize];
        let place = match cursor.len()? {
            0 => last.ok_or(NO_LABELS)?,
            place => place - 1,
        };
        *last = Some(place);
        row.labels = u32::try_from(place).ok().filter(|_| place < label_sets).ok_or(NO_LABELS)?;
    }
    Ok(())
}

fn decode_orders(cursor: &mut Cursor<'_>, rows: &mut [HeadRow]) -> Result<Vec<Vec<u32>>, Corrupt> {
    let mut orders = Vec::new();
    for row in rows.iter_mut() {
        match row.code {
            code::V2_EVENT => {
                row.thing = u32::try_from(orders.len()).map_err(|_| Corrupt("it has too many events"))?;
                let count = cursor.count()?;
                let order = (0..count).map(|_| u32::try_from(cursor.u64()?).map_err(|_| Corrupt("an order is wrong")));
                orders.push(order.collect::<Result<_, _>>()?);
            }
            code::MOMENT | code::APPLY | code::DELETE | code::DELETE_WHOLE => {}
            _ => return Err(Corrupt("something unknown happened")),
        }
    }
    Ok(orders)
}

#[cfg(test)]
mod tests {
    use sk_core::{Gvk, ObjectKey};

    use super::*;

    #[test]
    fn heads_come_back() {
        let object = ObjectRef::new(Gvk::new_static("apps", "v1", "Deployment"), ObjectKey::namespaced("a", "b"));
        let node = ObjectRef::new(Gvk::new_static("", "v1", "Node"), ObjectKey::cluster("n"));
        let labels: Labels = [("app".into(), "b".into())].into_iter().collect();
        let order = Mark::V2Event { delete_order: vec![2, 0, 1] };
        let entries = [
            (5, Entry::Mark(&Mark::Moment)),
            (i64::MAX, Entry::Apply { object: &object, labels: labels.clone() }),
            (i64::MIN + 1, Entry::Mark(&order)),
            (0, Entry::Apply { object: &object, labels: labels.clone() }),
            (1, Entry::Delete { object: &node, labels: None }),
            (2, Entry::Delete { object: &object, labels: Some(Labels::default()) }),
        ];
        let mut out = HeadsOut::default();
        for (seq, (at, entry)) in entries.iter().enumerate() {
            out.push(SimTime::from_micros(*at), 7 + seq as u64, entry);
        }
        let back = HeadsIn::decode(&out.encode()).unwrap();
        assert_eq!(back.len(), entries.len());
        for (index, (at, entry)) in entries.iter().enumerate() {
            let head = back.head(index);
            assert_eq!((head.at.as_micros(), head.seq), (*at, 7 + index as u64));
            match (entry, head.what) {
                (Entry::Mark(mark), What::Mark) => assert_eq!(back.mark(index).as_ref(), Some(*mark)),
                (Entry::Apply { object, labels }, What::Apply(found, set)) => {
                    assert_eq!((*object, labels), (&*found, &set));
                }
                (Entry::Delete { object, labels }, What::Delete(found, set)) => {
                    assert_eq!((*object, labels.clone().unwrap_or_default()), (&*found, set));
                }
                _ => panic!("head {index} came back as something else"),
            }
        }
    }

    #[test]
    fn a_trace_of_whole_seconds_counts_seconds() {
        let (mut seconds, mut micros) = (Vec::new(), Vec::new());
        encode_times(&mut seconds, &[1_000_000, 3_000_000, 60_000_000]);
        encode_times(&mut micros, &[1_000_000, 3_000_001, 60_000_000]);
        assert!(seconds.len() < micros.len());
    }
}

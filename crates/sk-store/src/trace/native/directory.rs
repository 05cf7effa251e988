//! The index of chunks and the directory of all blocks.

use std::collections::BTreeMap;
use std::sync::Arc;

use sk_core::lookup::{Lookup, hash_of};
use sk_core::{Gvk, ObjectRef, SimTime};

use super::MAX_HEADS_BYTES;
use super::block::Kind;
use super::heads::{TextTable, TextTableBuilder};
use crate::varint::{self, Corrupt, Cursor};

/// One chunk: where it is, and what is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChunkEntry {
    /// Where its heads begin.
    pub(super) at: u64,
    /// The length of both blocks.
    pub(super) len: u64,
    pub(super) records: u64,
    pub(super) earliest: SimTime,
    pub(super) latest: SimTime,
    pub(super) first_seq: u64,
    pub(super) last_seq: u64,
}

impl ChunkEntry {
    fn encode(&self, out: &mut Vec<u8>) {
        for number in [self.at, self.len, self.records] {
            varint::put(out, number);
        }
        varint::put_signed(out, self.earliest.as_micros());
        varint::put_signed(out, self.latest.as_micros());
        varint::put(out, self.first_seq);
        varint::put(out, self.last_seq);
    }
}

/// Some chunks in a row, and which objects occur in which of them, as they are written.
#[derive(Default)]
pub(super) struct ChunkIndexBuilder {
    chunks: Vec<ChunkEntry>,
    /// The objects in the order they first came; they are sorted once, in the end.
    objects: Vec<ObjectRef>,
    places: Lookup<(u64, usize)>,
    /// An object and a chunk that it occurs in, by their places.
    occurrences: Vec<(usize, usize)>,
    size: usize,
}

impl ChunkIndexBuilder {
    /// How many chunks there are.
    pub(super) fn len(&self) -> usize {
        self.chunks.len()
    }

    /// About how large it is.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Adds a chunk in which these objects occur, each once.
    pub(super) fn push<'a>(&mut self, chunk: ChunkEntry, objects: impl Iterator<Item = &'a ObjectRef>) {
        let chunk_place = self.chunks.len();
        self.chunks.push(chunk);
        for object in objects {
            self.size += 1;
            let place = self.place(object);
            self.occurrences.push((place, chunk_place));
        }
    }

    fn place(&mut self, object: &ObjectRef) -> usize {
        let hash = hash_of(object);
        if let Some((_, place)) = self.places.find(hash, |(_, place)| self.objects[*place] == *object) {
            return *place;
        }
        let (gvk, key) = (&object.gvk, &object.key);
        self.size += gvk.kind.len() + key.name.len() + key.namespace_or_empty().len() + 16;
        let place = self.objects.len();
        self.objects.push(object.clone());
        self.places.insert(hash, (hash, place), |(hash, _)| *hash);
        place
    }

    /// The block's bytes: the chunks, then the objects in order, each with its chunks.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        varint::put_len(&mut out, self.chunks.len());
        self.chunks.iter().for_each(|chunk| chunk.encode(&mut out));
        let mut occurrences = self.occurrences.clone();
        occurrences.sort_unstable();
        // Each object occurs somewhere, so the place of its occurrences here is its own.
        let of_objects: Vec<_> = occurrences.chunk_by(|(one, _), (other, _)| one == other).collect();
        let (mut texts, mut objects) = (TextTableBuilder::default(), Vec::new());
        for place in self.in_order() {
            texts.put_object(&mut objects, &self.objects[place]);
            varint::put_len(&mut objects, of_objects[place].len());
            let mut next = 0;
            for (_, chunk) in of_objects[place] {
                varint::put_len(&mut objects, chunk - next);
                next = chunk + 1;
            }
        }
        texts.encode(&mut out);
        varint::put_len(&mut out, self.objects.len());
        out.extend_from_slice(&objects);
        out
    }

    /// The places of the objects, sorted by kind and name. Kinds are few and compared once for each object.
    fn in_order(&self) -> impl Iterator<Item = usize> {
        let mut kinds: BTreeMap<&Gvk, Vec<usize>> = BTreeMap::new();
        for (place, object) in self.objects.iter().enumerate() {
            kinds.entry(&object.gvk).or_default().push(place);
        }
        kinds.into_values().flat_map(|mut places| {
            places.sort_unstable_by(|one, other| self.objects[*one].key.cmp(&self.objects[*other].key));
            places
        })
    }
}

/// Some chunks in a row, and which objects occur in which of them, as they are read.
pub(super) struct ChunkIndex {
    pub(super) chunks: Vec<ChunkEntry>,
    /// By object, the places in `chunks`, rising.
    pub(super) objects: BTreeMap<Arc<ObjectRef>, Vec<usize>>,
}

impl ChunkIndex {
    /// The chunks alone, without the objects.
    pub(super) fn decode_chunks(raw: &[u8]) -> Result<Vec<ChunkEntry>, Corrupt> {
        chunks_of(&mut Cursor::new(raw))
    }

    pub(super) fn decode(raw: &[u8]) -> Result<Self, Corrupt> {
        if raw.len() > MAX_HEADS_BYTES {
            return Err(Corrupt("it is larger than an index may be"));
        }
        let mut cursor = Cursor::new(raw);
        let chunks = chunks_of(&mut cursor)?;
        let texts = TextTable::decode(&mut cursor)?;
        let mut index = Self { chunks, objects: BTreeMap::new() };
        for _ in 0..cursor.count()? {
            let object = texts.object(&mut cursor)?;
            let places = cursor.count()?;
            let mut found = Vec::with_capacity(places);
            let mut next = 0_usize;
            for _ in 0..places {
                let place = next.checked_add(cursor.len()?).filter(|place| *place < index.chunks.len());
                let place = place.ok_or(Corrupt("it refers to a chunk that it does not have"))?;
                found.push(place);
                next = place + 1;
            }
            index.objects.insert(Arc::new(object), found);
        }
        Ok(index)
    }
}

fn chunks_of(cursor: &mut Cursor<'_>) -> Result<Vec<ChunkEntry>, Corrupt> {
    (0..cursor.count()?).map(|_| decode_chunk(cursor)).collect()
}

fn decode_chunk(cursor: &mut Cursor<'_>) -> Result<ChunkEntry, Corrupt> {
    Ok(ChunkEntry {
        at: cursor.u64()?,
        len: cursor.u64()?,
        records: cursor.u64()?,
        earliest: SimTime::from_micros(cursor.i64()?),
        latest: SimTime::from_micros(cursor.i64()?),
        first_seq: cursor.u64()?,
        last_seq: cursor.u64()?,
    })
}

/// Where the blocks are that are no chunks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Directory {
    /// How many records the trace has.
    pub(super) records: u64,
    /// The times of the earliest and the latest.
    pub(super) span: Option<(SimTime, SimTime)>,
    pub(super) blocks: Vec<BlockEntry>,
}

/// One block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockEntry {
    pub(super) kind: Kind,
    pub(super) at: u64,
    /// How many rows, or chunks of an index, are in it.
    pub(super) count: u64,
}

impl Directory {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        varint::put(&mut out, self.records);
        if let Some((earliest, latest)) = self.span {
            out.push(1);
            varint::put_signed(&mut out, earliest.as_micros());
            varint::put_signed(&mut out, latest.as_micros());
        } else {
            out.push(0);
        }
        varint::put_len(&mut out, self.blocks.len());
        for block in &self.blocks {
            out.push(block.kind.to_byte());
            varint::put(&mut out, block.at);
            varint::put(&mut out, block.count);
        }
        out
    }

    pub(super) fn decode(raw: &[u8]) -> Result<Self, Corrupt> {
        let mut cursor = Cursor::new(raw);
        let records = cursor.u64()?;
        let span = match cursor.bytes(1)? {
            [0] => None,
            [1] => Some((SimTime::from_micros(cursor.i64()?), SimTime::from_micros(cursor.i64()?))),
            _ => return Err(Corrupt("the directory's span is neither there nor not there")),
        };
        let mut blocks = Vec::new();
        for _ in 0..cursor.count()? {
            let kind = cursor.bytes(1)?.first().copied().and_then(Kind::from_byte);
            let kind = kind.ok_or(Corrupt("the directory has a block of unknown kind"))?;
            blocks.push(BlockEntry { kind, at: cursor.u64()?, count: cursor.u64()? });
        }
        if !cursor.is_empty() {
            return Err(Corrupt("the directory is longer than what it lists"));
        }
        Ok(Self { records, span, blocks })
    }
}

#[cfg(test)]
mod tests {
    use sk_core::ObjectKey;

    use super::*;
    use crate::trace::rows::Section;

    #[test]
    fn index_and_directory_come_back() {
        let object = |name: &str| ObjectRef::new(Gvk::new_static("", "v1", "Pod"), ObjectKey::namespaced("a", name));
        let chunk = |at| ChunkEntry {
            at,
            len: 10,
            records: 3,
            earliest: SimTime::from_secs(-5),
            latest: SimTime::MAX,
            first_seq: 1,
            last_seq: u64::MAX,
        };
        let mut index = ChunkIndexBuilder::default();
        index.push(chunk(16), [object("y"), object("x")].iter());
        index.push(chunk(26), [object("y")].iter());
        let node = ObjectRef::new(Gvk::new_static("", "v1", "Node"), ObjectKey::cluster("z"));
        index.push(chunk(36), [object("x"), node.clone(), object("y")].iter());
        let encoded = index.encode();
        let at = |text: &[u8; 2]| encoded.windows(2).position(|part| part == text);
        assert!(at(b"\x01z") < at(b"\x01x") && at(b"\x01x") < at(b"\x01y"), "sorted by kind, then by name");
        let back = ChunkIndex::decode(&encoded).unwrap();
        assert_eq!(back.chunks, [chunk(16), chunk(26), chunk(36)]);
        let places =
            [(Arc::new(object("x")), vec![0, 2]), (Arc::new(object("y")), vec![0, 1, 2]), (Arc::new(node), vec![2])];
        assert_eq!(back.objects, places.into());
        let directory = Directory {
            records: 9,
            span: Some((SimTime::EPOCH, SimTime::MAX)),
            blocks: vec![
                BlockEntry { kind: Kind::Index, at: 46, count: 3 },
                BlockEntry { kind: Kind::Rows(Section::Gaps), at: 99, count: 1 },
            ],
        };
        assert_eq!(Directory::decode(&directory.encode()).unwrap(), directory);
    }
}

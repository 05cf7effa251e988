//! The index of chunks and the directory of all blocks.

use std::collections::BTreeMap;
use std::sync::Arc;

use sk_core::{ObjectRef, SimTime};

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

/// Some chunks in a row, and which objects occur in which of them.
#[derive(Default)]
pub(super) struct ChunkIndex {
    pub(super) chunks: Vec<ChunkEntry>,
    /// By object, the places in `chunks`, rising.
    pub(super) objects: BTreeMap<Arc<ObjectRef>, Vec<usize>>,
    /// About how large it is.
    pub(super) size: usize,
}

impl ChunkIndex {
    /// Adds a chunk in which these objects occur.
    pub(super) fn push<'a>(&mut self, chunk: ChunkEntry, objects: impl Iterator<Item = &'a ObjectRef>) {
        let place = self.chunks.len();
        self.chunks.push(chunk);
        for object in objects {
            self.size += 1;
            match self.objects.get_mut(object) {
                Some(places) => places.push(place),
                None => {
                    let (gvk, key) = (&object.gvk, &object.key);
                    self.size += gvk.kind.len() + key.name.len() + key.namespace_or_empty().len() + 16;
                    self.objects.insert(Arc::new(object.clone()), vec![place]);
                }
            }
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        varint::put_len(&mut out, self.chunks.len());
        for chunk in &self.chunks {
            for number in [chunk.at, chunk.len, chunk.records] {
                varint::put(&mut out, number);
            }
            varint::put_signed(&mut out, chunk.earliest.as_micros());
            varint::put_signed(&mut out, chunk.latest.as_micros());
            varint::put(&mut out, chunk.first_seq);
            varint::put(&mut out, chunk.last_seq);
        }
        let mut texts = TextTableBuilder::default();
        let mut objects = Vec::new();
        for (object, places) in &self.objects {
            texts.put_object(&mut objects, object);
            varint::put_len(&mut objects, places.len());
            let mut next = 0;
            for place in places {
                varint::put_len(&mut objects, place - next);
                next = place + 1;
            }
        }
        texts.encode(&mut out);
        varint::put_len(&mut out, self.objects.len());
        out.extend_from_slice(&objects);
        out
    }

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
        let mut index = Self { chunks, ..Self::default() };
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
    use sk_core::{Gvk, ObjectKey};

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
        let mut index = ChunkIndex::default();
        index.push(chunk(16), [object("x"), object("y")].iter());
        index.push(chunk(26), [object("y")].iter());
        index.push(chunk(36), [object("x"), object("y")].iter());
        let back = ChunkIndex::decode(&index.encode()).unwrap();
        assert_eq!((back.chunks, back.objects), (index.chunks, index.objects));
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

//! The bodies of a chunk: each object whole, or as a difference from an earlier one in the same chunk.
//!
//! A difference is what remains between a common prefix and a common suffix. Most versions of an object change one number,
//! so that is a few bytes; if two distant places change, the bytes between them repeat what zstd has just seen.

use std::ops::Range;

use super::{CHUNK_BYTES, MAX_RAW_BYTES};
use crate::msgpack::MAX_OBJECT_BYTES;
use crate::varint::{self, Corrupt, Cursor};

/// As many bytes as are compared at once.
const BLOCK: usize = 32;

/// The objects of a chunk as it is written.
#[derive(Default)]
pub(super) struct BodiesOut {
    /// All objects whole, one after another, as the reader will have them.
    whole: Vec<u8>,
    ends: Vec<usize>,
    /// Lengths and references.
    steps: Vec<u8>,
    /// Where bytes that are new lie in `whole`.
    fresh: Vec<Range<usize>>,
}

impl BodiesOut {
    /// How many objects there are.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Their size.
    pub(super) fn size(&self) -> usize {
        self.whole.len()
    }

    /// Adds an object, as the difference from the earlier one at `base` if there is one.
    pub(super) fn push(&mut self, body: &[u8], base: Option<usize>) {
        let base = base.filter(|base| *base < self.ends.len());
        varint::put_len(&mut self.steps, base.map_or(0, |base| self.ends.len() - base));
        let (mut prefix, mut suffix) = (0, 0);
        if let Some(base) = base {
            let base = &self.whole[range(&self.ends, base)];
            prefix = common_prefix(body, base);
            suffix = common_suffix(&body[prefix..], &base[prefix..]);
            varint::put_len(&mut self.steps, prefix);
            varint::put_len(&mut self.steps, suffix);
        }
        varint::put_len(&mut self.steps, body.len() - prefix - suffix);
        let start = self.whole.len();
        self.fresh.push(start + prefix..start + body.len() - suffix);
        self.whole.extend_from_slice(body);
        self.ends.push(self.whole.len());
    }

    /// The block's bytes: the length of the steps, the steps, the fresh bytes.
    pub(super) fn encode(&self) -> Vec<u8> {
        let fresh_len: usize = self.fresh.iter().map(ExactSizeIterator::len).sum();
        let mut out = Vec::with_capacity(self.steps.len() + fresh_len + 8);
        varint::put_len(&mut out, self.steps.len());
        out.extend_from_slice(&self.steps);
        self.fresh.iter().for_each(|range| out.extend_from_slice(&self.whole[range.clone()]));
        out
    }
}

/// How many bytes two objects begin with in common. They are some kilobytes and nearly equal, so most of them is compared in
/// blocks that the processor compares at once.
fn common_prefix(one: &[u8], other: &[u8]) -> usize {
    let blocks = BLOCK * common(one.as_chunks::<BLOCK>().0.iter(), other.as_chunks::<BLOCK>().0.iter());
    let (one, other) = (&one[blocks..], &other[blocks..]);
    blocks + common(one.iter(), other.iter())
}

/// How many bytes two objects end with in common.
fn common_suffix(one: &[u8], other: &[u8]) -> usize {
    let (one_blocks, other_blocks) = (one.as_rchunks::<BLOCK>().1, other.as_rchunks::<BLOCK>().1);
    let blocks = BLOCK * common(one_blocks.iter().rev(), other_blocks.iter().rev());
    let (one, other) = (&one[..one.len() - blocks], &other[..other.len() - blocks]);
    blocks + common(one.iter().rev(), other.iter().rev())
}

/// How many elements two sequences begin with in common.
fn common<T: PartialEq>(one: impl Iterator<Item = T>, other: impl Iterator<Item = T>) -> usize {
    one.zip(other).take_while(|(one, other)| one == other).count()
}

fn range(ends: &[usize], index: usize) -> Range<usize> {
    let start = index.checked_sub(1).map_or(0, |before| ends[before]);
    start..ends[index]
}

/// The objects of a chunk as it is read, put together one after another.
pub(super) struct BodiesIn {
    raw: Vec<u8>,
    steps_at: usize,
    steps_end: usize,
    fresh_at: usize,
    whole: Vec<u8>,
    ends: Vec<usize>,
}

impl BodiesIn {
    pub(super) fn new(raw: Vec<u8>) -> Result<Self, Corrupt> {
        let mut cursor = Cursor::new(&raw);
        let steps_len = cursor.count()?;
        let steps_at = raw.len() - cursor.len_left();
        let steps_end = steps_at + steps_len;
        Ok(Self { raw, steps_at, steps_end, fresh_at: steps_end, whole: Vec::new(), ends: Vec::new() })
    }

    /// Puts the next object together.
    pub(super) fn next(&mut self) -> Result<&[u8], Corrupt> {
        let steps = &self.raw[self.steps_at..self.steps_end];
        let mut cursor = Cursor::new(steps);
        let back = cursor.len()?;
        let (base, prefix, suffix) = match back {
            0 => (0..0, 0, 0),
            _ => {
                let base = self.ends.len().checked_sub(back).ok_or(Corrupt("a body refers to none before it"))?;
                (range(&self.ends, base), cursor.len()?, cursor.len()?)
            }
        };
        let fresh_len = cursor.len()?;
        self.steps_at += steps.len() - cursor.len_left();
        let shared = prefix.checked_add(suffix).filter(|shared| *shared <= base.len());
        let shared = shared.ok_or(Corrupt("a body shares more than there is"))?;
        let fresh_end = self.fresh_at.checked_add(fresh_len).filter(|end| *end <= self.raw.len());
        let fresh_end = fresh_end.ok_or(Corrupt("a body is longer than its block"))?;
        if shared + fresh_len > MAX_OBJECT_BYTES || self.whole.len() > CHUNK_BYTES {
            return Err(Corrupt("its bodies are larger than a chunk may be"));
        }
        let start = self.whole.len();
        self.whole.extend_from_within(base.start..base.start + prefix);
        self.whole.extend_from_slice(&self.raw[self.fresh_at..fresh_end]);
        self.whole.extend_from_within(base.end - suffix..base.end);
        self.fresh_at = fresh_end;
        self.ends.push(self.whole.len());
        Ok(&self.whole[start..])
    }
}

const _: () = assert!(CHUNK_BYTES + MAX_OBJECT_BYTES < MAX_RAW_BYTES, "a full chunk fits into a block");

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_common_is_found_whatever_the_lengths(
            before in prop::collection::vec(any::<u8>(), 0..100),
            one in prop::collection::vec(0_u8..2, 0..20),
            other in prop::collection::vec(0_u8..2, 0..20),
            after in prop::collection::vec(any::<u8>(), 0..100),
        ) {
            let whole = |middle: &[u8]| [&before, middle, &after].concat();
            let (one, other) = (whole(&one), whole(&other));
            let bytewise = one.iter().zip(&other).take_while(|(one, other)| one == other).count();
            prop_assert_eq!(common_prefix(&one, &other), bytewise);
            let bytewise = one.iter().rev().zip(other.iter().rev()).take_while(|(one, other)| one == other).count();
            prop_assert_eq!(common_suffix(&one, &other), bytewise);
        }
    }

    #[test]
    fn bodies_come_back_and_versions_cost_little() {
        let version = |n: u32| format!("{}{n}{}", "a".repeat(500), "b".repeat(500));
        let bodies = [version(1), version(22), version(3), String::new(), "aaa".into(), version(3)];
        let mut out = BodiesOut::default();
        for (index, body) in bodies.iter().enumerate() {
            out.push(body.as_bytes(), index.checked_sub(1));
        }
        let raw = out.encode();
        assert!(raw.len() < 2 * 1001 + 50, "{}", raw.len());
        let mut back = BodiesIn::new(raw).unwrap();
        for body in &bodies {
            assert_eq!(back.next().unwrap(), body.as_bytes());
        }
        assert!(back.next().is_err(), "there are no more");
    }
}

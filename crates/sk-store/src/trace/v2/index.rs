//! The `index` of a v2 trace, or the `tracked_objects` of a version 3 trace, carried unchanged.

use sk_core::StableHash;

use super::read::{V2, Walk};
use crate::trace::error::{Flaw, TraceError};
use crate::trace::rows::IndexPart;

/// How many objects come in one part: 1,024 at about 100 bytes is 100 KiB.
const PART_LEN: u64 = 1024;

/// Streams the index in parts.
pub(crate) struct Index<'a> {
    walk: Walk<'a>,
    version: u64,
    kinds_left: u64,
    /// The kind whose objects are being read, and how many are left.
    current: Option<(String, u64)>,
}

impl<'a> Index<'a> {
    pub(crate) fn new(trace: &'a V2) -> Result<Self, TraceError> {
        let mut walk = Walk::begin(&trace.source, "index", trace.index_at)?;
        let kinds_left = walk.input.map("a map by kind").map_err(|error| walk.error(error))?;
        Ok(Self { walk, version: trace.version, kinds_left, current: None })
    }

    fn step(&mut self) -> Result<Option<IndexPart>, TraceError> {
        let (kind, left) = match self.current.take() {
            Some(current) => current,
            None if self.kinds_left == 0 => return Ok(None),
            None => {
                self.kinds_left -= 1;
                let kind = self.walk.name()?;
                let len = self.walk.input.map("a map by object").map_err(|error| self.walk.error(error))?;
                (kind, len)
            }
        };
        let mut objects = Vec::new();
        for _ in 0..left.min(PART_LEN) {
            objects.push((self.walk.name()?, self.hash()?));
        }
        if left > PART_LEN {
            self.current = Some((kind.clone(), left - PART_LEN));
        }
        Ok(Some(IndexPart { kind, objects }))
    }

    fn hash(&mut self) -> Result<Option<StableHash>, TraceError> {
        if self.version == 3 {
            self.walk.skip()?;
            return Ok(None);
        }
        match self.walk.unsigned()? {
            Some(hash) => Ok(Some(StableHash::new(hash))),
            None => Err(self.walk.error(Flaw::Content("a hash in the index is not a whole number".into()))),
        }
    }
}

impl Iterator for Index<'_> {
    type Item = Result<IndexPart, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if step.is_err() {
            self.kinds_left = 0;
            self.current = None;
        }
        step.transpose()
    }
}
